import type { Row } from "../../../services/common/cassandra/session.ts";
import type { TopicPartition } from "../../../services/common/kafka/contracts.ts";
import type { Topics } from "../../../services/common/kafka/topics.ts";
import type { RefreshRequested, RefreshWatchdog, TokenOutcome, TokenRefresh } from "../../../services/common/messages/records.ts";
import { isIn } from "./bits.ts";
import { type Indexed, type LogIndex, placeOf } from "./log-index.ts";

export interface CommitChecks {
  readonly topics: Topics;
  readonly index: LogIndex;
  readonly progressOf: (refreshId: string) => Row | undefined;
  readonly hasRows: (refreshId: string) => boolean;
  readonly report: (problem: string) => void;
}

/** I13: no commit past an unfinished record. What is finished is judged by the log and the tables, at the moment of the commit. */
export class Commits {
  readonly #checks: CommitChecks;
  readonly #fetchTopics: ReadonlySet<string>;

  constructor(checks: CommitChecks) {
    this.#checks = checks;
    this.#fetchTopics = new Set([checks.topics.tokenRequested, ...checks.topics.retryTiers].map(({ name }) => name));
  }

  committed(group: string, { topic, partition }: TopicPartition, { from, to }: { from: number; to: number }): void {
    for (let offset = from; offset < to; offset += 1) {
      const problem = this.#unfinished(topic, partition, offset);
      if (problem !== undefined)
        this.#checks.report(`I13: ${group} committed ${to} of ${topic}/${partition}: ${offset} ${problem}`);
    }
  }

  #unfinished(topic: string, partition: number, offset: number): string | undefined {
    const { topics, index } = this.#checks;
    const record = index.at(topic, partition, offset);
    if (record === undefined) return this.#isBuried({ topic, partition, offset }) ? undefined : "is no dead letter";
    if (this.#fetchTopics.has(topic)) return this.#unfinishedFetch(record as Indexed<TokenRefresh>);
    if (topic === topics.tokenOutcome.name) return this.#unfinishedOutcome(record as Indexed<TokenOutcome>);
    if (topic === topics.refreshRequested.name) return this.#unfinishedRefresh(record as Indexed<RefreshRequested>);
    return this.#unfinishedWatchdog(record as Indexed<RefreshWatchdog>);
  }

  #unfinishedFetch({ content, sequence }: Indexed<TokenRefresh>): string | undefined {
    const { refresh_id, ordinal, attempt, emission } = content;
    const trail = this.#checks.index.trail(refresh_id, ordinal);
    if (trail === undefined || trail.outcomes.length > 0) return undefined;
    const wentOn = trail.requests.some(
      (other) =>
        other.content.attempt > attempt ||
        (other.content.attempt === attempt && other.content.emission === emission && other.sequence > sequence),
    );
    // An unreadable outcome or retry stands in the log all the same: nobody can tell what it was.
    return wentOn || this.#checks.index.unreadable.length > 0
      ? undefined
      : `(${refresh_id} ${ordinal}, attempt ${attempt}) has no outcome`;
  }

  #unfinishedOutcome({ content, offset }: Indexed<TokenOutcome>): string | undefined {
    const { refresh_id, ordinal } = content;
    const progress = this.#checks.progressOf(refresh_id);
    if (!isIn(progress?.done, ordinal)) return `(${refresh_id} ${ordinal}) is not counted`;
    const completed = Number(progress?.completed_version ?? 0);
    // Offsets are the lower 40 bits of a version.
    if (completed === 0 || completed % 2 ** 40 > offset) return undefined;
    const isTold = this.#checks.index.completions.some((completion) => completion.content.refresh_id === refresh_id);
    return isTold ? undefined : `completes ${refresh_id}, and nobody was told`;
  }

  #unfinishedRefresh({ content: { refresh_id, token_ids } }: Indexed<RefreshRequested>): string | undefined {
    const { index, hasRows } = this.#checks;
    if (!hasRows(refresh_id)) return `(${refresh_id}) has no rows`;
    if (index.watchdogs(refresh_id).length === 0) return `(${refresh_id}) is not looked after`;
    const lost = token_ids.findIndex((_, ordinal) => index.trail(refresh_id, ordinal) === undefined);
    return lost === -1 || index.unreadable.length > 0 ? undefined : `(${refresh_id}): ordinal ${lost} was not split off`;
  }

  #unfinishedWatchdog({ content: { check, refresh } }: Indexed<RefreshWatchdog>): string | undefined {
    const { refresh_id } = refresh;
    const isOver = Number(this.#checks.progressOf(refresh_id)?.completed_version ?? 0) > 0;
    const goesOn = this.#checks.index.watchdogs(refresh_id).some(({ content }) => content.check > check);
    return isOver || goesOn ? undefined : `(${refresh_id}, check ${check}) ended the chain`;
  }

  #isBuried(place: { topic: string; partition: number; offset: number }): boolean {
    return this.#checks.index.letters.some(({ headers }) => {
      const [topic, partition, offset] = ["topic", "partition", "offset"].map((name) => String(headers[`dead_letter_${name}`]));
      return placeOf(place) === placeOf({ topic: topic ?? "", partition: Number(partition), offset: Number(offset) });
    });
  }
}
