/**
 * The job as a drill runs it: the same code, with its own metrics and pings left out, whose effects (`run.once`) are counted and
 * which can be held back at the points where its own code hands something to cronfence.
 */
import type { Job, Work } from "../../job.ts";
import type { Effect } from "../../once.ts";
import type { Run } from "../../run-context.ts";
import { placeHere } from "./machine.ts";

/** What became of an effect, by its key: which a person would have to find out. */
interface EffectSeen {
  begun: number;
  done: number;
}

export interface JobWatch {
  readonly effects: Map<string, EffectSeen>;
  /** Awaited wherever the job's own code is about to hand over writes, or to end. */
  step?: (() => Promise<void>) | undefined;
}

export const watchedJob = (job: Job, watch: JobWatch): Job => {
  const { ping: _, ...rest } = job;
  return { ...rest, metrics: "off", work: watchedWork(job.work, watch) };
};

const watchedWork = (work: Work, watch: JobWatch): Work => {
  if (work.shape === "tick") {
    return { ...work, tick: (tick, run) => stepped(watch, work.tick(tick, watchedRun(run as Run, watch))) };
  }
  if (work.shape === "source") {
    return { ...work, process: (item, run) => stepped(watch, work.process(item, watchedRun(run as Run, watch))) };
  }
  return { ...work, run: (run) => stepped(watch, work.run(watchedRun(run, watch))) };
};

/** A result, handed over when the drill lets it pass. */
const stepped = <Result>(watch: JobWatch, result: Result): Result => {
  const { step } = watch;
  if (step === undefined) return result;
  const held = async () => {
    const settled = await result;
    await step();
    return settled;
  };
  // Where it may be a promise, it may always be one.
  return held() as Result;
};

/** A run whose effects are noted, and whose commits wait for a drill that holds them back. */
const watchedRun = (run: Run, watch: JobWatch): Run => {
  const once: Run["once"] = (key, effect) => {
    const seen = watch.effects.get(key) ?? { begun: 0, done: 0 };
    watch.effects.set(key, seen);
    return run.once(key, async (handed: Effect) => {
      seen.begun += 1;
      const { machine } = placeHere() ?? {};
      const result = await (machine === undefined ? effect(handed) : machine.run(() => effect(handed), key));
      seen.done += 1;
      return result;
    });
  };
  const commit: Run["commit"] = async (writes, options) => {
    await watch.step?.();
    return run.commit(writes, options);
  };
  return Object.create(run, {
    once: { value: once },
    ...(watch.step === undefined ? {} : { commit: { value: commit } }),
  });
};
