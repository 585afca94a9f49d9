/** What a job's function may do, judged as IAM would: everything that its runs ask for, and nothing else. */
import { cron, defineJob, type Job, NotDoneError, runJob } from "cronfence";
import { queryAfter, scanAll } from "cronfence/sources";
import { createTable, settableClock } from "cronfence/testing";
import { watchdog } from "cronfence/watchdog";
import { beforeAll, describe, expect, it } from "vitest";
import { jobRoleResources } from "../../infra/job-role.ts";
import { serviceResources } from "../../infra/service.ts";
import { controlTable, freshName, silentLog, useEngine } from "../fixture.ts";
import type { Template } from "./cfn-template.ts";
import { isAllowed, type Request, requestsOf } from "./iam.ts";
import { account, region, resolved } from "./resolved.ts";
import {
  dailyReport,
  deployed,
  expireCarts,
  otherAccountsTable,
  rebuild,
  sampleService,
  settings,
  withFunctions,
} from "./sample-service.ts";

const engine = useEngine("orders", "audit");
const at = Date.parse("2026-03-01T00:00:00Z");

beforeAll(async () => {
  await createTable(engine.client, {
    name: "carts",
    key: { hash: "id" },
    indexes: { byExpiry: { hash: "shop", range: "expiresAtId" } },
  });
});

const arnOf = (table: string): string => `arn:aws:dynamodb:${region}:${account}:table/${table}`;

/** A role's statements, in a service of these jobs. */
const statementsOf = (job: Job, ...others: readonly Job[]): Template[] => {
  const service = {
    jobs: [job, ...others].map((each) => deployed(each)),
    settings: { ...settings, controlTable: { create: true, name: controlTable } as const },
  };
  const template = { Resources: withFunctions(service, serviceResources(service)) };
  const [role] = Object.values(jobRoleResources(deployed(job), service)) as [Template];
  return resolved(role.Properties.Policies, template).flatMap(
    ({ PolicyDocument }: Template) => PolicyDocument.Statement,
  );
};

/** Everything that a run of `job` asked of DynamoDB. */
const askedBy = async (job: Job, tick = at): Promise<Request[]> => {
  const clock = settableClock(tick + 1_000);
  const before = engine.proxy.requests.length;
  await runJob(job, { kind: "schedule", tick }, { store: engine.faulty(), clock, log: silentLog });
  return engine.proxy.requests.slice(before).flatMap((request) => requestsOf(request, arnOf));
};

const refusedOf = (statements: readonly Template[], asked: readonly Request[]) =>
  asked.filter((request) => !isAllowed(statements, request));

const order = (id: string) => ({ Put: { TableName: "orders", Item: { id } } });
const writesOrders = { access: [{ table: "orders", write: true }] } as const;
const ofDay = { schedule: cron("0 0 * * *"), exact: true, timeout: "4m" } as const;

