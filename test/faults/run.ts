import type { Scenario } from "./scenario.ts";
import { Stage, shortestDelayMs } from "./stage.ts";
import type { Finding } from "./verify/finding.ts";
import { type Counts, verify } from "./verify/verify.ts";
import { World, type WorldOptions } from "./world.ts";

/** What came of a scenario. */
export interface ScenarioResult {
  readonly name: string;
  readonly title: string;
  readonly passed: boolean;
  /** Why it could not be carried out; null when it could. */
  readonly problem: string | null;
  readonly findings: readonly Finding[];
  readonly counts: Counts | null;
  /** What was done, in order. */
  readonly faults: readonly string[];
  readonly measures: readonly string[];
  readonly seconds: number;
}

/** Runs scenarios one after the other: on one stage as long as they need no other, and none has failed on it. */
export class Runner {
  readonly #options: WorldOptions;
  #stage: Promise<Stage> | undefined;

  constructor(options: WorldOptions) {
    this.#options = options;
  }

  async run(scenario: Scenario): Promise<ScenarioResult> {
    const beginMs = performance.now();
    const needsItsOwn = scenario.settings !== undefined || scenario.servers !== undefined;
    if (needsItsOwn) await this.close();
    const result = await this.#carryOut(scenario);
    if (needsItsOwn || !result.passed) await this.close();
    return { ...result, seconds: (performance.now() - beginMs) / 1_000 };
  }

  async close(): Promise<void> {
    const stage = await this.#stage?.catch(() => undefined);
    this.#stage = undefined;
    await stage?.close();
  }

  async #carryOut(scenario: Scenario): Promise<Omit<ScenarioResult, "seconds">> {
    const { name, title } = scenario;
    let world: World | undefined;
    try {
      this.#options.tell("starting the services");
      this.#stage ??= Stage.open(scenario);
      world = new World(await this.#stage, this.#options);
      await scenario.run(world);
      const { findings, counts } = await verify(world, { shortestDelayMs });
      const passed = findings.every(({ wrong }) => wrong.length === 0);
      const { faults, measures } = world.account;
      return { name, title, passed, problem: null, findings, counts, faults, measures };
    } catch (error) {
      this.#options.signal?.throwIfAborted();
      const stage = await this.#stage?.catch(() => undefined);
      const problem = `${error instanceof Error ? error.stack : error}\n${stage?.fleet.lastWords() ?? ""}`;
      const { faults = [], measures = [] } = world?.account ?? {};
      return { name, title, passed: false, problem, findings: [], counts: null, faults, measures };
    } finally {
      if (world !== undefined) await tidy(world);
    }
  }
}

/** The next scenario finds one instance of each service, and readers without this one's records. */
async function tidy(world: World): Promise<void> {
  const { fleet, stage, account } = world;
  await world.close();
  for (const { service, slot } of fleet.members) if (slot !== 1) await fleet.stop(service, { slot });
  stage.forget(new Set(account.accepted.map(({ refreshId }) => refreshId)));
}
