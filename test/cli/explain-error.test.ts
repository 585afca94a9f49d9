/** What AWS, the network and the SDK answer, in one sentence that says what to do. */
import { StoreUnavailableError } from "cronfence";
import { describe, expect, it } from "vitest";
import { explained } from "../../src/cli/explain-error.ts";
import { CronfenceError } from "../../src/errors.ts";

const around = { endpoint: undefined, region: "eu-central-1", profile: undefined, table: "jobs" };
/** As the SDK throws it. */
const thrown = (name: string, message = "", more: object = {}) => Object.assign(new Error(message), { name, ...more });
const denied =
  "User: arn:aws:sts::123456789012:assumed-role/ann is not authorized to perform: dynamodb:GetItem on resource: " +
  "arn:aws:dynamodb:eu-central-1:123456789012:table/jobs because no identity-based policy allows it";

const answers: Readonly<Record<string, { cause: Error; says: string; at?: object }>> = {
  "no credentials": {
    cause: thrown("CredentialsProviderError", "Could not load credentials from any providers"),
    says: "no AWS credentials were found; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
  },
  "a profile that isn't there": {
    cause: thrown("CredentialsProviderError", "Could not resolve credentials using profile: [shop]"),
    at: { profile: "shop" },
    says: 'there are no credentials for profile "shop" (AWS_PROFILE)',
  },
  "a session that is over": {
    cause: thrown("CredentialsProviderError", "The SSO session associated with this profile has expired."),
    at: { profile: "shop" },
    says: "these AWS credentials have expired; sign in again (with SSO: aws sso login)",
  },
  "an expired token": {
    cause: thrown("ExpiredTokenException", "The security token included in the request is expired"),
    says: "these AWS credentials have expired; sign in again (with SSO: aws sso login)",
  },
  "keys that AWS doesn't know": {
    cause: thrown("UnrecognizedClientException", "The security token included in the request is invalid."),
    at: { profile: "shop" },
    says: "AWS doesn't accept these credentials (profile shop)",
  },
  "no region": { cause: new Error("Region is missing"), says: "no region is set; set AWS_REGION, or give --region" },
  "access denied": {
    cause: thrown("AccessDeniedException", denied),
    says: "these credentials may not dynamodb:GetItem on arn:aws:dynamodb:eu-central-1:123456789012:table/jobs",
  },
  "a table that isn't there": {
    cause: thrown("ResourceNotFoundException", "Requested resource not found"),
    says:
      "table jobs doesn't exist in eu-central-1; name it with --table or another region with --region, " +
      "or make it (npx cronfence table create --table jobs)",
  },
  throttling: {
    cause: thrown("ProvisionedThroughputExceededException", "Rate exceeded"),
    says: "AWS throttles these requests, and did so for as long as it was tried; try again in a minute",
  },
  "a region that isn't one": {
    cause: thrown("Error", "getaddrinfo ENOTFOUND", {
      code: "ENOTFOUND",
      hostname: "dynamodb.eu-nowhere-1.amazonaws.com",
    }),
    at: { region: "eu-nowhere-1" },
    says: "there is no host dynamodb.eu-nowhere-1.amazonaws.com; is region eu-nowhere-1 right, and this machine online?",
  },
  "another service's region, beside an endpoint of DynamoDB": {
    cause: thrown("Error", "getaddrinfo ENOTFOUND", {
      code: "ENOTFOUND",
      hostname: "lambda.eu-nowhere-1.amazonaws.com",
    }),
    at: { region: "eu-nowhere-1", endpoint: "http://127.0.0.1:8000" },
    says: "there is no host lambda.eu-nowhere-1.amazonaws.com; is region eu-nowhere-1 right, and this machine online?",
  },
  "an endpoint that has no host": {
    cause: thrown("Error", "getaddrinfo ENOTFOUND", { code: "ENOTFOUND", hostname: "dynamodb.test" }),
    at: { endpoint: "http://dynamodb.test:8000" },
    says: "nothing answers at http://dynamodb.test:8000: there is no such host",
  },
  "an endpoint that refuses": {
    cause: thrown("Error", "connect ECONNREFUSED", { code: "ECONNREFUSED" }),
    at: { endpoint: "http://127.0.0.1:8000" },
    says: "nothing answers at http://127.0.0.1:8000 (ECONNREFUSED)",
  },
  "one that refuses on all its addresses": {
    cause: thrown("AggregateError", "", { errors: [{ code: "ECONNREFUSED" }] }),
    at: { endpoint: "http://localhost:8000" },
    says: "nothing answers at http://localhost:8000 (ECONNREFUSED)",
  },
  silence: { cause: thrown("TimeoutError", "no answer within 1000 ms"), says: "AWS didn't answer in time" },
};

describe("An error in one sentence:", () => {
  it.each(Object.entries(answers))("%s", (_, { cause, says, at = {} }) => {
    const error = new StoreUnavailableError('job "a"', "read", { cause });
    expect(explained(error, { ...around, ...at })).toBe(`the read failed: ${says}`);
    const wrapped = new CronfenceError("TABLE_CREATE", "the table wasn't created", { cause });
    expect(explained(wrapped, { ...around, ...at })).toBe(`the table wasn't created: ${says}`);
    expect(explained(cause, { ...around, ...at })).toBe(says);
  });

  it("who was denied isn't shown", () => {
    expect(explained(thrown("AccessDeniedException", denied), around)).not.toContain("ann");
  });

  it("a function that isn't there is told from a table", () => {
    const message = "Function not found: arn:aws:lambda:eu-central-1:123456789012:function:shop-dev-a:$LATEST";
    expect(explained(thrown("ResourceNotFoundException", message), around)).toMatch(
      /^function arn\S+:function:shop-dev-a doesn't exist in eu-central-1; name it with --function/,
    );
  });

  it("one that nobody knows keeps its own words, on one line", () => {
    expect(explained(new Error("something\n  else"), around)).toBe("something else");
    expect(explained("text", around)).toBe("text");
    expect(explained(new Error(""), around)).toBe("Error");
  });
});
