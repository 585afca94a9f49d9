/**
 * Errors as one sentence that says what to do. The one place of the command that knows what AWS and the network answer; an
 * error that isn't known here is shown by its own message.
 */
import { CronfenceError, type StoreUnavailableError } from "../errors.ts";
import { printable } from "../printable.ts";

/** What the command was told to talk to, as far as it was told. */
export interface Surroundings {
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  readonly profile: string | undefined;
  readonly table: string;
}

/** @param error whatever was thrown */
export const explained = (error: unknown, around: Surroundings): string => {
  if (!(error instanceof Error)) return printable(String(error));
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const advice = adviceOn(cause as PlatformError, around);
    if (advice !== undefined) return `${subjectOf(error)}${advice}`;
  }
  return printable(error.message.replace(/\s*\n\s*/g, " ") || error.name);
};

interface PlatformError extends Error {
  readonly code?: string;
  /** What an address lookup asked for. */
  readonly hostname?: string;
  readonly $metadata?: object;
  /** Of a request that several addresses refused. */
  readonly errors?: readonly { readonly code?: string }[];
}

/** What was being done, where the error that came up from below was caught and said. */
const subjectOf = (error: Error): string => {
  if (!(error instanceof CronfenceError)) return "";
  const { operation } = error as Partial<StoreUnavailableError>;
  if (operation !== undefined) return `the ${operation} failed: `;
  return error.cause === undefined ? "" : `${error.message}: `;
};

const adviceOn = (error: PlatformError, around: Surroundings): string | undefined => {
  const { name, message } = error;
  const code = error.code ?? error.errors?.[0]?.code;
  const where = around.endpoint ?? "AWS";
  if (message === "Region is missing" || /^Region is missing/.test(message))
    return "no region is set; set AWS_REGION, or give --region";
  if (/CredentialsProviderError|TokenProviderError/.test(name)) return credentials(message, around.profile);
  if (/^(Expired|RequestExpired)|TokenExpired/.test(name)) {
    return "these AWS credentials have expired; sign in again (with SSO: aws sso login)";
  }
  if (
    /^(UnrecognizedClient|InvalidSignature|InvalidClientTokenId|SignatureDoesNotMatch|MissingAuthenticationToken|AuthFailure)/.test(
      name,
    )
  ) {
    return `AWS doesn't accept these credentials${profiled(around.profile)}`;
  }
  if (/^(AccessDenied|NotAuthorized|UnauthorizedOperation)/.test(name)) return denied(message, around.profile);
  if (name === "ResourceNotFoundException") return missing(message, around);
  if (isThrottling(name))
    return `${where} throttles these requests, and did so for as long as it was tried; try again in a minute`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return unknownHost(error.hostname, around);
  if (code !== undefined && unconnected.has(code))
    return `nothing answers at ${around.endpoint ?? "AWS's endpoint"} (${code})`;
  if (name === "TimeoutError" || name === "AbortError") return `${where} didn't answer in time`;
  if (name === "EngineUnavailableError") return undefined;
  return undefined;
};

const unconnected = new Set(["ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT", "EPIPE"]);

const isThrottling = (name: string): boolean =>
  /^(Throttling|Throttled|ProvisionedThroughputExceeded|RequestLimitExceeded|TooManyRequests|RequestThrottled|LimitExceeded)/.test(
    name,
  );

const credentials = (message: string, profile: string | undefined): string => {
  if (/expired|sso login/i.test(message))
    return "these AWS credentials have expired; sign in again (with SSO: aws sso login)";
  if (profile !== undefined) return `there are no credentials for profile ${JSON.stringify(profile)} (AWS_PROFILE)`;
  return "no AWS credentials were found; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
};

/** AWS says who may not do what on what; the who is left out, which isn't for logs. */
const denied = (message: string, profile: string | undefined): string => {
  const [, action] = /perform: ([\w:]+)/.exec(message) ?? [];
  const [, resource] = /on resource: (\S+)/.exec(message) ?? [];
  if (action === undefined) return `these credentials${profiled(profile)} may not do that`;
  return `these credentials${profiled(profile)} may not ${action}${resource === undefined ? "" : ` on ${resource}`}`;
};

const profiled = (profile: string | undefined): string => (profile === undefined ? "" : ` (profile ${profile})`);

const missing = (message: string, { region, endpoint, table }: Surroundings): string => {
  const there = endpoint === undefined ? `in ${region ?? "this region"}` : `at ${endpoint}`;
  const [, fn] = /[Ff]unction not found: (\S+?)(:\$LATEST)?$/.exec(message) ?? [];
  if (fn !== undefined)
    return `function ${fn} doesn't exist ${there}; name it with --function, or another region with --region`;
  return (
    `table ${table} doesn't exist ${there}; name it with --table or another region with --region, or make it ` +
    `(npx cronfence table create --table ${table})`
  );
};

const unknownHost = (hostname: string | undefined, { endpoint, region }: Surroundings): string => {
  // Another service than DynamoDB has an endpoint of its own.
  const isEndpoint = endpoint !== undefined && (hostname === undefined || endpoint.includes(hostname));
  if (isEndpoint) return `nothing answers at ${endpoint}: there is no such host`;
  return `there is no host ${hostname ?? "of AWS"}; is ${region === undefined ? "the region" : `region ${region}`} right, and this machine online?`;
};
