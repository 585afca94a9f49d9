/**
 * What a runner's code finds around it in the process: the time, timers, chance, and clients of DynamoDB. Several runners
 * share one process, so these are told apart by the asynchronous context that code runs in.
 *
 * Simulated for such code: `Date`, `setTimeout` and `setInterval` (on the runner's own clock), `Math.random`, and every DynamoDB
 * client of the SDK that the explorer uses itself: whatever endpoint such a client has, its requests go to the runner's wire.
 *
 * Not simulated: `node:timers/promises`, `AbortSignal.timeout`, `performance.now`, `crypto.randomUUID`; a second copy of the SDK; and calls
 * to anything but DynamoDB, which are really made. Those over HTTP, files and names that are looked up are waited for.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";
import { promisify } from "node:util";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock } from "../../clock.ts";
import type { HttpRequest, WireReply } from "../wire.ts";

export interface Surroundings {
  readonly clock: Clock;
  readonly random: () => number;
  /** A request of a client of the job's own. */
  send(http: HttpRequest, signal: AbortSignal | undefined): Promise<WireReply>;
}

const current = new AsyncLocalStorage<Surroundings>();

/** Runs `work`, and whatever it leads to, in these surroundings. */
export const within = <Result>(own: Surroundings, work: () => Result): Result => current.run(own, work);

export interface Simulation {
  /** Something that code in surroundings asked for outside is under way. */
  outside(): boolean;
  /** Puts everything back. */
  restore(): void;
}

/** Begins to simulate; one at a time in a process. */
export const simulateSurroundings = (): Simulation => {
  const calls = watchCalls();
  const restore = [calls.restore, replaceDate(), replaceTimers(), replaceRandom(), catchClients()];
  return {
    outside: () => calls.open() > 0 || process.getActiveResourcesInfo().some((kind) => passing.test(kind)),
    restore: () => {
      for (const each of restore.reverse()) each();
    },
  };
};

/** What Node works at and ends by itself. https://nodejs.org/api/process.html#processgetactiveresourcesinfo */
const passing = /^(FSReq|GetAddrInfo|GetNameInfo|QueryReq|RandomBytes|PBKDF2|Scrypt|Hash|Sign|Zlib)/;

/** Sets `object[key]`; the returned function puts back what was there, unless somebody has replaced it again. */
const replace = <Target extends object, Key extends keyof Target>(object: Target, key: Key, value: Target[Key]) => {
  const real = object[key];
  object[key] = value;
  return () => {
    if (object[key] === value) object[key] = real;
  };
};

const replaceDate = () => {
  const real = globalThis.Date;
  const now = () => current.getStore()?.clock.now() ?? real.now();
  const simulated: DateConstructor = new Proxy(real, {
    get: (target, key, receiver) => (key === "now" ? now : Reflect.get(target, key, receiver)),
    construct: (target, args, made) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, made === simulated ? target : made),
    apply: (target) => new target(now()).toString(),
  });
  return replace(globalThis, "Date", simulated);
};

const replaceRandom = () => {
  const { random } = Math;
  return replace(Math, "random", () => (current.getStore()?.random ?? random)());
};

type Callback = (...args: unknown[]) => void;

