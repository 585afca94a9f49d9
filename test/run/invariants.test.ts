/**
 * Two to four runners against one engine, in thousands of random schedules: pauses at any request, crashes, lost
 * replies, late and repeated requests, conflicts, clocks that differ, takeovers, queues, cancels. What must hold is in
 * `model.ts`; what can happen is in `random-plan.ts`.
 *
 * A failure prints its seed and path: `FC_SEED=… FC_PATH=…` replays it; `FC_RUNS=20000` looks further.
 */
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { useEngine } from "../fixture.ts";
import { logTable } from "./planned-job.ts";
import { play } from "./play.ts";
import { plans } from "./random-plan.ts";

const engine = useEngine(logTable);
const { FC_SEED, FC_PATH, FC_RUNS } = process.env;
const runs = Number(FC_RUNS ?? 2_000);
const seed = Number(FC_SEED ?? Date.now() % 2 ** 31);
/** Schedules don't know of each other; several at a time keep the engine busy while this process thinks. */
const lanes = FC_PATH === undefined ? Math.min(6, runs) : 1;

let played = 0;
const nextName = () => `job-${played++}`;

it(
  `holds every invariant in ${runs} random schedules`,
  async () => {
    let failing: number | undefined;
    const lane = (number: number) =>
      fc.assert(
        fc.asyncProperty(plans, async (plan) => {
          // The others have nothing more to add.
          if (failing !== undefined && failing !== number) return;
          await play(engine.endpoint, engine.store, nextName(), plan).catch((error) => {
            failing ??= number;
            throw error;
          });
        }),
        {
          seed: seed + number,
          numRuns: Math.ceil(runs / lanes),
          ...(FC_PATH === undefined ? {} : { path: FC_PATH }),
        },
      );
    const settled = await Promise.allSettled(Array.from({ length: lanes }, (_, number) => lane(number)));
    for (const result of settled) if (result.status === "rejected") throw result.reason;
  },
  60 * 60_000,
);

it("plays the same plan the same way each time", async () => {
  for (const plan of fc.sample(plans, { seed, numRuns: 10 })) {
    const [one, other] = [nextName(), nextName()];
    const history = async (name: string) =>
      (await play(engine.endpoint, engine.store, name, plan)).map((line) => line.replaceAll(name, "it"));
    expect(await history(one)).toEqual(await history(other));
  }
});
