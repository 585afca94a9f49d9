/**
 * One trial: the tables as seeded, the job known from before its first tick, and machines that its ticks are delivered to as Lambda
 * would deliver them. What it comes to is read from the tables and from what went over the wire.
 */
import { randomUUID } from "node:crypto";
import type { ControlState, RunRecord } from "../../control/control-store.ts";
import { type DynamoStore, dynamoStore } from "../../control/dynamo-store.ts";
import { hasCode } from "../../errors.ts";
import type { Job } from "../../job.ts";
import type { Logger } from "../../observe/log.ts";
import { traitsOf } from "../../outcome.ts";
import type { RunReport } from "../../report.ts";
import { runJob } from "../../run.ts";
import type { Trigger } from "../../trigger.ts";
import { type SettableClock, settableClock } from "../settable-clock.ts";
import { passed, wireTo } from "../wire.ts";
import { controlTable } from "./ground.ts";
import { type Machine, type MachineOptions, machineOn } from "./machine.ts";
import type { Scene } from "./scene.ts";
import { type State, stateOf } from "./state.ts";
import { type JobWatch, watchedJob } from "./watched-job.ts";
import { type UnfencedWrite, writesOf } from "./wire-writes.ts";

/** How an invocation ended: a report, or what was thrown in place of one. */
export interface Invocation {
  readonly report?: RunReport;
  readonly error?: unknown;
  /** The platform would try again. */
  readonly failed: boolean;
}

/** Which event is delivered, and how often it has been before. */
interface Delivery {
  readonly requestId?: string;
  /** From 1. */
  readonly attempt?: number;
  readonly dryRun?: boolean;
}

/** A trial while it is going on. */
export interface World {
  readonly job: Job;
  readonly clock: SettableClock;
  /** In milliseconds since the epoch; for a job without a schedule the times at which it is started by hand. */
  readonly ticks: readonly number[];
  readonly store: DynamoStore;
  readonly watch: JobWatch;
  machine(options?: MachineOptions): Machine;
  /** Sets the clock to when `tick` is delivered, unless it is later. */
  waitFor(tick: number): void;
  /** One invocation on `machine`. Never rejects. */
  invoke(machine: Machine, tick: number, delivery?: Delivery, job?: Job): Promise<Invocation>;
  /** All that Lambda does for one event: up to three tries, the second a minute and the third two minutes later. */
  deliver(
    tick: number,
    delivery?: Omit<Delivery, "dryRun"> & { readonly machine?: Machine },
    job?: Job,
  ): Promise<Invocation>;
  /** Delivers the ticks from index `from` on, each at its time, and sees to it that none is left. */
  goOn(from: number): Promise<void>;
  state(): Promise<ControlState | undefined>;
  /** Of all runs so far, oldest first. */
  records(): Promise<readonly RunRecord[]>;
  /** Resolves when nothing of the job is going on any more that this process could see. */
  quiet(): Promise<void>;
}

/** What a trial has come to. */
export interface Aftermath {
  readonly state: State;
  readonly control: ControlState | undefined;
  readonly records: readonly RunRecord[];
  /** How often each item was written by an accepted commit, by `table key`. */
  readonly writes: ReadonlyMap<string, number>;
  readonly unfenced: readonly UnfencedWrite[];
  readonly effects: readonly unknown[];
  /** Calls to the outside that may not be repeated, by their text. */
  readonly calls: ReadonlyMap<string, number>;
  /** Where the job's own code read the machine's clock. */
  readonly dateReaders: readonly string[];
  /** The last failure that no later run made good. */
  readonly failure: string | undefined;
}

export interface TrialOptions {
  /** @default those of the scene */
  readonly ticks?: readonly number[];
  readonly job?: Job;
  /** How much earlier the job became known, so that its fences are others. @default 0 */
  readonly earlierMs?: number;
  /** For all machines of the trial. */
  readonly machineOptions?: MachineOptions;
}

