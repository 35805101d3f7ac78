import type { TopicPartition } from "../../common/kafka/contracts.ts";
import type { TopicDefinition } from "../../common/kafka/topics.ts";
import { Away, type Backlog } from "./away.ts";
import { HeldBack, isOverdue } from "./held-back.ts";
import type { Scheduler } from "./scheduler.ts";
import { nameOf, type Position, type Work } from "./work.ts";

/** A fast host may catch up meanwhile: README, Fetching. */
const catchUpMs = 250;
/** A queue that overflowed so recently need not show again that it is slow: it keeps in memory what takes its host as long. */
const slowForMs = 2_000;
const slowQueueCount = 1_000;
const heldBackEveryMs = 2_000;
const reliefEveryMs = 1_000;

/**
 * Why records are moved.
 * - surplus: their queue has more than it keeps, and behind them in their partition are records that nobody has seen.
 * - full_window: nothing is read any more, of no partition.
 * - held_back: they kept the low-water mark of their partition where it was.
 */
export const moveCauses = ["surplus", "full_window", "held_back"] as const;
export type MoveCause = (typeof moveCauses)[number];

/** Records of one queue that go to a delay tier as they are: waiting is not an attempt. */
export interface Move {
  readonly cause: MoveCause;
  readonly tier: TopicDefinition;
  readonly works: readonly Work[];
}

export interface OverflowPorts {
  /** Records that nobody has seen and that may be due are behind in the partition. */
  unread(partition: TopicPartition): boolean;
  pause(partition: TopicPartition): void;
  resume(partition: TopicPartition): void;
  mayAct(partition: TopicPartition): boolean;
  /** Nothing is fetched because too much is taken and not finished. */
  windowFull(): boolean;
}

interface Crowded {
  readonly partition: TopicPartition;
  readonly queues: ReadonlySet<string>;
  readonly untilMs: number;
}

/**
 * Keeps the window open: what a slow host cannot take soon leaves the memory for a delay tier, so that the records behind it are
 * seen. Decides only; whoever asks makes the moves. Times are monotonic milliseconds.
 */
export class Overflow {
  readonly #scheduler: Scheduler<Work>;
  readonly #tiers: readonly TopicDefinition[];
  readonly #ports: OverflowPorts;
  readonly #away: Away;
  readonly #heldBack = new HeldBack();
  /** Paused partitions, by name. Every one is resumed when its time is over, whatever happened meanwhile. */
  readonly #crowded = new Map<string, Crowded>();
  /** When a queue overflowed last. */
  readonly #slow = new Map<string, number>();
  #reliefAtMs = Number.POSITIVE_INFINITY;
  #heldBackAtMs = 0;

  constructor(options: { scheduler: Scheduler<Work>; tiers: readonly TopicDefinition[]; ports: OverflowPorts }) {
    this.#scheduler = options.scheduler;
    this.#tiers = options.tiers;
    this.#ports = options.ports;
    this.#away = new Away(options.tiers);
  }

