/** What all trials of a job share: its tables, how they are seeded, and what reaches the outside. */
import { InvalidOptionsError } from "../../errors.ts";
import type { Job } from "../../job.ts";
import type { ProxiedRequest } from "../fault-proxy.ts";
import type { DrillOptions } from "./drill-options.ts";
import { type Contents, contentsOf, type DrilledTables, makeTables } from "./drilled-tables.ts";
import { type Ground, takeGround } from "./ground.ts";
import { callText, isRepeatable, type SeenCall } from "./outside-calls.ts";

export interface Scene {
  readonly job: Job;
  readonly options: DrillOptions;
  readonly ground: Ground;
  readonly tables: DrilledTables;
  /** The ticks of an ordinary trial, ascending, in milliseconds since the epoch. */
  readonly ticks: readonly number[];
  /** Sets everything to where a trial with its first tick at `now` begins. */
  reset(now: number): Promise<void>;
  /** Requests to DynamoDB in the present trial that no machine made. */
  readonly strays: ProxiedRequest[];
  /** How often each call to the outside was made in the present trial, where once is meant. */
  callsToJudge(): ReadonlyMap<string, number>;
}

/** Runs `drill` on tables of its own. */
export const onScene = (
  job: Job,
  options: DrillOptions,
  ticks: readonly number[],
  drill: (scene: Scene) => Promise<void>,
): Promise<void> => {
  const subject = `drills of job "${job.name}"`;
  const definitions = options.tables ?? [];
  const strays: ProxiedRequest[] = [];
  const calls: SeenCall[] = [];
  const watchman = {
    called: (call: SeenCall) => void (call.machine.dead || calls.push(call)),
    strayed: (request: ProxiedRequest) => void strays.push(request),
  };
  return takeGround(watchman, async (ground) => {
    const tables = await makeTables(ground, subject, definitions);
    /** What the last seed returned: then only what has changed has to be put back. */
    let last: { readonly text: string; readonly contents: Contents } | undefined;
    const reset = async (now: number): Promise<void> => {
      if (last === undefined) await tables.restore(nothing);
      const seeded = (await options.seed?.(now, ground.client)) ?? undefined;
      if (seeded !== undefined && typeof seeded !== "object") {
        throw new InvalidOptionsError(subject, [
          `seed returned a ${typeof seeded}, and must return items by table, or nothing`,
        ]);
      }
      const text = seeded && textOf(seeded);
      if (seeded === undefined || text === undefined) last = undefined;
      else if (text !== last?.text) last = { text, contents: contentsOf(definitions, seeded, subject) };
      if (last !== undefined) await tables.restore(last.contents);
      strays.length = 0;
      calls.length = 0;
    };
    const callsToJudge = () => {
      const counts = new Map<string, number>();
      for (const call of calls) {
        if (call.once !== undefined || (options.repeatable?.(call) ?? isRepeatable(call))) continue;
        counts.set(callText(call), (counts.get(callText(call)) ?? 0) + 1);
      }
      return counts;
    };
    try {
      await drill({ job, options, ground, tables, ticks, reset, strays, callsToJudge });
    } finally {
      await tables.drop();
    }
  });
};

const nothing: Contents = new Map();

/** Tells what a seed returned from what it returned before; sets and bytes, too. */
const textOf = (seeded: object): string =>
  JSON.stringify(seeded, (_, value) => {
    if (value instanceof Set) return { set: [...value] };
    return typeof value === "bigint" ? `${value}n` : value;
  });
