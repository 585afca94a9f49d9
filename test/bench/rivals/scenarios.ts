/**
 * The same faults for all contenders. Time is short and real: a lock lasts for a second and a half, and whoever must wait for
 * its end waits. The platform delivers a tick again when its invocation failed or died, when the lock is over; what is still
 * open then would be left to the next tick.
 */
import { setTimeout as wait } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createControlTable } from "cronfence";
import { localClientConfig, type Match, type ProxiedRequest, startEngine } from "cronfence/testing";
import { gate } from "../../gate.ts";
import type { ContenderName } from "./contender.ts";
import { controlTable } from "./contenders/fenced.ts";
import { cartsTable, createExpiryTables, type Effects, locksTable, putCarts, readEffects } from "./expiry.ts";
import { type Bundle, type Invocation, startInvocation } from "./invocation.ts";
import type { Said } from "./process.ts";

const leaseMs = 1_500;
/** Until a lock is surely over. */
const overMs = leaseMs * 1.3;
const carts = 150;
const tick = Date.parse("2026-03-02T06:00:00Z");

export const scenarioNames = [
  "double trigger",
  "paused holder",
  "crash",
  "lost reply to taking the lock",
  "lost reply to a write",
  "late release",
  "a challenger's clock ahead",
] as const;
export type ScenarioName = (typeof scenarioNames)[number];

interface Stage {
  readonly client: DynamoDBClient;
  /** A new invocation, started and waiting. */
  start(aheadMs?: number): Promise<Invocation>;
  readonly isRelease: Match;
}

export const runScenario = async (bundle: Bundle, contender: ContenderName, name: ScenarioName): Promise<Effects> => {
  const engine = await startEngine();
  const client = new DynamoDBClient(localClientConfig(engine.endpoint));
  const invocations: Invocation[] = [];
  try {
    await createExpiryTables(client);
    await createControlTable(client, controlTable);
    await putCarts(client, 0, carts);
    await scenarios[name]({
      client,
      start: async (aheadMs = 0) => {
        const invocation = await startInvocation(bundle, engine.endpoint, { contender, leaseMs, aheadMs });
        invocations.push(invocation);
        return invocation;
      },
      isRelease: (request) => releases[contender](request),
    });
    return await readEffects(client);
  } finally {
    await Promise.all(invocations.map((invocation) => invocation.end()));
    client.destroy();
    await engine.stop();
  }
};

const scenarios: Record<ScenarioName, (stage: Stage) => Promise<void>> = {
  "double trigger": async (stage) => {
    const both = await Promise.all([stage.start(), stage.start()]);
    const said = await Promise.all(both.map((one) => one.fire(tick)));
    for (const each of said) await again(stage, each);
  },

  "paused holder": async (stage) => {
    const [holder, successor] = await Promise.all([stage.start(), stage.start()]);
    // With its second write on its way out, which leaves it when it goes on.
    const goesOn = gate();
    let writes = 0;
    const stopped = holder.proxy.next((request) => isWork(request) && ++writes === 2, { delay: goesOn.pass() });
    const late = holder.fire(tick);
    await stopped.hit;
    holder.signal("SIGSTOP");
    await wait(overMs);
    await again(stage, await successor.fire(tick));
    holder.signal("SIGCONT");
    goesOn.open();
    await again(stage, await late);
  },

  crash: async (stage) => {
    const dying = await stage.start();
    dying.proxy.next(isWork, { after: () => dying.signal("SIGKILL") });
    await again(stage, await dying.fire(tick));
  },

  "lost reply to taking the lock": async (stage) => {
    const invocation = await stage.start();
    invocation.proxy.next(isTaking, "lost-reply");
    await again(stage, await invocation.fire(tick));
  },

  "lost reply to a write": async (stage) => {
    const invocation = await stage.start();
    invocation.proxy.next(isWork, "lost-reply");
    await again(stage, await invocation.fire(tick));
  },

  "late release": async (stage) => {
    const [holder, successor, third] = await Promise.all([stage.start(), stage.start(), stage.start()]);
    const [release, work] = [gate(), gate()];
    const held = holder.proxy.when(stage.isRelease, { delay: release.pass() });
    const first = holder.fire(tick);
    await Promise.race([held.hit, first]);
    await wait(overMs);
    await putCarts(stage.client, carts, 49);
    const working = successor.proxy.when(isWork, { delay: work.pass() });
    const second = successor.fire(tick);
    await Promise.race([working.hit, second]);
    release.open();
    const ended = await first;
    const third_ = await third.fire(tick);
    work.open();
    for (const each of [ended, await second, third_]) await again(stage, each);
  },

  "a challenger's clock ahead": async (stage) => {
    const [holder, challenger] = await Promise.all([stage.start(), stage.start(600_000)]);
    const open = gate();
    let writes = 0;
    // Its second write is under way for a while.
    const slow = holder.proxy.next((request) => isWork(request) && ++writes === 2, { delay: open.pass() });
    const first = holder.fire(tick);
    await slow.hit;
    const second = await challenger.fire(tick);
    open.open();
    for (const each of [await first, second]) await again(stage, each);
  },
};

const deliveries = 2;

/** As the platform does: once or twice more where the invocation failed, when whatever it held is over. */
const again = async ({ start }: Stage, said: Said): Promise<void> => {
  let last = said;
  for (let more = 0; more < deliveries && "threw" in last; more += 1) {
    await wait(overMs);
    last = await (await start()).fire(tick);
  }
};

/** Writes carts. */
const isWork = ({ operation, body }: ProxiedRequest): boolean =>
  operation === "TransactWriteItems" && JSON.stringify(body).includes(`"${cartsTable}"`);

/** Writes what says that a run is going: everybody's first write, apart from making that item. */
const isTaking = ({ operation, body }: ProxiedRequest): boolean =>
  (operation === "UpdateItem" && [controlTable, locksTable].includes(body.TableName)) ||
  (operation === "PutItem" && body.TableName === locksTable);

const completes = ({ operation, body }: ProxiedRequest): boolean =>
  operation === "UpdateItem" && JSON.stringify(body).includes("COMPLETED");
const shortens = ({ operation, body }: ProxiedRequest): boolean =>
  operation === "PutItem" && body.Item?.leaseDurationMs?.N === "1";

/** What ends a run; with cronfence that is in the transaction of the last writes. */
const releases: Record<ContenderName, (request: ProxiedRequest) => boolean> = {
  "bare SDK": ({ operation, body }) => operation === "UpdateItem" && body.UpdateExpression.startsWith("REMOVE"),
  cronfence: ({ operation, body }) => operation === "TransactWriteItems" && JSON.stringify(body).includes('"run#'),
  "Powertools, each tick": completes,
  "Powertools, each item": completes,
  "lock client": shortens,
  "lock client, token on items": shortens,
};
