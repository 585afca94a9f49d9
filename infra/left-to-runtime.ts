/**
 * What a bundle leaves to Lambda's Node.js runtime, which brings the SDK: parts that are imported only when used, and that a
 * run on Lambda doesn't use. Bundled, they would also cut what it does use into many small files, each of which is opened at
 * every start. https://docs.aws.amazon.com/lambda/latest/dg/lambda-nodejs.html
 *
 * - the SDK's credential providers other than that for a function's own credentials, which are in its environment;
 * - what the SDK uses to name a browser;
 * - the Lambda client, by which cronfence starts another run; and the CloudWatch client, unless the job's metrics go there.
 *
 * What a handler itself imports is always bundled.
 */
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "esbuild";

/** @param cloudWatch whether the CloudWatch client is left out, too */
export const leftToRuntime = (cloudWatch: boolean): Plugin => ({
  name: "left-to-runtime",
  setup: ({ onResolve }) => {
    onResolve({ filter: /^(@aws-sdk\/|@smithy\/|bowser$)/ }, ({ path, kind, importer }) => {
      if (kind !== "dynamic-import") return undefined;
      const left = importer.startsWith(ownSource)
        ? path === "@aws-sdk/client-lambda" || (cloudWatch && path === "@aws-sdk/client-cloudwatch")
        : /^bowser$|\/credential-provider-[a-z-]+$/.test(path);
      return left ? { external: true } : undefined;
    });
  },
});

/** The library's own modules: the sources, or what they are compiled to. */
export const ownSource = fileURLToPath(new URL("../src", import.meta.url)) + sep;
