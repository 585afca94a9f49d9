/** `cronfence why`: one tick in sentences, with the evidence. */
import type { Command } from "commander";
import type { Explanation } from "../ledger/explain.ts";
import { explainTick } from "../operate/ledger.ts";
import { instant, jobsOption, jsonOption } from "./arguments.ts";
import { addTableOptions } from "./control-table.ts";
import { print, printJson } from "./exit.ts";
import { iso } from "./instants.ts";
import { painted } from "./paint.ts";
import { openProject, type ProjectOptions, projectJob } from "./project.ts";
import { goingJson, recordJson } from "./run-words.ts";

interface WhyOptions extends ProjectOptions {
  readonly json?: boolean;
}

export const addWhy = (program: Command): void => {
  addTableOptions(
    program
      .command("why")
      .argument("<job>", "the job's name")
      .argument("<tick>", "the tick, an instant such as 2026-03-01T06:30:00Z", instant)
      .description("explains what became of one tick, and what will happen next, with the runs that say so"),
  )
    .addOption(jobsOption())
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  npx cronfence why expire-carts 2026-03-01T06:30:00Z")
    .action(why);
};

const why = async (name: string, tick: number, options: WhyOptions): Promise<void> => {
  const { deps } = await openProject(options);
  const explanation = await explainTick(await projectJob(name, options), tick, deps);
  if (options.json) return printJson(asJson(explanation));
  const { entry, sentences } = explanation;
  print([painted(entry.state), ...sentences.flatMap((sentence) => wrapped(sentence))].join("\n"));
};

const widest = 100;

/** Broken at spaces, further lines indented. */
const wrapped = (sentence: string): string[] => {
  const lines: string[] = [];
  let line = "-";
  for (const word of sentence.split(/\s+/)) {
    if (line.length + 1 + word.length <= widest) line += ` ${word}`;
    else {
      lines.push(line);
      line = `  ${word}`;
    }
  }
  return [...lines, line];
};

const asJson = ({ job, entry, sentences, evidence, upcoming }: Explanation) => {
  const { tick, lateFrom, ...rest } = entry;
  const { runs, acts, moreRuns, holder } = evidence;
  return {
    job,
    tick: iso(tick),
    ...rest,
    ...(lateFrom === undefined ? {} : { lateFrom: iso(lateFrom) }),
    sentences,
    evidence: {
      runs: runs.map(recordJson),
      moreRuns,
      acts: acts.map(({ kind, at, by, why }) => ({ kind, at: iso(at), by, why })),
      holder:
        holder === undefined ? null : { ...goingJson(holder), fence: holder.fence, leaseUntil: iso(holder.leaseUntil) },
    },
    upcoming: upcoming.map(({ at, ...next }) => ({ ...next, ...(at === undefined ? {} : { at: iso(at) }) })),
  };
};
