/** What the job costs with each contender: requests and write units, counted by a proxy, and time against the bare SDK. */
import { setTimeout as wait } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createControlTable } from "cronfence";
import { localClientConfig, type ProxiedRequest, startEngine, startFaultProxy } from "cronfence/testing";
import { type ContenderName, contenderNames, type Handler, openContender } from "./contender.ts";
import { controlTable } from "./contenders/fenced.ts";
import { createExpiryTables, putCarts, readEffects } from "./expiry.ts";

export interface Cost {
  readonly requests: number;
  readonly writeUnits: number;
}

const leaseMs = 30_000;
const tick = Date.parse("2026-03-02T06:00:00Z");
const minuteMs = 60_000;

/** Of a run over so many carts, not the first one. */
export const measureCost = async (contender: ContenderName, carts: number): Promise<Cost> =>
  onEngine(async (endpoint, client) => {
    const proxy = await startFaultProxy(endpoint);
    try {
      const handler = await openContender(contender, {
        endpoint: proxy.endpoint,
        leaseMs,
        metered: true,
        connect: (options) => meteredClient(proxy.endpoint, options),
      });
      await putCarts(client, 0, 1);
      await handler(tick);
      await putCarts(client, 1, carts);
      proxy.reset();
      await handler(tick + minuteMs);
      await requireDone(client);
      return {
        requests: proxy.requests.length,
        writeUnits: proxy.requests.filter(writes).reduce((sum, request) => sum + unitsOf(request), 0),
      };
    } finally {
      await proxy.stop();
    }
  });

export interface Timing {
  /** Due in each run. */
  readonly carts: number;
  readonly rounds: number;
  /** Rounds before that, until the code is compiled. */
  readonly warmUps: number;
  /** How much longer each request takes, in milliseconds, as if the server were elsewhere. @default 0 */
  readonly distanceMs?: number;
}

/** The median, over the rounds, of each one's time of that of the bare SDK in the same round; another begins each round. */
export const measureTimes = ({
  carts,
  rounds,
  warmUps,
  distanceMs = 0,
}: Timing): Promise<Readonly<Record<ContenderName, number>>> =>
  onEngine(async (target, client) => {
    const proxy = distanceMs === 0 ? undefined : await startFaultProxy(target);
    proxy?.when(() => true, { before: () => wait(distanceMs) });
    const endpoint = proxy?.endpoint ?? target;
    const handlers = {} as Record<ContenderName, Handler>;
    for (const contender of contenderNames) {
      const connect = (options = {}) => new DynamoDBClient({ ...localClientConfig(endpoint), ...options });
      handlers[contender] = await openContender(contender, { endpoint, leaseMs, metered: false, connect });
    }
    const measured: Record<ContenderName, number>[] = [];
    let put = 0;
    for (let round = -warmUps; round < rounds; round += 1) {
      const times = {} as Record<ContenderName, number>;
      const turn = (round + warmUps) % contenderNames.length;
      for (const contender of [...contenderNames.slice(turn), ...contenderNames.slice(0, turn)]) {
        await putCarts(client, put, carts);
        put += carts;
        const startedAt = performance.now();
        await handlers[contender](tick + put * minuteMs);
        times[contender] = performance.now() - startedAt;
      }
      if (round >= 0) measured.push(times);
    }
    await proxy?.stop();
    await requireDone(client);
    const ratios = contenderNames.map((contender) => [
      contender,
      median(measured.map((times) => times[contender] / times["bare SDK"])),
    ]);
    return Object.fromEntries(ratios);
  });

const onEngine = async <T>(work: (endpoint: string, client: DynamoDBClient) => Promise<T>): Promise<T> => {
  const engine = await startEngine();
  const client = new DynamoDBClient(localClientConfig(engine.endpoint));
  try {
    await createExpiryTables(client);
    await createControlTable(client, controlTable);
    return await work(engine.endpoint, client);
  } finally {
    client.destroy();
    await engine.stop();
  }
};

/** A contender that leaves carts, or does them twice, is no comparison. */
const requireDone = async (client: DynamoDBClient): Promise<void> => {
  const { left, doubled } = await readEffects(client);
  if (left > 0 || doubled > 0) throw new Error(`with nothing wrong, ${left} carts were left and ${doubled} doubled`);
};

const meteredClient = (endpoint: string, options = {}): DynamoDBClient => {
  const client = new DynamoDBClient({ ...localClientConfig(endpoint), ...options });
  client.middlewareStack.add(
    (next) => (args) =>
      next({ ...args, input: { ...args.input, ReturnConsumedCapacity: "TOTAL" } as typeof args.input }),
    { step: "initialize" },
  );
  return client;
};

const writes = ({ operation }: ProxiedRequest): boolean => !["Query", "GetItem"].includes(operation);

const unitsOf = ({ replies }: ProxiedRequest): number =>
  replies
    .flatMap(({ body }) => body?.ConsumedCapacity ?? [])
    .reduce((sum: number, { CapacityUnits = 0 }: { CapacityUnits?: number }) => sum + CapacityUnits, 0);

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number;
