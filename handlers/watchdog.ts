/**
 * Looks at all jobs every five minutes: what is overdue, fails again and again, hangs or was forgotten in a pause. Its
 * metrics are what the alarms stand on; that it stops itself is an alarm of its own.
 *
 * Where CRONFENCE_FUNCTION_NAME says which function runs a job ("shop-jobs-prod-{job}"), overdue jobs are also started.
 */
import { lambdaHandler, startByInvoking } from "cronfence/lambda";
import { watchdog } from "cronfence/watchdog";
import { job as dailyReport } from "./daily-report.ts";
import { job as expireCarts } from "./expire-carts.ts";
import { job as purgeSessions } from "./purge-sessions.ts";
import { job as syncOrders } from "./sync-orders.ts";

/** Every job with a handler here: one that is missing isn't watched. */
export const jobs = [dailyReport, expireCarts, purgeSessions, syncOrders];

const { AWS_LAMBDA_FUNCTION_NAME, CRONFENCE_FUNCTION_NAME } = process.env;

export const job = watchdog({
  jobs,
  metrics: AWS_LAMBDA_FUNCTION_NAME ? "emf" : "off",
  ...(CRONFENCE_FUNCTION_NAME ? { heal: true, start: startByInvoking() } : {}),
});

export const handler = lambdaHandler(job);
