/**
 * The explorer's world with runners of a planned job in it: what they do and hear is written down, and the rules of
 * `model.ts` are checked after each step that the engine accepted.
 */
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { type Logger, runJob } from "cronfence";
import { type Control, checkReport, Violation } from "../../src/testing/explore/rules.ts";
import {
  type Actor as AnyActor,
  type Gate,
  isRead,
  openWorld as openAnyWorld,
  type Sent,
} from "../../src/testing/explore/world.ts";
import { askEngine, type WireReply } from "../../src/testing/wire.ts";
import { budgetOn, controlTable, silentLog } from "../fixture.ts";
import { type Account, checkStep, checkTold, type Entry, newAccount, type Rules, type Seen } from "./model.ts";
import { jobOf, logTable, numberOf, skewMs, tickAt } from "./planned-job.ts";
import { mostTicks, type Plan } from "./random-plan.ts";

/** Whoever makes requests: an attempt, or the operator. */
export type Actor = AnyActor;

export type World = ReturnType<typeof openWorld>;

/** @param trace is told what happens, line by line */
export const openWorld = (endpoint: string, name: string, plan: Plan, trace: string[]) => {
  const rules: Rules = { plan, skewMs, ticks: mostTicks, tickAt, numberOf };
  const start = tickAt(mostTicks) + 10_000;
  const accounts = new Map<Actor, Account>();
  const deliveries = [...plan.deliveries];
  let seen: Seen = { control: { fence: 0, prev: [], unfinished: 0 }, log: [] };

  const say = (line: string) => trace.push(`${((world.now() - start) / 1_000).toFixed(1)}s ${line}`);
  const look = async () => {
    const before = seen;
    seen = await lookAt(endpoint, name);
    return before;
  };
  const world = openAnyWorld({
    endpoint,
    table: controlTable,
    start,
    tokens: plan.tokens,
    applied: async ({ actor, request }, reply, isRepeated) => {
      say(`${actor.name} ${request.operation} #${request.at} reaches the engine: ${reply.statusCode}`);
      if (reply.statusCode !== 200 || isRead(request)) return;
      const before = await look();
      checkStep(rules, accounts.get(actor) ?? "operator", before, seen, [...accounts.values()], isRepeated);
    },
  });
  const attempts = () => world.running().filter((actor) => accounts.has(actor));

  const job = jobOf(plan, name, {
    accountOf: (run) => [...accounts.values()].find(({ runId }) => runId === run) as Account,
    fails: (account) => plan.failing.includes([...accounts.values()].indexOf(account)),
    told: (account, key, told) => world.checked(() => checkTold(account, key, told, seen)),
    fault: (what) => world.fail(new Violation(what)),
  });
  const run = async (tick: number) => {
    const number = accounts.size;
    const free = plan.clocks.slice(attempts().length);
    const aheadMs = free[number % Math.max(1, free.length)] ?? 0;
    const actor = world.enter(`attempt ${number}`, aheadMs);
    const account = newAccount(`${name}-${number}`, actor.name, world.now() + aheadMs, tickAt(tick));
    accounts.set(actor, account);
    say(`${actor.name} starts for tick ${tick}, its clock ${aheadMs} ms ahead`);
    const ids = [account.runId, account.owner];
    const report = runJob(
      job,
      { kind: "schedule", tick: tickAt(tick), ...(plan.retries ? { requestId: `tick ${tick}` } : {}) },
      {
        store: world.storeOf(actor),
        clock: world.clockOf(actor),
        log: witnessing(account),
        random: () => 0.5,
        newId: () => ids.shift() as string,
        interrupt: actor.interrupt.signal,
        startAnother: async (_, behind) => void deliveries.push(numberOf(behind)),
      },
    );
    const ended = (end: Awaited<typeof report>) => {
      say(`${actor.name} reports ${end.outcome}${end.error ? ` (${end.error.name})` : ""}`);
      checkReport(account, end, seen.control);
    };
    void world.attend(actor, report, ended, (error) => say(`${actor.name} throws ${error}`));
    await world.quiet();
  };
  const cancel = async () => {
    const actor = world.enter("operator", 0);
    const cancelled = world
      .storeOf(actor)
      .cancel(name, { by: "someone", why: "a try" }, world.now(), budgetOn(world.clockOf(actor), 5_000));
    void world.attend(
      actor,
      cancelled,
      (entry) => say(`operator has cancelled ${entry?.id}`),
      (error) => say(`operator throws ${error}`),
    );
    await world.quiet();
  };
  return {
    ...world,
    plan,
    rules,
    deliveries,
    say,
    accounts: () => [...accounts.values()],
    /** Those that are going on. */
    attempts,
    get seen() {
      return seen;
    },
    look,
    apply: (one: Sent, token?: boolean) => world.apply(one, token),
    breakOff: (gate: Gate, heard: Error | WireReply) => {
      const { actor, request, reply } = gate;
      say(`${actor.name} ${request.operation} #${request.at} ${reply ? "loses its reply" : "is lost"}`);
      return world.breakOff(gate, heard);
    },
    run,
    cancel,
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
