/** Events of an iCalendar file (RFC 5545) as exceptions. The file format and its recurrences are ical.js's. */

import ICAL from "ical.js";
import type { Exception } from "./calendar.ts";
import { zoneNamed } from "./zone.ts";
import { canonicalZone } from "./zone-names.ts";

/** Repeated events have no end of their own; ticks beyond this year are nobody's concern yet. */
const lastYear = 2099;

/**
 * The events in `text`: whole days as ranges of dates, timed ones as freezes.
 * @throws where it can't be read, or a timed event has no usable zone.
 */
export function readICalendar(text: string): Exception[] {
  return withLimit(() => readEvents(text));
}

function readEvents(text: string): Exception[] {
  const components = new ICAL.Component(ICAL.parse(text)).getAllSubcomponents("vevent");
  const isOverride = (component: ICAL.Component) => component.hasProperty("recurrence-id");
  const overrides = components.filter(isOverride);
  return components
    .filter((component) => !isOverride(component))
    .flatMap((component) => {
      const own = overrides.filter(
        (each) => each.getFirstPropertyValue("uid") === component.getFirstPropertyValue("uid"),
      );
      return occurrences(new ICAL.Event(component, { exceptions: own, strictExceptions: true }));
    });
}

/** A daily event takes half of these through `lastYear`. */
const mostSteps = 60_000;

/**
 * ical.js looks for the next date of a rule until it finds one, and for some rules there is none ("every seventh day from a
 * Tuesday, on Mondays"). So the steps of each rule are counted, as long as `read` runs.
 */
function withLimit<T>(read: () => T): T {
  const prototype = ICAL.RecurIterator.prototype;
  const check = prototype.check_contracting_rules;
  const steps = new WeakMap<ICAL.RecurIterator, number>();
  prototype.check_contracting_rules = function (this: ICAL.RecurIterator) {
    const taken = (steps.get(this) ?? 0) + 1;
    if (taken > mostSteps) throw new Error("an event repeats too often, or by a rule that no date fits");
    steps.set(this, taken);
    return check.call(this);
  };
  try {
    return read();
  } finally {
    prototype.check_contracting_rules = check;
  }
}

function occurrences(event: ICAL.Event): Exception[] {
  if (!event.isRecurring()) return isCancelled(event) ? [] : [exception(event, event.startDate, event.endDate)];
  const found: Exception[] = [];
  const iterator = event.iterator();
  for (let next = iterator.next(); next && next.year <= lastYear; next = iterator.next()) {
    const { item, startDate, endDate } = event.getOccurrenceDetails(next);
    if (!isCancelled(item)) found.push(exception(item, startDate, endDate));
  }
  return found;
}

const isCancelled = (event: ICAL.Event): boolean => event.component.getFirstPropertyValue("status") === "CANCELLED";

function exception(event: ICAL.Event, start: ICAL.Time, end: ICAL.Time): Exception {
  const reason = event.summary || "calendar";
  if (!start.isDate) return { from: instantOf(event, start, "dtstart"), to: instantOf(event, end, "dtend"), reason };
  // DTEND is the day after the last one; an event without it lasts one day.
  const last = end.clone();
  if (end.compare(start) > 0) last.adjust(-1, 0, 0, 0);
  return { on: `${start.toString()}..${last.toString()}`, reason };
}

/**
 * The instant of the local `time` of an event's `property`; an end without a zone of its own is in that of the start.
 * Where clocks change it may be off by the change, which a freeze can bear.
 */
function instantOf(event: ICAL.Event, time: ICAL.Time, property: "dtstart" | "dtend"): number {
  const wall = Date.UTC(time.year, time.month - 1, time.day, time.hour, time.minute, time.second);
  if (time.zone === ICAL.Timezone.utcTimezone) return wall;
  const zoneOf = (name: string) => event.component.getFirstProperty(name)?.getFirstParameter("tzid");
  const name = zoneOf(property) || zoneOf("dtstart");
  if (!name) throw new Error(`the event "${event.summary}" has neither Z nor a zone`);
  const zone = zoneNamed(canonicalZone(name));
  return wall - zone.offsetAt(wall - zone.offsetAt(wall));
}
