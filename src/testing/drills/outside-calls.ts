/**
 * Calls over HTTP that the job's own code makes to anything but the drills' DynamoDB, as Node itself reports them
 * (https://nodejs.org/api/diagnostics_channel.html): by `fetch`, `node:http` and what is built on these, such as the AWS SDK.
 *
 * It sees method and address, not the body, and it changes nothing. Other protocols aren't seen, nor other processes.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";
import { type Machine, placeHere } from "./machine.ts";

/** A call that the job made to the outside. */
export interface OutsideCall {
  readonly method: string;
  /** Without its query: `https://api.example.com/mails`. */
  readonly url: string;
  /** Of an AWS service, where the request names it: "SendMessage". */
  readonly operation?: string;
}

/** A call as it was seen. */
export interface SeenCall extends OutsideCall {
  readonly machine: Machine;
  /** It says by a header of that name how its receiver can tell a repetition. */
  readonly idempotencyKey: boolean;
  /** The effect of `run.once` that it was made in. */
  readonly once?: string;
}

/**
 * Tells of calls that start on a machine, until the returned function is called.
 * @param ours the host of the drills' own DynamoDB, such as "127.0.0.1:8000"
 */
export const watchCalls = (
  ours: string,
  watch: {
    called(call: SeenCall): void;
    /** A request of the SDK's to our DynamoDB, by the id that it carries. */
    asked(invocation: string, machine: Machine): void;
  },
): (() => void) => {
  const see = (host: string, path: string, method: string, scheme: string, header: (name: string) => unknown) => {
    const place = placeHere();
    if (place === undefined) return;
    const { machine, once } = place;
    if (host === ours) return watch.asked(String(header("amz-sdk-invocation-id")), machine);
    const target = header("x-amz-target");
    watch.called({
      method,
      url: `${scheme}//${host}${withoutQuery(path)}`,
      ...(target === undefined ? {} : { operation: String(target).split(".").at(-1) as string }),
      machine,
      idempotencyKey: header("idempotency-key") !== undefined || header("x-idempotency-key") !== undefined,
      ...(once === undefined ? {} : { once }),
    });
  };
  const onHttp = (message: unknown) => {
    const { request } = message as { request: ClientRequest };
    const host = String(request.getHeader("host") ?? request.host);
    see(host, request.path, request.method, request.protocol, (name) => request.getHeader(name));
  };
  const onFetch = (message: unknown) => {
    const { request } = message as { request: FetchRequest };
    const { protocol, host } = new URL(String(request.origin));
    see(host, request.path, request.method, protocol, (name) => headersOf(request)[name]);
  };
  subscribe("http.client.request.start", onHttp);
  subscribe("undici:request:create", onFetch);
  return () => {
    unsubscribe("http.client.request.start", onHttp);
    unsubscribe("undici:request:create", onFetch);
  };
};

/** S3 names an operation in its query. */
const withoutQuery = (path: string): string => {
  const [bare = "", query = ""] = path.split("?");
  return /^delete(=|&|$)/.test(query) ? `${bare}?delete` : bare;
};

/** As undici has it: names and values in turn, or the text of the headers. */
interface FetchRequest {
  readonly origin: unknown;
  readonly path: string;
  readonly method: string;
  readonly headers: readonly unknown[] | string;
}

const headersOf = ({ headers }: FetchRequest): Record<string, string> => {
  const pairs =
    typeof headers === "string"
      ? headers.split("\r\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)])
      : Array.from({ length: headers.length / 2 }, (_, i) => [String(headers[2 * i]), String(headers[2 * i + 1])]);
  return Object.fromEntries(pairs.map(([name = "", value = ""]) => [name.toLowerCase(), value]));
};

/**
 * A call that may be made twice without harm by what its method promises (https://www.rfc-editor.org/rfc/rfc9110#section-9.2.2),
 * its name says or its idempotency key allows.
 */
export const isRepeatable = ({ method, url, operation, idempotencyKey }: SeenCall): boolean =>
  idempotencyKey ||
  !["POST", "PATCH"].includes(method) ||
  (operation !== undefined && /^(Get|List|Describe|Query|Scan|Search|Head|BatchGet|Delete)/.test(operation)) ||
  // S3's DeleteObjects
  url.endsWith("?delete");

export const callText = ({ method, url, operation }: OutsideCall): string =>
  operation === undefined ? `${method} ${url}` : `${operation} (${method} ${url})`;
