import { EventEmitter, once } from "node:events";
import { expect, it } from "vitest";
import { z } from "zod";
import { parseConfig } from "../../../../services/common/config/config.ts";
import { operationsSettings, processSettings } from "../../../../services/common/config/settings.ts";
import { runMain, type ServiceDefinition } from "../../../../services/common/lifecycle/main.ts";

const schema = z.object({ ...processSettings, ...operationsSettings(0) });
type Config = z.output<typeof schema>;

/** A process that records what it was told to do. */
class RecordedProcess extends EventEmitter {
  readonly env: Record<string, string>;
  readonly written: string[] = [];
  readonly stderr = { write: (text: string) => this.written.push(text) > 0 };

  constructor(env: Record<string, string>) {
    super();
    this.env = { LOG_LEVEL: "silent", ...env };
  }

  exit(code?: number): void {
    this.emit("exited", code);
  }
}

async function runIn(process: RecordedProcess, run: ServiceDefinition<Config>["run"]): Promise<unknown> {
  const exited = once(process, "exited");
  const target = process as Parameters<typeof runMain>[0] & RecordedProcess;
  await runMain<Config>(target, { name: "sample", parse: (environment) => parseConfig(schema, environment), run });
  const [code] = await exited;
  return code;
}

it("lists every mistake of the configuration and exits 2 before anything starts", async () => {
  const process = new RecordedProcess({ OPERATIONS_PORT: "-1", SHUTDOWN_TIMEOUT_MS: "soon" });
  expect(await runIn(process, () => Promise.reject(new Error("must not run")))).toBe(2);
  expect(process.written.join("")).toBe(
    "sample: the configuration has mistakes:\n" +
      "  SHUTDOWN_TIMEOUT_MS: must be a whole number\n  OPERATIONS_PORT: must be at least 0\n",
  );
});

it("exits 1 when the service cannot start, after stopping what had started", async () => {
  const stopped: string[] = [];
  const code = await runIn(new RecordedProcess({}), async (_config, context) => {
    context.onStop("store", async () => void stopped.push("store"));
    throw new Error("no broker");
  });
  expect([code, stopped]).toEqual([1, ["store"]]);
});

it("exits 0 at a signal once everything has stopped", async () => {
  const process = new RecordedProcess({});
  const stopped: string[] = [];
  const code = await runIn(process, async (_config, context) => {
    context.onStop("store", async () => void stopped.push("store"));
    queueMicrotask(() => process.emit("SIGTERM"));
  });
  expect([code, stopped]).toEqual([0, ["store"]]);
});

it("exits at once at a second signal, though a step still hangs", async () => {
  const process = new RecordedProcess({});
  const code = await runIn(process, async (_config, context) => {
    context.onStop("hanging", () => new Promise(() => {}));
    queueMicrotask(() => {
      process.emit("SIGINT");
      process.emit("SIGINT");
    });
  });
  expect(code).toBe(1);
});

it("exits 1 when the service reports that it cannot go on", async () => {
  expect(await runIn(new RecordedProcess({}), async (_config, context) => context.fail(new Error("crashed")))).toBe(1);
});
