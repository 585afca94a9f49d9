/** What a build is called. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { buildVersion } from "../../infra/serverless/version.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cronfence-version-"));
  write("serverless.yml", "service: shop-jobs");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (file: string, text: string) => {
  mkdirSync(join(folder, file, ".."), { recursive: true });
  writeFileSync(join(folder, file), text);
};

const git = (...args: readonly string[]): string => {
  const who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "-c", "commit.gpgsign=false"];
  return execFileSync("git", [...who, ...args], {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  }).trim();
};

const commitAll = (): string => {
  git("init", "--quiet");
  git("add", ".");
  git("commit", "--quiet", "--message", "all of it");
  return git("rev-parse", "HEAD").slice(0, 12);
};

it("is the commit, whatever packaging and local runs make beside it", async () => {
  const commit = commitAll();
  write(".build/sweep/index.mjs", "made");
  write(".serverless/sweep.zip", "made");
  write(".cronfence/dynamodb.db", "made");
  expect(await buildVersion(folder)).toBe(commit);
});

it("is the commit and what differs from it, the same for the same difference", async () => {
  const commit = commitAll();
  write("serverless.yml", "service: changed");
  const changed = await buildVersion(folder);
  expect(changed).toMatch(new RegExp(`^${commit}-[0-9a-f]{12}$`));
  write("handlers/new.ts", "export {};");
  const added = await buildVersion(folder);
  expect(added).not.toBe(changed);
  expect(await buildVersion(folder)).toBe(added);
  rmSync(join(folder, "handlers"), { recursive: true });
  expect(await buildVersion(folder)).toBe(changed);
});

it("sees what lies beside a service in its repository", async () => {
  write("jobs/serverless.yml", "service: jobs");
  const commit = commitAll();
  write("shared/rates.ts", "export const rate = 2;");
  expect(await buildVersion(join(folder, "jobs"))).toMatch(new RegExp(`^${commit}-`));
});

it("is what the files hold where there is no git, but for packages and what packaging and local runs make", async () => {
  const before = await buildVersion(folder);
  expect(before).toMatch(/^[0-9a-f]{12}$/);
  write("node_modules/a/index.js", "installed");
  write(".build/sweep/index.mjs", "made");
  write(".cronfence/dynamodb.db", "made");
  expect(await buildVersion(folder)).toBe(before);
  write("handlers/sweep.ts", "export {};");
  expect(await buildVersion(folder)).not.toBe(before);
});
