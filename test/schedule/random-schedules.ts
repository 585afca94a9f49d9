/** Random schedules, each with its meaning worked out beside its text and not from it. */

import fc from "fast-check";
import { dayMs, type Meaning } from "./oracle.ts";

export interface RandomSchedule extends Meaning {
  readonly expression: string;
  readonly wildcard: boolean;
}

/** A field's text and the values that it stands for. */
interface RandomField {
  readonly text: string;
  readonly values: ReadonlySet<number>;
}

const span = (low: number, high: number, step = 1) => {
  const values: number[] = [];
  for (let value = low; value <= high; value += step) values.push(value);
  return values;
};

/** Values are drawn from low to high; open ends run to `top`, the last value of the field. */
const term = (low: number, high: number, top: number): fc.Arbitrary<RandomField> => {
  const value = fc.integer({ min: low, max: high });
  const step = fc.integer({ min: 1, max: Math.min(high - low + 1, 30) });
  const range = fc.tuple(value, value).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  return fc.oneof(
    { weight: 5, arbitrary: value.map((one) => ({ text: `${one}`, values: new Set([one]) })) },
    { weight: 2, arbitrary: range.map(([a, b]) => ({ text: `${a}-${b}`, values: new Set(span(a, b)) })) },
    {
      arbitrary: fc
        .tuple(range, step)
        .map(([[a, b], by]) => ({ text: `${a}-${b}/${by}`, values: new Set(span(a, b, by)) })),
      weight: 1,
    },
    {
      arbitrary: fc.tuple(value, step).map(([a, by]) => ({ text: `${a}/${by}`, values: new Set(span(a, top, by)) })),
      weight: 1,
    },
    { arbitrary: step.map((by) => ({ text: `*/${by}`, values: new Set(span(low, top, by)) })), weight: 1 },
  );
};

const list = (low: number, high: number, top = high): fc.Arbitrary<RandomField> =>
  fc.array(term(low, high, top), { minLength: 1, maxLength: 3 }).map((terms) => ({
    text: terms.map(({ text }) => text).join(","),
    values: new Set(terms.flatMap(({ values }) => [...values])),
  }));

const every = (low: number, high: number): fc.Arbitrary<RandomField> =>
  fc.constant({ text: "*", values: new Set(span(low, high)) });

const minute = fc.oneof({ weight: 5, arbitrary: list(0, 59) }, { weight: 1, arbitrary: every(0, 59) });
/** Clocks change at night, so that is where schedules are. */
const hour = fc.oneof(
  { weight: 4, arbitrary: list(0, 4, 23) },
  { weight: 2, arbitrary: list(0, 23) },
  { weight: 2, arbitrary: every(0, 23) },
);
const month = fc.oneof({ weight: 4, arbitrary: every(1, 12) }, { weight: 1, arbitrary: list(1, 12) });
/** `from/step` runs to 6 in the days of the week, 7 is only ever written alone. */
const dayOfWeek = fc.oneof(
  list(0, 6),
  fc.constantFrom(
    { text: "7", values: new Set([0]) },
    { text: "sat,7", values: new Set([0, 6]) },
    { text: "5-7", values: new Set([0, 5, 6]) },
    { text: "MON-fri", values: new Set(span(1, 5)) },
    { text: "WED-SUN", values: new Set([0, 3, 4, 5, 6]) },
  ),
);

/** Five-field cron in all its combinations of day fields. */
export const unixSchedules: fc.Arbitrary<RandomSchedule> = fc
  .record({
    minute,
    hour,
    dayOfMonth: fc.oneof(every(1, 31), list(1, 28, 31)),
    month,
    dayOfWeek: fc.oneof(every(0, 6), dayOfWeek),
  })
  .map(({ minute, hour, dayOfMonth, month, dayOfWeek }) => {
    const both = dayOfMonth.text.startsWith("*") || dayOfWeek.text.startsWith("*");
    return {
      expression: [minute, hour, dayOfMonth, month, dayOfWeek].map(({ text }) => text).join(" "),
      wildcard: minute.text.startsWith("*") || hour.text.startsWith("*"),
      minutes: minute.values,
      hours: hour.values,
      day(date: Date) {
        const inMonth = dayOfMonth.values.has(date.getUTCDate());
        const inWeek = dayOfWeek.values.has(date.getUTCDay());
        return month.values.has(date.getUTCMonth() + 1) && (both ? inMonth && inWeek : inMonth || inWeek);
      },
    };
  });

