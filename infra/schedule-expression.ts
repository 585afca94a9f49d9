/**
 * A job's schedule in EventBridge's words, such that it fires at the schedule's own ticks.
 *
 * A rate becomes a cron wherever one says the same. As a rate EventBridge would count from when the schedule was made, beside
 * the ticks; a StartDate would mend that, but may not lie in the past, and so would differ from deploy to deploy. A rate
 * that no cron says is refused.
 */
import type { Schedule } from "cronfence";
import { toEventBridge } from "../src/schedule/convert/index.ts";
import { rateText } from "../src/schedule/rate.ts";

export type ScheduleExpression =
  | { readonly expression: string; readonly zone: string }
  /** Why there is none, and what to write instead. */
  | { readonly problem: string };

export const scheduleExpression = (schedule: Schedule): ScheduleExpression => {
  const found = schedule.kind === "rate" ? rateAsCron(schedule) : cronOf(schedule);
  if ("problem" in found) return found;
  // https://docs.aws.amazon.com/scheduler/latest/APIReference/API_CreateSchedule.html
  if (found.expression.length > 256) {
    return {
      problem: `"${schedule.source}" is ${found.expression.length} characters long in EventBridge's words, and it takes 256`,
    };
  }
  if (found.zone.length > 50) return { problem: `EventBridge takes no zone of more than 50 characters: ${found.zone}` };
  return found;
};

const cronOf = (schedule: Schedule): ScheduleExpression => {
  const conversion = toEventBridge(schedule);
  return conversion.ok
    ? { expression: conversion.expression, zone: schedule.zone }
    : { problem: `"${schedule.source}": ${conversion.reason}; ${conversion.instead}` };
};

const minutesIn: Readonly<Record<string, number>> = { minute: 1, hour: 60, day: 1_440 };

const rateAsCron = (schedule: Schedule): ScheduleExpression => {
  const [count, unit = ""] = rateText(schedule).split(" ");
  const every = Number(count) * (minutesIn[unit.replace(/s$/, "")] ?? Number.NaN);
  const first = (schedule.next(-1) ?? Number.NaN) / 60_000;
  if (!Number.isInteger(first)) {
    return {
      problem: `"${schedule.source}": its anchor isn't at a whole minute, and EventBridge counts in whole minutes`,
    };
  }
  const from = first % every;
  const cron = (minute: string, hour: string) => ({ expression: `cron(${minute} ${hour} * * ? *)`, zone: "UTC" });
  if (60 % every === 0) return cron(every === 60 ? `${from}` : every === 1 ? "*" : `${from}/${every}`, "*");
  if (every % 60 === 0 && 1_440 % every === 0) {
    const hour = Math.floor(from / 60);
    return cron(`${from % 60}`, every === 1_440 ? `${hour}` : `${hour}/${every / 60}`);
  }
  return {
    problem:
      `"${schedule.source}": EventBridge counts a rate from when the schedule is made, not from the job's ticks, and no cron says ` +
      "the same; write a rate that divides an hour or a day evenly (such as 5 minutes or 6 hours), or a cron",
  };
};
