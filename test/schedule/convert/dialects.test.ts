import { describe, expect, it } from "vitest";
import {
  type Conversion,
  requireConverted,
  toCloudflare,
  toEventBridge,
  toKubernetes,
  toSystemd,
  toVercel,
} from "../../../src/schedule/convert/index.ts";
import { calendar, cron, rate, type Schedule, withCalendar } from "../../../src/schedule/index.ts";
import dialects from "../dialect-vectors.json" with { type: "json" };

/** A conversion in the notation of the golden vectors. */
const noted = (conversion: Conversion<string | readonly string[]>): string => {
  if (!conversion.ok) return `REFUSE ${conversion.code}`;
  const { expression, zone } = conversion;
  const text = typeof expression === "string" ? expression : expression.join("  +  ");
  return zone !== undefined && !text.includes("(") ? `${text} tz=${zone}` : text;
};

const targets: Record<string, (schedule: Schedule) => Conversion<string | readonly string[]>> = {
  eventbridge: toEventBridge,
  kubernetes: toKubernetes,
  systemd: toSystemd,
  vercel: toVercel,
  cloudflare: toCloudflare,
};

describe("golden vectors for dialects", () => {
  for (const row of dialects.rows) {
    if (row.parse) continue;
    for (const [target, convert] of Object.entries(targets)) {
      it(`${row.e} in ${row.z} for ${target}`, () => {
        const wanted = row[target as "eventbridge"].replace(/ ✓$/, "");
        expect(noted(convert(cron(row.e, { zone: row.z })))).toBe(wanted);
      });
    }
  }
});

const code = (conversion: Conversion<unknown>) => (conversion.ok ? conversion.expression : conversion.code);

describe("a conversion", () => {
  it("writes lists where a dialect's own syntax would be read differently", () => {
    const weekend = cron("0 9 * * 6-7");
    expect([toEventBridge, toKubernetes, toCloudflare, toSystemd].map((convert) => code(convert(weekend)))).toEqual([
      "cron(0 9 ? * SUN,SAT *)",
      "0 9 * * 0,6",
      "0 9 * * SUN,SAT",
      ["Sat,Sun *-*-* 09:00:00 UTC"],
    ]);
    const night = cron("cron(0 22-1 ? * FRI-MON *)");
    expect([toEventBridge, toKubernetes, toCloudflare, toSystemd].map((convert) => code(convert(night)))).toEqual([
      "cron(0 0,1,22,23 ? * SUN,MON,FRI,SAT *)",
      "0 0,1,22,23 * * 0,1,5,6",
      "0 0,1,22,23 * * SUN,MON,FRI,SAT",
      ["Mon,Fri..Sun *-*-* 00,01,22,23:00:00 UTC"],
    ]);
  });

  it("is refused where both day fields must match, except for systemd", () => {
    const both = cron("0 9 */2 * MON");
    expect([toEventBridge, toKubernetes, toVercel, toCloudflare].map((convert) => code(convert(both)))).toEqual(
      Array(4).fill("AND_DAYS"),
    );
    expect(code(toSystemd(both))).toEqual([
      `Mon *-*-${"01,03,05,07,09,11,13,15,17,19,21,23,25,27,29,31"} 09:00:00 UTC`,
    ]);
    expect(code(toSystemd(cron("0 9 */2 * MON#1")))).toBe("AND_DAYS");
  });

  it("is refused for lists with L, W or #, except for systemd", () => {
    for (const expression of ["0 9 15W,L * *", "0 9 * * MON#1,MON#3", "0 9 1,L * *"]) {
      expect([toEventBridge, toCloudflare].map((convert) => code(convert(cron(expression))))).toEqual(["LIST", "LIST"]);
      expect(toSystemd(cron(expression)).ok).toBe(true);
    }
  });

  it("is refused where a host's own reading of W is known to differ", () => {
    for (const convert of [toCloudflare, toSystemd]) expect(code(convert(cron("0 9 29W * *")))).toBe("LW");
    expect(code(toCloudflare(cron("0 9 28W * *")))).toBe("0 9 28W * *");
  });

  it("says why there is none, and what to write instead", () => {
    const refused = toEventBridge(cron("0 0 13 * 5"));
    expect(refused).toMatchObject({ ok: false, code: "OR_DAYS" });
    if (refused.ok) throw new Error("wasn't refused");
    expect(refused.reason).toContain("either a day of the month (13) or a day of the week (5)");
    expect(refused.instead).toContain("run the job every day");
    expect(() => requireConverted(cron("0 0 13 * 5"), refused)).toThrow(/either a day.*run the job every day/);
    const zoned = cron("0 9 * * *", { zone: "Europe/Berlin" });
    expect(toCloudflare(zoned)).toMatchObject({ code: "ZONE", instead: expect.stringContaining("in UTC") });
    expect(toKubernetes(rate("7 minutes"))).toMatchObject({ code: "RATE", instead: expect.stringContaining("cron") });
  });

  it("keeps the source's star, which the expression may have lost", () => {
    expect(toEventBridge(cron("*/15 2 * * *"))).toMatchObject({ expression: "cron(0/15 2 * * ? *)", wildcard: true });
    expect(toEventBridge(cron("0/15 2 * * *"))).toMatchObject({ expression: "cron(0/15 2 * * ? *)", wildcard: false });
  });

  it("emits the canonical zone, and writes a bare rate in full", () => {
    expect(toEventBridge(cron("0 9 * * *", { zone: "us/eastern" }))).toMatchObject({ zone: "America/New_York" });
    expect(toEventBridge(rate(" Rate( 1   Hour ) "))).toMatchObject({ expression: "rate(1 hour)" });
    expect(toEventBridge(rate("5 minutes"))).toMatchObject({ expression: "rate(5 minutes)", zone: "UTC" });
  });
});

