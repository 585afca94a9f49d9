/**
 * A process that can die: a store on its own wire and a clock of its own. Once dead it sends nothing, hears nothing and
 * none of its timers fires; what it was waiting for is simply never there. The engine and other machines live on.
 */
import { type Clock, type DynamoStore, dynamoStore, type RunDeps } from "cronfence";
import { type Carry, never, passed, type Wire, wireTo } from "../../src/testing/wire.ts";
import { controlTable, silentLog } from "../fixture.ts";

export interface Machine {
  readonly store: DynamoStore;
  readonly clock: Clock;
  /** For `runJob`. */
  readonly deps: RunDeps;
  readonly requests: Wire["requests"];
  /** Requests from now on, and replies to those already sent, go nowhere. */
  kill(): void;
  /** Resolves when nothing of it is on its way to the engine. */
  quiet(): Promise<void>;
}

/** @param carry what becomes of its requests while it lives; it may kill the machine */
export const machineOn = (endpoint: string, clock: Clock, carry: Carry = passed): Machine => {
  let diedAt: number | undefined;
  const wire = wireTo(endpoint, async (request) => {
    if (diedAt !== undefined) return never();
    try {
      return await carry(request);
    } finally {
      if (diedAt !== undefined) await never();
    }
  });
  const own: Clock = {
    now: () => diedAt ?? clock.now(),
    after: (delayMs, wake) =>
      clock.after(delayMs, () => {
        if (diedAt === undefined) wake();
      }),
  };
  const store = dynamoStore({ client: wire.client, table: controlTable });
  return {
    store,
    clock: own,
    deps: { store, clock: own, log: silentLog, random: () => 0.5 },
    requests: wire.requests,
    kill: () => {
      diedAt ??= clock.now();
    },
    quiet: wire.quiet,
  };
};
