/** What the serverless CLI packages of job definitions, without a login or a network: the template by its meaning, and the zips. */
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Job } from "cronfence";
import { beforeAll, describe, expect, it } from "vitest";
import { toEventBridge } from "../../src/schedule/convert/index.ts";
import { cfnLint, noCfnLint } from "../infra/cfn-template.ts";
import { type FixtureService, fixtureService, plainService, type Template } from "./fixture-service.ts";
import { cronJob, sourceJob } from "./jobs.ts";
import { filesIn } from "./zip.ts";

const templateFile = ".serverless/cloudformation-template-update-stack.json";
/** Of the services that were packaged here. */
const folders: string[] = [];
const root = fileURLToPath(new URL("../..", import.meta.url));

const ofType = (template: Template, type: string): Template =>
  Object.fromEntries(Object.entries(template.Resources as Template).filter(([, { Type }]) => Type === type));

/** Where the CLI puts zips has the time of day in its name; nothing else of a template may. */
const withoutTimes = (template: Template): unknown =>
  JSON.parse(JSON.stringify(template).replace(/\d{13}-\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME"));

/** The modules that a function's zip is made of, by the maps in it. */
const modulesIn = (artifact: Buffer): string[] =>
  Object.entries(filesIn(artifact))
    .filter(([name]) => name.endsWith(".map"))
    .flatMap(([, text]) => (JSON.parse(text.toString()) as { sources: string[] }).sources);

const jobs = {
  "handlers/nightly.ts": cronJob(
    "nightly",
    'memory: 256, description: "Rows of the night",',
    'cron("7 2 * * *", { zone: "Europe/Berlin" })',
  ),
  "handlers/measured.ts": cronJob(
    "measured",
    'metrics: "cloudwatch", environment: { LEVEL: "two" },',
    'rate("1 hour")',
  ),
  "handlers/chained.ts": sourceJob("chained"),
  "handlers/not-a-job.ts": "export const shared = 1;",
};
const serverlessYml = `${plainService
  .replace(
    'jobs: "handlers/*.ts"',
    'jobs: "handlers/*.ts", statements: { nightly: [{ Effect: Allow, Action: "s3:DeleteObject", Resource: "arn:aws:s3:::files/*" }] }',
  )
  .replace(
    "region: eu-central-1",
    "region: eu-central-1, memorySize: 384, vpc: { securityGroupIds: [sg-0123456789abcdef0], subnetIds: [subnet-0123456789abcdef0] }, tracing: { lambda: true }, environment: { LEVEL: one, BUCKET: { Ref: Files } }",
  )}
resources:
  Resources:
    Files: { Type: "AWS::S3::Bucket" }
`;

describe("a service, packaged", () => {
  let service: FixtureService;
  let template: Template;
  let zips: Buffer[];
  const package_ = async () => {
    const { code, said } = await service.sls("package");
    expect(said).toContain("Service packaged");
    expect(code).toBe(0);
    return [
      await service.template(),
      await Promise.all(["nightly", "measured", "watchdog"].map(service.artifact)),
    ] as const;
  };

  beforeAll(async () => {
    service = await fixtureService({ "serverless.yml": serverlessYml, ...jobs });
    folders.push(service.folder);
    [template, zips] = await package_();
  }, 300_000);

  it("has a function for each job, and a watchdog where no handler is one, each on a role of its own", () => {
    const functions = ofType(template, "AWS::Lambda::Function");
    expect(Object.keys(functions)).toHaveLength(4);
    const roles = Object.values(functions).map(({ Properties }: Template) => Properties.Role["Fn::GetAtt"][0]);
    expect(new Set(roles).size).toBe(4);
    for (const role of roles) expect(template.Resources[role].Type).toBe("AWS::IAM::Role");
    // Each function's and each schedule's, and none that the CLI would make for all functions together.
    expect(Object.keys(ofType(template, "AWS::IAM::Role"))).toHaveLength(8);
    expect(functions.NightlyLambdaFunction.Properties).toMatchObject({
      FunctionName: "shop-jobs-dev-nightly",
      Description: "Rows of the night",
      MemorySize: 256,
      Timeout: 35,
      Runtime: "nodejs22.x",
      Handler: "index.handler",
    });
  });

  it("gives a function the provider's memory where its job doesn't say, and what only the builders know", () => {
    expect(template.Resources.MeasuredLambdaFunction.Properties).toMatchObject({ MemorySize: 384 });
    expect(template.Resources.MeasuredLambdaFunction.Properties).not.toHaveProperty("RecursiveLoop");
    expect(template.Resources.ChainedLambdaFunction.Properties).toMatchObject({ RecursiveLoop: "Allow" });
  });

  it("gives functions the provider's variables, the job's before them, and cronfence's own", () => {
    const { NightlyLambdaFunction, MeasuredLambdaFunction, WatchdogLambdaFunction } = template.Resources;
    expect(NightlyLambdaFunction.Properties.Environment.Variables).toEqual({
      LEVEL: "one",
      BUCKET: { Ref: "Files" },
      CRONFENCE_TABLE: "shop-jobs-dev-cronfence",
      CRONFENCE_SERVICE: "shop-jobs-dev",
      CRONFENCE_VERSION: expect.stringMatching(/^[0-9a-f]{12}$/),
    });
    expect(MeasuredLambdaFunction.Properties.Environment.Variables.LEVEL).toBe("two");
    // By which it finds what it starts again.
    expect(WatchdogLambdaFunction.Properties.Environment.Variables.CRONFENCE_FUNCTION_NAME).toBe("shop-jobs-dev-{job}");
  });

  it("makes each function's log group before it, with its retention, and no other", () => {
    const groups = ofType(template, "AWS::Logs::LogGroup");
    expect(Object.keys(groups)).toHaveLength(4);
    for (const { Properties } of Object.values(groups)) expect(Properties.RetentionInDays).toBe(30);
    for (const { DependsOn, Properties } of Object.values(ofType(template, "AWS::Lambda::Function"))) {
      const [group] = DependsOn.filter((id: string) => id in groups);
      expect(groups[group].Properties.LogGroupName).toBe(`/aws/lambda/${Properties.FunctionName}`);
    }
  });

  it("lets a role do what serverless.yml adds for its job, and no other role", () => {
    const { JobnightlyRole, ...others } = ofType(template, "AWS::IAM::Role");
    expect(JSON.stringify(JobnightlyRole)).toContain("s3:DeleteObject");
    expect(JSON.stringify(others)).not.toContain("s3:DeleteObject");
  });

  it("lets every function's role do what its place asks for: be in a network, and be traced", () => {
    for (const { Properties } of Object.values(ofType(template, "AWS::Lambda::Function"))) {
      const role = JSON.stringify(template.Resources[Properties.Role["Fn::GetAtt"][0]]);
      expect(role).toContain("ec2:CreateNetworkInterface");
      expect(role).toContain("xray:PutTraceSegments");
      expect(Properties.VpcConfig.SubnetIds).toEqual(["subnet-0123456789abcdef0"]);
    }
  });

  it("packs into a function its job's bundle and what that uses, and nothing that is for people or tests", () => {
    const [nightly, measured] = zips as [Buffer, Buffer];
    for (const zip of [nightly, measured]) {
      expect(Object.keys(filesIn(zip)).filter((name) => !/^[\w-]+\.mjs(\.map)?$/.test(name))).toEqual([]);
      expect(Object.keys(filesIn(zip))).toContain("index.mjs");
      expect(modulesIn(zip).filter((module) => /\/(cli|testing|local|rehearse|operate|infra)\//.test(module))).toEqual(
        [],
      );
      expect(modulesIn(zip).filter((module) => /client-lambda|commander|esbuild/.test(module))).toEqual([]);
    }
    const cloudWatch = (zip: Buffer) => modulesIn(zip).some((module) => module.includes("client-cloudwatch"));
    expect(cloudWatch(nightly)).toBe(false);
    expect(cloudWatch(measured)).toBe(true);
    expect(modulesIn(nightly).filter((module) => /handlers\//.test(module))).toEqual([
      expect.stringContaining("handlers/nightly.ts"),
    ]);
  });

  it("gives the watchdog every job's definition", () => {
    const handlers = modulesIn(zips[2] as Buffer).filter((module) => module.includes("/handlers/"));
    expect(handlers.map((module) => module.replace(/.*\//, "")).sort()).toEqual([
      "chained.ts",
      "measured.ts",
      "nightly.ts",
    ]);
  });

  it("is the same the second time: the template, but for the hour in a folder's name, and every zip", async () => {
    const [again, zipsAgain] = await package_();
    expect(withoutTimes(again)).toEqual(withoutTimes(template));
    for (const [index, zip] of zipsAgain.entries()) expect(zip.equals(zips[index] as Buffer)).toBe(true);
  }, 300_000);

  it("is the same by serverless 3", async ({ skip }) => {
    const cli = serverless3();
    skip(cli === undefined, "serverless 3 isn't installed here, so only osls packaged the service");
    const other = await fixtureService({ "serverless.yml": serverlessYml, ...jobs }, { cli: cli as string });
    expect(await other.sls("package")).toMatchObject({ code: 0 });
    const packaged = await other.template();
    for (const [id, resource] of Object.entries(template.Resources as Template)) {
      // What the CLI makes of its own: its bucket, and functions' versions.
      if (/^ServerlessDeployment|LambdaVersion/.test(id)) continue;
      expect(withoutTimes(packaged.Resources[id]), id).toEqual(withoutTimes(resource));
    }
  }, 300_000);
});

/** SERVERLESS_3 says where its script is, if it isn't among the packages. */
const serverless3 = (): string | undefined => {
  try {
    return process.env.SERVERLESS_3 ?? createRequire(import.meta.url).resolve("serverless/bin/serverless.js");
  } catch {
    return undefined;
  }
};

describe("the repository's own serverless.yml", () => {
  let template: Template;
  let handlers: { readonly job: Job }[];

  beforeAll(async () => {
    const names = (await readdir(join(root, "handlers"))).map((name) => `handlers/${name}`);
    const files = await Promise.all(
      ["serverless.yml", ...names].map(async (name) => [name, await readFile(join(root, name), "utf8")] as const),
    );
    handlers = await Promise.all(names.map((name) => import(join(root, name))));
    const service = await fixtureService(Object.fromEntries(files));
    folders.push(service.folder);
    expect(await service.sls("package")).toMatchObject({ code: 0 });
    template = await service.template();
  }, 300_000);

  it("deploys every handler, with the schedule that its job says, and takes the watchdog among them for one", () => {
    const names = Object.values(ofType(template, "AWS::Lambda::Function")).map(
      ({ Properties }) => Properties.FunctionName,
    );
    expect(names.sort()).toEqual(handlers.map(({ job }) => `cronfence-jobs-dev-${job.name}`).sort());
    const schedules: Template[] = Object.values(ofType(template, "AWS::Scheduler::Schedule"));
    for (const { job } of handlers) {
      const { Properties } = schedules.find((each) => each.Properties.Target.Input.includes(`"${job.name}"`)) ?? {};
      const said = toEventBridge(job.schedule!);
      expect(said).toMatchObject({ ok: true, expression: Properties.ScheduleExpression });
      expect(Properties.ScheduleExpressionTimezone).toBe(job.schedule?.zone);
    }
  });

  it("has what variables of serverless.yml come to", () => {
    const { Environment } = template.Resources.PurgeDashsessionsLambdaFunction.Properties;
    expect(Environment.Variables.SESSIONS_BUCKET).toBe("cronfence-sessions");
    expect(JSON.stringify(template)).not.toMatch(/\$\{(param|self|opt):/);
  });

  it("lets the watchdog start jobs again, and purge-sessions delete its files", () => {
    const { WatchdogLambdaFunction, JobpurgeDashsessionsRole } = template.Resources;
    expect(WatchdogLambdaFunction.Properties.Environment.Variables.CRONFENCE_FUNCTION_NAME).toBe(
      "cronfence-jobs-dev-{job}",
    );
    expect(JSON.stringify(JobpurgeDashsessionsRole)).toContain("s3:DeleteObject");
  });
});

it("templates pass cfn-lint", async ({ skip }) => {
  const said = await cfnLint(...folders.map((folder) => join(folder, templateFile)));
  skip(said === undefined, noCfnLint);
  expect(said).toBe("");
}, 300_000);
