/**
 * Where drills take place: one local DynamoDB with the fault proxy in front of it, for the whole process, since a job's own
 * clients keep the endpoint that they once had. Drills take turns on it.
 *
 * While a drill runs, the environment is that of a job which reaches nothing real: the proxy's endpoint, and credentials that
 * nobody accepts. Clients that the job's module made without an endpoint of their own ask for these at their first request, so
 * that they reach the drill's tables, too.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { localClientConfig, startEngine } from "../../local/engine.ts";
import { turns } from "../../turns.ts";
import { type FaultProxy, type ProxiedRequest, startFaultProxy } from "../fault-proxy.ts";
import { type Line, lineTo } from "../line.ts";
import { type Machine, placeHere } from "./machine.ts";
import { type SeenCall, watchCalls } from "./outside-calls.ts";
import { watchDates } from "./own-clock.ts";

export const controlTable = "cronfence-drill";

export interface Ground {
  /** Straight to the engine, for setting up and looking. */
  readonly endpoint: string;
  readonly line: Line;
  readonly client: DynamoDBClient;
  /** The client of cronfence's own requests on a machine, through the proxy. */
  readonly machineClient: DynamoDBClient;
  /** The engine was there before us, and may hold tables that aren't ours. */
  readonly external: boolean;
}

/** Who is told what reaches the outside during a drill. */
export interface Watchman {
  called(call: SeenCall): void;
  /** A request that no machine made, from whatever else runs in this process. */
  strayed(request: ProxiedRequest): void;
}

let made: Promise<{ readonly ground: Ground; readonly proxy: FaultProxy }> | undefined;
const queue = turns();
/** By the ids of their requests; never forgotten, so that a dead machine's late request is known for one. */
const senders = new Map<string, Machine>();

/** Runs `drill` when all drills before it are over. */
export const takeGround = (watchman: Watchman, drill: (ground: Ground) => Promise<void>): Promise<void> =>
  queue.take(async () => {
    made ??= makeGround();
    // Started anew by the next drill where it couldn't be.
    made.catch(() => (made = undefined));
    const { ground, proxy } = await made;
    proxy.when(
      () => true,
      (request) => {
        const sender = senders.get(String(request.headers[machineHeader] ?? request.headers["amz-sdk-invocation-id"]));
        if (sender === undefined) watchman.strayed(request);
        return sender?.faultFor(request) ?? [];
      },
    );
    const restoreEnvironment = useOnly(proxy.endpoint);
    const restoreDates = watchDates();
    const stopWatching = watchCalls(new URL(proxy.endpoint).host, {
      called: watchman.called,
      asked: (invocation, machine) => senders.set(invocation, machine),
    });
    try {
      await drill(ground);
    } finally {
      stopWatching();
      restoreDates();
      restoreEnvironment();
      proxy.reset();
    }
  });

const makeGround = async () => {
  const engine = await startEngine();
  const proxy = await startFaultProxy(engine.endpoint, { unref: true });
  const machineClient = new DynamoDBClient({ ...localClientConfig(proxy.endpoint), maxAttempts: 1 });
  tagRequests(machineClient);
  const ground: Ground = {
    endpoint: engine.endpoint,
    line: lineTo(engine.endpoint),
    client: new DynamoDBClient({ ...localClientConfig(engine.endpoint), maxAttempts: 1 }),
    machineClient,
    external: engine.kind === "external",
  };
  return { ground, proxy };
};

/** Cronfence's own requests say by this header which machine they are from. */
const machineHeader = "x-cronfence-machine";

const tagRequests = (client: DynamoDBClient): void => {
  client.middlewareStack.add(
    (next) => (args) => {
      const machine = placeHere()?.machine;
      if (machine !== undefined) {
        senders.set(machine.id, machine);
        (args.request as { headers: Record<string, string> }).headers[machineHeader] = machine.id;
      }
      return next(args);
    },
    { step: "build", name: "cronfenceDrillMachine" },
  );
};

/** Whether a request is cronfence's own, and not from a client of the job's. */
export const isOwnRequest = ({ headers }: ProxiedRequest): boolean => headers[machineHeader] !== undefined;

/** Sets the environment of a job that reaches nothing but `endpoint`; the returned function puts it back. */
const useOnly = (endpoint: string): (() => void) => {
  const settings: Record<string, string | undefined> = {
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_REGION: "local",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    AWS_PROFILE: undefined,
    AWS_SESSION_TOKEN: undefined,
    AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: undefined,
    CRONFENCE_TABLE: controlTable,
  };
  const before = Object.fromEntries(Object.keys(settings).map((name) => [name, process.env[name]]));
  setAll(settings);
  return () => setAll(before);
};

const setAll = (settings: Readonly<Record<string, string | undefined>>): void => {
  for (const [name, value] of Object.entries(settings)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
};
