/** The files of a new service: one job, the test that drills it, and what deploys it. */
import { createRequire } from "node:module";

interface OwnManifest {
  readonly version: string;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
}

/** By their paths from the service's folder. */
export const initialFiles = (service: string, region = "eu-central-1"): Readonly<Record<string, string>> => ({
  "serverless.yml": `service: ${service}
provider: { name: aws, runtime: nodejs22.x, region: ${region} }
plugins: [cronfence/serverless]
custom: { cronfence: { jobs: "handlers/*.ts" } }

# The jobs' own tables.
resources:
  Resources:
    Greetings:
      Type: AWS::DynamoDB::Table
      DeletionPolicy: Retain
      UpdateReplacePolicy: Retain
      Properties:
        TableName: greetings
        BillingMode: PAY_PER_REQUEST
        AttributeDefinitions: [{ AttributeName: id, AttributeType: S }]
        KeySchema: [{ AttributeName: id, KeyType: HASH }]
`,
  "package.json": `${JSON.stringify(manifestOf(service), undefined, 2)}\n`,
  "tsconfig.json": `${JSON.stringify(compiler, undefined, 2)}\n`,
  "handlers/greet.ts": `/** Writes one row for each hour. Put your own work in its place. */
import { cron, defineJob } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";

export const job = defineJob({
  name: "greet",
  schedule: cron("7 * * * *"), // UTC unless a zone is given
  timeout: "1m",
  alert: { missedAfter: "10m" },
  // What its role may do.
  access: [{ table: "greetings", write: true }],
  // Once for each due tick, oldest first. The writes and the tick become visible together, or not at all.
  tick: (tick) => [{ Put: { TableName: "greetings", Item: { id: tick.id, text: "hello" } } }],
});

export const handler = lambdaHandler(job);

/** What it needs on a local DynamoDB: for tests, and for npx cronfence run greet --here --local .cronfence/dynamodb.db */
export const local = { tables: [{ name: "greetings", key: { hash: "id" } }] };
`,
  "test/greet.test.ts": `/** What goes wrong with scheduled work, done to the job's own code on a local DynamoDB. */
import { drills } from "cronfence/testing";
import { it } from "vitest";
import { job, local } from "../handlers/greet.ts";

for (const drill of drills(job, local)) it(drill.name, drill.run, 60_000);
`,
  ".gitignore": "node_modules\n.build\n.serverless\n.cronfence\n",
});

const manifestOf = (service: string) => {
  const { version, devDependencies, overrides } = createRequire(import.meta.url)(
    "cronfence/package.json",
  ) as OwnManifest;
  const tools = ["@types/node", "osls", "typescript", "vitest"];
  return {
    name: service.toLowerCase(),
    private: true,
    type: "module",
    scripts: { test: "tsc --noEmit && vitest run", deploy: "osls deploy" },
    dependencies: { cronfence: `^${version}` },
    devDependencies: Object.fromEntries(tools.map((tool) => [tool, devDependencies[tool] ?? "*"])),
    // What these tools bring along is held where they were tried.
    ...(overrides === undefined ? {} : { overrides }),
  };
};

const compiler = {
  compilerOptions: {
    target: "es2023",
    lib: ["es2023"],
    module: "nodenext",
    types: ["node"],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
  },
  include: ["handlers", "test"],
};
