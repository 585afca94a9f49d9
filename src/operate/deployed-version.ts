/** Which build answers as a job's function: a run straight after a deployment may still meet the old one. */
import { pause, systemClock } from "../clock.ts";
import { CronfenceError, hasCode } from "../errors.ts";
import type { FunctionFailedError } from "./lambda-invoker.ts";
import type { StartDeps } from "./start-run.ts";

type ProbeDeps = Pick<StartDeps, "invoker" | "functionName">;

/**
 * The version of the function that answers for `job` now; `undefined` where it knows none, or is too old to say.
 * @throws CronfenceError (`WRONG_FUNCTION`) when the function is another job's, or no job's
 */
export const deployedVersion = async (job: string, deps: ProbeDeps): Promise<string | undefined> => {
  let answer: unknown;
  try {
    answer = await deps.invoker.ask(deps.functionName, { probe: true }, answersWithinMs);
  } catch (error) {
    // A build from before there were probes takes it for an event that it doesn't understand.
    const refused =
      hasCode(error, "FUNCTION_FAILED") && (error as FunctionFailedError).errorType === "InvalidEventError";
    if (refused) return undefined;
    throw error;
  }
  const { job: named, version } = (answer ?? {}) as { job?: unknown; version?: unknown };
  if (named === job) return typeof version === "string" ? version : undefined;
  throw new CronfenceError(
    "WRONG_FUNCTION",
    `function ${deps.functionName} isn't job "${job}"${typeof named === "string" ? ` but "${named}"` : ""}; nothing was run`,
  );
};

/** A cold start, and time to spare. */
const answersWithinMs = 30_000;

/**
 * Waits until the job's function answers as `version`.
 *
 * @param withinMs how long, in milliseconds
 * @param onAnswer told of each other version that answers
 * @throws CronfenceError (`VERSION_NOT_SEEN`) when it doesn't in time, or `signal` aborts, and as `deployedVersion` does
 */
export const waitForVersion = async (
  job: string,
  version: string,
  deps: ProbeDeps &
    Pick<StartDeps, "clock"> & {
      readonly withinMs: number;
      readonly onAnswer?: (version: string | undefined) => void;
      readonly signal?: AbortSignal;
    },
): Promise<void> => {
  const { clock = systemClock } = deps;
  const until = clock.now() + deps.withinMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    const answered = await deployedVersion(job, deps);
    if (answered === version) return;
    deps.onAnswer?.(answered);
    if (clock.now() + pauseMs > until || deps.signal?.aborted) {
      const is = answered === undefined ? "a build that doesn't say its version" : `version ${answered}`;
      throw new CronfenceError(
        "VERSION_NOT_SEEN",
        `job "${job}": function ${deps.functionName} answers as ${is}, and not as ${version}; nothing was run`,
      );
    }
    await pause(clock, pauseMs, deps.signal);
  }
};

const firstPauseMs = 500;
const longestPauseMs = 5_000;
