/** The rules by which CloudWatch evaluates an alarm, against the tables of its documentation. */
import {
  type Alarm,
  type AlarmState,
  type Datum,
  type MetricPoint,
  monitorAlarm,
  nextState,
  replayAlarm,
} from "cronfence/testing";
import { describe, expect, it } from "vitest";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const start = Date.parse("2026-01-01T00:00:00Z");

const alarm = (more: Partial<Alarm> = {}): Alarm => ({
  AlarmDescription: "",
  Namespace: "test",
  MetricName: "Test",
  Dimensions: [],
  Statistic: "Maximum",
  Period: 60,
  EvaluationPeriods: 1,
  DatapointsToAlarm: 1,
  Threshold: 0,
  ComparisonOperator: "GreaterThanThreshold",
  TreatMissingData: "missing",
  ...more,
});

/** "0 - X": as the documentation writes data points, the newest on the right. */
const newestFirst = (text: string): Datum[] =>
  text
    .split(" ")
    .map((sign): Datum => (sign === "X" ? "breaching" : sign === "0" ? "within" : "missing"))
    .reverse();

const treatments = ["missing", "ignore", "breaching", "notBreaching"] as const;
/** What the tables call "retain current state". */
const retain = "retain";
type Row = readonly [string, ...(AlarmState | typeof retain)[]];

const none = "INSUFFICIENT_DATA";
const threeOfThree: readonly Row[] = [
  ["0 - X - X", "OK", "OK", "OK", "OK"],
  ["0 - - - -", "OK", "OK", "OK", "OK"],
  ["- - - - -", none, retain, "ALARM", "OK"],
  ["0 X X - X", "ALARM", "ALARM", "ALARM", "ALARM"],
  ["- - X - -", "ALARM", retain, "ALARM", "OK"],
];
const twoOfThree: readonly Row[] = [
  ["0 - X - X", "ALARM", "ALARM", "ALARM", "ALARM"],
  ["0 0 X 0 X", "ALARM", "ALARM", "ALARM", "ALARM"],
  ["0 - X - -", "OK", "OK", "ALARM", "OK"],
  ["- - - - 0", "OK", "OK", "ALARM", "OK"],
  ["- - - X -", "ALARM", retain, "ALARM", "OK"],
];

describe.each([
  { what: "3 out of 3", DatapointsToAlarm: 3, rows: threeOfThree },
  { what: "2 out of 3", DatapointsToAlarm: 2, rows: twoOfThree },
])("With $what data points and a range of 5, as the documentation's table has it,", ({ DatapointsToAlarm, rows }) => {
  const cases = rows.flatMap(([data, ...states]) =>
    treatments.map((TreatMissingData, index) => ({ data, TreatMissingData, expected: states[index] })),
  );

  it.each(cases)("$data with missing data as $TreatMissingData gives $expected", (given) => {
    const { data, TreatMissingData, expected } = given;
    for (const before of ["OK", "ALARM", "INSUFFICIENT_DATA"] as const) {
      const settings = { EvaluationPeriods: 3, DatapointsToAlarm, TreatMissingData };
      expect(nextState(settings, newestFirst(data), before)).toBe(expected === retain ? before : expected);
    }
  });
});

describe("One breaching point after a silence", () => {
  const settings = { EvaluationPeriods: 3, DatapointsToAlarm: 3, TreatMissingData: "missing" } as const;

  it("isn't an alarm before as many periods have passed as it takes points", () => {
    expect(nextState(settings, newestFirst("- - - - X"), "OK")).toBe("OK");
    expect(nextState(settings, newestFirst("- - - X -"), "OK")).toBe("OK");
    expect(nextState(settings, newestFirst("- - X - -"), "OK")).toBe("ALARM");
  });

  it("isn't an alarm at all once a point within the threshold has followed", () => {
    expect(nextState(settings, newestFirst("- - X 0 -"), "OK")).toBe("OK");
  });
});

const changes = (given: Alarm, series: readonly MetricPoint[], through: number, extraPoints = 2) =>
  replayAlarm(given, series, { from: start, through, extraPoints }).map(({ at, to }) => [(at - start) / minute, to]);

