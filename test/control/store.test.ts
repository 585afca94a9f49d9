/** Opening the store. */
import { dynamoStore } from "cronfence";
import { afterEach, describe, expect, it, vi } from "vitest";

afterEach(() => vi.unstubAllEnvs());

describe("the DynamoDB store", () => {
  it("takes its table from the option, the environment, or its default, in this order", () => {
    vi.stubEnv("CRONFENCE_TABLE", undefined);
    expect(dynamoStore().table).toBe("cronfence");
    vi.stubEnv("CRONFENCE_TABLE", "");
    expect(dynamoStore().table).toBe("cronfence");
    vi.stubEnv("CRONFENCE_TABLE", "from-env");
    expect(dynamoStore().table).toBe("from-env");
    expect(dynamoStore({ table: "given" }).table).toBe("given");
  });

  it.each(["", "ab", "no spaces", "a/b", "x".repeat(256)])(
    "refuses the table name %j, and says what is allowed",
    (table) => {
      expect(() => dynamoStore({ table })).toThrow(
        expect.objectContaining({ code: "INVALID_OPTIONS", message: expect.stringContaining("3 to 255") }),
      );
    },
  );

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("refuses a request timeout of %d", (requestTimeoutMs) => {
    expect(() => dynamoStore({ requestTimeoutMs })).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
  });

  it("gives a request a second, and takes an ARN for its table", () => {
    expect(dynamoStore().requestTimeoutMs).toBe(1_000);
    const table = "arn:aws:dynamodb:eu-west-1:123456789012:table/jobs";
    expect(dynamoStore({ table }).table).toBe(table);
  });
});
