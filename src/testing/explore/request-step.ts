/** A request's turn: it reaches the engine and is answered, or what the schedule says becomes of it. */
import { controlTable } from "../drills/ground.ts";
import { brokenConnection, conflictWith, refusal } from "../wire.ts";
import { crashAttempt, startAttempt } from "./attempts.ts";
import { type Attempt, type History, isOver, type Late } from "./history.ts";
import { requestText } from "./request-text.ts";
import { type FaultKind, faultKinds } from "./schedule.ts";
import { type Gate, isRead } from "./world.ts";

/** @param variant of the ids of attempts that it starts */
export const takeStep = async (history: History, gate: Gate, variant: number): Promise<void> => {
  const { world, hold, release, late } = history;
  const { actor, request, number } = gate;
  const at = `${actor.name}.${number}`;
  const kind = gate.reply === undefined ? history.faultAt(at, kindsFor(history, gate)) : undefined;
  const tell = (what: string) => {
    const fault = kind === undefined ? "" : `; ${kind}: ${faultKinds[kind]}`;
    history.say(at, `${requestText(request, controlTable)}: ${what}${fault}`);
  };
  const pass = async () => {
    if (gate.reply !== undefined) return;
    await world.arrive(gate);
    tell(history.effect);
  };
  const refuse = async (how: "throttle" | { readonly conflict: true }) => {
    tell("refused");
    world.forget(gate);
    await world.breakOff(gate, how === "throttle" ? refusal(request, how) : conflictWith(request));
  };
  switch (kind) {
    case "lost-request":
      tell("lost");
      return world.breakOff(gate, brokenConnection());
    case "lost-reply":
      await pass();
      return world.breakOff(gate, brokenConnection());
    case "arrives-late":
    case "arrives-last":
      tell("held up");
      late.push(kind === "arrives-last" ? gate : { ...gate, behind: number + 1 });
      return world.breakOff(gate, brokenConnection());
    case "repeated":
    case "repeated-last":
      late.push(kind === "repeated-last" ? gate : { ...gate, behind: number + 1 });
      break;
    case "throttled":
      return refuse("throttle");
    case "conflict":
      return refuse({ conflict: true });
    case "crash-before":
      tell("never sent");
      return crashAttempt(history, actor);
    case "crash-after":
      await pass();
      return crashAttempt(history, actor);
    case "paused-before":
      tell("waits");
      return hold(actor);
    case "paused-after":
      await pass();
      return hold(actor);
    case "overtaken": {
      tell("waits");
      const { requestId, ...delivered } = history.attempts.get(actor) as Attempt;
      const again = { ...delivered, at: world.now(), requestId: `${requestId} again`, attempt: 1 };
      let overtaking: Attempt | undefined;
      hold(actor, () => overtaking !== undefined && isOver(overtaking.actor));
      overtaking = await startAttempt(history, again, variant);
      return;
    }
    case "behind":
      tell("waits");
      history.behind.add(gate);
      return;
    case "wakes": {
      tell("waits");
      const woken = release(({ until }) => until === undefined);
      hold(actor, () => woken.every((other) => isOver(other) || other.paused));
      return arriveLate(history, () => true);
    }
    default:
  }
  await pass();
  await world.answer(gate);
  await world.elapse(1);
  await arriveLate(
    history,
    ({ actor: sender, behind }) => sender === actor && behind !== undefined && behind <= number,
  );
};

/** What could go wrong with it. */
const kindsFor = ({ world, holds, late }: History, { actor, request }: Gate): FaultKind[] => {
  const writes = !isRead(request);
  const others = world.gates().some((gate) => gate.actor === actor && gate.request !== request);
  const waiting = holds.some(({ until }) => until === undefined) || late.length > 0;
  return [
    "lost-request",
    ...(writes
      ? (["lost-reply", "arrives-late", "arrives-last", "repeated", "repeated-last", "conflict"] as const)
      : []),
    "throttled",
    "crash-before",
    ...(writes ? (["crash-after"] as const) : []),
    "paused-before",
    "paused-after",
    "overtaken",
    ...(others ? (["behind"] as const) : []),
    ...(waiting ? (["wakes"] as const) : []),
  ];
};

/** Requests that were held up, and repetitions, reach the engine; nobody waits for an answer. */
export const arriveLate = async (history: History, which: (late: Late) => boolean): Promise<void> => {
  const arriving = history.late.filter(which);
  history.late = history.late.filter((one) => !arriving.includes(one));
  for (const one of arriving) {
    // By then a server may have forgotten cronfence's token, which must not matter; a client of the job's own has nothing else.
    await history.world.apply(one, history.ownRequests.has(one.request));
    history.say(
      `${one.actor.name}.${one.number}`,
      `${requestText(one.request, controlTable)} arrives late: ${history.effect}`,
    );
  }
};
