/**
 * The events that may start a run. Anything else is refused: an event that isn't understood has no tick, and a run
 * without one could complete the wrong thing.
 */
import * as z from "zod/mini";
import { CronfenceError } from "../errors.ts";
import type { Trigger } from "../trigger.ts";

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
        'and a manual { "dryRun"?, "scheduledTime"?, "reason"? }',
    );
    this.job = job;
  }
}

const instant = z
  .string()
  .check(
    z.refine(
      (text) =>
        /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(text) &&
        Number.isFinite(Date.parse(text)),
      "must be an ISO 8601 instant such as 2026-03-01T06:30:00Z",
    ),
  );
const text = z.string().check(z.maxLength(2_048));
const attempt = z.union([z.int(), z.string().check(z.regex(/^\d{1,6}$/, "must be a number"))]);

/** What the schedule's input holds: https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html */
const scheduler = z.strictObject({
  job: text,
  scheduledTime: instant,
  attempt: z.optional(attempt),
  executionId: z.optional(text),
  scheduleArn: z.optional(text),
});

/** https://docs.aws.amazon.com/eventbridge/latest/ref/events-ref-scheduled-events.html; it has more fields, which don't matter. */
const scheduledEvent = z.object({
  source: z.literal("aws.events"),
  "detail-type": z.literal("Scheduled Event"),
  time: instant,
});

const manual = z.strictObject({
  dryRun: z.optional(z.boolean()),
  scheduledTime: z.optional(instant),
  reason: z.optional(text),
});

/**
 * What an event asks for.
 *
 * @param job the job that this function runs: an event for another one is refused
 * @param requestId the invocation's id, the same on the platform's retries
 * @throws InvalidEventError
 */
export const readEvent = (job: string, event: unknown, requestId: string | undefined): Trigger => {
  const id = requestId === undefined ? {} : { requestId };
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw new InvalidEventError(
      job,
      `the event is ${event === null ? "null" : Array.isArray(event) ? "an array" : typeof event}`,
    );
  }
  if (Object.hasOwn(event, "job")) {
    const input = parse(job, scheduler, event);
    if (input.job !== job) throw new InvalidEventError(job, `the event is for job ${JSON.stringify(input.job)}`);
    return {
      kind: "schedule",
      tick: Date.parse(input.scheduledTime),
      ...(input.attempt === undefined ? {} : { attempt: Number(input.attempt) }),
      ...id,
    };
  }
  if (Object.hasOwn(event, "detail-type")) {
    return { kind: "schedule", tick: Date.parse(parse(job, scheduledEvent, event).time), ...id };
  }
  const { dryRun, scheduledTime, reason } = parse(job, manual, event);
  return {
    kind: "manual",
    ...(scheduledTime === undefined ? {} : { tick: Date.parse(scheduledTime) }),
    ...(dryRun === undefined ? {} : { dryRun }),
    ...(reason === undefined ? {} : { reason }),
    ...id,
  };
};

/** The problems name fields, never their contents: an event may hold anything. */
const parse = <Schema extends z.core.$ZodType>(job: string, schema: Schema, event: unknown): z.infer<Schema> => {
  const parsed = z.safeParse(schema, event);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) =>
    issue.code === "unrecognized_keys"
      ? `unknown field${issue.keys.length > 1 ? "s" : ""} ${issue.keys.map((key) => JSON.stringify(key.slice(0, 60))).join(", ")}`
      : `${issue.path.join(".")} ${issue.code === "custom" ? issue.message : `isn't what it must be (${issue.message})`}`,
  );
  throw new InvalidEventError(job, `the event isn't understood: ${problems.join("; ")}`);
};
