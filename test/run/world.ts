/**
 * Plays a random plan against the real engine, one step at a time: every request of every runner waits at a gate before
 * it reaches the engine and again before its answer is heard, timers fire only when the plan's time comes to them, and
 * between two steps everything that can run without them has run. So a plan always gives the same history.
 *
 * After each step that the engine accepted, the rules of `model.ts` are checked.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import {
  type Clock,
  cron,
  type DynamoStore,
  defineJob,
  dynamoStore,
  hasCode,
  type Job,
  type LeaseLostError,
  type Logger,
  type Run,
  runJob,
  systemClock,
  type Write,
} from "cronfence";
import { budgetOn, controlTable, silentLog } from "../fixture.ts";
import {
  type Account,
  type Control,
  checkEnd,
  checkReport,
  checkStep,
  checkTold,
  type Entry,
  itemsOf,
  type Seen,
  Violation,
  type World,
} from "./model.ts";
import { type Move, mostSkewMs, mostTicks, type Plan } from "./random-plan.ts";
import {
  askEngine,
  brokenConnection,
  conflictWith,
  never,
  serverError,
  type WireReply,
  type WireRequest,
  wireTo,
} from "./wire.ts";

export const logTable = "logs";

const minuteMs = 60_000;
const origin = Date.parse("2026-03-01T12:00:00Z");
const tickAt = (number: number) => origin + number * minuteMs;
const numberOf = (tick: number) => (tick - origin) / minuteMs;
const ttlMs = 3_000;
const skewMs = 1_000;
const timeoutMs = 20_000;
/** The move "elapse" chooses one: within a backoff, to a heartbeat, past a lease on the same clock, on any clock, past the deadline. */
const lapses = [60, 500, ttlMs / 3 + 1, ttlMs + skewMs + 1, ttlMs + skewMs + 2 * mostSkewMs, timeoutMs + 1];

/** Whoever makes requests: an attempt, or the operator. */
interface Actor {
  readonly name: string;
  readonly account: Account | "operator";
  readonly skewMs: number;
  readonly interrupt: AbortController;
  /** Its process lives. */
  alive: boolean;
  paused: boolean;
  /** It has a report, or has failed. */
  ended: boolean;
}

/** A request on its way. */
interface Gate {
  readonly actor: Actor;
  readonly request: WireRequest;
  reply: WireReply | undefined;
  resolve(reply: WireReply): void;
  reject(error: Error): void;
}

interface Timer {
  readonly at: number;
  readonly actor: Actor;
  readonly wake: () => void;
}

const reads = new Set(["GetItem", "Query", "BatchGetItem"]);

/** @returns what happened, step by step */
export const play = async (
  endpoint: string,
  direct: DynamoStore,
  name: string,
  plan: Plan,
): Promise<readonly string[]> => {
  const trace: string[] = [];
  try {
    await playOut(endpoint, direct, name, plan, trace);
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    throw new Violation(`${error.message}\n  ${trace.join("\n  ")}`);
  }
  return trace;
};

