/** Failures that user code doesn't look at make the run fail: with the SDK's own clients, on servers that answer so. */
import { BatchWriteItemCommand, DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { EventBridgeClient, PutEventsCommand } from "@aws-sdk/client-eventbridge";
import { FirehoseClient, PutRecordBatchCommand } from "@aws-sdk/client-firehose";
import { KinesisClient, PutRecordsCommand } from "@aws-sdk/client-kinesis";
import { DeleteObjectsCommand, GetObjectCommand, ListObjectsV2Command, S3Client } from "@aws-sdk/client-s3";
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  SendMessageBatchCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { BatchWriteCommand, DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import middy from "@middy/core";
import {
  defineJob,
  isScheduledRun,
  type ObservedOptions,
  observed,
  type Run,
  type RunReport,
  runJob,
  type SilentFailureError,
} from "cronfence";
import { fencedLease } from "cronfence/lambda";
import { dumpTable, settableClock } from "cronfence/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { freshName, silentLog, useEngine } from "../fixture.ts";
import { gate } from "../gate.ts";
import { invocation, scheduled } from "../lambda/invocation.ts";
import { type AwsStub, type StubAnswer, startAwsStub } from "./aws-stub.ts";

const engine = useEngine("results");
let stub: AwsStub;
let http2: AwsStub;
beforeAll(async () => {
  stub = await startAwsStub();
  http2 = await startAwsStub({ http2: true });
});
afterAll(() => {
  stub.stop();
  http2.stop();
});
afterEach(() => {
  stub.requests.length = 0;
});

const config = () => ({
  endpoint: stub.endpoint,
  region: "eu-central-1",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
  maxAttempts: 1,
});
const s3 = (options: ObservedOptions = {}) => observed(new S3Client({ ...config(), forcePathStyle: true }), options);

const run = (work: (run: Run) => unknown): Promise<RunReport> =>
  runJob(
    defineJob({ name: freshName(), timeout: "1m", run: work }),
    { kind: "manual" },
    { store: engine.store, clock: settableClock(), log: silentLog },
  );
const failuresOf = (report: RunReport) => (report.thrown as SilentFailureError | undefined)?.failures;

/** An S3 answer to DeleteObjects: 200, whatever is in it. */
const deleted = (done: readonly string[], failed: readonly [key: string, code: string][] = []): StubAnswer => ({
  body: `<?xml version="1.0" encoding="UTF-8"?><DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${done
    .map((key) => `<Deleted><Key>${key}</Key></Deleted>`)
    .join("")}${failed
    .map(
      ([key, code]) =>
        `<Error><Key>${key}</Key><VersionId></VersionId><Code>${code}</Code><Message>no</Message></Error>`,
    )
    .join("")}</DeleteResult>`,
});
const deletion = (...keys: string[]) =>
  new DeleteObjectsCommand({ Bucket: "sessions", Delete: { Objects: keys.map((Key) => ({ Key })) } });
const s3Denied: StubAnswer = {
  status: 403,
  body: '<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>',
};

describe("case 31: S3 answers DeleteObjects with 200 and Errors", () => {
  it("fails the run with call, code and count, though the job never looked and its rows were deleted", async () => {
    const client = s3();
    stub.answer(
      deleted(
        ["a"],
        [
          ["b", "AccessDenied"],
          ["c", "AccessDenied"],
        ],
      ),
    );
    const report = await run(async (run) => {
      await client.send(deletion("a", "b", "c"));
      await run.commit([{ Put: { TableName: "results", Item: { id: run.id } } }]);
    });
    expect(report).toMatchObject({ outcome: "failed", commits: 1, error: { code: "SILENT_FAILURE" } });
    expect(report.error?.message).toContain("S3 DeleteObjects: AccessDenied (2 times)");
    expect(failuresOf(report)).toEqual([{ call: "S3 DeleteObjects", code: "AccessDenied", count: 2 }]);
    expect((await dumpTable(engine.client, "results")).map(({ id }) => id)).toContain(report.run);
  });

  it("doesn't fail a run whose deletions all went through", async () => {
    const client = s3();
    stub.answer(deleted(["a", "b"]));
    expect(await run(() => client.send(deletion("a", "b")))).toMatchObject({ outcome: "succeeded" });
  });

  it("isn't held against the run once the same keys went through, in whatever order and company", async () => {
    const client = s3();
    stub.answer(
      deleted(
        ["a"],
        [
          ["b", "InternalError"],
          ["c", "SlowDown"],
        ],
      ),
      deleted(["c", "x"], [["b", "InternalError"]]),
      deleted(["b"]),
    );
    const report = await run(async () => {
      await client.send(deletion("a", "b", "c"));
      await client.send(deletion("x", "c", "b"));
      await client.send(deletion("b"));
    });
    expect(report).toMatchObject({ outcome: "succeeded" });
    expect(stub.requests).toHaveLength(3);
  });

  it("is held against it for what never did, and for the same key of another bucket", async () => {
    const client = s3();
    stub.answer(
      deleted(
        [],
        [
          ["a", "InternalError"],
          ["b", "SlowDown"],
        ],
      ),
      deleted(["b"]),
      deleted(["a"]),
    );
    const report = await run(async () => {
      await client.send(deletion("a", "b"));
      await client.send(deletion("b"));
      await client.send(new DeleteObjectsCommand({ Bucket: "other", Delete: { Objects: [{ Key: "a" }] } }));
    });
    expect(failuresOf(report)).toEqual([{ call: "S3 DeleteObjects", code: "InternalError", count: 1 }]);
  });
});

interface Shape {
  readonly name: string;
  /** Sends a batch of two entries. */
  readonly send: (options?: ObservedOptions) => () => Promise<unknown>;
  readonly failed: StubAnswer;
  readonly good: StubAnswer;
  readonly call: string;
  readonly code: string;
}

const entries = [1, 2].map((at) => ({ Id: String(at), MessageBody: `message ${at}` }));
const handles = [1, 2].map((at) => ({ Id: String(at), ReceiptHandle: `handle ${at}` }));
const sqs = (options?: ObservedOptions) => observed(new SQSClient({ ...config(), md5: false }), options);
const QueueUrl = "http://127.0.0.1/1/queue";
const failedById = {
  body: { Successful: [{ Id: "1" }], Failed: [{ Id: "2", Code: "InternalError", SenderFault: false }] },
};
const goodById = { body: { Successful: [{ Id: "1" }, { Id: "2" }], Failed: [] } };
const writeRequests = [1, 2].map((at) => ({ PutRequest: { Item: { id: { S: String(at) } } } }));
const nativeRequests = [1, 2].map((at) => ({
  PutRequest: { Item: { id: String(at), n: BigInt(at), tags: new Set(["a", "b"]), data: new Uint8Array([at]) } },
}));
/** As DynamoDB gives it back: the same, in an order of its own. */
const unprocessed = {
  PutRequest: { Item: { data: { B: "Ag==" }, tags: { SS: ["b", "a"] }, n: { N: "2" }, id: { S: "2" } } },
};

const shapes: Shape[] = [
  {
    name: "SQS SendMessageBatch Failed",
    send: (options) => {
      const client = sqs(options);
      return () => client.send(new SendMessageBatchCommand({ QueueUrl, Entries: entries }));
    },
    failed: failedById,
    good: goodById,
    call: "SQS SendMessageBatch",
    code: "InternalError",
  },
  {
    name: "SQS DeleteMessageBatch Failed",
    send: (options) => {
      const client = sqs(options);
      return () => client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries: handles }));
    },
    failed: failedById,
    good: goodById,
    call: "SQS DeleteMessageBatch",
    code: "InternalError",
  },
  {
    name: "SQS ChangeMessageVisibilityBatch Failed",
    send: (options) => {
      const client = sqs(options);
      return () => client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries: handles }));
    },
    failed: failedById,
    good: goodById,
    call: "SQS ChangeMessageVisibilityBatch",
    code: "InternalError",
  },
  {
    name: "EventBridge PutEvents FailedEntryCount",
    send: (options) => {
      const client = observed(new EventBridgeClient(config()), options);
      const Entries = [1, 2].map((at) => ({ Source: "test", DetailType: "test", Detail: JSON.stringify({ at }) }));
      return () => client.send(new PutEventsCommand({ Entries }));
    },
    failed: { body: { FailedEntryCount: 1, Entries: [{ EventId: "e1" }, { ErrorCode: "ThrottlingException" }] } },
    good: { body: { FailedEntryCount: 0, Entries: [{ EventId: "e1" }, { EventId: "e2" }] } },
    call: "EventBridge PutEvents",
    code: "ThrottlingException",
  },
  {
    name: "Kinesis PutRecords FailedRecordCount",
    send: (options) => {
      const client = observed(new KinesisClient({ ...config(), endpoint: http2.endpoint }), options);
      const Records = [1, 2].map((at) => ({ PartitionKey: String(at), Data: Buffer.from(`record ${at}`) }));
      return () => client.send(new PutRecordsCommand({ StreamName: "events", Records }));
    },
    failed: {
      body: {
        FailedRecordCount: 1,
        Records: [
          { SequenceNumber: "1", ShardId: "s" },
          { ErrorCode: "ProvisionedThroughputExceededException", ErrorMessage: "too fast" },
        ],
      },
    },
    good: {
      body: { FailedRecordCount: 0, Records: [1, 2].map((at) => ({ SequenceNumber: String(at), ShardId: "s" })) },
    },
    call: "Kinesis PutRecords",
    code: "ProvisionedThroughputExceededException",
  },
  {
    name: "Firehose PutRecordBatch FailedPutCount",
    send: (options) => {
      const client = observed(new FirehoseClient(config()), options);
      const Records = [1, 2].map((at) => ({ Data: Buffer.from(`record ${at}`) }));
      return () => client.send(new PutRecordBatchCommand({ DeliveryStreamName: "events", Records }));
    },
    failed: {
      body: { FailedPutCount: 1, RequestResponses: [{ RecordId: "1" }, { ErrorCode: "ServiceUnavailableException" }] },
    },
    good: { body: { FailedPutCount: 0, RequestResponses: [{ RecordId: "1" }, { RecordId: "2" }] } },
    call: "Firehose PutRecordBatch",
    code: "ServiceUnavailableException",
  },
  {
    name: "DynamoDB BatchWriteItem UnprocessedItems",
    send: (options) => {
      const client = observed(new DynamoDBClient(config()), options);
      return () => client.send(new BatchWriteItemCommand({ RequestItems: { carts: writeRequests } }));
    },
    failed: { body: { UnprocessedItems: { carts: [writeRequests[1]] } } },
    good: { body: { UnprocessedItems: {} } },
    call: "DynamoDB BatchWriteItem",
    code: "UnprocessedItems",
  },
  {
    name: "UnprocessedItems of DynamoDB's document client, observed itself",
    send: (options) => {
      const client = observed(DynamoDBDocumentClient.from(new DynamoDBClient(config())), options);
      return () => client.send(new BatchWriteCommand({ RequestItems: { carts: nativeRequests } }));
    },
    failed: { body: { UnprocessedItems: { carts: [unprocessed] } } },
    good: { body: { UnprocessedItems: {} } },
    call: "DynamoDB BatchWriteItem",
    code: "UnprocessedItems",
  },
  {
    name: "UnprocessedItems of DynamoDB's document client, made of an observed one",
    send: (options) => {
      const client = DynamoDBDocumentClient.from(observed(new DynamoDBClient(config()), options));
      return () => client.send(new BatchWriteCommand({ RequestItems: { carts: nativeRequests } }));
    },
    failed: { body: { UnprocessedItems: { carts: [unprocessed] } } },
    good: { body: { UnprocessedItems: {} } },
    call: "DynamoDB BatchWriteItem",
    code: "UnprocessedItems",
  },
];

