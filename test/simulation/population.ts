import { parse as parseAggregator } from "../../services/aggregator/config.ts";
import { run as runAggregator } from "../../services/aggregator/run.ts";
import type { ConfigResult, Environment } from "../../services/common/config/config.ts";
import type { ServiceContext } from "../../services/common/lifecycle/context.ts";
import { parse as parseFetcher } from "../../services/fetcher/config.ts";
import { run as runFetcher } from "../../services/fetcher/run.ts";
import { parse as parseSplitter } from "../../services/splitter/config.ts";
import { run as runSplitter } from "../../services/splitter/run.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { type ServiceName, SimulatedProcess } from "./process.ts";
import type { VirtualTime } from "./time/virtual-time.ts";
import type { Trace } from "./trace.ts";
import type { WorldPlan } from "./world-plan.ts";

const environment: Environment = {
  NODE_ENV: "test",
  GROUP_PREFIX: "simulated",
  SESSION_TIMEOUT_MS: "6000",
  REBALANCE_TIMEOUT_MS: "8000",
  HEARTBEAT_INTERVAL_MS: "1000",
  KAFKA_REQUEST_TIMEOUT_MS: "2000",
};

type Run = (context: ServiceContext) => Promise<void>;

function runOf(service: ServiceName, settings: Environment): Run {
  const all = { ...environment, ...settings };
  if (service === "splitter") return (context) => runSplitter(configOf(parseSplitter(all)), context);
  if (service === "fetcher") return (context) => runFetcher(configOf(parseFetcher(all)), context);
  return (context) => runAggregator(configOf(parseAggregator(all)), context);
}

function configOf<C>(parsed: ConfigResult<C>): C {
  if (!parsed.ok) throw new Error(parsed.problems.join("; "));
  return parsed.config;
}

interface PopulationOptions {
  readonly plan: WorldPlan;
  readonly time: VirtualTime;
  readonly ledger: Ledger;
  readonly trace: Trace | undefined;
}

/** Who restarts what has ended waits so long. */
const restartMs = 1_000;
const graceMs = 15_000;

/** The processes of the three services: whoever dies is started again. */
export class Population {
  readonly #options: PopulationOptions;
  readonly #slots: { readonly service: ServiceName; process: SimulatedProcess | undefined }[] = [];
  readonly #runs = new Map<ServiceName, Run>();
  #count = 0;

  constructor(options: PopulationOptions) {
    this.#options = options;
  }

  start(): void {
    for (const [service, count] of Object.entries(this.#options.plan.members)) {
      for (let index = 0; index < count; index += 1) this.#add(service as ServiceName);
    }
  }

  join(service: ServiceName): void {
    this.#options.ledger.disturbed(service);
    this.#add(service);
  }

  #add(service: ServiceName): void {
    const slot = { service, process: undefined };
    this.#slots.push(slot);
    this.#startIn(slot);
  }

  /** The process in the slot of this number, when it lives. */
  find(service: ServiceName, number: number): SimulatedProcess | undefined {
    const ofService = this.#slots.filter((slot) => slot.service === service);
    const process = ofService[number % ofService.length]?.process;
    return process?.alive ? process : undefined;
  }

  kill(process: SimulatedProcess, awayMs: number): void {
    this.#options.ledger.disturbed(process.service);
    process.end();
    this.#startAgain(process, awayMs);
  }

  /** SIGTERM; after its grace it is killed. */
  restart(process: SimulatedProcess, awayMs: number): void {
    const { time } = this.#options;
    this.#options.ledger.disturbed(process.service);
    const stop = (): void => {
      void process.stop().then(() => this.#startAgain(process, awayMs));
    };
    time.after(0, stop, { owner: process });
    time.after(graceMs, () => {
      if (process.alive) this.kill(process, awayMs);
    });
  }

  freeze(process: SimulatedProcess, forMs: number): void {
    const { time, ledger, trace } = this.#options;
    ledger.disturbed(process.service);
    trace?.note(process.name, `frozen for ${forMs} ms`);
    process.stoppedUntilMs = time.nowMs + forMs;
    // Time must not jump over its waking.
    time.after(forMs, () => trace?.note(process.name, "wakes"));
  }

  #startAgain(process: SimulatedProcess, awayMs: number): void {
    const slot = this.#slots.find((one) => one.process === process);
    if (slot !== undefined) this.#options.time.after(awayMs, () => slot.process === process && this.#startIn(slot));
  }

  #startIn(slot: { readonly service: ServiceName; process: SimulatedProcess | undefined }): void {
    const { plan, time, ledger, trace } = this.#options;
    const { service } = slot;
    const number = this.#count++;
    const name = `${service}-${number}`;
    const run = this.#runs.get(service) ?? runOf(service, plan.settings);
    this.#runs.set(service, run);
    const process: SimulatedProcess = new SimulatedProcess({
      name,
      service,
      skewMs: plan.skewsMs[number % plan.skewsMs.length] ?? 0,
      run,
      trace: (line, fields) => trace?.note(name, line, fields),
      onFail: (cause) => {
        ledger.failed(process, cause);
        time.after(restartMs, () => slot.process === process && this.#startIn(slot));
      },
    });
    slot.process = process;
    time.after(0, () => process.start(), { owner: process });
  }
}
