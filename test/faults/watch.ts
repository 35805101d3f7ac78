import { setTimeout as sleep } from "node:timers/promises";
import { type Admin, Kafka, logLevel } from "kafkajs";
import type { Topics } from "../../services/common/kafka/topics.ts";
import type { RefreshView } from "../support/clients.ts";
import type { AcceptedRefresh, Account } from "./account.ts";

/** Repeats `look` until it is stopped; a look that fails is a look at a service that is down. */
abstract class Watch {
  failedLooks = 0;
  readonly #stopping = new AbortController();
  #watching: Promise<void> | undefined;

  protected abstract look(): Promise<void>;

  start(everyMs: number): void {
    this.#watching ??= this.#watch(everyMs);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#watching;
  }

  async #watch(everyMs: number): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.look().catch(() => {
        this.failedLooks += 1;
      });
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** What owners are told while their refreshes go on: README, Guarantees, I2 and I3. */
export class ProgressWatch extends Watch {
  readCount = 0;
  readonly wrong: { readonly invariant: "I2" | "I3"; readonly what: string }[] = [];
  readonly #account: Account;
  readonly #pending = new Map<string, number>();
  #next = 0;

  constructor(account: Account) {
    super();
    this.#account = account;
  }

  note(request: AcceptedRefresh, view: RefreshView): void {
    const { refreshId, tokenIds } = request;
    const { status, completed_at: completedAt, summary } = view;
    const total = summary.succeeded + summary.failed + summary.pending;
    const before = this.#pending.get(refreshId) ?? tokenIds.length;
    const told = `${refreshId}: ${JSON.stringify({ status, ...summary })}`;
    if (total !== tokenIds.length) this.wrong.push({ invariant: "I2", what: `${told} of ${tokenIds.length}` });
    if (summary.pending > before) this.wrong.push({ invariant: "I2", what: `${told} after ${before} pending` });
    const ended = status === "completed";
    if (ended !== (summary.pending === 0) || ended !== (completedAt !== null)) this.wrong.push({ invariant: "I3", what: told });
    this.#pending.set(refreshId, summary.pending);
    this.readCount += 1;
  }

  /** Completed, as far as was seen. */
  hasEnded(refreshId: string): boolean {
    return this.#pending.get(refreshId) === 0;
  }

  /** Tokens, as far as was seen. */
  pendingOf({ refreshId, tokenIds }: AcceptedRefresh): number {
    return this.#pending.get(refreshId) ?? tokenIds.length;
  }

  /** One refresh under way after the other. */
  protected override async look(): Promise<void> {
    const underWay = this.#account.accepted.filter(({ refreshId }) => !this.hasEnded(refreshId));
    this.#next += 1;
    const request = underWay[this.#next % Math.max(1, underWay.length)];
    if (request !== undefined) this.note(request, await request.project.owner.getRefresh(request.refreshId));
  }
}

const probeTimeoutMs = 10_000;

/**
 * Calls the Metadata APIs from here. When such a call takes long, the machine is too busy for anybody's, and a token that timed out says
 * nothing of the services.
 */
export class ApiWatch extends Watch {
  slowestMs = 0;
  readonly #urls: () => readonly string[];

  constructor(urls: () => readonly string[]) {
    super();
    this.#urls = urls;
  }

  protected override async look(): Promise<void> {
    for (const url of this.#urls()) {
      const beginMs = performance.now();
      await fetch(`${url}/probe`, { signal: AbortSignal.timeout(probeTimeoutMs) }).then((answer) => answer.arrayBuffer());
      this.slowestMs = Math.max(this.slowestMs, performance.now() - beginMs);
    }
  }
}

/** A committed offset, seen not later than `seenAtMs` on the wall clock. */
export interface SeenCommit {
  readonly offset: number;
  readonly seenAtMs: number;
}

/** What the services' groups have committed, and when at the latest: README, Guarantees, I13. */
export class CommitWatch extends Watch {
  /** By `topic/partition`, rising. */
  readonly commits = new Map<string, SeenCommit[]>();
  readonly #admin: Admin;
  readonly #groups: readonly { readonly groupId: string; readonly topics: string[] }[];
  #connected: Promise<void> | undefined;

  constructor(env: Readonly<Record<string, string>>, topics: Topics) {
    super();
    const brokers = (env.KAFKA_BROKERS ?? "").split(",");
    this.#admin = new Kafka({ brokers, clientId: "commit-watch", logLevel: logLevel.NOTHING, retry: { retries: 0 } }).admin();
    const nameOf = ({ name }: { name: string }) => name;
    this.#groups = [
      { groupId: `${env.GROUP_PREFIX}.splitter`, topics: [topics.refreshRequested].map(nameOf) },
      { groupId: `${env.GROUP_PREFIX}.fetcher`, topics: [topics.tokenRequested, ...topics.retryTiers].map(nameOf) },
      { groupId: `${env.GROUP_PREFIX}.aggregator`, topics: [topics.tokenOutcome].map(nameOf) },
    ];
  }

  /** The end of everything that is committed now; also asked once more at the end. */
  async look(): Promise<void> {
    this.#connected ??= this.#admin.connect();
    await this.#connected.catch((error: unknown) => {
      this.#connected = undefined;
      throw error;
    });
    for (const { groupId, topics } of this.#groups) {
      const answer = await this.#admin.fetchOffsets({ groupId, topics });
      const seenAtMs = Date.now();
      for (const { topic, partitions } of answer) {
        for (const { partition, offset } of partitions) this.#note(`${topic}/${partition}`, { offset: Number(offset), seenAtMs });
      }
    }
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#admin.disconnect();
  }

  #note(place: string, commit: SeenCommit): void {
    const known = this.commits.get(place) ?? [];
    this.commits.set(place, known);
    if (commit.offset > (known.at(-1)?.offset ?? 0)) known.push(commit);
  }
}
