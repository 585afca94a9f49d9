import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packagedTemplate } from "../../src/cli/packaged-template.ts";

describe("a template that was packaged before", () => {
  let folder: string;
  let file: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "cronfence-packaged-"));
    file = join(folder, "cloudformation-template-update-stack.json");
    await writeFile(file, JSON.stringify({ Resources: { Topic: { Type: "AWS::SNS::Topic" } } }));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const state = (provider: object) =>
    writeFile(join(folder, "serverless-state.json"), JSON.stringify({ service: { service: "shop", provider } }));

  it("is of the stack and the stage that it was packaged for, and deployed to those", async () => {
    await state({ stage: "prod", region: "eu-west-1" });
    expect(await packagedTemplate(file, {})).toMatchObject({
      stack: "shop-prod",
      region: "eu-west-1",
      deploy: "npx osls deploy --stage prod",
    });
  });

  it("isn't taken for another stage's", async () => {
    await state({ stage: "dev" });
    await expect(packagedTemplate(file, { stage: "prod" })).rejects.toThrow(
      /^--stage is prod, and .* was packaged for stage dev$/,
    );
  });

  it("can be of a stack that is called otherwise", async () => {
    await state({ stage: "dev" });
    expect(await packagedTemplate(file, { stack: "legacy" })).toMatchObject({ stack: "legacy" });
  });
});
