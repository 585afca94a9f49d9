/** Durations as people write them. */
import ms from "ms";

/** "30s", "4m", "1h", or a number of milliseconds. */
export type Duration = string | number;

/** A duration in milliseconds, or `undefined` if it isn't one or isn't more than 0. */
export const milliseconds = (duration: unknown): number | undefined => {
  if (typeof duration === "number") return Number.isFinite(duration) && duration > 0 ? duration : undefined;
  if (typeof duration !== "string" || duration.length === 0 || duration.length > longestText) return undefined;
  const value = ms(duration as ms.StringValue);
  return Number.isFinite(value) && value > 0 ? value : undefined;
};

/** `ms` throws on longer ones. */
const longestText = 100;
