/**
 * serverless.yml as the CLI packages it: bundled, packaged in a folder of its own without a login or a network, and
 * compared with what the job says of itself.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { job } from "../../handlers/expire-carts.ts";
import { bundleHandler } from "../../infra/bundle.ts";
import { readEvent } from "../../src/lambda/event.ts";
import { toEventBridge } from "../../src/schedule/convert/index.ts";
import { cfnLint, noCfnLint, type Template } from "./cfn-template.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const templateFile = ".serverless/cloudformation-template-update-stack.json";
let folder = "";
let template: Template;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "cronfence-serverless-"));
  await cp(join(root, "serverless.yml"), join(folder, "serverless.yml"));
  await mkdir(join(folder, "infra"));
  await cp(join(root, "infra/control-table.yml"), join(folder, "infra/control-table.yml"));
  await bundleHandler(join(root, "handlers/expire-carts.ts"), join(folder, ".build/expire-carts"));
  // Nothing of this machine's AWS settings, so that the result is the same everywhere.
  const env = { PATH: process.env.PATH, HOME: folder, SLS_TELEMETRY_DISABLED: "1" };
  await run(process.execPath, [join(root, "node_modules/osls/bin/serverless.js"), "package"], { cwd: folder, env });
  template = JSON.parse(await readFile(join(folder, templateFile), "utf8"));
}, 120_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

const ofType = (type: string): Template[] =>
  Object.values(template.Resources as Record<string, Template>)
    .filter(({ Type }) => Type === type)
    .map(({ Properties }) => Properties);

const statements = (): Template[] =>
  ofType("AWS::IAM::Role")
    .filter((role) => JSON.stringify(role.AssumeRolePolicyDocument).includes("lambda.amazonaws.com"))
    .flatMap((role) => role.Policies)
    .flatMap((policy) => policy.PolicyDocument.Statement);

describe("serverless.yml, packaged", () => {
  it("schedules the job as the job says, on a role that can do nothing but invoke it", () => {
    const [schedule] = ofType("AWS::Scheduler::Schedule");
    const said = toEventBridge(job.schedule!);
    expect(said).toMatchObject({ ok: true, expression: schedule.ScheduleExpression });
    expect(schedule.ScheduleExpressionTimezone).toBe(job.schedule!.zone);
    expect(schedule.FlexibleTimeWindow).toEqual({ Mode: "OFF" });
    const target = { "Fn::GetAtt": ["ExpireCartsLambdaFunction", "Arn"] };
    expect(schedule.Target.Arn).toEqual(target);
    expect(schedule.Target.RoleArn).toEqual({ "Fn::GetAtt": ["ExpireCartsScheduleRole", "Arn"] });
    const role = template.Resources.ExpireCartsScheduleRole.Properties;
    expect(role.AssumeRolePolicyDocument.Statement).toMatchObject([
      { Principal: { Service: "scheduler.amazonaws.com" }, Action: "sts:AssumeRole" },
    ]);
    expect(role.Policies.flatMap((policy: Template) => policy.PolicyDocument.Statement)).toEqual([
      { Effect: "Allow", Action: "lambda:InvokeFunction", Resource: target },
    ]);
  });

  it("sends an event that the handler understands, with the scheduled time as the tick", () => {
    const [schedule] = ofType("AWS::Scheduler::Schedule");
    const attributes: Record<string, string> = {
      "scheduled-time": "2026-03-01T06:30:00Z",
      "attempt-number": "2",
      "execution-id": "d32c5kddcf5bb8c3",
      "schedule-arn": "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/expire-carts",
    };
    const input = schedule.Target.Input.replace(
      /<aws\.scheduler\.([a-z-]+)>/g,
      (_: string, name: string) => attributes[name],
    );
    expect(readEvent(job.name, JSON.parse(input), "request-1", Number.POSITIVE_INFINITY)).toEqual({
      kind: "schedule",
      tick: Date.parse("2026-03-01T06:30:00Z"),
      attempt: 2,
      requestId: "request-1",
    });
  });

  it("sets both kinds of retries: the schedule's delivery, and the function's own failures", () => {
    expect(ofType("AWS::Scheduler::Schedule")[0].Target.RetryPolicy).toEqual({
      MaximumRetryAttempts: 5,
      MaximumEventAgeInSeconds: 300,
    });
    expect(ofType("AWS::Lambda::EventInvokeConfig")).toMatchObject([
      { MaximumRetryAttempts: 2, MaximumEventAgeInSeconds: 300 },
    ]);
  });

  it("gives the function longer than the job takes, so that a run ends before the platform ends it", () => {
    const [properties] = ofType("AWS::Lambda::Function");
    expect(properties).toMatchObject({ Runtime: "nodejs22.x", Architectures: ["arm64"] });
    expect(properties.Environment.Variables.CRONFENCE_TABLE).toEqual({ Ref: "ControlTable" });
    // Two request timeouts and a quarter of a second: what an attempt keeps in reserve.
    expect(properties.Timeout * 1_000).toBeGreaterThanOrEqual(job.timeoutMs + 2_250);
  });

  it("lets the function touch its own control items only", () => {
    const own = statements().filter(({ Resource }) => JSON.stringify(Resource).includes("ControlTable"));
    expect(own).toHaveLength(1);
    expect(own[0].Condition).toEqual({ "ForAllValues:StringEquals": { "dynamodb:LeadingKeys": [`job#${job.name}`] } });
  });

  it("lets the function write the application's tables inside transactions only", () => {
    const written = statements().filter(
      ({ Action, Resource }) =>
        [Action].flat().some((action: string) => /^dynamodb:(Put|Update|Delete|Batch|\*)/.test(action)) &&
        !JSON.stringify(Resource).includes("ControlTable"),
    );
    expect(JSON.stringify(written.map(({ Resource }) => Resource))).toMatch(/table\/carts".*table\/cart-audit"/);
    for (const { Condition } of written) {
      expect(Condition).toEqual({
        "ForAnyValue:StringEquals": { "dynamodb:EnclosingOperation": ["TransactWriteItems"] },
      });
    }
    expect(JSON.stringify(statements().map(({ Action }) => Action))).not.toContain("*");
  });

  it("packs the function's bundle and nothing else, and the bundle has the handler", async () => {
    const files = namesIn(await readFile(join(folder, ".serverless/expireCarts.zip")));
    expect(files).toContain(".build/expire-carts/index.mjs");
    expect(files.filter((file) => !/^\.build\/expire-carts\/[\w-]+\.mjs(\.map)?$/.test(file))).toEqual([]);
    expect(ofType("AWS::Lambda::Function")[0].Handler).toBe(".build/expire-carts/index.handler");
  });

  it("passes cfn-lint", async ({ skip }) => {
    const said = await cfnLint(join(folder, templateFile));
    skip(said === undefined, noCfnLint);
    expect(said).toBe("");
  });
});

/** The files of a zip, from the directory at its end: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT */
const namesIn = (zip: Buffer): string[] => {
  const end = zip.lastIndexOf("PK\u0005\u0006");
  const names: string[] = [];
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const [name, extra, comment] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset)) as [
      number,
      number,
      number,
    ];
    names.push(zip.toString("utf8", at + 46, at + 46 + name));
    at += 46 + name + extra + comment;
  }
  return names;
};