describe("In simulated time an alarm", () => {
  it("is evaluated every minute over a window that slides with it", () => {
    const fiveMinutes = alarm({ Period: 300, TreatMissingData: "notBreaching" });
    const series = [{ at: start + 7 * minute, value: 1 }];
    // In the window from minute 8 on, and out of the one of 5 minutes and two more of the range after minute 22.
    expect(changes(fiveMinutes, series, start + hour)).toEqual([
      [1, "OK"],
      [8, "ALARM"],
      [23, "OK"],
    ]);
    expect(changes(fiveMinutes, series, start + hour, 0)).toEqual([
      [1, "OK"],
      [8, "ALARM"],
      [13, "OK"],
    ]);
  });

  it("is evaluated every hour where its window is longer than a day", () => {
    const twoDays = alarm({ Period: 86_400, EvaluationPeriods: 2, TreatMissingData: "notBreaching" });
    const series = [
      { at: start + 7 * minute, value: 1 },
      { at: start + 67 * minute, value: 1 },
    ];
    expect(changes(twoDays, series, start + 6 * hour)).toEqual([[60, "ALARM"]]);
  });

  it("sees a value only when CloudWatch has it, under the time it stands for", () => {
    const series = [{ at: start, value: 1, knownAt: start + 3 * minute }];
    expect(changes(alarm({ EvaluationPeriods: 3 }), series, start + 3 * minute)).toEqual([[3, "ALARM"]]);
    // Too late for a window of one minute and no range beyond it.
    expect(changes(alarm(), series, start + hour, 0)).toEqual([]);
  });

  it("takes the values of a period together as its statistic says", () => {
    const series = [1, 2, 6].map((value) => ({ at: start, value }));
    const verdicts = (
      [
        ["Sum", 8],
        ["Average", 2.9],
        ["Maximum", 5],
        ["Minimum", 0.5],
        ["SampleCount", 2],
      ] as const
    ).map(([Statistic, Threshold]) => [
      changes(alarm({ Statistic, Threshold }), series, start + minute),
      changes(alarm({ Statistic, Threshold: Threshold + 1.2 }), series, start + minute),
    ]);
    for (const verdict of verdicts) expect(verdict).toEqual([[[1, "ALARM"]], [[1, "OK"]]]);
  });

  it("compares as its operator says", () => {
    const states = (
      [
        "GreaterThanThreshold",
        "GreaterThanOrEqualToThreshold",
        "LessThanThreshold",
        "LessThanOrEqualToThreshold",
      ] as const
    ).map((ComparisonOperator) =>
      [4, 5, 6].map(
        (value) => changes(alarm({ ComparisonOperator, Threshold: 5 }), [{ at: start, value }], start + minute)[0]?.[1],
      ),
    );
    expect(states).toEqual([
      ["OK", "OK", "ALARM"],
      ["OK", "ALARM", "ALARM"],
      ["ALARM", "OK", "OK"],
      ["ALARM", "ALARM", "OK"],
    ]);
  });

  it("goes off again after it was cleared, and says each time", () => {
    const ignoring = alarm({ TreatMissingData: "ignore" });
    const series = [0, 1, 0, 1].map((value, index) => ({ at: start + index * 5 * minute, value }));
    expect(changes(ignoring, series, start + day)).toEqual([
      [1, "OK"],
      [6, "ALARM"],
      [11, "OK"],
      [16, "ALARM"],
    ]);
  });

  it("can be followed step by step, with values in any order", () => {
    const monitor = monitorAlarm(alarm({ TreatMissingData: "ignore" }), { from: start });
    monitor.record({ at: start + 2 * minute, value: 1, knownAt: start + 4 * minute });
    monitor.record({ at: start + minute, value: 0, knownAt: start + 2 * minute });
    expect(monitor.state).toBe("INSUFFICIENT_DATA");
    expect(monitor.advance(start + 3 * minute)).toEqual([
      { at: start + 2 * minute, from: "INSUFFICIENT_DATA", to: "OK" },
    ]);
    expect(monitor.advance(start + 3 * minute)).toEqual([]);
    expect(monitor.advance(start + 4 * minute)).toEqual([{ at: start + 4 * minute, from: "OK", to: "ALARM" }]);
  });
});

describe("An alarm that CloudWatch would refuse is refused, naming the limit:", () => {
  it.each([
    [{ Period: 45 }, "Period is 45"],
    [{ Period: 0 }, "Period is 0"],
    [{ EvaluationPeriods: 0 }, "EvaluationPeriods is 0"],
    [{ EvaluationPeriods: 1.5 }, "EvaluationPeriods is 1.5"],
    [{ EvaluationPeriods: 3, DatapointsToAlarm: 4 }, "DatapointsToAlarm is 4"],
    [{ Period: 86_400, EvaluationPeriods: 8 }, "at most 604800"],
    [{ Period: 300, EvaluationPeriods: 289 }, "at most 86400 where Period is less than an hour"],
    [{ Threshold: Number.NaN }, "Threshold is NaN"],
  ])("%j", (more, problem) => {
    expect(() => monitorAlarm(alarm(more), { from: start })).toThrow(problem);
  });

  it("and what is just within the limits isn't", () => {
    for (const [Period, EvaluationPeriods] of [
      [86_400, 7],
      [3_600, 168],
      [300, 288],
      [60, 1_440],
    ]) {
      const within = alarm({ Period: Period as number, EvaluationPeriods: EvaluationPeriods as number });
      expect(() => monitorAlarm(within, { from: start })).not.toThrow();
    }
  });
});

describe("case 25: a daily alarm on a job's own metric, missing data as breaching, 1 out of 1,", () => {
  const daily = alarm({
    Statistic: "Sum",
    Period: 86_400,
    Threshold: 1,
    ComparisonOperator: "LessThanThreshold",
    TreatMissingData: "breaching",
  });
  const lastRun = start + 4 * day + hour;
  const series = Array.from({ length: 5 }, (_, index) => ({ at: start + index * day + hour, value: 1 }));

  it("stays silent for days after the job has stopped, and longer the farther CloudWatch looks back", () => {
    const silentDays = (extraPoints: number) => {
      const pages = replayAlarm(daily, series, { from: start, through: start + 20 * day, extraPoints }).filter(
        ({ at, to }) => to === "ALARM" && at > lastRun,
      );
      return ((pages[0]?.at ?? 0) - lastRun) / day;
    };
    expect(silentDays(0)).toBeCloseTo(1, 1);
    expect(silentDays(2)).toBeCloseTo(3, 1);
    expect(silentDays(4)).toBeCloseTo(5, 1);
  });
});
