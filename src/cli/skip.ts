/** `cronfence skip`: settles owed ticks without doing them. */
import type { Command } from "commander";
import {
  addActOptions,
  alsoCancelled,
  cancelFlag,
  cancelledJson,
  type JobActOptions,
  prepareAct,
} from "./act-options.ts";
import { instant } from "./arguments.ts";
import { print, printJson } from "./exit.ts";
import { iso } from "./instants.ts";
import { projectJob } from "./project.ts";

interface SkipOptions extends JobActOptions {
  readonly through?: boolean;
}

export const addSkip = (program: Command): void => {
  addActOptions(
    program
      .command("skip")
      .argument("<job>", "the job's name")
      .argument("<tick>", "the tick, an instant such as 2026-03-01T06:30:00Z", instant)
      .description("settles a tick without doing it; where older ones are owed too, it must be told to skip them")
      .option("--through", "skips all older ticks that are owed, too")
      .option(...cancelFlag),
  )
    .addHelpText(
      "after",
      "\nThe watermark isn't touched: a job that works by its watermark does the work with the next tick all the same." +
        '\n\nExample:\n  npx cronfence skip expire-carts 2026-03-01T06:30:00Z --why "the shop was closed" --yes',
    )
    .action(skip);
};

const skip = async (name: string, tick: number, options: SkipOptions): Promise<void> => {
  const older = options.through ? ", and all older ones that are owed," : "";
  const { act, told, deps } = await prepareAct(
    name,
    options,
    () => `tick ${iso(tick)} of ${name}${older} is settled without being done`,
  );
  const job = await projectJob(name, options);
  const { skipTick } = await import("../operate/skip-tick.ts");
  const skipped = await skipTick(job, tick, { ...act, ...(options.through ? { through: true } : {}) }, deps);
  const { from, through, count } = skipped.ticks;
  if (options.json) {
    return printJson({
      job: name,
      ticks: { from: iso(from), through: iso(through), count },
      ...told,
      ...cancelledJson(skipped),
    });
  }
  const which = count === 1 ? `tick ${iso(through)}` : `${count} ticks, from ${iso(from)} through ${iso(through)},`;
  print(`${which} of ${name} ${count === 1 ? "is" : "are"} settled without being done${alsoCancelled(skipped)}`);
};
