/** What all acts on a job have in common: where the table is, who does it and why, and whether it is meant. */
import type { Command } from "commander";
import type { Act, ControlState, EndingAct, RunEntry } from "../control/control-store.ts";
import type { Ended } from "../operate/acts.ts";
import { jobsOption, jsonOption } from "./arguments.ts";
import { type ConfirmOptions, confirmed, yesOption } from "./confirm.ts";
import { addTableOptions } from "./control-table.ts";
import { knownState } from "./known-job.ts";
import { actOf, byOption, type ActOptions as Told, whyOption } from "./operator.ts";
import { openProject, type ProjectOptions } from "./project.ts";
import { elapsed } from "./run-words.ts";

export interface JobActOptions extends ProjectOptions, Told, ConfirmOptions {
  /** Fences out the run that holds the lease. */
  readonly cancel?: boolean;
  readonly json?: boolean;
}

export const addActOptions = (command: Command): Command =>
  addTableOptions(command)
    .addOption(whyOption())
    .addOption(byOption())
    .addOption(yesOption())
    .addOption(jobsOption())
    .addOption(jsonOption());

/** For acts that can't be done under a run. */
export const cancelFlag = ["--cancel", "fences out the run that holds the lease, if one does"] as const;

/**
 * Opens the table, says what will be done to the job as it is, and asks. The act is then for the fence that was seen: it is
 * refused when another run has been granted the lease meanwhile.
 * @param will what will be done, as a sentence without its full stop
 */
export const prepareAct = async (job: string, options: JobActOptions, will: (state: ControlState) => string) => {
  const told = actOf(options);
  const { store, deps } = await openProject(options);
  const state = await knownState(store, job, options.jobs);
  await confirmed(`${will(state)}${underRun(state, options)}`, options);
  return { act: endingAct(told, state, options), told, deps, state };
};

export const endingAct = (told: Act, state: ControlState | undefined, { cancel }: JobActOptions): EndingAct => ({
  ...told,
  ...(state === undefined ? {} : { fence: state.fence }),
  ...(cancel ? { cancel: true } : {}),
});

/** What it means for the run that goes, if one does. */
export const underRun = ({ owner, run }: Partial<ControlState>, { cancel }: JobActOptions): string =>
  owner === undefined || run === undefined || !cancel
    ? ""
    : `; run ${run.id} is fenced out, and what it committed stays`;

export const runSince = ({ id, startedAt }: RunEntry, now: number): string =>
  `run ${id}, which has been going for ${elapsed(now - startedAt)}`;

/** What became of the run, for the command's last line. */
export const alsoCancelled = ({ cancelled }: Ended): string =>
  cancelled === undefined ? "" : `; run ${cancelled.id} was cancelled`;

export const cancelledJson = ({ cancelled }: Ended) => ({ cancelled: cancelled?.id ?? null });
