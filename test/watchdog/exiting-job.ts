/**
 * A job that commits once and then ends its process in its own code, or hangs, as a process of its own: what would have been
 * said at its end is lost. Its metrics go to standard output.
 */
import { defineJob, runJob } from "cronfence";

const [name = "", how] = process.argv.slice(2);

const job = defineJob({
  name,
  timeout: "5m",
  metrics: "emf",
  run: async (run) => {
    await run.commit([], { items: 7 });
    process.stdout.write(`run ${run.id}\n`);
    if (how === "exit") process.exit(0);
    await new Promise(() => setInterval(() => {}, 1_000));
  },
});

await runJob(job, { kind: "schedule", tick: Date.now() });
