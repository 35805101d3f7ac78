import { expect, test } from "vitest";
import { Brake } from "../../../../../services/common/kafka/consume/brake.ts";
import { Pauses } from "../../../../../services/common/kafka/consume/pauses.ts";
import { Progress } from "../../../../../services/common/kafka/consume/progress.ts";

const partition = { topic: "t", partition: 0 };
const other = { topic: "t", partition: 1 };

test("a partition is fetched again only when the last reason against it is gone", () => {
  const pauses = new Pauses();
  expect(pauses.add(partition, "budget")).toBe(true);
  expect(pauses.add(partition, "caller")).toBe(false);
  expect(pauses.remove(partition, "budget")).toBe(false);
  expect(pauses.remove(partition, "held")).toBe(false);
  expect(pauses.paused(partition)).toBe(true);
  expect(pauses.paused(other)).toBe(false);
  expect(pauses.remove(partition, "caller")).toBe(true);
  expect(pauses.paused(partition)).toBe(false);
});

test("a lost partition's reasons are gone when it comes back", () => {
  const pauses = new Pauses();
  pauses.add(partition, "caller");
  pauses.forget(partition);
  expect(pauses.paused(partition)).toBe(false);
});

test("the brake engages after so many poison records in a row, and one processed record releases it", () => {
  const brake = new Brake(3);
  brake.countPoison();
  brake.countPoison();
  brake.countProcessed();
  brake.countPoison();
  brake.countPoison();
  expect(brake.engaged).toBe(false);
  expect(brake.health()).toBeUndefined();
  brake.countPoison();
  expect(brake.engaged).toBe(true);
  expect(brake.health()).toContain("3 records in a row");
  brake.countProcessed();
  expect(brake.engaged).toBe(false);
});

test("a partition stands still only while it has something to do and its mark does not move", () => {
  const progress = new Progress(() => 100);
  progress.note(partition, 5, 0);
  progress.note(partition, 5, 90);
  expect(progress.health(100)).toBeUndefined();
  expect(progress.health(1_500)).toBe("t partition 0 has stood still for 2 s");
  progress.note(partition, 6, 110);
  expect(progress.health(210)).toBeUndefined();
  progress.note(partition, undefined, 211);
  progress.note(partition, 6, 300);
  expect(progress.health(400)).toBeUndefined();
  progress.forget();
  expect(progress.health(10_000)).toBeUndefined();
});
