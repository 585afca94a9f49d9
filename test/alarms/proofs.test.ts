/**
 * That the alarms go off when they must, and never otherwise: two years of simulated time, in which EventBridge delivers
 * late, twice and not at all where the clocks skip, runs take up to nine tenths of their timeout, and the alarms are those
 * that are deployed.
 */
import { cron, defineJob, type Job, rate } from "cronfence";
import { type AlarmRehearsalOptions, rehearsalText, rehearseAlarms } from "cronfence/testing";
import { lateAfterMs } from "cronfence/watchdog";
import { describe, expect, it } from "vitest";
import { eventBridgeTicks } from "../../src/schedule/index.ts";

const minute = 60_000;
const day = 24 * 60 * minute;
const clock = { now: () => Date.parse("2026-01-01T00:00:00Z"), after: () => () => {} };

const newYork = { zone: "America/New_York" };
const berlin = { zone: "Europe/Berlin" };
const job = (name: string, schedule: Job["schedule"], more = {}): Job =>
  defineJob(
    {
      name,
      ...(schedule === undefined ? {} : { schedule }),
      timeout: "10m",
      jitter: "5m",
      // Little more than the minute that a delivery may take: what is left out of the deadline shows.
      alert: { missedAfter: "2m" },
      except: ["2026-12-24..2026-12-26", { from: "2027-06-01T00:00:00Z", to: "2027-06-08T00:00:00Z" }],
      run: () => {},
      ...more,
    },
    { clock },
  );

const jobs = {
  hourly: job("hourly", cron("7 * * * *", newYork)),
  daily: job("daily", cron("30 2 * * *", newYork)),
  weekdays: job("weekdays", cron("15 2 * * 1-5", berlin)),
  weekly: job("weekly", cron("0 3 * * 0", berlin)),
  monthly: job("monthly", cron("0 4 1 * *", newYork)),
  yearly: job("yearly", cron("45 1 1 11 *", newYork)),
};
const names = Object.keys(jobs) as (keyof typeof jobs)[];
/** Sparse jobs are looked at less often here, which only makes the bounds harder to keep. */
const every = (name: string) => (name === "hourly" ? "5m" : "15m");
const everyMs = (name: string) => (every(name) === "5m" ? 5 : 15) * minute;

const twoYears = { from: "2026-01-01T00:00:00Z", to: "2028-01-01T00:00:00Z" };
const pagesOf = (rehearsed: Job, options: AlarmRehearsalOptions) => rehearseAlarms([rehearsed], options).pages;

describe("Two healthy years, with changes of clocks, a calendar, a freeze and jitter, page nobody:", () => {
  it.each(names)("%s", (name) => {
    const rehearsal = rehearseAlarms([jobs[name]], { ...twoYears, every: every(name) });
    expect(rehearsalText(rehearsal)).toMatch(/^nobody is paged\n[1-9]\d* ticks done$/);
  });

  it.each([
    ["daily", 2],
    ["hourly", 2],
    ["weekly", 0],
  ] as const)("%s, where the watchdog starts the %d ticks that EventBridge leaves out", (name, left) => {
    const rehearsal = rehearseAlarms([jobs[name]], { ...twoYears, every: every(name), heal: true });
    expect(rehearsal.pages).toEqual([]);
    expect(rehearsal.healed).toBe(left);
  });

  it.each([0, 1, 30])("whether CloudWatch looks at %d points more than it needs", (extraPoints) => {
    const options = { from: "2026-03-01T00:00:00Z", to: "2026-05-01T00:00:00Z", extraPoints };
    for (const seed of [1, 2, 3]) expect(pagesOf(jobs.daily, { ...options, seed })).toEqual([]);
  });

  it("whatever the zone does", () => {
    for (const zone of ["Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu", "Africa/Cairo"]) {
      for (const heal of [false, true]) {
        const local = job("local", cron("0 0 * * *", { zone }));
        const rehearsal = rehearseAlarms([local], { from: "2026-01-01", to: "2027-01-01", every: "30m", heal });
        expect(rehearsal.pages).toEqual([]);
        expect(rehearsal.done).toBe(362);
      }
    }
  });

  it("where jobs run every minute or at a rate", () => {
    const options = { from: "2026-10-30", to: "2026-11-03", every: "1m" };
    const often = [
      job("minutely", cron("* * * * *", newYork), { timeout: "50s", jitter: 1, alert: {} }),
      job("rated", rate("7 minutes"), { timeout: "5m", alert: {} }),
    ];
    for (const heal of [false, true]) expect(rehearseAlarms(often, { ...options, heal }).pages).toEqual([]);
  });
});

