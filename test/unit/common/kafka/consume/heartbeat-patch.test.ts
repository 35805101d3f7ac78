import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { patchHeartbeat } from "../../../../../services/common/kafka/consume/heartbeat-patch.ts";

interface Group {
  heartbeat(options: { interval: number }): Promise<void>;
}

const ConsumerGroup = createRequire(import.meta.url)("kafkajs/src/consumer/consumerGroup.js") as new (options: object) => Group;

function group(standing: { memberId: string | null; lastRequest: number }) {
  const sent: string[] = [];
  const made = new ConsumerGroup({
    retry: {},
    logger: { namespace: () => undefined },
    topics: [],
    instrumentationEmitter: { emit: () => undefined },
  });
  const coordinator = {
    heartbeat: async ({ memberId }: { memberId: string }) => {
      sent.push(memberId);
    },
  };
  return { sent, group: Object.assign(made, { ...standing, coordinator, groupId: "group", groupGenerationId: 1 }) };
}

patchHeartbeat();

it("a member whose last join was not answered is told to join again by its next heartbeat", async () => {
  const { group: lost, sent } = group({ memberId: null, lastRequest: 0 });
  await expect(lost.heartbeat({ interval: 100 })).rejects.toMatchObject({ type: "UNKNOWN_MEMBER_ID" });
  expect(sent).toEqual([]);
});

it("a member is heard although the wall clock was set back", async () => {
  const { group: joined, sent } = group({ memberId: "one", lastRequest: Date.now() + 3_600_000 });
  await joined.heartbeat({ interval: 100 });
  expect(sent).toEqual(["one"]);
});
