/**
 * Sessions that are over are deleted: first their files on S3, then their rows. What can't be had back is guarded: each run
 * is planned and counted before it deletes anything, and stops where that is far more than usual.
 *
 * A session leaves the index with its row, so one whose files couldn't all be deleted is found again by the next run; and
 * S3 answers 200 to a deletion that was denied, which `observed` makes the run fail for.
 */
import { DeleteObjectsCommand, S3Client } from "@aws-sdk/client-s3";
import { cron, defineJob, observed } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";
import { dueItems } from "cronfence/sources";

interface Session {
  readonly id: string;
  readonly shop: string;
  /** When it is over, as an ISO 8601 instant in UTC, and its id. */
  readonly endsAtId: string;
  /** Keys of its files; at most 1,000, which is what one request deletes. */
  readonly files?: readonly string[];
}

/** Without a bucket only rows are deleted. */
const bucket = process.env.SESSIONS_BUCKET;
const s3 = observed(new S3Client({ forcePathStyle: process.env.AWS_ENDPOINT_URL_S3 !== undefined }));

/** Whether all of a session's files are gone. */
const deleteFiles = async (files: readonly string[], signal: AbortSignal): Promise<boolean> => {
  if (bucket === undefined || files.length === 0) return true;
  const command = new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects: files.map((Key) => ({ Key })) } });
  const { Errors = [] } = await s3.send(command, { abortSignal: signal });
  return Errors.length === 0;
};

export const job = defineJob({
  name: "purge-sessions",
  schedule: cron("23 3 * * *"),
  timeout: "10m",
  destructive: { max: 50_000, usual: { factor: 5 } },
  concurrency: 8,
  access: [{ table: "sessions", write: true }],
  source: dueItems<Session>({ table: "sessions", index: "byEnd", partition: { shop: "eu" }, sort: "endsAtId" }),
  process: async (session, run) => {
    // A dry run sends no write of ours; what else is to be left out is for us to leave out.
    const gone = run.dryRun || (await deleteFiles(session.files ?? [], run.signal));
    if (!gone) return [];
    return [
      {
        Delete: {
          TableName: "sessions",
          Key: { id: session.id },
          // A session that was prolonged since it was read is kept.
          ConditionExpression: "endsAtId = :seen",
          ExpressionAttributeValues: { ":seen": session.endsAtId },
        },
      },
    ];
  },
});

export const handler = lambdaHandler(job);

/** What `npm run dev` makes on the local engine: sessions, half of which are over. */
export const local = {
  tables: [{ name: "sessions", key: { hash: "id" }, indexes: { byEnd: { hash: "shop", range: "endsAtId" } } }],
  seed: (now: number): { readonly sessions: readonly Session[] } => ({
    sessions: Array.from({ length: 200 }, (_, index) =>
      sessionEnding(now + (index - 100) * 60_000, `session-${index}`),
    ),
  }),
};

/** A session with one file. */
export const sessionEnding = (at: number, id: string): Session => ({
  id,
  shop: "eu",
  endsAtId: `${new Date(at).toISOString()}#${id}`,
  files: [`${id}/state.json`],
});