/** Some ticks of a job that EventBridge delivers, those beside changes of clocks among them. */
const someTicks = (name: keyof typeof jobs): number[] => {
  const schedule = eventBridgeTicks(jobs[name].schedule!);
  const changes = ["2026-03-08", "2026-03-29", "2026-10-25", "2026-11-01", "2027-03-14"].map((text) =>
    Date.parse(text),
  );
  const around = changes.flatMap((at) => [
    schedule.previous(at + 6 * 60 * minute),
    schedule.next(at + 6 * 60 * minute),
  ]);
  const spread = Array.from({ length: 6 }, (_, index) => schedule.next(clock.now() + (index * 61 + 3) * day));
  return [...new Set([...around, ...spread].filter((tick) => tick !== undefined))];
};

describe("Any single missed tick pages within the interval, the slack and two periods of the watchdog:", () => {
  it.each(names)("%s", (name) => {
    const missedJob = jobs[name];
    const { alert } = missedJob;
    const delivered = eventBridgeTicks(missedJob.schedule!);
    let paged = 0;
    for (const tick of someTicks(name)) {
      const next = delivered.next(tick)!;
      const intervalMs = next - tick;
      const looks = 2 * everyMs(name);
      // A day before and after, or to the next tick and its end where that is sooner.
      const to = Math.min(next + lateAfterMs(missedJob) + looks, tick + 10 * day);
      const pages = pagesOf(missedJob, { from: tick - day, to, missed: [tick], every: every(name) });
      expect(pages).toHaveLength(1);
      const [page] = pages;
      expect(page).toMatchObject({ alarm: "overdue", job: name });
      // The interval is the promise; what the job needs at most is what is kept.
      const bound = Math.min(intervalMs + alert.missedAfterMs, lateAfterMs(missedJob)) + looks;
      expect(page!.at - tick).toBeGreaterThan(alert.missedAfterMs);
      expect(page!.at - tick).toBeLessThanOrEqual(bound);
      // The next run does both ticks, which clears it.
      if (next < to) expect(page!.clearedAt! - next).toBeLessThanOrEqual(lateAfterMs(missedJob) + looks);
      else expect(page!.clearedAt).toBeUndefined();
      paged += 1;
    }
    expect(paged).toBeGreaterThan(name === "yearly" ? 1 : 5);
  });

  it("also where the watchdog heals, which then clears it long before the next tick", () => {
    const tick = jobs.monthly.schedule!.next(Date.parse("2026-06-15"))!;
    const options = { from: tick - day, to: tick + 5 * day, missed: [tick], heal: true };
    const { pages, healed } = rehearseAlarms([jobs.monthly], options);
    expect(healed).toBe(1);
    expect(pages).toHaveLength(1);
    expect(pages[0]!.clearedAt! - tick).toBeLessThan(2 * 60 * minute);
  });

  it("but not one that the next run has done within the slack, as the job's own setting allows", () => {
    const often = job("often", cron("*/5 * * * *"), { timeout: "4m", jitter: 1 });
    const tick = Date.parse("2026-02-03T10:05:00Z");
    const options = { from: tick - day, to: tick + day };
    expect(pagesOf(often, { ...options, missed: [tick] })).toEqual([]);
    const six = Array.from({ length: 6 }, (_, index) => tick + index * 5 * minute);
    expect(pagesOf(often, { ...options, missed: six })).toHaveLength(1);
  });
});

describe("A schedule that was disabled by hand", () => {
  it.each(names)("pages with its first tick, and until it is enabled again: %s", (name) => {
    const disabled = jobs[name].schedule!.next(Date.parse("2026-10-31T20:00:00Z"))! - 1;
    const { schedule } = jobs[name];
    const first = schedule!.next(disabled)!;
    const options = { from: disabled - day, to: first + 3 * day, every: every(name) };
    const pages = pagesOf(jobs[name], { ...options, outages: [{ from: disabled, to: options.to }] });
    expect(pages).toEqual([{ alarm: "overdue", job: name, at: expect.any(Number) }]);
    expect(pages[0]!.at - first).toBeLessThanOrEqual(lateAfterMs(jobs[name]) + 2 * everyMs(name));
  });
});

