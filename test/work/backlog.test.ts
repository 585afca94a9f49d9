/** A backlog goes on in another run at once: `onBacklog: "continue"`. */
import { createServer, type IncomingMessage } from "node:http";
import { type RunDeps, runJob } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";
import { settableClock } from "cronfence/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { useEngine } from "../fixture.ts";
import { invocation } from "../lambda/invocation.ts";
import { arraySource } from "./array-source.ts";
import { newRow, now, results, row, type SceneOptions, sourceScene } from "./scene.ts";

const engine = useEngine(results);
afterEach(() => {
  engine.proxy.reset();
  vi.unstubAllEnvs();
});

const numbers = (count: number) => Array.from({ length: count }, (_, at) => String(at).padStart(3, "0"));
const scene = (count: number, options: SceneOptions = {}) =>
  sourceScene(engine, arraySource(numbers(count)), (item, run) => [newRow(run, item)], {
    onBacklog: "continue",
    limit: { items: 10 },
    ...options,
  });
/** As `continueBacklog`, the numbers that it was called with. */
const recordedChain = () => {
  const calls: [string, number][] = [];
  const continueBacklog: RunDeps["continueBacklog"] = async (job, chain) => void calls.push([job, chain]);
  return { calls, continueBacklog };
};

describe("A backlog", () => {
  it("goes on in this process, in runs of their own, until nothing is left", async () => {
    const here = scene(35);
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 5 });
    expect(Object.values(await here.rows())).toEqual(Array(35).fill(1));
    const records = await here.records();
    expect(records.map(({ outcome, items }) => [outcome, items]).sort()).toEqual([
      ["capped", 10],
      ["capped", 10],
      ["capped", 10],
      ["succeeded", 5],
    ]);
    const fences = records.map(({ fence }) => fence as number).sort();
    expect(fences).toEqual([0, 1, 2, 3].map((more) => (fences[0] as number) + more));
  });

  it("is known by the runs' records: only the first is for the tick, and it completes it", async () => {
    const here = scene(25);
    await here.go();
    const records = [...(await here.records())].sort((one, other) => (one.fence ?? 0) - (other.fence ?? 0));
    expect(records.map(({ trigger, reason, ticks }) => [trigger, reason, ticks?.through])).toEqual([
      ["schedule", undefined, now],
      ["manual", "backlog", undefined],
      ["manual", "backlog", undefined],
    ]);
    expect(await here.state()).toMatchObject({ tick: now, watermark: 25 });
  });

  it.each([
    [1, 20],
    [3, 40],
    [undefined, 110],
  ])("is left after maxChain (%j) runs in a row", async (maxChain, done) => {
    const here = scene(500, maxChain === undefined ? {} : { maxChain });
    expect(await here.go()).toMatchObject({ outcome: "capped", backlog: expect.stringContaining("limit.items") });
    expect(await here.watermark()).toBe(done);
    // The next tick goes on, as ever.
    await here.go();
    expect(await here.watermark()).toBe(2 * done);
  });

  it("waits for the next tick by default", async () => {
    const here = scene(25, { onBacklog: "wait" });
    expect(await here.go()).toMatchObject({ outcome: "capped" });
    expect(await here.watermark()).toBe(10);
    expect(await here.records()).toHaveLength(1);
  });

  it("isn't gone on with when nothing is left, or the run failed", async () => {
    const { calls, continueBacklog } = recordedChain();
    expect(await scene(10, { deps: { continueBacklog } }).go()).toMatchObject({ outcome: "succeeded" });
    const failing = sourceScene(
      engine,
      arraySource(numbers(20)),
      (item, run) => {
        if (item === "003") throw new Error("broken");
        return [row(run, item)];
      },
      { onBacklog: "continue", limit: { items: 10 }, deps: { continueBacklog } },
    );
    expect(await failing.go()).toMatchObject({ outcome: "failed" });
    expect(calls).toEqual([]);
  });

  it("isn't gone on with in a dry run, which would find the same work for ever", async () => {
    const { calls, continueBacklog } = recordedChain();
    expect(await scene(35, { dryRun: true, deps: { continueBacklog } }).go()).toMatchObject({ outcome: "dry_run" });
    expect(await scene(35, { deps: { continueBacklog } }).go({ dryRun: true })).toMatchObject({ outcome: "dry_run" });
    expect(calls).toEqual([]);
  });

  it("ends where another run has the lease: that one does it", async () => {
    const here = scene(35);
    const other = scene(35, { name: here.name });
    let asked = 0;
    const store = {
      ...engine.store,
      acquire: async (...request: Parameters<typeof engine.store.acquire>) => {
        asked += 1;
        if (asked === 2) {
          const [{ owner, run, ...rest }, budget] = request;
          await engine.store.acquire({ ...rest, owner: "another", run: { ...run, id: "another" } }, budget);
        }
        return engine.store.acquire(...request);
      },
    };
    const report = await runJob(
      here.job,
      { kind: "schedule", tick: now },
      { store, clock: here.clock, log: here.log.log },
    );
    expect(report).toMatchObject({ outcome: "capped", items: 10 });
    expect(asked).toBe(2);
    expect(await other.watermark()).toBe(10);
  });
});

