/**
 * What is deployed, worked out from serverless.yml and the definitions before anything is packaged: the service that the
 * builders make resources of, each job's function for the CLI, and the module that is bundled for it.
 */
import { join, resolve } from "node:path";
import type { Job } from "cronfence";
import type { FoundJob } from "../../src/cli/load-jobs.ts";
import { unknownOption } from "../../src/unknown-option.ts";
import { putsMetrics } from "../job-role.ts";
import { type DeployedJob, type DeployedService, deploymentProblems, fullName, functionSettings } from "../service.ts";
import type { Statement } from "../template.ts";
import { loadDefinitions } from "./definitions.ts";
import type { Configuration, Serverless } from "./host.ts";
import { hasVariable, type PluginOptions, readPluginOptions } from "./options.ts";
import { buildVersion } from "./version.ts";
import { watchdogOf, watchdogSource } from "./watchdog-module.ts";

export interface Plan {
  readonly options: PluginOptions;
  readonly service: DeployedService;
  readonly functions: readonly PlannedFunction[];
  /** What is allowed, but seldom meant: one sentence for each. */
  readonly warnings: readonly string[];
  /** The options and the service anew, once the CLI has worked out all variables of serverless.yml. */
  workedOut(): { readonly problems: readonly string[] } | Pick<Plan, "options" | "service">;
}

