import type { World } from "./world.ts";

/** Servers that take the place of those of the stack, as the services' environment names them, and what takes them away again. */
export interface ScenarioServers {
  /** For the services: `{ KAFKA_BROKERS: "127.0.0.1:19092" }`. */
  readonly services: Readonly<Record<string, string>>;
  /** For provisioning and the verifier, which see past a proxy; by default what the services get. */
  readonly verifier?: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** One fault, or one sequence of faults, under load. */
export interface Scenario {
  /** As it is called on the command line: lower case, with hyphens. */
  readonly name: string;
  /** What goes wrong, and what must hold, in one sentence. */
  readonly title: string;
  /** Settings of every service, beyond those of the world. A scenario with any of its own gets a world of its own. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Started before the world, for this scenario alone. */
  readonly servers?: () => Promise<ScenarioServers>;
  /** Not among those that run when none is named: `npm run faults -- <name>`. */
  readonly onRequest?: true;
  /**
   * Loads, breaks and mends. When it returns, every service runs, or is on its way: then the world waits for every accepted refresh,
   * and the verifier checks. A throw says that the fault could not be made, and fails the scenario.
   */
  run(world: World): Promise<void>;
}
