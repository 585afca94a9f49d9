import { randomUUID } from "node:crypto";
import { defineJob, dynamoStore } from "cronfence";
import { InvalidEventError, lambdaHandler } from "cronfence/lambda";
import { dumpTable, settableClock } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { readEvent as readEventBy } from "../../src/lambda/event.ts";
import { controlTable, freshName, useEngine } from "../fixture.ts";
import { recordedLog } from "../recorded-log.ts";
import { invocation, scheduled } from "./invocation.ts";

const tick = "2026-03-01T06:30:00Z";
const instant = Date.parse(tick);
const readEvent = (job: string, event: unknown, requestId: string | undefined) =>
  readEventBy(job, event, requestId, Date.UTC(2030, 0));

/** As EventBridge delivers it: https://docs.aws.amazon.com/eventbridge/latest/ref/events-ref-scheduled-events.html */
const classic = {
  version: "0",
  id: "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
  "detail-type": "Scheduled Event",
  source: "aws.events",
  account: "123456789012",
  time: tick,
  region: "eu-central-1",
  resources: ["arn:aws:events:eu-central-1:123456789012:rule/expire-carts"],
  detail: {},
};

describe("An event starts a run", () => {
  it("as a schedule's input, for the tick that it names and not for when it came", () => {
    expect(readEvent("expire-carts", scheduled("expire-carts", tick, { attempt: "2" }), "request")).toEqual({
      kind: "schedule",
      tick: instant,
      attempt: 2,
      requestId: "request",
    });
  });

  it("as a schedule's input without the attributes that don't matter", () => {
    expect(readEvent("expire-carts", { job: "expire-carts", scheduledTime: tick }, undefined)).toEqual({
      kind: "schedule",
      tick: instant,
    });
  });

  it("as a schedule's input whose attempt is a number", () => {
    const event = { job: "expire-carts", scheduledTime: tick, attempt: 3 };
    expect(readEvent("expire-carts", event, undefined)).toMatchObject({ attempt: 3 });
  });

  it("as a classic scheduled event, whatever else it holds", () => {
    expect(readEvent("expire-carts", { ...classic, "something-new": { deep: true } }, "request")).toEqual({
      kind: "schedule",
      tick: instant,
      requestId: "request",
    });
  });

  it("by hand, for settled ticks that are to be done after all", () => {
    const event = { backfill: [tick, "2026-03-01T07:30:00+01:00"] };
    expect(readEvent("expire-carts", event, undefined)).toEqual({ kind: "manual", backfill: [instant, instant] });
  });

  it("by hand, for no tick", () => {
    expect(readEvent("expire-carts", {}, "request")).toEqual({ kind: "manual", requestId: "request" });
  });

  it("by hand, for a tick, dry, and with a reason", () => {
    const event = { dryRun: true, scheduledTime: tick, reason: "after the fix" };
    expect(readEvent("expire-carts", event, undefined)).toEqual({
      kind: "manual",
      tick: instant,
      dryRun: true,
      reason: "after the fix",
    });
  });

  it.each([
    ["2026-03-01T06:30:00.000Z", instant],
    ["2026-03-01T06:30Z", instant],
    ["2026-03-01T08:30:00+02:00", instant],
    ["2024-02-29T00:00:00Z", Date.UTC(2024, 1, 29)],
    ["2026-12-31T23:59:59.999-12:00", Date.UTC(2027, 0, 1, 11, 59, 59, 999)],
  ])("for the time %s, to the millisecond", (scheduledTime, expected) => {
    expect(readEvent("expire-carts", { scheduledTime }, undefined).tick).toBe(expected);
  });
});

const secret = "4242-4242-4242-4242";
const megabyte = "x".repeat(1024 * 1024);

