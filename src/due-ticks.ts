/** Which ticks a run covers. */
import type { TickRange } from "./control/control-store.ts";
import type { Schedule } from "./schedule/index.ts";

/**
 * The ticks due after `after` (exclusive) through `through`, oldest first, worked out as they are asked for. `through`
 * is the tick that was delivered, so it is always one of them, whatever the schedule says by now.
 */
export function* dueTicks(schedule: Schedule | undefined, after: number, through: number): Generator<number> {
  for (const tick of schedule?.between(after, through) ?? []) if (tick < through) yield tick;
  yield through;
}

export const tickRange = (schedule: Schedule | undefined, after: number, through: number): TickRange => {
  let from = through;
  let count = 0;
  for (const tick of dueTicks(schedule, after, through)) {
    if (count === 0) from = tick;
    count += 1;
  }
  return { from, through, count };
};
