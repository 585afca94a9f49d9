/**
 * The job of a random plan, and what it has to say about itself. Every commit adds an entry to the job's log, one item of
 * the table, and counts its first item in a row of its own: so the log tells what was accepted, in which order, under
 * which fence, and the rows that each transaction was applied as a whole and once.
 */
import { cron, defineJob, hasCode, type Job, type LeaseLostError, type Run, type Write } from "cronfence";
import { type Account, type Entry, itemsOf, type Told } from "./model.ts";
import { mostTicks, type Plan } from "./random-plan.ts";

/** Holds the log of each job, and a row for each item. */
export const logTable = "logs";

export const minuteMs = 60_000;
export const origin = Date.parse("2026-03-01T12:00:00Z");
export const tickAt = (number: number): number => origin + number * minuteMs;
export const numberOf = (tick: number): number => (tick - origin) / minuteMs;
export const ttlMs = 3_000;
export const skewMs = 1_000;
export const timeoutMs = 20_000;

/** Who watches the job's own code. */
export interface Witness {
  accountOf(run: string): Account;
  /** Whether the code of this attempt fails half way. */
  fails(account: Account): boolean;
  told(account: Account, key: string, told: Told): void;
  /** Something that must not happen. */
  fault(what: string): void;
}

export const jobOf = ({ work, overlap }: Plan, name: string, witness: Witness): Job => {
  const options = { name, schedule: cron("* * * * *"), timeout: timeoutMs, ttl: ttlMs, skew: skewMs, overlap };
  const total = itemsOf(work, mostTicks);
  const entry = (run: Pick<Run, "id" | "fence">, line: Omit<Entry, "run" | "fence">): Write => ({
    Update: {
      TableName: logTable,
      Key: { id: name },
      UpdateExpression: "SET #log = list_append(if_not_exists(#log, :none), :line)",
      ExpressionAttributeNames: { "#log": "log" },
      ExpressionAttributeValues: { ":none": [], ":line": [{ run: run.id, fence: run.fence, ...line }] },
    },
  });
  const row = (item: string): Write => ({
    Update: {
      TableName: logTable,
      Key: { id: rowOf(name, item) },
      UpdateExpression: "ADD #times :one",
      ExpressionAttributeNames: { "#times": "times" },
      ExpressionAttributeValues: { ":one": 1 },
    },
  });
  if (work.shape === "tick") {
    return defineJob({
      ...options,
      tick: ({ at }, run) => {
        const number = numberOf(at.getTime());
        const size = work.writes[number - 1] ?? 1;
        const writes = Array.from({ length: size }, (_, i) =>
          i % 99 === 0
            ? entry(run, { key: `${number}.${i}`, tick: number, part: i / 99, items: Math.min(99, size - i) })
            : row(`${number}.${i}`),
        );
        if (number === 2 && witness.fails(witness.accountOf(run.id))) throw new Error("the work failed");
        return { writes, watermark: number };
      },
    });
  }
  if (work.shape === "source") {
    return defineJob<number>({
      ...options,
      source: {
        name: "numbers",
        pageSize: work.pageSize,
        read: async ({ after, limit }) => {
          const first = Number(after ?? 0) + 1;
          const items = Array.from({ length: Math.max(0, Math.min(limit, total - first + 1)) }, (_, i) => first + i);
          return { items: items.map((item) => ({ item, cursor: item })), done: first + items.length > total };
        },
      },
      ...(work.limit === undefined ? {} : { limit: { items: work.limit } }),
      process: (item, run) => {
        if (item % 2 === 0 && witness.fails(witness.accountOf(run.id))) throw new Error("the work failed");
        return [entry(run, { key: `${item}`, from: item, through: item, items: 1 }), row(`${item}`)];
      },
    });
  }
  return defineJob<number>({
    ...options,
    run: async (run) => {
      const account = witness.accountOf(run.id);
      const upTo = Math.min(total, work.perTick * numberOf(run.tick?.at.getTime() as number));
      const opened: Promise<void>[] = [];
      const commit = (from: number, through: number): Promise<void> => {
        const key = `${from}-${through}`;
        const items = through - from + 1;
        const made = run.commit([entry(run, { key, from, through, items }), row(`${from}`)], {
          watermark: through,
          items,
        });
        // Looks at it without counting as somebody who waits for it.
        Promise.prototype.then.call(
          made,
          () => witness.told(account, key, "applied"),
          (error) => witness.told(account, key, fateIn(error)),
        );
        return made;
      };
      if (work.rejected) await rejectedCommit(run, name, witness);
      for (let done = run.watermark ?? 0; done < upTo; ) {
        const through = Math.min(done + work.batch, upTo);
        const made = commit(done + 1, through);
        if (work.style === "one by one") await made;
        if (work.style === "at once") opened.push(made);
        if (work.style === "swallowing") {
          try {
            await made;
          } catch (error) {
            if (!hasCode(error, "OUTCOME_UNKNOWN") && !hasCode(error, "LEASE_LOST")) throw error;
            // Tries the next one all the same, and then returns as if all was well.
            await commit(through + 1, through + 1).then(
              () => witness.fault("a commit went out though the outcome of another one is unknown"),
              () => {},
            );
            return;
          }
        }
        done = through;
        if (witness.fails(account)) throw new Error("the work failed");
      }
      await Promise.all(opened);
      const number = numberOf(run.tick?.at.getTime() as number);
      if (work.lastBatch)
        run.commitAtEnd([entry(run, { key: `end of ${number}`, tick: number, items: 0 })], { items: 0 });
    },
  });
};

const rowOf = (name: string, item: string): string => `${name} ${item}`;

/** The rows that must have been counted once, for what is in the log. */
export const rowsOf = ({ work }: Plan, name: string, log: readonly Entry[]): string[] =>
  log.flatMap(({ from, tick, part = 0 }) => {
    if (from !== undefined) return [rowOf(name, `${from}`)];
    if (work.shape !== "tick" || tick === undefined) return [];
    // The first and the last of a part's writes, beside the log's own.
    const [own, end] = [part * 99, Math.min((part + 1) * 99, work.writes[tick - 1] ?? 1)];
    return [...new Set([own + 1, end - 1])].filter((i) => i > own && i < end).map((i) => rowOf(name, `${tick}.${i}`));
  });

/** Errors that halt a run are thrown at every later commit, too; what they say is said of the commit that found out. */
const foundOut = new WeakSet<object>();
const fateIn = (error: unknown): Told => {
  if (hasCode(error, "OUTCOME_UNKNOWN") || hasCode(error, "LEASE_LOST")) {
    const first = !foundOut.has(error as object);
    foundOut.add(error as object);
    if (!first) return "not applied";
    const { lastCommit } = error as LeaseLostError;
    return lastCommit === "applied" || lastCommit === "not applied" ? lastCommit : "unknown";
  }
  return "not applied";
};

/** A commit that can't succeed, which the job looks for and goes on after. */
const rejectedCommit = async (run: Run<number>, name: string, witness: Witness): Promise<void> => {
  const impossible: Write = {
    ConditionCheck: {
      TableName: logTable,
      Key: { id: `${name} nothing` },
      ConditionExpression: "attribute_exists(id)",
    },
  };
  try {
    await run.commit([impossible]);
  } catch (error) {
    if (hasCode(error, "WRITE_REJECTED")) return;
    throw error;
  }
  witness.fault("a commit that DynamoDB rejected succeeded");
};
