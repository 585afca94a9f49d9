/** The package has no types: what the comparison uses of it, as its README says. */
declare module "dynamodb-lock-client" {
  import type { EventEmitter } from "node:events";
  import type { DocumentClient } from "aws-sdk/clients/dynamodb.js";

  export interface Lock extends EventEmitter {
    readonly fencingToken: number;
    release(callback: (error?: Error) => void): void;
  }

  export class FailOpen {
    constructor(config: {
      dynamodb: DocumentClient;
      lockTable: string;
      partitionKey: string;
      heartbeatPeriodMs?: number;
      leaseDurationMs: number;
    });
    acquireLock(id: string, callback: (error: Error | undefined, lock: Lock) => void): void;
  }
}
