/** `cronfence rewind`: sets a job's watermark. */
import { type Command, InvalidArgumentError } from "commander";
import type { Json } from "../json.ts";
import {
  addActOptions,
  alsoCancelled,
  cancelFlag,
  cancelledJson,
  type JobActOptions,
  prepareAct,
} from "./act-options.ts";
import { print, printJson } from "./exit.ts";

interface RewindOptions extends JobActOptions {
  readonly to: { readonly watermark: Json };
}

export const addRewind = (program: Command): void => {
  addActOptions(
    program
      .command("rewind")
      .argument("<job>", "the job's name")
      .description("sets the watermark, mostly back: the next run goes on from there. Both watermarks are recorded")
      .requiredOption("--to <json>", "the new watermark as JSON; null takes it away", watermark)
      .option(...cancelFlag),
  )
    .addHelpText(
      "after",
      "\nNo tick is owed again for it: start a run to do the work now." +
        '\n\nExample:\n  npx cronfence rewind expire-carts --to \'"2026-03-01T00:00:00Z"\' --why "wrong prices since then" --yes',
    )
    .action(rewind);
};

/** Wrapped: `null` is a watermark, too. */
const watermark = (text: string): { readonly watermark: Json } => {
  try {
    return { watermark: JSON.parse(text) as Json };
  } catch {
    throw new InvalidArgumentError(`It must be JSON; a text is in quotes: '${JSON.stringify(text)}'.`);
  }
};

const rewind = async (job: string, options: RewindOptions): Promise<void> => {
  const to = options.to.watermark;
  const shown = to === null ? "taken away" : `set to ${JSON.stringify(to)}`;
  const { act, told, deps } = await prepareAct(
    job,
    options,
    () => `the watermark of ${job} is ${shown}: the next run goes on from there, whatever was done beyond it`,
  );
  const { rewindJob } = await import("../operate/acts.ts");
  const ended = await rewindJob(job, { ...act, watermark: to }, deps);
  if (options.json) return printJson({ job, watermark: to, ...told, ...cancelledJson(ended) });
  const here = options.local === undefined ? "" : ` --here --local ${options.local}`;
  print(
    `the watermark of ${job} is ${shown}${alsoCancelled(ended)}; to do the work now: npx cronfence run ${job}${here}`,
  );
};
