/** A worker as the drill holds it: started, told what to do, stopped, continued and killed by its process id. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { RunReport } from "cronfence";
import { superviseExisting } from "../../src/local/supervisor.ts";
import { isGone, until } from "../testing/processes.ts";
import type { Command, FireCommand, WorkerEvent } from "./worker.ts";

export interface WorkerProcess {
  readonly name: string;
  readonly pid: number;
  /** What the log lines say, oldest first; for when something goes wrong. */
  log(): string;
  /** Delivers a tick; resolves with the report, or when the run has come to the call that it holds back. */
  fire(command: Omit<FireCommand, "do">): Promise<RunReport | Holding>;
  /** The report of the run that was released, or ended though it holds a call back. @throws WorkerError where it throws */
  report(): Promise<RunReport>;
  /** Lets go of that call; a stopped process notices when it is continued. */
  release(): void;
  /** SIGSTOP; resolves when the process is known to be stopped. */
  stop(): Promise<void>;
  continue(): void;
  /** Sends it a signal that it is expected to live through. */
  signal(signal: NodeJS.Signals): void;
  /** Resolves when the process is gone. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Ends it, however it is. */
  end(): Promise<void>;
}

export type Holding = Extract<WorkerEvent, { is: "holding" }>;

export const isHolding = (event: RunReport | Holding): event is Holding => "is" in event;

/** A run that threw instead of reporting, with the code of what it threw. */
export class WorkerError extends Error {
  override readonly name = "WorkerError";
  readonly code: string | undefined;

  constructor({ name, code, message }: Extract<WorkerEvent, { is: "error" }>) {
    super(`${name}: ${message}`);
    this.code = code;
  }
}

export const workerModule = fileURLToPath(new URL("worker.ts", import.meta.url));

/** Where a worker's requests go, and how it is held. */
export interface WorkerOptions {
  readonly endpoint: string;
  readonly table: string;
  readonly env?: Readonly<Record<string, string>>;
  /** A bundle of worker.ts, which starts sooner. @default worker.ts itself */
  readonly bundle?: string;
  /** How long a command may take. @default longer than any step of a drill takes, on a slow machine */
  readonly patienceMs?: number;
}

/**
 * Starts a worker on the local engine at `endpoint`, and resolves when it is ready for commands. It ends with this
 * process, even when it is stopped and this process is killed.
 */
export const startWorker = async (
  name: string,
  { endpoint, table, env = {}, bundle, patienceMs = 20_000 }: WorkerOptions,
): Promise<WorkerProcess> => {
  const program = bundle === undefined ? ["--import", import.meta.resolve("tsx"), workerModule] : [bundle];
  const child = spawn(process.execPath, program, {
    env: {
      ...process.env,
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
      AWS_ENDPOINT_URL_DYNAMODB: endpoint,
      AWS_REGION: "local",
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
      CRONFENCE_TABLE: table,
      CRONFENCE_DRY_RUN: undefined,
      TSX_TSCONFIG_PATH: fileURLToPath(new URL("../../tsconfig.json", import.meta.url)),
      ...env,
    },
    stdio: ["pipe", "pipe", "pipe"],
    // A Ctrl-C in the terminal is for the drill, which then ends its workers.
    detached: true,
  });
  const pid = child.pid as number;
  const dismiss = superviseExisting(pid);
  child.once("exit", dismiss);
  child.stdin.on("error", () => {}); // it may be gone already
  const events = eventsOf(name, child, patienceMs);
  const send = (command: Command) => child.stdin.write(`${JSON.stringify(command)}\n`);
  const worker: WorkerProcess = {
    name,
    pid,
    log: events.log,
    fire: async (command) => {
      send({ do: "fire", ...command });
      const event = await events.next("the end of its run", ({ is }) => is !== "ready");
      return event.is === "holding" ? event : reportIn(event);
    },
    report: async () =>
      reportIn(await events.next("the end of its run", ({ is }) => is === "report" || is === "error")),
    release: () => void send({ do: "release" }),
    stop: async () => {
      child.kill("SIGSTOP");
      await until(`process ${name} stopped`, () => isStopped(pid));
    },
    continue: () => void child.kill("SIGCONT"),
    signal: (signal) => void child.kill(signal),
    kill: async (signal) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill(signal);
      await exited;
      await until(`process ${name} gone`, () => isGone(pid));
    },
    end: () => worker.kill("SIGKILL"),
  };
  await events.next("its start", ({ is }) => is === "ready");
  return worker;
};

const reportIn = (event: WorkerEvent): RunReport => {
  if (event.is === "report") return event.report;
  throw event.is === "error" ? new WorkerError(event) : new Error(`not a report: ${JSON.stringify(event)}`);
};

/** Whether the process is stopped by a signal: its state is T. */
const isStopped = (pid: number): boolean =>
  process.platform === "linux"
    ? readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .startsWith("T")
    : execFileSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).startsWith("T");

/** The events of a worker, each handed to the first who waits for one like it. */
const eventsOf = (name: string, child: ChildProcess, waitMs: number) => {
  const seen: WorkerEvent[] = [];
  const waiting: { wanted: (event: WorkerEvent) => boolean; take: (event: WorkerEvent) => void; fail: () => void }[] =
    [];
  let said = "";
  let ended: string | undefined;
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-20_000);
  });
  createInterface({ input: child.stdout! }).on("line", (line) => {
    const event = readEvent(line);
    if (event === undefined) {
      said = `${said}${line}\n`;
      return;
    }
    const index = waiting.findIndex(({ wanted }) => wanted(event));
    if (index < 0) seen.push(event);
    else waiting.splice(index, 1)[0]?.take(event);
  });
  child.once("close", (code, signal) => {
    ended = signal ?? `status ${code}`;
    for (const { fail } of waiting.splice(0)) fail();
  });
  return {
    log: () => said,
    next: (what: string, wanted: (event: WorkerEvent) => boolean): Promise<WorkerEvent> =>
      new Promise((resolve, reject) => {
        const index = seen.findIndex(wanted);
        if (index >= 0) return resolve(seen.splice(index, 1)[0] as WorkerEvent);
        const broken = (why: string) =>
          reject(new Error(`process ${name} ${why} while it was waited for ${what}; it said last:\n${tail(said)}`));
        if (ended !== undefined) return broken(`ended (${ended})`);
        const timer = setTimeout(() => {
          waiting.splice(waiting.indexOf(entry), 1);
          broken(`took longer than ${waitMs / 1_000} s`);
        }, waitMs);
        const entry = {
          wanted,
          take: (event: WorkerEvent) => {
            clearTimeout(timer);
            resolve(event);
          },
          fail: () => {
            clearTimeout(timer);
            broken(`ended (${ended})`);
          },
        };
        waiting.push(entry);
      }),
  };
};

/** What a job's own code prints is no event. */
const readEvent = (line: string): WorkerEvent | undefined => {
  try {
    const value = JSON.parse(line) as Partial<WorkerEvent> | null;
    return typeof value?.is === "string" ? (value as WorkerEvent) : undefined;
  } catch {
    return undefined;
  }
};

const tail = (text: string): string => text.split("\n").slice(-8).join("\n");
