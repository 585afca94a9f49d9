/**
 * Runners against a real engine, one step at a time: every request waits at a gate before it reaches the engine and again
 * before its answer is heard, timers fire only when the world's time comes to them, and between two steps everything that
 * can run without them has run. So the same steps always give the same history.
 *
 * It decides nothing: what the next step is, and what must hold after it, is for whoever plays.
 */
import { setImmediate as nextTurn, setTimeout as waitMs } from "node:timers/promises";
import type { Clock } from "../../clock.ts";
import { type DynamoStore, dynamoStore } from "../../control/dynamo-store.ts";
import { hasCode } from "../../errors.ts";
import { never, type WireReply, type WireRequest, wireTo } from "../wire.ts";

export interface WorldOptions {
  readonly endpoint: string;
  /** The control table. */
  readonly table: string;
  /** When it begins, in milliseconds since the epoch. */
  readonly start: number;
  /** Whether the server knows a request that it has done by its token. @default true */
  readonly tokens?: boolean;
  /** Whether a request ends when its sender gives it up; or else it waits on, as senders' timers are real. @default false */
  readonly givesUp?: boolean;
  /**
   * Told of every request that has reached the engine, before its sender is.
   * @param isRepeated it had been answered before
   * @param token it came with its token
   */
  applied?(sent: Sent, reply: WireReply, isRepeated: boolean, token: boolean): Promise<void>;
  /** The body to send in place of a request's own: for tests that take a guard away. */
  rewrite?(request: WireRequest): string;
  /** Something that will go on by itself is under way outside: no step ends before it. */
  outside?(): boolean;
}

/** Whoever makes requests: an attempt, or an operator. */
export interface Actor {
  readonly name: string;
  /** How far its clock is ahead, in milliseconds. */
  readonly skewMs: number;
  readonly interrupt: AbortController;
  /** Its process lives. */
  alive: boolean;
  paused: boolean;
  /** It has a report, or has failed. */
  ended: boolean;
  /** How many requests it has made. */
  sent: number;
}

export interface Sent {
  readonly actor: Actor;
  readonly request: WireRequest;
  /** Which of its sender's requests it is, from 1. */
  readonly number: number;
}

/** A request on its way. */
export interface Gate extends Sent {
  /** Once the engine has had it. */
  reply: WireReply | undefined;
  resolve(reply: WireReply): void;
  reject(error: Error): void;
}

export interface Timer {
  readonly at: number;
  readonly actor: Actor;
  readonly wake: () => void;
}

const reads = new Set(["GetItem", "Query", "BatchGetItem", "Scan", "DescribeTable", "TransactGetItems"]);
export const isRead = ({ operation }: WireRequest): boolean => reads.has(operation);

/** What attempts and operators' acts may throw, and somebody then tries again. Anything else is a fault. */
const expectedErrors = ["OUTCOME_UNKNOWN", "STORE_UNAVAILABLE", "PREDECESSOR_UNFINISHED", "ACT_REFUSED"];
const isExpected = (error: unknown): boolean => expectedErrors.some((code) => hasCode(error, code));

