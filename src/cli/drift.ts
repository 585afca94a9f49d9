/** `cronfence drift`: what differs between the repo and what is deployed. It ends with 2 where something does. */
import { type Command, Option } from "commander";
import type { Drift } from "../drift/drift.ts";
import type { Finding } from "../drift/findings.ts";
import { jsonOption } from "./arguments.ts";
import { print, printJson } from "./exit.ts";

interface DriftOptions {
  readonly stage?: string;
  readonly region?: string;
  readonly stack?: string;
  readonly template?: string;
  readonly json?: boolean;
}

export const addDrift = (program: Command): void => {
  program
    .command("drift")
    .description("compares what is deployed with the repo: what was changed by hand, and what isn't deployed")
    .option("--stage <name>", "of the service (default: as in serverless.yml)")
    .option("--region <name>", "of the deployment (default: as in serverless.yml)")
    .option("--template <file>", "a template that was packaged before; otherwise the serverless CLI makes it")
    .addOption(new Option("--stack <name>", "another stack's name (default: as the CLI calls it)"))
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nExample:\n  npx cronfence drift --stage prod\n\n" +
        "Exit status: 0 where nothing differs, 2 for drift, 1 for an error. Another version of the code is no drift.",
    )
    .action(showDrift);
};

const showDrift = async (options: DriftOptions): Promise<void> => {
  const { packagedTemplate, packageService } = await import("./packaged-template.ts");
  const { findDrift } = await import("../drift/drift.ts");
  const { template, stack, region, deploy } =
    options.template === undefined ? await packageService(options) : await packagedTemplate(options.template, options);
  const drift = await findDrift({ template, stack, deploy }, region === "" ? {} : { region });
  if (options.json) printJson(asJson(drift));
  else await printDrift(drift);
  if (drift.findings.length > 0) process.exitCode = 2;
};

/** What programs get: a field is never taken away, nor given another meaning. */
const asJson = ({ stack, region, findings, otherVersions, remedies, resources, settings, unknown }: Drift) => ({
  stack,
  region,
  drift: findings.length > 0,
  findings: findings.map(({ cause, type, logicalId, name, setting, repo, deployed, means }) => ({
    cause: cause === "by hand" ? "changed_by_hand" : "not_deployed",
    type,
    logicalId: logicalId === "" ? null : logicalId,
    name,
    setting: setting ?? null,
    // Of a variable of an environment, neither value is given.
    repo: repo ?? null,
    deployed: deployed ?? null,
    means: means ?? null,
  })),
  otherVersions,
  remedies,
  compared: { resources, settings, unknown },
});

const printDrift = async (drift: Drift): Promise<void> => {
  const { stack, region, findings, otherVersions, remedies, resources, settings, unknown } = drift;
  const { columns } = await import("./columns.ts");
  if (findings.length === 0) print(`${stack} in ${region}: no drift (${settings} settings of ${resources} resources)`);
  for (const finding of findings) {
    if (finding.means !== undefined) print(`${whatOf(finding)}: ${finding.means}`);
  }
  const rows = findings.filter(({ setting }) => setting !== undefined).map(asRow);
  if (rows.length > 0) {
    const headings = ["what", "setting", "in the repo", "deployed", "changed"].map((heading) => ({ heading }));
    print(`${rows.length < findings.length || findings[0]?.means !== undefined ? "\n" : ""}${columns(headings, rows)}`);
  }
  if (findings.length > 0 && otherVersions.length + unknown.length > 0) print("");
  for (const { name, repo, deployed } of otherVersions) {
    print(`another version is deployed: ${name} runs ${deployed}, and the repo is at ${repo}`);
  }
  if (unknown.length > 0) print(`not compared, since only CloudFormation knows the value: ${unknown.join(", ")}`);
  for (const { why, commands } of remedies) {
    print(`\n${why[0]?.toUpperCase()}${why.slice(1)}:`);
    for (const command of commands) print(`  ${command}`);
  }
};

const whatOf = ({ type, name }: Finding): string => `${kinds[type] ?? type} ${name.slice(name.lastIndexOf("/") + 1)}`;

const asRow = (finding: Finding): string[] => {
  const { setting = "", repo, deployed, cause } = finding;
  const hidden = repo === undefined && deployed === undefined;
  return [
    whatOf(finding),
    // The last part says it, to people.
    setting.startsWith("Environment.") ? setting : setting.replace(/\.Arn$/, "").replace(/^.*\./, ""),
    hidden ? "(not shown)" : shown(repo),
    hidden ? "another value" : shown(deployed),
    cause === "by hand" ? "by hand" : "in the repo",
  ];
};

const kinds: Readonly<Record<string, string>> = {
  "AWS::Scheduler::Schedule": "schedule",
  "AWS::Lambda::Function": "function",
  "AWS::Lambda::EventInvokeConfig": "retries of",
  "AWS::CloudWatch::Alarm": "alarm",
  "AWS::DynamoDB::Table": "table",
  "AWS::Logs::LogGroup": "log group",
};

const shown = (value: unknown): string => {
  if (value === null || value === undefined) return "none";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  // Of what is in the same account and Region, the name says enough.
  if (/^arn:[^\s"]+$/.test(text)) return text.slice(Math.max(text.lastIndexOf(":"), text.lastIndexOf("/")) + 1);
  return text.length > longestValue ? `${text.slice(0, longestValue - 1)}…` : text;
};
const longestValue = 120;
