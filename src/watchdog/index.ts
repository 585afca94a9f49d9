/**
 * `cronfence/watchdog`: notices what doesn't happen. The watchdog job, the judgement that it passes on a job, the alarms that
 * stand on its metrics, and what they cost.
 */
export { type Alarm, alarmProblems } from "../alarms/alarm.ts";
export { type AlarmCost, alarmCost } from "../alarms/cost.ts";
export { type AlarmedJob, deadLetterAlarm, type JobAlarms, jobAlarms, watchdogAlarm } from "../alarms/job-alarms.ts";
export { type Done, type Duty, dutyOf, lateAfterMs } from "./duty.ts";
export type { Finding } from "./findings.ts";
export { type Judgement, type JudgeOptions, judge, type Remark, type Suspect } from "./judge.ts";
export { type StartJob, type WatchOptions, type WatchReport, watch } from "./watch.ts";
export { UnwatchedError, type WatchdogOptions, watchdog } from "./watchdog.ts";
export type { WatchedEntry, WatchedJob } from "./watched-job.ts";
