/**
 * Names of time zones: one canonical spelling for each, and the nearest known one for a name that isn't known.
 */

import { distance } from "fastest-levenshtein";
import { InvalidOptionsError } from "../errors.ts";
import { shown } from "./options.ts";

/**
 * Names that the zone database has renamed while V8's `Intl` still answers with the old one. Other platforms know
 * both, people know the new one.
 */
const renamed: Readonly<Record<string, string>> = {
  "Africa/Asmera": "Africa/Asmara",
  "America/Buenos_Aires": "America/Argentina/Buenos_Aires",
  "America/Catamarca": "America/Argentina/Catamarca",
  "America/Coral_Harbour": "America/Atikokan",
  "America/Cordoba": "America/Argentina/Cordoba",
  "America/Godthab": "America/Nuuk",
  "America/Indianapolis": "America/Indiana/Indianapolis",
  "America/Jujuy": "America/Argentina/Jujuy",
  "America/Louisville": "America/Kentucky/Louisville",
  "America/Mendoza": "America/Argentina/Mendoza",
  "Asia/Calcutta": "Asia/Kolkata",
  "Asia/Katmandu": "Asia/Kathmandu",
  "Asia/Rangoon": "Asia/Yangon",
  "Asia/Saigon": "Asia/Ho_Chi_Minh",
  "Atlantic/Faeroe": "Atlantic/Faroe",
  "Europe/Kiev": "Europe/Kyiv",
  "Pacific/Enderbury": "Pacific/Kanton",
  "Pacific/Ponape": "Pacific/Pohnpei",
  "Pacific/Truk": "Pacific/Chuuk",
};

/**
 * The canonical IANA name of `zone`: links are followed (`US/Eastern` is `America/New_York`), case is mended, and every
 * name of UTC is "UTC".
 * @throws InvalidOptionsError naming the nearest known zone.
 */
export function canonicalZone(zone: string): string {
  if (zone === "UTC" || zone === "Etc/UTC") return "UTC";
  if (typeof zone !== "string")
    throw new InvalidOptionsError("schedule", [`zone: ${shown(zone)} isn't a time zone's name`]);
  // The list costs a tenth of the first formatter that Intl makes, which a function may never need.
  if (canonicalNames().has(zone)) return zone;
  // Later versions of Intl take "+05:30"; the platforms that run schedules don't.
  const known = /^[A-Za-z]/.test(zone) ? resolve(zone) : undefined;
  if (known !== undefined) return renamed[known] ?? known;
  const nearest = nearestZone(zone);
  const hint = nearest ? `; did you mean "${nearest}"?` : "; use a name such as Europe/Berlin, or UTC";
  throw new InvalidOptionsError("schedule", [`zone: "${zone}" isn't a known time zone${hint}`]);
}

let names: ReadonlySet<string> | undefined;

const canonicalNames = (): ReadonlySet<string> => {
  names ??= new Set(["UTC", ...Intl.supportedValuesOf("timeZone").map((name) => renamed[name] ?? name)]);
  return names;
};

function resolve(zone: string): string | undefined {
  try {
    const name = new Intl.DateTimeFormat("en-US", { timeZone: zone }).resolvedOptions().timeZone;
    return /^(Etc\/)?(UTC|GMT)$/.test(name) ? "UTC" : name;
  } catch {
    return undefined;
  }
}

function nearestZone(zone: string): string | undefined {
  if (zone.length > 100) return undefined;
  const wanted = zone.toLowerCase().replaceAll(" ", "_");
  let nearest: { name: string; steps: number } | undefined;
  for (const name of canonicalNames()) {
    // Often only the city is written.
    const city = name.slice(name.lastIndexOf("/") + 1).toLowerCase();
    const steps = Math.min(distance(wanted, name.toLowerCase()), distance(wanted, city) + (wanted === city ? 0 : 1));
    if (nearest === undefined || steps < nearest.steps) nearest = { name, steps };
  }
  return nearest && nearest.steps <= Math.max(2, Math.floor(wanted.length / 3)) ? nearest.name : undefined;
}
