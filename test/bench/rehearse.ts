/** How long a rehearsal takes: a simulated year of a daily job, its engine's start and end included. */
import { cron, defineJob } from "cronfence";
import { rehearse } from "cronfence/testing";

interface Measurement {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Reached where the value is at most this. */
  readonly goal?: number;
}

const tables = [{ name: "reports", key: { hash: "id" } }];

export async function benchRehearse(): Promise<Measurement[]> {
  const job = defineJob({
    name: "daily-report",
    schedule: cron("30 6 * * *", { zone: "Europe/Berlin" }),
    timeout: "5m",
    tick: (tick) => [{ Put: { TableName: "reports", Item: { id: tick.id } } }],
  });
  const year = { from: Date.UTC(2026, 0, 1), to: Date.UTC(2027, 0, 1) };
  const { ok, ticks, deliveries, wallMs } = await rehearse({ job, ...year, local: { tables } });
  if (!ok || ticks.done !== 365) throw new Error("the rehearsal didn't do every tick once, so its time means nothing");
  return [
    { name: "rehearsal of a year of a daily job", value: wallMs / 1_000, unit: "s", goal: 10 },
    { name: "rehearsal: deliveries per second", value: (deliveries.all * 1_000) / wallMs, unit: "per second" },
  ];
}
