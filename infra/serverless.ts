/**
 * `cronfence/serverless`: the plugin by which `serverless deploy` turns job definitions into functions, schedules,
 * permissions and alarms. It only connects: `serverless/plan.ts` says what is deployed, the builders in this folder make the
 * resources of it, `serverless/artifacts.ts` the zips.
 *
 * For osls 4 and serverless 3. Everything that is wrong is told at once, before anything is packaged or written.
 */
import type { Serverless, Writers } from "./serverless/host.ts";
import { keptTableText, refuseForeignTable } from "./serverless/kept-table.ts";
import type { Plan } from "./serverless/plan.ts";
import { functionSettings, jobIds, serviceResources } from "./service.ts";

export default class CronfencePlugin {
  readonly hooks: Readonly<Record<string, () => Promise<void> | void>>;
  private readonly serverless: Serverless;
  private plan: Plan | undefined;

  constructor(serverless: Serverless, options: { readonly function?: string }, { log }: Writers) {
    this.serverless = serverless;
    // What is in it is checked here; the CLI must only know that it is allowed.
    serverless.configSchemaHandler.defineCustomProperties({ type: "object", properties: { cronfence: {} } });
    this.hooks = {
      "before:package:createDeploymentArtifacts": async () => {
        for (const warning of this.plan?.warnings ?? []) log.warning(`cronfence: ${warning}`);
        await this.makeArtifacts();
      },
      "after:package:compileEvents": () => this.addResources(),
      "before:deploy:deploy": () => this.refuseForeignTable(),
      "after:deploy:deploy": () => this.describe(),
      "before:deploy:function:packageFunction": () => this.makeArtifacts(options.function),
      "after:remove:remove": () => {
        const table = keptTableOf(serverless);
        if (table !== undefined) log.notice(keptTableText(table));
      },
    };
  }

  /** Where configuration may still be added: the CLI then treats jobs' functions like any others. */
  async asyncInit(): Promise<void> {
    const { serverless } = this;
    if (!serverless.serviceDir || !needsJobs(serverless.processedInput.commands)) return;
    const { planOf } = await import("./serverless/plan.ts");
    const outcome = await planOf(serverless);
    if ("problems" in outcome) throw this.refusal("INVALID_SERVICE", outcome.problems);
    this.plan = outcome.plan;
    const { functions, package: packaging } = serverless.configurationInput;
    for (const { key, config } of this.plan.functions) {
      const place = Array.isArray(functions) ? [String(functions.length), key] : [key];
      serverless.extendConfiguration(["functions", ...place], config);
    }
    // The service's own functions, where it has some, are packed without the jobs' bundles.
    if (functions !== undefined) {
      serverless.extendConfiguration(["package", "patterns"], [...(packaging?.patterns ?? []), "!.build/**"]);
    }
  }

  /** @param only one function's; otherwise all */
  private async makeArtifacts(only?: string): Promise<void> {
    if (this.plan === undefined) return;
    const { serverless } = this;
    const now = this.plan.workedOut();
    if ("problems" in now) throw this.refusal("INVALID_SERVICE", now.problems);
    this.plan = { ...this.plan, ...now };
    const { makeArtifacts } = await import("./serverless/artifacts.ts");
    const functions = this.plan.functions.filter(({ key }) => only === undefined || key === only);
    const made = await makeArtifacts(serverless.serviceDir, functions, this.plan.options);
    const problems = made.flatMap((each) => ("problem" in each ? [each.problem] : []));
    if (problems.length > 0) throw this.refusal("INVALID_BUNDLE", problems);
    for (const each of made) {
      const config = serverless.service.getFunction(each.key);
      if ("artifact" in each) config.package = { ...config.package, artifact: each.artifact };
      // `deploy function` looks for a role by its name in IAM, and leaves it as it is.
      const { Role } = serverless.service.provider.remoteFunctionData?.Configuration ?? {};
      if (only !== undefined && Role !== undefined) config.role = Role;
    }
  }

  private addResources(): void {
    const template = this.serverless.service.provider.compiledCloudFormationTemplate;
    if (this.plan === undefined || template === undefined) return;
    const { service } = this.plan;
    Object.assign(template.Resources, serviceResources(service));
    for (const deployed of service.jobs) {
      const resource = template.Resources[deployed.functionLogicalId];
      if (resource === undefined) continue;
      const { DependsOn, Environment, ...settings } = functionSettings(deployed, service);
      const { Environment: compiled } = resource.Properties as { Environment?: { Variables?: object } };
      // The CLI names the role here, which CloudFormation knows from the function's own reference to it.
      const others = [resource.DependsOn ?? []].flat().filter((id) => id !== jobIds(deployed.job.name).role);
      template.Resources[deployed.functionLogicalId] = {
        ...resource,
        DependsOn: [...others, ...DependsOn],
        // Some of it the CLI has no words for.
        Properties: {
          ...resource.Properties,
          ...settings,
          Environment: { Variables: { ...compiled?.Variables, ...Environment.Variables } },
        },
      };
    }
  }

  private async refuseForeignTable(): Promise<void> {
    const table = this.plan?.service.settings.controlTable;
    if (table?.create !== true) return;
    try {
      await refuseForeignTable(this.serverless.getProvider("aws"), table.name);
    } catch (error) {
      throw this.refusal("TABLE_EXISTS", [(error as Error).message]);
    }
  }

  private describe(): void {
    if (this.plan === undefined) return;
    const { jobs, settings } = this.plan.service;
    this.serverless.addServiceOutputSection?.("cronfence", [
      `${jobs.filter(({ job }) => job.schedule !== undefined).length} schedules, version ${settings.version}`,
      `control table: ${settings.controlTable.name}`,
      settings.alarmTopic === undefined
        ? "alarms: page nobody"
        : "alarms: page whoever has subscribed to the topic, and nobody before that",
    ]);
  }

  private refusal(code: string, problems: readonly string[]): Error {
    const heading = problems.length === 1 ? "cronfence: " : `cronfence: ${problems.length} problems:\n  `;
    return new this.serverless.classes.Error(`${heading}${problems.join("\n  ")}`, `CRONFENCE_${code}`);
  }
}

/** Removing, say, must work whatever has become of the jobs' files. */
const needsJobs = ([command, ...rest]: readonly string[]): boolean =>
  command !== undefined &&
  !["remove", "rollback", "plugin", "config", "help", "login", "logout", "create", "doctor"].includes(command) &&
  !(command === "deploy" && rest[0] === "list");

/** Of a service that makes its own; known without its jobs, which may be gone. */
const keptTableOf = (serverless: Serverless): string | undefined => {
  const { custom, service } = serverless.configurationInput;
  const { controlTable } = (custom?.cronfence ?? {}) as { readonly controlTable?: unknown };
  if (typeof controlTable === "string") return controlTable;
  return controlTable === undefined ? `${service}-${serverless.getProvider("aws").getStage()}-cronfence` : undefined;
};
