/** One way of doing the job, as the documentation of what it uses tells to. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";

export interface Surroundings {
  readonly endpoint: string;
  /** A client for it; `maxAttempts` as the SDK has it unless given. */
  connect(options?: { readonly maxAttempts?: number }): DynamoDBClient;
  /** How long a lock lasts that nobody renews, or an invocation may take. */
  readonly leaseMs: number;
  /** Whether replies should say what they cost. */
  readonly metered: boolean;
}

/** A handler: it throws where the platform should deliver the tick again, and says in a word what it did otherwise. */
export type Handler = (tick: number) => Promise<string>;

export type ContenderName = (typeof contenderNames)[number];
export const contenderNames = [
  "bare SDK",
  "cronfence",
  "Powertools, each tick",
  "Powertools, each item",
  "lock client",
  "lock client, token on items",
] as const;

/** Loaded when it is needed: a process has what one of them brings, and no more. */
export const openContender = async (name: ContenderName, surroundings: Surroundings): Promise<Handler> => {
  switch (name) {
    case "bare SDK":
      return (await import("./contenders/bare.ts")).open(surroundings);
    case "cronfence":
      return (await import("./contenders/fenced.ts")).open(surroundings);
    case "Powertools, each tick":
      return (await import("./contenders/powertools.ts")).openForTicks(surroundings);
    case "Powertools, each item":
      return (await import("./contenders/powertools.ts")).openForItems(surroundings);
    case "lock client":
      return (await import("./contenders/lock-client.ts")).open(surroundings, "as its README shows");
    case "lock client, token on items":
      return (await import("./contenders/lock-client.ts")).open(surroundings, "token on items");
  }
};
