/**
 * The SDK's Lambda client, an optional peer: Lambda's Node.js runtimes bring it, and only functions that start others use
 * it. Loaded when it is used, and by an import whose failure is caught, so that bundlers get by without it.
 */
import { CronfenceError } from "../errors.ts";

type LambdaSdk = Pick<typeof import("@aws-sdk/client-lambda"), "InvokeCommand" | "LambdaClient">;

/** @throws CronfenceError (`LAMBDA_CLIENT_MISSING`) where it isn't installed */
export const loadLambdaSdk = (): Promise<LambdaSdk> =>
  import("@aws-sdk/client-lambda").catch((cause) => {
    throw new CronfenceError(
      "LAMBDA_CLIENT_MISSING",
      "@aws-sdk/client-lambda isn't there, and a function is to be invoked: add it to the dependencies",
      { cause },
    );
  });
