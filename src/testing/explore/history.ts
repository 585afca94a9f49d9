/**
 * One history while it is played: the world with its attempts, what the schedule still has to do to them, who waits for what,
 * and the timeline. Every write that reaches the engine is checked here against the rules.
 */
import type { ControlState } from "../../control/control-store.ts";
import { controlKey, readState } from "../../control/items.ts";
import type { Job } from "../../job.ts";
import { isoOf } from "../../report.ts";
import { controlTable } from "../drills/ground.ts";
import type { Scene } from "../drills/scene.ts";
import type { WireReply } from "../wire.ts";
import { effectOf, requestText } from "./request-text.ts";
import { type Account, checkStep, type Rules } from "./rules.ts";
import type { FaultKind, Schedule, ScheduledFault, Step } from "./schedule.ts";
import { type Actor, type Gate, isRead, openWorld, type Sent, type WorldOptions } from "./world.ts";

/** What all histories of a job share. */
export interface Stage {
  readonly scene: Scene;
  /** As the explorer runs it. */
  readonly job: Job;
  readonly ticks: readonly number[];
  /** Delivered once nothing goes wrong any more, one after the other until one of them leaves nothing to do. */
  readonly closing: readonly number[];
  /** When that is, in milliseconds since the epoch. */
  readonly closingAt: number;
  /** How many attempts may go on at the same time. */
  readonly runners: number;
  readonly outside: () => boolean;
  readonly rewrite: WorldOptions["rewrite"];
}

export interface Delivery {
  /** None for a run that goes on with a backlog, as number `chain` of them in a row. */
  readonly tick?: number;
  readonly chain?: number;
  readonly at: number;
  readonly requestId: string;
  readonly attempt: number;
}

export interface Attempt extends Delivery {
  readonly name: string;
  readonly actor: Actor;
  readonly account: Account;
}

/** Somebody who waits, and for what; without `until`, for all else to be over. */
interface Hold {
  readonly actor: Actor;
  readonly until?: () => boolean;
}

/** A request that still has to arrive. */
export interface Late extends Sent {
  /** Its sender has had an answer to this request meanwhile; at the latest it arrives when all else is over. */
  readonly behind?: number;
}

export type History = ReturnType<typeof openHistory>;

export const openHistory = (stage: Stage, schedule: Schedule, control: ControlState) => {
  const { scene, job } = stage;
  const timeline: string[] = [];
  const steps: Step[] = [];
  const ownWrites: string[] = [];
  const ownRequests = new WeakSet<object>();
  const attempts = new Map<Actor, Attempt>();
  const holds: Hold[] = [];
  const deliveries: Delivery[] = [];
  const transactions = transactionsSeen();
  const rules: Rules = { skewMs: job.skewMs, overlap: job.overlap, isBehind: orderOf(job) };
  let faults: readonly ScheduledFault[] = schedule;
  let seen = control;
  /** What became of the last request that has reached the engine. */
  let effect = "";

  const applied = async ({ actor, request }: Sent, reply: WireReply, isRepeated: boolean, token: boolean) => {
    const isOwn = ownRequests.has(request);
    const changes = reply.statusCode === 200 && !isRead(request);
    if (!changes || isOwn) {
      effect = effectOf(reply);
      if (changes) ownWrites.push(requestText(request, controlTable));
      return;
    }
    const before = seen;
    seen = shownIn(reply, job.name) ?? (await lookAt(scene, job.name));
    effect = effectOf(reply, { before, after: seen });
    const wrote = request.operation === "TransactWriteItems" && transactions.isDone(request.body, token);
    const { account } = attempts.get(actor) as Attempt;
    checkStep(rules, history.accounts(), { actor: account, before, after: seen, wrote, isRepeated });
  };
  const world = openWorld({
    endpoint: scene.ground.endpoint,
    table: controlTable,
    start: stage.ticks[0] as number,
    givesUp: true,
    applied,
    outside: stage.outside,
    ...(stage.rewrite === undefined ? {} : { rewrite: stage.rewrite }),
  });
  const say = (who: string, what: string) => timeline.push(`${timeText(world.now())}  ${who.padEnd(5)}  ${what}`);

  const history = {
    stage,
    world,
    timeline,
    steps,
    say,
    deliveries,
    /** Requests of the job's own clients. */
    ownRequests,
    /** What of these was accepted and wrote, in words. */
    ownWrites,
    attempts,
    holds,
    /** What still has to arrive. */
    late: [] as Late[],
    /** Requests that let all others go first. */
    behind: new WeakSet<Gate>(),
    accounts: () => [...attempts.values()].map(({ account }) => account),
    /** The control item, as the last write that was accepted left it. */
    get control() {
      return seen;
    },
    get effect() {
      return effect;
    },
    deliver: (delivery: Delivery) => {
      const index = deliveries.findIndex(({ at }) => at > delivery.at);
      deliveries.splice(index < 0 ? deliveries.length : index, 0, delivery);
    },
    /** The fault at a step, if the schedule has one there that can be; each comes once. */
    faultAt: (at: string, kinds: readonly FaultKind[]): FaultKind | undefined => {
      if (!steps.some((step) => step.at === at)) steps.push({ at, kinds });
      const found = faults.find((fault) => fault.at === at);
      if (found === undefined) return undefined;
      faults = faults.filter((fault) => fault !== found);
      return kinds.includes(found.kind) ? found.kind : undefined;
    },
    /** From now on nothing goes wrong. */
    calm: () => {
      faults = [];
      say("", "nothing more goes wrong");
    },
    hold: (actor: Actor, until?: () => boolean) => {
      actor.paused = true;
      holds.push(until === undefined ? { actor } : { actor, until });
    },
    release: (which: (hold: Hold) => boolean): Actor[] => {
      const released = holds.filter(which);
      for (const one of released) {
        holds.splice(holds.indexOf(one), 1);
        one.actor.paused = false;
        if (one.until === undefined && one.actor.alive) say(one.actor.name, "goes on");
      }
      return released.map(({ actor }) => actor);
    },
  };
  return history;
};

