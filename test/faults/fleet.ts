import {
  describe,
  type Exit,
  type ServiceName,
  type ServiceProcess,
  serviceNames,
  startService,
} from "../../deploy/development/service-process.ts";
import type { CrashPoint } from "../../services/common/lifecycle/crash-points.ts";
import { waitFor } from "../support/wait-for.ts";
import { LogWatch } from "./log-watch.ts";

/** One place for a process of a service; 1 is the first, and all there is unless a scenario starts more. */
export interface Slot {
  readonly slot?: number;
}

export interface StartOptions extends Slot {
  readonly settings?: Readonly<Record<string, string>>;
  readonly crashAt?: { readonly point: CrashPoint; readonly nth?: number };
}

interface Member {
  readonly service: ServiceName;
  readonly slot: number;
  readonly process: ServiceProcess;
  /** Its end is a fault of ours. */
  readonly mayEnd: () => boolean;
  readonly expectEnd: () => void;
}

const httpServices: readonly ServiceName[] = ["ingress", "registry"];
/** The crash point that was set has to be reached under the load that there is. */
const crashWithinMs = 120_000;
const startWithinMs = 120_000;
const stopWithinMs = 90_000;

/** The services' processes of a world: any number of each, started, stopped and hurt one by one. */
export class Fleet {
  readonly logs = new LogWatch();
  readonly #environment: Readonly<Record<string, string>>;
  readonly #members = new Map<string, Member>();
  readonly #ports = new Map<string, string>();
  readonly #unasked: string[] = [];

  constructor(environment: Readonly<Record<string, string>>) {
    this.#environment = environment;
  }

  static async start(environment: Readonly<Record<string, string>>): Promise<Fleet> {
    const fleet = new Fleet(environment);
    try {
      await Promise.all(serviceNames.map((service) => fleet.start(service)));
    } catch (error) {
      await fleet.close();
      throw error;
    }
    return fleet;
  }

  get ingressUrl(): string {
    return this.url("ingress");
  }

  get registryUrl(): string {
    return this.url("registry");
  }

  /** Stays the same over restarts of the slot. */
  url(service: "ingress" | "registry", { slot = 1 }: Slot = {}): string {
    return `http://127.0.0.1:${this.#ports.get(nameOf(service, slot))}`;
  }

  /** Everything that runs, or should. */
  get members(): readonly { readonly service: ServiceName; readonly slot: number; readonly process: ServiceProcess }[] {
    return [...this.#members.values()];
  }

  process(service: ServiceName, { slot = 1 }: Slot = {}): ServiceProcess {
    return this.#member(service, slot).process;
  }

  /** Processes that ended although nobody ended them, since the last question. */
  takeUnaskedEnds(): string[] {
    return this.#unasked.splice(0);
  }

  /** Resolves when it is ready. The slot must be empty. */
  async start(service: ServiceName, { slot = 1, settings = {}, crashAt }: StartOptions = {}): Promise<void> {
    const name = nameOf(service, slot);
    if (this.#members.has(name)) throw new Error(`${name} runs already`);
    const process = startService(service, {
      environment: {
        ...this.#environment,
        HTTP_PORT: this.#ports.get(name) ?? "0",
        ...(crashAt === undefined ? {} : { CRASH_POINT: `${crashAt.point}:${crashAt.nth ?? 1}` }),
        ...settings,
      },
      onLine: (line) => this.logs.take(name, line),
    });
    this.#join(name, { service, slot, process });
    await process.ready(startWithinMs);
    if (!httpServices.includes(service)) return;
    // Its log comes through a pipe, and may be behind its readiness.
    const port = await waitFor(
      `the port of ${name}`,
      () => process.port("http.listening"),
      (seen) => seen !== undefined,
    );
    this.#ports.set(name, String(port));
  }

  /** SIGTERM; resolves with how it ended. The slot is empty then. */
  async stop(service: ServiceName, { slot = 1 }: Slot = {}): Promise<Exit> {
    return this.#end(service, slot, (process) => void process.stop(stopWithinMs));
  }

  /** kill -9. The slot is empty then. */
  async kill(service: ServiceName, { slot = 1 }: Slot = {}): Promise<Exit> {
    return this.#end(service, slot, (process) => process.kill("SIGKILL"));
  }

  /** SIGSTOP. */
  pause(service: ServiceName, slot: Slot = {}): void {
    this.process(service, slot).kill("SIGSTOP");
  }

  /** SIGCONT. */
  resume(service: ServiceName, slot: Slot = {}): void {
    this.process(service, slot).kill("SIGCONT");
  }

  /** Gracefully stopped and started again with something set, such as a crash point. */
  async replace(service: ServiceName, options: StartOptions = {}): Promise<void> {
    await this.stop(service, options);
    await this.start(service, options);
  }

  /** Waits until the process has ended itself at its crash point. The slot is empty then. */
  async crashed(service: ServiceName, point: CrashPoint, { slot = 1 }: Slot = {}): Promise<void> {
    const { process, expectEnd } = this.#member(service, slot);
    expectEnd();
    const name = nameOf(service, slot);
    await waitFor(
      `${name} at ${point}`,
      () => process.isRunning(),
      (running) => !running,
      { withinMs: crashWithinMs, everyMs: 5 },
    );
    const exit = await process.exited;
    const said = process.output.some((line) => line.startsWith(`crash point ${point} reached`));
    this.#members.delete(name);
    if (!said || exit.signal !== "SIGKILL") {
      throw new Error(
        `${name} ended by ${describe(exit)}, not at ${point}; its last lines:\n${process.output.slice(-10).join("\n")}`,
      );
    }
  }

  /** What each service said last, for people. */
  lastWords(lineCount = 12): string {
    return this.members
      .map(
        ({ service, slot, process }) => `--- ${nameOf(service, slot)}\n${process.output.slice(-lineCount).map(cut).join("\n")}`,
      )
      .join("\n");
  }

  async close(): Promise<void> {
    await Promise.all([...this.#members.values()].map(({ service, slot }) => this.stop(service, { slot })));
  }

  #member(service: ServiceName, slot: number): Member {
    const member = this.#members.get(nameOf(service, slot));
    if (member === undefined) throw new Error(`${nameOf(service, slot)} does not run`);
    return member;
  }

  #join(name: string, { service, slot, process }: Pick<Member, "service" | "slot" | "process">): void {
    let expected = false;
    const member: Member = {
      service,
      slot,
      process,
      mayEnd: () => expected,
      expectEnd: () => {
        expected = true;
      },
    };
    this.#members.set(name, member);
    void process.exited.then((exit) => {
      if (!member.mayEnd()) this.#unasked.push(`${name} ended by ${describe(exit)}: ${process.output.slice(-2).join(" ")}`);
    });
  }

  async #end(service: ServiceName, slot: number, end: (process: ServiceProcess) => void): Promise<Exit> {
    const { process, expectEnd } = this.#member(service, slot);
    expectEnd();
    end(process);
    const exit = await process.exited;
    this.#members.delete(nameOf(service, slot));
    return exit;
  }
}

const cut = (line: string): string => line.slice(0, 400);

function nameOf(service: ServiceName, slot: number): string {
  return slot === 1 ? service : `${service}#${slot}`;
}
