/**
 * The events that may start a run. Anything else is refused: an event that isn't understood has no tick, and a run
 * without one could complete the wrong thing.
 */
import { CronfenceError } from "../errors.ts";
import { isInstant } from "../instant.ts";
import { isJobName } from "../job-name.ts";
import type { Trigger } from "../trigger.ts";
import {
  type Check,
  either,
  listOf,
  objectOf,
  oneOf,
  optional,
  textThat,
  trueOrFalse,
  wholeNumber,
} from "../value-check.ts";

/** An invocation whose event no run can be started for. */
export class InvalidEventError extends CronfenceError {
  override readonly name = "InvalidEventError";
  readonly job: string;

  constructor(job: string, problem: string) {
    super(
      "INVALID_EVENT",
      `job "${job}": ${problem}; accepted are the EventBridge Scheduler input ` +
        '{ "job", "scheduledTime", "attempt"?, "executionId"?, "scheduleArn"? }, an EventBridge scheduled event ' +
        '{ "source": "aws.events", "detail-type": "Scheduled Event", "time" }, ' +
        'a manual { "dryRun"?, "scheduledTime"?, "reason"?, "parked"?, "backfill"?, "chain"?, "version"? }, ' +
        'and { "probe": true }, which runs nothing',
    );
    this.job = job;
  }
}

/** The event asked for another version than the one that got it: nothing was run, and no lease was taken. */
export class WrongVersionError extends CronfenceError {
  override readonly name = "WrongVersionError";
  readonly expected: string;
  readonly running: string | undefined;

  constructor(job: string, expected: string, running: string | undefined) {
    super(
      "WRONG_VERSION",
      `job "${job}": the event is for version ${JSON.stringify(expected)}, and this is ` +
        `${running === undefined ? "a build without one (CRONFENCE_VERSION isn't set)" : JSON.stringify(running)}; nothing was run`,
    );
    this.expected = expected;
    this.running = running;
  }
}

/** Asks a function who it is. It takes no lease, leaves no record and reads no table. */
export interface Probe {
  readonly probe: true;
}

/** A function's answer to a probe. */
export interface ProbeAnswer {
  readonly job: string;
  /** Its build, as it will be in the records of its runs; absent where CRONFENCE_VERSION isn't set. */
  readonly version?: string;
}

const probe = objectOf({ probe: oneOf(true) });

/**
 * Whether an event is a probe.
 * @throws InvalidEventError for one that asks for something else beside it
 */
export const isProbe = (job: string, event: unknown): event is Probe =>
  typeof event === "object" && event !== null && Object.hasOwn(event, "probe") && parse(job, probe, event).probe;

const instant = textThat(isInstant);
const text = textThat(({ length }) => length <= 2_048);
const attempt = either(
  wholeNumber(0),
  textThat((digits) => /^\d{1,6}$/.test(digits)),
);

/** What the schedule's input holds: https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html */
const scheduler = objectOf({
  job: text,
  scheduledTime: instant,
  attempt: optional(attempt),
  executionId: optional(text),
  scheduleArn: optional(text),
});

/** https://docs.aws.amazon.com/eventbridge/latest/ref/events-ref-scheduled-events.html; it has more fields, which don't matter. */
const scheduledEvent = objectOf(
  { source: oneOf("aws.events"), "detail-type": oneOf("Scheduled Event"), time: instant },
  "ignored",
);

const manual = objectOf({
  dryRun: optional(trueOrFalse),
  scheduledTime: optional(instant),
  reason: optional(text),
  /** Parked items to be done after all. */
  parked: optional(
    either(
      oneOf("all"),
      listOf(
        textThat(({ length }) => length <= 900),
        0,
        1_000,
      ),
    ),
  ),
  /** Settled ticks to be done after all. */
  backfill: optional(listOf(instant, 1, 1_000)),
  /** Which run in a row this is, of those that a backlog started. */
  chain: optional(wholeNumber(1, 1_000_000)),
  /** The version that is to run it: any other refuses. */
  version: optional(text),
});

/**
 * What an event asks for.
 *
 * @param job the job that this function runs: an event for another one is refused
 * @param requestId the invocation's id, the same on the platform's retries
 * @param latest no tick can be later, in milliseconds since the epoch: a run for one that isn't due yet would complete
 * all those up to it, which would then be taken for duplicates when they come
 * @param version which build reads it, where that is known
 * @throws InvalidEventError
 * @throws WrongVersionError for an event that another version is to run
 */
