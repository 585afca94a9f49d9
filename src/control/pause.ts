/** The pause of a job, while it holds. Pure. */
import type { ControlState, Paused } from "./control-store.ts";

/** @param now in milliseconds since the epoch */
export const pauseInForce = ({ paused }: Pick<ControlState, "paused">, now: number): Paused | undefined =>
  paused !== undefined && (paused.until ?? Number.POSITIVE_INFINITY) > now ? paused : undefined;
