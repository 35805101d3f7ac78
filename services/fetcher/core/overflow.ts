import type { TopicPartition } from "../../common/kafka/contracts.ts";
import type { TopicDefinition } from "../../common/kafka/topics.ts";
import { Away } from "./away.ts";
import { HeldBack, isOverdue } from "./held-back.ts";
import { MovePace } from "./move-pace.ts";
import type { Outlook, Scheduler } from "./scheduler.ts";
import { nameOf, type Position, type Work } from "./work.ts";

/** Of the window: so much may wait, whoever it belongs to. Less when it is full of what no longer waits, or of bytes. */
const roomShare = { usual: 0.8, full: 0.4 };
/** Of the room: so much is made when there is none, so that not every record makes some. */
const madeShare = 0.1;
/** What a host does in this time is kept when others of its queue have to leave: after 30 s it would hold the mark back. */
const keptMs = 20_000;
/** For each record that comes while its queue has too many, two leave: it gets shorter, and no look takes long. */
const leavingCount = 2;
const heldBackCount = 1_000;
const heldBackEveryMs = { usual: 2_000, unfinished: 50 };
const roomEveryMs = 250;
/** The price, in records, of a look whether a paused partition has more. */
const readCost = 100;
/** Of the pace at which records may be moved: so many may come back from each tier too early, if that spares their hosts a wait. */
const returnShare = 0.1;

/**
 * Why records are moved.
 * - surplus: their queue has more than its host does soon, and others of it are away already.
 * - full_window: too much waits in memory, of all queues together.
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
  /** The most that may be taken and not finished. */
  readonly windowRecords: number;
  /** Nothing is fetched because too much is taken and not finished. */
  windowFull(): boolean;
  pause(partition: TopicPartition): void;
  resume(partition: TopicPartition): void;
  mayAct(partition: TopicPartition): boolean;
}

interface Reason {
  readonly cause: MoveCause;
  readonly nowMs: number;
}

/**
 * Keeps the window open: what slow hosts cannot take soon leaves the memory for a delay tier, so that the records behind it are
 * seen. A partition whose records have left is read on at the pace at which they may be moved. Decides only; whoever asks makes the
 * moves. Times are monotonic milliseconds.
 */
