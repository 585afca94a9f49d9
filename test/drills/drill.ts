/**
 * The main job through what breaks other schedulers, with real processes and real signals: two deliveries at once, a
 * holder that is only paused, a process that is killed, ticks that nobody fired. It measures; checks.ts judges.
 */
import { setTimeout as wait } from "node:timers/promises";
import { DeleteTableCommand, DynamoDBClient, ListTablesCommand, UpdateTableCommand } from "@aws-sdk/client-dynamodb";
import { type Budget, CronfenceError, createControlTable, dynamoStore, type RunReport, systemClock } from "cronfence";
import { type Engine, localClientConfig } from "cronfence/testing";
import { job } from "../../handlers/expire-carts.ts";
import { cartsDueBy, cartTables, createCartTables, deliveryMs, putCarts, readEffects, tickMs } from "./carts.ts";
import { type Figures, minute, number, type Succession } from "./checks.ts";
import type { FireCommand } from "./worker.ts";
import { isHolding, startWorker, type WorkerProcess } from "./worker-process.ts";

/** What the drill measured, and which process each run was in. */
export interface Drilled {
  readonly figures: Figures;
  readonly processes: ReadonlyMap<string, string>;
}

export interface DrillOptions {
  readonly engine: Engine;
  /** How many carts each of the six ticks brings. */
  readonly shares: readonly [number, number, number, number, number, number];
  /** Prints a line, in plain words. */
  readonly say: (line: string) => void;
  /** Told of each process as it is started, so that it can be ended from outside. */
  readonly onWorker: (worker: WorkerProcess) => void;
}

/** A lease so short that waiting for its end takes no patience; three request timeouts is the least there may be. */
const shortLease = { ttlMs: 1_000, skewMs: 200, requestTimeoutMs: 300 };
const table = "cronfence";

