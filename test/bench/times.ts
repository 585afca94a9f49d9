/** Wall time against the same work by hand, on the bare SDK client. */
import { compare } from "./compare.ts";
import { expireByHand, expireByJob } from "./expiry.ts";
import { type Row, row } from "./row.ts";
import { carts, plainClient, type Scene } from "./scene.ts";
import { runByHand, runByJob } from "./small-run.ts";

const runsPerRound = 20;

export const measureTimes = async (scene: Scene): Promise<Row[]> => {
  // A client each, so that neither warms the other's connections.
  const ours = plainClient(scene.endpoint);
  const theirs = plainClient(scene.endpoint);
  const name = await scene.jobName();
  const small = await compare(
    () => runByJob(ours, name, runsPerRound),
    () => runByHand(theirs, `by-hand-${name}`, runsPerRound),
    { rounds: 60, warmUps: 15 },
  );
  const large = await compare(
    async () => expireByJob(ours, await scene.jobName()),
    () => expireByHand(theirs),
    { rounds: 10, warmUps: 2 },
  );
  ours.destroy();
  theirs.destroy();
  const items = carts.toLocaleString("en");
  return [
    row("a small run: of the time of acquire, transaction, release by hand", small.ratio, "ratio", { atMost: 0.85 }),
    row("a small run", small.oursMs / runsPerRound, "ms"),
    row("acquire, transaction, release by hand", small.theirsMs / runsPerRound, "ms"),
    row(`a run over ${items} items: of the time of a loop by hand`, large.ratio, "ratio", { atMost: 1.05 }),
    row(`a run over ${items} items`, large.oursMs, "ms"),
    row(`a loop by hand over ${items} items`, large.theirsMs, "ms"),
  ];
};
