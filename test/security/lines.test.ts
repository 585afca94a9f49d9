/** Whatever a line of a log or a metric names, it stays one line, and says no more than it was given to say. */
import { defineJob, runJob } from "cronfence";
import { settableClock } from "cronfence/testing";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { plainLog } from "../../src/local/plain-log.ts";
import { freshName, useEngine } from "../fixture.ts";
import { hostileTexts, loneSurrogate } from "./hostile.ts";

const engine = useEngine();
const now = Date.UTC(2026, 2, 1, 11, 25);

const linesOf = async (work: (name: string) => object): Promise<string[]> => {
  const lines: string[] = [];
  const log = pino({ base: null }, { write: (text: string) => lines.push(text) });
  const job = defineJob(work(freshName()) as never);
  await runJob(job, { kind: "manual" }, { store: engine.store, clock: settableClock(now), log });
  return lines;
};

describe("a log line", () => {
  it("that names a hostile cursor or error is one line of JSON", async () => {
    const texts = [...hostileTexts, loneSurrogate];
    const lines = await linesOf((name) => ({
      name,
      timeout: "1m",
      onItemError: "park",
      maxAttempts: 1,
      maxParked: 100,
      source: {
        name: "hostile",
        read: async () => ({ items: texts.map((text) => ({ cursor: text, item: text })), done: true }),
      } as never,
      process: (item: unknown) => {
        throw new Error(`no: ${item}`);
      },
    }));
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      expect(line.trimEnd()).not.toMatch(/[\r\n]/);
      expect(() => JSON.parse(line)).not.toThrow();
      expect(JSON.parse(line)).not.toMatchObject({ msg: "forged" });
    }
  });

  it("holds no more of an error than can be read", async () => {
    const lines = await linesOf((name) => ({
      name,
      timeout: "1m",
      run: () => {
        throw new Error("x".repeat(2 ** 20));
      },
    }));
    for (const line of lines) expect(line.length).toBeLessThan(10_000);
  });

  it("for people is one line too, without what could rewrite a terminal", () => {
    const printed: string[] = [];
    const log = plainLog({ print: (line) => printed.push(line), now: () => now });
    for (const text of hostileTexts) log.info({ job: "a", cursor: text }, "item parked");
    expect(printed).toHaveLength(hostileTexts.length);
    for (const line of printed) {
      for (const character of line) {
        const code = character.codePointAt(0) as number;
        expect(code >= 0x20 && !(code >= 0x7f && code <= 0x9f) && code !== 0x2028 && code !== 0x2029).toBe(true);
      }
    }
  });
});

describe("a metric", () => {
  it("has a job's name as its only free dimension, and no job can be called what isn't one", () => {
    for (const name of ["a,b", 'a"b', "a\nb", "a b", "AWS/Lambda"]) {
      expect(() => defineJob({ name, timeout: "1m", run: () => {} })).toThrowError(/a name of letters/);
    }
  });
});
