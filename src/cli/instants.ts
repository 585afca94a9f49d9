/** Instants and zones as people read them. */
import { zoneNamed } from "../schedule/zone.ts";

/** "Sun 2026-03-29 03:00" in `zone`; seconds only where there are some. */
export const localTime = (instant: number, zone: string): string => {
  const wall = new Date(instant + zoneNamed(zone).offsetAt(instant));
  const [date, time = ""] = wall.toISOString().split("T");
  const seconds = wall.getTime() % 60_000 === 0 ? "" : time.slice(5, wall.getTime() % 1_000 === 0 ? 8 : 12);
  return `${weekdays[wall.getUTCDay()]} ${date} ${time.slice(0, 5)}${seconds}`;
};

const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** ISO 8601 with the zone's offset: "2026-03-29T03:00:00+02:00". */
export const localIso = (instant: number, zone: string): string => {
  const offset = zoneNamed(zone).offsetAt(instant);
  const minutes = Math.abs(offset) / 60_000;
  const text = `${pad(Math.floor(minutes / 60))}:${pad(Math.floor(minutes % 60))}`;
  const wall = new Date(instant + offset).toISOString().replace(/(\.000)?Z$/, "");
  return `${wall}${offset < 0 ? "-" : "+"}${text}`;
};

const pad = (value: number): string => String(value).padStart(2, "0");

export const iso = (instant: number): string => new Date(instant).toISOString();
