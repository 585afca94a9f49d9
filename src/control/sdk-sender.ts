/** DynamoDB by the SDK's client, which is loaded when the first command is sent. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { CronfenceError } from "../errors.ts";
import type { Send } from "./commands.ts";

type Sdk = typeof import("./sdk-commands.ts");

/** @param given a caller's client. @default one for the environment's region, credentials and endpoint */
export const sdkSender = (given?: DynamoDBClient): Send => {
  let client = given;
  return async ({ operation, input }, abortSignal) => {
    const sdk = loaded ?? (await load());
    // Its own retries would hide tries whose outcome is unknown.
    client ??= new sdk.DynamoDBClient({ maxAttempts: 1 });
    if (!regioned.has(client)) await requireRegion(client);
    const Sent = sdk[`${operation}Command`] as new (given: object) => InstanceType<Sdk["GetItemCommand"]>;
    return client.send(new Sent(input), { abortSignal });
  };
};

let loaded: Sdk | undefined;

const load = async (): Promise<Sdk> => {
  const sdk = await import("./sdk-commands.ts").catch((cause) => {
    throw new CronfenceError("DYNAMODB_CLIENT_MISSING", "@aws-sdk/client-dynamodb isn't there, and is needed here", {
      cause,
    });
  });
  loaded = sdk;
  return sdk;
};

/** Clients that are known to have a region. */
const regioned = new WeakSet<DynamoDBClient>();

/** Without a region the SDK fails before it sends, by an error that can't be told from a lost reply. So it is asked first. */
const requireRegion = async (client: DynamoDBClient): Promise<void> => {
  try {
    await client.config.region();
  } catch (cause) {
    throw Object.assign(new Error("no AWS region is set; set AWS_REGION", { cause }), { name: "RegionMissingError" });
  }
  regioned.add(client);
};
