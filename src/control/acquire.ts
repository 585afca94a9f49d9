/**
 * Getting the lease.
 *
 * The acquiring update is granted only when all of these hold:
 *
 * | condition | without it |
 * | --- | --- |
 * | the item exists | a deleted item would hand out old fences again |
 * | not paused | a paused job would run |
 * | not moved to another name, nor on its way to this one | the job would run under both, each with a fence of its own |
 * | the tick is later than the completed one | a tick would be completed twice |
 * | no owner, or an owner that isn't us whose lease has been over for the skew | two runs at once, or one acquisition granted twice |
 * | we aren't among the recent owners | a late repetition of an old request would be granted with nobody behind it |
 * | we aren't among the unfinished predecessors | one acquisition that was granted and taken over meanwhile would be granted again, as a predecessor of its own |
 * | fewer than 20 unfinished predecessors | the item would grow without bound |
 * | for a takeover: the fence is the one we saw | two takeovers would fence each other out |
 */
import { PutItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { JobMovedError } from "../errors.ts";
import { type Connection, sendUntilKnown, unanswered } from "./connection.ts";
import type { AcquireRequest, AcquireResult, Budget, ControlState, RunEntry } from "./control-store.ts";
import { controlKey, type Item, mostPredecessors, namesIn, readState, valuesOf } from "./items.ts";
import { pauseInForce } from "./pause.ts";
import { readControl } from "./read.ts";
import { clearPredecessors } from "./records.ts";

export const acquire = async (
  connection: Connection,
  request: AcquireRequest,
  budget: Budget,
): Promise<AcquireResult> => {
  for (;;) {
    const settled = await sendUntilKnown<{ Attributes?: Item }>(
      connection,
      acquireCommand(connection, request),
      budget,
    );
    if (settled.kind === "done") return acquired(request, readState(request.job, settled.value.Attributes ?? {}));
    if (settled.kind === "refused") {
      if (settled.item === undefined) {
        await create(connection, request.job, request.since ?? request.now, budget, request.now);
        continue;
      }
      const state = readState(request.job, settled.item);
      const answer = readRefusal(request, state);
      if (answer !== "backlog") return answer;
      await clearPredecessors(connection, state, budget);
      continue;
    }
    // Nothing but conflicts: the holder is in mid-commit; or it is us, by a request that the network repeated.
    if (settled.kind === "spent" && !settled.doubt && isConflict(settled.error)) {
      const state = await readControl(connection, request.job, {
        ...budget,
        until: budget.until + connection.requestTimeoutMs,
      });
      if (state?.owner === request.owner) return acquired(request, state);
      if (state?.owner !== undefined) return { kind: "held", state };
    }
    throw unanswered(connection, request.job, "acquire", settled as { doubt: boolean; error: unknown });
  }
};

const acquireCommand = (connection: Connection, request: AcquireRequest): UpdateItemCommand => {
  const { job, owner, now, ttlMs, skewMs, tick, takeover } = request;
  const run: RunEntry = { ...request.run, owner, seq: 0 };
  const update =
    "SET #owner = :me, #leaseUntil = :until, #run = :run, " +
    "#prev = list_append(if_not_exists(#prev, :none), if_not_exists(#run, :none)) " +
    "ADD #fence :one, #unfinished :one";
  const conditions = [
    "attribute_exists(#pk)",
    "(attribute_not_exists(#paused) OR #paused.#until <= :now)",
    "attribute_not_exists(#moving)",
    ...(tick === undefined ? [] : ["(attribute_not_exists(#tick) OR #tick < :tick)"]),
    takeover === undefined
      ? "(attribute_not_exists(#owner) OR (#owner <> :me AND #leaseUntil < :expired))"
      : "(#fence = :seen AND (attribute_not_exists(#owner) OR #owner <> :me))",
    "(attribute_not_exists(#recentOwners) OR NOT contains(#recentOwners, :me))",
    `NOT (${isPredecessor})`,
    "(attribute_not_exists(#prev) OR size(#prev) < :cap)",
  ];
  const condition = conditions.join(" AND ");
  return new UpdateItemCommand({
    TableName: connection.table,
    Key: controlKey(job),
    UpdateExpression: update,
    ConditionExpression: condition,
    ExpressionAttributeNames: namesIn(update, condition),
    ExpressionAttributeValues: valuesOf({
      ":me": owner,
      ":until": now + ttlMs,
      ":run": [run],
      ":none": [],
      ":one": 1,
      ":now": now,
      ":cap": mostPredecessors,
      ":tick": tick,
      ...(takeover === undefined ? { ":expired": now - skewMs } : { ":seen": takeover.fence }),
    }),
    ReturnValues: "ALL_NEW",
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  });
};

/** A list of maps can't be searched by one of their attributes; a place that isn't there is equal to nothing. */
const isPredecessor = Array.from({ length: mostPredecessors }, (_, place) => `#prev[${place}].#owner = :me`).join(
  " OR ",
);

const acquired = (request: AcquireRequest, state: ControlState): AcquireResult => ({
  kind: "acquired",
  state,
  lease: {
    job: request.job,
    owner: request.owner,
    fence: state.fence,
    run: { ...request.run, owner: request.owner, seq: 0 },
    ttlMs: request.ttlMs,
  },
});

/** Why the item, as it stood, refused us; an item that shows our own owner means that an earlier try was granted. */
const readRefusal = (request: AcquireRequest, state: ControlState): AcquireResult | "backlog" => {
  if (state.owner === request.owner) return acquired(request, state);
  const replaced = [...state.recentOwners, ...state.prev.map(({ owner }) => owner)].includes(request.owner);
  if (replaced) return { kind: "held", state };
  if (state.moving !== undefined) throw new JobMovedError(request.job, state.moving);
  if (pauseInForce(state, request.now) !== undefined) return { kind: "paused", state };
  if (request.tick !== undefined && state.tick !== undefined && state.tick >= request.tick)
    return { kind: "duplicate", state };
  if (state.prev.length >= mostPredecessors && (request.takeover !== undefined || isFree(request, state)))
    return "backlog";
  return { kind: "held", state };
};

const isFree = (request: AcquireRequest, state: ControlState): boolean =>
  state.owner === undefined || (state.leaseUntil ?? 0) < request.now - request.skewMs;

const isConflict = (error: unknown): boolean => (error as { name?: string }).name === "TransactionConflictException";

/**
 * Makes a job known. The first fence is the time in seconds, so that even an item deleted by hand and made again never
 * hands out an old fence; ticks before `since` aren't owed, so that a first deployment isn't flooded.
 */
export const create = async (
  connection: Connection,
  job: string,
  since: number,
  budget: Budget,
  now: number = budget.clock.now(),
): Promise<void> => {
  const condition = "attribute_not_exists(#pk)";
  const settled = await sendUntilKnown(
    connection,
    new PutItemCommand({
      TableName: connection.table,
      Item: {
        ...controlKey(job),
        ...valuesOf({
          fence: Math.floor(now / 1000),
          since,
          // Older ticks are owed then, and nobody could have done them yet.
          activeSince: since < now ? now : undefined,
          unfinished: 0,
          failedTicks: 0,
        }),
      },
      ConditionExpression: condition,
      ExpressionAttributeNames: namesIn(condition),
    }),
    budget,
  );
  if (settled.kind === "done" || settled.kind === "refused") return;
  throw unanswered(connection, job, "first use", settled);
};

/**
 * Marks `tick` as pending for the holder that refused us.
 *
 * | the item shows | then |
 * | --- | --- |
 * | that holder's owner, and no pending tick or an earlier one | marked |
 * | that holder's owner, and this tick or a later one pending | marked already |
 * | another owner or none | moved: acquire again |
 */
export const queue = async (
  connection: Connection,
  job: string,
  tick: number,
  holder: ControlState,
  budget: Budget,
): Promise<"queued" | "moved"> => {
  const update = "SET #pending = :tick";
  const condition = "#owner = :holder AND #fence = :seen AND (attribute_not_exists(#pending) OR #pending < :tick)";
  const settled = await sendUntilKnown(
    connection,
    new UpdateItemCommand({
      TableName: connection.table,
      Key: controlKey(job),
      UpdateExpression: update,
      ConditionExpression: condition,
      ExpressionAttributeNames: namesIn(update, condition),
      ExpressionAttributeValues: valuesOf({ ":tick": tick, ":holder": holder.owner ?? "", ":seen": holder.fence }),
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    }),
    budget,
  );
  if (settled.kind === "done") return "queued";
  if (settled.kind === "refused") {
    const state = settled.item && readState(job, settled.item);
    const same = state !== undefined && state.owner === holder.owner && state.fence === holder.fence;
    return same && (state.pending ?? Number.NEGATIVE_INFINITY) >= tick ? "queued" : "moved";
  }
  // Nothing but conflicts: the holder commits without a pause. Whoever acquires next finds the tick owed.
  if (settled.kind === "spent" && !settled.doubt && isConflict(settled.error)) return "moved";
  throw unanswered(connection, job, "queueing of a tick", settled as { doubt: boolean; error: unknown });
};
