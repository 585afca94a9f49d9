/**
 * What the job's own code reads of the machine's clock: `Date.now()`, `new Date()` and `Date()`, also through a library. While it is
 * watched, such code sees the time of the machine that it runs on, and the place that asked is noted.
 *
 * Only the job's own code is meant: the AWS SDK, cronfence and whatever runs on no machine go on with the real time. What it
 * can't see: a `Date.now` that was taken out of `Date` before, and other clocks (`performance.now()`, `Intl` without a date).
 */
import { fileURLToPath } from "node:url";
import { type Machine, placeHere } from "./machine.ts";

/** Replaces the global `Date` until the returned function is called. */
export const watchDates = (): (() => void) => {
  const real = globalThis.Date;
  const now = () => machineTime() ?? real.now();
  const watched: DateConstructor = new Proxy(real, {
    get: (target, key, receiver) => (key === "now" ? now : Reflect.get(target, key, receiver)),
    construct: (target, args, newTarget) => {
      const time = args.length === 0 ? machineTime() : undefined;
      return Reflect.construct(target, time === undefined ? args : [time], newTarget === watched ? target : newTarget);
    },
    apply: (target) => {
      const time = machineTime();
      return time === undefined ? target() : new target(time).toString();
    },
  });
  globalThis.Date = watched;
  return () => {
    // Somebody may have replaced it meanwhile, such as a test with a clock of its own.
    if (globalThis.Date === watched) globalThis.Date = real;
  };
};

/** The time of the machine that the job's own code runs on; undefined where it isn't that code that asks. */
const machineTime = (): number | undefined => {
  const machine = placeHere()?.machine;
  if (machine === undefined) return undefined;
  const reader = readerHere();
  if (reader === undefined) return undefined;
  note(machine, reader);
  return machine.dateNow();
};

const note = ({ dateReaders }: Machine, reader: string): void => {
  if (dateReaders.size < mostReaders) dateReaders.add(reader);
};
const mostReaders = 20;

/** Where in the job's own code the present call comes from, as "file:line". */
const readerHere = (): string | undefined => {
  for (const site of callSites()) {
    const file = pathOf(site.getFileName());
    if (file === undefined || file === thisFile || file.startsWith("node:")) continue;
    if (file.startsWith(ownFolder) || sdk.test(file)) return undefined;
    if (!file.includes("/node_modules/")) return `${shortened(file)}:${site.getLineNumber()}`;
  }
  return undefined;
};

const thisFile = fileURLToPath(import.meta.url).replaceAll("\\", "/");
/** The library, wherever it lies. */
const ownFolder = fileURLToPath(new URL("../../", import.meta.url)).replaceAll("\\", "/");
const sdk = /\/node_modules\/(@aws-sdk|@smithy|@aws|pino|cronfence)\//;

const pathOf = (file: string | null | undefined): string | undefined => {
  if (!file) return undefined;
  return (file.startsWith("file:") ? fileURLToPath(file) : file).replaceAll("\\", "/").replace(/\?.*$/, "");
};

const shortened = (file: string): string => {
  const here = `${process.cwd().replaceAll("\\", "/")}/`;
  return file.startsWith(here) ? file.slice(here.length) : file;
};

/** The present calls, the innermost first. */
const callSites = (): readonly NodeJS.CallSite[] => {
  const { prepareStackTrace, stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = 30;
    Error.prepareStackTrace = (_, sites) => sites;
    const holder: { stack?: readonly NodeJS.CallSite[] } = {};
    Error.captureStackTrace(holder);
    return holder.stack ?? [];
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
    Error.stackTraceLimit = stackTraceLimit;
  }
};
