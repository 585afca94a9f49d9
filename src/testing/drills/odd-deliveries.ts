/** Drills about which ticks are delivered, and when: none for a while, one more than once, and those around clock changes. */
import { eventBridgeTicks, type Schedule } from "../../schedule/index.ts";
import { zoneNamed } from "../../schedule/zone.ts";
import type { DrillName } from "./drill-names.ts";
import { judge } from "./judgement.ts";
import type { Scene } from "./scene.ts";
import { partsBetween } from "./state.ts";
import { type Aftermath, playTrial } from "./trial.ts";
import { iso, type Undisturbed } from "./undisturbed.ts";

export const missedWindow = async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
  const { disturbed } = undisturbed;
  const missed = scene.ticks.slice(disturbed, -1);
  const found = await playTrial(scene, async (world) => {
    for (const tick of world.ticks.slice(0, disturbed)) await world.deliver(tick);
    await world.goOn(world.ticks.length - 1);
  });
  await judge(scene, undisturbed, found, {
    drill: "missed window",
    where: `${missed.length === 1 ? "the tick" : `${missed.length} ticks, the first`} of ${iso(missed[0] as number)} wasn't delivered, and a later one was`,
  });
};

export const duplicateDelivery = async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
  const seen: string[] = [];
  const found = await playTrial(scene, async (world) => {
    const again = async (tick: number, requestId: string) => {
      const { report, error } = await world.invoke(world.machine(), tick, { requestId });
      if (report?.outcome === "duplicate") return;
      seen.push(`a second delivery of ${iso(tick)} ended as ${report?.outcome ?? String(error)}, and not as duplicate`);
    };
    for (const [index, tick] of world.ticks.entries()) {
      await world.deliver(tick, { requestId: `event ${index}` });
      await again(tick, `event ${index}`);
      await again(tick, `event ${index}, delivered twice`);
      if (index > 0) await again(world.ticks[index - 1] as number, `event ${index - 1}, late`);
    }
  });
  await judge(scene, undisturbed, found, {
    drill: "duplicate delivery",
    where: "each event came three times, the last of them after the next tick's run",
    ignored: undisturbed.ignored,
    seen,
  });
};

/** The ticks around a change of clocks. */
export interface ClockChange {
  readonly ticks: readonly number[];
  /** Those that EventBridge delivers. */
  readonly delivered: ReadonlySet<number>;
  /** As many ticks around the same time a week before. */
  readonly ordinary: readonly number[];
}

/** @returns the first change in spring or autumn after `from` that the schedule has ticks around */
export const clockChangeAfter = (
  schedule: Schedule,
  from: number,
  kind: "spring" | "autumn",
): ClockChange | undefined => {
  if (schedule.kind === "rate" || schedule.zone === "UTC") return undefined;
  for (const { at, before, after } of zoneNamed(schedule.zone).changes(from, from + 400 * dayMs)) {
    if (after > before !== (kind === "spring")) continue;
    const ticks = around(schedule, at);
    // Without a tick after the night there is nothing to make up for it.
    if (ticks.length < 2 || (ticks.at(-1) as number) < at) return undefined;
    const delivered = new Set(eventBridgeTicks(schedule).between((ticks[0] as number) - 1, ticks.at(-1) as number));
    return { ticks, delivered, ordinary: around(schedule, at - 7 * dayMs) };
  }
  return undefined;
};

/** Ticks of the days before and after, or those nearest. */
const around = (schedule: Schedule, at: number): number[] => {
  const earlier = [...schedule.between(at - 2 * dayMs, at - 1)].slice(-mostBefore);
  const later: number[] = [];
  for (const tick of schedule.between(at - 1, at + 2 * dayMs)) {
    if (later.push(tick) === mostAfter) break;
  }
  return [...earlier, ...later];
};

const dayMs = 86_400_000;
const mostBefore = 4;
const mostAfter = 6;

export const clockChange =
  (kind: "spring" | "autumn", { ticks, delivered, ordinary }: ClockChange) =>
  async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
    const drill: DrillName = `${kind} clock change`;
    const zone = scene.job.schedule?.zone;
    const where = `ticks from ${iso(ticks[0] as number)} to ${iso(ticks.at(-1) as number)}, while the clocks of ${zone} are set ${kind === "spring" ? "forward" : "back"}`;
    const all = await playTrial(scene, (world) => world.goOn(0), { ticks });
    const found = await playTrial(
      scene,
      async (world) => {
        for (const tick of ticks) if (delivered.has(tick)) await world.deliver(tick);
        await world.goOn(ticks.length);
      },
      { ticks },
    );
    const usual =
      ordinary.length < 2 ? undefined : await playTrial(scene, (world) => world.goOn(0), { ticks: ordinary });
    // Which run does the work of a tick that isn't delivered is another than its own.
    const moved = scene.job.work.shape === "tick" ? [] : partsBetween(all.state, found.state);
    await judge(scene, undisturbed, found, {
      drill,
      where,
      ticks,
      expected: all,
      ignored: new Set([...undisturbed.ignoredElsewhere, ...moved]),
      seen: usual === undefined ? [] : overwritten(all, usual),
    });
  };

/** Items that several ticks wrote, in tables where that doesn't happen on other days: their ticks took one day for another. */
const overwritten = (around: Aftermath, usual: Aftermath): string[] => {
  const often = ({ writes }: Aftermath) => {
    const most = new Map<string, number>();
    for (const [name, times] of writes) {
      const table = name.split(" ", 1)[0] as string;
      most.set(table, Math.max(most.get(table) ?? 0, times));
    }
    return most;
  };
  const usually = often(usual);
  return [...around.writes]
    .filter(([name, times]) => times > 1 && usually.get(name.split(" ", 1)[0] as string) === 1)
    .slice(0, 3)
    .map(
      ([name, times]) => `${name} was written by ${times} ticks, and on other days each tick writes items of its own`,
    );
};
