import { expect, it } from "vitest";
import { inTurns } from "../../benchmark/measure/rounds.ts";

const side = (measure: (round: number) => Promise<number>) => ({ processes: [], tokenCount: 1, measure });

it("measures the sides in turns, and leaves the warm-up out", async () => {
  const order: string[] = [];
  const note = (name: string) =>
    side(async (round) => {
      order.push(`${name}${round}`);
      return round;
    });
  const { samples } = await inTurns({ a: note("a"), b: note("b") }, { rounds: 2, warmUps: 1, onTurn: () => undefined });
  expect(order).toEqual(["a-1", "b-1", "a0", "b0", "a1", "b1"]);
  expect(samples).toEqual({ a: [0, 1], b: [0, 1] });
});

it("tells whose turn it is before it begins", async () => {
  const told: string[] = [];
  const check = side(async (round) => {
    expect(told.at(-1)).toBe(`a ${round}`);
    return 0;
  });
  await inTurns({ a: check }, { rounds: 1, warmUps: 1, onTurn: (name, round) => told.push(`${name} ${round}`) });
  expect(told).toEqual(["a -1", "a 0"]);
});
