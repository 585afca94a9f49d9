/**
 * One contender in a process of its own: it says when it is ready, does the job once for each tick that it reads from standard
 * input, and says how that ended. invocation.ts is its other end.
 */
import { createInterface } from "node:readline";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { localClientConfig } from "cronfence/testing";
import { type ContenderName, openContender } from "./contender.ts";

export interface ProcessOptions {
  readonly contender: ContenderName;
  readonly endpoint: string;
  readonly leaseMs: number;
  /** How far this machine's clock is ahead. */
  readonly aheadMs: number;
}

export type Said = { readonly said: string } | { readonly threw: string };

const { contender, endpoint, leaseMs, aheadMs } = JSON.parse(process.argv[2] as string) as ProcessOptions;
const machineNow = Date.now;
Date.now = () => machineNow() + aheadMs;

const handler = await openContender(contender, {
  endpoint,
  leaseMs,
  metered: false,
  connect: (options) => new DynamoDBClient({ ...localClientConfig(endpoint), ...options }),
});

const tell = (what: Said): void => void process.stdout.write(`${JSON.stringify(what)}\n`);
// Whoever gave the ticks is gone.
const ticks = createInterface({ input: process.stdin }).once("close", () => process.exit(0));
ticks.on("line", async (line) => {
  try {
    tell({ said: await handler(Number(line)) });
  } catch (error) {
    tell({ threw: (error as Error).name });
  }
});
tell({ said: "ready" });
