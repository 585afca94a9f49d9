/** Files with problems, for commands that go on with the other files: one line for each, and the command ends with 1. */
import { report, trace } from "./exit.ts";
import type { FoundJobs } from "./load-jobs.ts";

export const reportProblems = ({ problems }: FoundJobs): void => {
  for (const { file, messages, error } of problems) {
    for (const message of messages) report(`${file}: ${message}`);
    trace(error);
  }
};

/** The same for programs. */
export const problemsOf = ({ problems }: FoundJobs) =>
  problems.flatMap(({ file, messages }) => messages.map((message) => ({ file, message })));