/** Plays `script` on fresh tables. */
export const playTrial = async (
  scene: Scene,
  script: (world: World) => Promise<void>,
  { ticks = scene.ticks, job: given = scene.job, earlierMs = 0, machineOptions = {} }: TrialOptions = {},
): Promise<Aftermath> => {
  const { ground, options } = scene;
  const first = ticks[0] as number;
  await scene.reset(first);
  const clock = settableClock(first - minuteMs - earlierMs, { autoAdvance: { atMostMs: longestBackoffMs } });
  const machines: Machine[] = [];
  const ids = new Set<string>();
  const watch: JobWatch = { effects: new Map() };
  const job = watchedJob(given, watch);
  // What the drill itself does needs no proxy.
  const store = dynamoStore({ client: wireTo(ground.endpoint, passed).client, table: controlTable });
  const budget = () => ({ clock, until: clock.now() + minuteMs, random: () => 0.5 });
  const scheduled = job.schedule !== undefined;
  let failure: string | undefined;
  /** Ticks that were queued behind a run with no time left for them. */
  let queued: number[] = [];
  await store.create(job.name, first - 1, budget());
  clock.set(first);

  const newId = () => {
    const id = randomUUID();
    ids.add(id);
    return id;
  };

  const world: World = {
    job,
    clock,
    ticks,
    store,
    watch,
    machine: (how) => {
      const machine = machineOn(randomUUID(), clock, { ...machineOptions, ...how });
      machines.push(machine);
      return machine;
    },
    invoke: async (machine, tick, { requestId, attempt, dryRun } = {}, other = job) => {
      const trigger: Trigger = {
        kind: scheduled ? "schedule" : "manual",
        ...(scheduled ? { tick } : {}),
        ...(requestId === undefined ? {} : { requestId }),
        ...(attempt === undefined ? {} : { attempt }),
        ...(dryRun === undefined ? {} : { dryRun }),
      };
      const deps = {
        store: dynamoStore({
          client: ground.machineClient,
          table: controlTable,
          // A request that is held up on the way by a drill isn't given up.
          requestTimeoutMs: Math.floor(Math.min(other.ttlMs / 3, longestRequestMs)),
        }),
        clock: machine.clock,
        log: silent,
        random: () => 0.5,
        newId,
        startAnother: async (_job: string, late: number) => void queued.push(late),
      };
      try {
        const report = await machine.run(() => runJob(other, trigger, deps));
        return { report, failed: traitsOf(report.outcome).fails };
      } catch (error) {
        return { error, failed: true };
      }
    },
    waitFor: (tick) => {
      const at = tick === ticks.at(-1) ? tick + closingMs(job) : tick;
      if (clock.now() < at) clock.set(at);
    },
    deliver: async (tick, { requestId = randomUUID(), attempt: from = 1, machine } = {}, other = job) => {
      world.waitFor(tick);
      let last: Invocation = { failed: true };
      for (let attempt = from; attempt <= retryDelaysMs.length + 1; attempt += 1) {
        if (attempt > 1) clock.advance(retryDelaysMs[attempt - 2] as number);
        const on = attempt === from && machine !== undefined ? machine : world.machine();
        last = await world.invoke(on, tick, { requestId, attempt }, other);
        failure = last.failed ? textOf(last) : undefined;
        if (!last.failed) break;
        await release(last);
      }
      const behind = queued;
      queued = [];
      for (const late of behind) await world.deliver(late);
      return last;
    },
    goOn: async (from) => {
      for (const tick of ticks.slice(from)) await world.deliver(tick);
      const last = ticks.at(-1) as number;
      for (let tries = 0; scheduled && tries < ticks.length; tries += 1) {
        const state = await world.state();
        const done = state?.tick !== undefined && state.tick >= last;
        if (done && state.owner === undefined && failure === undefined) return;
        // As a watchdog does for what is overdue.
        clock.advance(Math.max(minuteMs, job.ttlMs + job.skewMs + 1));
        await world.deliver(last);
      }
    },
    state: () => store.read(job.name, budget()),
    records: async () => (await store.runs(job.name, { limit: 1_000 }, budget())).runs.toReversed(),
    quiet: async () => {
      const seen = () => machines.reduce((sum, { requests }) => sum + requests.length, scene.strays.length);
      for (let turns = 0, before = seen(); turns < 5; turns += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        await Promise.all(machines.flatMap(({ requests, dead }) => (dead ? [] : requests.map((one) => one.settled))));
        if (seen() !== before) turns = 0;
        before = seen();
      }
    },
  };

  /** A person finds out what became of an effect, and says so. */
  const release = async ({ report, error }: Invocation): Promise<void> => {
    const thrown = report?.thrown ?? error;
    if (!hasCode(thrown, "EFFECT_UNKNOWN")) return;
    const { key } = thrown as { readonly key: string };
    const done = (watch.effects.get(key)?.done ?? 0) > 0;
    const act = { by: "drill", why: "found out" };
    await store.releaseOnce(job.name, key, done ? "done" : "not done", act, clock.now(), budget());
  };

  /** What outlives the trial in this process gets a few turns to find that its machine is dead. */
  const endAll = async (): Promise<void> => {
    for (const machine of machines.splice(0)) machine.bury();
    for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  };

  try {
    await script(world);
    await world.quiet();
    const requests = machines.flatMap((machine) => machine.requests.map((request) => ({ machine, request })));
    const control = await world.state();
    const records = await world.records();
    const { writes, unfenced } = writesOf(requests, scene.strays, options.tables ?? [], job.name);
    const dateReaders = [...new Set(machines.flatMap((machine) => [...machine.dateReaders]))];
    await endAll();
    return {
      state: withWatermark(await stateOf(scene, ids), control),
      control,
      records,
      writes,
      unfenced: unfenced.filter(({ table }) => !options.unfenced?.includes(table)),
      effects: await effectsBy(scene),
      calls: scene.callsToJudge(),
      dateReaders,
      failure,
    };
  } finally {
    await endAll();
  }
};

