/** A service as a whole: the same for the same jobs, complete, and with no right that is wider than it must be. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cron, defineJob, rate } from "cronfence";
import { settableClock } from "cronfence/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type DeployedService, serviceResources } from "../../infra/service.ts";
import { cfnLint, noCfnLint, type Template } from "./cfn-template.ts";
import { deployed, healer, sampleService, settings, withFunctions } from "./sample-service.ts";

const template: Template = {
  AWSTemplateFormatVersion: "2010-09-09",
  Parameters: { Bucket: { Type: "String" } },
  Resources: withFunctions(sampleService, serviceResources(sampleService)),
};
const resources: [string, Template][] = Object.entries(template.Resources);

/** All objects inside a value, itself first. */
const within = (value: unknown): Template[] =>
  typeof value === "object" && value !== null ? [value, ...Object.values(value).flatMap(within)] : [];

describe("A service's resources", () => {
  it("are those of each job, and those that they share", () => {
    const types = Object.values(serviceResources(sampleService)).map(({ Type }) => Type);
    const counts = Object.fromEntries(
      [...new Set(types)].sort().map((type) => [type, types.filter((each) => each === type).length]),
    );
    expect(counts).toEqual({
      "AWS::CloudWatch::Alarm": 10,
      "AWS::CloudWatch::Dashboard": 1,
      "AWS::DynamoDB::Table": 1,
      "AWS::IAM::Role": 9,
      "AWS::KMS::Key": 1,
      "AWS::Lambda::EventInvokeConfig": 5,
      "AWS::Logs::LogGroup": 5,
      "AWS::SNS::Topic": 1,
      "AWS::SNS::TopicPolicy": 1,
      "AWS::SQS::Queue": 1,
      "AWS::SQS::QueuePolicy": 1,
      "AWS::Scheduler::Schedule": 4,
      "AWS::Scheduler::ScheduleGroup": 1,
    });
  });

  it("refer to nothing that isn't there", () => {
    const ids = new Set([...Object.keys(template.Resources), ...Object.keys(template.Parameters)]);
    const referred = within(template.Resources).flatMap((value) =>
      [value.Ref ?? [], value["Fn::GetAtt"]?.[0] ?? [], value.DependsOn ?? []].flat(),
    );
    expect(referred.length).toBeGreaterThan(50);
    expect(referred.filter((id) => !ids.has(id) && !id.startsWith("AWS::"))).toEqual([]);
  });

  it("keep a log for as long as is said, each in the group that its function writes to", () => {
    const groups = resources
      .filter(([, { Type }]) => Type === "AWS::Logs::LogGroup")
      .map(([, { Properties }]) => Properties);
    expect(groups.map(({ LogGroupName }) => LogGroupName).sort()).toEqual(
      sampleService.jobs.map(({ functionName }) => `/aws/lambda/${functionName}`).sort(),
    );
    expect(new Set(groups.map(({ RetentionInDays }) => RetentionInDays))).toEqual(new Set([30]));
  });

  it("pass cfn-lint", async ({ skip }) => {
    const folder = await mkdtemp(join(tmpdir(), "cronfence-template-"));
    const file = join(folder, "template.json");
    await writeFile(file, JSON.stringify(template));
    const said = await cfnLint(file);
    await rm(folder, { recursive: true });
    skip(said === undefined, noCfnLint);
    expect(said).toBe("");
  });
});

