/** `cronfence pause`: no new run of a job starts, until it is resumed or the time is up. */
import { type Command, InvalidArgumentError } from "commander";
import { systemClock } from "../clock.ts";
import {
  addActOptions,
  alsoCancelled,
  cancelFlag,
  cancelledJson,
  endingAct,
  type JobActOptions,
  underRun,
} from "./act-options.ts";
import { duration, instant } from "./arguments.ts";
import { confirmed } from "./confirm.ts";
import { print, printJson } from "./exit.ts";
import { iso } from "./instants.ts";
import { stateIfKnown } from "./known-job.ts";
import { actOf } from "./operator.ts";
import { openProject } from "./project.ts";

interface PauseOptions extends JobActOptions {
  readonly until?: number;
}

export const addPause = (program: Command): void => {
  addActOptions(
    program
      .command("pause")
      .argument("<job>", "the job's name")
      .description("keeps new runs from starting; ticks that come meanwhile stay owed")
      .option("--until <when>", "when it ends by itself, an instant or a duration (default: when it is resumed)", until)
      .option(...cancelFlag),
  )
    .addHelpText("after", '\nExample:\n  npx cronfence pause expire-carts --until 2h --why "the shop is moving" --yes')
    .action(pause);
};

const until = (text: string): number => {
  try {
    return systemClock.now() + duration(text);
  } catch {
    const at = instant(text);
    if (at > systemClock.now()) return at;
    throw new InvalidArgumentError("It must be an instant to come, or a duration such as 2h.");
  }
};

const pause = async (job: string, options: PauseOptions): Promise<void> => {
  const end = options.until === undefined ? "until somebody resumes it" : `until ${iso(options.until)}`;
  const told = actOf(options);
  const { store, deps } = await openProject(options);
  // Also one that has never run: that is what the pause may be for.
  const state = await stateIfKnown(store, job, options.jobs);
  const { owner, run } = state ?? {};
  const goes = owner === undefined || run === undefined || options.cancel ? "" : `; run ${run.id} goes on to its end`;
  await confirmed(`no new run of ${job} starts ${end}${goes}${underRun(state ?? {}, options)}`, options);
  const act = endingAct(told, state, options);
  const { pauseJob } = await import("../operate/acts.ts");
  const ended = await pauseJob(job, { ...act, ...(options.until === undefined ? {} : { until: options.until }) }, deps);
  if (options.json) {
    return printJson({
      job,
      until: options.until === undefined ? null : iso(options.until),
      ...told,
      ...cancelledJson(ended),
    });
  }
  print(`${job} is paused ${end}${alsoCancelled(ended)}`);
};