/** Events that no run can be started for, and what the error names. */
const refused: Record<string, { event: unknown; says: RegExp }> = {
  "that is missing": { event: undefined, says: /the event is undefined/ },
  "that is null": { event: null, says: /the event is null/ },
  "that is an array": { event: [{ scheduledTime: tick }], says: /the event is an array/ },
  "that is a text": { event: JSON.stringify({ scheduledTime: tick, secret }), says: /the event is string/ },
  "that is a number": { event: 42, says: /the event is number/ },
  "with a field that nobody knows": { event: { dryrun: true, note: secret }, says: /unknown fields "dryrun", "note"/ },
  "of a schedule with a field that nobody knows": {
    event: { job: "expire-carts", scheduledTime: tick, dryRun: true },
    says: /unknown field "dryRun"/,
  },
  "for another job": { event: scheduled("send-invoices", tick), says: /the event is for job "send-invoices"/ },
  "for what isn't a job's name": {
    event: { job: `password=${secret}`, scheduledTime: tick },
    says: /the event is for another job/,
  },
  "of a schedule without a time": { event: { job: "expire-carts" }, says: /scheduledTime must be an ISO 8601 instant/ },
  "whose time isn't text": { event: { scheduledTime: instant }, says: /scheduledTime must be/ },
  "whose time has no zone": { event: { scheduledTime: "2026-03-01T06:30:00" }, says: /scheduledTime must be/ },
  "whose time is a day that doesn't exist": {
    event: { scheduledTime: "2026-02-30T00:00:00Z" },
    says: /scheduledTime must be/,
  },
  "whose time is a leap day of another year": {
    event: { scheduledTime: "2026-02-29T00:00:00Z" },
    says: /scheduledTime must be/,
  },
  "whose time is an hour that doesn't exist": {
    event: { scheduledTime: "2026-03-01T24:00:00Z" },
    says: /scheduledTime must be/,
  },
  "whose time is a minute that doesn't exist": {
    event: { scheduledTime: "2026-03-01T06:60:00Z" },
    says: /scheduledTime must be/,
  },
  "whose time is the placeholder that the schedule should have filled in": {
    event: { job: "expire-carts", scheduledTime: "<aws.scheduler.scheduled-time>" },
    says: /scheduledTime must be/,
  },
  "whose time is no time at all": { event: { scheduledTime: secret }, says: /scheduledTime must be/ },
  "whose attempt isn't a number": {
    event: { ...scheduled("expire-carts", tick), attempt: secret },
    says: /attempt must be a whole number/,
  },
  "whose attempt is negative": { event: { ...scheduled("expire-carts", tick), attempt: -1 }, says: /attempt must be/ },
  "whose dryRun isn't true or false": { event: { dryRun: secret }, says: /dryRun must be true or false/ },
  "whose reason isn't text": { event: { reason: { secret } }, says: /reason must be a text/ },
  "for settled ticks and for a tick": {
    event: { backfill: [tick], scheduledTime: tick },
    says: /give backfill alone/,
  },
  "for no settled tick": { event: { backfill: [] }, says: /backfill must be a list of 1 to 1000 ISO 8601 instants/ },
  "for settled ticks that are none": { event: { backfill: [secret] }, says: /backfill must be a list/ },
  "for parked items and for a tick": {
    event: { parked: "all", scheduledTime: tick },
    says: /give parked or scheduledTime, not both/,
  },
  "from another source that looks like a schedule": {
    event: { ...classic, source: "aws.scheduler" },
    says: /source must be "aws\.events"/,
  },
  "from EventBridge that isn't a scheduled one": {
    event: { ...classic, "detail-type": "Order Placed", detail: { card: secret } },
    says: /detail-type must be "Scheduled Event"/,
  },
  "of a queue": { event: { Records: [{ body: secret }] }, says: /unknown field "Records"/ },
  "with a prototype's key": {
    event: JSON.parse(`{"__proto__":{"dryRun":"${secret}"}}`),
    says: /unknown field "__proto__"/,
  },
  "with a constructor": { event: JSON.parse('{"constructor":{"prototype":{}}}'), says: /unknown field "constructor"/ },
  "with a job that is a megabyte long": {
    event: { job: megabyte, scheduledTime: tick },
    says: /job must be the job's name/,
  },
  "with a time that is a megabyte long": { event: { scheduledTime: megabyte }, says: /scheduledTime must be/ },
  "with a reason that is a megabyte long": { event: { reason: megabyte }, says: /reason must be a text of at most/ },
  "with a field whose name is a megabyte long": { event: { [megabyte]: 1 }, says: /unknown field "x{60}"/ },
  "with a thousand unknown fields": {
    event: Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`field${at}`, secret])),
    says: /unknown fields "field0", .* and 995 more/,
  },
};

const engine = useEngine("results");

