/**
 * A user's Lambda handler, bundled in an empty project by check-package.ts without the optional peers, and loaded from
 * where nothing is installed.
 */
import { cron, defineJob } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";

export const handler = lambdaHandler(
  defineJob({ name: "nightly", schedule: cron("20 3 * * *"), timeout: "1m", run: () => {} }),
);
