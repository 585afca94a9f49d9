/**
 * The comparison itself, pure: the template from the repo and the one that was deployed last, both against what is there. The
 * second tells a change by hand, which a deployment of an unchanged template doesn't undo, from one that wasn't deployed yet.
 */
import { environmentPrefix, type Settings, settingsByType, stable, versionIn } from "./settings.ts";
import { isUnknown, resolved, type Stack } from "./stack.ts";
import type { Properties, Template } from "./template.ts";

/** How it came. */
type Cause = "by hand" | "not deployed";

export interface Finding {
  readonly cause: Cause;
  readonly type: string;
  readonly logicalId: string;
  /** What AWS calls it. */
  readonly name: string;
  /** Which setting; absent where the whole thing is there and shouldn't be, or the other way about. */
  readonly setting?: string;
  /** Absent for a variable of an environment, whose value may be a secret. */
  readonly repo?: unknown;
  readonly deployed?: unknown;
  /** What it means, where that is worse than a setting that differs. */
  readonly means?: string;
  /** A deployment puts it right: the resource's template has changed, so that CloudFormation writes all of it. */
  readonly deployable: boolean;
}

/** A function that runs another build than the repo's. That isn't drift: every commit makes one. */
interface OtherVersion {
  readonly name: string;
  readonly repo: string;
  readonly deployed: string;
}

/** A schedule in the service's group that no template has. */
export interface StraySchedule {
  readonly group: string;
  readonly name: string;
}

export interface Compared {
  readonly findings: readonly Finding[];
  readonly otherVersions: readonly OtherVersion[];
  /** How many resources, and settings of them, were compared. */
  readonly resources: number;
  readonly settings: number;
  /** Settings whose value in the template only CloudFormation knows, such as another stack's export. */
  readonly unknown: readonly string[];
}

/**
 * @param repo the template that would be deployed
 * @param deployed the template that was
 * @param actual by logical id, what AWS has, in a template's words; undefined for what isn't there
 */
export const compare = (
  repo: Template,
  deployed: Template,
  actual: ReadonlyMap<string, Properties | undefined>,
  strays: readonly StraySchedule[],
  stack: Stack,
): Compared => {
  const findings: Finding[] = strays.map(strayFinding);
  const otherVersions: OtherVersion[] = [];
  const unknown: string[] = [];
  let [resources, settings] = [0, 0];
  const ids = new Set([...Object.keys(repo.Resources), ...Object.keys(deployed.Resources)]);
  for (const logicalId of [...ids].sort()) {
    const wanted = repo.Resources[logicalId];
    const last = deployed.Resources[logicalId];
    const type = (wanted ?? last)?.Type as string;
    const settingsOf = settingsByType[type];
    if (settingsOf === undefined) continue;
    resources += 1;
    const found = actual.get(logicalId);
    const name = nameOf(logicalId, last?.Properties ?? wanted?.Properties ?? {}, stack);
    const about = { type, logicalId, name };
    if (wanted === undefined || last === undefined) {
      if (wanted !== undefined || found !== undefined) findings.push(wholeFinding(about, wanted !== undefined));
      continue;
    }
    const deployable = stable(wanted) !== stable(last);
    if (found === undefined) {
      findings.push({ ...about, cause: "by hand", means: gone(type), deployable: false });
      continue;
    }
    const wantedProperties = resolved(wanted.Properties ?? {}, stack) as Properties;
    const [want, had, have] = [
      settingsOf(wantedProperties),
      settingsOf(resolved(last.Properties ?? {}, stack) as Properties),
      settingsOf(found),
    ];
    const versions = [versionIn(wantedProperties), versionIn(found)] as const;
    if (versions[0] !== undefined && versions[1] !== undefined && versions[0] !== versions[1])
      otherVersions.push({ name, repo: versions[0], deployed: versions[1] });
    for (const setting of new Set([...Object.keys(want), ...Object.keys(have)])) {
      if (isUnknown(want[setting])) {
        unknown.push(`${logicalId}.${setting}`);
        continue;
      }
      settings += 1;
      if (!isSame(want, have, setting)) {
        findings.push(settingFinding(about, setting, { want, had, have }, deployable));
      }
    }
  }
  return { findings: findings.sort(worstFirst), otherVersions, resources, settings, unknown };
};

/** What people know it by: a function's retry settings have no name of their own. */
const nameOf = (logicalId: string, properties: Properties, stack: Stack): string => {
  const { FunctionName } = properties;
  const known = typeof FunctionName === "object" ? resolved(FunctionName, stack) : undefined;
  return typeof known === "string" ? known : (stack.resources[logicalId]?.physicalId ?? logicalId);
};

const isSame = (one: Settings, other: Settings, setting: string): boolean =>
  stable(one[setting] ?? null) === stable(other[setting] ?? null);

type About = Pick<Finding, "type" | "logicalId" | "name">;

const settingFinding = (
  about: About,
  setting: string,
  { want, had, have }: Readonly<Record<"want" | "had" | "have", Settings>>,
  deployable: boolean,
): Finding => {
  const means = meaning(about.type, setting, have[setting]);
  return {
    ...about,
    cause: isSame(had, have, setting) ? "not deployed" : "by hand",
    setting,
    ...(setting.startsWith(environmentPrefix) ? {} : { repo: want[setting] ?? null, deployed: have[setting] ?? null }),
    ...(means === undefined ? {} : { means }),
    deployable,
  };
};

const wholeFinding = (about: About, inRepo: boolean): Finding => ({
  ...about,
  cause: "not deployed",
  means: inRepo ? "it isn't deployed yet" : "it is deployed, and the repo has it no more",
  deployable: true,
});

const strayFinding = ({ group, name }: StraySchedule): Finding => ({
  cause: "by hand",
  type: "AWS::Scheduler::Schedule",
  logicalId: "",
  name: `${group}/${name}`,
  means: "it was made by hand: no template has this schedule",
  deployable: false,
});

const gone = (type: string): string =>
  type === "AWS::Scheduler::Schedule"
    ? "it was deleted by hand: the job isn't started any more"
    : "it was deleted by hand";

/** What people must know at once. */
const meaning = (type: string, setting: string, value: unknown): string | undefined => {
  const is = (otherType: string, otherSetting: string) => type === otherType && setting === otherSetting;
  if (is("AWS::Scheduler::Schedule", "State") && value === "DISABLED")
    return "the schedule is disabled: the job isn't started";
  if (is("AWS::Scheduler::Schedule", "EndDate")) return "the schedule ends: the job isn't started after that";
  if (is("AWS::Scheduler::Schedule", "Target.Arn")) return "the schedule starts another function";
  if (is("AWS::Lambda::Function", "ReservedConcurrentExecutions") && value === 0) return "the function can't run";
  if (is("AWS::CloudWatch::Alarm", "ActionsEnabled") && value === false) return "the alarm pages nobody";
  if (is("AWS::CloudWatch::Alarm", "AlarmActions")) return "the alarm pages others";
  if (is("AWS::DynamoDB::Table", "DeletionProtectionEnabled") && value === false) return "the table can be deleted";
  return undefined;
};

/** What keeps jobs from running comes first, then what was done by hand, then the rest, each in the order of names. */
const worstFirst = (one: Finding, other: Finding): number =>
  rank(one) - rank(other) || compareText(one.name, other.name) || compareText(one.setting ?? "", other.setting ?? "");

const rank = ({ means, cause, type }: Finding): number => {
  if (cause === "by hand" && means !== undefined) return type === "AWS::Scheduler::Schedule" ? 0 : 1;
  return cause === "by hand" ? 2 : 3;
};

const compareText = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
