import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import { failure, refreshOf, Stage, success } from "./aggregator-stage.ts";

let stage: Stage;

beforeAll(async () => {
  stage = await Stage.create("aggregator-fence");
});
afterEach(() => stage.stopServices());
afterAll(() => stage?.close());

/** The topic as it is after somebody deleted it: the same name, the same partitions, no records. */
async function recreate(topic: string, partitions: number): Promise<void> {
  const admin = stage.kafka.admin();
  await admin.connect();
  try {
    await admin.deleteTopics({ topics: [topic] });
    const gone = async () => !(await admin.listTopics()).includes(topic);
    await waitFor("the topic is gone", gone, (is) => is);
    await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: partitions }] });
  } finally {
    await admin.disconnect();
  }
}

describe("a topic that was re-created without a new generation", () => {
  it("stops the partitions that would lose their writes, pages, commits nothing of them, and leaves the others alone", async () => {
    const { name, partitions } = stage.environment.topics.tokenOutcome;
    const [known, elsewhere] = [stage.collection(0), stage.collection(1)];
    const before = refreshOf(known, ["1", success("A")], ["2", success("A")]);
    const failing = stage.collection(2);
    const [one, two, ...rest] = refreshOf(failing, ...["1", "2", "3"].map((id) => [id, failure("token_not_found")] as const));
    const half = [one, two].flatMap((outcome) => outcome ?? []);
    await stage.start();
    await stage.produce([...half, ...before]);
    await stage.completed(before);
    await waitFor(
      "half of it",
      () => stage.progress(one?.refresh_id ?? ""),
      (row) => row?.failed_count === 2,
    );
    await stage.stopServices();
    const stored = await stage.token(known, "2");

    await recreate(name, partitions);
    const lost = refreshOf(known, ["2", success("B")]);
    const other = refreshOf(elsewhere, ["1", success("C")]);
    const [record] = await stage.produce([...lost, ...other, ...rest]);
    expect(record?.offset).toBe(0);
    const service = await stage.start();
    expect(await stage.completed(other)).toMatchObject({ succeeded: 1 });
    const pages = () => service.logs.filter(({ event }) => event === "partition.fenced");
    await waitFor("both pages", pages, (found) => found.length > 1);
    const paged = pages().toSorted((a, b) => Number(a.partition) - Number(b.partition));
    expect(paged).toEqual([
      expect.objectContaining({ level: "fatal", topic: name, partition: 0, reason: expect.stringContaining(`${known}:2`) }),
      expect.objectContaining({ level: "fatal", topic: name, partition: 2, reason: expect.stringContaining("refresh") }),
    ]);
    expect((await service.health.ready()).fence).toContain(`${name}/0`);
    expect((await service.metrics.text()).body).toMatch(/^partitions_fenced\S* 2$/m);

    expect(await stage.token(known, "2")).toEqual(stored);
    expect(await stage.progress(lost[0]?.refresh_id ?? "")).toBeUndefined();
    // The commit follows the completion; the others would have come with it.
    await waitFor(
      "the other's commit",
      () => committed(name, 1),
      (offset) => offset === 1,
    );
    expect(await committed(name, 0)).not.toBeGreaterThan(0);
    expect(await committed(name, 2)).not.toBeGreaterThan(0);
    expect(service.failures).toEqual([]);
  });
});

/** -1 where nothing is committed. */
async function committed(topic: string, partition: number): Promise<number> {
  const admin = stage.kafka.admin();
  await admin.connect();
  try {
    const groupId = `${stage.environment.name}.aggregator`;
    const [offsets] = await admin.fetchOffsets({ groupId, topics: [topic] });
    return Number(offsets?.partitions.find((entry) => entry.partition === partition)?.offset ?? -1);
  } finally {
    await admin.disconnect();
  }
}
