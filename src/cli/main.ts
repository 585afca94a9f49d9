#!/usr/bin/env node
/** The `cronfence` command. */
import { runProgram } from "./exit.ts";
import { newProgram } from "./program.ts";

// Node 20 works; the SDK's own advice to leave it would stand before every answer.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";

await runProgram(newProgram());
