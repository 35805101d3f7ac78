import type { Topics } from "../../../services/common/kafka/topics.ts";
import type { Tables } from "../cassandra/tables.ts";
import type { Broker } from "../kafka/broker.ts";
import type { Log, LogRecord } from "../kafka/log.ts";
import type { LoggedCall, MetadataHosts } from "../metadata-hosts.ts";
import type { ServiceName, SimulatedProcess } from "../process.ts";
import type { VirtualTime } from "../time/virtual-time.ts";
import type { WorldPlan } from "../world-plan.ts";
import { checkCalls } from "./calls.ts";
import { Commits } from "./commits.ts";
import { checkLetters } from "./letters.ts";
import { LogIndex } from "./log-index.ts";
import { ProgressWatch } from "./progress-watch.ts";
import { checkResults } from "./results.ts";

export interface LedgerOptions {
  readonly plan: WorldPlan;
  readonly topics: Topics;
  readonly log: Log;
  readonly tables: Tables;
  readonly hosts: MetadataHosts;
  readonly time: VirtualTime;
  readonly broker: Broker;
}

/** Keeps its own account of a world: what was accepted, called, appended and committed. Finds the first promise that is broken. */
export class Ledger {
  readonly commits: Commits;
  readonly #options: LedgerOptions;
  readonly #index: LogIndex;
  readonly #disturbances = new Map<ServiceName, number>();
  #broken: string | undefined;

  constructor(options: LedgerOptions) {
    this.#options = options;
    const { topics, tables, log, hosts } = options;
    this.#index = new LogIndex(topics);
    const report = (problem: string): void => this.#report(problem);
    const progress = new ProgressWatch(report);
    this.commits = new Commits({
      topics,
      index: this.#index,
      progressOf: (refreshId) => tables.row("refresh_progress", refreshId),
      hasRows: (refreshId) =>
        tables.row("refreshes", refreshId) !== undefined && tables.row("refresh_tokens", refreshId) !== undefined,
      report,
    });
    log.onAppend((records) => this.#appended(records));
    tables.onChange(({ table, row }) => {
      if (table === "refresh_progress") progress.changed(row);
    });
    hosts.onCall((call) => this.#called(call));
  }

  /** The first broken promise. */
  get broken(): string | undefined {
    return this.#broken;
  }

  /** Something happened to a service that may make it repeat a window of work. */
  disturbed(service: ServiceName): void {
    this.#disturbances.set(service, (this.#disturbances.get(service) ?? 0) + 1);
  }

  /** Everything that it has done is done again, once. */
  rewound(service: ServiceName): void {
    this.disturbed(service);
  }

  /**
   * A process that gives up has met a bug. But kafkajs forgets to join again when its JoinGroup is lost after it was put out of the
   * group, and stands still: that a process then ends, and is started anew, is how it is meant.
   */
  failed(process: SimulatedProcess, cause: unknown): void {
    this.disturbed(process.service);
    if (cause instanceof Error && /stands still/.test(cause.message)) return;
    this.#report(`${process.name} gave up: ${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}`);
  }

  /** When the world is at rest. */
  close(): void {
    const { plan, topics, tables, hosts } = this.#options;
    const book = { plan, topics, tables, index: this.#index, calls: hosts.calls, disturbances: this.#disturbances };
    for (const check of [checkResults, checkCalls, checkLetters]) {
      for (const problem of check(book)) this.#report(problem);
    }
  }

  #appended(records: readonly LogRecord[]): void {
    const { topics, tables } = this.#options;
    for (const record of records) {
      this.#index.add(record);
      if (record.topic !== topics.refreshCompleted.name) continue;
      const id = record.key?.toString() ?? "";
      const row = tables.row("refresh_progress", id);
      if (Number(row?.completed_version ?? 0) === 0) this.#report(`I6: ${id} was said to be complete before its progress`);
    }
  }

  /** The lease: who may have been given up by its group must not call any more. */
  #called({ process, path }: LoggedCall): void {
    const group = this.#options.broker.group("simulated.fetcher");
    if (!group.hasMemberOf(process)) this.#report(`the lease: ${process} called ${path} after it was put out of its group`);
  }

  #report(problem: string): void {
    this.#broken ??= `${problem} (at ${(this.#options.time.nowMs / 1_000).toFixed(3)} s)`;
  }
}
