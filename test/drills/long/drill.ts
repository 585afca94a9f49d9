/**
 * A long drill: several jobs at once, in real processes, on an engine with a file, for as long as one likes, while the
 * processes are stopped and killed, the engine is restarted and killed, requests go wrong in every way and clocks are off.
 * Then all is quiet, every job runs once more, and the tables must be as if nothing had happened.
 *
 * What is drawn depends on the seed alone; when it strikes depends on the machine, since everything here is real.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createControlTable, dynamoStore, type Job, systemClock } from "cronfence";
import { localClientConfig, startFaultProxy } from "cronfence/testing";
import { build } from "esbuild";
import { workerModule } from "../worker-process.ts";
import { type Crew, startCrew } from "./crew.ts";
import { chanceBy } from "./deck.ts";
import { commandFor, deliverTicks } from "./deliveries.ts";
import { disturb, engineOn } from "./disturbances.ts";
import { type LongFigures, readFigures } from "./figures.ts";
import { insertCarts, mostAheadMs } from "./inserts.ts";
import { createDrilledTables, drilledJobs, lease } from "./jobs.ts";
import { tallyInto } from "./tally.ts";
import { injectWireFaults } from "./wire-faults.ts";
import { pass, type WorldTime, worldTime } from "./world-time.ts";

export interface LongDrillOptions {
  /** How long things go wrong, in real seconds. */
  readonly seconds: number;
  readonly seed: number;
  /** @default 4 */
  readonly processes?: number;
  /** Prints a line, in plain words. */
  readonly say?: (line: string) => void;
  /** Ends the drill early, with everything it started. */
  readonly signal?: AbortSignal;
}

const table = "cronfence";
/** A tick every two seconds. */
const speed = 30;
const settleMs = 60_000;

/** @throws Error when a step can't be done, or takes too long; whatever it started has ended by then. */
export const longDrill = async (options: LongDrillOptions): Promise<LongFigures> => {
  const { seconds, seed, processes = 4, say = () => {}, signal } = options;
  const folder = await mkdtemp(join(tmpdir(), "cronfence-drill-"));
  const ending: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const engine = await engineOn(join(folder, "engine.db"));
    ending.push(() => engine.stop());
    const client = new DynamoDBClient({ ...localClientConfig(engine.endpoint), maxAttempts: 1 });
    ending.push(async () => client.destroy());
    const proxy = await startFaultProxy(engine.endpoint);
    ending.push(() => proxy.stop());
    await createControlTable(client, table);
    await createDrilledTables(client);
    // Chance for each concern of its own, so that what one draws doesn't depend on how often another did.
    const where = { endpoint: proxy.endpoint, table, bundle: await bundledWorker(folder) };
    const crew = await startCrew(processes, where, chanceBy(seed));
    ending.push(() => crew.end());
    say(`${processes} processes are up, on ${drilledJobs.length} jobs; a minute of theirs takes ${60 / speed} s`);

    const since = Date.parse("2026-03-02T06:00:00Z");
    const time = worldTime(since, speed);
    const store = dynamoStore({ client, table });
    for (const { name } of drilledJobs) {
      await store.create(name, since, { clock: systemClock, random: Math.random, until: systemClock.now() + 10_000 });
    }
    const faults = new Map<string, number>();
    const count = tallyInto(faults);
    const trouble = new AbortController();
    const over = trouble.signal;
    const wire = injectWireFaults(proxy, chanceBy(seed + 1), count);
    const going = [
      disturb({
        crew,
        engine,
        chance: chanceBy(seed + 2),
        count,
        leaseMs: time.real(lease.ttlMs + lease.skewMs),
        signal: over,
      }),
      ...drilledJobs.map((job, index) =>
        deliverTicks(job, since, { crew, time, chance: chanceBy(seed + 4 + index), count, signal: over }),
      ),
    ] as const;
    const inserting = insertCarts(client, { time, chance: chanceBy(seed + 3), signal: over });
    say(`Everything goes wrong for ${seconds} s (seed ${seed})`);
    const troubled = pass(seconds * 1_000, AbortSignal.any([over, ...(signal === undefined ? [] : [signal])]));
    // Whoever breaks off ends the others, too, and is heard of when they have ended.
    const all = [troubled, inserting, ...going].map((each) => each.finally(() => trouble.abort()));
    await Promise.allSettled(all);
    await Promise.all(all);
    signal?.throwIfAborted();
    await wire.stop();
    await crew.settled();
    say("Quiet: every job runs once more");
    time.skip(mostAheadMs + settleMs);
    const last = new Map<string, number>();
    for (const job of drilledJobs) last.set(job.name, await runLast(job, crew, time, say));
    return await readFigures(
      client,
      { seed, seconds, faults: Object.fromEntries(faults), inserted: await inserting },
      { table, time, since, last },
    );
  } finally {
    for (const end of ending.reverse()) await end();
  }
};

/** Processes are killed all the time, and it would take the machine most of its time to start them from their sources. */
const bundledWorker = async (folder: string): Promise<string> => {
  const outfile = join(folder, "worker.mjs");
  await build({
    entryPoints: [workerModule],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    logLevel: "error",
  });
  return outfile;
};

const tries = 20;

/**
 * Delivers the last tick that is due, and the next one for as long as a run leaves something to it: which tick was the last.
 * What is wrong with its end is for the figures to show.
 */
const runLast = async (job: Job, crew: Crew, time: WorldTime, say: (line: string) => void): Promise<number> => {
  for (let attempt = 1; ; attempt += 1) {
    const tick = [...(job.schedule?.between(time.now() - settleMs, time.now()) ?? [])].at(-1);
    if (tick === undefined) throw new Error(`job ${job.name} was never due`);
    const ended = await crew.fire(commandFor(job, tick, time))?.catch((error: Error) => error);
    if (ended === undefined) throw new Error("no process is free, though all is quiet");
    const said = ended instanceof Error ? ended.message : ended.outcome;
    say(`${job.name}: ${said}`);
    if (said === "succeeded" || attempt === tries) return tick;
    time.skip(lease.ttlMs + lease.skewMs);
  }
};