export const readEvent = (
  job: string,
  event: unknown,
  requestId: string | undefined,
  latest: number,
  version?: string,
): Trigger => {
  const { expected, ...trigger } = read(job, event);
  if (expected !== undefined && expected !== version) throw new WrongVersionError(job, expected, version);
  if (trigger.tick !== undefined && trigger.tick > latest) {
    const at = new Date(trigger.tick).toISOString();
    throw new InvalidEventError(job, `the event is for a tick of the future (${at})`);
  }
  return requestId === undefined ? trigger : { ...trigger, requestId };
};

const read = (job: string, event: unknown): Trigger & { readonly expected?: string } => {
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw new InvalidEventError(
      job,
      `the event is ${event === null ? "null" : Array.isArray(event) ? "an array" : typeof event}`,
    );
  }
  if (Object.hasOwn(event, "job")) {
    const input = parse(job, scheduler, event);
    if (input.job !== job) throw new InvalidEventError(job, `the event is for ${jobNamed(input.job)}`);
    const tick = Date.parse(input.scheduledTime);
    return { kind: "schedule", tick, ...(input.attempt === undefined ? {} : { attempt: Number(input.attempt) }) };
  }
  if (Object.hasOwn(event, "detail-type")) {
    return { kind: "schedule", tick: Date.parse(parse(job, scheduledEvent, event).time) };
  }
  const { dryRun, scheduledTime, reason, chain, parked, backfill, version } = parse(job, manual, event);
  if (parked !== undefined && scheduledTime !== undefined) {
    throw new InvalidEventError(job, "parked items are done instead of a tick: give parked or scheduledTime, not both");
  }
  if (backfill !== undefined && (scheduledTime !== undefined || parked !== undefined)) {
    throw new InvalidEventError(job, "settled ticks are done instead of what is due: give backfill alone");
  }
  return {
    kind: "manual",
    ...(scheduledTime === undefined ? {} : { tick: Date.parse(scheduledTime) }),
    ...(dryRun === undefined ? {} : { dryRun }),
    ...(reason === undefined ? {} : { reason }),
    ...(chain === undefined ? {} : { chain }),
    ...(parked === undefined ? {} : { parked }),
    ...(backfill === undefined ? {} : { backfill: backfill.map((tick) => Date.parse(tick)) }),
    ...(version === undefined ? {} : { expected: version }),
  };
};

/** The problems name fields, never their contents: an event may hold anything. */
const parse = <T>(job: string, check: Check<T>, event: unknown): T => {
  const problems = check(event, []).map(({ path, unknownKeys }) =>
    unknownKeys === undefined ? mustBe(String(path[0])) : unknownFields(unknownKeys),
  );
  if (problems.length === 0) return event as T;
  throw new InvalidEventError(job, `the event isn't understood: ${problems.join("; ")}`);
};

const unknownFields = (names: readonly string[]): string => {
  const shown = names.slice(0, mostNamed).map((name) => JSON.stringify(name.slice(0, longestName)));
  const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : "";
  return `unknown field${names.length > 1 ? "s" : ""} ${shown.join(", ")}${more}`;
};
const mostNamed = 5;
const longestName = 60;

const mustBe = (field: string): string => `${field} must be ${allowed[field as keyof typeof allowed]}`;

const anInstant = "an ISO 8601 instant with a zone, such as 2026-03-01T06:30:00Z";
const aText = "a text of at most 2048 characters";
const allowed = {
  job: "the job's name",
  scheduledTime: anInstant,
  attempt: "a whole number, from 0",
  executionId: aText,
  scheduleArn: aText,
  source: '"aws.events"',
  "detail-type": '"Scheduled Event"',
  time: anInstant,
  dryRun: "true or false",
  reason: aText,
  parked: '"all" or a list of keys',
  backfill: "a list of 1 to 1000 ISO 8601 instants with a zone",
  chain: "a whole number, from 1",
  version: aText,
  probe: "true",
};

/** Another job's name, as long as it looks like one. */
const jobNamed = (name: string): string => (isJobName(name) ? `job "${name}"` : "another job");
