/** Wall time against the same work by hand, on the bare SDK client. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type Compared, compare } from "./compare.ts";
import { expireByHand, expireByJob } from "./expiry.ts";
import { type Row, row } from "./row.ts";
import { carts, distantClient, plainClient, type Scene } from "./scene.ts";
import { runByHand, runByJob } from "./small-run.ts";

const runsPerRound = 20;
/** Assumed: with the local engine next door, its work for a request counts for more than the request itself. */
const distanceMs = 5;
const items = carts.toLocaleString("en");
const byHand = "acquire, transaction, release by hand";

export const measureTimes = async (scene: Scene): Promise<Row[]> => {
  const { endpoint } = scene;
  const near = await smallRuns(scene, () => plainClient(endpoint), 60);
  const far = await smallRuns(scene, () => distantClient(endpoint, distanceMs), 20);
  const large = await manyItems(scene);
  return [
    row(`a small run: of the time of ${byHand}`, near.ratio, "ratio", { atMost: 0.85 }),
    row("a small run", near.oursMs / runsPerRound, "ms"),
    row(byHand, near.theirsMs / runsPerRound, "ms"),
    row(`the same, each request ${distanceMs} ms away`, far.ratio, "ratio", { atMost: 0.85 }),
    row(`a run over ${items} items: of the time of a loop by hand`, large.ratio, "ratio", { atMost: 1.05 }),
    row(`a run over ${items} items`, large.oursMs, "ms"),
    row(`a loop by hand over ${items} items`, large.theirsMs, "ms"),
  ];
};

/** A client each, so that neither warms the other's connections. */
const smallRuns = async (scene: Scene, connect: () => DynamoDBClient, rounds: number): Promise<Compared> => {
  const [ours, theirs] = [connect(), connect()];
  const name = await scene.jobName();
  const compared = await compare(
    () => runByJob(ours, name, runsPerRound),
    () => runByHand(theirs, `by-hand-${name}`, runsPerRound),
    { rounds, warmUps: 10 },
  );
  ours.destroy();
  theirs.destroy();
  return compared;
};

const manyItems = async (scene: Scene): Promise<Compared> => {
  const [ours, theirs] = [plainClient(scene.endpoint), plainClient(scene.endpoint)];
  const compared = await compare(
    async () => expireByJob(ours, await scene.jobName()),
    () => expireByHand(theirs),
    { rounds: 10, warmUps: 2 },
  );
  ours.destroy();
  theirs.destroy();
  return compared;
};