export class Overflow {
  readonly #scheduler: Scheduler<Work>;
  readonly #tiers: readonly TopicDefinition[];
  readonly #ports: OverflowPorts;
  readonly #away: Away;
  readonly #heldBack = new HeldBack();
  readonly #pace = new MovePace();
  /** By name; the one that has waited longest is read first. */
  readonly #paused = new Map<string, TopicPartition>();
  #lookedAtMs = 0;
  #roomAtMs = 0;
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
    const byQueue = Map.groupBy(works, ({ queue }) => queue);
    const surplus = [...byQueue].flatMap(([queue, { length }]) => this.#shedSurplus(queue, length, nowMs));
    const moves = [...surplus, ...this.#makeRoom(nowMs)];
    this.#roomAtMs = nowMs + roomEveryMs;
    if (moves.some(({ works: [first] }) => first !== undefined && byQueue.has(first.queue))) this.#pause(partition);
    return moves;
  }

  /** What has to be moved now. */
  look(nowMs: number): readonly Move[] {
    this.#lookedAtMs = nowMs;
    this.#readOn(nowMs);
    const moves: Move[] = [];
    if (nowMs >= this.#roomAtMs && this.#crowded) {
      this.#roomAtMs = nowMs + roomEveryMs;
      moves.push(...this.#makeRoom(nowMs));
    }
    if (nowMs >= this.#heldBackAtMs && this.#scheduler.waiting > 0) moves.push(...this.#moveHeldBack(nowMs));
    return moves;
  }

  /** When `look` has something to do; undefined when never, as things stand. */
  nextLookMs(): number | undefined {
    const never = Number.POSITIVE_INFINITY;
    const nextMs = Math.min(
      this.#paused.size > 0 ? this.#pace.readyAtMs(this.#lookedAtMs) : never,
      this.#crowded ? this.#roomAtMs : never,
      this.#scheduler.waiting > 0 ? this.#heldBackAtMs : never,
    );
    return nextMs < never ? nextMs : undefined;
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
    if (!how.moved) this.#pace.called(this.#lookedAtMs);
  }

  /** A record of its partition that is newer has been called. */
  behindCalled(work: Work): boolean {
    return this.#heldBack.behindCalled(work);
  }

  lost(partitions: readonly TopicPartition[]): void {
    for (const partition of partitions) if (this.#paused.has(nameOf(partition))) this.#resume(partition);
    this.#heldBack.lost(partitions);
    this.#away.forget();
  }

  stop(): void {
    for (const partition of this.#paused.values()) this.#resume(partition);
  }

  get #room(): number {
    return this.#ports.windowRecords * (this.#ports.windowFull() ? roomShare.full : roomShare.usual);
  }

  get #crowded(): boolean {
    return this.#scheduler.waiting > this.#room;
  }

  #pause(partition: TopicPartition): void {
    const name = nameOf(partition);
    if (this.#paused.has(name)) return;
    this.#paused.set(name, partition);
    this.#ports.pause(partition);
  }

  #resume(partition: TopicPartition): void {
    this.#paused.delete(nameOf(partition));
    this.#ports.resume(partition);
  }

  #readOn(nowMs: number): void {
    for (const partition of this.#paused.values()) {
      if (this.#pace.readyAtMs(nowMs) > nowMs) return;
      this.#resume(partition);
      this.#pace.spend(readCost, nowMs);
    }
  }

  #shedSurplus(queue: string, takenCount: number, nowMs: number): readonly Move[] {
    if (!this.#away.overflowed(queue)) return [];
    const outlook = this.#scheduler.outlook(queue, nowMs);
    const count = Math.min(surplusOf(outlook, keptMs), leavingCount * takenCount);
    return this.#shed(queue, count, { cause: "surplus", nowMs });
  }

  /** Every queue keeps what its host does in the same time. */
  #makeRoom(nowMs: number): readonly Move[] {
    if (!this.#crowded) return [];
    const goal = this.#room * (1 - madeShare);
    const outlooks = [...this.#scheduler.outlooks(nowMs)];
    const levelMs = levelFor(outlooks, goal);
    const surplus = outlooks.map((outlook) => surplusOf(outlook, levelMs));
    const part = Math.min(1, (this.#scheduler.waiting - goal) / sum(surplus));
    return outlooks.flatMap(({ queue }, index) =>
      this.#shed(queue, Math.ceil(part * (surplus[index] ?? 0)), { cause: "full_window", nowMs }),
    );
  }

  #shed(queue: string, count: number, reason: Reason): readonly Move[] {
    return count < 1 ? [] : this.#place(this.#scheduler.shed(queue, count).toReversed(), reason);
  }

  #moveHeldBack(nowMs: number): readonly Move[] {
    let left = heldBackCount;
    const dropped = this.#scheduler.drop((work) => left > 0 && this.#heldBack.holdsBack(work, nowMs) && left-- > 0);
    this.#heldBackAtMs = nowMs + (left > 0 ? heldBackEveryMs.usual : heldBackEveryMs.unfinished);
    const byQueue = Map.groupBy(dropped, ({ queue }) => queue);
    return [...byQueue.values()].flatMap((works) => {
      const oldestFirst = works.toSorted((a, b) => a.firstQueuedAt - b.firstQueuedAt);
      return this.#place(this.#giveBack(oldestFirst, nowMs), { cause: "held_back", nowMs });
    });
  }

  /** The host must not idle while they are away: the first of them start before they could be back. Returns the others. */
  #giveBack(oldestFirst: readonly Work[], nowMs: number): readonly Work[] {
    const shortestMs = this.#tiers[0]?.delayMs ?? 0;
    return oldestFirst.filter((work) => {
      const { waiting, perSecond, asleepMs } = this.#scheduler.outlook(work.queue, nowMs);
      if (isOverdue(work, nowMs) || asleepMs + (waiting / perSecond) * 1_000 >= shortestMs) return true;
      this.#scheduler.offer(work, nowMs);
      return false;
    });
  }

  /** Works of one queue that the scheduler has given back, oldest first. */
  #place(works: readonly Work[], { cause, nowMs }: Reason): readonly Move[] {
    const [first] = works;
    if (first === undefined) return [];
    // One queue's partitions have one number, and one member has them all: the first record speaks for the others.
    if (!first.positions.some((position) => this.#ports.mayAct(position))) {
      for (const work of works) this.#scheduler.offer(work, nowMs);
      return [];
    }
    const { queue, waiting, perSecond, asleepMs } = this.#scheduler.outlook(first.queue, nowMs);
    const msPerRecord = 1_000 / perSecond;
    const busy = { asleepMs, waitingMs: waiting * msPerRecord, msPerRecord };
    const returnsPerSecond = returnShare * this.#pace.perSecond(nowMs);
    this.#pace.spend(works.length, nowMs);
    const byTier = Map.groupBy(works, () => this.#away.place(queue, busy, returnsPerSecond));
    return [...byTier].flatMap(([index, some]) => {
      const tier = this.#tiers[index];
      return tier === undefined ? [] : [{ cause, tier, works: some }];
    });
  }
}

/** What the host does not do in this time. */
function surplusOf({ waiting, perSecond, asleepMs }: Outlook, withinMs: number): number {
  return Math.max(0, waiting - (perSecond * Math.max(0, withinMs - asleepMs)) / 1_000);
}

/** The longest time for which there is room: all that the hosts do in it is not more than the goal, give or take 10 ms. */
function levelFor(outlooks: readonly Outlook[], goal: number): number {
  const fits = (levelMs: number): boolean =>
    sum(outlooks.map((outlook) => outlook.waiting - surplusOf(outlook, levelMs))) <= goal;
  if (fits(keptMs)) return keptMs;
  let levelMs = 0;
  for (let stepMs = keptMs / 2; stepMs > 10; stepMs /= 2) if (fits(levelMs + stepMs)) levelMs += stepMs;
  return levelMs;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
