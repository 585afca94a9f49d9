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

/** "1d", "23h 30m", "250ms": a duration for people. */
export const durationText = (durationMs: number): string => {
  const parts: string[] = [];
  let restMs = durationMs;
  for (const [unit, sizeMs] of [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1000],
    ["ms", 1],
  ] as const) {
    const count = Math.floor(restMs / sizeMs);
    if (count > 0) parts.push(`${count}${unit}`);
    restMs -= count * sizeMs;
  }
  return parts.join(" ") || "0ms";
};
