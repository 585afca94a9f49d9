/**
 * Runners against the real engine, one step at a time: every request waits at a gate before it reaches the engine and
 * again before its answer is heard, timers fire only when the world's time comes to them, and between two steps
 * everything that can run without them has run. So the same steps always give the same history.
 *
 * After each step that the engine accepted, the rules of `model.ts` are checked.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { type Clock, type DynamoStore, dynamoStore, hasCode, type Logger, runJob } from "cronfence";
import { askEngine, never, type WireReply, type WireRequest, wireTo } from "../../src/testing/wire.ts";
import { budgetOn, controlTable, silentLog } from "../fixture.ts";
import {
  type Account,
  type Control,
  checkReport,
  checkStep,
  checkTold,
  type Entry,
  type Rules,
  type Seen,
  Violation,
} from "./model.ts";
import { jobOf, logTable, numberOf, skewMs, tickAt } from "./planned-job.ts";
import { mostTicks, type Plan } from "./random-plan.ts";

/** Whoever makes requests: an attempt, or the operator. */
export interface Actor {
  readonly name: string;
  readonly account: Account | "operator";
  /** How far its clock is ahead. */
  readonly skewMs: number;
  readonly interrupt: AbortController;
  /** Its process lives. */
  alive: boolean;
  paused: boolean;
  /** It has a report, or has failed. */
  ended: boolean;
}

export interface Sent {
  readonly actor: Actor;
  readonly request: WireRequest;
}

/** A request on its way. */
export interface Gate extends Sent {
  /** Once the engine has had it. */
  reply: WireReply | undefined;
  resolve(reply: WireReply): void;
  reject(error: Error): void;
}

export interface Timer {
  readonly at: number;
  readonly actor: Actor;
  readonly wake: () => void;
}

export type World = ReturnType<typeof openWorld>;

const reads = new Set(["GetItem", "Query", "BatchGetItem"]);

/** What `runJob` and `cancel` may throw; anything else is a fault. */
const expectedErrors = ["OUTCOME_UNKNOWN", "STORE_UNAVAILABLE", "PREDECESSOR_UNFINISHED"];

