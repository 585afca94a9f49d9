import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { dynamoStore } from "cronfence";
import { settableClock } from "cronfence/testing";
import { afterEach, expect, it, vi } from "vitest";
import { budgetOn } from "../fixture.ts";

afterEach(() => vi.unstubAllEnvs());

it("a client without a region is told so at once: nothing was sent, so nothing is in doubt", async () => {
  for (const name of ["AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"]) vi.stubEnv(name, undefined);
  vi.stubEnv("AWS_CONFIG_FILE", "/nonexistent");
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent");
  const store = dynamoStore({ client: new DynamoDBClient({ endpoint: "http://127.0.0.1:9" }) });
  await expect(store.create("job", 0, budgetOn(settableClock()))).rejects.toMatchObject({
    code: "STORE_UNAVAILABLE",
    message: expect.stringContaining("no AWS region is set; set AWS_REGION"),
  });
});