const playOut = async (
  endpoint: string,
  direct: DynamoStore,
  name: string,
  plan: Plan,
  trace: string[],
): Promise<void> => {
  const world: World = { plan, skewMs, ticks: mostTicks, tickAt, numberOf };
  let now = tickAt(mostTicks) + 10_000;
  const actors: Actor[] = [];
  let gates: Gate[] = [];
  let timers: Timer[] = [];
  /** Writes of the past that a network may repeat, and of these the ones that never arrived. */
  let sent: { readonly actor: Actor; readonly request: WireRequest }[] = [];
  /** A try of these was answered, if only by the engine: whoever hears that doesn't wait for another answer. */
  const answered = new Set<string>();
  const deliveries = [...plan.deliveries];
  let failure: unknown;

  // --- Letting things run.
  let activity = 0;
  const quiet = async () => {
    for (let seen = -1; seen !== activity; ) {
      seen = activity;
      await nextTurn();
    }
    if (failure !== undefined) throw failure;
  };
  const say = (line: string) => trace.push(`${((now - tickAt(mostTicks)) / 1_000).toFixed(1)}s ${line}`);

  // --- What the tables show.
  let seen: Seen = { control: { fence: 0, prev: [], unfinished: 0 }, log: [] };
  const look = async (): Promise<Seen> => {
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
  const accounts = () => actors.flatMap(({ account }) => (account === "operator" ? [] : [account]));

  // --- Requests.
  const apply = async ({ actor, request }: Pick<Gate, "actor" | "request">, token: boolean): Promise<WireReply> => {
    const reply = await request.apply({ token });
    say(`${actor.name} ${request.operation} #${request.at} reaches the engine: ${reply.statusCode}`);
    if (reply.statusCode === 200 && !reads.has(request.operation)) {
      const before = seen;
      seen = await look();
      checkStep(world, actor.account, before, seen, accounts(), answered.has(request.body));
    }
    return reply;
  };
  const leave = (gate: Gate) => {
    gates = gates.filter((other) => other !== gate);
  };
  const arrive = async (gate: Gate) => {
    gate.reply ??= await apply(gate, plan.tokens);
    answered.add(gate.request.body);
  };
  const answer = async (gate: Gate) => {
    await arrive(gate);
    leave(gate);
    gate.resolve(gate.reply as WireReply);
    await quiet();
  };
  const breakOff = async (gate: Gate, error: Error | WireReply) => {
    leave(gate);
    say(
      `${gate.actor.name} ${gate.request.operation} #${gate.request.at} ${gate.reply ? "loses its reply" : "is lost"}`,
    );
    if (error instanceof Error) gate.reject(error);
    else gate.resolve(error);
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
  const awake = ({ actor }: { readonly actor: Actor }) => actor.alive && !actor.paused;
  const earliest = (): Timer | undefined =>
    timers
      .filter(awake)
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
  const actorOf = (account: Actor["account"], actorName: string, skew: number): Actor => {
    const actor: Actor = {
      name: actorName,
      account,
      skewMs: skew,
      interrupt: new AbortController(),
      alive: true,
      paused: false,
      ended: false,
    };
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
  const attending = (actor: Actor, task: Promise<unknown>) => {
    const over = () => {
      actor.ended = true;
      activity += 1;
    };
    task.then(over, (error) => {
      failure ??= error;
      over();
    });
  };
  const running = () => actors.filter((actor) => actor.alive && !actor.ended);
  const attempts = () => running().filter(({ account }) => account !== "operator");

  const job = jobOf(plan, name, {
    actorOf: (run) => accounts().find(({ runId }) => runId === run) as Account,
    fails: (account) => plan.failing.includes(accounts().indexOf(account)),
    told: (account, key, told) => {
      try {
        checkTold(account, key, told, seen);
      } catch (error) {
        failure ??= error;
      }
    },
  });
  const start = async (tick: number) => {
    const number = accounts().length;
    // A free machine, each with its own clock.
    const skews = plan.clocks.filter((_, slot) => slot >= attempts().length);
    const skew = skews[number % Math.max(1, skews.length)] ?? 0;
    const id = `${name}-${number}`;
    const account: Account = {
      name: `attempt ${number}`,
      owner: `${id}-owner`,
      runId: `${id}-run`,
      startedAt: now + skew,
      tick: tickAt(tick),
      commits: 0,
      seals: 0,
      orphaned: false,
      unrecorded: false,
      lastBatch: false,
      leftWork: false,
      told: new Map(),
      cancelled: false,
    };
    const actor = actorOf(account, account.name, skew);
    const ids = [account.runId, account.owner];
    say(`${actor.name} starts for tick ${tick}, its clock ${skew} ms ahead`);
    const run = runJob(
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
    attending(
      actor,
      run.then(
        (report) => {
          say(`${actor.name} reports ${report.outcome}${report.error ? ` (${report.error.name})` : ""}`);
          checkReport(account, report, seen);
        },
        (error) => {
          say(`${actor.name} throws ${error}`);
          if (!expectedErrors.some((code) => hasCode(error, code))) throw error;
        },
      ),
    );
    await quiet();
  };
  const crash = (actor: Actor) => {
    say(`${actor.name} crashes`);
    actor.alive = false;
    gates = gates.filter((gate) => gate.actor !== actor);
    timers = timers.filter((timer) => timer.actor !== actor);
  };
  const cancel = async () => {
    const actor = actorOf("operator", "operator", 0);
    const clock = clockOf(actor);
    const task = storeOf(actor).cancel(name, { by: "someone", why: "a try" }, now, budgetOn(clock, 5_000));
    attending(
      actor,
      task.then(
        (run) => say(`operator cancelled ${run?.id}`),
        (error) => {
          say(`operator couldn't cancel: ${error}`);
          if (!expectedErrors.some((code) => hasCode(error, code))) throw error;
        },
      ),
    );
    await quiet();
  };

  // --- Moves. A choice that isn't there is some other one, so that every plan can be played.
  const choose = <T>(from: readonly T[], choice: number): T | undefined => from[choice % Math.max(1, from.length)];
  const go = async (choice: number): Promise<boolean> => {
    const ready = [...gates.filter(awake), ...timers.filter((timer) => awake(timer) && timer.at <= now)];
    const chosen = choose(ready, choice);
    if (chosen !== undefined) await ("wake" in chosen ? fire(chosen) : answer(chosen));
    else if (deliveries.length > 0 && attempts().length < plan.clocks.length) await start(deliveries.shift() as number);
    else {
      const timer = earliest();
      if (timer === undefined) return false;
      await elapse(Math.max(0, timer.at - now));
    }
    return true;
  };
  const moves: Record<Move[0], (choice: number) => Promise<unknown>> = {
    go,
    apply: async (choice) => {
      const gate = choose(
        gates.filter(({ reply }) => reply === undefined),
        choice,
      );
      await (gate === undefined ? go(choice) : arrive(gate));
    },
    deliver: async (choice) => {
      const next = attempts().length < plan.clocks.length ? deliveries.shift() : undefined;
      await (next === undefined ? go(choice) : start(next));
    },
    break: async (choice) => {
      const gate = choose(gates.filter(awake), choice);
      await (gate === undefined ? go(choice) : breakOff(gate, brokenConnection()));
    },
    fail: async (choice) => {
      const gate = choose(gates.filter(awake), choice);
      await (gate === undefined ? go(choice) : breakOff(gate, serverError()));
    },
    conflict: async (choice) => {
      const gate = choose(
        gates.filter((each) => awake(each) && each.reply === undefined),
        choice,
      );
      if (gate === undefined) return go(choice);
      // The service has had it, and has answered that it did nothing.
      sent = sent.filter(({ request }) => request !== gate.request);
      return breakOff(gate, conflictWith(gate.request));
    },
    repeat: async (choice) => {
      const known = sent.filter(({ request }) => gates.every((gate) => gate.request !== request));
      const missing = known.filter(({ request }) => request.accepted === 0);
      const again = choose([...missing.toReversed(), ...known.toReversed()].slice(0, 8), choice);
      if (again === undefined) return go(choice);
      say(`the network repeats ${again.actor.name} ${again.request.operation} #${again.request.at}`);
      return apply(again, plan.tokens && choice % 2 === 0);
    },
    pause: async (choice) => {
      const actor = choose(
        attempts().filter(({ paused }) => !paused),
        choice,
      );
      if (actor === undefined) return go(choice);
      say(`${actor.name} is paused`);
      actor.paused = true;
      return undefined;
    },
    resume: async (choice) => {
      const actor = choose(
        attempts().filter(({ paused }) => paused),
        choice,
      );
      if (actor === undefined) return go(choice);
      say(`${actor.name} goes on`);
      actor.paused = false;
      return undefined;
    },
    crash: async (choice) => {
      const actor = choose(attempts(), choice);
      return actor === undefined ? go(choice) : crash(actor);
    },
    elapse: async (choice) => elapse(lapses[choice % lapses.length] as number),
    interrupt: async (choice) => {
      const actor = choose(attempts().filter(awake_), choice);
      if (actor === undefined) return go(choice);
      say(`${actor.name} is interrupted`);
      actor.interrupt.abort("SIGTERM");
      return quiet();
    },
    cancel,
  };
  const awake_ = (actor: Actor) => awake({ actor });

  await direct.create(name, origin, budgetOn(systemClock));
  seen = await look();
  for (const [kind, choice] of plan.moves) await moves[kind](choice);

  // --- The end: nothing more goes wrong, all that was under way arrives, and the job is run until it is done.
  say("nothing more goes wrong");
  for (const actor of actors) actor.paused = false;
  const runOut = async () => {
    for (let steps = 0; running().length > 0 || deliveries.length > 0; steps += 1) {
      if (!(await go(0)) || steps > 1_000) throw new Violation(`${running().map((actor) => actor.name)} never ends`);
    }
  };
  await runOut();
  for (const late of sent.filter(({ request }) => request.accepted === 0)) {
    say(`${late.actor.name} ${late.request.operation} #${late.request.at} arrives late`);
    await apply(late, plan.tokens);
  }
  const isOver = () =>
    numberOf(seen.control.tick ?? origin) >= mostTicks &&
    Number(seen.control.watermark ?? 0) >= itemsOf(plan.work, mostTicks) &&
    seen.control.owner === undefined &&
    seen.control.prev.length === 0;
  for (let tick = mostTicks; !isOver() && tick < mostTicks + 8; tick += 1) {
    await elapse(minuteMs);
    deliveries.push(Math.max(tick, numberOf(seen.control.tick ?? origin) + 1));
    await runOut();
  }
  const { runs } = await direct.runs(name, { limit: 200 }, budgetOn(systemClock));
  for (const { id, outcome, commits } of runs) say(`on record: ${id} ${outcome}, ${commits} commits`);
  checkEnd(world, seen, accounts(), runs);
};

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

/** What `runJob` and `cancel` may throw; anything else is a fault. */
const expectedErrors = ["OUTCOME_UNKNOWN", "STORE_UNAVAILABLE", "PREDECESSOR_UNFINISHED"];

interface Witness {
  actorOf(run: string): Account;
  fails(account: Account): boolean;
  told(account: Account, key: string, told: "applied" | "not applied" | "unknown"): void;
}

/** The job of a plan. Every commit adds an entry to the job's log, and counts each of its items in a row of its own. */
const jobOf = ({ work, overlap }: Plan, name: string, witness: Witness): Job => {
  const options = { name, schedule: cron("* * * * *"), timeout: timeoutMs, ttl: ttlMs, skew: skewMs, overlap };
  const total = itemsOf(work, mostTicks);
  const entry = (run: Pick<Run, "id" | "fence">, line: Omit<Entry, "run" | "fence">): Write => ({
    Update: {
      TableName: logTable,
      Key: { id: name },
      UpdateExpression: "SET #log = list_append(if_not_exists(#log, :none), :line)",
      ExpressionAttributeNames: { "#log": "log" },
      ExpressionAttributeValues: { ":none": [], ":line": [{ run: run.id, fence: run.fence, ...line }] },
    },
  });
  const row = (item: string): Write => ({
    Update: {
      TableName: logTable,
      Key: { id: `${name} ${item}` },
      UpdateExpression: "ADD #times :one",
      ExpressionAttributeNames: { "#times": "times" },
      ExpressionAttributeValues: { ":one": 1 },
    },
  });
  if (work.shape === "tick") {
    return defineJob({
      ...options,
      tick: ({ at }, run) => {
        const number = numberOf(at.getTime());
        const size = work.writes[number - 1] ?? 1;
        const writes = Array.from({ length: size }, (_, i) =>
          i % 99 === 0
            ? entry(run, { key: `${number}.${i}`, tick: number, part: i / 99, items: Math.min(99, size - i) })
            : row(`${number}.${i}`),
        );
        if (number === 2 && witness.fails(witness.actorOf(run.id))) throw new Error("the work failed");
        return { writes, watermark: number };
      },
    });
  }
  if (work.shape === "source") {
    return defineJob<number>({
      ...options,
      source: {
        name: "numbers",
        pageSize: work.pageSize,
        read: async ({ after, limit }) => {
          const first = Number(after ?? 0) + 1;
          const items = Array.from({ length: Math.max(0, Math.min(limit, total - first + 1)) }, (_, i) => first + i);
          return { items: items.map((item) => ({ item, cursor: item })), done: first + items.length > total };
        },
      },
      ...(work.limit === undefined ? {} : { limit: { items: work.limit } }),
      process: (item, run) => {
        if (item % 2 === 0 && witness.fails(witness.actorOf(run.id))) throw new Error("the work failed");
        return [entry(run, { key: `${item}`, from: item, through: item, items: 1 }), row(`${item}`)];
      },
    });
  }
  return defineJob<number>({
    ...options,
    run: async (run) => {
      const account = witness.actorOf(run.id);
      const upTo = Math.min(total, work.perTick * numberOf(run.tick?.at.getTime() as number));
      const opened: Promise<void>[] = [];
      const commit = (from: number, through: number): Promise<void> => {
        const key = `${from}-${through}`;
        const items = through - from + 1;
        const made = run.commit([entry(run, { key, from, through, items }), row(`${from}`)], {
          watermark: through,
          items,
        });
        // Looks at it without counting as somebody who waits for it.
        Promise.prototype.then.call(
          made,
          () => witness.told(account, key, "applied"),
          (error) => witness.told(account, key, fateIn(error, account)),
        );
        return made;
      };
      if (work.rejected) await rejectedCommit(run, name);
      for (let done = run.watermark ?? 0; done < upTo; ) {
        const through = Math.min(done + work.batch, upTo);
        const made = commit(done + 1, through);
        if (work.style === "one by one") await made;
        if (work.style === "at once") opened.push(made);
        if (work.style === "swallowing") {
          try {
            await made;
          } catch (error) {
            if (!hasCode(error, "OUTCOME_UNKNOWN") && !hasCode(error, "LEASE_LOST")) throw error;
            // Tries the next one all the same, and then returns as if all was well.
            await commit(through + 1, through + 1).then(
              () => Promise.reject(new Violation("no commit goes out while another one's outcome is unknown")),
              () => {},
            );
            return;
          }
        }
        done = through;
        if (witness.fails(account)) throw new Error("the work failed");
      }
      await Promise.all(opened);
      const number = numberOf(run.tick?.at.getTime() as number);
      if (work.lastBatch)
        run.commitAtEnd([entry(run, { key: `end of ${number}`, tick: number, items: 0 })], { items: 0 });
    },
  });
};

/** Errors that halt a run are thrown at every later commit, too; what they say is said of the commit that found out. */
const foundOut = new WeakSet<object>();
const fateIn = (error: unknown, _account: Account): "applied" | "not applied" | "unknown" => {
  if (hasCode(error, "OUTCOME_UNKNOWN") || hasCode(error, "LEASE_LOST")) {
    const first = !foundOut.has(error as object);
    foundOut.add(error as object);
    if (!first) return "not applied";
    const { lastCommit } = error as LeaseLostError;
    return lastCommit === "applied" || lastCommit === "not applied" ? lastCommit : "unknown";
  }
  return "not applied";
};

/** A commit that can't succeed, which the job looks for and goes on after. */
const rejectedCommit = async (run: Run<number>, name: string): Promise<void> => {
  const impossible: Write = {
    ConditionCheck: {
      TableName: logTable,
      Key: { id: `${name} nothing` },
      ConditionExpression: "attribute_exists(id)",
    },
  };
  try {
    await run.commit([impossible]);
  } catch (error) {
    if (hasCode(error, "WRITE_REJECTED")) return;
    throw error;
  }
  throw new Violation("a commit that DynamoDB rejected succeeded");
};
