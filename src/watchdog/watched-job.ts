/** The part of a job's definition that tells whether it is well. What `defineJob` returns is one. */
import type { Job } from "../job.ts";

export type WatchedJob = Pick<Job, "name" | "schedule" | "timeoutMs" | "jitterMs" | "skewMs" | "dryRun" | "alert"> & {
  readonly catchUp: Pick<Job["catchUp"], "startAt">;
};

/** A job, or how to come by it: what can't be loaded or defined is reported, and hides none of the others. */
export type WatchedEntry = WatchedJob | (() => WatchedJob | Promise<WatchedJob>);
