/**
 * `cronfence`: define jobs and run them. Withheld on purpose: the expressions and attributes of the control table, which
 * only src/control knows, and the live run behind a `Run`.
 */
export type { Alert, AlertOptions } from "./alert.ts";
export type { LeaseSpec, OverlapPolicy, RunDeps } from "./attempt.ts";
export { type Clock, systemClock } from "./clock.ts";
export type {
  AcquireRequest,
  AcquireResult,
  Act,
  ActKind,
  ActPage,
  ActRecord,
  Approval,
  Budget,
  Commit,
  CommitResult,
  ControlState,
  ControlStore,
  EndingAct,
  Finish,
  FinishResult,
  Healed,
  Lease,
  Moving,
  OnceState,
  ParkedItem,
  ParkedPage,
  Paused,
  RunEntry,
  RunPage,
  RunRecord,
  SeenAct,
  TickPart,
  TickRange,
  TriggerKind,
  Tripped,
} from "./control/control-store.ts";
export { type DynamoStore, dynamoStore, type StoreOptions } from "./control/dynamo-store.ts";
export { createControlTable } from "./control/table.ts";
export type { PreparedWrites, Write } from "./control/writes.ts";
export type { Deployment, DeploymentOptions, TableAccess } from "./deployment.ts";
export type { Duration } from "./duration.ts";
export {
  ActRefusedError,
  BackfillRefusedError,
  CommitRefusedError,
  CronfenceError,
  EffectUnknownError,
  GuardTrippedError,
  hasCode,
  InvalidOptionsError,
  InvalidScheduleError,
  JobMovedError,
  LeaseLostError,
  NotDoneError,
  OutcomeUnknownError,
  ParkedItemsFailedError,
  ParkLimitError,
  PredecessorUnfinishedError,
  type RejectedWrite,
  RunEndedError,
  RunInterruptedError,
  RunTimedOutError,
  SilentFailureError,
  SourceError,
  StoreUnavailableError,
  TickChangedError,
  WriteRejectedError,
} from "./errors.ts";
export { defineJob, type Job, type JobOptions, type Limit, type TickResult, type Watches, type Work } from "./job.ts";
export type { Json } from "./json.ts";
export { type CloudWatchOptions, cloudWatchSink } from "./observe/cloudwatch.ts";
export { type EmfOptions, emfSink } from "./observe/emf.ts";
export type { Logger } from "./observe/log.ts";
export type { MetricName, MetricSet, MetricsKind, MetricsSink } from "./observe/metrics.ts";
export { isScheduledRun, type ObservedOptions, observed, type SilentFailure } from "./observe/observed.ts";
export type { EndedRun, RunObserver, StartedRun } from "./observe/observers.ts";
export type { PingUrls } from "./observe/ping.ts";
export { runMetrics } from "./observe/run-metrics.ts";
export type { OnUnknown } from "./on-unknown.ts";
export type { Effect } from "./once.ts";
export type { AttemptOutcome, Outcome, RunOutcome } from "./outcome.ts";
export type { RunReport } from "./report.ts";
export { runJob } from "./run.ts";
export type { CommitOptions, Run, RunInfo, Tick, TickRun } from "./run-context.ts";
export { type CronOptions, cron, type RateOptions, rate, type Schedule } from "./schedule/index.ts";
export type { Trigger } from "./trigger.ts";
export type { Destructive } from "./work/guard.ts";
