import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assignPartitions, type GroupMember } from "../../../../../services/common/kafka/consume/assignor.ts";

const member = (memberId: string, topics: readonly string[], owned: readonly number[] = []): GroupMember => ({
  memberId,
  topics,
  owned,
});

const counts = (partitions: Record<string, number>): Map<string, number> => new Map(Object.entries(partitions));

const members = (topics: readonly string[]) =>
  fc
    .uniqueArray(fc.record({ memberId: fc.uuid(), owned: fc.uniqueArray(fc.nat({ max: 20 })) }), {
      minLength: 1,
      maxLength: 8,
      selector: ({ memberId }) => memberId,
    })
    .map((list) => list.map(({ memberId, owned }) => member(memberId, topics, owned)));

describe("the assignment of partitions", () => {
  test("gives partition p of every topic to one member, and every partition to somebody", () => {
    const topics = ["main", "tier-a", "tier-b"];
    fc.assert(
      fc.property(members(topics), fc.integer({ min: 1, max: 16 }), (group, count) => {
        const assignment = assignPartitions(group, counts({ main: count, "tier-a": count, "tier-b": count }));
        const all = [...assignment.values()];
        for (const own of all) expect(new Set(topics.map((topic) => (own[topic] ?? []).join())).size).toBe(1);
        expect(all.flatMap((own) => own.main ?? []).toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: count }, (_, p) => p),
        );
      }),
    );
  });

  test("spreads evenly, whatever members had before", () => {
    fc.assert(
      fc.property(members(["main"]), fc.integer({ min: 1, max: 16 }), (group, count) => {
        const loads = [...assignPartitions(group, counts({ main: count })).values()].map((own) => own.main?.length ?? 0);
        expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
      }),
    );
  });

  test("does not depend on the order in which the members are told", () => {
    fc.assert(
      fc.property(members(["main"]), fc.integer({ min: 1, max: 16 }), (group, count) => {
        const sorted = (list: readonly GroupMember[]) => [...assignPartitions(list, counts({ main: count }))].toSorted();
        expect(sorted(group.toReversed())).toEqual(sorted(group));
      }),
    );
  });

  test("moves nothing that need not move when a member joins or leaves", () => {
    fc.assert(
      fc.property(members(["main"]), fc.integer({ min: 1, max: 16 }), fc.uuid(), (group, count, newcomer) => {
        const before = assignPartitions(
          group.map((one) => ({ ...one, owned: [] })),
          counts({ main: count }),
        );
        const settled = group.map((one) => ({ ...one, owned: before.get(one.memberId)?.main ?? [] }));
        const after = assignPartitions([...settled, member(newcomer, ["main"])], counts({ main: count }));
        const moved = settled.flatMap(({ memberId, owned }) => owned.filter((p) => !after.get(memberId)?.main?.includes(p)));
        expect(moved).toHaveLength(after.get(newcomer)?.main?.length ?? 0);
        expect(assignPartitions(settled, counts({ main: count }))).toEqual(before);
      }),
    );
  });

  test("gives a topic only to members that subscribed to it, and keeps the others of the number together", () => {
    const group = [member("a", ["old", "new"]), member("b", ["old"]), member("c", ["old", "new"])];
    const assignment = assignPartitions(group, counts({ old: 6, new: 6 }));
    expect(assignment.get("b")).toEqual({ old: expect.any(Array) });
    const newOnes = ["a", "c"].flatMap((memberId) => assignment.get(memberId)?.new ?? []);
    expect(newOnes.toSorted()).toEqual([0, 1, 2, 3, 4, 5]);
    for (const memberId of ["a", "c"]) {
      const { old = [], new: fresh = [] } = assignment.get(memberId) ?? {};
      expect(old.filter((p) => !fresh.includes(p))).toEqual([]);
    }
  });

  test("assigns a topic with fewer partitions to the owners of those numbers", () => {
    const assignment = assignPartitions(
      [member("a", ["big", "small"]), member("b", ["big", "small"])],
      counts({ big: 4, small: 2 }),
    );
    const flat = [...assignment.values()];
    expect(flat.flatMap(({ small = [] }) => small).toSorted()).toEqual([0, 1]);
    for (const { big = [], small = [] } of flat) expect(small.every((p) => big.includes(p))).toBe(true);
  });
});
