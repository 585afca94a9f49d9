/** Metrics as lines on standard output, against the specification of the embedded metric format. */
import { describe, expect, it, vi } from "vitest";
import { emfSink } from "../../src/observe/emf.ts";
import type { MetricSet } from "../../src/observe/metrics.ts";

const at = Date.parse("2026-03-01T00:00:00.250Z");

const written = (set: MetricSet, service?: string) => {
  const lines: string[] = [];
  const dropped: unknown[] = [];
  emfSink({
    ...(service === undefined ? {} : { service }),
    write: (line) => void lines.push(line),
    dropped: (...what) => void dropped.push(what),
  }).record(set);
  return { lines, dropped, documents: lines.map((line) => JSON.parse(line)) };
};

describe("A set of metrics", () => {
  it("is one line that names its metrics with their units, by service and job", () => {
    const { lines, documents } = written(
      { job: "carts", at, run: "r1", values: { Succeeded: 1, Duration: 1_234.5, Overdue: 0 } },
      "shop",
    );
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^\{[^\n]*\}\n$/);
    expect(documents[0]).toEqual({
      _aws: {
        Timestamp: at,
        CloudWatchMetrics: [
          {
            Namespace: "cronfence",
            Dimensions: [["service", "job"]],
            Metrics: [
              { Name: "Succeeded", Unit: "Count" },
              { Name: "Duration", Unit: "Milliseconds" },
              { Name: "Overdue", Unit: "Seconds" },
            ],
          },
        ],
      },
      service: "shop",
      job: "carts",
      run: "r1",
      Succeeded: 1,
      Duration: 1_234.5,
      Overdue: 0,
    });
  });

  it("has a whole number of milliseconds for its time", () => {
    expect(written({ job: "carts", at: at + 0.75, values: { Items: 1 } }).documents[0]._aws.Timestamp).toBe(at);
  });

  it("is of the environment's service, or else of one called cronfence", () => {
    const set = { job: "carts", at, values: { Items: 1 } };
    expect(written(set).documents[0].service).toBe("cronfence");
    vi.stubEnv("CRONFENCE_SERVICE", "shop-prod");
    expect(written(set).documents[0].service).toBe("shop-prod");
    vi.unstubAllEnvs();
  });

  it("goes to standard output as it is, not through a console that wraps it", () => {
    const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    try {
      emfSink().record({ job: "carts", at, values: { Items: 3 } });
      expect(write).toHaveBeenCalledTimes(1);
      expect(JSON.parse(String(write.mock.calls[0]?.[0]))).toMatchObject({ job: "carts", Items: 3 });
    } finally {
      write.mockRestore();
    }
  });

  it("of more than a hundred values of a metric is as many lines as that takes, and no value is lost", () => {
    const values = Array.from({ length: 250 }, (_, index) => index);
    const { documents } = written({ job: "carts", at, values: { Duration: values, Items: 7 } });
    expect(documents.map(({ Duration, Items }) => [Duration.length, Items])).toEqual([
      [100, 7],
      [100, undefined],
      [50, undefined],
    ]);
    expect(documents.flatMap(({ Duration }) => Duration)).toEqual(values);
    expect(documents[1]._aws.CloudWatchMetrics[0].Metrics).toEqual([{ Name: "Duration", Unit: "Milliseconds" }]);
  });

  it("leaves out what is no number, says so, and keeps the rest", () => {
    const { documents, dropped } = written({
      job: "carts",
      at,
      values: { Items: Number.NaN, Duration: [1, Number.POSITIVE_INFINITY, 2], Succeeded: 1 },
    });
    expect(documents[0]).toMatchObject({ Duration: [1, 2], Succeeded: 1 });
    expect(documents[0]).not.toHaveProperty("Items");
    expect(JSON.stringify(documents[0])).not.toContain("Items");
    expect(dropped).toEqual([
      ["Items", "carts", Number.NaN],
      ["Duration", "carts", Number.POSITIVE_INFINITY],
    ]);
  });

  it("of nothing that can be measured is no line", () => {
    expect(written({ job: "carts", at, values: {} }).lines).toEqual([]);
    expect(written({ job: "carts", at, values: { Items: Number.NaN } }).lines).toEqual([]);
  });
});

describe("A service", () => {
  it("that can't be a dimension is refused", () => {
    for (const service of [":shop", "", " ", "café", "x".repeat(256), "a\nb"]) {
      expect(() => emfSink({ service, write: () => {} })).toThrow("must be 1 to 255 printable ASCII characters");
    }
    for (const service of ["s", "shop jobs", "x".repeat(255)]) {
      expect(() => emfSink({ service, write: () => {} })).not.toThrow();
    }
  });
});
