import { setTimeout as delay } from "node:timers/promises";
import type { Consumer, EachBatchPayload, Kafka } from "kafkajs";
import { messageOf } from "../../errors.ts";
import type { Counter } from "../../metrics/metrics.ts";
import type { TopicPartition } from "../contracts.ts";
import { fetchedBatch, type GroupConsumerOptions, type GroupWork } from "./group-work.ts";
import { Heartbeats } from "./heartbeats.ts";
import { isMembershipLost, isOutage, sessionLapsed } from "./kafka-errors.ts";
import { createMember } from "./member.ts";
import { chooseStart, keepLookingUp, lookUpOffsets } from "./offsets.ts";
import { describePartitions } from "./partition-map.ts";
import { type PauseReason, Pauses } from "./pauses.ts";
import { Progress } from "./progress.ts";
import { Session } from "./session.ts";

const lookAtProgressMs = 5_000;
const stalledAfterMs = 300_000;
/** kafkajs takes minutes to give up when hosts do not answer at all. */
const shortestSilenceMs = 300_000;

/**
 * A member of a consumer group. kafkajs fetches and heartbeats. Where to read, what is paused and when an assignment has ended is
 * decided here, because kafkajs commits for partitions it has lost, resets positions silently, keeps pauses over a rebalance and
 * hands out answers to questions from before it.
 */
export class GroupConsumer {
  readonly #kafka: Kafka;
  readonly #options: GroupConsumerOptions;
  readonly #work: GroupWork;
  readonly #consumer: Consumer;
  readonly #heartbeats: Heartbeats;
  readonly #pauses = new Pauses();
  readonly #assignments: Counter;
  readonly #resets: Counter<"kind">;
  #session = new Session([]);
  /** What the work was told that it has. */
  #announced: readonly TopicPartition[] = [];
  #beginning: Promise<void> = Promise.resolve();
  /**
   * One try, with the membership of its moment. kafkajs gives it with a batch. Its other way to commit tries again when brokers are
   * away, perhaps after a rejoin: only until the first batch.
   */
  #commitOnce: EachBatchPayload["commitOffsetsIfNecessary"] | undefined;
  readonly #progress: Progress;
  #progressTimer: NodeJS.Timeout | undefined;
  readonly #stop = new AbortController();

