import { CronfenceError } from "../errors.ts";

/** The local DynamoDB can't be had here; the message says what to install or set. */
export class EngineUnavailableError extends CronfenceError {
  override readonly name = "EngineUnavailableError";

  constructor(reason: string, options?: ErrorOptions) {
    super("ENGINE_UNAVAILABLE", `local DynamoDB: ${reason}`, options);
  }
}
