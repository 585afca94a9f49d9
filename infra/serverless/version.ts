/**
 * What a build is called: its commit, and where something isn't committed, or there is no git, a hash of the files. The same
 * files give the same version. Packages in node_modules count by the lock file only.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { glob } from "tinyglobby";

/** Such as "1a2b3c4d5e6f", "1a2b3c4d5e6f-0123456789ab" with changes that aren't committed, "0123456789ab" without git. */
export const buildVersion = async (folder: string): Promise<string> => {
  const commit = await git(folder, ["rev-parse", "--verify", "HEAD"]);
  if (commit === undefined) return hashOf(await filesBelow(folder));
  const id = commit.trim().slice(0, length);
  const changed = (await git(folder, ["status", "--porcelain", "--", ":/", ...made])) ?? "";
  return changed === "" ? id : `${id}-${await changesOf(folder)}`;
};

const length = 12;
/** What packaging and local runs make; a project should ignore it, and may not. */
const madeFolders = [".build", ".serverless", ".cronfence"];
const made = madeFolders.map((name) => `:(top,exclude,glob)**/${name}/**`);

const git = async (folder: string, args: readonly string[]): Promise<string | undefined> => {
  try {
    // Takes no locks, so that somebody who works in the folder isn't disturbed.
    const { stdout } = await promisify(execFile)("git", ["--no-optional-locks", "-C", folder, ...args], {
      maxBuffer: 1 << 28,
    });
    return stdout;
  } catch {
    return undefined;
  }
};

/** Everything by which the folder differs from its commit: changes, and files that are new. */
const changesOf = async (folder: string): Promise<string> => {
  const top = ((await git(folder, ["rev-parse", "--show-toplevel"])) ?? folder).trim();
  const changes = (await git(folder, ["diff", "HEAD", "--binary", "--", ":/", ...made])) ?? "";
  const listed = await git(top, ["ls-files", "--others", "--exclude-standard", "-z", "--", ":/", ...made]);
  const untracked = (listed ?? "").split("\0").filter(Boolean);
  const parts = await Promise.all(untracked.map((file) => part(top, file)));
  return hashOf([Buffer.from(changes), ...parts]);
};

const filesBelow = async (folder: string): Promise<Buffer[]> => {
  const ignore = ["node_modules", ".git", ...madeFolders].map((name) => `**/${name}/**`);
  const files = await glob("**", { cwd: folder, dot: true, ignore });
  return await Promise.all(files.sort().map((file) => part(folder, file)));
};

const part = async (folder: string, file: string): Promise<Buffer> => {
  const content = await readFile(join(folder, file)).catch(() => Buffer.alloc(0));
  return Buffer.concat([Buffer.from(`${file}\0${content.length}\0`), content]);
};

const hashOf = (parts: readonly Buffer[]): string => {
  const hash = createHash("sha256");
  for (const each of parts) hash.update(each);
  return hash.digest("hex").slice(0, length);
};
