import type { TopicPartition } from "../../../services/common/kafka/contracts.ts";
import type { VirtualTime } from "../time/virtual-time.ts";
import { protocolError } from "./protocol-errors.ts";

export interface JoinRequest {
  readonly memberId: string;
  readonly process: string;
  readonly metadata: Buffer;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
}

export interface JoinAnswer {
  readonly generationId: number;
  readonly leaderId: string;
  readonly memberId: string;
  readonly members: readonly { readonly memberId: string; readonly memberMetadata: Buffer }[];
  readonly groupProtocol: string;
}

export interface Reply<T> {
  answer(value: T): void;
  refuse(error: Error): void;
}

interface Member {
  readonly id: string;
  readonly process: string;
  request: JoinRequest;
  lastSeenMs: number;
  join: Reply<JoinAnswer> | undefined;
  sync: Reply<Buffer> | undefined;
}

/** The wait for more members when the first one joins an empty group. */
const firstJoinMs = 50;
const expiryLookMs = 500;
const noAssignment = Buffer.alloc(0);

/** One consumer group as its coordinator keeps it: the classic protocol of Kafka. */
export class Group {
  readonly #time: VirtualTime;
  readonly #protocol: string;
  readonly #members = new Map<string, Member>();
  readonly #offsets = new Map<string, number>();
  readonly #onCommit: (partition: TopicPartition, from: number, to: number) => void;
  #state: "empty" | "joining" | "syncing" | "stable" = "empty";
  #generation = 0;
  #joinRound = 0;
  #memberCount = 0;
  #assignments: ReadonlyMap<string, Buffer> = new Map();