describe("warnings", () => {
  const from = Date.parse("2026-01-01");
  const zone = "America/New_York";
  const warnings = (conversion: Conversion<unknown>) => (conversion.ok ? conversion.warnings : []);

  it("tell of a fixed time in a gap, which others skip", () => {
    const schedule = cron("30 2 * * *", { zone });
    const [warning, ...more] = warnings(toEventBridge(schedule, { from }));
    expect(warning).toMatch(
      /skips a time of day.*2026-03-08 in America\/New_York at 02:30.*first instant after the gap/,
    );
    expect(more).toEqual([]);
    expect(warnings(toEventBridge(cron("30 2 * * *", { zone, gap: "skip" }), { from }))).toEqual([]);
    expect(warnings(toEventBridge(cron("30 4 * * *", { zone }), { from }))).toEqual([]);
    expect(warnings(toEventBridge(schedule))).toEqual([]);
  });

  it("tell of the repeated hour where the other scheduler differs", () => {
    const hourly = cron("0 * * * *", { zone });
    expect(warnings(toEventBridge(hourly, { from })).join()).toMatch(
      /fires only once in a repeated hour.*2026-11-01.*both times; UTC or a rate/,
    );
    expect(warnings(toSystemd(hourly, { from }))).toHaveLength(1);
    expect(warnings(toKubernetes(hourly, { from }))).toEqual([]);
    expect(warnings(toKubernetes(cron("30 1 * * *", { zone }), { from })).join()).toMatch(
      /fires twice in a repeated hour/,
    );
  });

  it("tell of Kubernetes in Lord Howe, of calendars, and of a rate's start", () => {
    expect(warnings(toKubernetes(cron("0 9 * * *", { zone: "Australia/Lord_Howe" }))).join()).toMatch(
      /skips whole days/,
    );
    const excepted = withCalendar(cron("0 9 * * *"), calendar(["2026-12-25"]));
    expect(warnings(toVercel(excepted)).join()).toMatch(/calendar is unknown to the scheduler/);
    expect(warnings(toEventBridge(rate("5 minutes"))).join()).toMatch(/StartDate/);
    const odd = toEventBridge(cron("cron(0 9 31W * ? *)"));
    expect(warnings(odd).join()).toMatch(/AWS doesn't say/);
  });
});
