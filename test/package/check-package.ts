/**
 * `npm run package`: packs the package as `npm publish` would, and uses it as its users do, without the network.
 *
 * The packed files are unpacked into an empty project in a temporary folder. Beside them lie only the dependencies that
 * package.json declares (links into our node_modules), so that an undeclared one isn't found.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { dependencyProblems, importsOf } from "./dependencies.ts";
import { fileProblems, mapProblems } from "./file-list.ts";
import type { Manifest } from "./manifest.ts";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../..");
const started = promisify(execFile);

/** What is said of a check that holds; a check that doesn't throws. */
const check = async (what: string, holds: () => Promise<string>): Promise<void> => {
  try {
    console.log(`ok      ${what}: ${await holds()}`);
  } catch (error) {
    process.exitCode = 1;
    const { message, stdout, stderr } = error as Error & { stdout?: string; stderr?: string };
    console.log(`FAILED  ${what}: ${[message, stdout, stderr].filter(Boolean).join("\n").trim()}`);
  }
};

const demand = (problems: readonly string[], otherwise: string): string => {
  if (problems.length > 0) throw new Error(`\n  ${problems.join("\n  ")}`);
  return otherwise;
};

const run = async (cwd: string, command: string, args: readonly string[], env: Record<string, string> = {}) => {
  const { stdout } = await started(command, args, {
    cwd,
    env: { ...process.env, NODE_OPTIONS: "", AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true", ...env },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout.trim();
};

/** All files below a folder, as paths relative to it. */
const filesBelow = async (folder: string): Promise<string[]> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
};

/** Builds, packs and unpacks into a project's node_modules; the folder of the unpacked package. */
const installInto = async (project: string): Promise<string> => {
  await run(root, "npm", ["run", "build", "--silent"]);
  await run(root, "npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", project]);
  const [tarball = "no tarball"] = (await readdir(project)).filter((name) => name.endsWith(".tgz"));
  const installed = join(project, "node_modules/cronfence");
  await mkdir(installed, { recursive: true });
  await run(project, "tar", ["-xzf", join(project, tarball), "-C", installed, "--strip-components", "1"]);
  return installed;
};

/** Links packages of ours into a project; one that isn't there (an optional one of another platform) is left out. */
const linkPackages = async (project: string, names: readonly string[]): Promise<void> => {
  for (const name of names) {
    const link = join(project, "node_modules", name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(root, "node_modules", name), link);
  }
};

const project = await mkdtemp(join(tmpdir(), "cronfence-package-"));
try {
  const installed = await installInto(project);
  const manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8")) as Manifest;
  await linkPackages(project, Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }));
  await writeFile(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const subpaths = Object.keys(manifest.exports);
  const modules = subpaths.filter((path) => path !== "./package.json").map((path) => join("cronfence", path));
  const files = await filesBelow(installed);

  await check("files", async () =>
    demand(fileProblems(files, manifest), `${files.length} files, none but what users need`),
  );

  await check("source maps", async () => {
    const maps = files.filter((file) => file.endsWith(".map"));
    const problems = await Promise.all(
      maps.map(async (file) => mapProblems(file, await readFile(join(installed, file), "utf8"))),
    );
    const texts = await Promise.all(files.map((file) => readFile(join(installed, file), "utf8")));
    const leaks = files
      .filter((_, i) => texts[i]?.includes(root))
      .map((file) => `${file} names the folder it was built in`);
    return demand([...problems.flat(), ...leaks], `${maps.length}, all relative and with their sources`);
  });

  await check("dependencies", async () => {
    const scripts = files.filter((file) => file.endsWith(".js")).map((file) => join(installed, file));
    const declarations = files.filter((file) => file.endsWith(".d.ts")).map((file) => join(installed, file));
    const imports = await importsOf(scripts, declarations);
    return demand(
      dependencyProblems(manifest, imports),
      `${Object.keys(manifest.dependencies).length}, each imported; none is missing`,
    );
  });

  await check("imports", async () => {
    const script = modules.map((name) => `console.log(Object.keys(await import("${name}")).length)`).join("\n");
    await writeFile(join(project, "imports.mjs"), script);
    const counts = (await run(project, process.execPath, ["imports.mjs"])).split("\n").map(Number);
    const empty = modules.filter((_, i) => !counts[i]).map((name) => `${name} exports nothing`);
    return demand(empty, modules.map((name, i) => `${name} (${counts[i]})`).join(", "));
  });

  await check("found from CommonJS", async () => {
    const names = subpaths.map((path) => join("cronfence", path));
    const script = names.map((name) => `require.resolve("${name}")`).join(";");
    await run(project, process.execPath, ["-e", script]);
    return names.join(", ");
  });

  await check("command", async () => {
    const bin = join(installed, manifest.bin.cronfence);
    if (!(await readFile(bin, "utf8")).startsWith("#!/usr/bin/env node\n")) throw new Error("no #! line");
    const help = await run(project, process.execPath, [bin, "--help"]);
    if (!/^Usage: cronfence/.test(help)) throw new Error(`unexpected help:\n${help}`);
    return "cronfence --help";
  });

  await check("a job on the local engine", async () => {
    await writeFile(join(project, "smoke.mjs"), await readFile(join(here, "smoke.mjs"), "utf8"));
    const said = await run(project, process.execPath, ["smoke.mjs"], { CRONFENCE_LOG_LEVEL: "silent" });
    if (said !== "succeeded, duplicate; 2026-01-01T00:00:00.000Z") throw new Error(`it said: ${said}`);
    return said;
  });

  await check("a bundle for Lambda", async () => {
    await writeFile(join(project, "handler.mjs"), await readFile(join(here, "handler.mjs"), "utf8"));
    // As the bundlers of deployment tools do it: everything in, and what can't be found is an error.
    const { outputFiles } = await build({
      absWorkingDir: project,
      entryPoints: ["handler.mjs"],
      bundle: true,
      platform: "node",
      format: "cjs",
      write: false,
      logLevel: "silent",
    });
    const elsewhere = await mkdtemp(join(tmpdir(), "cronfence-bundle-"));
    await writeFile(join(elsewhere, "index.cjs"), outputFiles[0]?.contents ?? "");
    const kind = await run(elsewhere, process.execPath, ["-p", "typeof require('./index.cjs').handler"]);
    await rm(elsewhere, { recursive: true });
    if (kind !== "function") throw new Error(`its handler is ${kind}`);
    return `${Math.round((outputFiles[0]?.contents.byteLength ?? 0) / 1024)} KiB unminified, without the optional peers`;
  });

  await check("a new service", async () => {
    const service = await mkdtemp(join(project, "service-"));
    const bin = join(installed, manifest.bin.cronfence);
    await run(service, process.execPath, [bin, "init", "--name", "shop"]);
    // Its packages are found in the project's folder above it, and the tools in ours.
    await linkPackages(service, ["@types/node", "vitest"]);
    await run(service, process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "--noEmit"]);
    await run(service, process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), "run"]);
    return "type-checks, and its drills hold";
  });

  // From here on the project also has what only users of these features, and of TypeScript, install.
  await linkPackages(project, ["@middy/core", "@types/node"]);
  for (const [module, moduleResolution] of [
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ]) {
    await check(`types with ${moduleResolution}`, async () => {
      await writeFile(join(project, "consumer.ts"), await readFile(join(here, "consumer.ts"), "utf8"));
      await writeFile(
        join(project, "all.ts"),
        modules.map((name, i) => `export * as m${i} from "${name}";`).join("\n"),
      );
      const compilerOptions = { module, moduleResolution, target: "es2022", lib: ["es2022"], types: ["node"] };
      // Our declarations are checked, too: whatever they import has to be there.
      const strictest = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, noEmit: true };
      await writeFile(
        join(project, "tsconfig.json"),
        JSON.stringify({ compilerOptions: { ...compilerOptions, ...strictest }, files: ["consumer.ts", "all.ts"] }),
      );
      await run(project, process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", project]);
      return modules.join(", ");
    });
  }
} finally {
  await rm(project, { recursive: true, force: true });
}
if (process.exitCode) console.log("\nThe package isn't what it should be.");