  constructor(options: {
    time: VirtualTime;
    protocol: string;
    onCommit: (partition: TopicPartition, from: number, to: number) => void;
  }) {
    this.#time = options.time;
    this.#protocol = options.protocol;
    this.#onCommit = options.onCommit;
    this.#time.onJump((ms) => {
      for (const member of this.#members.values()) member.lastSeenMs += ms;
    });
    this.#lookForExpired();
  }

  get generation(): number {
    return this.#generation;
  }

  /** Whether one of its members lives in this process. */
  hasMemberOf(process: string): boolean {
    return [...this.#members.values()].some((member) => member.process === process);
  }

  join(request: JoinRequest, reply: Reply<JoinAnswer>): void {
    const known = this.#members.get(request.memberId);
    if (request.memberId !== "" && known === undefined) {
      reply.refuse(protocolError("UNKNOWN_MEMBER_ID"));
      return;
    }
    const id = known?.id ?? `${request.process}-${++this.#memberCount}`;
    const member = known ?? { id, process: request.process, request, lastSeenMs: 0, join: undefined, sync: undefined };
    this.#members.set(id, member);
    Object.assign(member, { request, lastSeenMs: this.#time.nowMs, join: reply });
    if (this.#state !== "joining") this.#rebalance(this.#state === "empty" ? firstJoinMs : request.rebalanceTimeoutMs);
    if (this.#state === "joining" && this.#generation > 0) this.#endJoinWhenAllAreHere();
  }

  sync(who: { memberId: string; generationId: number; assignments: ReadonlyMap<string, Buffer> }, reply: Reply<Buffer>): void {
    const member = this.#members.get(who.memberId);
    const wrong = this.#wrong(member, who.generationId) ?? (this.#state === "joining" ? "REBALANCE_IN_PROGRESS" : undefined);
    if (member === undefined || wrong !== undefined) {
      reply.refuse(protocolError(wrong ?? "UNKNOWN_MEMBER_ID"));
      return;
    }
    member.lastSeenMs = this.#time.nowMs;
    if (this.#state === "stable") reply.answer(this.#assignments.get(member.id) ?? noAssignment);
    else this.#sync(member, who.assignments, reply);
  }

  /** The leader's request brings the assignments of all. */
  #sync(member: Member, assignments: ReadonlyMap<string, Buffer>, reply: Reply<Buffer>): void {
    member.sync = reply;
    if (assignments.size === 0) return;
    this.#assignments = assignments;
    this.#state = "stable";
    for (const waiting of this.#members.values()) {
      waiting.sync?.answer(assignments.get(waiting.id) ?? noAssignment);
      waiting.sync = undefined;
    }
  }

  heartbeat({ memberId, generationId }: { memberId: string; generationId: number }): void {
    const member = this.#members.get(memberId);
    const wrong = this.#wrong(member, generationId);
    if (member === undefined || wrong !== undefined) throw protocolError(wrong ?? "UNKNOWN_MEMBER_ID");
    member.lastSeenMs = this.#time.nowMs;
    if (this.#state === "joining") throw protocolError("REBALANCE_IN_PROGRESS");
  }

  commit(who: { memberId: string; generationId: number }, offsets: readonly (readonly [TopicPartition, number])[]): void {
    const wrong = this.#wrong(this.#members.get(who.memberId), who.generationId);
    if (wrong !== undefined) throw protocolError(wrong);
    if (this.#state === "syncing") throw protocolError("REBALANCE_IN_PROGRESS");
    for (const [partition, offset] of offsets) {
      this.#onCommit(partition, this.committed(partition) ?? 0, offset);
      this.#offsets.set(nameOf(partition), offset);
    }
  }

  committed(partition: TopicPartition): number | undefined {
    return this.#offsets.get(nameOf(partition));
  }

  /** As an operator's reset, or offsets that have expired. */
  rewind(partition: TopicPartition, offset: number): void {
    this.#offsets.set(nameOf(partition), offset);
  }

  leave(memberId: string): void {
    if (!this.#members.delete(memberId)) return;
    this.#afterLoss();
  }

  #wrong(member: Member | undefined, generationId: number): string | undefined {
    if (member === undefined) return "UNKNOWN_MEMBER_ID";
    return generationId === this.#generation ? undefined : "ILLEGAL_GENERATION";
  }

  #rebalance(withinMs: number): void {
    this.#state = "joining";
    const round = ++this.#joinRound;
    for (const member of this.#members.values()) {
      member.sync?.refuse(protocolError("REBALANCE_IN_PROGRESS"));
      member.sync = undefined;
    }
    this.#time.after(withinMs, () => {
      if (round === this.#joinRound && this.#state === "joining") this.#endJoin();
    });
  }

  #endJoinWhenAllAreHere(): void {
    if ([...this.#members.values()].every(({ join }) => join !== undefined)) this.#endJoin();
  }

  /** Who has not joined by now is out. */
  #endJoin(): void {
    for (const [id, { join }] of this.#members) if (join === undefined) this.#members.delete(id);
    const [leader] = this.#members.values();
    this.#state = leader === undefined ? "empty" : "syncing";
    if (leader === undefined) return;
    this.#generation += 1;
    this.#assignments = new Map();
    const members = [...this.#members.values()].map(({ id, request }) => ({ memberId: id, memberMetadata: request.metadata }));
    for (const member of this.#members.values()) {
      const { join } = member;
      member.join = undefined;
      member.lastSeenMs = this.#time.nowMs;
      join?.answer({
        generationId: this.#generation,
        leaderId: leader.id,
        memberId: member.id,
        members: member === leader ? members : [],
        groupProtocol: this.#protocol,
      });
    }
  }

  #afterLoss(): void {
    if (this.#members.size === 0) {
      this.#state = "empty";
      this.#joinRound += 1;
    } else if (this.#state === "joining") this.#endJoinWhenAllAreHere();
    else this.#rebalance(Math.max(...[...this.#members.values()].map(({ request }) => request.rebalanceTimeoutMs)));
  }

  #lookForExpired(): void {
    const nowMs = this.#time.nowMs;
    const expired = [...this.#members.values()].filter(
      ({ join, lastSeenMs, request }) => join === undefined && nowMs - lastSeenMs > request.sessionTimeoutMs,
    );
    for (const { id } of expired) this.#members.delete(id);
    if (expired.length > 0) this.#afterLoss();
    this.#time.after(expiryLookMs, () => this.#lookForExpired(), { background: true });
  }
}

const nameOf = ({ topic, partition }: TopicPartition): string => `${partition}/${topic}`;