export interface PlannedFunction {
  /** Its name in serverless.yml: the job's. */
  readonly key: string;
  /** The module to bundle: a file that is there, or the source of one that is made. */
  readonly module: { readonly file: string } | { readonly made: string; readonly source: string };
  /** Whether the CloudWatch client is bundled. */
  readonly cloudWatch: boolean;
  /** As serverless.yml would have it. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** @returns everything that is wrong, one sentence for each, or the plan */
export const planOf = async (
  serverless: Serverless,
): Promise<{ readonly problems: readonly string[] } | { readonly plan: Plan }> => {
  const configuration = serverless.configurationInput;
  const read = readPluginOptions(configuration.custom?.cronfence);
  if ("problems" in read) return read;
  const { options } = read;
  const provider = serverless.getProvider("aws");
  const name = { service: configuration.service, stage: provider.getStage() };
  const { found, problems } = await loadDefinitions(serverless.serviceDir, options.jobs, {
    ...textsOf(configuration.provider.environment),
    ...options.environment,
    AWS_REGION: provider.getRegion(),
    AWS_LAMBDA_FUNCTION_NAME: `${fullName(name)}-job`,
    CRONFENCE_SERVICE: fullName(name),
    CRONFENCE_FUNCTION_NAME: `${fullName(name)}-{job}`,
  });
  const made = found.some(({ job }) => job.watches) || found.length === 0 ? undefined : options.watchdog;
  const jobs: readonly { readonly job: Job; readonly module: PlannedFunction["module"] }[] = [
    ...found.map(({ job, file }) => ({ job, module: { file: resolve(file) } })),
    ...(made === undefined ? [] : [madeWatchdog(found, made, serverless.serviceDir)]),
  ];
  const version = await buildVersion(serverless.serviceDir);
  const serviceNow = (): { readonly problems: readonly string[] } | Pick<Plan, "options" | "service"> => {
    const now = serverless.configurationInput;
    const again = readPluginOptions(now.custom?.cronfence);
    if ("problems" in again) return again;
    const service = serviceOf(serverless, jobs, again.options, version);
    // A name that is used twice is told with its files.
    const distinct = { ...service, jobs: firstOfEachName(service.jobs) };
    // What isn't known yet can't be judged; it is when the CLI has worked it out.
    const refused = hasVariables(now) ? [] : deploymentProblems(distinct);
    return refused.length > 0 ? { problems: refused } : { options: again.options, service };
  };
  const first = serviceNow();
  const all = [
    ...problems,
    // Of what stands there by itself: later the jobs' functions are among the others.
    ...configurationProblems(configuration, fullName(name), jobs, options),
    ...("problems" in first ? first.problems : []),
  ];
  if (all.length > 0 || "problems" in first) return { problems: all };
  const { service } = first;
  const functions = jobs.map(({ job, module }, index) => ({
    key: job.name,
    module,
    cloudWatch: putsMetrics(job, service.settings),
    config: configOf(service.jobs[index] as DeployedJob, service, configuration),
  }));
  const warnings = found.flatMap(({ file, job }) =>
    job.warnings.map((warning) => `${file}: job "${job.name}": ${warning}`),
  );
  return { plan: { ...first, functions, warnings, workedOut: serviceNow } };
};

const serviceOf = (
  serverless: Serverless,
  jobs: readonly { readonly job: Job }[],
  options: PluginOptions,
  version: string,
): DeployedService => {
  const configuration = serverless.configurationInput;
  const provider = serverless.getProvider("aws");
  const name = { service: configuration.service, stage: provider.getStage() };
  const memoryMb = options.memory ?? configuration.provider.memorySize;
  return {
    jobs: jobs.map(({ job }): DeployedJob => {
      const statements = statementsOf(job, options, configuration);
      return {
        job,
        functionName: `${fullName(name)}-${job.name}`,
        functionLogicalId: provider.naming.getLambdaLogicalId(job.name),
        ...(statements.length === 0 ? {} : { statements }),
      };
    }),
    settings: {
      ...name,
      controlTable: controlTableOf(options, fullName(name)),
      alarmTopic: options.alarmTopic,
      ...(memoryMb === undefined ? {} : { memoryMb }),
      logRetentionDays: options.logRetentionInDays,
      version: options.version ?? version,
      environment: { ...textsOf(plainIn(configuration.provider.environment)), ...options.environment },
      dashboard: options.dashboard,
    },
  };
};

/** Whether something of it the CLI will only work out (`${param:…}`, `${ssm:…}`) once the plugins are there. */
const hasVariables = ({ custom, provider }: Configuration): boolean =>
  hasVariable([custom?.cronfence, provider.environment, provider.memorySize]);

const firstOfEachName = (jobs: readonly DeployedJob[]): DeployedJob[] =>
  [...new Map([...jobs].reverse().map((each) => [each.job.name, each])).values()].reverse();

const madeWatchdog = (found: readonly FoundJob[], settings: NonNullable<PluginOptions["watchdog"]>, root: string) => {
  const folder = join(root, ".build");
  const job = watchdogOf(found, settings);
  const source = watchdogSource(found, settings, folder);
  return { job, module: { made: join(folder, `${job.name}.mjs`), source } };
};

const controlTableOf = ({ controlTable }: PluginOptions, name: string): DeployedService["settings"]["controlTable"] =>
  typeof controlTable === "object"
    ? { create: false, ...controlTable }
    : { create: true, name: controlTable ?? `${name}-cronfence` };

const configOf = (deployed: DeployedJob, service: DeployedService, { provider }: Configuration) => {
  const { Description, MemorySize, Timeout, Role, Environment } = functionSettings(deployed, service);
  return {
    name: deployed.functionName,
    handler: "index.handler",
    ...(nodeMajor(provider.runtime) === undefined ? { runtime: "nodejs22.x" } : {}),
    ...(Description === undefined ? {} : { description: Description }),
    memorySize: MemorySize,
    timeout: Timeout,
    role: Role,
    environment: Environment.Variables,
    // Its log group, with its retention, is among the service's resources.
    disableLogs: true,
    package: { individually: true },
  };
};

/** What the function's place asks for beside the job's own work, and what serverless.yml adds. */
const statementsOf = (job: Job, { statements }: PluginOptions, { provider }: Configuration): Statement[] => [
  ...(statements[job.name] ?? []).map((each) => ({ ...each, Action: [each.Action].flat() })),
  // https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html: network interfaces have no names before they are made
  ...(provider.vpc === undefined ? [] : [allow(networkActions)]),
  // https://docs.aws.amazon.com/xray/latest/devguide/security_iam_service-with-iam.html: nor have traces
  ...(provider.tracing?.lambda ? [allow(["xray:PutTraceSegments", "xray:PutTelemetryRecords"])] : []),
];

const allow = (actions: readonly string[]): Statement => ({ Effect: "Allow", Action: actions, Resource: "*" });
const networkActions = [
  "ec2:CreateNetworkInterface",
  "ec2:DescribeNetworkInterfaces",
  "ec2:DescribeSubnets",
  "ec2:DeleteNetworkInterface",
  "ec2:AssignPrivateIpAddresses",
  "ec2:UnassignPrivateIpAddresses",
];

const configurationProblems = (
  configuration: Configuration,
  prefix: string,
  jobs: readonly { readonly job: Job }[],
  options: PluginOptions,
): string[] => {
  const { provider } = configuration;
  const own = Object.assign({}, ...[configuration.functions ?? {}].flat()) as Record<string, { name?: string } | null>;
  const names = Object.entries(own).map(([key, given]) => ({ key, name: given?.name ?? `${prefix}-${key}` }));
  const jobNames = [...new Set(jobs.map(({ job }) => job.name))];
  const major = nodeMajor(provider.runtime);
  return [
    ...(provider.name === "aws" ? [] : [`provider.name is "${provider.name}", and must be "aws"`]),
    ...(major !== undefined && major < 22
      ? [`provider.runtime is "${provider.runtime}", and must be nodejs22.x or later: jobs are built for that`]
      : []),
    ...jobNames.flatMap((jobName) =>
      names
        .filter(({ key, name }) => key === jobName || name === `${prefix}-${jobName}`)
        .map(
          ({ key }) =>
            `job "${jobName}": functions.${key} of serverless.yml has the name of its function; rename one of them, or leave the ` +
            "function out: jobs bring their own",
        ),
    ),
    ...Object.keys(options.statements)
      .filter((name) => jobNames.length > 0 && !jobNames.includes(name))
      .map(
        (name) =>
          `custom.cronfence.statements: ${unknownOption(name, jobNames).replace("is not an option", "is not a job")}`,
      ),
  ];
};

/** Of "nodejs22.x"; undefined where functions have another runtime, or it isn't said. */
const nodeMajor = (runtime: string | undefined): number | undefined => {
  const major = /^nodejs(\d+)\.x$/.exec(runtime ?? "")?.[1];
  return major === undefined ? undefined : Number(major);
};

/** The CLI puts the others beside them. */
const plainIn = (environment: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(environment).filter(([, each]) => typeof each !== "object" && !hasVariable(each)));

/** What CloudFormation will work out has no value yet; a module that only wants it to be there finds something. */
const textsOf = (environment: Readonly<Record<string, unknown>> = {}): Record<string, string> =>
  Object.fromEntries(
    Object.entries(environment).map(([name, each]) => [
      name,
      typeof each === "object" ? JSON.stringify(each) : String(each),
    ]),
  );