describe("A job's role allows all that its runs ask for:", () => {
  it("a tick's writes, on the job's first use and after", async () => {
    const job = defineJob({ ...ofDay, ...writesOrders, name: freshName(), tick: ({ id }) => [order(id)] });
    const asked = [...(await askedBy(job)), ...(await askedBy(job, at + 86_400_000))];
    expect(new Set(asked.map(({ action }) => action))).toEqual(new Set(["dynamodb:UpdateItem", "dynamodb:PutItem"]));
    expect(refusedOf(statementsOf(job), asked)).toEqual([]);
  });

  it("a source by an index, with items that fail and are parked, and then done after all", async () => {
    let broken = true;
    const job = defineJob({
      ...ofDay,
      name: freshName(),
      access: [
        { table: "audit", write: true },
        { table: "carts", read: true, write: true },
      ],
      source: queryAfter<{ id: string }>({
        table: "carts",
        index: "byExpiry",
        partition: { shop: "eu" },
        sort: "expiresAtId",
      }),
      process: ({ id }) => {
        if (broken) throw new Error("broken");
        return [
          { ConditionCheck: { TableName: "carts", Key: { id }, ConditionExpression: "attribute_exists(id)" } },
          { Put: { TableName: "audit", Item: { id } } },
        ];
      },
      onItemError: "park",
      maxAttempts: 1,
    });
    const put = { TableName: "carts", Item: { id: "c1", shop: "eu", expiresAtId: "2026-02-01T00:00:00.000Z#c1" } };
    const seed = defineJob({ name: freshName(), timeout: "1m", run: (run) => run.commit([{ Put: put }]) });
    await runJob(seed, { kind: "manual" }, { store: engine.store, clock: settableClock(at), log: silentLog });
    const parking = await askedBy(job);
    broken = false;
    const clock = settableClock(at + 60_000);
    const before = engine.proxy.requests.length;
    const report = await runJob(
      job,
      { kind: "manual", parked: "all" },
      { store: engine.faulty(), clock, log: silentLog },
    );
    expect(report).toMatchObject({ outcome: "succeeded", items: 1 });
    const retrying = engine.proxy.requests.slice(before).flatMap((request) => requestsOf(request, arnOf));
    const asked = [...parking, ...retrying];
    expect(new Set(asked.map(({ action }) => action))).toEqual(
      new Set(
        ["Query", "GetItem", "UpdateItem", "PutItem", "DeleteItem", "ConditionCheckItem"].map(
          (name) => `dynamodb:${name}`,
        ),
      ),
    );
    expect(refusedOf(statementsOf(job), asked)).toEqual([]);
  });

  it("a scan of a whole table", async () => {
    const job = defineJob({ ...ofDay, name: freshName(), source: scanAll({ table: "orders" }), process: () => [] });
    const asked = await askedBy(job);
    expect(asked.map(({ action }) => action)).toEqual(
      expect.arrayContaining(["dynamodb:Scan", "dynamodb:DescribeTable"]),
    );
    expect(refusedOf(statementsOf(job), asked)).toEqual([]);
  });

  it("an effect that is done once, and one that certainly wasn't", async () => {
    const job = defineJob({
      name: freshName(),
      timeout: "1m",
      run: async (run) => {
        await run.once("sent", () => "ok");
        await run
          .once("refused", () => {
            throw new NotDoneError("no");
          })
          .catch(() => {});
      },
    });
    const asked = await askedBy(job);
    expect(asked.map(({ action }) => action)).toContain("dynamodb:DeleteItem");
    expect(refusedOf(statementsOf(job), asked)).toEqual([]);
  });

  it("a watchdog's look at jobs that never ran, and at one that is overdue, which it starts", async () => {
    const late = defineJob({ ...ofDay, name: freshName(), tick: () => [] });
    const other = defineJob({ ...ofDay, name: freshName(), tick: () => [] });
    await askedBy(late, at - 7 * 86_400_000);
    const job = watchdog({
      name: freshName(),
      jobs: [late, other],
      heal: true,
      start: async () => {},
      metrics: "off",
      store: engine.faulty(),
      clock: settableClock(at),
    });
    const asked = await askedBy(job);
    const actions = asked.map(({ action }) => action);
    expect(actions).toEqual(
      expect.arrayContaining(["BatchGetItem", "PutItem", "UpdateItem"].map((name) => `dynamodb:${name}`)),
    );
    expect(refusedOf(statementsOf(job, late, other), asked)).toEqual([]);
    // Not what a job's own role allows.
    expect(refusedOf(statementsOf(late, job, other), asked).length).toBeGreaterThan(0);
  });
});