/**
 * The last tick comes so late that whatever happened before it is over: its run sees the same time in every trial, so that a job
 * which reads what is due by now finds the same.
 */
const closingMs = ({ timeoutMs, ttlMs, skewMs, catchUp }: Job): number =>
  Math.min(timeoutMs + 2 * (ttlMs + skewMs) + 5 * minuteMs, catchUp.startWithinMs ?? Number.POSITIVE_INFINITY);

/** Where the job stands is part of the state. */
const withWatermark = (state: State, control: ControlState | undefined): State =>
  control?.watermark === undefined
    ? state
    : new Map([...state, ["the watermark", { of: "watermark", value: control.watermark }]]);

/** A copy: the list is the test's own, and goes on. */
export const effectsBy = async ({ options }: Scene): Promise<readonly unknown[]> => [
  ...((await options.effects?.()) ?? []),
];

/** What made an invocation fail, in words. */
export const textOf = ({ report, error }: Invocation): string => {
  const thrown = report?.error ?? (error as Error | undefined);
  const name = thrown?.name === undefined || thrown.name === "Error" ? "" : `${thrown.name}: `;
  const cause = (report?.thrown as { cause?: { message?: unknown } } | undefined)?.cause?.message;
  return `${report?.outcome ?? "no report"}: ${name}${thrown?.message ?? String(error)}${cause === undefined ? "" : ` (${String(cause)})`}`;
};

const minuteMs = 60_000;
/** https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html */
const retryDelaysMs = [60_000, 120_000];
/** Waits between tries pass by themselves; deadlines and heartbeats don't. */
const longestBackoffMs = 2_000;
const longestRequestMs = 10_000;

const silent: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silent };