const replaceTimers = () => {
  const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis;
  const cancels = new WeakMap<object, () => void>();
  const start = (own: Surroundings, callback: Callback, delayMs: number, args: unknown[], repeats: boolean) => {
    let cancel = () => {};
    const arm = () => {
      cancel = own.clock.after(Math.max(1, delayMs || 0), () => {
        if (repeats) arm();
        within(own, () => callback(...args));
      });
    };
    const timer = {
      ref: () => timer,
      unref: () => timer,
      hasRef: () => true,
      refresh: () => {
        cancel();
        arm();
        return timer;
      },
      close: () => {
        cancel();
        return timer;
      },
      [Symbol.dispose]: () => cancel(),
    };
    cancels.set(timer, () => cancel());
    arm();
    return timer;
  };
  const starting = (real: Callback, repeats: boolean) => {
    const simulated = (callback: Callback, delayMs: number, ...args: unknown[]) => {
      const own = current.getStore();
      return own === undefined ? real(callback, delayMs, ...args) : start(own, callback, delayMs, args, repeats);
    };
    if (repeats) return simulated;
    const asPromised = (delayMs: number, value: unknown) =>
      new Promise((resolve) => simulated(resolve as Callback, delayMs, value));
    return Object.assign(simulated, { [promisify.custom]: asPromised });
  };
  const stopping = (real: (timer: never) => void) => (timer: unknown) => {
    const cancel = typeof timer === "object" && timer !== null ? cancels.get(timer) : undefined;
    if (cancel === undefined) real(timer as never);
    else cancel();
  };
  const restore = [
    replace(globalThis, "setTimeout", starting(setTimeout as unknown as Callback, false) as never),
    replace(globalThis, "setInterval", starting(setInterval as unknown as Callback, true) as never),
    replace(globalThis, "clearTimeout", stopping(clearTimeout) as never),
    replace(globalThis, "clearInterval", stopping(clearInterval) as never),
  ];
  return () => {
    for (const each of restore) each();
  };
};

type Handler = DynamoDBClient["config"]["requestHandler"];

interface Caught {
  readonly config: { readonly serviceId?: string; requestHandler: Handler };
  /** What it has made ready to send with the handler that it had. */
  handlers?: unknown;
}

/** Every client of the SDK sends by the same method; those of DynamoDB get a request handler that knows surroundings. */
const catchClients = () => {
  const prototype = Object.getPrototypeOf(DynamoDBClient.prototype) as DynamoDBClient;
  const { send } = prototype;
  const caught = new Map<Caught["config"], Handler>();
  const catching = function (this: Caught, ...args: unknown[]) {
    const { config } = this;
    if (config.serviceId === "DynamoDB" && current.getStore() !== undefined && !caught.has(config)) {
      const real = config.requestHandler;
      caught.set(config, real);
      config.requestHandler = knowingSurroundings(real);
      delete this.handlers;
    }
    return (send as (...all: unknown[]) => unknown).apply(this, args);
  };
  const restore = replace(prototype, "send", catching as never);
  return () => {
    restore();
    for (const [config, real] of caught) config.requestHandler = real;
  };
};

const knowingSurroundings = (real: Handler): Handler =>
  Object.create(real, {
    handle: {
      value: async (
        http: HttpRequest,
        options: { readonly abortSignal?: AbortSignal; readonly carry?: unknown } = {},
      ) => {
        const own = current.getStore();
        // A wire's own client carries its requests by itself.
        if (own === undefined || options.carry !== undefined) return real.handle(http, options as never);
        return { response: await own.send(http, options.abortSignal) };
      },
    },
  }) as Handler;

/** Counts calls over HTTP, by `node:http` and by `fetch`: https://nodejs.org/api/diagnostics_channel.html#http */
const watchCalls = () => {
  const open = new Set<unknown>();
  const begin = (request: unknown) => {
    if (current.getStore() !== undefined) open.add(request);
  };
  const onRequest = (message: unknown) => {
    const { request } = message as { readonly request: ClientRequest };
    begin(request);
    request.once("close", () => open.delete(request));
  };
  const onFetch = (message: unknown) => begin((message as { readonly request: unknown }).request);
  const onFetched = (message: unknown) => open.delete((message as { readonly request: unknown }).request);
  const channels = {
    "http.client.request.start": onRequest,
    "undici:request:create": onFetch,
    "undici:request:trailers": onFetched,
    "undici:request:error": onFetched,
  };
  for (const [name, listener] of Object.entries(channels)) subscribe(name, listener);
  return {
    open: () => open.size,
    restore: () => {
      for (const [name, listener] of Object.entries(channels)) unsubscribe(name, listener);
    },
  };
};