  /** These works of one partition were offered to the scheduler. */
  taken(partition: TopicPartition, works: readonly Work[], nowMs: number): readonly Move[] {
    for (const { queue } of works) this.#away.returned(queue, partition.topic);
    if (this.#ports.windowFull()) this.#reliefAtMs = Math.min(this.#reliefAtMs, nowMs + catchUpMs);
    const queues = new Set(works.map(({ queue }) => queue));
    const crowding = [...queues].filter((queue) => this.#scheduler.surplus(queue, nowMs) > 0);
    if (crowding.length === 0 || !this.#ports.unread(partition)) return [];
    const slow = crowding.filter((queue) => nowMs - (this.#slow.get(queue) ?? Number.NEGATIVE_INFINITY) < slowForMs);
    if (slow.length < crowding.length) this.#pause(partition, crowding, nowMs);
    return this.#ports.mayAct(partition) ? slow.flatMap((queue) => this.#shedSurplus(queue, nowMs)) : [];
  }

  /** What has to be moved now. `underWay`: everything that was taken and is not finished. */
  look(underWay: Iterable<Work>, nowMs: number): readonly Move[] {
    const moves: Move[] = [];
    for (const crowded of this.#crowded.values()) {
      if (nowMs >= crowded.untilMs) moves.push(...this.#release(crowded, nowMs));
    }
    if (nowMs >= this.#reliefAtMs) {
      const full = this.#ports.windowFull();
      this.#reliefAtMs = full ? nowMs + reliefEveryMs : Number.POSITIVE_INFINITY;
      if (full) moves.push(...this.#relieve(underWay, nowMs));
    }
    if (nowMs >= this.#heldBackAtMs && this.#scheduler.waiting > 0) {
      this.#heldBackAtMs = nowMs + heldBackEveryMs;
      moves.push(...this.#moveHeldBack(nowMs));
    }
    return moves;
  }

  /** When `look` has something to do; undefined when never, as things stand. */
  nextLookMs(): number | undefined {
    const nextMs = Math.min(
      this.#reliefAtMs,
      this.#scheduler.waiting > 0 ? this.#heldBackAtMs : Number.POSITIVE_INFINITY,
      ...Array.from(this.#crowded.values(), ({ untilMs }) => untilMs),
    );
    return Number.isFinite(nextMs) ? nextMs : undefined;
  }

  /** A record of the queue was put into a tier, to be tried again. */
  putOff(queue: string, tier: TopicDefinition): void {
    this.#away.left(queue, tier.name);
  }

  /** The move was given up. */
  undo({ tier, works }: Move): void {
    for (const { queue } of works) this.#away.returned(queue, tier.name);
  }

  /** The record is done with; `moved`: it was not called. */
  left(position: Position, how: { readonly moved: boolean }): void {
    this.#heldBack.left(position, how);
  }

  lost(partitions: readonly TopicPartition[]): void {
    const names = new Set(partitions.map(nameOf));
    for (const crowded of this.#crowded.values()) if (names.has(nameOf(crowded.partition))) this.#resume(crowded);
    this.#heldBack.lost(partitions);
    this.#away.forget();
  }

  stop(): void {
    for (const crowded of this.#crowded.values()) this.#resume(crowded);
  }

  #pause(partition: TopicPartition, queues: readonly string[], nowMs: number): void {
    const name = nameOf(partition);
    const before = this.#crowded.get(name);
    if (before === undefined) this.#ports.pause(partition);
    const untilMs = before?.untilMs ?? nowMs + catchUpMs;
    this.#crowded.set(name, { partition, queues: new Set([...(before?.queues ?? []), ...queues]), untilMs });
  }

  #resume({ partition }: Crowded): void {
    this.#crowded.delete(nameOf(partition));
    this.#ports.resume(partition);
  }

  #release(crowded: Crowded, nowMs: number): readonly Move[] {
    const { partition, queues } = crowded;
    this.#resume(crowded);
    if (!this.#ports.unread(partition) || !this.#ports.mayAct(partition)) return [];
    return [...queues].flatMap((queue) => this.#shedSurplus(queue, nowMs));
  }

  #shedSurplus(queue: string, nowMs: number): readonly Move[] {
    return this.#shed(queue, { count: this.#scheduler.surplus(queue, nowMs), cause: "surplus", nowMs });
  }

  /**
   * Half of what waits leaves: the surplus of every queue, and if that is not enough, what the queues with the longest waits cannot
   * do in the time that a queue keeps work for. Not asked is what is behind in the partitions: it is not known any more.
   */
  #relieve(underWay: Iterable<Work>, nowMs: number): readonly Move[] {
    const counts = new Map<string, number>();
    for (const { queue, positions } of underWay) {
      if (positions.some((position) => this.#ports.mayAct(position))) counts.set(queue, (counts.get(queue) ?? 0) + 1);
    }
    const moves: Move[] = [];
    let goal = Math.ceil(this.#scheduler.waiting / 2);
    const take = (queue: string, count: number): void => {
      const shed = this.#shed(queue, { count: Math.min(count, goal), cause: "full_window", nowMs });
      goal -= shed.reduce((sum, { works }) => sum + works.length, 0);
      moves.push(...shed);
    };
    for (const queue of counts.keys()) take(queue, this.#scheduler.surplus(queue, nowMs));
    const waits = Array.from(counts, ([queue, count]) => ({
      queue,
      count,
      waitMs: this.#scheduler.expectedWaitMs(queue, nowMs),
    }));
    for (const { queue, count, waitMs } of waits.sort((a, b) => b.waitMs - a.waitMs)) {
      if (waitMs > slowForMs) take(queue, Math.floor(count * (1 - slowForMs / waitMs)));
    }
    return moves;
  }

  #shed(queue: string, { count, cause, nowMs }: { count: number; cause: MoveCause; nowMs: number }): readonly Move[] {
    if (count <= 0) return [];
    const beforeMs = this.#scheduler.expectedWaitMs(queue, nowMs);
    const works = this.#scheduler.shed(queue, count).toReversed();
    if (works.length === 0) return [];
    const waitMs = this.#scheduler.expectedWaitMs(queue, nowMs);
    this.#noteSlow(queue, nowMs);
    return this.#place(works, { backlog: { queue, waitMs, msPerRecord: Math.max(0, beforeMs - waitMs) / works.length }, cause });
  }

  #moveHeldBack(nowMs: number): readonly Move[] {
    const holdsBack = (work: Work): boolean =>
      this.#heldBack.holdsBack(work, nowMs) && work.positions.some((position) => this.#ports.mayAct(position));
    const byQueue = Map.groupBy(this.#scheduler.drop(holdsBack), ({ queue }) => queue);
    return [...byQueue].flatMap(([queue, works]) => {
      const oldestFirst = works.toSorted((a, b) => a.firstQueuedAt - b.firstQueuedAt);
      const leaving = this.#giveBack(oldestFirst, nowMs);
      // What stays in memory is newer: the host has that much to do until these are back, and no more.
      const backlog = { queue, waitMs: this.#scheduler.expectedWaitMs(queue, nowMs), msPerRecord: 0 };
      return this.#place(leaving, { backlog, cause: "held_back" });
    });
  }

  /** The host must not idle while they are away: the first of them start before they could be back. Returns the others. */
  #giveBack(oldestFirst: readonly Work[], nowMs: number): readonly Work[] {
    const shortestMs = this.#tiers[0]?.delayMs ?? 0;
    return oldestFirst.filter((work) => {
      if (isOverdue(work, nowMs) || this.#scheduler.expectedWaitMs(work.queue, nowMs) >= shortestMs) return true;
      this.#scheduler.offer(work, nowMs);
      return false;
    });
  }

  #place(works: readonly Work[], { backlog, cause }: { backlog: Backlog; cause: MoveCause }): readonly Move[] {
    const byTier = Map.groupBy(works, ({ positions }) => this.#away.place(backlog, positions[0]?.topic ?? ""));
    return [...byTier].flatMap(([index, some]) => {
      const tier = this.#tiers[index];
      return tier === undefined ? [] : [{ cause, tier, works: some }];
    });
  }

  #noteSlow(queue: string, nowMs: number): void {
    this.#slow.set(queue, nowMs);
    if (this.#slow.size <= slowQueueCount) return;
    for (const [name, sinceMs] of this.#slow) if (nowMs - sinceMs >= slowForMs) this.#slow.delete(name);
  }
}