const answer = (...answers: StubAnswer[]) => {
  stub.answer(...answers);
  http2.answer(...answers);
};

describe.each(shapes)("A partial failure: $name", ({ send, failed, good, call, code }) => {
  it("fails the run", async () => {
    answer(failed);
    const report = await run(send());
    expect(report).toMatchObject({ outcome: "failed", error: { code: "SILENT_FAILURE" } });
    expect(failuresOf(report)).toEqual([{ call, code, count: 1 }]);
  });

  it("doesn't when it all went through", async () => {
    answer(good);
    expect(await run(send())).toMatchObject({ outcome: "succeeded" });
  });

  it("doesn't when the same entries went through later in the run", async () => {
    answer(failed, good);
    const sending = send();
    const report = await run(async () => {
      await sending();
      await sending();
    });
    expect(failuresOf(report)).toBeUndefined();
    expect(report).toMatchObject({ outcome: "succeeded" });
  });

  it("doesn't when it is declared as expected", async () => {
    answer(failed);
    const seen: unknown[] = [];
    const sending = send({
      expected: (failure) => {
        seen.push(failure);
        return failure.code === code;
      },
    });
    expect(await run(sending)).toMatchObject({ outcome: "succeeded" });
    expect(seen).toEqual([{ call, code }]);
  });

  it("changes nothing outside a run", async () => {
    answer(failed);
    await expect(send()()).resolves.toMatchObject({ $metadata: { httpStatusCode: 200 } });
  });
});