export const isOver = (actor: Actor): boolean => actor.ended || !actor.alive;

export const lookAt = async ({ ground }: Scene, job: string): Promise<ControlState> => {
  const request = JSON.stringify({ TableName: controlTable, ConsistentRead: true, Key: controlKey(job) });
  const { body } = await ground.line.send("GetItem", request);
  return readState(job, JSON.parse(Buffer.from(body).toString()).Item);
};

/** An answer that shows the whole control item, as that to an acquisition does, spares a look at it. */
const shownIn = ({ body }: WireReply, job: string): ControlState | undefined => {
  const { Attributes } = JSON.parse(Buffer.from(body).toString()) as { readonly Attributes?: ControlItem };
  return Attributes?.fence === undefined ? undefined : readState(job, Attributes);
};

type ControlItem = Parameters<typeof readState>[1];

/** Tells transactions that were done from those that a server only knew by their token. */
const transactionsSeen = () => {
  const tokens = new Set<string>();
  return {
    /** Whether an accepted transaction has written the job's items. @param token it came with its token */
    isDone: (body: string, token: boolean): boolean => {
      const { ClientRequestToken, TransactItems } = JSON.parse(body) as TransactionBody;
      const isKnown = token && ClientRequestToken !== undefined && tokens.has(ClientRequestToken);
      if (ClientRequestToken !== undefined) tokens.add(ClientRequestToken);
      return !isKnown && TransactItems.some(writesItem);
    },
  };
};

interface TransactionBody {
  readonly ClientRequestToken?: string;
  readonly TransactItems: readonly Readonly<Record<string, Action>>[];
}

interface Action {
  readonly TableName: string;
  readonly Key?: ControlItem;
  readonly Item?: ControlItem;
}

/** Users' items, and what is kept of a job's effects and parked items; not the control item, and no records of runs. */
const writesItem = (action: TransactionBody["TransactItems"][number]): boolean =>
  Object.entries(action).some(
    ([kind, { TableName, Key, Item }]) =>
      kind !== "ConditionCheck" && (TableName !== controlTable || !/^(control$|run#)/.test((Key ?? Item)?.sk?.S ?? "")),
  );

/** Watermarks that are numbers compare by themselves; whatever else they are, only the job's source knows. */
const orderOf = ({ work }: Job): Rules["isBehind"] => {
  const compare = work.shape === "source" ? work.source.compare : undefined;
  return (one, other) => {
    if (other === undefined) return false;
    if (one === undefined) return true;
    if (compare !== undefined) return compare(one, other) < 0;
    return typeof one === "number" && typeof other === "number" && one < other;
  };
};

/** "01-12 12:00:00.003" */
const timeText = (instant: number): string => isoOf(instant).slice(5, 23).replace("T", " ");
