/** Whatever an event holds, it is understood or refused by one error, which says little of what it held. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readEvent } from "../../src/lambda/event.ts";
import { hostileJson, nested, tries } from "./hostile.ts";

const job = "expire-carts";
const latest = Date.UTC(2026, 6, 1);

const read = (event: unknown) => readEvent(job, event, "request-1", latest);

const refusal = (event: unknown): { code: unknown; message: string } => {
  try {
    return { code: "understood", message: JSON.stringify(read(event)) };
  } catch (error) {
    return error as { code: unknown; message: string };
  }
};

const fields = ["job", "scheduledTime", "attempt", "executionId", "scheduleArn", "source", "detail-type", "time"];
const manual = ["dryRun", "reason", "parked", "chain", "version", "__proto__", "constructor", "toString"];
const values = fc.oneof(
  hostileJson,
  fc.constantFrom(job, "aws.events", "Scheduled Event", "all", "2026-03-01T06:30:00Z", "9999-12-31T23:59:59Z", 0, 1e21),
);
/** As JSON gives them: `__proto__` is a key like others. */
const events = fc
  .array(fc.tuple(fc.constantFrom(...fields, ...manual), values))
  .map((entries) =>
    JSON.parse(`{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)}}`),
  );

describe("an event", () => {
  it("of whatever kind is understood, or refused by a short error of its own", () => {
    fc.assert(
      fc.property(fc.oneof(events, hostileJson, fc.anything()), (event) => {
        const { code, message } = refusal(event);
        expect(["understood", "INVALID_EVENT", "WRONG_VERSION"]).toContain(code);
        if (code !== "understood") expect(message.length).toBeLessThan(2_000);
        expect(({} as Record<string, unknown>).polluted).toBeUndefined();
      }),
      tries(500),
    );
  });

  it("of the schedule's own kind comes back as the tick it was for", () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date(0), max: new Date(latest), noInvalidDate: true }),
        fc.nat(185),
        (time, attempt) => {
          const trigger = read({ job, scheduledTime: time.toISOString(), attempt: String(attempt) });
          expect(trigger).toEqual({ kind: "schedule", tick: time.getTime(), attempt, requestId: "request-1" });
        },
      ),
    );
  });

  it.each([
    ["a text of a megabyte", { reason: "x".repeat(2 ** 20) }],
    ["a field with a name of a megabyte", { ["x".repeat(2 ** 20)]: 1 }],
    ["a hundred thousand fields", Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`f${index}`, 1]))],
    ["a value nested ten thousand levels deep", { reason: nested(10_000) }],
    ["a tick beyond all dates", { job, scheduledTime: "+275760-09-13T00:00:00.001Z" }],
    ["a tick on a day that doesn't exist", { job, scheduledTime: "2026-02-30T00:00:00Z" }],
    ["a tick of the future", { job, scheduledTime: "9999-12-31T23:59:59Z" }],
    ["a number that isn't one", { chain: Number.NaN }],
    ["a bigint", { chain: 1n }],
    ["the prototype's fields", JSON.parse('{"__proto__":{"dryRun":true,"polluted":1}}')],
    [
      "another job, named by a line of its own",
      { job: 'x"\n{"level":"error"}', scheduledTime: "2026-03-01T06:30:00Z" },
    ],
  ])("with %s is refused, without being quoted", (_, event) => {
    const { code, message } = refusal(event);
    expect(code).toBe("INVALID_EVENT");
    expect(message.length).toBeLessThan(2_000);
    expect(message).not.toContain("\n");
  });
});
