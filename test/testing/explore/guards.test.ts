/**
 * Each condition of the protocol is taken away on the wire, and the exploration shows what it is for. The same schedules break
 * nothing while it is there.
 */
import { defineJob, type Job } from "cronfence";
import { explore } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { exploreThrough } from "../../../src/testing/explore/explore.ts";
import type { WireRequest } from "../../../src/testing/wire.ts";
import { every5, runJob, tables, tickJob } from "./scene.ts";

/** Renews its lease while it works. */
const slowJob = defineJob({
  ...every5,
  name: "slow-job",
  tick: async () => {
    await new Promise((resolve) => setTimeout(resolve, 45_000));
    return [];
  },
});

type Rewrite = (request: WireRequest) => string;
type Action = Readonly<Record<string, { readonly TableName?: string; readonly Key?: { readonly sk?: unknown } }>>;

/** The request with these parts of its condition made true of every item. */
const without =
  (which: (request: WireRequest) => boolean, ...clauses: readonly string[]): Rewrite =>
  (request) =>
    which(request)
      ? JSON.stringify(JSON.parse(request.body), (name, value) =>
          name === "ConditionExpression"
            ? clauses.reduce((text, clause) => text.replaceAll(clause, `(${clause} OR ${not(clause)})`), String(value))
            : value,
        )
      : request.body;

/** DynamoDB refuses parentheses that aren't needed. */
const not = (clause: string) => (/^[^(]* AND /.test(clause) ? `NOT (${clause})` : `NOT ${clause}`);

const isTransaction = ({ operation }: WireRequest) => operation === "TransactWriteItems";
const isFinish = (request: WireRequest) => isTransaction(request) && request.body.includes('"run#');
const isCommit = (request: WireRequest) => isTransaction(request) && !isFinish(request);
const isUpdate = ({ operation }: WireRequest) => operation === "UpdateItem";

const fence = "#fence = :fence";
const owner = "#owner = :me";
const seq = "#run[0].#seq = :seq";
const nothingLater = "(attribute_not_exists(#pending) OR #pending <= :covered)";

const guards: [guard: string, rewrite: Rewrite, job: Job, replay: string, broken: RegExp][] = [
  [
    "fence and owner of a commit",
    without(isCommit, fence, owner),
    runJob,
    "paused-before@A.2 wakes@B.2",
    /^nothing is written under a fence once a greater one was granted: {"by":"A"/,
  ],
  [
    "seq of a commit",
    without(isCommit, seq),
    runJob,
    "arrives-late@A.2",
    /^nothing is committed without being counted/,
  ],
  [
    "fence and owner of a finish",
    without(isFinish, fence, owner),
    tickJob,
    "paused-before@A.2 wakes@B.2",
    /^nothing is written under a fence once a greater one was granted: {"by":"A"/,
  ],
  [
    "fence, owner and seq of a finish",
    without(isFinish, fence, owner, seq),
    tickJob,
    "paused-before@A.2",
    /^the completed tick never goes back/,
  ],
  [
    "look at what is queued of a finish",
    without(isFinish, nothingLater),
    tickJob,
    "late@tick1 paused-before@A.2",
    /^a queued tick is never forgotten/,
  ],
  [
    "condition of a renewal",
    without(isUpdate, `${fence} AND ${owner} AND #leaseUntil <= :until`),
    slowJob,
    "paused-before@A.2 wakes@B.2",
    /^nothing is written under a fence once a greater one was granted: {"by":"A"/,
  ],
  [
    "lease of an acquisition",
    without(isUpdate, "#leaseUntil < :expired"),
    tickJob,
    "overtaken@A.2",
    /^a live lease is only taken over by policy: "B"/,
  ],
  [
    "tick of an acquisition",
    without(isUpdate, "(attribute_not_exists(#tick) OR #tick < :tick)"),
    tickJob,
    "twice@tick1",
    /^no run is granted for a completed tick: \["B"/,
  ],
];

describe.each(guards)("The %s", (_, rewrite, job, replay, broken) => {
  const options = { tables, replay };

  it("keeps a rule", async () => {
    await expect(exploreThrough(job, options, rewrite)).rejects.toMatchObject({
      code: "EXPLORATION_FAILED",
      replay,
      broken: expect.stringMatching(broken),
    });
  });

  it("keeps it in this schedule", async () => {
    await explore(job, options);
  });
});

it("a guard that is gone is found, and the schedule cut down to what it takes", async () => {
  const rewrite = without(isFinish, fence, owner, seq);
  const explored = exploreThrough(tickJob, { tables, budget: 60 }, rewrite);
  await expect(explored).rejects.toMatchObject({ replay: "arrives-late@A.2" });
});

it("work that isn't written with its watermark is missed", async () => {
  // A server that forgets users' writes when it gets the first commit once more.
  const forgetful: Rewrite = ({ at, body }) => {
    if (at !== 2 || !body.includes('"piece 1"')) return body;
    const request = JSON.parse(body) as { readonly TransactItems: readonly Action[] };
    const kept = request.TransactItems.filter((action) => Object.values(action)[0]?.Key?.sk !== undefined);
    return JSON.stringify({ ...request, TransactItems: kept });
  };
  const explored = exploreThrough(runJob, { tables, replay: "lost-request@A.2" }, forgetful);
  await expect(explored).rejects.toThrow('undisturbed run leaves them: counts id="piece 1" is missing');
});
