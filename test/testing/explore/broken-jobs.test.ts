/** Jobs that are wrong are found out, by a schedule in which nothing could be left out, and a timeline that shows why. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { defineJob, type Job } from "cronfence";
import { type ExploreOptions, explore } from "cronfence/testing";
import { expect, it } from "vitest";
import { count, counted, every5, found, tables, workThrough } from "./scene.ts";

/** A client as a module of jobs has one. */
const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));

const writesOutside = defineJob<number>({
  ...every5,
  name: "writes-outside",
  run: async (run) => {
    for (let piece = (run.watermark ?? 0) + 1; piece <= workThrough(run); piece += 1) {
      await documents.send(new UpdateCommand(counted(`made ${piece}`)));
      await run.commit([count(`noted ${piece}`)], { watermark: piece });
    }
  },
});

const watermarkFirst = defineJob<number>({
  ...every5,
  name: "watermark-first",
  run: async (run) => {
    for (let piece = (run.watermark ?? 0) + 1; piece <= workThrough(run); piece += 1) {
      await run.commit([], { watermark: piece });
      await run.commit([count(`piece ${piece}`)]);
    }
  },
});

let mails: string[] = [];
const mailsTwice = defineJob({
  ...every5,
  name: "mails-twice",
  tick: (tick) => {
    mails.push(`report of ${tick.id}`);
    return [count(tick.id)];
  },
});

const ownNow = defineJob({
  ...every5,
  name: "own-now",
  tick: () => [count(`report of ${new Date().toISOString().slice(0, 15)}`)],
});

const cases: [what: string, job: Job, options: ExploreOptions, broken: RegExp][] = [
  [
    "writes outside of its commits",
    writesOutside,
    {},
    /^the tables are as an undisturbed run leaves them: counts id="made \d", times is 2, and 1 undisturbed\n\(the job writes past its commits.*: UpdateItem counts\)/,
  ],
  ["moves its watermark before the work is done", watermarkFirst, {}, /counts id="piece \d" is missing/],
  [
    "has effects that it doesn't mark as such",
    mailsTwice,
    { seed: () => void (mails = []), read: () => ({ mails: [...mails].sort() }) },
    /mails is .*, and .* undisturbed/,
  ],
  [
    "goes by the clock on the wall instead of its tick",
    ownNow,
    {},
    /counts id="report of .*", times is \d, and \d undisturbed/,
  ],
];

it.each(cases)("a job that %s", async (_, job, more, broken) => {
  const options = { tables, budget: 120, ...more };
  const error = await found(job, options);
  expect(error.broken).toMatch(broken);
  expect(error.message).toContain(`replay: "${error.replay}"`);
  expect(error.timeline.length).toBeLessThan(30);
  await isShortest(job, options, error.replay);
});

it("a source that begins again is found, though what it does twice looks the same", async () => {
  const items = ["a", "b", "c"].map((item) => ({ item, cursor: item }));
  const job = defineJob<string>({
    ...every5,
    name: "begins-again",
    source: {
      name: "letters",
      read: async ({ after }) => ({ items: after === "c" ? [] : items, done: true }),
    },
    // As many as make a commit for each item.
    process: (item) =>
      Array.from({ length: 60 }, (_, i) => ({ Put: { TableName: "counts", Item: { id: `${item} ${i}` } } })),
  });
  const error = await found(job, { tables, ticks: 1, replay: "crash-after@A.3" });
  expect(error.broken).toBe("each item is done once: the records count 5 items, and 3 in an undisturbed run");
});

it("what is found is told in full: faults, rule, timeline, and how to see it again", async () => {
  const { message, replay } = await found(watermarkFirst, { tables, ticks: 1, replay: "crash-before@A.3" });
  expect(replay).toBe("crash-before@A.3");
  expect(message.split("\n").map((line) => line.replace(/fence \d+/, "fence F"))).toEqual([
    'job "watermark-first" breaks a rule when this goes wrong',
    "  A.3 its sender dies before it arrives (crash-before)",
    "",
    'this doesn\'t hold: the tables are as an undisturbed run leaves them: counts id="piece 1" is missing',
    "",
    "  01-12 12:00:00.000  A      starts for tick 2026-01-12T12:00:00.000Z",
    "  01-12 12:00:00.000  A.1    UpdateItem control: granted fence F",
    "  01-12 12:00:00.001  A.2    TransactWriteItems control: commit 1, watermark 1",
    "  01-12 12:00:00.002  A.3    TransactWriteItems control, counts: never sent; crash-before: its sender dies before it arrives",
    "  01-12 12:01:00.002  B      starts for tick 2026-01-12T12:00:00.000Z; try 2",
    "  01-12 12:01:00.002  B.1    UpdateItem control: granted fence F",
    "  01-12 12:01:00.003  B.2    PutItem run: done",
    "  01-12 12:01:00.004  B.3    TransactWriteItems control: commit 1, watermark 2",
    "  01-12 12:01:00.005  B.4    TransactWriteItems control, counts: commit 2",
    "  01-12 12:01:00.006  B.5    TransactWriteItems control, run: lease given back, tick 2026-01-12T12:00:00.000Z completed",
    "  01-12 12:01:00.006  B      reports succeeded: 1 items, 2 commits",
    "  01-12 12:01:00.007         nothing more goes wrong",
    "  01-12 18:05:00.000  C      starts for tick 2026-01-12T12:05:00.000Z",
    "  01-12 18:05:00.000  C.1    UpdateItem control: granted fence F",
    "  01-12 18:05:00.001  C.2    TransactWriteItems control: commit 1, watermark 3",
    "  01-12 18:05:00.002  C.3    TransactWriteItems control, counts: commit 2",
    "  01-12 18:05:00.003  C.4    TransactWriteItems control: commit 3, watermark 4",
    "  01-12 18:05:00.004  C.5    TransactWriteItems control, counts: commit 4",
    "  01-12 18:05:00.005  C.6    TransactWriteItems control, run: lease given back, tick 2026-01-12T12:05:00.000Z completed",
    "  01-12 18:05:00.005  C      reports succeeded: 2 items, 4 commits",
    "",
    'replay: "crash-before@A.3"',
  ]);
});

it("a job that doesn't do the same each time is told of it", async () => {
  let plays = 0;
  const job = defineJob({ ...every5, name: "moody", tick: (tick) => (plays === 5 ? [] : [count(tick.id)]) });
  const seed = () => {
    plays += 1;
    return {};
  };
  const error = await found(job, { tables, ticks: 1, seed, budget: 10 });
  expect(error.broken).toMatch(/^the tables are as .* is missing; .*\n\(played again, this schedule breaks nothing/);
});

/** It fails again, in the same words, and without any one of its faults it doesn't. */
const isShortest = async (job: Job, options: ExploreOptions, replay: string): Promise<void> => {
  const again = await found(job, { ...options, replay });
  expect(again.replay).toBe(replay);
  const faults = replay.split(" ");
  for (const left of faults) {
    const shorter = faults.filter((fault) => fault !== left).join(" ");
    await explore(job, { ...options, replay: shorter || "undisturbed" });
  }
};