describe("Where the platform starts the next run", () => {
  it("it is asked for it, with how many have gone before in a row", async () => {
    const { calls, continueBacklog } = recordedChain();
    const here = scene(500, { maxChain: 3, deps: { continueBacklog } });
    expect(await here.go()).toMatchObject({ outcome: "capped", items: 10 });
    expect(await here.watermark()).toBe(10);
    for (const chain of [1, 2, 3]) await here.go({ chain });
    expect(calls).toEqual([1, 2, 3].map((chain) => [here.name, chain]));
    expect(await here.watermark()).toBe(40);
  });

  it("and can't, the run is capped all the same, and says so in the log", async () => {
    const here = scene(35, {
      deps: {
        continueBacklog: async () => {
          throw new Error("no permission");
        },
      },
    });
    expect(await here.go()).toMatchObject({ outcome: "capped", items: 10 });
    expect(here.log.lines).toContainEqual(
      expect.objectContaining({
        level: "warn",
        job: here.name,
        message: "no run could be started for the backlog; it waits for the next tick",
        error: { name: "Error", message: "no permission" },
      }),
    );
  });

  it("on Lambda, the function invokes itself without waiting, and the event takes the chain on", async () => {
    const invoked: { path: string; type: unknown; event: unknown }[] = [];
    const lambda = createServer((request, response) => {
      void textOf(request).then((text) => {
        invoked.push({
          path: String(request.url),
          type: request.headers["x-amz-invocation-type"],
          event: JSON.parse(text),
        });
        response.writeHead(202).end();
      });
    });
    await new Promise<void>((resolve) => lambda.listen(0, "127.0.0.1", resolve));
    const { port } = lambda.address() as { port: number };
    vi.stubEnv("AWS_LAMBDA_FUNCTION_NAME", "expire-carts-prod");
    vi.stubEnv("AWS_ENDPOINT_URL_LAMBDA", `http://127.0.0.1:${port}`);
    vi.stubEnv("AWS_REGION", "eu-central-1");
    vi.stubEnv("AWS_ACCESS_KEY_ID", "local");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "local");
    try {
      const clock = settableClock(now);
      const here = scene(35, { maxChain: 2, clock });
      const handler = lambdaHandler(here.job, { store: engine.store, clock, log: here.log.log });
      expect(
        await handler({ job: here.name, scheduledTime: new Date(now).toISOString() }, invocation(clock)),
      ).toMatchObject({
        outcome: "capped",
        items: 10,
      });
      for (let at = 0; at < invoked.length; at += 1) {
        clock.advance(1_000);
        await handler(invoked[at]?.event, invocation(clock));
      }
      expect(invoked).toEqual(
        [1, 2].map((chain) => ({
          path: "/2015-03-31/functions/expire-carts-prod/invocations",
          type: "Event",
          event: { chain, reason: "backlog" },
        })),
      );
      expect(await here.watermark()).toBe(30);
    } finally {
      lambda.closeAllConnections();
      lambda.close();
    }
  });

  it.each([[0], [1.5], ["2"], [-1], [null]])("a chain of %j is no event", async (chain) => {
    const here = scene(5);
    const handler = lambdaHandler(here.job, { store: engine.store, clock: here.clock, log: here.log.log });
    await expect(handler({ chain }, invocation(here.clock))).rejects.toThrow("chain must be a whole number, from 1");
  });

  it.each([["some"], [[1]], [["x".repeat(901)]]])("parked items of %j are no event", async (parked) => {
    const here = scene(5);
    const handler = lambdaHandler(here.job, { store: engine.store, clock: here.clock, log: here.log.log });
    await expect(handler({ parked }, invocation(here.clock))).rejects.toThrow('parked must be "all" or a list of keys');
  });

  it("an event may ask for parked items", async () => {
    const poisonous = { at: true };
    const here = sourceScene(
      engine,
      arraySource(["a", "b"]),
      (item, run) => {
        if (item === "b" && poisonous.at) throw new Error("broken");
        return [row(run, item)];
      },
      { onItemError: "park", maxAttempts: 1 },
    );
    await here.go();
    poisonous.at = false;
    here.clock.advance(1_000);
    const handler = lambdaHandler(here.job, { store: engine.store, clock: here.clock, log: here.log.log });
    expect(await handler({ parked: ["2"] }, invocation(here.clock))).toMatchObject({ outcome: "succeeded", items: 1 });
    expect(await here.parked()).toEqual([]);
  });
});

const textOf = async (stream: IncomingMessage): Promise<string> => {
  let text = "";
  for await (const chunk of stream) text += chunk;
  return text;
};
