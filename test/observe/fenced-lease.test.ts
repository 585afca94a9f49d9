/** Runs of a wrapped handler are told of like any other. */
import middy from "@middy/core";
import { fencedLease } from "cronfence/lambda";
import { settableClock } from "cronfence/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { freshName, silentLog, useEngine } from "../fixture.ts";
import { invocation } from "../lambda/invocation.ts";
import { type PingServer, startPingServer } from "./ping-server.ts";

const fixture = useEngine();
let server: PingServer;
beforeAll(async () => {
  server = await startPingServer();
});
beforeEach(() => {
  server.pings.length = 0;
});
afterAll(() => server.stop());

const wrapped = (more: object, work: () => unknown = () => "done") => {
  const clock = settableClock("2026-03-01T00:00:00Z");
  const job = freshName();
  const handler = middy()
    .use(fencedLease({ job, store: fixture.store, clock, log: silentLog, ...more }))
    .handler(async () => work());
  return { job, call: () => handler({}, invocation(clock) as never) };
};

describe("fencedLease", () => {
  it("pings and measures the runs of a handler as it is told to", async () => {
    const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    const ping = { start: `${server.url}/start`, success: `${server.url}/ok`, fail: `${server.url}/fail` };
    const good = wrapped({ metrics: "emf", ping });
    const bad = wrapped({ metrics: "emf", ping }, () => {
      throw new Error("broken");
    });
    let lines: unknown[];
    try {
      expect(await good.call()).toBe("done");
      await expect(bad.call()).rejects.toThrow("broken");
      lines = write.mock.calls.map(([line]) => JSON.parse(String(line)));
    } finally {
      write.mockRestore();
    }
    expect(lines).toMatchObject([
      { job: good.job, Succeeded: 1, Failed: 0 },
      { job: bad.job, Succeeded: 0, Failed: 1 },
    ]);
    expect(server.pings.map((path) => path.split("?")[0])).toEqual(["/start", "/ok", "/start", "/fail"]);
  });

  it("tells observers of its own", async () => {
    const told: string[] = [];
    const observers = [{ name: "test", started: () => told.push("started"), ended: () => told.push("ended") }];
    await wrapped({ observers }).call();
    expect(told).toEqual(["started", "ended"]);
  });

  it("refuses metrics and pings that can't be", () => {
    const refused = () => fencedLease({ job: "x", metrics: "yes", ping: { start: "nowhere", stop: "x" } } as never);
    expect(refused).toThrow('metrics is "yes", and must be "emf", "cloudwatch" or "off"');
    expect(refused).toThrow('ping.start is "nowhere", and must be an http or https URL');
    expect(refused).toThrow("ping.stop is not an option");
    vi.stubEnv("CRONFENCE_METRICS", "some");
    try {
      expect(() => fencedLease({ job: "x" })).toThrow('CRONFENCE_METRICS is "some"');
    } finally {
      vi.unstubAllEnvs();
    }
  });
});
