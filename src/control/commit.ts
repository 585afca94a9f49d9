/**
 * Committing under a lease, and renewing it.
 *
 * The control item's action of a commit:
 *
 * | condition | without it |
 * | --- | --- |
 * | the fence is ours | a paused holder would write after its successor (seen alone where an owner is granted again or an item restored) |
 * | the owner is us | a run that was finished or cancelled would go on writing under an unchanged fence |
 * | seq is the number of commits we know of | a request repeated late, or on a server that ignores tokens, would be applied twice |
 */
import { TransactWriteItemsCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { LeaseLostError, type RejectedWrite, WriteRejectedError } from "../errors.ts";
import { newNonce } from "../nonce.ts";
import { type Connection, forgetKeys, learnKeys, sendUntilKnown, unanswered } from "./connection.ts";
import type { Budget, Commit, CommitResult, ControlState, Lease } from "./control-store.ts";
import { controlKey, encodeWatermark, namesIn, readState, valuesOf } from "./items.ts";
import { readRun } from "./read.ts";
import type { Reason } from "./send.ts";
import { commitsOf } from "./tally.ts";
import { noWrites, type PreparedWrites, sameItemRefusal, tableName } from "./writes.ts";

/**
 * Resolves when the commit is known to have been applied, or, with `rejected`, to have been impossible.
 *
 * What DynamoDB says of a user's write is believed at once only if no earlier try is in doubt: the write's own
 * condition may have failed *because* an earlier try was applied, and one that wasn't may still arrive. So an empty
 * commit first takes the earlier try's place in the sequence ("seals" it): if that is granted, the earlier try can
 * never be applied any more; if it is refused, the item names the request that was applied.
 *
 * @throws LeaseLostError when it was refused at the control item.
 * @throws OutcomeUnknownError when the budget ended before the outcome was known.
 * @throws StoreUnavailableError when it certainly wasn't applied, and time, table or permission is missing.
 * @throws CommitRefusedError when DynamoDB refused it for touching one item twice.
 */
export const commit = async (
  connection: Connection,
  lease: Lease,
  commit: Commit,
  budget: Budget,
): Promise<CommitResult> => {
  const token = newNonce();
  const applied = { seq: commit.seq + 1 };
  const settled = await sendUntilKnown(connection, commitCommand(connection, lease, commit, token), budget);
  if (settled.kind === "done") return applied;
  if (settled.kind === "cancelled") {
    const [control, ...writes] = settled.reasons;
    if (control?.code === "ConditionalCheckFailed") {
      const state = control.item && readState(lease.job, control.item);
      if (state !== undefined && holds(state, lease) && state.run?.token === token) return applied;
      throw new LeaseLostError(lease, await fateOf(connection, lease, commit, state, settled.doubt, budget), {
        cause: settled.error,
      });
    }
    const rejected = rejection(connection, lease.job, commit.writes, writes, settled.error);
    if (rejected !== undefined) {
      if (!settled.doubt) return { seq: commit.seq, rejected };
      return (await seal(connection, lease, commit, token, budget)) ? { ...applied, rejected } : applied;
    }
  }
  if (settled.kind === "failed" && !settled.doubt)
    throw await explainFailure(connection, lease, commit.writes, settled.error);
  throw unanswered(connection, lease.job, "commit", settled as { doubt: boolean; error: unknown });
};

/** Whether an empty commit took the place of the one in doubt; `false`: the one in doubt had been applied. */
const seal = async (
  connection: Connection,
  lease: Lease,
  commit: Commit,
  doubted: string,
  budget: Budget,
): Promise<boolean> => {
  const token = newNonce();
  const { seq, leaseUntil, seals = 0 } = commit;
  const sealed = { seq, leaseUntil, writes: noWrites, sealed: seals + 1 };
  const command = commitCommand(connection, lease, sealed, token);
  const settled = await sendUntilKnown(connection, command, budget);
  if (settled.kind === "done") return true;
  if (settled.kind === "cancelled" && settled.reasons[0]?.code === "ConditionalCheckFailed") {
    const item = settled.reasons[0].item;
    const state = item && readState(lease.job, item);
    if (state !== undefined && holds(state, lease)) {
      if (state.run?.token === token) return true;
      if (state.run?.token === doubted) return false;
    }
    throw new LeaseLostError(lease, await fateOf(connection, lease, commit, state, true, budget), {
      cause: settled.error,
    });
  }
  throw unanswered(connection, lease.job, "commit", {
    doubt: true,
    error: "error" in settled ? settled.error : undefined,
  });
};

const commitCommand = (
  connection: Connection,
  lease: Lease,
  // Without `items` the count stays: a seal commits none, and is counted as one.
  commit: Omit<Commit, "items"> & Partial<Commit> & { readonly sealed?: number },
  token: string,
): TransactWriteItemsCommand => {
  const sets = ["#run[0].#seq = :next", "#run[0].#token = :token", "#run[0].#fence = :fence", "#leaseUntil = :until"];
  if (commit.items !== undefined) sets.push("#run[0].#items = :items");
  if (commit.sealed !== undefined) sets.push("#run[0].#seals = :sealed");
  if (commit.watermark !== undefined) sets.push("#watermark = :watermark");
  if (commit.tick !== undefined) sets.push("#tick = :tick", "#run[0].#completed = :tick");
  if (commit.skipped !== undefined) sets.push("#run[0].#skipped = :skipped");
  if (commit.tickPart) sets.push("#tickPart = :tickPart");
  if (commit.covers !== undefined) sets.push("#run[0].#tick = :covers");
  if (commit.prev !== undefined) sets.push("#prev = :prev");
  if (commit.recentOwners !== undefined) sets.push("#recentOwners = :owners");
  const removes = [
    ...(commit.tickPart === null ? ["#tickPart"] : []),
    ...(commit.usesApproval ? ["#approval", "#tripped"] : []),
  ];
  const update = `SET ${sets.join(", ")}${removes.length > 0 ? ` REMOVE ${removes.join(", ")}` : ""}`;
  const condition = "#fence = :fence AND #owner = :me AND #run[0].#seq = :seq";
  return new TransactWriteItemsCommand({
    // The same on every try, and at most 36 characters:
    // https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    ClientRequestToken: token,
    TransactItems: [
      {
        Update: {
          TableName: connection.table,
          Key: controlKey(lease.job),
          UpdateExpression: update,
          ConditionExpression: condition,
          ExpressionAttributeNames: namesIn(update, condition),
          ExpressionAttributeValues: valuesOf({
            ":fence": lease.fence,
            ":me": lease.owner,
            ":seq": commit.seq,
            ":next": commit.seq + 1,
            ":token": token,
            ":items": commit.items,
            ":sealed": commit.sealed,
            ":until": commit.leaseUntil,
            ":watermark": encodeWatermark(commit.watermark),
            ":tick": commit.tick,
            ":skipped": commit.skipped,
            ":tickPart": commit.tickPart ?? undefined,
            ":covers": commit.covers,
            ":prev": commit.prev,
            ":owners": commit.recentOwners,
          }),
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        },
      },
      ...commit.writes.actions,
    ],
  });
};

export const holds = (state: ControlState, lease: Lease): boolean =>
  state.owner === lease.owner && state.fence === lease.fence;

/**
 * What became of a commit whose run was replaced: its successor's list of predecessors tells, or else its record. Asked
 * even without doubt, since a network may repeat a request that was answered with a conflict.
 */
export const fateOf = async (
  connection: Connection,
  lease: Lease,
  known: Pick<Commit, "seq" | "seals">,
  state: ControlState | undefined,
  doubt: boolean,
  budget: Budget,
): Promise<LeaseLostError["lastCommit"]> => {
  const entry = state?.prev.find(({ owner }) => owner === lease.owner);
  if (entry !== undefined) return commitsOf(entry) > commitsOf(known) ? "applied" : "not applied";
  try {
    const record = await readRun(connection, lease.job, lease.run, budget);
    if (record?.owner === lease.owner) return record.commits > commitsOf(known) ? "applied" : "not applied";
  } catch {
    // What isn't known then is said to be unknown.
  }
  return doubt ? "unknown" : "not applied";
};

/** The user's writes that DynamoDB rejected, or `undefined` if none was. */
export const rejection = (
  connection: Connection,
  job: string,
  { actions }: PreparedWrites,
  reasons: readonly Reason[],
  cause: unknown,
): WriteRejectedError | undefined => {
  if (reasons.some(({ code }) => code === "ValidationError")) forgetKeys(connection, actions);
  const rejected = reasons.flatMap(({ code, message, item }, index): RejectedWrite[] =>
    code === "None"
      ? []
      : [
          {
            index,
            code,
            ...(message === undefined ? {} : { message }),
            ...(item === undefined ? {} : { oldItem: unmarshall(item) }),
          },
        ],
  );
  return rejected.length === 0 ? undefined : new WriteRejectedError(job, rejected, { cause });
};

/** A clearer error for a transaction that DynamoDB refused as a whole. */
export const explainFailure = async (
  connection: Connection,
  lease: Lease,
  { actions }: PreparedWrites,
  error: unknown,
): Promise<Error> => {
  if ((error as { name?: string }).name === "ValidationException" && actions.length > 0) {
    forgetKeys(connection, actions);
    const tables = new Set(actions.map((action) => tableName(Object.values(action)[0]?.TableName) as string));
    await learnKeys(connection, [...tables]);
    const refusal = sameItemRefusal(actions, connection.knownKeys);
    if (refusal !== undefined) return refusal;
  }
  return unanswered(connection, lease.job, "commit", { doubt: false, error });
};

/**
 * Prolongs the lease.
 *
 * | condition | without it |
 * | --- | --- |
 * | the fence and the owner are ours | a late renewal would prolong the successor's lease, or bring back a released one |
 * | the lease doesn't end later already | a late renewal would shorten what a commit has prolonged since; refused for that, it is done |
 *
 * A conflict only means that a transaction of ours is running, and is tried again.
 *
 * @throws LeaseLostError when it was refused.
 */
export const renew = async (
  connection: Connection,
  lease: Lease,
  leaseUntil: number,
  budget: Budget,
): Promise<void> => {
  const update = "SET #leaseUntil = :until";
  const condition = "#fence = :fence AND #owner = :me AND #leaseUntil <= :until";
  const settled = await sendUntilKnown(
    connection,
    new UpdateItemCommand({
      TableName: connection.table,
      Key: controlKey(lease.job),
      UpdateExpression: update,
      ConditionExpression: condition,
      ExpressionAttributeNames: namesIn(update, condition),
      ExpressionAttributeValues: valuesOf({ ":until": leaseUntil, ":fence": lease.fence, ":me": lease.owner }),
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    }),
    budget,
  );
  if (settled.kind === "done") return;
  if (settled.kind === "refused") {
    if (settled.item !== undefined && holds(readState(lease.job, settled.item), lease)) return;
    throw new LeaseLostError(lease, "none");
  }
  throw unanswered(connection, lease.job, "renewal", settled as { doubt: boolean; error: unknown });
};