  constructor(kafka: Kafka, options: GroupConsumerOptions, work: GroupWork) {
    const { timing, metrics, clock } = options;
    this.#kafka = kafka;
    this.#options = options;
    this.#work = work;
    this.#heartbeats = new Heartbeats(timing, clock);
    const delays = new Map(options.topics.map(({ name, delayMs }) => [name, delayMs ?? 0]));
    this.#progress = new Progress(({ topic }) => stalledAfterMs + (delays.get(topic) ?? 0));
    const topicLabels = { topic: options.topics.map(({ baseName }) => baseName) };
    this.#assignments = metrics.counter("consumer_assignments_total", "Assignments received from the group", {});
    this.#resets = metrics.counter("consumer_offset_resets_total", "Positions that were outside the log: records may be lost", {
      kind: ["expired", "beyond_end"],
    });
    metrics.gauge("consumer_unread_records", "Records behind the position, as far as is known", topicLabels, (gauge) => {
      for (const { name, baseName } of options.topics) gauge.set({ topic: baseName }, this.#session.unreadOf(name));
    });
    this.#consumer = createMember(kafka, options, () => this.#claims());
  }

  /** Resolves when the first join was tried; rejects when no broker can be reached or a topic does not exist. */
  async start(): Promise<void> {
    const { timing, topics, fail } = this.#options;
    this.#listen();
    await this.#consumer.connect();
    // Without it kafkajs starts at the end wherever nothing is committed: the first records would never be seen.
    await this.#consumer.subscribe({ topics: topics.map(({ name }) => name), fromBeginning: true });
    const silentForMs = Math.max(shortestSilenceMs, 2 * (timing.sessionTimeoutMs + timing.rebalanceTimeoutMs));
    this.#heartbeats.watch(silentForMs, () => fail(new Error("the consumer stands still: no request and no error")));
    this.#progressTimer = setInterval(() => this.#noteProgress(), lookAtProgressMs).unref();
    await this.#run();
  }

  get assigned(): readonly TopicPartition[] {
    return this.#session.ended ? [] : this.#session.partitions;
  }

  owned(partition: TopicPartition): boolean {
    return !this.#session.ended && this.#session.has(partition);
  }

  /** The lease: may an effect start that nothing else fences? Not before it is known what others have done meanwhile. */
  mayAct(partition: TopicPartition): boolean {
    const placed = this.owned(partition) && this.#session.position(partition) !== undefined;
    return placed && this.#heartbeats.lease.valid(this.#options.clock.monotonicMs());
  }

  /** Records behind the position, as far as is known. */
  unread(partition: TopicPartition): number {
    return this.#session.unread(partition);
  }

  pause(partition: TopicPartition, reason: PauseReason): void {
    if (this.#pauses.add(partition, reason)) this.#applyPause(partition);
  }

  resume(partition: TopicPartition, reason: PauseReason): void {
    if (this.#pauses.remove(partition, reason)) this.#applyPause(partition);
  }

  /** One try to commit these next offsets, of those partitions that are assigned; `lost`: the assignment has ended. */
  async commit(offsets: Iterable<readonly [TopicPartition, number]>): Promise<"committed" | "failed" | "lost"> {
    const session = this.#session;
    const ours = [...offsets].filter(([partition]) => session.position(partition) !== undefined);
    if (session.ended || ours.length === 0) return "lost";
    const commits = ours.map(([{ topic, partition }, offset]) => ({ topic, partition, offset: String(offset) }));
    const topics = commits.map(({ topic, ...commit }) => ({ topic, partitions: [commit] }));
    try {
      await (this.#commitOnce?.({ topics }) ?? this.#consumer.commitOffsets(commits));
      return "committed";
    } catch (error) {
      this.#options.logger.info({ cause: messageOf(error) }, "consumer.commit_failed");
      if (!isMembershipLost(error)) return "failed";
      session.end(error);
      return "lost";
    }
  }

  health(): string | undefined {
    const placed = this.#session.partitions.every((partition) => this.#session.position(partition) !== undefined);
    if (this.#session.ended || !placed) return "waiting for an assignment";
    return this.#heartbeats.health() ?? this.#progress.health(this.#options.clock.monotonicMs());
  }

  /** Batches are left where they are, uncommitted; then the group is left. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#heartbeats.stop();
    clearInterval(this.#progressTimer);
    this.#session.end();
    await this.#session.settled();
    await this.#consumer.disconnect();
  }

  #run(): Promise<void> {
    return this.#consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      // One worker for each partition: with fewer, they wait for each other.
      partitionsConsumedConcurrently: this.#options.topics.reduce((sum, { partitions }) => sum + partitions, 0),
      eachBatch: (payload) => this.#eachBatch(payload),
    });
  }

  #listen(): void {
    const { events } = this.#consumer;
    this.#consumer.on(events.REQUEST, ({ payload }) => {
      this.#heartbeats.noteAnswer(payload);
      // A member that has lost its assignment and only goes on asking does not live: it has to join again, or to crash.
      if (!this.#session.ended) this.#heartbeats.noteSignOfLife();
    });
    this.#consumer.on(events.HEARTBEAT, () => this.#heartbeats.noteGood());
    this.#consumer.on(events.GROUP_JOIN, ({ payload }) => {
      this.#heartbeats.noteGood();
      this.#heartbeats.noteSignOfLife();
      this.#onJoin(payload.memberAssignment);
    });
    this.#consumer.on(events.REBALANCING, () => this.#lose(this.#session));
    // kafkajs steps over what holds no records for us (markers, compacted ranges) by itself.
    this.#consumer.on(events.END_BATCH_PROCESS, ({ payload }) => {
      if (payload.batchSize > 0 || this.#session.ended) return;
      this.#session.advance(payload, Number(payload.lastOffset) + 1);
      this.#work.onPassed?.(payload, Number(payload.lastOffset) + 1);
    });
    // Before a crash is told: from here on kafkajs throws at every pause and seek.
    this.#consumer.on(events.STOP, () => this.#session.end());
    this.#consumer.on(events.CRASH, ({ payload }) => this.#onCrash(payload.error, payload.restart));
  }

  #lose(session: Session, membershipError?: unknown): void {
    if (!session.ended) this.#work.onRebalancing?.();
    session.end(membershipError);
  }

  #onJoin(memberAssignment: Readonly<Record<string, readonly number[]>>): void {
    const before = this.#session;
    before.end();
    this.#session = new Session(
      Object.entries(memberAssignment).flatMap(([topic, numbers]) => numbers.map((partition) => ({ topic, partition }))),
    );
    if (this.#stop.signal.aborted) this.#session.end();
    this.#assignments.inc();
    this.#progress.forget();
    for (const partition of before.partitions) if (!this.#session.has(partition)) this.#pauses.forget(partition);
    for (const partition of this.#session.partitions) {
      this.#pauses.add(partition, "positioning");
      this.#applyPause(partition);
    }
    this.#begin(this.#session, before);
  }

  /** A join can come from inside one broker's fetch loop while batches of another's still run: they are waited for here. */
  #begin(session: Session, before: Session): void {
    const begin = async (): Promise<void> => {
      await before.settled();
      if (session.ended) return;
      const lost = this.#announced.filter((partition) => !session.has(partition));
      this.#announced = session.partitions;
      this.#options.logger.info(
        { assigned: describePartitions(session.partitions), lost: describePartitions(lost) },
        "consumer.assigned",
      );
      this.#work.onAssigned(session.partitions, lost);
      await this.#place(session, session.partitions);
    };
    this.#beginning = this.#beginning.then(begin).catch((error) => this.#options.fail(error));
  }

  /** Looks up where to read on, and reads there; the partitions are paused until then. */
  async #place(session: Session, partitions: readonly TopicPartition[]): Promise<void> {
    const look = () => lookUpOffsets(this.#kafka, this.#options.groupId, partitions);
    const known = await keepLookingUp(look, { signal: session.signal, logger: this.#options.logger });
    if (known === undefined || session.ended) return;
    for (const [partition, offsets] of known) {
      if (!session.has(partition)) continue;
      const own = this.#work.positionOf ? this.#work.positionOf(partition, offsets.committed) : session.position(partition);
      const { offset, reset } = chooseStart(offsets, own);
      if (reset !== undefined) {
        this.#resets.inc({ kind: reset });
        this.#options.logger.error({ ...partition, kind: reset, own, ...offsets }, "consumer.offset_reset");
      }
      session.place(partition, offset, offsets.end);
      this.#work.onPlaced?.(partition, { offset, committed: offsets.committed, replaced: reset === "beyond_end" });
      this.#consumer.seek({ ...partition, offset: String(offset) });
      this.resume(partition, "positioning");
    }
  }

  async #eachBatch(payload: EachBatchPayload): Promise<void> {
    const session = this.#session;
    this.#commitOnce = payload.commitOffsetsIfNecessary;
    const { topic, partition } = payload.batch;
    const position = session.ended ? undefined : session.position(payload.batch);
    // Not in kafkajs' types: the offset that was asked for. Another one than ours: an answer from before, or a reset of kafkajs' own.
    const { fetchedOffset } = payload.batch as typeof payload.batch & { fetchedOffset: string };
    if (Number(fetchedOffset) === position) await session.track(this.#workOn(session, payload));
    else if (position !== undefined) this.#reposition(session, { topic, partition });
    // kafkajs joins again when it is told its own error; any other one would only make it fetch again.
    if (session.membershipError !== undefined && session === this.#session) throw session.membershipError;
  }

  #reposition(session: Session, partition: TopicPartition): void {
    if (!this.#pauses.has(partition, "positioning")) {
      this.pause(partition, "positioning");
      void this.#place(session, [partition]).catch((error) => this.#options.fail(error));
    }
  }

  async #workOn(session: Session, payload: EachBatchPayload): Promise<void> {
    const heartbeat = (): void => void payload.heartbeat().catch((error) => this.#judgeHeartbeat(session, error));
    const timer = setInterval(heartbeat, this.#options.timing.heartbeatIntervalMs / 2);
    try {
      await this.#work.onBatch(fetchedBatch(session, payload));
    } catch (error) {
      session.end();
      this.#options.fail(error);
    } finally {
      clearInterval(timer);
    }
  }

  /**
   * While a batch is worked on kafkajs fetches nothing, so nothing fails that would make it look for the coordinator again: the one
   * it knows may be gone for good, or its connection dead. After a session without an answer it is told to join again.
   */
  #judgeHeartbeat(session: Session, error: unknown): void {
    if (isMembershipLost(error)) this.#lose(session, error);
    else if (this.#heartbeats.lapsed && !session.ended) {
      this.#options.logger.warn({ cause: messageOf(error) }, "consumer.session_lapsed");
      this.#lose(session, sessionLapsed(error));
    }
  }

  #applyPause({ topic, partition }: TopicPartition): void {
    // The next join applies them all.
    if (!this.owned({ topic, partition })) return;
    const change = [{ topic, partitions: [partition] }];
    if (this.#pauses.paused({ topic, partition })) this.#consumer.pause(change);
    else this.#consumer.resume(change);
  }

  /** The partition numbers to keep. Without a lease another member may have them by now: its claim is the better one. */
  #claims(): number[] {
    const valid = this.#heartbeats.lease.valid(this.#options.clock.monotonicMs());
    return valid ? this.#announced.map(({ partition }) => partition) : [];
  }

  #noteProgress(): void {
    for (const partition of this.#session.partitions) {
      const position = this.#session.position(partition);
      const mark = this.#work.markOf?.(partition) ?? position;
      const idle = this.#session.ended || (mark === position && this.unread(partition) === 0);
      this.#progress.note(partition, idle ? undefined : mark, this.#options.clock.monotonicMs());
    }
  }

  #onCrash(error: Error, restarts: boolean): void {
    this.#heartbeats.noteSignOfLife();
    this.#session.end();
    this.#commitOnce = undefined;
    this.#options.logger.warn({ cause: messageOf(error), restarts }, "consumer.crashed");
    if (restarts || this.#stop.signal.aborted) return;
    if (isOutage(error)) void this.#runAgain();
    else this.#options.fail(error);
  }

  /** kafkajs takes some ways in which brokers are away for final. */
  async #runAgain(): Promise<void> {
    try {
      await delay(1_000, undefined, { signal: this.#stop.signal });
      await this.#run();
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.fail(error);
    }
  }
}
