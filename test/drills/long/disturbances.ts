/**
 * What befalls the processes and the engine, one thing after the other: stopped for a moment or for longer than a lease
 * lasts, killed, ended in good order and started again on the same file.
 */
import type { Engine } from "cronfence/testing";
import { startEngine } from "cronfence/testing";
import { isGone, until } from "../../testing/processes.ts";
import type { Crew } from "./crew.ts";
import { type Chance, deckOf } from "./deck.ts";
import type { Tally } from "./tally.ts";
import { pass } from "./world-time.ts";

const kinds = [
  "process: stopped for a moment",
  "process: stopped for longer than its lease",
  "process: stopped for longer than its lease",
  "process: killed",
  "process: killed",
  "engine: restarted",
  "engine: killed",
] as const;

/** The engine, always on the same port and file. */
export interface RestartedEngine {
  readonly endpoint: string;
  /** Ends it and starts it again: in good order, or by SIGKILL. */
  restart(how: "end" | "kill"): Promise<void>;
  stop(): Promise<void>;
}

export const engineOn = async (file: string): Promise<RestartedEngine> => {
  let engine: Engine = await startEngine({ file });
  const { endpoint } = engine;
  const port = Number(new URL(endpoint).port);
  return {
    endpoint,
    restart: async (how) => {
      const { pid } = engine;
      if (how === "kill" && pid !== undefined) {
        process.kill(pid, "SIGKILL");
        await until("the engine gone", () => isGone(pid));
      }
      await engine.stop();
      engine = await startEngine({ file, port });
    },
    stop: () => engine.stop(),
  };
};

export interface DisturbanceOptions {
  readonly crew: Crew;
  readonly engine: RestartedEngine;
  readonly chance: Chance;
  readonly count: Tally;
  /** How long a lease lasts after its last renewal, in real milliseconds. */
  readonly leaseMs: number;
  readonly signal: AbortSignal;
}

/** From one disturbance to the next, in milliseconds. */
const leastPauseMs = 100;
const mostPauseMs = 1_000;
const retryMs = 20;

/** Goes on until `signal` aborts; resolves when everybody stopped has been continued and the engine is there. */
export const disturb = async ({ crew, engine, chance, count, leaseMs, signal }: DisturbanceOptions): Promise<void> => {
  const draw = deckOf(kinds, chance);
  const stopped: Promise<void>[] = [];
  const stopOne = async (realMs: number): Promise<boolean> => {
    const goOn = await crew.stopOne();
    if (goOn === undefined) return false;
    stopped.push(pass(realMs, signal).then(goOn));
    return true;
  };
  const befall = async (kind: (typeof kinds)[number]): Promise<boolean> => {
    switch (kind) {
      case "process: stopped for a moment":
        return stopOne(chance.between(20, leaseMs / 4));
      case "process: stopped for longer than its lease":
        return stopOne(leaseMs * chance.between(1.1, 1.5));
      case "process: killed":
        return crew.killOne();
      default:
        await engine.restart(kind === "engine: killed" ? "kill" : "end");
        return true;
    }
  };
  while (!signal.aborted) {
    await pass(chance.between(leastPauseMs, mostPauseMs), signal);
    const kind = draw();
    // Only a process that runs something is worth it.
    for (;;) {
      if (signal.aborted) break;
      if (await befall(kind)) {
        count(kind);
        break;
      }
      await pass(retryMs, signal);
    }
  }
  await Promise.all(stopped);
};
