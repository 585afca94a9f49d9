/** What Lambda would refuse of a function's environment, and what the deployment sets itself. Values are never shown. */
import type { DeployedJob, DeployedService } from "./deployed-service.ts";
import { functionSettings } from "./function-settings.ts";
import { problemIf } from "./problem-if.ts";

/** https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html */
const mostEnvironmentBytes = 4_096;

/** One sentence for each problem. */
export const environmentProblems = (deployed: DeployedJob, service: DeployedService): string[] => {
  const given = { ...service.settings.environment, ...deployed.job.deployment.environment };
  const { Variables } = functionSettings(deployed, service).Environment;
  const bytes = Object.entries(Variables).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value),
    0,
  );
  return [
    ...Object.keys(given)
      .filter((name) => ownVariables.includes(name))
      .map((name) => `environment has ${name}, which the deployment sets itself`),
    ...Object.keys(given)
      .filter((name) => reservedVariables.has(name))
      .map((name) => `environment has ${name}, which Lambda keeps for itself`),
    ...problemIf(
      bytes > mostEnvironmentBytes,
      `its environment has ${bytes} bytes, and Lambda takes at most ${mostEnvironmentBytes} of names and values together`,
    ),
  ];
};

const ownVariables = ["CRONFENCE_TABLE", "CRONFENCE_SERVICE", "CRONFENCE_VERSION", "CRONFENCE_FUNCTION_NAME"];

/** https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime */
const reservedVariables: ReadonlySet<string> = new Set([
  "_HANDLER",
  "_X_AMZN_TRACE_ID",
  "AWS_ACCESS_KEY",
  "AWS_ACCESS_KEY_ID",
  "AWS_DEFAULT_REGION",
  "AWS_EXECUTION_ENV",
  "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
  "AWS_LAMBDA_FUNCTION_NAME",
  "AWS_LAMBDA_FUNCTION_VERSION",
  "AWS_LAMBDA_INITIALIZATION_TYPE",
  "AWS_LAMBDA_LOG_GROUP_NAME",
  "AWS_LAMBDA_LOG_STREAM_NAME",
  "AWS_LAMBDA_RUNTIME_API",
  "AWS_REGION",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "LAMBDA_RUNTIME_DIR",
  "LAMBDA_TASK_ROOT",
]);
