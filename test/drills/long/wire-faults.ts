/**
 * What goes wrong between the processes and the engine: a share of all requests is lost, repeated, held up, or refused,
 * before the engine has it or after it was applied. Each kind comes up, and is counted.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { Fault, FaultProxy, ProxiedRequest } from "cronfence/testing";
import { type Chance, deckOf } from "./deck.ts";
import type { Tally } from "./tally.ts";

/** Of all requests. */
const share = 0.12;
const longestDelayMs = 900;
/** Until a request comes a second time, long after its reply. */
const latestRepeatMs = 5_000;
/** How many requests the proxy may remember. */
const remembered = 200;

const kinds = [
  "delay",
  "drop before",
  "drop after",
  "duplicate",
  "throttle",
  "500 before",
  "500 after",
  "conflict",
  "hang before",
  "hang after",
  "token ignored",
  "repeated late",
] as const;

export interface WireFaults {
  /** No fault from here on; resolves when nothing is repeated any more. */
  stop(): Promise<void>;
}

export const injectWireFaults = (proxy: FaultProxy, chance: Chance, count: Tally): WireFaults => {
  const draw = deckOf(kinds, chance);
  const over = new AbortController();
  const repeats = new Set<Promise<unknown>>();

  const repeatLater = (request: ProxiedRequest): void => {
    const repeat = wait(chance.between(0, latestRepeatMs), undefined, { signal: over.signal })
      .catch(() => {})
      .then(() => proxy.replay(request))
      .catch(() => {}) // the engine may be gone
      .finally(() => repeats.delete(repeat));
    repeats.add(repeat);
  };

  const faultFor = (request: ProxiedRequest): Fault => {
    // It remembers them all, and a long drill makes very many; rules go with them.
    if (proxy.requests.length > remembered) {
      proxy.reset();
      proxy.when(() => true, faultFor);
    }
    if (!chance.happens(share)) return [];
    const kind = draw();
    count(`request: ${kind}`);
    switch (kind) {
      case "delay":
        return { delay: wait(chance.between(0, longestDelayMs)) };
      case "drop before":
        return "drop";
      case "drop after":
        return "lost-reply";
      case "500 before":
        return "500-before";
      case "500 after":
        return "500-after";
      case "conflict":
        return isWrite(request) ? { conflict: true } : "throttle";
      case "hang before":
        return { hang: true };
      case "hang after":
        return { hang: true, applied: true };
      case "token ignored":
        return ["strip-token", "duplicate"];
      case "repeated late":
        repeatLater(request);
        return [];
      default:
        return kind;
    }
  };
  proxy.when(() => true, faultFor);
  return {
    stop: async () => {
      proxy.reset();
      over.abort();
      await Promise.all(repeats);
    },
  };
};

const isWrite = ({ operation }: ProxiedRequest): boolean => !/^(Get|Query|Scan|BatchGet|Describe)/.test(operation);