describe("A job's role refuses", () => {
  const template = { Resources: withFunctions(sampleService, serviceResources(sampleService)) };
  const roleOf = (id: string): Template[] =>
    resolved(template.Resources[id]?.Properties.Policies, template).flatMap(
      ({ PolicyDocument }: Template) => PolicyDocument.Statement,
    );
  const role = roleOf("JobexpireDashcartsRole");
  const control = arnOf("shop-prod-cronfence");
  const inTransaction = { "dynamodb:EnclosingOperation": ["TransactWriteItems"] };
  const itemOf = (job: string) => ({ "dynamodb:LeadingKeys": [`job#${job}`] });
  const allows = (action: string, resource: string, context: Request["context"] = {}) =>
    isAllowed(role, { action, resource, context });

  it("another job's control items, also beside its own in one request", () => {
    expect(allows("dynamodb:UpdateItem", control, itemOf("expire-carts"))).toBe(true);
    for (const action of ["GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"]) {
      expect(allows(`dynamodb:${action}`, control, itemOf("daily_report"))).toBe(false);
      const both = { "dynamodb:LeadingKeys": ["job#expire-carts", "job#daily_report"] };
      expect(allows(`dynamodb:${action}`, control, both)).toBe(false);
    }
  });

  it("a request for control items without a key, and a scan", () => {
    for (const action of ["Query", "UpdateItem", "Scan", "BatchGetItem", "BatchWriteItem", "PartiQLSelect"]) {
      expect(allows(`dynamodb:${action}`, control)).toBe(false);
    }
    expect(allows("dynamodb:Scan", control, itemOf("expire-carts"))).toBe(false);
    expect(allows("dynamodb:DeleteTable", control)).toBe(false);
  });

  it("a write outside a transaction, and in a transaction to a table that isn't declared", () => {
    for (const action of ["PutItem", "UpdateItem", "DeleteItem"]) {
      expect(allows(`dynamodb:${action}`, arnOf("carts"), inTransaction)).toBe(true);
      expect(allows(`dynamodb:${action}`, arnOf("carts"))).toBe(false);
      expect(allows(`dynamodb:${action}`, arnOf("orders"), inTransaction)).toBe(false);
    }
    expect(allows("dynamodb:BatchWriteItem", arnOf("carts"))).toBe(false);
  });

  it("reading what is declared for writing only, beyond what the source reads", () => {
    expect(allows("dynamodb:Query", `${arnOf("carts")}/index/byExpiry`)).toBe(true);
    expect(allows("dynamodb:GetItem", arnOf("cart-audit"))).toBe(true);
    expect(allows("dynamodb:GetItem", arnOf("carts"))).toBe(false);
    expect(allows("dynamodb:Query", arnOf("carts"))).toBe(false);
    expect(allows("dynamodb:Scan", `${arnOf("carts")}/index/byExpiry`)).toBe(false);
    expect(allows("dynamodb:Query", `${arnOf("carts")}/index/byShop`)).toBe(false);
  });

  it("another function's logs, and invoking another function", () => {
    const logs = (name: string) => `arn:aws:logs:${region}:${account}:log-group:/aws/lambda/${name}:log-stream:one`;
    expect(allows("logs:PutLogEvents", logs("shop-prod-expire-carts"))).toBe(true);
    expect(allows("logs:PutLogEvents", logs("shop-prod-sweep"))).toBe(false);
    expect(allows("logs:CreateLogGroup", logs("shop-prod-expire-carts"))).toBe(false);
    const functionArn = (name: string) => `arn:aws:lambda:${region}:${account}:function:${name}`;
    expect(allows("lambda:InvokeFunction", functionArn("shop-prod-expire-carts"))).toBe(true);
    expect(allows("lambda:InvokeFunction", functionArn("shop-prod-sweep"))).toBe(false);
  });

  it("metrics, but for a job that sends them by request, and then in cronfence's namespace only", () => {
    const put = (id: string, namespace: string) =>
      isAllowed(roleOf(id), {
        action: "cloudwatch:PutMetricData",
        resource: "any",
        context: { "cloudwatch:namespace": [namespace] },
      });
    expect(put("JobexpireDashcartsRole", "cronfence")).toBe(false);
    expect(put("JobdailyUnderscorereportRole", "cronfence")).toBe(true);
    expect(put("JobdailyUnderscorereportRole", "AWS/Lambda")).toBe(false);
  });

  it("starting itself, for a job that never has another run follow", () => {
    const invokes = (job: Job) => statementsOf(job).some(({ Sid }) => Sid === "RunAgain");
    expect(invokes(rebuild)).toBe(false);
    expect(invokes(dailyReport)).toBe(true);
    const chain = { ...rebuild, work: { ...expireCarts.work, onBacklog: "continue" } } as Job;
    expect(invokes(chain)).toBe(true);
  });

  it("starting others, for a watchdog that doesn't heal, and anything beyond a look for one that does", () => {
    const watching = watchdog({ jobs: () => [] });
    expect(statementsOf(watching, expireCarts).map(({ Sid }) => Sid)).not.toContain("Heal");
    const healing = roleOf("JobwatchdogRole");
    const invoke = (name: string) => ({
      action: "lambda:InvokeFunction",
      resource: `arn:aws:lambda:${region}:${account}:function:${name}`,
    });
    expect(isAllowed(healing, invoke("shop-prod-sweep"))).toBe(true);
    expect(isAllowed(healing, invoke("shop-dev-sweep"))).toBe(false);
    for (const action of ["DeleteItem", "Query", "Scan"]) {
      expect(isAllowed(healing, { action: `dynamodb:${action}`, resource: control, context: itemOf("sweep") })).toBe(
        false,
      );
    }
    expect(
      isAllowed(healing, { action: "dynamodb:UpdateItem", resource: arnOf("carts"), context: inTransaction }),
    ).toBe(false);
  });
});

