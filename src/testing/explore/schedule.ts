/**
 * A schedule as data: what goes wrong, and at which step. Everything else follows from the job, its options and the steps
 * before, so the text of a schedule is all that is needed to see it again.
 */
import { InvalidOptionsError } from "../../errors.ts";

/** What can go wrong, and what that means. */
export const faultKinds = {
  // With a tick's delivery, "tick1".
  missed: "isn't delivered",
  twice: "is delivered twice at once",
  late: "is delivered together with the next tick",
  // With an attempt, "A.0".
  "clock-ahead": "its clock is ahead by more than the lease lasts",
  "clock-behind": "its clock is behind by more than the lease lasts",
  // With a request, "A.3": the third one of attempt A.
  "lost-request": "never arrives; its sender hears that the connection broke",
  "lost-reply": "is done; its sender hears that the connection broke",
  "arrives-late": "its sender hears that the connection broke; it arrives after the sender's next request",
  "arrives-last": "its sender hears that the connection broke; it arrives when all else is over",
  repeated: "is done and answered; the network repeats it after its sender's next request",
  "repeated-last": "is done and answered; the network repeats it when all else is over",
  throttled: "isn't done for too many requests",
  conflict: "isn't done for a concurrent transaction",
  "crash-before": "its sender dies before it arrives",
  "crash-after": "its sender dies when it is done",
  "paused-before": "its sender is paused before it arrives, until all else is over",
  "paused-after": "its sender is paused when it is done, until all else is over",
  overtaken: "waits while its tick is delivered again and that attempt comes to its end",
  behind: "waits for the other requests of its sender",
  wakes: "waits while those that are paused go on, and what is late arrives",
} as const;

export type FaultKind = keyof typeof faultKinds;

export interface ScheduledFault {
  readonly kind: FaultKind;
  /** "tick2", or the number of a request behind its attempt: "A.3". */
  readonly at: string;
}

/** In the order of the steps. */
export type Schedule = readonly ScheduledFault[];

/** Such as "lost-reply@A.3 paused-before@B.2"; "undisturbed" without faults. */
export const scheduleText = (schedule: Schedule): string =>
  schedule.length === 0 ? undisturbed : schedule.map(({ kind, at }) => `${kind}@${at}`).join(" ");

const undisturbed = "undisturbed";

/** @throws InvalidOptionsError naming what isn't a fault */
export const readSchedule = (text: string): Schedule => {
  const words = text.split(/\s+/).filter((word) => word !== "" && word !== undisturbed);
  const problems: string[] = [];
  const schedule = words.map((word): ScheduledFault => {
    const [kind = "", at = ""] = word.split("@");
    if (!(kind in faultKinds) || !/^(tick\d+|[A-Z]+\.\d+)$/.test(at)) {
      problems.push(
        `replay: "${word}" isn't a fault and its step, such as "lost-reply@A.3" or "twice@tick1"; faults are ${Object.keys(faultKinds).join(", ")}`,
      );
    }
    return { kind: kind as FaultKind, at };
  });
  if (problems.length > 0) throw new InvalidOptionsError("exploration", problems);
  return schedule;
};

/** A step of a play, and what could have gone wrong with it. */
export interface Step {
  readonly at: string;
  readonly kinds: readonly FaultKind[];
}

/** A schedule that was played, and the steps that it came to. */
export interface Root {
  readonly schedule: Schedule;
  readonly steps: readonly Step[];
}

/** The schedules with one fault more, at a later step of what `root` has led to. */
export function* longerBy({ schedule, steps }: Root): Generator<Schedule> {
  for (const { at, kinds } of laterSteps(schedule, steps)) {
    for (const kind of kinds) yield [...schedule, { kind, at }];
  }
}

/** How many these are. */
export const countLonger = ({ schedule, steps }: Root): number =>
  laterSteps(schedule, steps).reduce((sum, { kinds }) => sum + kinds.length, 0);

const laterSteps = (schedule: Schedule, steps: readonly Step[]): readonly Step[] => {
  const last = schedule.at(-1);
  if (last === undefined) return steps;
  const at = steps.findIndex((step) => step.at === last.at);
  // A step that never came leads nowhere.
  return at < 0 ? [] : steps.slice(at + 1);
};

/** The shortest of which `breaks` is true still: without any of its faults it isn't. */
export const shrink = async <Found extends { readonly schedule: Schedule }>(
  found: Found,
  breaks: (schedule: Schedule) => Promise<Found | undefined>,
): Promise<Found> => {
  for (const left of found.schedule) {
    const shorter = await breaks(found.schedule.filter((fault) => fault !== left));
    if (shorter !== undefined) return shrink(shorter, breaks);
  }
  return found;
};

/** A, B … Z, AA, AB … */
export const attemptName = (number: number): string =>
  number < 26 ? String.fromCharCode(65 + number) : attemptName(Math.floor(number / 26) - 1) + attemptName(number % 26);
