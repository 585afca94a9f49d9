/** The part of a job's definition that tells what becomes of its ticks. What `defineJob` returns is one. */
import type { Job } from "../job.ts";
import type { WatchedJob } from "../watchdog/watched-job.ts";

export type ExplainedJob = WatchedJob & Pick<Job, "catchUp">;
