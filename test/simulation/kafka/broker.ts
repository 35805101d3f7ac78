import type { TopicPartition } from "../../../services/common/kafka/contracts.ts";
import type { Chance } from "../chance.ts";
import type { Network, Reply } from "../network.ts";
import type { VirtualTime } from "../time/virtual-time.ts";
import { Group } from "./group.ts";
import type { Log, LogRecord } from "./log.ts";

export interface FetchPosition extends TopicPartition {
  readonly offset: number;
}

export interface FetchedPartition extends TopicPartition {
  readonly highWatermark: number;
  readonly records: readonly LogRecord[];
}

interface Waiting {
  readonly positions: readonly FetchPosition[];
  readonly reply: Reply<readonly FetchedPartition[]>;
}

/** How long a fetch without records waits. Longer than ours, and without harm: nothing is missed, and less has to be simulated. */
const fetchWaitMs = 1_000;

/** The brokers together: the log, the groups, and fetches that wait for records. */
export class Broker {
  readonly log: Log;
  readonly network: Network;
  /** Partition p is led by node 1 + p mod nodeCount. */
  readonly nodeCount: number;
  readonly #time: VirtualTime;
  readonly #chance: Chance;
  readonly #groups = new Map<string, Group>();
  readonly #waiting = new Set<Waiting>();
  readonly #onCommit: (group: string, partition: TopicPartition, from: number, to: number) => void;

  constructor(options: {
    readonly log: Log;
    readonly network: Network;
    readonly nodeCount: number;
    readonly time: VirtualTime;
    readonly chance: Chance;
    readonly onCommit: (group: string, partition: TopicPartition, from: number, to: number) => void;
  }) {
    this.log = options.log;
    this.network = options.network;
    this.nodeCount = options.nodeCount;
    this.#time = options.time;
    this.#chance = options.chance;
    this.#onCommit = options.onCommit;
    this.log.onAppend((records) => this.#wake(records));
  }

  nodeOf(partition: number): number {
    return 1 + (partition % this.nodeCount);
  }

  group(id: string): Group {
    const known = this.#groups.get(id);
    if (known !== undefined) return known;
    const onCommit = (partition: TopicPartition, from: number, to: number): void => this.#onCommit(id, partition, from, to);
    const group = new Group({ time: this.#time, protocol: "same-member", onCommit });
    this.#groups.set(id, group);
    return group;
  }

  fetch(positions: readonly FetchPosition[], reply: Reply<readonly FetchedPartition[]>): void {
    if (this.#answer(positions, reply)) return;
    const waiting = { positions, reply };
    this.#waiting.add(waiting);
    this.#time.after(
      fetchWaitMs,
      () => {
        if (this.#waiting.delete(waiting)) reply.answer(this.#read(positions), { background: true });
      },
      { background: true },
    );
  }

  #wake(records: readonly LogRecord[]): void {
    const [first] = records;
    for (const waiting of [...this.#waiting]) {
      const isWanted = waiting.positions.some(({ topic, partition }) => topic === first?.topic && partition === first.partition);
      if (isWanted && this.#answer(waiting.positions, waiting.reply)) this.#waiting.delete(waiting);
    }
  }

  #answer(positions: readonly FetchPosition[], reply: Reply<readonly FetchedPartition[]>): boolean {
    if (!positions.some((position) => this.log.end(position) > position.offset)) return false;
    reply.answer(this.#read(positions));
    return true;
  }

  /** A partition brings its whole share, or less: how much of it fits is a matter of bytes, which are not counted here. */
  #read(positions: readonly FetchPosition[]): FetchedPartition[] {
    return positions.map(({ topic, partition, offset }) => {
      const all = this.log.records({ topic, partition });
      const count = this.#chance.happens(0.2) ? this.#chance.between(1, 5) : 500;
      return { topic, partition, highWatermark: all.length, records: all.slice(offset, offset + count) };
    });
  }
}