export const openWorld = (options: WorldOptions) => {
  const { endpoint, table, tokens = true, givesUp = false, rewrite, outside = () => false } = options;
  let now = options.start;
  const actors: Actor[] = [];
  let gates: Gate[] = [];
  let timers: Timer[] = [];
  /** Writes that a network may repeat. */
  let sent: Sent[] = [];
  /** A try of these was answered, if only by the engine: whoever hears that doesn't wait for another answer. */
  const answered = new Set<string>();
  const isAwake = ({ alive, paused }: Actor) => alive && !paused;

  // --- Letting things run.
  let activity = 0;
  let fault: unknown;
  const quiet = async () => {
    for (let before = -1; before !== activity; ) {
      before = activity;
      await nextTurn();
      if (outside()) await untilBack(outside);
    }
    if (fault !== undefined) throw fault;
  };
  /** A rule that is broken in the middle of somebody's code comes to light at the next step. */
  const fail = (error: unknown) => {
    fault ??= error;
  };
  const checked = (check: () => void) => {
    try {
      check();
    } catch (error) {
      fail(error);
    }
  };

  // --- Requests.
  const receive = (actor: Actor, request: WireRequest): Promise<WireReply> => {
    if (!actor.alive) return never();
    activity += 1;
    actor.sent += 1;
    const one = { actor, request, number: actor.sent };
    if (!isRead(request)) sent.push(one);
    return new Promise((resolve, reject) => {
      const gate: Gate = { ...one, reply: undefined, resolve, reject };
      gates.push(gate);
      if (!givesUp) return;
      request.signal?.addEventListener("abort", () => {
        leave(gate);
        reject(Object.assign(new Error("given up"), { name: "AbortError" }));
      });
    });
  };
  const apply = async (one: Sent, token = tokens): Promise<WireReply> => {
    const { request } = one;
    const isRepeated = answered.has(request.body);
    const reply = await request.apply({ token, ...(rewrite === undefined ? {} : { body: rewrite(request) }) });
    for (const gate of gates) if (gate.request === request) gate.reply = reply;
    await options.applied?.(one, reply, isRepeated, token);
    return reply;
  };
  const leave = (gate: Gate) => {
    gates = gates.filter((other) => other !== gate);
  };
  const arrive = async (gate: Gate) => {
    if (gate.reply === undefined) await apply(gate);
    answered.add(gate.request.body);
  };
  const answer = async (gate: Gate) => {
    await arrive(gate);
    leave(gate);
    gate.resolve(gate.reply as WireReply);
    await quiet();
  };
  /** The sender hears this, whether or not the engine has had the request. */
  const breakOff = async (gate: Gate, heard: Error | WireReply) => {
    leave(gate);
    if (heard instanceof Error) gate.reject(heard);
    else gate.resolve(heard);
    await quiet();
  };

  // --- Time.
  const clockOf = (actor: Actor): Clock => ({
    now: () => now + actor.skewMs,
    after: (delayMs, wake) => {
      const timer = { at: now + Math.max(0, delayMs), actor, wake };
      if (actor.alive) timers.push(timer);
      activity += 1;
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
  });
  const earliest = (): Timer | undefined =>
    timers
      .filter(({ actor }) => isAwake(actor))
      .reduce<Timer | undefined>((first, timer) => (first && first.at <= timer.at ? first : timer), undefined);
  const fire = async (timer: Timer) => {
    timers = timers.filter((other) => other !== timer);
    timer.wake();
    await quiet();
  };
  const elapse = async (ms: number) => {
    const until = now + ms;
    for (let timer = earliest(); timer !== undefined && timer.at <= until; timer = earliest()) {
      now = Math.max(now, timer.at);
      await fire(timer);
    }
    now = until;
  };

  // --- Actors.
  const enter = (name: string, skewMs: number): Actor => {
    const interrupt = new AbortController();
    const actor = { name, skewMs, interrupt, alive: true, paused: false, ended: false, sent: 0 };
    actors.push(actor);
    return actor;
  };
  const storeOf = (actor: Actor): DynamoStore =>
    dynamoStore({ client: wireTo(endpoint, (request) => receive(actor, request)).client, table });
  /** Waits for what an actor was asked for. Errors that leave the outcome open are told to `whenOpen`; others are faults. */
  const attend = async <T>(
    actor: Actor,
    task: Promise<T>,
    whenDone: (value: T) => void,
    whenOpen: (error: Error) => void,
  ) => {
    await task.then(
      (value) => checked(() => whenDone(value)),
      (error) => {
        whenOpen(error);
        if (!isExpected(error)) fail(error);
      },
    );
    actor.ended = true;
    activity += 1;
  };
  const crash = (actor: Actor) => {
    actor.alive = false;
    gates = gates.filter((gate) => gate.actor !== actor);
    timers = timers.filter((timer) => timer.actor !== actor);
  };

  return {
    now: () => now,
    quiet,
    fail,
    checked,
    isAwake,
    running: () => actors.filter(({ alive, ended }) => alive && !ended),
    receive,
    /** Requests whose senders wait for an answer, the oldest first. */
    gates: () => gates,
    /** Timers that a sleeper should have heard by now. */
    overdue: () => timers.filter(({ at, actor }) => isAwake(actor) && at <= now),
    untilNext: () => {
      const timer = earliest();
      return timer && Math.max(0, timer.at - now);
    },
    /** Those of the past, the latest last. */
    sent: () => sent.filter(({ request }) => gates.every((gate) => gate.request !== request)),
    /** It was answered for good, and doesn't come again. */
    forget: ({ request }: Sent) => {
      sent = sent.filter((other) => other.request !== request);
    },
    apply,
    arrive,
    answer,
    breakOff,
    clockOf,
    fire,
    elapse,
    enter,
    storeOf,
    attend,
    crash,
  };
};

/** Something outside that takes longer than this, in real time, isn't waited for. */
const longestOutsideMs = 10_000;

const untilBack = async (outside: () => boolean): Promise<void> => {
  for (let waited = 0; outside(); waited += 1) {
    if (waited >= longestOutsideMs) {
      throw new Error(
        `something that the job asked for outside of DynamoDB didn't end within ${longestOutsideMs / 1_000} s`,
      );
    }
    await waitMs(1);
  }
};
