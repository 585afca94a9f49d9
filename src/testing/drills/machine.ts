/**
 * A machine that runs the job: a function's environment, played inside this process, that can be paused, thawed and killed at
 * any of its requests to DynamoDB.
 *
 * While it is paused its requests don't reach the engine, replies don't reach it, and none of its timers fires. Once it is
 * dead nothing does any more. That holds for clients of the job's own, too: which machine a request is from is told by the
 * asynchronous context that it was made in.
 *
 * What it can't stop is code of the job that waits for neither DynamoDB nor cronfence: that runs on, as far as it gets.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Clock } from "../../clock.ts";
import type { Fault } from "../fault.ts";
import type { ProxiedRequest } from "../fault-proxy.ts";
import type { SettableClock } from "../settable-clock.ts";

/** Where a piece of code is running. */
interface Place {
  readonly machine: Machine;
  /** Inside an effect of `run.once`: its key. */
  readonly once?: string;
}

/** What happens at one of a machine's requests. */
interface Happening {
  /** Before the engine gets the request; awaited. */
  readonly before?: () => unknown;
  /** When the engine has done it, before the machine hears of that; awaited. */
  readonly after?: () => unknown;
  readonly fault?: Fault;
}

export interface MachineOptions {
  /** How far its clock is ahead of the true time, in milliseconds; negative: behind. @default 0 */
  readonly aheadMs?: number;
  /** How far what the job's own code reads from the machine (`Date.now()`) is ahead of its clock. @default 0 */
  readonly dateAheadMs?: number;
}

export interface Machine {
  readonly id: string;
  readonly clock: Clock;
  /** What `Date.now()` is for the job's own code, in milliseconds since the epoch. */
  dateNow(): number;
  /** Places in the job's own code that asked for it, such as "jobs/report.ts:12:5". */
  readonly dateReaders: Set<string>;
  /** All of its requests to DynamoDB in the order of their arrival, repetitions included. */
  readonly requests: readonly ProxiedRequest[];
  readonly dead: boolean;
  /** Runs `work` on this machine, or in an effect of `run.once` on it. */
  run<Result>(work: () => Result, once?: string): Result;
  /** Lets something happen at its request number `at`, from 0; resolves when it has begun to. */
  at(at: number, happening: Happening): Promise<void>;
  /** What goes wrong with a request that has arrived from this machine. */
  faultFor(request: ProxiedRequest): Fault;
  pause(): void;
  thaw(): void;
  kill(): void;
  /** Ends it for good, and breaks the connections that it still holds: the trial is over. */
  bury(): void;
}

const places = new AsyncLocalStorage<Place>();

/** Where this code is running, unless that is no machine at all. */
export const placeHere = (): Place | undefined => places.getStore();

/** @param time the true time */
export const machineOn = (id: string, time: SettableClock, options: MachineOptions = {}): Machine => {
  const { aheadMs = 0, dateAheadMs = 0 } = options;
  const requests: ProxiedRequest[] = [];
  const happenings = new Map<number, Happening & { begun(): void }>();
  let state: "running" | "paused" | "dead" = "running";
  /** Settled by a thaw, or rejected by a burial. */
  let resume = withResolvers();
  /** Timers that came due during a pause. */
  let due: (() => void)[] = [];
  let diedAt = 0;

  const awake = async (): Promise<void> => {
    while (state !== "running") await resume.promise;
  };
  const now = () => (state === "dead" ? diedAt : time.now()) + aheadMs;
  const machine: Machine = {
    id,
    clock: {
      now,
      after: (delayMs, wake) => {
        let cancelled = false;
        const fire = () => {
          if (cancelled || state === "dead") return;
          if (state === "paused") due.push(fire);
          else machine.run(wake);
        };
        const cancel = time.after(delayMs, fire);
        return () => {
          cancelled = true;
          cancel();
        };
      },
    },
    dateNow: () => now() + dateAheadMs,
    dateReaders: new Set(),
    requests,
    get dead() {
      return state === "dead";
    },
    run: (work, once) => places.run({ machine, ...(once === undefined ? {} : { once }) }, work),
    at: (at, happening) => new Promise((begun) => happenings.set(at, { ...happening, begun })),
    faultFor: (request) => {
      const happening = happenings.get(requests.length);
      requests.push(request);
      return [
        {
          before: async () => {
            if (happening?.after === undefined) happening?.begun();
            if (state === "running") await happening?.before?.();
            await awake();
          },
          after: async () => {
            if (happening?.after !== undefined) happening.begun();
            if (state === "running") await happening?.after?.();
            await awake();
          },
        },
        ...[happening?.fault ?? []].flat(),
      ];
    },
    pause: () => {
      if (state === "running") state = "paused";
    },
    thaw: () => {
      if (state !== "paused") return;
      state = "running";
      const { resolve } = resume;
      resume = withResolvers();
      const woken = due;
      due = [];
      // What was due fires at once, as it does on a machine that wakes.
      for (const fire of woken) fire();
      resolve();
    },
    kill: () => {
      if (state === "dead") return;
      diedAt = time.now();
      state = "dead";
    },
    bury: () => {
      machine.kill();
      resume.reject(new Error("this machine is dead"));
      // It may be known for long, so that what still comes from it is refused.
      requests.length = 0;
    },
  };
  return machine;
};

const withResolvers = () => {
  let resolve = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  promise.catch(() => {});
  return { promise, resolve, reject };
};
