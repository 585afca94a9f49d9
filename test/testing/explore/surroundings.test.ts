/** What a job's code finds around it while it is explored, and that nothing of it is left afterwards. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { defineJob, type TickRun } from "cronfence";
import { explore } from "cronfence/testing";
import { afterEach, expect, it } from "vitest";
import { count, every5, tables } from "./scene.ts";

const jobDoing = (work: (run: TickRun) => Promise<unknown>) =>
  defineJob({
    ...every5,
    name: "doing",
    tick: async (tick, run) => {
      await work(run);
      return [count(tick.id)];
    },
  });

const undisturbed = { tables, ticks: 1, replay: "undisturbed" };

let stop = () => {};
afterEach(() => stop());

it("waits on timers take simulated time, however they are asked for", async () => {
  const waits: number[] = [];
  const job = jobDoing(async () => {
    const from = Date.now();
    await promisify(setTimeout)(20_000);
    waits.push(Date.now() - from);
    await new Promise<void>((resolve) => {
      let left = 3;
      const timer = setInterval(() => {
        left -= 1;
        if (left > 0) return;
        clearInterval(timer);
        resolve();
      }, 5_000);
    });
    waits.push(Date.now() - from);
    const never = setTimeout(() => waits.push(0), 1_000).unref();
    clearTimeout(never);
    await new Promise((resolve) => setTimeout(resolve, 2_000).refresh());
    waits.push(Date.now() - from);
  });
  await explore(job, undisturbed);
  expect(waits.slice(0, 3)).toEqual([20_000, 35_000, 37_000]);
  expect(waits).not.toContain(0);
});

it("a call to something else is waited for, however long it takes, and comes at the same place each time", async () => {
  let calls = 0;
  const server = createServer((_, response) => {
    calls += 1;
    setTimeout(() => response.end("{}"), calls % 2 === 0 ? 0 : 15);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stop = () => void server.close();
  const { port } = server.address() as AddressInfo;
  const job = jobDoing(async () => {
    await (await fetch(`http://127.0.0.1:${port}/`)).text();
  });
  const options = { ...undisturbed, ticks: 2, replay: "late@tick1" };
  const { timeline } = await explore(job, options);
  expect((await explore(job, options)).timeline).toEqual(timeline);
  // No simulated time passes meanwhile.
  expect(timeline.join("\n")).not.toContain("renewed");
  expect(calls).toBeGreaterThan(8);
});

it("a client of the job's own reaches the local engine and nothing else, whatever its endpoint", async () => {
  const client = new DynamoDBClient({ endpoint: "http://127.0.0.1:1", maxAttempts: 1 });
  const { requestHandler } = client.config;
  const get = () => client.send(new GetItemCommand({ TableName: "counts", Key: { id: { S: "a" } } }));
  const { timeline } = await explore(jobDoing(get), undisturbed);
  expect(timeline.join("\n")).toContain("A.2    GetItem counts: done");
  expect(client.config.requestHandler).toBe(requestHandler);
  await expect(get()).rejects.toThrow("ECONNREFUSED");
});

it("nothing is left of it afterwards", async () => {
  const { Date: date, setTimeout: timeout, setInterval: interval, clearTimeout: clear } = globalThis;
  const { random } = Math;
  const { send } = Object.getPrototypeOf(DynamoDBClient.prototype) as DynamoDBClient;
  const region = process.env.AWS_REGION;
  await explore(
    jobDoing(async () => {}),
    undisturbed,
  );
  expect([globalThis.Date, globalThis.setTimeout, globalThis.setInterval, globalThis.clearTimeout]).toEqual([
    date,
    timeout,
    interval,
    clear,
  ]);
  expect(Math.random).toBe(random);
  expect(Object.getPrototypeOf(DynamoDBClient.prototype).send).toBe(send);
  expect(process.env.AWS_REGION).toBe(region);
});
