/**
 * What a history has broken, in one sentence: a rule of the protocol, or else what the job was meant to come to, which is what
 * it comes to where nothing goes wrong.
 */
import type { RunRecord } from "../../control/control-store.ts";
import { type Differences, differencesBetween } from "../drills/state.ts";
import type { ExploreOptions } from "./explore-options.ts";
import type { Stage } from "./history.ts";
import type { Played } from "./play.ts";

/** An undisturbed history in which something fails tells nothing about faults. */
export const unfinished = ({ records }: Played): string | undefined => {
  const failed = records.find(({ outcome }) => outcome !== "succeeded" && outcome !== "capped");
  if (failed === undefined) return undefined;
  return `the job's runs succeed where nothing goes wrong: one of them ${failed.outcome}${failed.error ? `, ${failed.error.name}: ${failed.error.message}` : ""}`;
};

export const brokenBy = async (
  played: Played,
  expected: Played,
  ignored: ReadonlySet<string>,
  { scene, job }: Stage,
  check: ExploreOptions["check"],
): Promise<string | undefined> => {
  if (played.violation !== undefined) return played.violation;
  const differences = differencesBetween(expected.state, played.state, ignored);
  const different = differencesText(differences);
  if (different !== undefined) {
    const { ownWrites } = played;
    const hint =
      ownWrites.length === 0
        ? ""
        : `\n(the job writes past its commits, which no fence stands behind and no watermark goes with: ${[...new Set(ownWrites)].join("; ")})`;
    return `the tables are as an undisturbed run leaves them: ${different}${hint}`;
  }
  if (job.work.shape !== "run") {
    const [expectedItems, items] = [itemsOn(expected.records), itemsOn(played.records)];
    if (items !== expectedItems) {
      return `each item is done once: the records count ${items} items, and ${expectedItems} in an undisturbed run`;
    }
  }
  try {
    await check?.({ client: scene.ground.client, records: played.records });
  } catch (error) {
    return `the check holds: ${(error as Error)?.message ?? String(error)}`;
  }
  return undefined;
};

const itemsOn = (records: readonly RunRecord[]): number => records.reduce((sum, { items }) => sum + items, 0);

const differencesText = ({ missing, extra, different }: Differences): string | undefined => {
  const lines = [
    ...missing.map((name) => `${name} is missing`),
    ...extra.map((name) => `${name} shouldn't be there`),
    ...different.map(
      ({ name, path, expected, found }) =>
        `${name}${path === "" ? "" : `, ${path}`} is ${JSON.stringify(found)}, and ${JSON.stringify(expected)} undisturbed`,
    ),
  ];
  if (lines.length === 0) return undefined;
  const more = lines.length - mostLines;
  return lines.slice(0, mostLines).join("; ") + (more > 0 ? `; and ${more} more` : "");
};
const mostLines = 5;
