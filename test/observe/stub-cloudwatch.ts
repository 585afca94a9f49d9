/** A CloudWatch that takes PutMetricData over HTTP and checks each request against the limits of the service. */
import { createServer, type IncomingMessage } from "node:http";
import { gunzipSync } from "node:zlib";
import { CloudWatchClient } from "@aws-sdk/client-cloudwatch";
import { localClientConfig } from "cronfence/testing";

interface Datum {
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: string }[];
  readonly Timestamp: number;
  readonly Unit: string;
  readonly Value?: number;
  readonly Values?: readonly number[];
  readonly Counts?: readonly number[];
}

export interface StubCloudWatch {
  readonly client: CloudWatchClient;
  readonly endpoint: string;
  /** Bodies of the requests that were accepted, in order. */
  readonly accepted: readonly { readonly Namespace: string; readonly MetricData: readonly Datum[] }[];
  /** What was wrong with requests. */
  readonly problems: readonly string[];
  readonly requests: number;
  /** How the next requests are answered: a status, or never. */
  fail(how: number | "hang", times?: number): void;
  reset(): void;
  stop(): Promise<void>;
}

/** https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html */
const problemsOf = (body: { Namespace?: string; MetricData?: Datum[] }, bytes: number): string[] => {
  const problems: string[] = [];
  const { Namespace, MetricData = [] } = body;
  if (bytes > 1_048_576) problems.push(`${bytes} bytes`);
  if (Namespace !== "cronfence") problems.push(`namespace ${Namespace}`);
  if (MetricData.length < 1 || MetricData.length > 1_000) problems.push(`${MetricData.length} metrics`);
  for (const { MetricName, Dimensions, Timestamp, Unit, Value, Values, Counts } of MetricData) {
    if (typeof Timestamp !== "number") problems.push(`${MetricName}: time ${Timestamp}`);
    if (!["Count", "Seconds", "Milliseconds"].includes(Unit)) problems.push(`${MetricName}: unit ${Unit}`);
    if (Dimensions?.map(({ Name }) => Name).join() !== "service,job") problems.push(`${MetricName}: dimensions`);
    if ((Value === undefined) === (Values === undefined)) problems.push(`${MetricName}: one of Value and Values`);
    for (const value of [...(Values ?? []), ...(Value === undefined ? [] : [Value])]) {
      if (typeof value !== "number") problems.push(`${MetricName}: ${value}`);
    }
    if (Values !== undefined && Values.length > 150) problems.push(`${MetricName}: ${Values.length} values`);
    if (Values?.length !== Counts?.length) problems.push(`${MetricName}: counts`);
  }
  return problems;
};

export const startStubCloudWatch = async (): Promise<StubCloudWatch> => {
  let accepted: { Namespace: string; MetricData: Datum[] }[] = [];
  let problems: string[] = [];
  let requests = 0;
  let failure: { how: number | "hang"; times: number } | undefined;
  const server = createServer(async (request, response) => {
    requests += 1;
    const payload = await read(request);
    if (failure !== undefined && failure.times-- > 0) {
      if (failure.how === "hang") return;
      response.writeHead(failure.how, { "content-type": "application/x-amz-json-1.0" });
      response.end(JSON.stringify({ __type: "InternalServiceFault", message: "stub" }));
      return;
    }
    if (!String(request.headers["x-amz-target"]).endsWith(".PutMetricData")) problems.push("not PutMetricData");
    const body = JSON.parse(payload.toString());
    const found = problemsOf(body, payload.length);
    problems.push(...found);
    if (found.length === 0) accepted.push(body);
    response.writeHead(found.length === 0 ? 200 : 400, { "content-type": "application/x-amz-json-1.0" });
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const endpoint = `http://127.0.0.1:${port}`;
  const client = new CloudWatchClient({ ...localClientConfig(endpoint), maxAttempts: 2 });
  return {
    client,
    endpoint,
    get accepted() {
      return accepted;
    },
    get problems() {
      return problems;
    },
    get requests() {
      return requests;
    },
    fail: (how, times = 1) => {
      failure = { how, times };
    },
    reset: () => {
      accepted = [];
      problems = [];
      requests = 0;
      failure = undefined;
    },
    stop: async () => {
      client.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

const read = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const payload = Buffer.concat(chunks);
  return request.headers["content-encoding"] === "gzip" ? gunzipSync(payload) : payload;
};
