/**
 * The processes that run the jobs of a long drill, as a platform would have them: a free one gets the next delivery, a dead
 * one is replaced. Each takes one delivery at a time.
 */
import type { RunReport } from "cronfence";
import type { FireCommand } from "../worker.ts";
import { isHolding, startWorker, type WorkerProcess } from "../worker-process.ts";
import type { Chance } from "./deck.ts";

interface Post {
  readonly name: string;
  worker: WorkerProcess | undefined;
  busy: boolean;
  stopped: boolean;
}

export interface Crew {
  /** Has a free process do it; `undefined` where there is none. Rejects as the run does, or when its process is killed. */
  fire(command: Omit<FireCommand, "do">): Promise<RunReport> | undefined;
  /** SIGSTOP to one of those that run something; what continues it, or `undefined` where there is none to stop. */
  stopOne(): Promise<(() => void) | undefined>;
  /** SIGKILL to one of those that run something, which is then replaced; whether there was one. */
  killOne(): Promise<boolean>;
  /** Continues all, and resolves when none runs anything and all are there. */
  settled(): Promise<void>;
  end(): Promise<void>;
}

/** A run that is stopped, and then retries until its time is over, takes this long at most on a slow machine. */
const patienceMs = 60_000;

export const startCrew = async (
  size: number,
  where: { readonly endpoint: string; readonly table: string; readonly bundle: string },
  chance: Chance,
): Promise<Crew> => {
  const posts: Post[] = Array.from({ length: size }, (_, index) => ({
    name: `P${index + 1}`,
    worker: undefined,
    busy: false,
    stopped: false,
  }));
  const going = new Set<Promise<unknown>>();
  const tracked = <T>(work: Promise<T>): Promise<T> => {
    const entry = work.catch(() => {}).finally(() => going.delete(entry));
    going.add(entry);
    return work;
  };
  let ended = false;
  const start = async (post: Post): Promise<void> => {
    const worker = await startWorker(post.name, { ...where, patienceMs });
    if (ended) return worker.end();
    post.worker = worker;
  };
  await Promise.all(posts.map(start));

  const fireOn = async (post: Post, worker: WorkerProcess, command: Omit<FireCommand, "do">): Promise<RunReport> => {
    post.busy = true;
    try {
      const report = await worker.fire(command);
      if (isHolding(report)) throw new Error("a process held a call back that it wasn't asked to");
      return report;
    } finally {
      post.busy = false;
    }
  };
  const running = (): readonly (Post & { worker: WorkerProcess })[] =>
    posts.filter((post): post is Post & { worker: WorkerProcess } => post.busy && post.worker !== undefined);

  return {
    fire: (command) => {
      const post = chance.pick(posts.filter(({ worker, busy }) => worker !== undefined && !busy));
      return post?.worker === undefined ? undefined : tracked(fireOn(post, post.worker, command));
    },
    stopOne: async () => {
      const post = chance.pick(running().filter(({ stopped }) => !stopped));
      if (post === undefined) return undefined;
      const { worker } = post;
      post.stopped = true;
      await worker.stop();
      return () => {
        if (post.worker !== worker) return;
        post.stopped = false;
        worker.continue();
      };
    },
    killOne: async () => {
      const post = chance.pick(running());
      if (post === undefined) return false;
      const { worker } = post;
      (post as Post).worker = undefined;
      post.stopped = false;
      await worker.kill("SIGKILL");
      void tracked(start(post));
      return true;
    },
    settled: async () => {
      for (const post of posts) {
        post.worker?.continue();
        post.stopped = false;
      }
      while (going.size > 0) await Promise.all(going);
    },
    end: async () => {
      ended = true;
      await Promise.all(posts.map(({ worker }) => worker?.end()));
    },
  };
};
