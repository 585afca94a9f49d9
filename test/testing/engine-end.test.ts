/** However the process ends that started an engine, the engine ends with it, and the process ends as it would without. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { isGone, until } from "./processes.ts";

const started: ChildProcess[] = [];
const engines: number[] = [];
afterEach(() => {
  for (const owner of started.splice(0)) owner.kill("SIGKILL");
  // Only where a test failed is one left.
  for (const pid of engines.splice(0)) if (!isGone(pid)) process.kill(pid, "SIGKILL");
});

const startOwner = async (way: string) => {
  const script = fileURLToPath(new URL("engine-owner.ts", import.meta.url));
  const owner = spawn(process.execPath, ["--import", "tsx", script, way], {
    detached: true, // a process group of its own, as a terminal gives to what it runs
    env: { ...process.env, NODE_NO_WARNINGS: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(owner);
  const ended = once(owner, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  let errors = "";
  owner.stderr!.setEncoding("utf8").on("data", (text) => (errors += text));
  const lines = createInterface({ input: owner.stdout! })[Symbol.asyncIterator]();
  const nextLine = async () => JSON.parse((await lines.next()).value ?? "null");
  const engine = (await nextLine()) as { endpoint: string; pid: number };
  engines.push(engine.pid);
  return { owner, ended, engine, nextLine, errors: () => errors };
};

describe("an engine ends with its process", () => {
  it.each([
    ["has nothing left to do", "return", 0],
    ["calls process.exit", "exit", 7],
    ["throws", "throw", 1],
    ["leaves a rejection unhandled", "reject", 1],
  ])("when that %s", async (_, way, status) => {
    const { ended, engine, errors } = await startOwner(way);
    expect(await ended).toEqual([status, null]);
    await until("engine gone", () => isGone(engine.pid));
    if (status === 1) expect(errors()).toContain("on purpose");
  });

  it.each(["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL"] as const)("when that gets %s, and dies of it", async (signal) => {
    const { owner, ended, engine } = await startOwner("wait");
    expect(isGone(engine.pid)).toBe(false);
    owner.kill(signal);
    expect(await ended).toEqual([null, signal]);
    await until("engine gone", () => isGone(engine.pid));
  });

  it.each(["SIGTERM", "SIGINT"] as const)("only after the process's own handler of %s is done", async (signal) => {
    const { owner, ended, engine, nextLine } = await startOwner("wait with own handler");
    owner.kill(signal);
    expect(await nextLine()).toEqual({ signal, tables: [] });
    expect(await ended).toEqual([3, null]);
    await until("engine gone", () => isGone(engine.pid));
  });

  it("and lives through Ctrl-C in the terminal, which goes to the whole process group", async () => {
    const { owner, ended, engine, nextLine } = await startOwner("wait with own handler");
    process.kill(-owner.pid!, "SIGINT");
    expect(await nextLine()).toEqual({ signal: "SIGINT", tables: [] });
    expect(await ended).toEqual([3, null]);
    await until("engine gone", () => isGone(engine.pid));
  });

  it("and lives on while its process is only stopped", async () => {
    const { owner, engine } = await startOwner("wait");
    owner.kill("SIGSTOP");
    expect((await fetch(engine.endpoint)).status).toBe(200);
    owner.kill("SIGKILL");
    await until("engine gone", () => isGone(engine.pid));
  });
});