/** @throws Error when a step can't be done or takes too long; nothing is cleaned up here. */
export const drill = async ({ engine, shares, say, onWorker }: DrillOptions): Promise<Drilled> => {
  const client = new DynamoDBClient({ ...localClientConfig(engine.endpoint), maxAttempts: 3 });
  const store = dynamoStore({ client, table });
  const budget = (): Budget => ({ clock: systemClock, random: Math.random, until: systemClock.now() + 10_000 });
  const processes = new Map<string, string>();
  const first = Math.floor(systemClock.now() / tickMs - shares.length) * tickMs;
  const ticks = shares.map((_, index) => first + index * tickMs);
  const tickOf = (index: number) => ticks[index] as number;
  const shareOf = (index: number) => shares[index] as number;

  const start = async (name: string): Promise<WorkerProcess> => {
    const worker = await startWorker(name, { endpoint: engine.endpoint, table });
    onWorker(worker);
    return worker;
  };

  /** A time line on which `tick` is just due; all processes of a scene share it. */
  const sceneAt = (tick: number) => {
    const startedAt = performance.now();
    return { now: () => Math.floor(tick + deliveryMs + performance.now() - startedAt) };
  };
  type Scene = ReturnType<typeof sceneAt>;

  const held = (name: string, report: RunReport): string =>
    report.outcome === "duplicate"
      ? `${name} is told that the tick has been done: ${report.outcome}`
      : `${name} is told that the lease is taken: ${report.outcome}`;
  const done = (name: string, report: RunReport): string =>
    `${name} ${report.outcome}: ${number(report.items)} carts in ${number(report.commits)} commits, fence ${report.fence}`;

  /** Delivers the tick until the lease is granted, and then up to where the run is held back, or to its end. */
  const succeedTo = async (worker: WorkerProcess, scene: Scene, command: Omit<FireCommand, "do" | "at">) => {
    const heldAt: number[] = [];
    for (;;) {
      const at = scene.now();
      const came = await worker.fire({ ...command, at });
      if (isHolding(came) || came.outcome !== "held") return { heldAt, grantedAt: at, came };
      if (heldAt.length === 0) say(held(worker.name, came));
      heldAt.push(at);
      await wait(pollMs);
    }
  };

  /** Runs a tick up to the commit that is held back, and says what the control item shows then. */
  const runInto = async (worker: WorkerProcess, scene: Scene, tick: number, nth: number) => {
    const hold = { before: "commit", nth } as const;
    const came = await worker.fire({ tick, at: scene.now(), hold, ...shortLease });
    if (!isHolding(came)) throw new Error(`process ${worker.name} ended as ${came.outcome} before its commit ${nth}`);
    const left = await store.read(job.name, budget());
    if (left?.run === undefined) throw new Error("the control item shows no run");
    processes.set(left.run.id, worker.name);
    return left;
  };

  const [a, b, c] = await Promise.all([
    ...["A", "B", "C"].map(start),
    (async () => {
      await createTables(client, engine.endpoint);
      await putCarts(
        client,
        shares.flatMap((share, index) => cartsDueBy(tickOf(index), share)),
      );
    })(),
  ] as [Promise<WorkerProcess>, Promise<WorkerProcess>, Promise<WorkerProcess>, Promise<void>]);
  const carts = shares.reduce((sum, share) => sum + share, 0);
  say(
    `${number(carts)} carts are written; processes A, B and C are up (${[a, b, c].map(({ pid }) => pid).join(", ")})`,
  );
  say("Each process is given a clock on which the tick is just due, so that nobody waits five minutes for the next.");

  const doubleTrigger = async (): Promise<Figures["doubleTrigger"]> => {
    const tick = tickOf(0);
    say(`\n1. Two processes fire the tick of ${minute(tick)} at once; ${number(shareOf(0))} carts are due`);
    const scene = sceneAt(tick);
    const hold = { before: "acquire", nth: 1 } as const;
    // Both have come as far as the request for the lease before either sends it.
    await Promise.all([a, b].map((worker) => worker.fire({ tick, at: scene.now(), hold })));
    const reports = [a, b].map((worker) => worker.report());
    for (const worker of [a, b]) worker.release();
    const ended = await Promise.all(reports);
    for (const [index, report] of ended.entries()) {
      const { name } = [a, b][index] as WorkerProcess;
      if (report.run !== undefined) processes.set(report.run, name);
      say(report.run === undefined ? held(name, report) : done(name, report));
    }
    return { due: shareOf(0), reports: ended };
  };

  const stopped = async (): Promise<Figures["stopped"]> => {
    const tick = tickOf(1);
    const commits = 9;
    say(`\n2. A holder is stopped in mid-run: tick of ${minute(tick)}, ${number(shareOf(1))} carts are due`);
    const scene = sceneAt(tick);
    const left = await runInto(a, scene, tick, commits + 1);
    await a.stop();
    say(
      `A gets SIGSTOP after ${left.run?.seq} commits (${number(left.run?.items)} carts), with the next one on its way out`,
    );
    const hold = { before: "commit", nth: 4 } as const;
    const { heldAt, grantedAt, came } = await succeedTo(b, scene, { tick, hold, ...shortLease });
    if (!isHolding(came)) throw new Error(`process B ended as ${came.outcome} before its commit ${hold.nth}`);
    const before = await store.read(job.name, budget());
    if (before?.run !== undefined) processes.set(before.run.id, b.name);
    say(`A's lease is over: B gets fence ${before?.fence} and works`);
    a.release(); // A stopped process sees nothing of it yet.
    a.continue();
    const holder = await a.report();
    const after = await store.read(job.name, budget());
    say(`A gets SIGCONT, sends its commit under fence ${left.fence}, and is refused: ${holder.outcome}`);
    b.release();
    const successor = await b.report();
    say(done("B", successor));
    const { skewMs } = shortLease;
    return { due: shareOf(1), left, skewMs, heldAt, grantedAt, successor, holder, before, after };
  };

  const killed = async (): Promise<Succession> => {
    const tick = tickOf(2);
    say(`\n3. A process is killed in mid-run: tick of ${minute(tick)}, ${number(shareOf(2))} carts are due`);
    const scene = sceneAt(tick);
    const left = await runInto(c, scene, tick, 14);
    await c.kill("SIGKILL");
    say(`C gets SIGKILL after ${left.run?.seq} commits (${number(left.run?.items)} carts)`);
    const { heldAt, grantedAt, came } = await succeedTo(b, scene, { tick, ...shortLease });
    if (isHolding(came)) throw new Error("process B held a call back that it wasn't asked to");
    if (came.run !== undefined) processes.set(came.run, b.name);
    say(done("B", came));
    return { due: shareOf(2), left, skewMs: shortLease.skewMs, heldAt, grantedAt, successor: came };
  };

  const missed = async (): Promise<Figures["missed"]> => {
    const due = [3, 4, 5];
    const tick = tickOf(5);
    say(
      `\n4. Nobody fires the ticks of ${minute(tickOf(3))} and ${minute(tickOf(4))}; that of ${minute(tick)} is fired`,
    );
    const report = await a.fire({ tick, at: sceneAt(tick).now() });
    if (isHolding(report)) throw new Error("process A held a call back that it wasn't asked to");
    if (report.run !== undefined) processes.set(report.run, a.name);
    say(`${done("A", report)}; it covers ${report.ticks?.count ?? 0} ticks`);
    return { due: due.reduce((sum, index) => sum + shareOf(index), 0), ticks: due.map(tickOf), report };
  };

  const scenes = {
    carts,
    doubleTrigger: await doubleTrigger(),
    stopped: await stopped(),
    killed: await killed(),
    missed: await missed(),
  };
  const [{ runs }, effects] = await Promise.all([store.runs(job.name, { limit: 100 }, budget()), readEffects(client)]);
  await Promise.all([a, b].map((worker) => worker.end()));
  if (engine.kind === "external") await dropTables(client);
  client.destroy();
  return { figures: { ...scenes, records: [...runs].reverse(), effects }, processes };
};

/** @throws CronfenceError where there are tables of these names: they may be somebody's. */
const createTables = async (client: DynamoDBClient, endpoint: string): Promise<void> => {
  const { TableNames = [] } = await client.send(new ListTablesCommand({}));
  const taken = [table, ...cartTables].filter((name) => TableNames.includes(name));
  if (taken.length > 0) {
    throw new CronfenceError("TABLES_EXIST", `the drill makes its own tables, and ${endpoint} has ${taken.join(", ")}`);
  }
  await createControlTable(client, table);
  await createCartTables(client);
};

/** On a server that goes on after the drill. */
const dropTables = async (client: DynamoDBClient): Promise<void> => {
  await client.send(new UpdateTableCommand({ TableName: table, DeletionProtectionEnabled: false }));
  for (const name of [table, ...cartTables]) await client.send(new DeleteTableCommand({ TableName: name }));
};

/** Between two tries for a lease. */
const pollMs = 100;