describe("A call that was denied", () => {
  const get = new GetObjectCommand({ Bucket: "sessions", Key: "a" });

  it("fails the run though its code swallowed the error", async () => {
    const client = s3();
    stub.answer(s3Denied);
    const report = await run(async () => {
      for (let time = 0; time < 3; time += 1) await client.send(get).catch(() => {});
    });
    expect(report).toMatchObject({ outcome: "failed", error: { code: "SILENT_FAILURE" } });
    expect(failuresOf(report)).toEqual([{ call: "S3 GetObject", code: "AccessDenied", count: 3 }]);
  });

  it("fails it with the call's own error where that isn't swallowed", async () => {
    const client = s3();
    stub.answer(s3Denied);
    const report = await run(() => client.send(get));
    expect(report).toMatchObject({ outcome: "failed", error: { name: "AccessDenied" } });
  });

  it("is known by its name where the service answers with 400", async () => {
    const client = observed(new DynamoDBClient(config()));
    stub.answer({ status: 400, body: { __type: "com.amazon.coral.service#AccessDeniedException", Message: "no" } });
    const report = await run(() =>
      client.send(new GetItemCommand({ TableName: "carts", Key: { id: { S: "a" } } })).catch(() => {}),
    );
    expect(failuresOf(report)).toEqual([{ call: "DynamoDB GetItem", code: "AccessDeniedException", count: 1 }]);
  });

  it("counts beside those of other calls, each by itself", async () => {
    const client = s3();
    stub.answer(s3Denied, s3Denied, deleted([], [["a", "AccessDenied"]]));
    const report = await run(async () => {
      await client.send(get).catch(() => {});
      await client.send(new ListObjectsV2Command({ Bucket: "sessions" })).catch(() => {});
      await client.send(deletion("a"));
    });
    expect(failuresOf(report)).toEqual([
      { call: "S3 GetObject", code: "AccessDenied", count: 1 },
      { call: "S3 ListObjectsV2", code: "AccessDenied", count: 1 },
      { call: "S3 DeleteObjects", code: "AccessDenied", count: 1 },
    ]);
  });

  it("doesn't fail the run when it is expected, and only that one", async () => {
    const client = s3({ expected: ({ call }) => call === "S3 GetObject" });
    stub.answer(s3Denied);
    expect(await run(() => client.send(get).catch(() => {}))).toMatchObject({ outcome: "succeeded" });
    const report = await run(() => client.send(new ListObjectsV2Command({ Bucket: "sessions" })).catch(() => {}));
    expect(report).toMatchObject({ outcome: "failed" });
  });

  it("isn't what any other error is: that is the code's to look at", async () => {
    const client = s3();
    stub.answer({ status: 404, body: "<Error><Code>NoSuchKey</Code><Message>no</Message></Error>" });
    expect(await run(() => client.send(get).catch(() => {}))).toMatchObject({ outcome: "succeeded" });
  });

  it("is the SDK's own business while it tries again", async () => {
    const client = observed(new S3Client({ ...config(), forcePathStyle: true, maxAttempts: 2 }));
    stub.answer({ status: 503, body: "<Error><Code>SlowDown</Code></Error>" }, { body: "data" });
    expect(await run(() => client.send(get))).toMatchObject({ outcome: "succeeded" });
  });

  it("changes nothing outside a run", async () => {
    stub.answer(s3Denied);
    await expect(s3().send(get)).rejects.toMatchObject({ name: "AccessDenied" });
  });

  it("fails the run at its end, with everything that was committed kept and its last batch not written", async () => {
    const client = s3();
    stub.answer(s3Denied);
    const report = await run(async (run) => {
      await run.commit([{ Put: { TableName: "results", Item: { id: `${run.id}/committed` } } }]);
      await client.send(get).catch(() => {});
      run.commitAtEnd([{ Put: { TableName: "results", Item: { id: `${run.id}/staged` } } }]);
    });
    expect(report).toMatchObject({ outcome: "failed", commits: 1 });
    const ids = (await dumpTable(engine.client, "results")).map(({ id }) => id);
    expect(ids).toContain(`${report.run}/committed`);
    expect(ids).not.toContain(`${report.run}/staged`);
  });
});

