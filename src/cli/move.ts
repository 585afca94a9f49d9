/** `cronfence move`: a renamed job keeps its watermark, its fence and what it owes. */
import type { Command } from "commander";
import {
  addActOptions,
  alsoCancelled,
  cancelFlag,
  cancelledJson,
  type JobActOptions,
  prepareAct,
} from "./act-options.ts";
import { print, printJson } from "./exit.ts";

export const addMove = (program: Command): void => {
  addActOptions(
    program
      .command("move")
      .argument("<old>", "the job's name so far")
      .argument("<new>", "its new name")
      .description("gives a job another name: watermark, fence, owed ticks and parked items go with it")
      .option(...cancelFlag),
  )
    .addHelpText(
      "after",
      "\nNo run is granted under the old name from then on; deploy the definition with the new one. Run records stay where they" +
        "\nare, and `runs` and `ledger` of the new name show them. It can't be" +
        "\ntaken back: the old name stays closed." +
        '\n\nExample:\n  npx cronfence move expire-carts expire-baskets --why "renamed" --yes',
    )
    .action(move);
};

const move = async (from: string, to: string, options: JobActOptions): Promise<void> => {
  const { act, told, deps } = await prepareAct(
    from,
    options,
    () => `${from} is called ${to} from now on, and no run starts under its old name`,
  );
  const { moveJob } = await import("../operate/acts.ts");
  const ended = await moveJob(from, to, act, deps);
  if (options.json) return printJson({ from, to, ...told, ...cancelledJson(ended) });
  print(`${from} is called ${to} now${alsoCancelled(ended)}; deploy its definition under that name`);
};
