/** Jobs with the faults that drills are there for: each is caught, by a message that names the fault. */
import { createServer, type Server } from "node:http";
import { BatchWriteItemCommand, DynamoDBClient, GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { cron, defineJob, type Job, type Write } from "cronfence";
import { fromAsyncIterable, queryAfter } from "cronfence/sources";
import { type DrillName, type DrillOptions, drills } from "cronfence/testing";
import { DateTime } from "luxon";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

/** A client of the job's own, made when its module is loaded. */
const client = new DynamoDBClient({});

const tables = [{ name: "results", key: { hash: "id" } }] as const;
const base = { name: "broken", schedule: cron("*/10 * * * *"), timeout: "5m" } as const;
const put = (id: string, more: object = {}): Write => ({ Put: { TableName: "results", Item: { id, ...more } } });
const add = (id: string): Write => ({
  Update: {
    TableName: "results",
    Key: { id },
    UpdateExpression: "ADD times :one",
    ExpressionAttributeValues: { ":one": 1 },
  },
});
/** Numbers from 1 to 4, one after the other. */
const numbers = fromAsyncIterable<number, number>({
  name: "numbers",
  items: (after) => [1, 2, 3, 4].filter((number) => number > (after ?? 0)),
  cursor: (number) => number,
});

/** What a drill says of a job; "passed" where it finds nothing. */
const outcomeOf = async (drill: DrillName, job: Job, options: DrillOptions = {}): Promise<string> => {
  const [only] = drills(job, { tables, ticks: 2, only: [drill], ...options });
  if (only === undefined) return "no such drill of this job";
  try {
    await only.run();
    return "passed";
  } catch (error) {
    return (error as Error).message;
  }
};

describe("A job that writes outside its commits", () => {
  const command = () => new PutItemCommand({ TableName: "results", Item: { id: { S: "bare" } } });
  const jobs = {
    run: defineJob({
      ...base,
      run: async (run) => {
        await client.send(command());
        await run.commit([put(`run of ${run.tick?.id}`)]);
      },
    }),
    tick: defineJob({
      ...base,
      tick: async (tick) => {
        await client.send(command());
        return [put(tick.id)];
      },
    }),
    source: defineJob({
      ...base,
      source: numbers,
      process: async (number) => {
        await client.send(
          new BatchWriteItemCommand({ RequestItems: { results: [{ PutRequest: { Item: { id: { S: "bare" } } } }] } }),
        );
        return [put(String(number))];
      },
    }),
  };
  it.each([
    ["run", "PutItem"],
    ["tick", "PutItem"],
    ["source", "BatchWriteItem"],
  ] as const)("is told so, with the table and the item: a job with a %s", async (shape, operation) => {
    const said = await outcomeOf("undisturbed", jobs[shape]);
    expect(said).toContain('job "broken", drill "undisturbed": with nothing going wrong');
    expect(said).toContain(`it writes outside its commits: ${operation} on table "results" (id="bare")`);
    expect(said).toContain("no fence stands behind such a write");
  });

  it("isn't blamed for a table that it may write so", async () => {
    const diagnostics = { name: "diagnostics", key: { hash: "id" } };
    const job = defineJob({
      ...base,
      tick: async (tick) => {
        await client.send(new PutItemCommand({ TableName: "diagnostics", Item: { id: { S: tick.id } } }));
        return [put(tick.id)];
      },
    });
    const both = { tables: [...tables, diagnostics] };
    expect(await outcomeOf("undisturbed", job, both)).toContain('PutItem on table "diagnostics"');
    expect(await outcomeOf("undisturbed", job, { ...both, unfenced: ["diagnostics"] })).toBe("passed");
  });
});

describe("A job with a clock of its own", () => {
  it.each([
    [
      "Date.now() decides what is due",
      defineJob({
        ...base,
        source: numbers,
        process: (number) =>
          Date.now() > Date.parse("2026-01-12") + number * 13 * 3_600_000 ? [put(`${number}`)] : [],
      }),
      /results id="\d" is (missing|there)/,
    ],
    [
      "new Date() is written",
      defineJob({ ...base, tick: (tick) => [put(tick.id, { at: new Date().toISOString() })] }),
      /results id="2026-01-12T12:00:00.000Z", at differs/,
    ],
    [
      "a library is asked",
      defineJob({ ...base, tick: (tick) => [put(tick.id, { day: DateTime.utc().toISODate() })] }),
      /results id="2026-01-12T12:00:00.000Z", day differs/,
    ],
    [
      "new Date() names the row",
      defineJob({ ...base, run: (run) => run.commitAtEnd([put(new Date().toISOString().slice(0, 10))]) }),
      /results id="2026-01-12" is missing/,
    ],
  ])("is told so, and where it reads it: %s", async (_, job, which) => {
    const said = await outcomeOf("own clock", job);
    expect(said).toMatch(/the machine's own clock was 25 hours (ahead|behind)/);
    expect(said).toContain("its result depends on the machine's own clock");
    expect(said).toMatch(which);
    expect(said).toMatch(/reads the machine's clock \(test\/testing\/drills\/broken-jobs\.test\.ts:\d+\)/);
  });

  it("is told where it reads days in the zone of the machine, whatever that is here", async () => {
    const { TZ } = process.env;
    const day = (at: Date) => `${at.getFullYear()}-${at.getMonth()}-${at.getDate()}`;
    const job = defineJob({ ...base, tick: (tick) => [put(tick.id, { day: day(tick.at) })] });
    const said = await outcomeOf("own clock", job);
    expect(said).toMatch(/the machine's time zone was Pacific/);
    expect(said).toContain("its result depends on the machine's time zone");
    expect(said).toContain("getDate");
    expect(process.env.TZ).toBe(TZ);
  });

  it("isn't blamed where nothing depends on it, nor for the clock of what it uses", async () => {
    const job = defineJob({
      ...base,
      tick: async (tick, run) => {
        run.log.debug({ at: Date.now() }, "a line");
        return [put(tick.id, { day: new Date(tick.at).toISOString() })];
      },
    });
    expect(await outcomeOf("own clock", job)).toBe("passed");
  });

  it("sees the time of its machine, and the test sees the real one", async () => {
    const seen: number[] = [];
    const job = defineJob({
      ...base,
      tick: (tick) => {
        seen.push(Date.now() - tick.at.getTime());
        return [put(tick.id)];
      },
    });
    const [before, real] = [Date.now(), Date];
    await outcomeOf("missed window", job);
    expect(Date).toBe(real);
    expect(Date.now() - before).toBeLessThan(3_600_000);
    expect(Math.max(...seen)).toBeLessThan(3_600_000);
  });
});

describe("A job with an effect that isn't idempotent", () => {
  let mails: string[] = [];
  let server: Server;
  let url: string;
  beforeAll(async () => {
    server = createServer((request, response) => {
      mails.push(String(request.url).slice(1));
      request.resume();
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    mails = [];
  });
  const seed = () => {
    mails = [];
  };
  const sending = (send: (number: number) => unknown) =>
    defineJob({
      ...base,
      source: numbers,
      process: async (number) => {
        await send(number);
        return [put(String(number))];
      },
    });

  it("is told which one was done twice, where its effects are listed", async () => {
    const job = sending((number) => mails.push(`mail ${number}`));
    const said = await outcomeOf("crash at every request, not applied", job, { seed, effects: () => mails });
    expect(said).toMatch(
      /the process died at request \d of \d \(TransactWriteItems\) of a run, before DynamoDB got it/,
    );
    expect(said).toContain('effect "mail 1" was done 2 times, and not 1');
    expect(said).toContain("an effect that isn't idempotent is repeated when its run is; make it inside run.once");
  });

  it("is told which call was repeated, where nothing is listed", async () => {
    const job = sending((number) => fetch(`${url}/mail-${number}`, { method: "POST", body: "hello" }));
    const said = await outcomeOf("crash at every request, not applied", job, { seed });
    expect(said).toContain(
      `POST ${url}/mail-1 was called 2 times outside run.once, and 1 times in an undisturbed trial`,
    );
    expect(said).toContain("an effect that isn't idempotent is repeated");
    expect(await outcomeOf("dry run", job, { seed })).toContain(`and yet it called POST ${url}/mail-1`);
  });

  it.each<[string, RequestInit]>([
    ["its method promises no harm", { method: "PUT" }],
    ["it brings an idempotency key", { method: "POST", headers: { "Idempotency-Key": "mail" } }],
  ])("isn't blamed for a call that is repeated where %s", async (_, init) => {
    const job = sending((number) => fetch(`${url}/mail-${number}`, init));
    expect(await outcomeOf("crash at every request, not applied", job, { seed })).toBe("passed");
    expect(new Set(mails).size).toBe(4);
  });

  it("isn't blamed for what the test says is harmless", async () => {
    const job = sending((number) => fetch(`${url}/search-${number}`, { method: "POST" }));
    const options: DrillOptions = { seed, repeatable: (call) => call.url.includes("/search-") };
    expect(await outcomeOf("crash at every request, not applied", job, options)).toBe("passed");
  });

  it.each([
    ["a person must find out how it ended", "block"],
    ["it is called again where that is unknown", "retry"],
  ] as const)("passes once each effect is made inside run.once, where %s", async (_, onUnknown) => {
    const job = defineJob({
      ...base,
      onUnknown,
      source: numbers,
      process: async (number, run) => {
        if (number > 1) return [];
        await run.once(`mail ${number}`, async () => void (await fetch(`${url}/${number}`, { method: "POST" })));
        return [put(String(number))];
      },
    });
    const options = { seed, ...(onUnknown === "block" ? { effects: () => mails } : {}) };
    expect(await outcomeOf("crash at every request, not applied", job, options)).toBe("passed");
    expect(await outcomeOf("crash at every request, applied", job, options)).toBe("passed");
    expect(mails).toEqual(["1"]);
  });
});

describe("A job that moves its watermark first", () => {
  const job = defineJob<number>({
    ...base,
    run: async (run) => {
      const from = run.watermark ?? 0;
      if (from >= 4) return;
      await run.commit([], { watermark: 4, items: 0 });
      await run.commit([from + 1, from + 2].map((number) => add(`item ${number}`)));
      await run.commit([from + 3, from + 4].map((number) => add(`item ${number}`)));
    },
  });

  it("is told what was lost, and that it was the watermark", async () => {
    const said = await outcomeOf("crash at every request, not applied", job);
    expect(said).toContain("of a run, before DynamoDB got it");
    expect(said).toContain('missing: results id="item 1"; results id="item 2"; results id="item 3"; and 1 more');
    expect(said).toContain("watermark first: the run that died had moved the watermark to 4 before the work");
  });

  it("passes once the watermark goes with the work", async () => {
    const right = defineJob<number>({
      ...base,
      run: async (run) => {
        for (let done = run.watermark ?? 0; done < 4; done += 2) {
          await run.commit([add(`item ${done + 1}`), add(`item ${done + 2}`)], { watermark: done + 2 });
        }
      },
    });
    expect(await outcomeOf("crash at every request, not applied", right)).toBe("passed");
    expect(await outcomeOf("crash at every request, applied", right)).toBe("passed");
    expect(await outcomeOf("paused holder", right)).toBe("passed");
  });
});

describe("A job that begins anew", () => {
  const job = defineJob({
    ...base,
    run: async (run) => {
      if (run.watermark !== undefined) return;
      await run.commit([put("one")]);
      await run.commit([put("two")], { watermark: "done" });
    },
  });

  it("is told what it wrote twice, although the rows are the same in the end", async () => {
    const said = await outcomeOf("crash at every request, applied", job);
    expect(said).toContain('written twice: results id="one" (2 times)');
    expect(said).toContain("a run that starts again must go on after what was committed");
    expect(said).not.toContain("different");
  });
});

describe("Other faults", () => {
  it("finds a run job that does only the last of several ticks", async () => {
    const job = defineJob({
      ...base,
      run: async (run) => {
        await client.send(new GetItemCommand({ TableName: "results", Key: { id: { S: "settings" } } }));
        run.commitAtEnd([put(String(run.tick?.id))]);
      },
    });
    const said = await outcomeOf("missed window", job);
    // The SDK and cronfence may look at the clock; the job didn't.
    expect(said).not.toContain("clock");
    expect(said).toContain("the tick of 2026-01-12T12:00:00.000Z wasn't delivered, and a later one was");
    expect(said).toContain('missing: results id="2026-01-12T12:00:00.000Z"');
  });

  it("finds a job that takes 24 hours for a day, where a day has 23", async () => {
    const zone = "Europe/Berlin";
    const dayOf = (at: number) => new Intl.DateTimeFormat("en-CA", { timeZone: zone }).format(at);
    const reporting = (dayFor: (at: number) => string) =>
      defineJob({
        ...base,
        schedule: cron("30 0 * * *", { zone }),
        tick: (tick) => [put(dayFor(tick.at.getTime()))],
      });
    const wrong = reporting((at) => dayOf(at - 86_400_000));
    const said = await outcomeOf("spring clock change", wrong);
    expect(said).toContain("while the clocks of Europe/Berlin are set forward");
    expect(said).toContain(
      'results id="2026-03-28" was written by 2 ticks, and on other days each tick writes items of its own',
    );
    expect(await outcomeOf("autumn clock change", wrong)).toBe("passed");
    const right = reporting((at) => dayOf(at - 12 * 3_600_000));
    expect(await outcomeOf("spring clock change", right)).toBe("passed");
    expect(await outcomeOf("autumn clock change", right)).toBe("passed");
  });

  it("finds an effect that is done before the guard has passed", async () => {
    const files: string[] = [];
    const job = defineJob({
      ...base,
      destructive: { max: 100 },
      tick: (tick) => {
        files.push(tick.id);
        return [put(tick.id)];
      },
    });
    const options = { seed: () => void files.splice(0), effects: () => files };
    expect(await outcomeOf("guard", job, options)).toContain(
      "the guard had tripped, and yet 1 effects were done outside: make them inside run.once",
    );
    expect(await outcomeOf("dry run", job, options)).toContain("a dry run that was asked for, and yet 1 effects");
  });

  it("finds a job that fails although nothing goes wrong, and says why", async () => {
    const job = defineJob({ ...base, tick: () => [{ Put: { TableName: "nowhere", Item: { id: "a" } } }] });
    const said = await outcomeOf("paused holder", job);
    expect(said).toContain("the tick of 2026-01-12T12:00:00.000Z, with nothing going wrong");
    expect(said).toMatch(/its run ended as failed: .*a table doesn't exist/);
  });

  it("finds a job that can't go on after a crash", async () => {
    const onlyNew = { ConditionExpression: "attribute_not_exists(id)" };
    const job = defineJob({
      ...base,
      run: async (run) => {
        if (run.watermark !== undefined) return;
        for (const id of ["one", "two"])
          await run.commit([{ Put: { TableName: "results", Item: { id }, ...onlyNew } }]);
        await run.commit([], { watermark: "done" });
      },
    });
    const said = await outcomeOf("crash at every request, applied", job);
    expect(said).toContain("the last run failed, and no other made it good: failed: WriteRejectedError");
    expect(said).toContain("the tick of 2026-01-12T12:00:00.000Z is still owed at the end");
    expect(said).toContain('missing: results id="two"');
  });

  it("finds what a dry run writes all the same", async () => {
    const job = defineJob({
      ...base,
      tick: async (tick) => {
        await client.send(new PutItemCommand({ TableName: "results", Item: { id: { S: "bare" } } }));
        return [put(tick.id)];
      },
    });
    const said = await outcomeOf("dry run", job, { unfenced: ["results"] });
    expect(said).toContain('a dry run that was asked for, and yet results id="bare" was written (1 in all)');
  });

  it("finds a message that is sent again to an AWS service", async () => {
    const queue = createServer((request, response) => {
      request.resume();
      response.writeHead(200, { "content-type": "application/x-amz-json-1.0" });
      response.end(JSON.stringify({ MessageId: "1" }));
    });
    await new Promise<void>((resolve) => queue.listen(0, "127.0.0.1", resolve));
    const { port } = queue.address() as { port: number };
    const credentials = { accessKeyId: "local", secretAccessKey: "local" };
    const sqs = new SQSClient({ endpoint: `http://127.0.0.1:${port}`, region: "local", credentials, md5: false });
    const job = defineJob({
      ...base,
      tick: async (tick) => {
        await sqs.send(new SendMessageCommand({ QueueUrl: `http://127.0.0.1:${port}/1/mails`, MessageBody: tick.id }));
        return [put(tick.id)];
      },
    });
    const said = await outcomeOf("crash at every request, not applied", job);
    queue.closeAllConnections();
    queue.close();
    expect(said).toMatch(
      /SendMessage \(POST http:\/\/127\.0\.0\.1:\d+\/\) was called 3 times outside run\.once, and 2 times/,
    );
  });

  it("finds a job whose code doesn't come back after the loss of its lease", async () => {
    const late: string[] = [];
    const job = defineJob({
      ...base,
      run: async (run) => {
        if (run.watermark !== undefined) return;
        try {
          await run.commit([put("one")], { watermark: 1 });
        } catch {
          late.push("told the customer all the same");
        }
      },
    });
    const said = await outcomeOf("paused holder", job, { seed: () => void late.splice(0), effects: () => late });
    expect(said).toContain("the run was paused at request");
    expect(said).toContain('effect "told the customer all the same" was done 1 times, and not 0');
  });
});

describe("What is compared", () => {
  const job = defineJob({
    ...base,
    source: queryAfter<{ id: string }>({
      table: "results",
      index: "byShop",
      partition: { shop: "eu" },
      sort: "id",
      time: "none",
    }),
    process: ({ id }, run) => [
      {
        Update: {
          TableName: "results",
          Key: { id },
          UpdateExpression: "SET audit = :audit, #by = :by, doneIn = :tick",
          ExpressionAttributeNames: { "#by": "by" },
          ExpressionAttributeValues: {
            ":audit": { run: run.id, fence: run.fence },
            ":by": `run ${run.id}`,
            ":tick": run.tick?.id ?? null,
          },
        },
      },
    ],
  });
  const indexed = [{ name: "results", key: { hash: "id" }, indexes: { byShop: { hash: "shop", range: "id" } } }];
  const seed = () => ({ results: ["a", "b", "c"].map((id) => ({ id, shop: "eu" })) });

  it.each<DrillName>(["crash at every request, applied", "missed window", "clock skew", "batch cap"])(
    "isn't which run did it, its fence or its tick: %s",
    async (drill) => {
      expect(await outcomeOf(drill, job, { tables: indexed, seed })).toBe("passed");
    },
  );

  it("is what read returns, by names of its own", async () => {
    const job = defineJob({ ...base, tick: (tick) => [put(tick.id, { at: new Date().toISOString() })] });
    const ids = async (by: DynamoDBClient) => {
      const { dumpTable } = await import("cronfence/testing");
      return { results: (await dumpTable(by, "results")).map(({ id }) => ({ id })), count: 2 };
    };
    expect(await outcomeOf("own clock", job)).toContain("at differs");
    expect(await outcomeOf("own clock", job, { read: ids })).toBe("passed");
    expect(await outcomeOf("own clock", job, { ignore: ["results.at"] })).toBe("passed");
  });

  it("must be there at all", async () => {
    const idle = defineJob({ ...base, source: numbers, process: () => [] });
    const never = defineJob({ ...base, tick: () => [] });
    expect(await outcomeOf("double trigger", never)).toContain(
      "nothing is due in 2 ticks from 2026-01-12T12:00:00.000Z on, so that drills would prove nothing",
    );
    expect(await outcomeOf("double trigger", never, { writesNothing: true })).toBe("passed");
    expect(await outcomeOf("double trigger", idle)).toBe("passed");
  });

  it("must be the same after two undisturbed trials", async () => {
    const job = defineJob({ ...base, tick: (tick) => [put(`${tick.id} ${Math.random()}`)] });
    expect(await outcomeOf("double trigger", job)).toContain("two undisturbed trials left different rows (results id=");
  });
});
