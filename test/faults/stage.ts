import type { Topics } from "../../services/common/kafka/topics.ts";
import type { RefreshRequested, TokenRefresh } from "../../services/common/messages/records.ts";
import { createEnvironment, type TestEnvironment } from "../support/environment.ts";
import { Ledger } from "../support/ledger.ts";
import { readTopic, type TopicReader } from "../support/topic-reader.ts";
import { Fleet } from "./fleet.ts";
import type { Scenario } from "./scenario.ts";

/** Short, so that a retry is seen within seconds. */
const delays = "retry-2s=300,retry-10s=900,retry-60s=2000,retry-600s=4000";
/** The limits under test are those of single projects; and a graceful stop on a machine under load takes longer than on one's own. */
const usualSettings = { REQUESTS_PER_SECOND_PER_IP: "100000", REFRESHES_PER_HOUR: "1000000", SHUTDOWN_TIMEOUT_MS: "60000" };
export const shortestDelayMs = 300;
/** README, Run it in production: sessions are short here, as everywhere in the tests. */
export const sessionTimeoutMs = 6_000;

/** The five services in an environment of their own, and the readers of all they write: kept from one scenario to the next. */
export class Stage {
  readonly environment: TestEnvironment;
  readonly fleet: Fleet;
  /** Outcomes, states, completions, and the tables. */
  readonly ledger: Ledger;
  readonly requested: TopicReader<RefreshRequested>;
  /** Tokens on their way: token.requested and every delay tier. */
  readonly underWay: TopicReader<TokenRefresh>;
  readonly deadLetters: TopicReader<Buffer>;
  readonly #closers: readonly (() => Promise<unknown>)[];

  static async open({ settings = {}, servers }: Pick<Scenario, "settings" | "servers">): Promise<Stage> {
    const closers: (() => Promise<unknown>)[] = [];
    const own = async <T>(starting: Promise<T>, close: (thing: T) => Promise<unknown>): Promise<T> => {
      const thing = await starting;
      closers.unshift(() => close(thing));
      return thing;
    };
    try {
      const others = servers === undefined ? undefined : await own(servers(), (started) => started.close());
      const seen = others === undefined ? {} : { servers: others.verifier ?? others.services };
      const environment = await own(createEnvironment("faults", { delays, ...seen }), (created) => created.close());
      const { env, topics } = environment;
      const fleet = await own(Fleet.start({ ...env, ...usualSettings, ...settings, ...others?.services }), (it) => it.close());
      const ledger = await own(Ledger.open(environment), (opened) => opened.close());
      const requested = await own(readTopic<RefreshRequested>(env, topics.refreshRequested.name), (reader) => reader.close());
      const tokens = [topics.tokenRequested, ...topics.retryTiers].map(({ name }) => name);
      const underWay = await own(readTopic<TokenRefresh>(env, ...tokens), (reader) => reader.close());
      const deadLetters = await own(readTopic<Buffer>(env, topics.deadLetter.name), (reader) => reader.close());
      return new Stage({ environment, fleet, ledger, requested, underWay, deadLetters }, closers);
    } catch (error) {
      for (const close of closers) await close().catch(() => undefined);
      throw error;
    }
  }

  private constructor(
    parts: Pick<Stage, "environment" | "fleet" | "ledger" | "requested" | "underWay" | "deadLetters">,
    closers: readonly (() => Promise<unknown>)[],
  ) {
    this.environment = parts.environment;
    this.fleet = parts.fleet;
    this.ledger = parts.ledger;
    this.requested = parts.requested;
    this.underWay = parts.underWay;
    this.deadLetters = parts.deadLetters;
    this.#closers = closers;
  }

  get topics(): Topics {
    return this.environment.topics;
  }

  /** Each topic has a reader of its own, and one may be behind the other. */
  async caughtUp(): Promise<void> {
    const { states, completions, outcomes } = this.ledger;
    const readers = [states, completions, outcomes, this.requested, this.underWay, this.deadLetters];
    await Promise.all(readers.map((reader) => reader.caughtUp()));
  }

  /** Drops what was read of these refreshes. */
  forget(refreshIds: ReadonlySet<string>): void {
    this.ledger.outcomes.forget(({ value }) => refreshIds.has(value.refresh_id));
    this.ledger.states.forget(({ value }) => refreshIds.has(value.refresh_id));
    this.ledger.completions.forget(({ key }) => refreshIds.has(key));
    this.requested.forget(({ key }) => refreshIds.has(key));
    this.underWay.forget(({ value }) => refreshIds.has(value.refresh_id));
    this.deadLetters.forget(() => true);
  }

  async close(): Promise<void> {
    for (const close of this.#closers) await close();
  }
}
