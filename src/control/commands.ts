/**
 * What the control store asks of DynamoDB: the SDK's commands by name and input, without the SDK, so that a function that
 * sends them by itself (direct.ts) needn't load it.
 */
import type {
  BatchGetItemCommandInput,
  DescribeTableCommandInput,
  GetItemCommandInput,
  PutItemCommandInput,
  QueryCommandInput,
  ScanCommandInput,
  TransactWriteItemsCommandInput,
  UpdateItemCommandInput,
} from "@aws-sdk/client-dynamodb";

export type Command =
  | BatchGetItemCommand
  | DescribeTableCommand
  | GetItemCommand
  | PutItemCommand
  | QueryCommand
  | ScanCommand
  | TransactWriteItemsCommand
  | UpdateItemCommand;

/** Sends a command once; its answer, or an error as the SDK's client throws it. */
export type Send = (command: Command, signal: AbortSignal) => Promise<unknown>;

export class BatchGetItemCommand {
  readonly operation = "BatchGetItem";
  constructor(readonly input: BatchGetItemCommandInput) {}
}
export class DescribeTableCommand {
  readonly operation = "DescribeTable";
  constructor(readonly input: DescribeTableCommandInput) {}
}
export class GetItemCommand {
  readonly operation = "GetItem";
  constructor(readonly input: GetItemCommandInput) {}
}
export class PutItemCommand {
  readonly operation = "PutItem";
  constructor(readonly input: PutItemCommandInput) {}
}
export class QueryCommand {
  readonly operation = "Query";
  constructor(readonly input: QueryCommandInput) {}
}
export class ScanCommand {
  readonly operation = "Scan";
  constructor(readonly input: ScanCommandInput) {}
}
export class TransactWriteItemsCommand {
  readonly operation = "TransactWriteItems";
  constructor(readonly input: TransactWriteItemsCommandInput) {}
}
export class UpdateItemCommand {
  readonly operation = "UpdateItem";
  constructor(readonly input: UpdateItemCommandInput) {}
}