describe("An event is refused", () => {
  it.each(Object.entries(refused))("%s: by an error that names fields and not contents", (_, { event, says }) => {
    let error: unknown;
    try {
      readEvent("expire-carts", event, "request");
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(InvalidEventError);
    const { message, code } = error as InvalidEventError;
    expect(code).toBe("INVALID_EVENT");
    expect(message).toMatch(/^job "expire-carts": /);
    expect(message).toMatch(says);
    // Which events are accepted is part of it.
    expect(message).toContain("scheduledTime");
    expect(message).not.toContain(secret);
    expect(message.length).toBeLessThan(1_500);
  });

  it.each(Object.entries(refused))("%s: the attempt is logged as ended, and nothing is sent", async (_, { event }) => {
    engine.proxy.reset();
    const { log, lines, text } = recordedLog();
    const clock = settableClock(tick);
    let ran = 0;
    const job = defineJob({ name: "expire-carts", timeout: "1m", run: () => void ran++ });
    const handler = lambdaHandler(job, { store: engine.faulty(), clock, log });
    const context = invocation(clock);

    await expect(handler(event, context)).rejects.toMatchObject({ code: "INVALID_EVENT" });

    expect(ran).toBe(0);
    expect(engine.proxy.requests).toEqual([]);
    expect(lines).toEqual([
      {
        level: "error",
        message: "attempt ended: refused",
        job: "expire-carts",
        requestId: context.awsRequestId,
        error: { name: "InvalidEventError", code: "INVALID_EVENT", message: expect.any(String) },
      },
    ]);
    expect(text()).not.toContain(secret);
    expect(text().length).toBeLessThan(2_500);
  });

  it("and the next one that is right runs as if nothing had been", async () => {
    const clock = settableClock(tick);
    const name = freshName();
    const job = defineJob({
      name,
      timeout: "1m",
      run: (run) => run.commit([{ Put: { TableName: "results", Item: { id: name } } }]),
    });
    const handler = lambdaHandler(job, { store: engine.store, clock, log: recordedLog().log });
    await expect(handler({ job: name, scheduledTime: "yesterday" }, invocation(clock))).rejects.toThrow();
    const before = await dumpTable(engine.client, controlTable);
    expect(before.filter(({ pk }) => pk === `job#${name}`)).toEqual([]);

    expect(await handler(scheduled(name, tick), invocation(clock))).toMatchObject({ outcome: "succeeded", items: 1 });
  });
});

describe("A tick of the future", () => {
  it.each([
    ["in a schedule's input", scheduled("expire-carts", "2062-03-01T06:30:00Z")],
    ["in a classic event", { ...classic, time: "2062-03-01T06:30:00Z" }],
    ["asked for by hand", { scheduledTime: "2062-03-01T06:30:00Z" }],
  ])("%s is refused, or all ticks up to it would be duplicates when they come", async (_, event) => {
    const clock = settableClock(tick);
    const job = defineJob({ name: "expire-carts", timeout: "1m", run: () => {} });
    const handler = lambdaHandler(job, { store: engine.store, clock, log: recordedLog().log });
    await expect(handler(event, invocation(clock))).rejects.toThrow(
      "the event is for a tick of the future (2062-03-01T06:30:00.000Z)",
    );
  });

  it("is one only if it is later than our clock may be slow by", async () => {
    const clock = settableClock("2026-03-01T06:29:50Z");
    const name = freshName();
    const job = defineJob({ name, timeout: "1m", skew: "10s", run: () => {} });
    const handler = lambdaHandler(job, { store: engine.store, clock, log: recordedLog().log });
    await expect(handler(scheduled(name, "2026-03-01T06:30:00.001Z"), invocation(clock))).rejects.toThrow("future");
    expect(await handler(scheduled(name, "2026-03-01T06:30:00Z"), invocation(clock))).toMatchObject({
      outcome: "succeeded",
    });
  });
});

describe("A job's definition", () => {
  it("has its warnings logged once, when the function is loaded", async () => {
    const { log, lines } = recordedLog();
    const clock = settableClock(tick);
    const job = defineJob({ name: freshName(), timeout: "1m", ttl: "50s", skew: "10s", run: () => {} });
    const handler = lambdaHandler(job, { store: engine.store, clock, log });
    await handler({}, invocation(clock));
    await handler({}, invocation(clock));
    expect(lines.filter(({ level }) => level === "warn")).toEqual([
      { level: "warn", job: job.name, message: expect.stringContaining("ttl + skew is 60000 ms") },
    ]);
  });

  it("needs no context, as when a function is called by hand", async () => {
    const store = dynamoStore({ client: engine.client, table: controlTable });
    const job = defineJob({ name: `job-${randomUUID().slice(0, 8)}`, timeout: "1m", run: () => {} });
    const handler = lambdaHandler(job, { store, clock: settableClock(tick), log: recordedLog().log });
    expect(await handler({})).toMatchObject({ outcome: "succeeded" });
  });
});
