/**
 * Every operation under every fault of the network and the service: it must leave exactly what it leaves without the
 * fault, and say the same. And where the fault doesn't end: say what is known, and nothing else.
 */
import type { Fault, Item, ProxiedRequest, SingleFault } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { expiryMs, type Granted, minute, openScene, type Scene } from "./conformance.ts";
import { increment, useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();

interface Operation {
  /** The requests that go wrong. */
  readonly sent: (request: ProxiedRequest) => boolean;
  readonly transaction?: true;
  /** Brings the job where the operation finds it. */
  readonly before?: (scene: Scene) => Promise<Granted | undefined>;
  readonly act: (scene: Scene, granted: Granted) => Promise<unknown>;
  /** What it says. */
  readonly says: unknown;
  /** What it says if its outcome stays unknown, where that isn't an error. */
  readonly unknown?: unknown;
  /** The faults hit its first half, and the other doesn't go out after that. */
  readonly half?: true;
}

/** The same ids on every scene, so that two jobs can be compared. */
const named = (scene: Scene, name: string) => ({
  owner: `owner-${name}`,
  tick: scene.tick,
  run: { id: name, startedAt: scene.clock.now(), trigger: "schedule", tick: scene.tick } as const,
});
const row = (scene: Scene) => `row-of-${scene.job}`;
const known = async (scene: Scene) => void (await scene.store.create(scene.job, scene.clock.now(), scene.budget()));
const held = (scene: Scene) => scene.grant(named(scene, "a"));
const replaced = async (scene: Scene) => {
  const a = await held(scene);
  scene.clock.advance(expiryMs);
  await scene.grant(named(scene, "b"));
  return a;
};
const sent =
  (operation: string, has = "") =>
  (request: ProxiedRequest) =>
    request.operation === operation && JSON.stringify(request.body).includes(has);

const operations: Record<string, Operation> = {
  "first use": {
    sent: sent("PutItem"),
    act: (scene) => scene.acquire(named(scene, "a")),
    says: { kind: "acquired" },
    half: true,
  },
  "an acquisition": {
    sent: sent("UpdateItem"),
    before: async (scene) => void (await known(scene)),
    act: (scene) => scene.acquire(named(scene, "a")),
    says: { kind: "acquired", lease: { owner: "owner-a" } },
  },
  "an acquisition after a crash": {
    sent: sent("UpdateItem"),
    before: async (scene) => {
      await held(scene);
      scene.clock.advance(expiryMs);
      return undefined;
    },
    act: (scene) => scene.acquire(named(scene, "b")),
    says: { kind: "acquired", state: { prev: [{ id: "a" }] } },
  },
  "a takeover": {
    sent: sent("UpdateItem"),
    before: held,
    act: (scene, a) => scene.acquire({ ...named(scene, "b"), takeover: { fence: a.lease.fence } }),
    says: { kind: "acquired", lease: { owner: "owner-b" } },
  },
  "clearing a backlog": {
    sent: sent("UpdateItem", ":left"),
    before: async (scene) => {
      await held(scene);
      scene.clock.advance(expiryMs);
      const run = { ...named(scene, "r").run, seq: 0 };
      const prev = Array.from({ length: 20 }, (_, i) => ({ ...run, id: `r${i}`, owner: `owner-r${i}` }));
      await dynamo.edit(scene.job, { prev });
      return undefined;
    },
    act: (scene) => scene.acquire(named(scene, "last")),
    says: { kind: "acquired", state: { prev: [{ id: "a" }], unfinished: 2 } },
    half: true,
  },
  queueing: {
    sent: sent("UpdateItem"),
    before: held,
    act: (scene, a) => scene.queue(a, scene.tick + minute),
    says: "queued",
  },
  "a renewal": {
    sent: sent("UpdateItem"),
    before: held,
    act: (scene, a) => scene.renew(a, scene.clock.now() + 99_000),
    says: undefined,
  },
  "a commit": {
    sent: sent("TransactWriteItems"),
    transaction: true,
    before: held,
    act: (scene, a) => scene.commit(a, [increment(row(scene))], { watermark: "w", tick: scene.tick }),
    says: { seq: 1 },
  },
  "a finish": {
    sent: sent("TransactWriteItems"),
    transaction: true,
    before: held,
    act: (scene, a) =>
      scene.finish(a, "succeeded", { tick: scene.tick, writes: scene.store.prepare([increment(row(scene))]) }),
    says: { kind: "finished", outcome: "succeeded" },
  },
  "a finish of a failed run": {
    sent: sent("TransactWriteItems"),
    transaction: true,
    before: held,
    act: (scene, a) => scene.finish(a, "failed"),
    says: { kind: "finished", outcome: "failed" },
  },
  "recording a crash": {
    sent: sent("PutItem"),
    before: replaced,
    act: (scene, a) => scene.recordCrashed([a.lease.run]),
    says: [{ id: "a" }],
    unknown: [],
  },
  "recording a lost lease": {
    sent: sent("PutItem"),
    before: async (scene) => {
      const a = await replaced(scene);
      await scene.recordCrashed([a.lease.run]);
      return a;
    },
    act: (scene, a) => scene.recordLost(a),
    says: "lease_lost",
  },
  "a pause": {
    sent: sent("TransactWriteItems"),
    transaction: true,
    before: held,
    act: (scene) => scene.pause(),
    says: undefined,
  },
  "a resumption": {
    sent: sent("TransactWriteItems"),
    transaction: true,
    before: async (scene) => void (await scene.pause()),
    act: (scene) => scene.resume(),
    says: undefined,
  },
  "a cancel": {
    sent: sent("TransactWriteItems"),
    transaction: true,
    before: held,
    act: (scene) => scene.cancel(),
    says: { id: "a" },
  },
};

/** Without the job's name and what is random, so that two jobs can be compared. */
const plain = (scene: Scene, value: unknown): unknown => {
  const random = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g;
  const text = JSON.stringify(value)?.replaceAll(scene.job, "job").replaceAll(random, "random");
  return text && JSON.parse(text, (name, part) => (name === "token" ? "random" : part));
};

const keptOf = async (scene: Scene) => ({
  // Acts of one instant are in the order of their random ids.
  items: (await dynamo.items(scene.job))
    .map((item) => plain(scene, item) as Item)
    .sort((one, other) => (`${one.sk}${one.kind}` < `${other.sk}${other.kind}` ? -1 : 1)),
  row: await dynamo.row(row(scene)),
});

const prepared = async (operation: Operation) => {
  const scene = openScene(dynamo.store);
  const granted = (await operation.before?.(scene)) as Granted;
  return { scene, granted };
};

/** What the operation says and leaves when nothing goes wrong. */
const withoutFault = (operation: Operation) => {
  const run = async () => {
    const { scene, granted } = await prepared(operation);
    const said = await operation.act(scene, granted);
    return { said: plain(scene, said), kept: await keptOf(scene) };
  };
  const known = undisturbed.get(operation) ?? run();
  undisturbed.set(operation, known);
  return known;
};
const undisturbed = new Map<Operation, Promise<{ said: unknown; kept: unknown }>>();

const faults: [string, ...SingleFault[]][] = [
  ["a lost reply", "lost-reply"],
  ["four lost replies in a row", "lost-reply", "lost-reply", "lost-reply", "lost-reply"],
  ["a 500 before it was applied", "500-before"],
  ["a 500 after it was applied", "500-after"],
  ["a connection that breaks before it was applied", "drop"],
  ["no answer, not applied", { hang: true }],
  ["no answer, applied", { hang: true, applied: true }],
  ["being applied twice", { duplicate: "second" }],
  ["being throttled", "throttle", "throttle"],
  ["conflicts", { conflict: true }, { conflict: true }],
  ["all of it in turn", "throttle", "drop", { conflict: true }, "500-before", "lost-reply", "500-after"],
];

describe.each(Object.entries(operations))("%s", (_, operation) => {
  const { sent: hit, says, half = false } = operation;

  const comesThrough = async (...planned: readonly Fault[]) => {
    const expected = await withoutFault(operation);
    const { scene, granted } = await prepared(operation);
    const rules = planned.map((fault) => dynamo.fixture.proxy.next(hit, fault));
    const hangs = planned.some((fault) => typeof fault === "object" && "hang" in fault);
    const said = await operation.act(scene.through(hangs ? dynamo.hasty : dynamo.faulty), granted);
    expect(rules.map(({ hits }) => hits)).toEqual(planned.map(() => 1));
    if (typeof says === "object") expect(said).toMatchObject(says as object);
    else expect(said).toBe(says);
    expect(plain(scene, said)).toEqual(expected.said);
    expect(await keptOf(scene)).toEqual(expected.kept);
  };
  const failsWith = async (code: string, said: Promise<unknown>) => {
    if (operation.unknown !== undefined) expect(await said).toEqual(operation.unknown);
    else await expect(said).rejects.toMatchObject({ code });
  };

  it.each(faults)("comes through %s", (__, ...planned) => comesThrough(...planned));

  if (operation.transaction) {
    it.each<[string, ...SingleFault[]]>([
      ["lost replies", "lost-reply", "lost-reply"],
      ["a hang after it was applied", { hang: true, applied: true }],
      ["a 500 after it was applied", "500-after"],
      ["being applied twice", { duplicate: "second" }],
    ])("case 24: comes through %s on a server that ignores tokens", async (__, ...planned) => {
      dynamo.fixture.proxy.when("TransactWriteItems", "strip-token");
      await comesThrough(...planned);
    });
  }

  it("whose replies are all lost says that it isn't known, and leaves what it would have left", async () => {
    const expected = await withoutFault(operation);
    const { scene, granted } = await prepared(operation);
    const rule = dynamo.fixture.proxy.when(hit, "lost-reply");
    await failsWith("OUTCOME_UNKNOWN", operation.act(scene.through(dynamo.faulty, 5_000), granted));
    // After 50, 100, 200, 400, 800 and 1,600 ms.
    expect(rule.hits).toBe(7);
    rule.remove();
    if (half) expect(await operation.act(scene, granted)).toMatchObject(says as object);
    else expect(await keptOf(scene)).toEqual(expected.kept);
  });

  it.each<[string, string, Fault]>([
    ["breaks before it is applied says that it isn't known", "OUTCOME_UNKNOWN", "drop"],
    ["is answered by 500 before it is applied says that it isn't known", "OUTCOME_UNKNOWN", "500-before"],
    ["is throttled says that nothing was written", "STORE_UNAVAILABLE", "throttle"],
  ])("that always %s, and has changed nothing", async (__, code, fault) => {
    const { scene, granted } = await prepared(operation);
    const before = await keptOf(scene);
    dynamo.fixture.proxy.when(hit, fault);
    await failsWith(code, operation.act(scene.through(dynamo.faulty, 5_000), granted));
    if (half) expect((await dynamo.controlItem(scene.job)).owner).not.toBe("owner-last");
    else expect(await keptOf(scene)).toEqual(before);
  });

  it("is tried again only within its budget, and not before its time", async () => {
    const { scene, granted } = await prepared(operation);
    const rule = dynamo.fixture.proxy.when(hit, "drop");
    const from = scene.clock.now();
    await failsWith("OUTCOME_UNKNOWN", operation.act(scene.through(dynamo.faulty, 1_000), granted));
    // After 50, 100, 200 and 400 ms; the fifth pause would end past the budget.
    expect([rule.hits, scene.clock.now() - from]).toEqual([5, 750]);
  });
});

it("a request that is never answered is given up after the request timeout, and its outcome counts as unknown", async () => {
  const scene = openScene(dynamo.store);
  await known(scene);
  const rule = dynamo.fixture.proxy.when("UpdateItem", { hang: true });
  await expect(scene.through(dynamo.hasty, 100).acquire()).rejects.toMatchObject({
    code: "OUTCOME_UNKNOWN",
    cause: { name: expect.stringMatching(/^(Abort|Timeout)Error$/) },
  });
  expect(rule.hits).toBe(2);
});