describe("A role", () => {
  it("has what the environment makes a job need: metrics that the function is told to send by request", () => {
    const sids = (environment: Record<string, string>) => {
      const job = deployed(defineJob({ name: "a", timeout: "1m", environment, run: () => {} }));
      const [role] = Object.values(jobRoleResources(job, { jobs: [job], settings })) as [Template];
      return role.Properties.Policies[0].PolicyDocument.Statement.map(({ Sid }: Template) => Sid);
    };
    expect(sids({ CRONFENCE_METRICS: "cloudwatch" })).toContain("Metrics");
    expect(sids({ CRONFENCE_METRICS: "emf" })).not.toContain("Metrics");
  });

  it("of a watchdog has what its metrics need, and reaches the jobs of other services that it was given", () => {
    const elsewhere = defineJob({ name: "elsewhere", timeout: "1m", run: () => {} });
    const statements = statementsOf(watchdog({ jobs: [elsewhere, rebuild], metrics: "cloudwatch" }), rebuild);
    const of = (sid: string) => statements.find(({ Sid }) => Sid === sid);
    expect(of("Metrics")?.Action).toEqual(["cloudwatch:PutMetricData"]);
    expect(of("WatchedControlItems")?.Condition["ForAllValues:StringEquals"]).toEqual({
      "dynamodb:LeadingKeys": ["job#elsewhere", "job#rebuild"],
    });
  });

  it("names a table that isn't the stack's own by its ARN, and one that is given by name in the stack's account", () => {
    const table = (controlTableSetting: Template) => {
      const job = deployed(rebuild);
      const [role] = Object.values(
        jobRoleResources(job, { jobs: [job], settings: { ...settings, controlTable: controlTableSetting } }),
      ) as [Template];
      const statements = role.Properties.Policies[0].PolicyDocument.Statement;
      return resolved(statements.find(({ Sid }: Template) => Sid === "OwnControlItems").Resource, { Resources: {} });
    };
    expect(table({ create: false, name: "jobs" })).toBe(arnOf("jobs"));
    expect(table({ create: false, name: "jobs", arn: otherAccountsTable })).toBe(otherAccountsTable);
  });
});
