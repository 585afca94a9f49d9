/** What pausing, thawing and killing a machine does to its requests and its timers; no request is sent here. */
import { settableClock } from "cronfence/testing";
import { expect, it } from "vitest";
import { type Machine, machineOn, placeHere } from "../../../src/testing/drills/machine.ts";
import type { ProxiedRequest } from "../../../src/testing/fault-proxy.ts";

const start = Date.parse("2026-01-12T12:00:00Z");
const machineAt = (options = {}) => {
  const time = settableClock(start);
  return { time, machine: machineOn("m", time, options) };
};

/** Sends a request through the machine's hands, and notes how far it has come. */
const send = (machine: Machine) => {
  const sent = { at: "before", faults: [] as unknown[] };
  const [hooks, ...faults] = [machine.faultFor({} as ProxiedRequest)].flat() as {
    before?: () => Promise<void>;
    after?: () => Promise<void>;
  }[];
  sent.faults = faults;
  const go = async () => {
    await hooks?.before?.();
    sent.at = "done";
    await hooks?.after?.();
    sent.at = "answered";
  };
  go().catch(() => {
    sent.at += ", broken";
  });
  return sent;
};
const turn = () => new Promise((resolve) => setImmediate(resolve));

it("lets requests pass while it runs", async () => {
  const { machine } = machineAt();
  const sent = send(machine);
  await turn();
  expect(sent).toEqual({ at: "answered", faults: [] });
  expect(machine.requests).toHaveLength(1);
});

it("holds back requests, replies and timers while it is paused, and lets them go when it thaws", async () => {
  const { machine, time } = machineAt();
  const fired: number[] = [];
  machine.clock.after(10, () => void fired.push(machine.clock.now()));
  const cancel = machine.clock.after(10, () => void fired.push(-1));
  void machine.at(0, { after: machine.pause });
  const [unanswered, beside] = [send(machine), send(machine)];
  await turn();
  time.advance(1_000);
  expect([unanswered.at, beside.at, fired]).toEqual(["done", "done", []]);
  const late = send(machine);
  await turn();
  expect(late.at).toBe("before");
  cancel();
  machine.thaw();
  expect(fired).toEqual([start + 1_000]);
  await turn();
  expect([unanswered.at, beside.at, late.at]).toEqual(["answered", "answered", "answered"]);
});

it("lets something happen at a request by its number, before it is done or after, and says when", async () => {
  const { machine } = machineAt();
  const happened: string[] = [];
  void machine.at(0, { fault: "lost-reply" });
  void machine.at(1, { before: () => void happened.push("before"), after: () => void happened.push("after") });
  const begun = machine.at(2, { before: () => void happened.push("third") }).then(() => happened.push("begun"));
  expect(send(machine).faults).toEqual(["lost-reply"]);
  send(machine);
  await turn();
  expect(happened).toEqual(["before", "after"]);
  send(machine);
  await begun;
  expect(happened).toEqual(["before", "after", "third", "begun"]);
});

it("does nothing any more once it is dead, and breaks its connections when it is buried", async () => {
  const { machine, time } = machineAt();
  const fired: string[] = [];
  machine.clock.after(10, () => void fired.push("timer"));
  void machine.at(0, { after: machine.kill });
  const applied = send(machine);
  await turn();
  const unsent = send(machine);
  time.advance(60_000);
  await turn();
  machine.thaw();
  await turn();
  expect([applied.at, unsent.at, fired, machine.dead]).toEqual(["done", "before", [], true]);
  expect(machine.clock.now()).toBe(start);
  machine.bury();
  const late = send(machine);
  await turn();
  expect([applied.at, unsent.at, late.at]).toEqual(["done, broken", "before, broken", "before, broken"]);
});

it("has a clock and a Date of its own, and its timers run on it", () => {
  const { machine, time } = machineAt({ aheadMs: 5_000, dateAheadMs: -1_000 });
  expect([machine.clock.now(), machine.dateNow()]).toEqual([start + 5_000, start + 4_000]);
  const places: unknown[] = [];
  machine.clock.after(10, () => void places.push(placeHere()));
  time.advance(10);
  machine.run(() => void places.push(placeHere()), "mail");
  expect(places).toEqual([{ machine }, { machine, once: "mail" }]);
  expect(placeHere()).toBeUndefined();
});