/** @param trace is told what happens, line by line */
export const openWorld = (endpoint: string, name: string, plan: Plan, trace: string[]) => {
  const rules: Rules = { plan, skewMs, ticks: mostTicks, tickAt, numberOf };
  const start = tickAt(mostTicks) + 10_000;
  let now = start;
  const actors: Actor[] = [];
  let gates: Gate[] = [];
  let timers: Timer[] = [];
  /** Writes that a network may repeat. */
  let sent: Sent[] = [];
  /** A try of these was answered, if only by the engine: whoever hears that doesn't wait for another answer. */
  const answered = new Set<string>();
  const deliveries = [...plan.deliveries];
  let seen: Seen = { control: { fence: 0, prev: [], unfinished: 0 }, log: [] };

  const say = (line: string) => trace.push(`${((now - start) / 1_000).toFixed(1)}s ${line}`);
  const accounts = () => actors.flatMap(({ account }) => (account === "operator" ? [] : [account]));
  const attempts = () => actors.filter(({ alive, ended, account }) => alive && !ended && account !== "operator");
  const isAwake = ({ alive, paused }: Actor) => alive && !paused;

  // --- Letting things run.
  let activity = 0;
  let fault: unknown;
  const quiet = async () => {
    for (let before = -1; before !== activity; ) {
      before = activity;
      await nextTurn();
    }
    if (fault !== undefined) throw fault;
  };
  /** Rules that are broken in the middle of somebody's code come to light at the next step. */
  const checked = (check: () => void) => {
    try {
      check();
    } catch (error) {
      fault ??= error;
    }
  };

  // --- Requests.
  const look = async () => {
    const before = seen;
    seen = await lookAt(endpoint, name);
    return before;
  };
  const apply = async ({ actor, request }: Sent, token = plan.tokens): Promise<void> => {
    const reply = await request.apply({ token });
    say(`${actor.name} ${request.operation} #${request.at} reaches the engine: ${reply.statusCode}`);
    for (const gate of gates) if (gate.request === request) gate.reply = reply;
    if (reply.statusCode === 200 && !reads.has(request.operation)) {
      const before = await look();
      checkStep(rules, actor.account, before, seen, accounts(), answered.has(request.body));
    }
  };
  const leave = (gate: Gate) => {
    gates = gates.filter((other) => other !== gate);
  };
  const arrive = async (gate: Gate) => {
    if (gate.reply === undefined) await apply(gate);
    answered.add(gate.request.body);
  };
  const answer = async (gate: Gate) => {
    await arrive(gate);
    leave(gate);
    gate.resolve(gate.reply as WireReply);
    await quiet();
  };
  /** The sender hears this, whether or not the engine has had the request. */
  const breakOff = async (gate: Gate, heard: Error | WireReply) => {
    leave(gate);
    const { actor, request, reply } = gate;
    say(`${actor.name} ${request.operation} #${request.at} ${reply ? "loses its reply" : "is lost"}`);
    if (heard instanceof Error) gate.reject(heard);
    else gate.resolve(heard);
    await quiet();
  };

  // --- Time.
  const clockOf = (actor: Actor): Clock => ({
    now: () => now + actor.skewMs,
    after: (delayMs, wake) => {
      const timer = { at: now + Math.max(0, delayMs), actor, wake };
      timers.push(timer);
      activity += 1;
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
  });
  const earliest = (): Timer | undefined =>
    timers
      .filter(({ actor }) => isAwake(actor))
      .reduce<Timer | undefined>((first, timer) => (first && first.at <= timer.at ? first : timer), undefined);
  const fire = async (timer: Timer) => {
    timers = timers.filter((other) => other !== timer);
    timer.wake();
    await quiet();
  };
  const elapse = async (ms: number) => {
    const until = now + ms;
    for (let timer = earliest(); timer !== undefined && timer.at <= until; timer = earliest()) {
      now = Math.max(now, timer.at);
      await fire(timer);
    }
    now = until;
  };

  // --- Actors.
  const enter = (actorName: string, account: Actor["account"], aheadMs: number): Actor => {
    const interrupt = new AbortController();
    const actor = { name: actorName, account, skewMs: aheadMs, interrupt, alive: true, paused: false, ended: false };
    actors.push(actor);
    return actor;
  };
  const storeOf = (actor: Actor): DynamoStore => {
    const wire = wireTo(endpoint, (request) => {
      if (!actor.alive) return never();
      activity += 1;
      if (!reads.has(request.operation)) sent.push({ actor, request });
      return new Promise((resolve, reject) => gates.push({ actor, request, reply: undefined, resolve, reject }));
    });
    return dynamoStore({ client: wire.client, table: controlTable });
  };
  const attend = async <T>(actor: Actor, task: Promise<T>, whenDone: (value: T) => void) => {
    await task.then(
      (value) => checked(() => whenDone(value)),
      (error) => {
        say(`${actor.name} throws ${error}`);
        if (!expectedErrors.some((code) => hasCode(error, code))) fault ??= error;
      },
    );
    actor.ended = true;
    activity += 1;
  };

  const job = jobOf(plan, name, {
    accountOf: (run) => accounts().find(({ runId }) => runId === run) as Account,
    fails: (account) => plan.failing.includes(accounts().indexOf(account)),
    told: (account, key, told) => checked(() => checkTold(account, key, told, seen)),
    fault: (what) => {
      fault ??= new Violation(what);
    },
  });
  const run = async (tick: number) => {
    const number = accounts().length;
    const free = plan.clocks.slice(attempts().length);
    const aheadMs = free[number % Math.max(1, free.length)] ?? 0;
    const account = newAccount(`${name}-${number}`, `attempt ${number}`, now + aheadMs, tickAt(tick));
    const actor = enter(account.name, account, aheadMs);
    say(`${actor.name} starts for tick ${tick}, its clock ${aheadMs} ms ahead`);
    const ids = [account.runId, account.owner];
    const report = runJob(
      job,
      { kind: "schedule", tick: tickAt(tick), ...(plan.retries ? { requestId: `tick ${tick}` } : {}) },
      {
        store: storeOf(actor),
        clock: clockOf(actor),
        log: witnessing(account),
        random: () => 0.5,
        newId: () => ids.shift() as string,
        interrupt: actor.interrupt.signal,
        startAnother: async (_, behind) => void deliveries.push(numberOf(behind)),
      },
    );
    void attend(actor, report, (ended) => {
      say(`${actor.name} reports ${ended.outcome}${ended.error ? ` (${ended.error.name})` : ""}`);
      checkReport(account, ended, seen);
    });
    await quiet();
  };
  const cancel = async () => {
    const actor = enter("operator", "operator", 0);
    const cancelled = storeOf(actor).cancel(
      name,
      { by: "someone", why: "a try" },
      now,
      budgetOn(clockOf(actor), 5_000),
    );
    void attend(actor, cancelled, (entry) => say(`operator has cancelled ${entry?.id}`));
    await quiet();
  };
  const crash = (actor: Actor) => {
    actor.alive = false;
    gates = gates.filter((gate) => gate.actor !== actor);
    timers = timers.filter((timer) => timer.actor !== actor);
  };

  return {
    plan,
    rules,
    deliveries,
    say,
    quiet,
    accounts,
    /** Those that are going on. */
    attempts,
    running: () => actors.filter(({ alive, ended }) => alive && !ended),
    isAwake,
    get seen() {
      return seen;
    },
    look,
    /** Requests whose senders wait for an answer. */
    gates: () => gates,
    /** Timers that a sleeper should have heard by now. */
    overdue: () => timers.filter(({ at, actor }) => isAwake(actor) && at <= now),
    untilNext: () => {
      const timer = earliest();
      return timer && Math.max(0, timer.at - now);
    },
    /** Those of the past, the latest last. */
    sent: () => sent.filter(({ request }) => gates.every((gate) => gate.request !== request)),
    /** It was answered for good, and doesn't come again. */
    forget: ({ request }: Sent) => {
      sent = sent.filter((other) => other.request !== request);
    },
    apply,
    arrive,
    answer,
    breakOff,
    fire,
    elapse,
    run,
    cancel,
    crash,
  };
};

/** What the tables show of a job. */
const lookAt = async (endpoint: string, name: string): Promise<Seen> => {
  const { Responses } = await askEngine<{ Responses: Record<string, Parameters<typeof unmarshall>[0][]> }>(
    endpoint,
    "BatchGetItem",
    {
      RequestItems: {
        [controlTable]: { ConsistentRead: true, Keys: [{ pk: { S: `job#${name}` }, sk: { S: "control" } }] },
        [logTable]: { ConsistentRead: true, Keys: [{ id: { S: name } }] },
      },
    },
  );
  const [control] = Responses[controlTable] ?? [];
  const [log] = Responses[logTable] ?? [];
  const { run, prev, watermark, ...rest } = unmarshall(control ?? {});
  return {
    control: {
      ...(rest as Control),
      prev: prev ?? [],
      ...(run === undefined ? {} : { run: run[0] }),
      ...(watermark === undefined ? {} : { watermark: JSON.parse(watermark) }),
    },
    log: log === undefined ? [] : (unmarshall(log).log as Entry[]),
  };
};

const newAccount = (id: string, name: string, startedAt: number, tick: number): Account => ({
  name,
  owner: `${id}-owner`,
  runId: `${id}-run`,
  startedAt,
  tick,
  commits: 0,
  seals: 0,
  orphaned: false,
  unrecorded: false,
  lastBatch: false,
  leftWork: false,
  told: new Map(),
  cancelled: false,
});

const witnessing = (account: Account): Logger => {
  const log: Logger = {
    ...silentLog,
    warn: (_, message) => {
      account.unrecorded ||= message === "the lost lease couldn't be recorded";
    },
    child: () => log,
  };
  return log;
};
