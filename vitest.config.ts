import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const place = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const src = (file: string) => place(`./src/${file}`);

export default defineConfig({
  resolve: {
    alias: [
      { find: /^cronfence$/, replacement: src("index.ts") },
      { find: /^cronfence\/infra$/, replacement: place("./infra/service.ts") },
      { find: /^cronfence\/lambda$/, replacement: src("lambda/index.ts") },
      { find: /^cronfence\/operate$/, replacement: src("operate/index.ts") },
      { find: /^cronfence\/schedule$/, replacement: src("schedule/toolkit.ts") },
      { find: /^cronfence\/serverless$/, replacement: place("./infra/serverless.ts") },
      { find: /^cronfence\/sources$/, replacement: src("work/index.ts") },
      { find: /^cronfence\/testing$/, replacement: src("testing/index.ts") },
      { find: /^cronfence\/watchdog$/, replacement: src("watchdog/index.ts") },
      // `npm run test:runtimes` runs the tests that use middy on both of its versions.
      ...(process.env.CRONFENCE_MIDDY === "7" ? [{ find: /^@middy\/core$/, replacement: "middy7" }] : []),
    ],
  },
  test: {
    include: ["test/**/*.test.ts"],
    env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true", CRONFENCE_LOG_LEVEL: "warn" },
    // vitest leaves one core free, which on a machine of two halves it; much of the time goes into engines and commands anyway.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 60_000,
    hookTimeout: 30_000,
  },
});
