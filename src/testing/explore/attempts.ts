/** Attempts of a history: started as Lambda would, with ids that are the same in every play, and tried again when they fail. */
import type { Logger } from "../../observe/log.ts";
import { traitsOf } from "../../outcome.ts";
import { seededRandom } from "../../rehearse/random.ts";
import { isoOf, type RunReport } from "../../report.ts";
import { runJob } from "../../run.ts";
import type { Trigger } from "../../trigger.ts";
import { wireRequest } from "../wire.ts";
import type { Attempt, Delivery, History } from "./history.ts";
import { type Account, checkReport, newAccount } from "./rules.ts";
import { attemptName, faultKinds } from "./schedule.ts";
import { type Surroundings, within } from "./surroundings.ts";
import type { Actor } from "./world.ts";

/** @param variant of its ids, by which plays can be told apart */
export const startAttempt = async (history: History, delivery: Delivery, variant: number): Promise<Attempt> => {
  const { stage, world, attempts, say } = history;
  const { job, scene } = stage;
  const { tick, chain, requestId, attempt } = delivery;
  const number = attempts.size;
  const name = attemptName(number);
  const kind = history.faultAt(`${name}.0`, ["clock-ahead", "clock-behind"]);
  // By more than a lease and all that is allowed for.
  const skewMs = (kind === "clock-ahead" ? 1 : kind === "clock-behind" ? -1 : 0) * (job.ttlMs + 2 * job.skewMs);
  const actor = world.enter(name, skewMs);
  const ids = [0, 1].map((which) => idOf(variant, number, which)) as [string, string];
  const account = newAccount(...ids, name, world.now() + skewMs, tick ?? Number.POSITIVE_INFINITY);
  const started: Attempt = { ...delivery, name, actor, account };
  attempts.set(actor, started);
  const clock = world.clockOf(actor);
  const surroundings: Surroundings = {
    clock,
    // Each attempt draws others: what a job makes by chance is another thing when it is made again.
    random: seededRandom(1_000_003 * variant + number),
    send: (http, signal) => {
      const request = wireRequest(actor.sent, http, scene.ground.line.send, signal);
      history.ownRequests.add(request);
      return world.receive(actor, request);
    },
  };
  const words = [
    tick === undefined ? "starts for a backlog" : `starts for tick ${isoOf(tick)}`,
    ...(attempt > 1 ? [`try ${attempt}`] : []),
    ...(kind === undefined ? [] : [`${kind}: ${faultKinds[kind]}`]),
  ];
  say(name, words.join("; "));
  let made = 0;
  const deps = {
    store: world.storeOf(actor),
    clock,
    log: witnessing(account),
    random: () => 0.5,
    newId: () => idOf(variant, number, made++),
    interrupt: actor.interrupt.signal,
    startAnother: async (_: string, queued: number) =>
      history.deliver({ tick: queued, at: world.now(), requestId: `${requestId} queued`, attempt: 1 }),
    continueBacklog: async (_: string, next: number) =>
      history.deliver({ chain: next, at: world.now(), requestId: `${requestId} goes on`, attempt: 1 }),
  };
  const trigger: Trigger = {
    ...(tick === undefined ? { kind: "manual" } : { kind: "schedule", tick }),
    ...(chain === undefined ? {} : { chain }),
    requestId,
    attempt,
  };
  const run = within(surroundings, () => runJob(job, trigger, deps));
  const ended = (report: RunReport) => {
    say(name, reportText(report));
    if (traitsOf(report.outcome).fails) tryAgain(history, started);
    checkReport(account, report, history.control);
  };
  void world.attend(actor, run, ended, (error) => {
    say(name, `ends without a report: ${error.message}`);
    tryAgain(history, started);
  });
  await world.quiet();
  return started;
};

/** Its process dies. */
export const crashAttempt = (history: History, actor: Actor): void => {
  history.world.crash(actor);
  tryAgain(history, history.attempts.get(actor) as Attempt);
};

const tryAgain = ({ deliver, world }: History, { tick, chain, requestId, attempt }: Delivery): void => {
  const delayMs = retryDelaysMs[attempt - 1];
  if (delayMs === undefined) return;
  const what = { ...(tick === undefined ? {} : { tick }), ...(chain === undefined ? {} : { chain }) };
  deliver({ ...what, requestId, attempt: attempt + 1, at: world.now() + delayMs });
};

/** https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html */
const retryDelaysMs = [60_000, 120_000];

/** As ids of production look. */
const idOf = (variant: number, attempt: number, which: number): string =>
  `${String(variant).padStart(8, "0")}-0000-4000-8000-${String(attempt).padStart(6, "0")}${String(which).padStart(6, "0")}`;

const reportText = ({ outcome, items, commits, error }: RunReport): string =>
  `reports ${outcome}: ${items} items, ${commits} commits${error === undefined ? "" : `; ${error.name}: ${error.message}`}`;

const witnessing = (account: Account): Logger => {
  const log: Logger = {
    debug: () => {},
    info: () => {},
    error: () => {},
    warn: (_, message) => {
      account.unrecorded ||= message === "the lost lease couldn't be recorded";
    },
    child: () => log,
  };
  return log;
};
