import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { silent } from "../../../deploy/local/reporter.ts";
import { Bench } from "../../benchmark/bench.ts";

function createBench(signal = new AbortController().signal): Bench {
  return new Bench({ row: "row", rounds: 1, signal, reporter: silent });
}

it("closes what it owns, the newest first", async () => {
  const bench = createBench();
  const closed: string[] = [];
  const close = async (name: string) => void closed.push(name);
  await bench.own(Promise.resolve("first"), close);
  await bench.own(Promise.resolve("second"), close);
  await bench.close();
  expect(closed).toEqual(["second", "first"]);
});

it("closes what was still starting when it was interrupted", async () => {
  const controller = new AbortController();
  const bench = createBench(controller.signal);
  const { promise, resolve } = Promise.withResolvers<string>();
  const closed: string[] = [];
  const owned = bench.own(promise, async (name) => void closed.push(name));
  controller.abort(new Error("interrupted"));
  const closing = bench.close();
  await turn();
  resolve("late");
  await expect(owned).rejects.toThrow("interrupted");
  await closing;
  expect(closed).toEqual(["late"]);
});

it("does not close what never came up", async () => {
  const bench = createBench();
  const owned = bench.own(Promise.reject<string>(new Error("no")), async () => expect.unreachable());
  await expect(owned).rejects.toThrow("no");
  await bench.close();
});

it("goes on with nothing after an interruption", () => {
  const bench = createBench(AbortSignal.abort(new Error("interrupted")));
  expect(() => bench.turn("side", 0)).toThrow("interrupted");
});
