/** Starting a job's function from another one, as the watchdog does. */
import { createServer, type Server } from "node:http";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { defineJob } from "cronfence";
import { lambdaHandler, startByInvoking } from "cronfence/lambda";
import { localClientConfig } from "cronfence/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { freshName, silentLog, useEngine } from "../fixture.ts";

const fixture = useEngine();
const tick = Date.parse("2026-03-01T06:30:00Z");

interface Invocation {
  readonly functionName: string;
  readonly type: string | undefined;
  readonly event: unknown;
}

let server: Server;
let client: LambdaClient;
let status = 202;
const invocations: Invocation[] = [];

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const [, functionName = ""] = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/.exec(request.url ?? "") ?? [];
    invocations.push({
      functionName: decodeURIComponent(functionName),
      type: request.headers["x-amz-invocation-type"] as string | undefined,
      event: JSON.parse(Buffer.concat(chunks).toString()),
    });
    response.writeHead(status, { "content-type": "application/json" }).end(status === 202 ? "" : "{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  client = new LambdaClient({ ...localClientConfig(`http://127.0.0.1:${port}`), maxAttempts: 1 });
});
afterEach(() => {
  vi.unstubAllEnvs();
  invocations.length = 0;
  status = 202;
});
afterAll(async () => {
  client.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe("A job that is started by invoking its function", () => {
  it("gets the tick as its schedule would have sent it, and isn't waited for", async () => {
    const job = freshName();
    await startByInvoking({ client, functionName: "shop-jobs-prod-{job}" })(job, tick);
    expect(invocations).toEqual([
      {
        functionName: `shop-jobs-prod-${job}`,
        type: "Event",
        event: { job, scheduledTime: "2026-03-01T06:30:00.000Z" },
      },
    ]);
    // And its handler takes it for what it is.
    const handler = lambdaHandler(defineJob({ name: job, timeout: "1m", run: () => {} }), {
      store: fixture.store,
      log: silentLog,
    });
    expect(await handler(invocations[0]?.event)).toMatchObject({
      outcome: "succeeded",
      tick: "2026-03-01T06:30:00.000Z",
    });
  });

  it("is of the function that the environment names, or that a function of its name gives", async () => {
    vi.stubEnv("CRONFENCE_FUNCTION_NAME", "from-environment-{job}");
    await startByInvoking({ client })("carts", tick);
    await startByInvoking({ client, functionName: (job) => `${job}-function` })("carts", tick);
    expect(invocations.map(({ functionName }) => functionName)).toEqual(["from-environment-carts", "carts-function"]);
  });

  it("isn't started where nothing says which function runs it, and the error says what to set", async () => {
    await expect(startByInvoking({ client })("carts", tick)).rejects.toMatchObject({
      code: "UNKNOWN_FUNCTION",
      message: expect.stringContaining("CRONFENCE_FUNCTION_NAME"),
    });
    expect(invocations).toEqual([]);
  });

  it("that Lambda doesn't take is an error", async () => {
    status = 404;
    await expect(startByInvoking({ client, functionName: "gone" })("carts", tick)).rejects.toThrow();
  });
});
