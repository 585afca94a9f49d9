import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { findNode } from "./node-binary.ts";

const major = process.versions.node.split(".")[0] as string;

describe("a Node.js to run the tests on", () => {
  afterEach(() => vi.unstubAllEnvs());

  it("is the one that runs, where that has the version", () => {
    expect(findNode(major)).toEqual({ node: process.execPath });
  });

  it("is the one that the environment names", () => {
    vi.stubEnv(`CRONFENCE_NODE_${major}`, process.execPath);
    expect(findNode(major)).toEqual({ node: process.execPath });
  });

  it("isn't one of another version, whatever the environment says", () => {
    vi.stubEnv("CRONFENCE_NODE_99", process.execPath);
    expect(findNode("99")).toMatchObject({
      why: `CRONFENCE_NODE_99 is "${process.execPath}", which is Node.js ${major}`,
    });
  });

  it("isn't something that doesn't start", () => {
    const folder = mkdtempSync(path.join(tmpdir(), "cronfence-no-node-"));
    const file = path.join(folder, "node");
    writeFileSync(file, "not a program");
    vi.stubEnv("CRONFENCE_NODE_99", file);
    expect(findNode("99")).toMatchObject({ why: `CRONFENCE_NODE_99 is "${file}", which is no Node.js` });
    rmSync(folder, { recursive: true });
  });
});
