/** What packaging refuses, before anything is packaged or written: everything that is wrong, at once. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readPluginOptions } from "../../infra/serverless/options.ts";
import { fixtureService, plainService } from "./fixture-service.ts";
import { cronJob } from "./jobs.ts";

describe("a service with faults", () => {
  it("is refused with all of them, each with its file or its place in serverless.yml, and leaves nothing behind", async () => {
    const service = await fixtureService({
      "serverless.yml": `${plainService.replace('jobs: "handlers/*.ts"', 'jobs: "handlers/*.ts", statements: { swep: [{ Effect: Allow, Action: "s3:Get*", Resource: "*" }] }')}
functions:
  sweep: { handler: sweep.handler }
`,
      "handlers/a-broken.ts": "export const job = ;",
      "handlers/b-refused.ts": cronJob("refused", 'tymeout: "1m",'),
      "handlers/c-two.ts": `${cronJob("one")}\nexport const other = defineJob({ name: "two", timeout: "1m", run: () => {} });`,
      "handlers/d-sweep.ts": cronJob("sweep"),
      "handlers/e-twin.ts": cronJob("sweep"),
      "handlers/f-long.ts": cronJob("long")
        .replace('timeout: "30s"', 'timeout: "20m"')
        .replace("*/5 * * * *", "7 * * * *"),
      "handlers/g-silent.ts": cronJob("silent").replace("export const handler", "const handler"),
    });
    const { code, said } = await service.sls("package");
    for (const problem of [
      /handlers\/a-broken\.ts: line 1, column \d+: /,
      /handlers\/b-refused\.ts: job "refused": tymeout is not an option; did you mean timeout\?/,
      /handlers\/c-two\.ts: it defines "one" and "two", and a function runs one job/,
      /handlers\/e-twin\.ts: job "sweep" is defined in handlers\/d-sweep\.ts too/,
      /job "long": timeout is 1200 s, and must be at most 895 s/,
      /handlers\/g-silent\.ts: job "silent" has no handler; export const handler = lambdaHandler\(job\)/,
      /job "sweep": functions\.sweep of serverless\.yml has the name of its function/,
      /custom\.cronfence\.statements: swep is not a job; did you mean sweep\?/,
    ]) {
      expect(said).toMatch(problem);
    }
    expect(said).toContain("8 problems");
    expect(code).toBe(1);
    for (const made of [".build", ".serverless"]) expect(existsSync(join(service.folder, made))).toBe(false);
  }, 300_000);

  it("is refused where a bundle contains what serverless.yml says that none may", async () => {
    const service = await fixtureService({
      "serverless.yml": plainService.replace(
        'jobs: "handlers/*.ts"',
        'jobs: "handlers/*.ts", neverBundle: "src/migrate.ts"',
      ),
      "src/migrate.ts": "export const rows = process.env.ROWS ?? 'rows';",
      "handlers/sweep.ts": `import { rows } from "../src/migrate.ts";\n${cronJob("sweep").replace('TableName: "rows"', "TableName: rows")}`,
    });
    const { code, said } = await service.sls("package");
    expect(said).toMatch(/job "sweep": its bundle contains src\/migrate\.ts .* imported by handlers\/sweep\.ts/s);
    expect(code).toBe(1);
    expect(existsSync(join(service.folder, ".serverless/sweep.zip"))).toBe(false);
  }, 300_000);
});

describe("options under custom.cronfence", () => {
  const problemsOf = (given: unknown) => {
    const read = readPluginOptions(given);
    return "problems" in read ? read.problems : [];
  };

  it("are filled in from no more than where jobs are", () => {
    expect(readPluginOptions({ jobs: "handlers/*.ts" })).toEqual({
      options: {
        jobs: ["handlers/*.ts"],
        external: [],
        neverBundle: [],
        controlTable: undefined,
        alarmTopic: { create: true },
        watchdog: { every: "5m", heal: true },
        dashboard: true,
        logRetentionInDays: 30,
        memory: undefined,
        environment: {},
        statements: {},
        version: undefined,
      },
    });
  });

  it("take a table and a topic that are there, and no watchdog", () => {
    const topic = "arn:aws:sns:eu-central-1:123456789012:pager";
    const given = { jobs: ["a.ts", "b.ts"], controlTable: { name: "jobs" }, alarmTopic: topic, watchdog: false };
    expect(readPluginOptions(given)).toMatchObject({
      options: {
        jobs: ["a.ts", "b.ts"],
        controlTable: { name: "jobs" },
        alarmTopic: { arn: topic },
        watchdog: undefined,
      },
    });
    for (const off of ["off", false]) {
      expect(readPluginOptions({ jobs: "a.ts", alarmTopic: off })).toMatchObject({
        options: { alarmTopic: undefined },
      });
    }
  });

  it.each([
    [undefined, /custom\.cronfence is missing, and must be an object, such as \{ jobs: "handlers\/\*\.ts" \}/],
    [{}, /custom\.cronfence\.jobs is missing, and must be a glob/],
    [{ jobs: "a.ts", alarmTopics: "x" }, /custom\.cronfence\.alarmTopics is not an option; did you mean alarmTopic\?/],
    [
      { jobs: "a.ts", watchdog: { evry: "5m" } },
      /custom\.cronfence\.watchdog\.evry is not an option; did you mean every\?/,
    ],
    [{ jobs: "a.ts", watchdog: { every: "7m" } }, /custom\.cronfence\.watchdog(\.every)? is .*7m.*must be false, or/],
    [{ jobs: "a.ts", alarmTopic: "pager" }, /custom\.cronfence\.alarmTopic is "pager", and must be "create", "off"/],
    [{ jobs: "a.ts", memory: 64 }, /custom\.cronfence\.memory is 64, and must be a whole number of megabytes/],
    [
      { jobs: "a.ts", logRetentionInDays: 31 },
      /custom\.cronfence\.logRetentionInDays is 31, and must be one of 1, 3, 5/,
    ],
    [{ jobs: "a.ts", controlTable: "a" }, /custom\.cronfence\.controlTable is "a", and must be a name of 3 to 255/],
    [
      { jobs: "a.ts", environment: { LEVEL: 3 } },
      /custom\.cronfence\.environment\.LEVEL is 3, and must be an object with a text/,
    ],
    [
      { jobs: "a.ts", statements: { sweep: [{ Action: "x" }] } },
      /custom\.cronfence\.statements\.sweep\.0 is .*each with Effect, Action/,
    ],
    [{ jobs: "a.ts", version: "a b" }, /custom\.cronfence\.version is "a b"/],
  ])("that can't be accepted are named with their value and what is allowed: %j", (given, problem) => {
    expect(problemsOf(given)).toEqual([expect.stringMatching(problem)]);
  });

  it("are taken as they are where the CLI has yet to work them out", () => {
    const [topic, days] = ["ssm:/pager", "param:days"].map((source) => `\${${source}}`);
    expect(readPluginOptions({ jobs: "a.ts", alarmTopic: topic, logRetentionInDays: days })).toMatchObject({
      options: { alarmTopic: { arn: topic }, logRetentionInDays: days },
    });
  });

  it("are all named at once", () => {
    expect(problemsOf({ jobs: 1, dashboard: "yes", colour: "red" })).toHaveLength(3);
  });
});
