import { AssignerProtocol, type Cluster, type PartitionAssigner } from "kafkajs";

export interface GroupMember {
  readonly memberId: string;
  readonly topics: readonly string[];
  /** The partition numbers that it had until now. */
  readonly owned: readonly number[];
}

/** Partition numbers by topic. */
export type MemberAssignment = Readonly<Record<string, number[]>>;

/**
 * Partition p of every subscribed topic goes to one member: whoever calls a project's API sees its retries too. Numbers are spread
 * evenly, and stay where they were as far as that allows: a partition that moves repeats its unfinished window. A topic that the
 * number's owner has not subscribed to goes to the next member that has.
 */
export function assignPartitions(
  members: readonly GroupMember[],
  partitionCounts: ReadonlyMap<string, number>,
): ReadonlyMap<string, MemberAssignment> {
  const sorted = members.toSorted((a, b) => (a.memberId < b.memberId ? -1 : 1));
  const assignment = new Map(sorted.map(({ memberId }) => [memberId, {} as Record<string, number[]>]));
  const owners = ownersOf(sorted, Math.max(0, ...partitionCounts.values()));
  for (const [topic, count] of partitionCounts) {
    for (let partition = 0; partition < count; partition += 1) {
      const owner = nextSubscriber(sorted, owners[partition] ?? 0, topic);
      const topics = owner === undefined ? undefined : assignment.get(owner.memberId);
      if (topics !== undefined) topics[topic] = [...(topics[topic] ?? []), partition];
    }
  }
  return assignment;
}

function nextSubscriber(members: readonly GroupMember[], from: number, topic: string): GroupMember | undefined {
  const turned = [...members.slice(from), ...members.slice(0, from)];
  return turned.find(({ topics }) => topics.includes(topic));
}

/** Index of the member that gets each partition number: loads differ by one at most. */
function ownersOf(members: readonly GroupMember[], count: number): number[] {
  const owners: (number | undefined)[] = Array.from({ length: count });
  const loads = members.map(() => 0);
  const share = Math.floor(count / members.length);
  let extra = count % members.length;
  const give = (partition: number, member: number): void => {
    owners[partition] = member;
    loads[member] = (loads[member] ?? 0) + 1;
  };
  const keep = (limit: number, mayKeep: () => boolean): void => {
    for (const [member, { owned }] of members.entries()) {
      for (const partition of owned) {
        const free = partition < count && owners[partition] === undefined;
        if (free && (loads[member] ?? 0) < limit && mayKeep()) give(partition, member);
      }
    }
  };
  keep(share, () => true);
  keep(share + 1, () => extra-- > 0);
  for (let partition = 0; partition < count; partition += 1) {
    if (owners[partition] === undefined) give(partition, loads.indexOf(Math.min(...loads)));
  }
  return owners.map((owner) => owner ?? 0);
}

/** `owned`: the partition numbers that this member has now; it tells them to the member that assigns. */
export function sameMemberAssignor(owned: () => Iterable<number>): PartitionAssigner {
  const name = "same-member";
  const version = 0;
  return ({ cluster }) => ({
    name,
    version,
    protocol: ({ topics }) => ({
      name,
      metadata: AssignerProtocol.MemberMetadata.encode({ version, topics, userData: encodeNumbers(new Set(owned())) }),
    }),
    async assign({ members }) {
      const decoded = members.map(({ memberId, memberMetadata }) => {
        const metadata = AssignerProtocol.MemberMetadata.decode(memberMetadata);
        return { memberId, topics: metadata?.topics ?? [], owned: decodeNumbers(metadata?.userData) };
      });
      const assignment = assignPartitions(decoded, await partitionCountsOf(cluster, decoded));
      return [...assignment].map(([memberId, topics]) => ({
        memberId,
        memberAssignment: AssignerProtocol.MemberAssignment.encode({ version, assignment: topics, userData: Buffer.alloc(0) }),
      }));
    },
  });
}

/** The member that assigns may not have subscribed to everything that the others have. */
async function partitionCountsOf(cluster: Cluster, members: readonly GroupMember[]): Promise<Map<string, number>> {
  const topics = [...new Set(members.flatMap((member) => member.topics))].sort();
  await cluster.addMultipleTargetTopics(topics);
  return new Map(topics.map((topic) => [topic, cluster.findTopicPartitionMetadata(topic).length]));
}

function encodeNumbers(numbers: Iterable<number>): Buffer {
  return Buffer.from(JSON.stringify([...numbers]));
}

/** Anything but a list of partition numbers counts as an empty one: another release may write something else. */
function decodeNumbers(bytes: Buffer | undefined): number[] {
  try {
    const numbers: unknown = JSON.parse(bytes?.toString() ?? "");
    return Array.isArray(numbers) ? numbers.filter((entry) => Number.isInteger(entry) && entry >= 0) : [];
  } catch {
    return [];
  }
}