describe("The watchdog", () => {
  const died = Date.parse("2026-05-05T12:00:00Z");
  const around = { from: died - day, to: died + 2 * day };

  it.each([1, 5, 15, 30])("pages when it dies, and is cleared when it is back, looking every %d minutes", (minutes) => {
    const back = died + day;
    const options = { ...around, every: `${minutes}m`, watchdogDown: [{ from: died, to: back }] };
    for (const extraPoints of [0, 2, 10]) {
      const pages = pagesOf(jobs.yearly, { ...options, extraPoints });
      expect(pages).toHaveLength(1);
      const [page] = pages;
      expect(page).toMatchObject({ alarm: "watchdog" });
      expect(page!.at - died).toBeLessThanOrEqual((2 * minutes + 4 + extraPoints) * minute);
      expect(page!.clearedAt! - back).toBeLessThanOrEqual(3 * minute);
    }
  });

  it("doesn't page for one look that was left out", () => {
    for (const minutes of [1, 5, 15, 30]) {
      const options = { ...around, every: `${minutes}m` };
      for (const seed of [1, 2, 3, 4, 5]) {
        const watchdogDown = [{ from: died, to: died + minutes * minute }];
        expect(pagesOf(jobs.yearly, { ...options, watchdogDown, seed })).toEqual([]);
      }
    }
  });

  it("lets no alarm of a job go off or end while it is dead", () => {
    const missed = jobs.hourly.schedule!.next(died - 3 * 60 * minute)!;
    const dead = { from: missed + 40 * minute, to: died + 2 * day };
    const pages = pagesOf(jobs.hourly, { ...around, missed: [missed], watchdogDown: [dead] });
    expect(pages.map(({ alarm, clearedAt }) => [alarm, clearedAt])).toEqual([
      ["overdue", undefined],
      ["watchdog", undefined],
    ]);
  });
});

describe("Failures in a row", () => {
  const steady = job("steady", cron("0 * * * *"), { exact: true, alert: { missedAfter: "3h", failures: 3 } });
  const began = Date.parse("2026-04-04T12:00:00Z");
  const around = { from: began - day, to: began + day };
  const failingFor = (ticks: number) => [{ from: began, to: began + ticks * 60 * minute }];

  it("page with the third, however often the platform tried each, and the first success clears it", () => {
    const pages = pagesOf(steady, { ...around, failing: failingFor(3) });
    expect(pages).toHaveLength(1);
    const [page] = pages;
    expect(page).toMatchObject({ alarm: "failures", job: "steady" });
    const third = began + 2 * 60 * minute;
    expect(page!.at).toBeGreaterThan(third);
    expect(page!.at - third).toBeLessThanOrEqual(30 * minute);
    const recovered = began + 3 * 60 * minute;
    expect(page!.clearedAt! - recovered).toBeLessThanOrEqual(30 * minute);
  });

  it("don't page before", () => {
    expect(pagesOf(steady, { ...around, failing: failingFor(2) })).toEqual([]);
  });

  it("page at the number that the job says", () => {
    const touchy = job("touchy", cron("0 * * * *"), { exact: true, alert: { missedAfter: "3h", failures: 1 } });
    expect(pagesOf(touchy, { ...around, failing: failingFor(1) })).toMatchObject([{ alarm: "failures" }]);
  });

  it("of a job that the watchdog heals aren't made many more by it", () => {
    const failing = [{ from: began, to: began + day }];
    const { pages } = rehearseAlarms([steady], { ...around, failing, heal: true });
    expect(pages.map(({ alarm }) => alarm)).toEqual(["failures", "overdue"]);
  });
});

describe("A rehearsal", () => {
  const tick = Date.parse("2026-07-01T08:00:00Z");
  const options = { from: "2026-06-25", to: "2026-08-05", missed: ["2026-07-01T08:00:00Z"] };

  it("answers when one would be paged if a tick were missed, in a line for people", () => {
    const lines = rehearsalText(rehearseAlarms([jobs.monthly], options)).split("\n");
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^2026-07-01T08:\d\d:00Z {2}monthly: overdue, cleared 2026-08-01T08:\d\d:00Z$/);
    expect(lines[1]).toBe("2 ticks done");
    expect(tick).toBe(jobs.monthly.schedule!.next(Date.parse("2026-06-25")));
  });

  it("is the same for the same seed", () => {
    expect(rehearseAlarms([jobs.monthly], options)).toEqual(rehearseAlarms([jobs.monthly], options));
  });

  it("says what is wrong with its options, all at once", () => {
    const wrong = { from: "never", to: "2026-01-01", mised: [], every: "90s", outages: [{ from: 0, to: "x" }] };
    const refused = () => rehearseAlarms([], wrong as never);
    for (const problem of [
      'from is "never"',
      "mised is not an option; did you mean missed?",
      'every is "90s"',
      'outages.to is "x"',
    ]) {
      expect(refused).toThrow(problem);
    }
    expect(() => rehearseAlarms([], { from: "2026-01-02", to: "2026-01-01" })).toThrow("to must be later than from");
  });
});
