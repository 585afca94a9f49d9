/**
 * `cronfence/testing`: a local DynamoDB, a clock that tests set, a proxy that makes requests go wrong, and tables in
 * one line; rehearsals of a job, and of its alarms, over simulated time. Nothing here is needed, or should be imported, in production.
 */
export type { Alarm } from "../alarms/alarm.ts";
export {
  type AlarmChange,
  type AlarmMonitor,
  type AlarmState,
  type Datum,
  type MetricPoint,
  type MonitorOptions,
  monitorAlarm,
  nextState,
  replayAlarm,
} from "../alarms/evaluator.ts";
export {
  type AlarmRehearsal,
  type AlarmRehearsalOptions,
  type Page,
  rehearsalText,
  rehearseAlarms,
  type Stretch,
} from "../alarms/rehearsal.ts";
export { type Engine, type EngineOptions, localClientConfig, startEngine } from "../local/engine.ts";
export { EngineUnavailableError } from "../local/engine-error.ts";
export type { Account, LeftOut, TickCounts } from "../rehearse/account.ts";
export type { Span } from "../rehearse/deliveries.ts";
export { type Rehearsal, type RehearseOptions, rehearse } from "../rehearse/rehearse.ts";
export { DrillFailedError } from "./drills/drill-failed-error.ts";
export type { DrillName } from "./drills/drill-names.ts";
export type { DrillOptions, Seeded } from "./drills/drill-options.ts";
export { type Drill, drills } from "./drills/drills.ts";
export type { OutsideCall } from "./drills/outside-calls.ts";
export { ExplorationFailedError, type FoundFailure } from "./explore/exploration-failed-error.ts";
export { type Exploration, explore } from "./explore/explore.ts";
export type { ExploreOptions } from "./explore/explore-options.ts";
export type { FaultKind, ScheduledFault } from "./explore/schedule.ts";
export type { CancellationReason, Fault, Reply, SingleFault } from "./fault.ts";
export {
  type FaultFor,
  type FaultProxy,
  type FaultProxyOptions,
  type Match,
  type ProxiedRequest,
  type Rule,
  startFaultProxy,
} from "./fault-proxy.ts";
export { type SettableClock, type SettableClockOptions, settableClock } from "./settable-clock.ts";
export { createTable, dumpTable, type Item, type TableDefinition, type TableKey } from "./tables.ts";
