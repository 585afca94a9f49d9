/** Sources of handler modules, for services that are packaged and deployed in tests. */

/** A job that writes one row for each tick, in the table `rows`, which it may write and nothing else. */
export const cronJob = (name: string, options = "", schedule = 'cron("*/5 * * * *")'): string => `
import { cron, defineJob, rate } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";

export const job = defineJob({
  name: "${name}",
  schedule: ${schedule},
  timeout: "30s",
  access: [{ table: "rows", write: true }],
  ${options}
  tick: (tick) => [{ Put: { TableName: "rows", Item: { id: "${name}#" + tick.id } } }],
});

export const handler = lambdaHandler(job);
`;

/** A job that goes on with its backlog in as many runs as it takes. */
export const sourceJob = (name: string): string => `
import { cron, defineJob } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";
import { fromAsyncIterable } from "cronfence/sources";

export const job = defineJob({
  name: "${name}",
  schedule: cron("13 4 * * *"),
  timeout: "1m",
  onBacklog: "continue",
  maxChain: 40,
  source: fromAsyncIterable({ name: "nothing", items: async function* () {}, cursor: (item) => item }),
  process: () => [],
});

export const handler = lambdaHandler(job);
`;