describe("Every statement of every policy", () => {
  const statements = resources.flatMap(([id, { Properties }]) =>
    within(Properties)
      .filter(({ Effect, Action }) => Effect !== undefined && Action !== undefined)
      .map((statement) => ({ id, statement })),
  );

  /** https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoncloudwatch.html: no resource type. */
  const withoutResource = ["cloudwatch:PutMetricData"];

  it("is looked at", () => {
    expect(statements.length).toBeGreaterThan(40);
    expect(new Set(statements.map(({ id }) => template.Resources[id].Type))).toEqual(
      new Set(["AWS::IAM::Role", "AWS::KMS::Key", "AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy"]),
    );
  });

  it("names its actions one by one, but in a denial and in the key's administration by its own account", () => {
    const wide = statements.filter(({ statement }) =>
      [statement.Action].flat().some((action: string) => action.includes("*")),
    );
    expect(Object.fromEntries(wide.map(({ id, statement }) => [`${id}/${statement.Sid}`, statement.Action]))).toEqual({
      "CronfenceAlarmKey/Administration": ["kms:*"],
      "CronfenceAlarmKey/Alarms": ["kms:Decrypt", "kms:GenerateDataKey*"],
      "CronfenceDeadLettersPolicy/OnlyOverTls": ["sqs:*"],
    });
    expect(wide.find(({ statement }) => statement.Sid === "OnlyOverTls")?.statement.Effect).toBe("Deny");
  });

  it("names its resource where the service has one: by an ARN without a wildcard, in the stack's own account", () => {
    for (const { id, statement } of statements) {
      // A trust policy's resource is the role itself, and a key policy's the key.
      if (statement.Action[0] === "sts:AssumeRole" || template.Resources[id].Type === "AWS::KMS::Key") continue;
      const named = [statement.Resource].flat();
      expect(named.length, id).toBeGreaterThan(0);
      for (const resource of named) {
        if (resource === "*") {
          expect(withoutResource, id).toEqual(expect.arrayContaining([statement.Action].flat()));
          expect(Object.keys(statement.Condition), id).not.toEqual([]);
        } else if (typeof resource === "string") {
          // Another account's table, and what the service itself asked for.
          expect(resource).toMatch(/:table\/prices$|^arn:aws:s3:::reports\/\*$/);
        } else {
          expect(JSON.stringify(resource), id).toMatch(
            /^\{"(Fn::GetAtt|Ref)":|^\{"Fn::Sub":"arn:\$\{AWS::Partition\}:[a-z]+:\$\{AWS::Region\}:\$\{AWS::AccountId\}:[^*]+"\}$/,
          );
        }
      }
    }
  });

  it("of a trust policy is for one service, and the scheduler's for this group's schedules only", () => {
    const trusts = statements.filter(({ statement }) => statement.Action[0] === "sts:AssumeRole");
    expect(trusts).toHaveLength(9);
    for (const { statement } of trusts) {
      const { Service } = statement.Principal;
      expect(["lambda.amazonaws.com", "scheduler.amazonaws.com"]).toContain(Service);
      expect(Object.keys(statement.Condition?.StringEquals ?? {})).toEqual(
        Service.startsWith("lambda") ? [] : ["aws:SourceAccount", "aws:SourceArn"],
      );
    }
  });

  it("that lets control items be touched says whose, and refuses a request that has no key", () => {
    const control = statements.filter(({ statement }) =>
      JSON.stringify(statement.Resource ?? "").includes("CronfenceControlTable"),
    );
    expect(control).toHaveLength(6);
    for (const { statement } of control) {
      expect(statement.Condition).toEqual({
        "ForAllValues:StringEquals": {
          "dynamodb:LeadingKeys": expect.arrayContaining([expect.stringMatching(/^job#[\w-]+$/)]),
        },
        Null: { "dynamodb:LeadingKeys": "false" },
      });
      expect(statement.Action).not.toContain("dynamodb:Scan");
    }
  });

  it("that lets an application's table be written does so inside transactions only", () => {
    const writes = ["dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"];
    const written = statements.filter(
      ({ statement }) =>
        [statement.Action].flat().some((action: string) => writes.includes(action)) &&
        !JSON.stringify(statement.Resource).includes("CronfenceControlTable"),
    );
    expect(written).toHaveLength(1);
    for (const { statement } of written) {
      expect(statement.Condition).toEqual({
        "ForAnyValue:StringEquals": { "dynamodb:EnclosingOperation": ["TransactWriteItems"] },
      });
    }
    expect(JSON.stringify(statements)).not.toMatch(/BatchWriteItem|PartiQL/);
  });
});

describe("The same jobs", () => {
  const clock = settableClock("2026-03-01T00:00:00Z");
  const name = fc.stringMatching(/^[a-z][a-z0-9_-]{0,12}$/);
  const schedule = fc.constantFrom(
    () => cron("*/5 * * * *"),
    () => cron("7 3 * * 1-5", { zone: "Europe/Berlin" }),
    () => rate("6 hours", { anchor: 60_000 }),
    () => undefined,
  );
  const retries = fc.constantFrom(0, 1, 2) as fc.Arbitrary<0 | 1 | 2>;
  const jobs = fc.uniqueArray(fc.record({ name, schedule, retries, jitter: fc.boolean(), alarms: fc.boolean() }), {
    selector: ({ name: each }) => each,
    maxLength: 6,
  });

  it("come out the same, byte for byte, whenever they are defined and in whatever order", () => {
    fc.assert(
      fc.property(jobs, fc.integer({ min: 0, max: 10_000 }), (defined, days) => {
        const build = (order: typeof defined, at: number): string => {
          clock.set(Date.parse("2026-03-01T00:00:00Z") + at * 86_400_000);
          const made = order.map(({ name: each, schedule: make, retries: tries, jitter, alarms }) => {
            const when = make();
            return defineJob(
              {
                name: each,
                timeout: "1m",
                retries: tries,
                alarms,
                access: [
                  { table: "beta", read: true },
                  { table: "alpha", write: true },
                ],
                ...(when === undefined ? {} : { schedule: when, ...(jitter ? { jitter: "4m" } : {}) }),
                run: () => {},
              },
              { clock },
            );
          });
          const service: DeployedService = { jobs: [...made, healer].map((job) => deployed(job)), settings };
          return JSON.stringify(serviceResources(service));
        };
        expect(build([...defined].reverse(), days)).toBe(build(defined, 0));
      }),
      { numRuns: 25 },
    );
  });
});
