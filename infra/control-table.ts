/** The control table, and how statements name it. infra/control-table.yml is the same table for people without the plugin. */
import { type ServiceSettings, serviceIds } from "./deployed-service.ts";
import { attribute, ownArn, type Resources, type Value } from "./template.ts";

/**
 * A table that is made with the stack and outlives it: its fences must never be forgotten, since a table made anew would hand
 * out old ones. None where one is given.
 */
export const controlTableResources = ({ controlTable }: Pick<ServiceSettings, "controlTable">): Resources =>
  controlTable.create
    ? {
        [serviceIds.controlTable]: {
          Type: "AWS::DynamoDB::Table",
          DeletionPolicy: "Retain",
          UpdateReplacePolicy: "Retain",
          Properties: {
            TableName: controlTable.name,
            BillingMode: "PAY_PER_REQUEST",
            DeletionProtectionEnabled: true,
            AttributeDefinitions: [
              { AttributeName: "pk", AttributeType: "S" },
              { AttributeName: "sk", AttributeType: "S" },
            ],
            KeySchema: [
              { AttributeName: "pk", KeyType: "HASH" },
              { AttributeName: "sk", KeyType: "RANGE" },
            ],
            TimeToLiveSpecification: { AttributeName: "expiresAt", Enabled: true },
            PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
          },
        },
      }
    : {};

export const controlTableArn = ({ controlTable }: Pick<ServiceSettings, "controlTable">): Value =>
  controlTable.create
    ? attribute(serviceIds.controlTable, "Arn")
    : (controlTable.arn ?? ownArn("dynamodb", `table/${controlTable.name}`));
