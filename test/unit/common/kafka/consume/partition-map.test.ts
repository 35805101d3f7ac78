import fc from "fast-check";
import { expect, it } from "vitest";
import { PartitionMap } from "../../../../../services/common/kafka/consume/partition-map.ts";

const place = fc.record({ topic: fc.constantFrom("a", "b", "0/a"), partition: fc.nat(2) });
const step = fc.oneof(
  fc.record({ kind: fc.constant("set" as const), place, value: fc.nat(9) }),
  fc.record({ kind: fc.constant("delete" as const), place }),
  fc.record({ kind: fc.constant("clear" as const) }),
);

it("behaves as a Map whose keys are places, its order included", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const [map, model] = [new PartitionMap<number>(), new Map<string, [{ topic: string; partition: number }, number]>()];
      for (const one of steps) {
        if (one.kind === "clear") {
          map.clear();
          model.clear();
          continue;
        }
        const key = JSON.stringify([one.place.topic, one.place.partition]);
        if (one.kind === "delete") expect(map.delete(one.place)).toBe(model.delete(key));
        else {
          map.set(one.place, one.value);
          model.set(key, [one.place, one.value]);
        }
        expect(map.get(one.place)).toBe(model.get(key)?.[1]);
        expect(map.has(one.place)).toBe(model.has(key));
      }
      expect([...map]).toEqual([...model.values()]);
      expect(map.partitions).toEqual([...model.values()].map(([partition]) => partition));
      expect(map.size).toBe(model.size);
    }),
  );
});
