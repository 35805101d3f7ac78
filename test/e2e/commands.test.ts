import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { identify } from "../../deploy/local/processes.ts";
import { createEnvironment, type TestEnvironment } from "../support/environment.ts";
import { waitFor } from "../support/wait-for.ts";

const projectFolder = new URL("../..", import.meta.url).pathname;

let environment: TestEnvironment;
const commands: Command[] = [];

beforeAll(async () => {
  environment = await createEnvironment("commands");
});

afterEach(async () => {
  for (const command of commands.splice(0)) await command.end();
});

afterAll(() => environment?.close());

/** A command of package.json, beside whatever a developer has running on the default ports. */
class Command {
  readonly #child: ChildProcess;
  readonly exited: Promise<number | null>;
  output = "";

  constructor(script: string) {
    this.#child = spawn(process.execPath, ["--no-warnings", script], {
      cwd: projectFolder,
      env: { ...process.env, ...environment.env, SERVICE_PORT_OFFSET: "11000" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.output += chunk;
      });
    }
    this.exited = new Promise((resolve) => this.#child.once("close", resolve));
    commands.push(this);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  says(text: string): Promise<unknown> {
    return waitFor(
      `"${text}"`,
      () => this.output,
      (output) => output.includes(text),
      { withinMs: 120_000 },
    );
  }

  /** Its child processes, as the kernel knows them. */
  childPids(): number[] {
    const { pid } = this.#child;
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
  }

  /** The services it has reported, by name. */
  servicePids(): Map<string, number> {
    const reports = this.output.matchAll(/^(\w+) +ready \(process (\d+)/gm);
    return new Map([...reports].map(([, name = "", pid]) => [name, Number(pid)]));
  }

  async end(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.signal("SIGTERM");
    await this.exited;
  }
}

const alive = (pids: Iterable<number>) => [...pids].filter((pid) => identify(pid) !== undefined);

describe("npm start", () => {
  it("leaves no process behind when it is interrupted", async () => {
    const command = new Command("deploy/start.ts");
    await command.says("Ctrl-C stops everything");
    const pids = command.servicePids();
    expect([...pids.keys()].sort()).toEqual(["aggregator", "fetcher", "ingress", "registry", "splitter"]);
    expect(alive(pids.values())).toHaveLength(5);
    command.signal("SIGINT");
    expect(await command.exited).toBe(0);
    expect(alive(pids.values())).toEqual([]);
  });

  it("ends everything, with exit code 1 and the reason, when a service dies", async () => {
    const command = new Command("deploy/start.ts");
    await command.says("Ctrl-C stops everything");
    const pids = command.servicePids();
    process.kill(pids.get("splitter") ?? 0, "SIGKILL");
    expect(await command.exited).toBe(1);
    expect(command.output).toMatch(/error: splitter \(process \d+\) has ended by itself \(signal SIGKILL\)/);
    expect(alive(pids.values())).toEqual([]);
  });

  it("stops what it has started when it is interrupted before everything is ready", async () => {
    const command = new Command("deploy/start.ts");
    await command.says("topics, tables and schemas are there");
    const children = () => command.childPids();
    const pids = await waitFor("five services", children, ({ length }) => length === 5, { everyMs: 1 });
    expect(command.output).not.toContain("all services are ready");
    command.signal("SIGTERM");
    expect(await command.exited).toBe(0);
    expect(alive(pids)).toEqual([]);
    expect(command.output).not.toContain("error");
  });
});

describe("npm run demo", () => {
  it("shows a refresh with every kind of outcome, from POST to completion event, and stops what it started", async () => {
    const command = new Command("deploy/demo/demo.ts");
    expect(await command.exited, command.output).toBe(0);
    expect(command.output).toMatch(/completed in \d+\.\d s, from the POST to the completion event: 975 succeeded, 25 failed/);
    for (const code of [
      "invalid_response_status_code",
      "token_not_found",
      "unable_to_decode_response",
      "unable_to_retrieve_metadata",
    ]) {
      expect(command.output).toContain(code);
    }
    expect(command.output).toContain("975 changed tokens, then the completion event");
    expect(alive(command.servicePids().values())).toEqual([]);
  });

  it("uses services that run already and leaves them running", async () => {
    const start = new Command("deploy/start.ts");
    await start.says("Ctrl-C stops everything");
    const pids = start.servicePids();
    const demo = new Command("deploy/demo/demo.ts");
    expect(await demo.exited, demo.output).toBe(0);
    expect(demo.output).toContain("using the services that run already");
    expect(alive(pids.values())).toHaveLength(5);
  });
});
