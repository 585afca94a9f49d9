/**
 * What a wrapped handler's context is to the compiler: `npm run types` fails if `context.run` is missing or anything
 * goes for it.
 */
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import type { Run } from "cronfence";
import { type FencedContext, fencedLease } from "cronfence/lambda";
import middy7 from "middy7";
import { describe, expectTypeOf, it } from "vitest";

const lease = fencedLease({ job: "expire-carts" });

describe("A handler's context", () => {
  it("has the run after .use(fencedLease(…)), beside all that Lambda gives it", () => {
    middy()
      .use(lease)
      .handler(async (_event, context) => {
        expectTypeOf(context.run).not.toBeAny();
        expectTypeOf(context.run).toEqualTypeOf<Run>();
        expectTypeOf(context.run.commit).returns.resolves.toBeVoid();
        expectTypeOf(context.getRemainingTimeInMillis).returns.toBeNumber();
        // @ts-expect-error a run has no such thing
        context.run.rollback;
        // @ts-expect-error a write is a TransactWriteItems entry
        await context.run.commit([{ Put: "a" }]);
      });
  });

  it("has it wherever the lease stands among other middlewares", () => {
    const other = { before: () => {}, after: () => {} };
    middy()
      .use(other)
      .use(lease)
      .use(other)
      .handler(async (_event, { run }) => {
        expectTypeOf(run).toEqualTypeOf<Run>();
      });
  });

  it("has it under middy 7", () => {
    middy7()
      .use(lease)
      .handler(async (_event: unknown, context: FencedContext) => {
        expectTypeOf(context.run).toEqualTypeOf<Run>();
      });
  });

  it("doesn't have it without the lease", () => {
    middy().handler(async (_event, context) => {
      // @ts-expect-error no middleware puts it there
      context.run;
      expectTypeOf(context).toEqualTypeOf<Context>();
    });
  });

  it("is Lambda's, with the run as the one thing more", () => {
    expectTypeOf<FencedContext>().toExtend<Context>();
    expectTypeOf<Exclude<keyof FencedContext, keyof Context>>().toEqualTypeOf<"run">();
  });
});
