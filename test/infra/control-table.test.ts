import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createControlTable } from "cronfence";
import { localClientConfig, startEngine, startFaultProxy } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { controlTableResources } from "../../infra/control-table.ts";
import { parseTemplate, type Template } from "./cfn-template.ts";
import { resolved } from "./resolved.ts";

const file = fileURLToPath(new URL("../../infra/control-table.yml", import.meta.url));
const { Parameters, Resources, Outputs }: Template = parseTemplate(await readFile(file, "utf8"));
const { ControlTable } = Resources;

/** What `cronfence table create` asks DynamoDB for. */
const askedFor = async () => {
  const engine = await startEngine();
  const proxy = await startFaultProxy(engine.endpoint);
  const client = new DynamoDBClient(localClientConfig(proxy.endpoint));
  try {
    await createControlTable(client, "cronfence");
    const bodyOf = (operation: string) => proxy.requests.find((request) => request.operation === operation)?.body;
    return { table: bodyOf("CreateTable"), ttl: bodyOf("UpdateTimeToLive") };
  } finally {
    client.destroy();
    await proxy.stop();
    await engine.stop();
  }
};

describe("infra/control-table.yml", () => {
  it("describes the table that cronfence creates, with point-in-time recovery besides", async () => {
    const { table, ttl } = await askedFor();
    const { TableName, TimeToLiveSpecification, PointInTimeRecoverySpecification, ...described } =
      ControlTable.Properties;
    const { TableName: name, ...created } = table;
    expect(described).toEqual(created);
    expect(TimeToLiveSpecification).toEqual(ttl.TimeToLiveSpecification);
    expect(PointInTimeRecoverySpecification).toEqual({ PointInTimeRecoveryEnabled: true });
    expect(TableName).toEqual({ Ref: "ControlTableName" });
    expect(Parameters.ControlTableName.Default).toBe(name);
  });

  it("keeps the table when the stack is deleted or the table replaced, since fences must not be forgotten", () => {
    expect(ControlTable).toMatchObject({
      DeletionPolicy: "Retain",
      UpdateReplacePolicy: "Retain",
      Properties: { DeletionProtectionEnabled: true },
    });
  });

  it("is the table that a service makes for itself", () => {
    const name = "shop-prod-cronfence";
    const made = controlTableResources({ controlTable: { create: true, name } });
    expect(Object.values(made)).toEqual([resolved(ControlTable, { Resources }, { ControlTableName: name })]);
    expect(controlTableResources({ controlTable: { create: false, name } })).toEqual({});
  });

  it("gives the table's name and ARN to others", () => {
    expect(Outputs).toMatchObject({
      ControlTableName: { Value: { Ref: "ControlTable" } },
      ControlTableArn: { Value: { "Fn::GetAtt": ["ControlTable", "Arn"] } },
    });
  });
});
