/**
 * Metrics and alarms against a local AWS, where there is one: moto (`pip install "moto[server,cloudwatch]"`) with Python.
 * Where there isn't, these tests are skipped.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  CloudWatchClient,
  DescribeAlarmsCommand,
  GetMetricStatisticsCommand,
  PutMetricAlarmCommand,
} from "@aws-sdk/client-cloudwatch";
import { cloudWatchSink, cron, defineJob } from "cronfence";
import { localClientConfig } from "cronfence/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jobAlarmResources, watchdogAlarmResources } from "../../infra/alarms.ts";
import { freePort, untilAnswering } from "../../src/local/loopback.ts";

const python = "python3";
const hasMoto = spawnSync(python, ["-c", "import moto.server, flask, flask_cors"]).status === 0;

describe.skipIf(!hasMoto)("On a local AWS", () => {
  let server: ChildProcess;
  let client: CloudWatchClient;

  beforeAll(async () => {
    const port = await freePort();
    server = spawn(python, ["-m", "moto.server", "-H", "127.0.0.1", "-p", String(port)], { stdio: "ignore" });
    const endpoint = `http://127.0.0.1:${port}`;
    if (!(await untilAnswering(endpoint, 25_000, () => server.exitCode === null)))
      throw new Error("moto doesn't answer");
    client = new CloudWatchClient({ ...localClientConfig(endpoint), region: "eu-central-1", maxAttempts: 2 });
  });
  afterAll(async () => {
    client?.destroy();
    if (server.exitCode !== null) return;
    server.kill("SIGKILL");
    await once(server, "exit");
  });

  it("metrics that are sent can be read, by service and job, in the period they stand for", async () => {
    const at = Math.floor(Date.now() / 60_000) * 60_000 - 120_000;
    const sink = cloudWatchSink({ client, service: "shop" });
    await sink.record({ job: "carts", at, values: { Overdue: 91, Items: 12 } });
    await sink.record({ job: "carts", at: at + 60_000, values: { Overdue: 0 } });
    await sink.record({ job: "orders", at, values: { Overdue: 7 } });
    await sink.flush();
    const { Datapoints = [] } = await client.send(
      new GetMetricStatisticsCommand({
        Namespace: "cronfence",
        MetricName: "Overdue",
        Dimensions: [
          { Name: "service", Value: "shop" },
          { Name: "job", Value: "carts" },
        ],
        StartTime: new Date(at),
        EndTime: new Date(at + 180_000),
        Period: 60,
        Statistics: ["Maximum"],
      }),
    );
    const points = Datapoints.map(({ Timestamp, Maximum }) => [Number(Timestamp), Maximum]);
    expect(points.sort()).toEqual([
      [at, 91],
      [at + 60_000, 0],
    ]);
  });

  it("alarms are taken as the template has them", async () => {
    const job = defineJob({ name: "carts", schedule: cron("7 * * * *"), timeout: "5m", run: () => {} });
    const settings = { service: "shop", everyMs: 300_000, actions: ["arn:aws:sns:eu-central-1:123456789012:pages"] };
    const resources = { ...jobAlarmResources(job, settings), ...watchdogAlarmResources("watchdog", settings) };
    const wanted = Object.values(resources).map(({ Properties }) => Properties);
    for (const properties of wanted) await client.send(new PutMetricAlarmCommand(properties as never));
    const { MetricAlarms = [] } = await client.send(new DescribeAlarmsCommand({}));
    expect(MetricAlarms).toHaveLength(3);
    expect(MetricAlarms).toEqual(
      expect.arrayContaining(wanted.map((properties) => expect.objectContaining(properties))),
    );
  });
});
