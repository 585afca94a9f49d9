/**
 * A child process that dies with ours, however ours ends: normal exit, a signal, a crash, kill -9. Nothing runs in our
 * process at that moment and no signal handler is installed, so the user's own signal handling is untouched: a shell
 * beside the child waits on a pipe from us, and the kernel closes that pipe when we are gone. Linux and macOS.
 *
 * Doesn't hold on Windows, where there is no such shell: there the child is ended at a normal exit only. Doesn't hold
 * either where somebody kills the waiting shell first.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";

/** A supervised child: its process, and what it wrote to stderr lately. */
export interface Supervised {
  readonly child: ChildProcess;
  /** The last 4,000 characters that the child wrote to stderr. */
  said(): string;
}

/**
 * The shell becomes the child (same pid, no second process to reap). The subshell stays behind and kills it when its
 * pipe ends without a line; a line means that the child is known to be gone, and its pid may be somebody else's by now.
 */
const supervision = `exec 3<&0
( read -r line <&3 || kill -KILL $$ ) >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-`;

/**
 * Starts `file` with `args` under supervision, in a session of its own: Ctrl-C in the terminal reaches our process
 * only, which may still need the child to end well. The child sees none of our environment.
 */
export const spawnSupervised = (file: string, args: readonly string[], platform = process.platform): Supervised => {
  const child =
    platform === "win32"
      ? spawn(file, args, { stdio: ["ignore", "ignore", "pipe"], windowsHide: true })
      : spawn("/bin/sh", ["-c", supervision, "sh", file, ...args], {
          detached: true,
          env: {},
          stdio: ["pipe", "ignore", "pipe"],
        });
  if (platform === "win32") endWithExit(child);
  child.stdin?.on("error", () => {}); // the waiting shell may be gone already
  child.once("exit", () => child.stdin?.end("gone\n"));
  let tail = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    tail = (tail + text).slice(-4_000);
  });
  return { child, said: () => tail };
};

/** Kills the process `pid` when ours ends without having called the returned function. Not on Windows. */
export const superviseExisting = (pid: number): (() => void) => {
  if (process.platform === "win32") return () => {};
  const watcher = spawn("/bin/sh", ["-c", 'read -r line || kill -KILL "$1"', "sh", String(pid)], {
    detached: true,
    env: {},
    stdio: ["pipe", "ignore", "ignore"],
  });
  watcher.stdin.on("error", () => {});
  letGo(watcher);
  return () => watcher.stdin.end("gone\n");
};

/** From here on the child and its pipes don't keep our process alive. */
export const letGo = (child: ChildProcess): void => {
  child.unref();
  for (const pipe of [child.stdin, child.stderr]) (pipe as Socket | null)?.unref();
};

/** Ends the child: SIGTERM, and SIGKILL when it takes longer than `graceMs`. Resolves when it is gone. */
export const end = (child: ChildProcess, graceMs = 1_000): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
    child.ref();
    child.once("exit", () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill("SIGTERM");
  });

const endWithExit = (child: ChildProcess): void => {
  const kill = () => child.kill();
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
};
