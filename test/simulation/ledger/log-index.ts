import type { Codec } from "../../../services/common/kafka/contracts.ts";
import type { Topics } from "../../../services/common/kafka/topics.ts";
import type {
  RefreshCompleted,
  RefreshRequested,
  RefreshWatchdog,
  TokenOutcome,
  TokenRefresh,
  TokenState,
} from "../../../services/common/messages/records.ts";
import type { LogRecord } from "../kafka/log.ts";
import { codecFor } from "../replaced/codec.ts";

/** A record of the log that could be read; `sequence`: its place among all records of all topics. */
export interface Indexed<T> extends LogRecord {
  readonly sequence: number;
  readonly value: Buffer;
  readonly content: T;
}

/** What is known of one token of one refresh, in the order of the log. */
export interface TokenTrail {
  readonly requests: Indexed<TokenRefresh>[];
  readonly outcomes: Indexed<TokenOutcome>[];
}

/** Every record that was ever appended, by what it is about. */
export class LogIndex {
  readonly refreshes: Indexed<RefreshRequested>[] = [];
  readonly outcomes: Indexed<TokenOutcome>[] = [];
  readonly states: Indexed<TokenState>[] = [];
  readonly completions: Indexed<RefreshCompleted>[] = [];
  readonly letters: LogRecord[] = [];
  /** In consumed topics: nobody can read them. */
  readonly unreadable: LogRecord[] = [];
  readonly #watchdogs = new Map<string, Indexed<RefreshWatchdog>[]>();
  readonly #trails = new Map<string, TokenTrail>();
  readonly #byPlace = new Map<string, Indexed<unknown>>();
  readonly #topics: Topics;
  readonly #codec: Codec;
  readonly #fetchTopics: ReadonlySet<string>;
  #sequence = 0;

  constructor(topics: Topics) {
    this.#topics = topics;
    this.#codec = codecFor(topics.all.filter(({ schema }) => schema !== null));
    this.#fetchTopics = new Set([topics.tokenRequested, ...topics.retryTiers].map(({ name }) => name));
  }

  trail(refreshId: string, ordinal: number): TokenTrail | undefined {
    return this.#trails.get(`${refreshId}/${ordinal}`);
  }

  watchdogs(refreshId: string): readonly Indexed<RefreshWatchdog>[] {
    return this.#watchdogs.get(refreshId) ?? [];
  }

  /** The record at this place; undefined when nobody can read it. */
  at(topic: string, partition: number, offset: number): Indexed<unknown> | undefined {
    return this.#byPlace.get(placeOf({ topic, partition, offset }));
  }

  add(record: LogRecord): void {
    this.#sequence += 1;
    if (record.topic === this.#topics.deadLetter.name) return void this.letters.push(record);
    if (record.topic === this.#topics.clock.name) return;
    const decoded = record.key === null ? undefined : this.#codec.decode<unknown>(record.topic, record.value);
    if (decoded === undefined || decoded instanceof Promise || !decoded.ok || record.value === null) {
      this.unreadable.push(record);
      return;
    }
    const indexed = { ...record, value: record.value, sequence: this.#sequence, content: decoded.value };
    this.#byPlace.set(placeOf(record), indexed);
    this.#file(indexed);
  }

  #file(indexed: Indexed<unknown>): void {
    const { topic } = indexed;
    const topics = this.#topics;
    if (this.#fetchTopics.has(topic)) this.#trailOf(indexed as Indexed<TokenRefresh>).requests.push(indexed as never);
    else if (topic === topics.tokenOutcome.name) {
      this.outcomes.push(indexed as Indexed<TokenOutcome>);
      this.#trailOf(indexed as Indexed<TokenOutcome>).outcomes.push(indexed as never);
    } else if (topic === topics.tokenState.name) this.states.push(indexed as Indexed<TokenState>);
    else if (topic === topics.refreshCompleted.name) this.completions.push(indexed as Indexed<RefreshCompleted>);
    else if (topic === topics.refreshRequested.name) this.refreshes.push(indexed as Indexed<RefreshRequested>);
    else if (topic === topics.watchdog.name) {
      const watchdog = indexed as Indexed<RefreshWatchdog>;
      const id = watchdog.content.refresh.refresh_id;
      this.#watchdogs.set(id, [...this.watchdogs(id), watchdog]);
    }
  }

  #trailOf({ content }: Indexed<TokenRefresh | TokenOutcome>): TokenTrail {
    const key = `${content.refresh_id}/${content.ordinal}`;
    const trail = this.#trails.get(key) ?? { requests: [], outcomes: [] };
    this.#trails.set(key, trail);
    return trail;
  }
}

export function placeOf({ topic, partition, offset }: { topic: string; partition: number; offset: number }): string {
  return `${topic}/${partition}/${offset}`;
}