describe("Two runs in one process", () => {
  it("don't mix: the one whose call was denied fails, and only that", async () => {
    const client = s3();
    const both = gate();
    let inside = 0;
    const meet = async () => {
      inside += 1;
      if (inside === 2) both.open();
      await both.pass();
    };
    stub.answer(s3Denied);
    const [denied, fine] = await Promise.all([
      run(async () => {
        await meet();
        await client.send(new GetObjectCommand({ Bucket: "sessions", Key: "a" })).catch(() => {});
      }),
      run(meet),
    ]);
    expect(denied).toMatchObject({ outcome: "failed" });
    expect(fine).toMatchObject({ outcome: "succeeded" });
  });

  it("don't mix when one follows the other", async () => {
    const client = s3();
    stub.answer(s3Denied);
    expect(await run(() => client.send(deletion("a")).catch(() => {}))).toMatchObject({ outcome: "failed" });
    expect(await run(() => {})).toMatchObject({ outcome: "succeeded" });
  });
});

describe("Inside fencedLease", () => {
  const wrapped = (work: () => Promise<unknown>) => {
    const name = freshName();
    const clock = settableClock("2026-03-01T11:25:00Z");
    const handler = middy()
      .use(fencedLease({ job: name, store: engine.store, clock, log: silentLog }))
      .handler(work);
    return () => handler(scheduled(name, "2026-03-01T11:25:00Z"), invocation(clock) as never);
  };

  it("a partial failure makes the invocation throw", async () => {
    const client = s3();
    stub.answer(deleted(["a"], [["b", "AccessDenied"]]));
    await expect(wrapped(() => client.send(deletion("a", "b")))()).rejects.toMatchObject({
      code: "SILENT_FAILURE",
      failures: [{ call: "S3 DeleteObjects", code: "AccessDenied", count: 1 }],
    });
  });

  it("so does a call that was denied and swallowed", async () => {
    const client = s3();
    stub.answer(s3Denied);
    await expect(
      wrapped(() => client.send(new GetObjectCommand({ Bucket: "b", Key: "k" })).catch(() => {}))(),
    ).rejects.toMatchObject({ code: "SILENT_FAILURE" });
  });

  it("two invocations at once don't mix", async () => {
    const client = s3();
    stub.answer(s3Denied);
    const both = gate();
    let inside = 0;
    const meet = async () => {
      inside += 1;
      if (inside === 2) both.open();
      await both.pass();
    };
    const results = await Promise.allSettled([
      wrapped(async () => {
        await meet();
        await client.send(new GetObjectCommand({ Bucket: "b", Key: "k" })).catch(() => {});
      })(),
      wrapped(async () => {
        await meet();
        return "done";
      })(),
    ]);
    expect(results).toMatchObject([{ status: "rejected" }, { status: "fulfilled", value: "done" }]);
  });

  it("the handler knows that it is a scheduled run, and what follows the invocation doesn't", async () => {
    const inside: boolean[] = [];
    await wrapped(async () => {
      inside.push(isScheduledRun());
      await new Promise(setImmediate);
      inside.push(isScheduledRun());
    })();
    expect(inside).toEqual([true, true]);
  });
});

describe("isScheduledRun", () => {
  it("is true inside a run, in whatever it calls, and false outside", async () => {
    const seen: boolean[] = [isScheduledRun()];
    await run(async () => {
      seen.push(isScheduledRun());
      await new Promise(setImmediate);
      seen.push(
        await Promise.all([new Promise<boolean>((resolve) => setTimeout(() => resolve(isScheduledRun()), 0))]).then(
          ([is]) => is as boolean,
        ),
      );
    });
    seen.push(isScheduledRun());
    expect(seen).toEqual([false, true, true, false]);
  });

  it("is true where a source reads and an item is processed", async () => {
    const seen: boolean[] = [];
    const job = defineJob({
      name: freshName(),
      timeout: "1m",
      source: {
        name: "one",
        read: async () => {
          seen.push(isScheduledRun());
          return { items: [{ item: 1, cursor: 1 }], done: true };
        },
      },
      process: () => {
        seen.push(isScheduledRun());
        return [];
      },
    });
    await runJob(job, { kind: "manual" }, { store: engine.store, clock: settableClock(), log: silentLog });
    expect(seen).toEqual([true, true]);
  });
});
