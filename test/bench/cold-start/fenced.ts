/** A small fenced run, as a user writes it: logged, measured and recorded. */
import { defineJob } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";

export const handler = lambdaHandler(
  defineJob({
    name: process.env.COLD_JOB as string,
    timeout: "1m",
    metrics: "emf",
    run: (run) =>
      run.commitAtEnd([{ Put: { TableName: process.env.COLD_RESULTS as string, Item: { id: run.id, total: 300 } } }]),
  }),
);
