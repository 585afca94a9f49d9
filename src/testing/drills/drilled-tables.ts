/**
 * The tables of a drill on the local engine: made, filled, read as a whole and put back as they were, in as few requests as
 * possible, since a drill does it for every trial.
 */
import { type AttributeValue, DeleteTableCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { InvalidOptionsError } from "../../errors.ts";
import { createTable, type Item, type TableDefinition, type TableKey } from "../tables.ts";
import { controlTable, type Ground } from "./ground.ts";

/** An item in DynamoDB's own form. */
export type RawItem = Readonly<Record<string, AttributeValue>>;
/** Items by their key's text, as text that is the same for equal items. */
export type Contents = ReadonlyMap<string, ReadonlyMap<string, string>>;

export interface DrilledTables {
  /** All items of the job's tables. */
  read(): Promise<Contents>;
  /** The same for the last time before `restore`, which then knows what it finds. */
  readLast(): Promise<Contents>;
  /** Makes the job's tables hold `contents` and nothing else, and empties the control table. */
  restore(contents: Contents): Promise<void>;
  drop(): Promise<void>;
}

const control: TableDefinition = { name: controlTable, key: { hash: "pk", range: "sk" } };

/** @throws InvalidOptionsError for a table that is there already, on an engine that isn't ours */
export const makeTables = async (
  ground: Ground,
  subject: string,
  definitions: readonly TableDefinition[],
): Promise<DrilledTables> => {
  const all = [...definitions, control];
  const made: string[] = [];
  const drop = async () => {
    for (const TableName of made.splice(0)) await ground.client.send(new DeleteTableCommand({ TableName }));
  };
  for (const table of all) {
    try {
      await createTable(ground.client, table);
    } catch (error) {
      await drop();
      if ((error as Error).name !== "ResourceInUseException") throw error;
      const problem = `table "${table.name}" exists already; drills make their own, on a local DynamoDB that has none of its name`;
      throw new InvalidOptionsError(subject, [problem], { cause: error });
    }
    made.push(table.name);
  }
  const ask = async <Answer>(operation: string, body: object): Promise<Answer> => {
    const { statusCode, body: answer } = await ground.line.send(operation, JSON.stringify(body));
    const text = Buffer.from(answer).toString();
    if (statusCode !== 200) throw new Error(`the local DynamoDB refused ${operation}: ${text}`);
    return JSON.parse(text) as Answer;
  };
  const scan = async ({ name, key }: TableDefinition): Promise<Map<string, string>> => {
    const items = new Map<string, string>();
    let from: RawItem | undefined;
    do {
      const page: { Items?: readonly RawItem[]; LastEvaluatedKey?: RawItem } = await ask("Scan", {
        TableName: name,
        ConsistentRead: true,
        ...(from && { ExclusiveStartKey: from }),
      });
      for (const item of page.Items ?? []) items.set(keyText(key, item), canonical(item));
      from = page.LastEvaluatedKey;
    } while (from);
    return items;
  };
  const read = async (): Promise<Contents> =>
    new Map(await Promise.all(definitions.map(async (table) => [table.name, await scan(table)] as const)));
  /** What the tables are known to hold. */
  let known: Contents | undefined;
  const restoreOne = async (table: TableDefinition, wanted: ReadonlyMap<string, string>): Promise<void> => {
    const found = known?.get(table.name) ?? (await scan(table));
    const writes: object[] = [];
    for (const [key, item] of wanted) {
      if (found.get(key) !== item) writes.push({ PutRequest: { Item: JSON.parse(item) } });
    }
    for (const [key, item] of found) {
      if (!wanted.has(key)) writes.push({ DeleteRequest: { Key: keyOf(table.key, JSON.parse(item)) } });
    }
    const batches = Array.from({ length: Math.ceil(writes.length / mostPerBatch) }, (_, i) =>
      writes.slice(i * mostPerBatch, (i + 1) * mostPerBatch),
    );
    // The local engine leaves nothing unprocessed.
    await Promise.all(batches.map((batch) => ask("BatchWriteItem", { RequestItems: { [table.name]: batch } })));
  };
  return {
    read,
    readLast: async () => {
      known = await read();
      return known;
    },
    restore: async (contents) => {
      await Promise.all(all.map((table) => restoreOne(table, contents.get(table.name) ?? new Map())));
      known = undefined;
    },
    drop,
  };
};

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html */
const mostPerBatch = 25;

/** What a seed has returned, as contents of tables. */
export const contentsOf = (
  definitions: readonly TableDefinition[],
  seeded: Readonly<Record<string, readonly object[]>>,
  subject: string,
): Contents => {
  const contents = new Map<string, Map<string, string>>();
  for (const [name, items] of Object.entries(seeded)) {
    const table = definitions.find((definition) => definition.name === name);
    if (table === undefined) {
      const known = definitions.map((definition) => definition.name).join(", ") || "none";
      throw new InvalidOptionsError(subject, [
        `seed returned items for table "${name}", which tables doesn't define (${known})`,
      ]);
    }
    const raw = items.map((item) => canonical(marshall(item as Item, { removeUndefinedValues: true })));
    contents.set(name, new Map(raw.map((item) => [keyText(table.key, JSON.parse(item)), item])));
  }
  return contents;
};

const keyOf = ({ hash, range }: TableKey, item: RawItem): RawItem =>
  Object.fromEntries(
    [hash, range].flatMap((name) => (name === undefined ? [] : [[name, item[name] as AttributeValue]])),
  );

/** An item's name in messages: `id="c1"`, or `shop="eu" at=12`. */
export const keyText = (key: TableKey, item: RawItem): string =>
  Object.entries(keyOf(key, item))
    .map(([name, value]) => {
      const [type, text] = Object.entries(value ?? {})[0] ?? [];
      return `${name}=${type === "N" ? text : JSON.stringify(text)}`;
    })
    .join(" ");

/** The same text for equal items, in whatever order the engine gives their attributes and the members of their sets. */
const canonical = (item: RawItem): string =>
  JSON.stringify(item, function (this: Record<string, unknown>, name: string, part: unknown) {
    // As it goes over the wire; a Buffer has a toJSON of its own.
    const given = this[name];
    if (given instanceof Uint8Array) return Buffer.from(given).toString("base64");
    if (Array.isArray(part)) return ["SS", "NS", "BS"].includes(name) ? [...part].sort() : part;
    if (typeof part !== "object" || part === null) return part;
    return Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
