import { expect, it } from "vitest";
import { StopSequence } from "../../../../services/common/lifecycle/stop-sequence.ts";
import { createLogger } from "../../../../services/common/logging/logger.ts";

const silent = createLogger("test", "silent");

it("stops in reverse order of registration, and the others too when one step fails", async () => {
  const stopped: string[] = [];
  const stops = new StopSequence(silent);
  stops.add("store", async () => void stopped.push("store"));
  stops.add("broken", async () => Promise.reject(new Error("cannot")));
  stops.add("consumer", async () => void stopped.push("consumer"));
  expect(await stops.run(1_000)).toBe(false);
  expect(stopped).toEqual(["consumer", "store"]);
});

it("gives up at the deadline and says so", async () => {
  const stops = new StopSequence(silent);
  stops.add("hanging", () => new Promise(() => {}));
  expect(await stops.run(10)).toBe(false);
});

it("says that everything stopped in time", async () => {
  const stops = new StopSequence(silent);
  stops.add("quick", async () => {});
  expect(await stops.run(1_000)).toBe(true);
});