/** One of EventBridge's day fields, with the other open. */
interface RandomDays {
  readonly text: readonly [dayOfMonth: string, dayOfWeek: string];
  matches(date: Date): boolean;
}

const lastDay = (date: Date) => new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
const isWorkday = (date: Date) => date.getUTCDay() % 6 !== 0;

/** The workday nearest to `day` within its month, found by going outwards. */
const nearestWorkday = (date: Date, day: number): number | undefined => {
  if (day > lastDay(date)) return undefined;
  for (const distance of [0, -1, 1, -2, 2]) {
    const candidate = day + distance;
    const tried = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), candidate));
    if (tried.getUTCMonth() === date.getUTCMonth() && isWorkday(tried)) return candidate;
  }
  return undefined;
};

const weekday = fc.integer({ min: 0, max: 6 });
const weekdayNames = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const eventBridgeDays: fc.Arbitrary<RandomDays> = fc.oneof(
  fc.constant<RandomDays>({ text: ["*", "?"], matches: () => true }),
  list(1, 28, 31).map<RandomDays>(({ text, values }) => ({
    text: [text, "?"],
    matches: (date) => values.has(date.getUTCDate()),
  })),
  fc.constant<RandomDays>({ text: ["L", "?"], matches: (date) => date.getUTCDate() === lastDay(date) }),
  fc.constant<RandomDays>({
    text: ["LW", "?"],
    matches: (date) =>
      isWorkday(date) &&
      span(date.getUTCDate() + 1, lastDay(date)).every(
        (day) => !isWorkday(new Date(date.getTime() + (day - date.getUTCDate()) * dayMs)),
      ),
  }),
  fc.integer({ min: 1, max: 31 }).map<RandomDays>((day) => ({
    text: [`${day}W`, "?"],
    matches: (date) => nearestWorkday(date, day) === date.getUTCDate(),
  })),
  weekday.map<RandomDays>((day) => ({
    text: ["?", `${day + 1}L`],
    matches: (date) => date.getUTCDay() === day && date.getUTCDate() + 7 > lastDay(date),
  })),
  fc.tuple(weekday, fc.integer({ min: 1, max: 5 })).map<RandomDays>(([day, nth]) => ({
    text: ["?", `${weekdayNames[day]}#${nth}`],
    matches: (date) => date.getUTCDay() === day && Math.ceil(date.getUTCDate() / 7) === nth,
  })),
  fc.tuple(weekday, weekday).map<RandomDays>(([first, last]) => ({
    text: ["?", `${first + 1}-${weekdayNames[last]}`],
    matches: (date) => (date.getUTCDay() - first + 7) % 7 <= (last - first + 7) % 7,
  })),
  fc.constant<RandomDays>({ text: ["?", "L"], matches: (date) => date.getUTCDay() === 6 }),
);

/** Hours that go round midnight, which only EventBridge takes. */
const wrappedHours = fc
  .tuple(fc.integer({ min: 20, max: 23 }), fc.integer({ min: 0, max: 5 }))
  .map(([first, last]) => ({
    text: `${first}-${last}`,
    values: new Set([...span(first, 23), ...span(0, last)]),
  }));

/** EventBridge's six fields. */
export const eventBridgeSchedules: fc.Arbitrary<RandomSchedule> = fc
  .record({
    minute,
    hour: fc.oneof(hour, wrappedHours),
    days: eventBridgeDays,
    month,
    years: fc.constantFrom("*", "1970-2199", "*/1"),
  })
  // 31W in short months only never fires, and is refused: another test's business.
  .filter(({ days, month }) => !/^(29|3\d)W$/.test(days.text[0]) || month.values.has(1))
  .map(({ minute, hour, days, month, years }) => ({
    expression: `cron(${minute.text} ${hour.text} ${days.text[0]} ${month.text} ${days.text[1]} ${years})`,
    wildcard: minute.text.startsWith("*") || hour.text.startsWith("*"),
    minutes: minute.values,
    hours: hour.values,
    day: (date: Date) => month.values.has(date.getUTCMonth() + 1) && days.matches(date),
  }));
