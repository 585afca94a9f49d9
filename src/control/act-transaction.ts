/**
 * An operator's act as one transaction on what was seen, with a record of who did it and why.
 *
 * | condition | without it |
 * | --- | --- |
 * | the fence is the one seen | what was granted since would be meant instead |
 * | no owner, for an act that needs the job idle | a run would find its watermark or its ticks moved under it |
 * | the owner is the one seen, for an act that ends its run | the run that followed would be cancelled instead |
 * | its seq is the one seen | the record would leave out what was committed meanwhile |
 * | no record of that run | another record would be overwritten |
 * | no record of the act | a late repetition would do it again, over what was done since |
 *
 * Where a request is refused, the act's record tells whether an earlier try of it was applied.
 */
import { randomUUID } from "node:crypto";
import { type TransactWriteItem, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { ActRefusedError } from "../errors.ts";
import { type Connection, sendUntilKnown, unanswered } from "./connection.ts";
import type { ActKind, Budget, ControlState, RunEntry, SeenAct } from "./control-store.ts";
import { actKey, controlKey, type Item, namesIn, readState, valuesOf, writeRecord } from "./items.ts";
import { isOnRecord, readControlItem } from "./read.ts";
import { commitsOf, rememberOwners } from "./tally.ts";

/** What an act does to the control item, and what goes with it in the same transaction. */
export interface Change {
  readonly sets?: readonly string[];
  readonly removes?: readonly string[];
  readonly conditions?: readonly string[];
  readonly values?: Record<string, unknown>;
  /** The act's record, beside who, why and when. */
  readonly details?: Record<string, unknown>;
  /** The job must be idle, or the run be ended: the fence is raised, so that whoever still goes on is fenced out. */
  readonly idle?: true;
  /** This run is fenced out and recorded as cancelled. */
  readonly ends?: RunEntry | undefined;
  readonly besides?: readonly TransactWriteItem[];
}

/** For an act that can't be done under a run. @throws ActRefusedError */
export const onIdle = (state: ControlState, kind: ActKind, cancel = false): Pick<Change, "idle" | "ends"> => {
  if (state.owner === undefined) return { idle: true };
  if (cancel) return { idle: true, ends: state.run };
  throw new ActRefusedError(
    state.job,
    kind,
    `run ${state.run?.id ?? "(unknown)"} holds the lease; cancel it, or wait for its end`,
  );
};

/**
 * Does an act: reads the job, asks `change` what there is to do, and does it on what was read.
 * @param change `undefined`: nothing is to be done. Asked again when the job has changed meanwhile; `seen` is the run, if there
 * was one, that it was asked about first.
 * @returns the run that was cancelled
 */
export const perform = async (
  connection: Connection,
  job: string,
  { fence, ...act }: SeenAct & { readonly kind: ActKind },
  at: number,
  budget: Budget,
  change: (
    state: ControlState,
    met: { readonly item: Item; readonly id: string; readonly seen: RunEntry | undefined },
  ) => Change | undefined,
): Promise<RunEntry | undefined> => {
  const id = randomUUID();
  const refuse = (why: string) => new ActRefusedError(job, act.kind, why);
  let first: ControlState | undefined;
  for (;;) {
    const item = await readControlItem(connection, job, budget);
    if (item === undefined) throw refuse(`it isn't known to table "${connection.table}"`);
    const state = readState(job, item);
    refuseMoved(state, act.kind);
    if (fence !== undefined && state.fence !== fence) {
      throw refuse(`its fence is ${state.fence}, and no longer the ${fence} that was seen: look again`);
    }
    const changed = change(state, { item, id, seen: first?.run });
    if (changed === undefined) return undefined;
    const meant = changed.idle || changed.ends !== undefined;
    if (meant && first !== undefined && first.fence !== state.fence)
      throw refuse(`a run that started meanwhile holds the lease, or has ended since: look again`);
    first ??= state;
    const request = commandOf(connection, state, changed, act, at, id);
    const settled = await sendUntilKnown(connection, request, budget);
    if (settled.kind === "done") return changed.ends;
    if (settled.kind === "cancelled") {
      if (await isOnRecord(connection, actKey(job, at, id), budget)) return changed.ends;
      const [control, record] = settled.reasons;
      if (control?.code === "ConditionalCheckFailed") {
        if (budget.clock.now() < budget.until) continue;
        throw refuse("the job changed faster than it could be caught between: its run commits without a pause");
      }
      if (changed.ends !== undefined && record?.code === "ConditionalCheckFailed")
        throw refuse(`run ${changed.ends.id} is on record already`);
      if (settled.reasons.some(({ code }) => code === "ConditionalCheckFailed"))
        throw refuse("what it goes with has changed meanwhile: look again");
    }
    throw unanswered(connection, job, act.kind, settled as { doubt: boolean; error: unknown });
  }
};

/** @throws ActRefusedError where the job is known under another name, or not yet under this one. */
const refuseMoved = ({ job, moving }: ControlState, kind: ActKind): void => {
  if (moving === undefined) return;
  throw new ActRefusedError(
    job,
    kind,
    "to" in moving
      ? `it was moved to "${moving.to}"; do it there`
      : `it is being moved here from "${moving.from}", and not all is here yet; move it again, which goes on`,
  );
};

const commandOf = (
  connection: Connection,
  state: ControlState,
  change: Change,
  act: { readonly kind: ActKind; readonly by: string; readonly why: string },
  at: number,
  id: string,
): TransactWriteItemsCommand => {
  const { job } = state;
  const { ends } = change;
  const raises = change.idle || ends !== undefined;
  const sets = [
    ...(change.sets ?? []),
    ...(raises ? ["#fence = #fence + :one"] : []),
    ...(ends === undefined ? [] : ["#recentOwners = :owners", "#unfinished = #unfinished - :one"]),
  ];
  const removes = [...(change.removes ?? []), ...(ends === undefined ? [] : ["#owner", "#leaseUntil", "#run"])];
  const condition = [
    "#fence = :seen",
    ...(ends === undefined ? (change.idle ? ["attribute_not_exists(#owner)"] : []) : endsIt),
    ...(change.conditions ?? []),
  ].join(" AND ");
  const update = [
    ...(sets.length > 0 ? [`SET ${sets.join(", ")}`] : []),
    ...(removes.length > 0 ? [`REMOVE ${removes.join(", ")}`] : []),
  ].join(" ");
  return new TransactWriteItemsCommand({
    ClientRequestToken: randomUUID(),
    TransactItems: [
      {
        Update: {
          TableName: connection.table,
          Key: controlKey(job),
          UpdateExpression: update,
          ConditionExpression: condition,
          ExpressionAttributeNames: namesIn(update, condition),
          ExpressionAttributeValues: valuesOf({
            ...change.values,
            ":seen": state.fence,
            ...(raises ? { ":one": 1 } : {}),
            ...(ends === undefined
              ? {}
              : { ":owner": state.owner, ":seq": ends.seq, ":owners": rememberOwners(state, [ends.owner]) }),
          }),
        },
      },
      ...(ends === undefined
        ? []
        : [putNew(connection, writeRecord(cancelledRecord(state, ends, at, `${act.by}: ${act.why}`)))]),
      putAct(
        connection,
        job,
        {
          ...act,
          ...change.details,
          ...(raises ? { fence: state.fence + 1 } : {}),
          ...(ends === undefined ? {} : { run: ends.id }),
        },
        at,
        id,
      ),
      ...(change.besides ?? []),
    ],
  });
};

const endsIt = ["#owner = :owner", "#run[0].#seq = :seq"];

const cancelledRecord = ({ job, fence }: ControlState, run: RunEntry, at: number, reason: string) => {
  const { seq, seals, tick, token, ...rest } = run;
  return {
    ...rest,
    ...(tick === undefined ? {} : { ticks: { from: tick, through: tick, count: 1 } }),
    job,
    fence,
    outcome: "cancelled" as const,
    endedAt: at,
    items: run.items ?? 0,
    commits: commitsOf(run),
    reason,
  };
};

/** The write that keeps an act. */
export const putAct = (
  connection: Connection,
  job: string,
  act: Record<string, unknown>,
  at: number,
  id: string,
): TransactWriteItem => putNew(connection, { ...valuesOf({ ...act, id, at }), ...actKey(job, at, id) });

const putNew = (connection: Connection, item: Item): TransactWriteItem => ({
  Put: { TableName: connection.table, Item: item, ConditionExpression: "attribute_not_exists(pk)" },
});
