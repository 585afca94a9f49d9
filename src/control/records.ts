/**
 * Run records that are written outside a finish: of runs that died, and of runs that learnt that they had lost.
 *
 * | record | written as | on condition | without it |
 * | --- | --- | --- | --- |
 * | a predecessor's | `crashed` | none exists | a finished or cancelled run would be shown as crashed |
 * | our own, after losing | `lease_lost` | none exists, or it is ours and says `crashed` | it would hide how the run really ended |
 * | | | and counts no more commits than we know of | it would leave out a commit in doubt that was applied |
 *
 * Only a run that was granted a higher fence has predecessors to record; nobody else may write `crashed`, since an
 * expired holder that nobody has replaced may still go on.
 */
import { PutItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { type Connection, sendUntilKnown, unanswered } from "./connection.ts";
import type { Budget, ControlState, RunEntry, RunRecord } from "./control-store.ts";
import { controlKey, namesIn, readRecord, valuesOf, writeRecord } from "./items.ts";
import { commitsOf, rememberOwners } from "./tally.ts";

/** Records `entries` as crashed; those whose record is known to exist now are returned, the others are tried by a later run. */
export const recordCrashed = async (
  connection: Connection,
  job: string,
  entries: readonly RunEntry[],
  at: number,
  budget: Budget,
): Promise<readonly RunEntry[]> => {
  const recorded = await Promise.all(
    entries.map(async (entry) => {
      const settled = await putRecord(
        connection,
        crashedRecord(job, entry, at),
        "attribute_not_exists(#pk)",
        {},
        budget,
      );
      return settled.kind === "done" || settled.kind === "refused" ? entry : undefined;
    }),
  );
  return recorded.filter((entry) => entry !== undefined);
};

const crashedRecord = (job: string, entry: RunEntry, at: number): RunRecord => ({
  job,
  id: entry.id,
  owner: entry.owner,
  outcome: "crashed",
  trigger: entry.trigger,
  startedAt: entry.startedAt,
  endedAt: at,
  items: entry.items ?? 0,
  commits: commitsOf(entry),
  ...(entry.fence === undefined ? {} : { fence: entry.fence }),
  ...(entry.requestId === undefined ? {} : { requestId: entry.requestId }),
  ...(entry.version === undefined ? {} : { version: entry.version }),
  ...(entry.tick === undefined ? {} : { ticks: { from: entry.tick, through: entry.tick, count: 1 } }),
  ...(entry.completed === undefined ? {} : { completed: entry.completed }),
  ...(entry.skipped === undefined ? {} : { skipped: entry.skipped }),
});

export const recordLost = async (connection: Connection, record: RunRecord, budget: Budget): Promise<RunRecord> => {
  const settled = await putRecord(
    connection,
    record,
    "attribute_not_exists(#pk) OR (#owner = :me AND #outcome = :crashed AND #commits <= :commits)",
    { ":me": record.owner, ":crashed": "crashed", ":commits": record.commits },
    budget,
  );
  if (settled.kind === "done") return record;
  if (settled.kind === "refused") return settled.item === undefined ? record : readRecord(settled.item);
  throw unanswered(connection, record.job, "record of a lost lease", settled);
};

const putRecord = (
  connection: Connection,
  record: RunRecord,
  condition: string,
  values: Record<string, string | number>,
  budget: Budget,
) =>
  sendUntilKnown(
    connection,
    new PutItemCommand({
      TableName: connection.table,
      Item: writeRecord(record),
      ConditionExpression: condition,
      ExpressionAttributeNames: namesIn(condition),
      ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: valuesOf(values) }),
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    }),
    budget,
  );

/**
 * Records a full backlog of unfinished predecessors and takes it off the control item, so that an acquisition has room.
 * Taken off only while the item still shows this very backlog under this fence.
 */
export const clearPredecessors = async (connection: Connection, state: ControlState, budget: Budget): Promise<void> => {
  const recorded = await recordCrashed(connection, state.job, state.prev, budget.clock.now(), budget);
  const left = state.prev.filter((entry) => !recorded.includes(entry));
  const update = "SET #prev = :left, #recentOwners = :owners";
  const condition = "#fence = :seen AND #prev = :prev";
  const settled = await sendUntilKnown(
    connection,
    new UpdateItemCommand({
      TableName: connection.table,
      Key: controlKey(state.job),
      UpdateExpression: update,
      ConditionExpression: condition,
      ExpressionAttributeNames: namesIn(update, condition),
      ExpressionAttributeValues: valuesOf({
        ":left": left,
        ":owners": rememberOwners(
          state,
          recorded.map(({ owner }) => owner),
        ),
        ":seen": state.fence,
        ":prev": state.prev,
      }),
    }),
    budget,
  );
  const cleared = settled.kind === "done" && recorded.length > 0;
  if (cleared || settled.kind === "refused") return;
  throw unanswered(connection, state.job, "clearing of unfinished predecessors", {
    doubt: settled.doubt,
    error: "error" in settled ? settled.error : new Error("no predecessor could be recorded"),
  });
};
