/**
 * The lease for an existing middy handler.
 *
 * middy runs no `after` and no `onError` of any middleware when another one answers early, from any of its phases. Then
 * a lease taken in `before` would stay taken, and a run that failed would look like one that is still going. So the run
 * also ends where middy reads the request's response at last: an early answer by another middleware while the run is
 * open makes that read wait for the run's end.
 */
import type { MiddlewareObj, Request } from "@middy/core";
import type { Context } from "aws-lambda";
import { acquireLease, type LeaseSpec, openAttempt, type OverlapPolicy } from "../attempt.ts";
import { dynamoStore } from "../control/dynamo-store.ts";
import { type Duration, milliseconds } from "../duration.ts";
import { CronfenceError, InvalidOptionsError } from "../errors.ts";
import { type LiveRun, liveRun } from "../live-run.ts";
import { traitsOf } from "../outcome.ts";
import type { RunReport } from "../report.ts";
import { endRun } from "../run.ts";
import { type Run, runContext } from "../run-context.ts";
import type { Ending } from "../run-record.ts";
import type { Schedule } from "../schedule/index.ts";
import { unknownOption } from "../unknown-option.ts";
import { type LambdaDeps, platformDeps, triggerOf } from "./handler.ts";

export interface FencedLeaseOptions extends LambdaDeps {
  /** The job's name: letters, digits, `-` and `_`, at most 64. */
  readonly job: string;
  /** The control table. @default the environment's CRONFENCE_TABLE, or else "cronfence" */
  readonly table?: string;
  /** How long a lease lasts that nobody renews. @default "30s" */
  readonly ttl?: Duration;
  /** How far two machines' clocks may differ. @default "10s" */
  readonly skew?: Duration;
  /** See `JobOptions.overlap`. A queued tick is run by the platform's next delivery here. @default "queue" */
  readonly overlap?: OverlapPolicy;
  /** How long a run may take. @default what the invocation has left, less a reserve */
  readonly timeout?: Duration;
  /** Lets a run cover the ticks that were missed before it, and names the next one in logs and records. */
  readonly schedule?: Schedule;
}

/** A Lambda context with the run: what handlers get after `.use(fencedLease(…))`. */
export type FencedContext = Context & { readonly run: Run };
