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
