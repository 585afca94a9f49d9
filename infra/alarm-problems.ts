/** Alarms that CloudWatch would refuse, and alarms that could never go off because nobody looks at their jobs. */
import { InvalidAlarmError } from "./alarms.ts";
import type { DeployedService } from "./deployed-service.ts";
import { alarmSettings, alarmsOf, watchdogOf } from "./service-alarms.ts";

/** One sentence for each problem. */
export const alarmProblemsOf = (service: DeployedService): string[] => {
  const { jobs } = service;
  const watchdogs = jobs.filter(({ job }) => job.watches !== undefined).map(({ job }) => `"${job.name}"`);
  const alarmed = jobs
    .filter(({ job }) => job.watches === undefined && job.deployment.alarms)
    .map(({ job }) => job.name);
  if (watchdogs.length > 1) {
    return [
      `${watchdogs.length} jobs are watchdogs (${watchdogs.join(", ")}), and a service has one: both would send the same metrics`,
    ];
  }
  if (watchdogs.length === 0) {
    return alarmed.length === 0
      ? []
      : [
          `no job is a watchdog, and without its metrics the alarms of ${quoted(alarmed)} could never go off: export watchdog({ jobs }) ` +
            "from a handler, or say alarms: false for each",
        ];
  }
  return [...unwatched(service, alarmed), ...refused(service)];
};

/** The watchdog was given a list, and they aren't on it. */
const unwatched = (service: DeployedService, alarmed: readonly string[]): string[] => {
  const { name, watches } = watchdogOf(service)?.job ?? {};
  if (watches?.knowsAll !== true) return [];
  const missing = alarmed.filter((job) => !watches.jobs.includes(job));
  return missing.length === 0
    ? []
    : [
        `the watchdog "${name}" isn't given ${quoted(missing)}, whose alarms could never go off: add them to its jobs, or say ` +
          "alarms: false for each",
      ];
};

const refused = (service: DeployedService): string[] => {
  const settings = alarmSettings(service);
  return service.jobs.flatMap((deployed) => {
    try {
      alarmsOf(deployed, settings);
      return [];
    } catch (error) {
      if (!(error instanceof InvalidAlarmError)) throw error;
      return [error.message];
    }
  });
};

const quoted = (names: readonly string[]): string => names.map((name) => `"${name}"`).join(", ");
