/** Metrics by PutMetricData, against a server that checks every request as CloudWatch would. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { cloudWatchSink } from "../../src/observe/cloudwatch.ts";
import type { MetricSet } from "../../src/observe/metrics.ts";
import { type StubCloudWatch, startStubCloudWatch } from "./stub-cloudwatch.ts";

let stub: StubCloudWatch;
beforeAll(async () => {
  stub = await startStubCloudWatch();
});
beforeEach(() => stub.reset());
afterAll(() => stub.stop());

const at = Date.parse("2026-03-01T00:00:00.250Z");
const set = (job: string, values: MetricSet["values"] = { Overdue: 0, ConsecutiveFailures: 0 }): MetricSet => ({
  job,
  at,
  values,
});
const sink = (more = {}) => cloudWatchSink({ client: stub.client, service: "shop", ...more });

describe("Metrics by PutMetricData", () => {
  it("are sent when they are flushed, with their units, dimensions and the time they stand for", async () => {
    const metrics = sink();
    await metrics.record(set("carts", { Duration: 1_234.5, Overdue: 7 }));
    expect(stub.requests).toBe(0);
    await metrics.flush();
    expect(stub.problems).toEqual([]);
    const about = {
      Dimensions: [
        { Name: "service", Value: "shop" },
        { Name: "job", Value: "carts" },
      ],
      Timestamp: at / 1_000,
    };
    expect(stub.accepted).toEqual([
      {
        Namespace: "cronfence",
        MetricData: [
          { ...about, MetricName: "Duration", Unit: "Milliseconds", Value: 1_234.5 },
          { ...about, MetricName: "Overdue", Unit: "Seconds", Value: 7 },
        ],
      },
    ]);
    await metrics.flush();
    expect(stub.requests).toBe(1);
  });

  it("of many jobs go out in as few requests as the service takes", async () => {
    const metrics = sink();
    for (let index = 0; index < 1_250; index += 1) await metrics.record(set(`job-${index}`));
    expect(stub.accepted.map(({ MetricData }) => MetricData.length)).toEqual([1_000, 1_000]);
    await metrics.flush();
    expect(stub.problems).toEqual([]);
    expect(stub.accepted.map(({ MetricData }) => MetricData.length)).toEqual([1_000, 1_000, 500]);
    const jobs = stub.accepted.flatMap(({ MetricData }) => MetricData.map(({ Dimensions }) => Dimensions[1]?.Value));
    expect(new Set(jobs).size).toBe(1_250);
  });

  it("of more values than a datum takes are several data, equal values counted, and none is lost", async () => {
    const metrics = sink();
    const values = Array.from({ length: 1_000 }, (_, index) => index % 400);
    await metrics.record(set("carts", { Duration: values }));
    await metrics.flush();
    expect(stub.problems).toEqual([]);
    const data = stub.accepted[0]?.MetricData ?? [];
    expect(data.map(({ Values }) => Values?.length)).toEqual([150, 150, 100]);
    const sent = data.flatMap(({ Values = [], Counts = [] }) =>
      Values.flatMap((value, index) => Array<number>(Counts[index] as number).fill(value)),
    );
    expect(sent.sort((one, other) => one - other)).toEqual(values.sort((one, other) => one - other));
  });

  it("are split before a request gets larger than the service takes", async () => {
    const metrics = sink();
    const values = Array.from({ length: 150 }, (_, index) => index + 1 / 3);
    for (let index = 0; index < 600; index += 1) await metrics.record(set(`job-${index}`, { Duration: values }));
    await metrics.flush();
    expect(stub.problems).toEqual([]);
    expect(stub.accepted.length).toBeGreaterThan(1);
    expect(stub.accepted.flatMap(({ MetricData }) => MetricData)).toHaveLength(600);
  });

  it("leave out what is no number, and say so", async () => {
    const dropped: unknown[] = [];
    const metrics = sink({ dropped: (...what: unknown[]) => void dropped.push(what) });
    await metrics.record(set("carts", { Items: Number.NaN, Duration: Number.NEGATIVE_INFINITY, Succeeded: 1 }));
    await metrics.flush();
    expect(stub.accepted[0]?.MetricData.map(({ MetricName }) => MetricName)).toEqual(["Succeeded"]);
    expect(dropped).toEqual([
      ["Items", "carts", Number.NaN],
      ["Duration", "carts", Number.NEGATIVE_INFINITY],
    ]);
  });

  it("that the service doesn't take for a moment are sent once more", async () => {
    stub.fail(500);
    const metrics = sink();
    await metrics.record(set("carts"));
    await metrics.flush();
    expect(stub.requests).toBe(2);
    expect(stub.accepted).toHaveLength(1);
  });

  it("that can't be sent are lost, which the caller is told, and later ones go out", async () => {
    stub.fail(400);
    const metrics = sink();
    await metrics.record(set("carts"));
    await expect(metrics.flush()).rejects.toThrow();
    await metrics.record(set("later"));
    await metrics.flush();
    expect(stub.accepted.flatMap(({ MetricData }) => MetricData.map(({ Dimensions }) => Dimensions[1]?.Value))).toEqual(
      ["later", "later"],
    );
  });

  it("aren't waited for longer than a request may take, or than the caller can", async () => {
    stub.fail("hang", 2);
    const brief = sink({ requestTimeoutMs: 30 });
    await brief.record(set("carts"));
    await expect(brief.flush()).rejects.toMatchObject({ name: "AbortError" });
    const patient = sink({ requestTimeoutMs: 60_000 });
    await patient.record(set("carts"));
    await expect(patient.flush(AbortSignal.abort())).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("The client of CloudWatch", () => {
  it("isn't loaded before metrics are sent through it", async () => {
    const script = `
      import { createRequire } from "node:module";
      const loaded = () => Object.keys(createRequire(import.meta.url).cache).some((file) => file.includes("client-cloudwatch"));
      const { defineJob, runJob, systemClock } = await import("cronfence");
      const { watchdog } = await import("cronfence/watchdog");
      const { cloudWatchSink } = await import("./src/observe/cloudwatch.ts");
      const before = loaded();
      const sink = cloudWatchSink({ service: "shop" });
      await sink.record({ job: "carts", at: ${at}, values: { Items: 1 } });
      const recorded = loaded();
      await sink.flush();
      console.log(JSON.stringify({ before, recorded, after: loaded() }));
    `;
    const root = fileURLToPath(new URL("../..", import.meta.url));
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--import", import.meta.resolve("tsx"), "--input-type=module", "--eval", script],
      {
        cwd: root,
        env: {
          ...process.env,
          AWS_ENDPOINT_URL_CLOUDWATCH: stub.endpoint,
          AWS_REGION: "local",
          AWS_ACCESS_KEY_ID: "local",
          AWS_SECRET_ACCESS_KEY: "local",
          AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
          TSX_TSCONFIG_PATH: `${root}/tsconfig.json`,
        },
      },
    );
    expect(JSON.parse(stdout)).toEqual({ before: false, recorded: false, after: true });
    expect(stub.accepted).toHaveLength(1);
  });
});
