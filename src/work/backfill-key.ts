/** The name under which a tick that was done after all is remembered, among a job's effects. */
import { isoOf } from "../report.ts";

export const backfillKey = (tick: number): string => `backfill of ${isoOf(tick)}`;
