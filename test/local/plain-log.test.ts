import { expect, it } from "vitest";
import { plainLog } from "../../src/local/plain-log.ts";

const logged = (level?: "debug" | "warn") => {
  const lines: string[] = [];
  const now = () => Date.parse("2026-03-02T06:05:00.120Z");
  return {
    lines,
    log: plainLog({ print: (line) => lines.push(line), now, ...(level === undefined ? {} : { level }) }),
  };
};

it("prints one line per entry: time, job, message, and the fields of the entry and its logger", () => {
  const { lines, log } = logged();
  log.child({ job: "expire-carts", run: "r1" }).child({ fence: 7 }).info({ items: 3, tick: undefined }, "started");
  log.warn({ error: { code: "X" } }, "odd");
  log.error({}, "broken");
  expect(lines).toEqual([
    "06:05:00.120 expire-carts: started (run r1, fence 7, items 3)",
    '06:05:00.120 WARN odd (error {"code":"X"})',
    "06:05:00.120 ERROR broken",
  ]);
});

it("leaves out what is below its level, which is info unless another is given", () => {
  const usual = logged();
  usual.log.debug({}, "detail");
  const quiet = logged("warn");
  quiet.log.info({}, "news");
  quiet.log.child({}).warn({}, "odd");
  const chatty = logged("debug");
  chatty.log.debug({}, "detail");
  expect([usual.lines, quiet.lines.length, chatty.lines.length]).toEqual([[], 1, 1]);
});
