/**
 * `cronfence/operate`: what the command line does, as functions, for tools of your own. Reads show how jobs are doing and what
 * became of each tick; acts are fenced and recorded.
 */
export type {
  Act,
  ActKind,
  ActRecord,
  Approval,
  ControlState,
  EndingAct,
  Paused,
  RunEntry,
  RunRecord,
  SeenAct,
  TickRange,
} from "../control/control-store.ts";
export { type LedgerCounts, type LedgerEntry, type TickState, tickStates } from "../ledger/entry.ts";
export type { Explanation } from "../ledger/explain.ts";
export type { Upcoming } from "../ledger/forecast.ts";
export type { Ledger, LedgerSpan } from "../ledger/read-ledger.ts";
export type { Judgement, Remark, Suspect } from "../watchdog/judge.ts";
export {
  type ApproveAct,
  approvePlan,
  cancelRun,
  dropParked,
  type Ended,
  moveJob,
  type PauseAct,
  pauseJob,
  type RewindAct,
  releaseEffect,
  resumeJob,
  retryParked,
  rewindJob,
} from "./acts.ts";
export { type BackfillPlan, type BackfillRun, type BackfillSpan, planBackfill, runBackfill } from "./backfill.ts";
export { deployedVersion, waitForVersion } from "./deployed-version.ts";
export { type Followed, type Following, type FollowOptions, followRun } from "./follow-run.ts";
export {
  FunctionFailedError,
  type FunctionInvoker,
  InvocationUnknownError,
  lambdaInvoker,
} from "./lambda-invoker.ts";
export { explainTick, readLedger } from "./ledger.ts";
export type { OperateDeps } from "./operator.ts";
export { type FoundRun, findRun, listActs, listRuns, type RunFilter } from "./run-history.ts";
export { type SkipAct, type Skipped, skipTick } from "./skip-tick.ts";
export { type StartDeps, type StartedRun, type StartRequest, startRun } from "./start-run.ts";
export { type JobStatus, jobStatuses } from "./statuses.ts";
