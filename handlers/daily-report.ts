/**
 * The sales of each day, reported the next morning by the clock on the wall in Berlin, also where the clocks change. A
 * report is for its tick's day, whenever it is made: one that was missed is made up for, each with its own day's figures.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, paginateQuery } from "@aws-sdk/lib-dynamodb";
import { cron, defineJob, observed } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";

interface Sale {
  /** The day in Berlin, such as "2026-03-01". */
  readonly day: string;
  readonly id: string;
  readonly cents: number;
}

const zone = "Europe/Berlin";
const documents = DynamoDBDocumentClient.from(observed(new DynamoDBClient({})));

export const job = defineJob({
  name: "daily-report",
  schedule: cron("30 6 * * *", { zone }),
  timeout: "5m",
  // After a longer outage a week of reports is enough for one run; the others stay owed.
  maxTicks: 7,
  access: [
    { table: "sales", read: true },
    { table: "reports", write: true },
  ],
  tick: async (tick) => {
    const day = dayBefore(tick.at);
    let sales = 0;
    let cents = 0;
    for await (const sale of salesOf(day)) {
      sales += 1;
      cents += sale.cents;
    }
    return [{ Put: { TableName: "reports", Item: { day, sales, cents, tick: tick.id } } }];
  },
});

export const handler = lambdaHandler(job);

async function* salesOf(day: string): AsyncGenerator<Sale> {
  const query = {
    TableName: "sales",
    KeyConditionExpression: "#day = :day",
    ExpressionAttributeNames: { "#day": "day" },
    ExpressionAttributeValues: { ":day": day },
  };
  for await (const page of paginateQuery({ client: documents }, query)) yield* (page.Items ?? []) as Sale[];
}

/** An instant's day in Berlin: "2026-03-01". */
const dayOf = (at: Date): string => new Intl.DateTimeFormat("en-CA", { timeZone: zone }).format(at);

/** By the calendar, not 24 hours earlier: a day may have 23 or 25. */
const dayBefore = (at: Date): string => {
  const today = new Date(`${dayOf(at)}T00:00:00Z`);
  today.setUTCDate(today.getUTCDate() - 1);
  return today.toISOString().slice(0, 10);
};

/** What `npm run dev` makes on the local engine: the sales of the last days. */
export const local = {
  tables: [
    { name: "sales", key: { hash: "day", range: "id" } },
    { name: "reports", key: { hash: "day" } },
  ],
  seed: (now: number): { readonly sales: readonly Sale[] } => ({
    sales: Array.from({ length: 60 }, (_, index) => ({
      day: dayOf(new Date(now - (index % 5) * 86_400_000)),
      id: `sale-${index}`,
      cents: 100 + index * 37,
    })),
  }),
};
