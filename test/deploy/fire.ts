/** EventBridge Scheduler's part, which the local AWS leaves out: delivering a schedule's event to its target. */
import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import {
  GetScheduleCommand,
  type GetScheduleCommandOutput,
  paginateListSchedules,
  SchedulerClient,
} from "@aws-sdk/client-scheduler";
import type { LocalAws } from "./local-aws.ts";

/** All schedules with their targets, by name. */
export const schedulesIn = async (aws: LocalAws): Promise<Record<string, GetScheduleCommandOutput>> => {
  const client = aws.client(SchedulerClient);
  const schedules: Record<string, GetScheduleCommandOutput> = {};
  for await (const { Schedules = [] } of paginateListSchedules({ client }, {})) {
    for (const { Name = "", GroupName } of Schedules) {
      schedules[Name] = await client.send(new GetScheduleCommand({ Name, GroupName }));
    }
  }
  return schedules;
};

/**
 * Delivers every schedule's event once for the tick at `at`, with its context attributes filled in.
 * https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
 * @returns what each schedule's function answered, by the schedule's name
 */
export const fireSchedules = async (aws: LocalAws, at: string): Promise<Record<string, unknown>> => {
  const answers: Record<string, unknown> = {};
  for (const [name, { Arn = "", Target }] of Object.entries(await schedulesIn(aws))) {
    const attributes: Readonly<Record<string, string>> = {
      "scheduled-time": at,
      "attempt-number": "1",
      "execution-id": "d32c5kddcf5bb8c3",
      "schedule-arn": Arn,
    };
    const Payload = (Target?.Input ?? "").replace(
      /<aws\.scheduler\.([a-z-]+)>/g,
      (_, name: string) => attributes[name] ?? "",
    );
    const { Payload: answer } = await aws
      .client(LambdaClient)
      .send(new InvokeCommand({ FunctionName: Target?.Arn ?? "", Payload }));
    answers[name] = JSON.parse(answer?.transformToString() ?? "null");
  }
  return answers;
};
