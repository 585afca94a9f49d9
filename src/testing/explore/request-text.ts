/** Requests and what became of them in a few words, for a timeline: what is seen from outside, not how the protocol is made. */
import type { ControlState } from "../../control/control-store.ts";
import { isoOf } from "../../report.ts";
import type { WireReply, WireRequest } from "../wire.ts";

/** Such as "TransactWriteItems control, run, carts x2", with the control table's items by their kind. */
export const requestText = (
  { operation, body }: Pick<WireRequest, "operation" | "body">,
  controlTable: string,
): string => {
  const counts = new Map<string, number>();
  for (const name of namesIn(JSON.parse(body), controlTable)) counts.set(name, (counts.get(name) ?? 0) + 1);
  const names = [...counts].map(([name, count]) => (count === 1 ? name : `${name} x${count}`));
  return `${operation} ${names.join(", ")}`.trimEnd();
};

/** A request's body, or one action of a transaction. */
interface Target {
  readonly TableName?: string;
  readonly IndexName?: string;
  readonly Key?: { readonly sk?: { readonly S?: string } };
  readonly Item?: { readonly sk?: { readonly S?: string } };
  readonly TransactItems?: readonly Readonly<Record<string, Target>>[];
  readonly RequestItems?: Readonly<Record<string, unknown>>;
}

const namesIn = (body: Target, controlTable: string): string[] => {
  if (body.TransactItems !== undefined) {
    return body.TransactItems.flatMap((action) =>
      Object.values(action).flatMap((target) => namesIn(target, controlTable)),
    );
  }
  if (body.RequestItems !== undefined) return Object.keys(body.RequestItems);
  const { TableName, IndexName, Key, Item } = body;
  if (TableName === undefined) return [];
  // "run#2026-…" is a run's record.
  if (TableName === controlTable) return [((Key ?? Item)?.sk?.S ?? "records").split("#")[0] as string];
  return [IndexName === undefined ? TableName : `${TableName}.${IndexName}`];
};

/** The control item before and after. */
interface Change {
  readonly before: ControlState;
  readonly after: ControlState;
}

/** What became of a request that the engine has had. */
export const effectOf = ({ statusCode, body }: WireReply, change?: Change): string => {
  if (statusCode !== 200) return refusalText(JSON.parse(Buffer.from(body).toString()));
  if (change === undefined) return "done";
  const { before: b, after: a } = change;
  if (a.fence > b.fence) return `granted fence ${a.fence}`;
  const parts = [
    ...(a.run !== undefined && a.run.seq !== b.run?.seq ? [`commit ${a.run.seq}`] : []),
    ...(b.owner !== undefined && a.owner === undefined ? ["lease given back"] : []),
    ...(a.tick !== undefined && a.tick !== b.tick ? [`tick ${isoOf(a.tick)} completed`] : []),
    ...(a.pending !== undefined && a.pending !== b.pending ? [`tick ${isoOf(a.pending)} queued`] : []),
    ...(JSON.stringify(a.watermark) === JSON.stringify(b.watermark)
      ? []
      : [`watermark ${JSON.stringify(a.watermark)}`]),
  ];
  if (parts.length === 0 && a.leaseUntil !== b.leaseUntil) parts.push("lease renewed");
  return parts.length === 0 ? "done" : parts.join(", ");
};

interface ErrorBody {
  readonly __type?: string;
  readonly CancellationReasons?: readonly { readonly Code?: string }[];
}

const refusalText = ({ __type = "", CancellationReasons = [] }: ErrorBody): string => {
  const name = __type.split("#").at(-1);
  const codes = CancellationReasons.map(({ Code }) => Code ?? "None");
  return codes.length === 0 ? `refused, ${name}` : `refused, ${codes.join(" ")}`;
};
