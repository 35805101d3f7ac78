import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { recordFile } from "../../deploy/local/folders.ts";
import { stackStatus, startServer, stopStack } from "../../deploy/local/lifecycle.ts";
import { privateSettings, removePrivateStack } from "../../deploy/local/private.ts";
import { identify } from "../../deploy/local/processes.ts";
import { addresses, readSettings, type StackSettings } from "../../deploy/local/settings.ts";
import { statusTable } from "../../deploy/local/table.ts";

// Redis stands for all four: what is tested is how servers are started, found again and stopped, and Redis is up in 0.1 s.
let settings: StackSettings;

beforeEach(async () => {
  settings = await privateSettings("local-stack-test");
});

afterEach(() => removePrivateStack(settings));

describe("starting", () => {
  it("leaves a running server alone", async () => {
    const first = await startServer("redis", settings);
    const again = await startServer("redis", settings);
    expect(again.pid).toBe(first.pid);
  });

  it("starts one server when two ask at once", async () => {
    const [one, other] = await Promise.all([startServer("redis", settings), startServer("redis", settings)]);
    expect(one.pid).toBe(other.pid);
  });

  it("brings a killed server back with its data", async () => {
    const server = await startServer("redis", settings);
    await withRedis((redis) => redis.set("kept", "yes"));
    const { pid } = server;
    await server.kill("SIGKILL");
    expect(await stateOf("redis")).toBe("crashed");
    await server.restart();
    expect(server.pid).not.toBe(pid);
    expect(await withRedis((redis) => redis.get("kept"))).toBe("yes");
  });

  it("names who has the port and the setting that moves it", async () => {
    const taken = createServer().listen(settings.ports.REDIS_PORT, "127.0.0.1");
    const expected = new RegExp(`port ${settings.ports.REDIS_PORT}, which is taken by process ${process.pid} .* set REDIS_PORT`);
    await expect(startServer("redis", settings)).rejects.toThrow(expected);
    taken.close();
  });

  it("refuses other ports for a server that runs in the same home", async () => {
    await startServer("redis", settings);
    const moved = { ...settings, ports: { ...settings.ports, REDIS_PORT: settings.ports.REDIS_PORT - 1 } };
    await expect(startServer("redis", moved)).rejects.toThrow(/run down first, or set STACK_HOME/);
  });
});

describe("stopping", () => {
  it("leaves no process and no record, also of a server that was paused", async () => {
    const server = await startServer("redis", settings);
    const { pid } = server;
    await server.kill("SIGSTOP");
    expect(await stateOf("redis")).toBe("not answering");
    await server.stop();
    expect(identify(pid)).toBeUndefined();
    expect(await stateOf("redis")).toBe("stopped");
  });

  it("spares a process that was given the id of a server long gone", async () => {
    const stranger = spawn("sleep", ["60"]);
    try {
      recordOfEarlierProcess(stranger);
      await stopStack(settings);
      expect(identify(stranger.pid ?? 0)).toBeDefined();
    } finally {
      stranger.kill("SIGKILL");
    }
  });
});

describe("settings", () => {
  it("names every wrong variable in one sentence", () => {
    const wrong = { KAFKA_PORT: "kafka", REDIS_PORT: "70000", CASSANDRA_PORT: "" };
    expect(() => readSettings(wrong)).toThrow(/^[^\n]*KAFKA_PORT[^\n]*REDIS_PORT[^\n]*$/);
  });

  it("give clients addresses with the ports that were set", () => {
    const { kafkaBrokers, cassandraPort, registryUrl, redisUrl } = addresses(
      readSettings({ KAFKA_PORT: "1001", CASSANDRA_PORT: "1002", REGISTRY_PORT: "1003", REDIS_PORT: "1004" }),
    );
    expect([kafkaBrokers, cassandraPort, registryUrl, redisUrl]).toEqual([
      ["127.0.0.1:1001"],
      1002,
      "http://127.0.0.1:1003/apis/ccompat/v7",
      "redis://127.0.0.1:1004",
    ]);
  });

  it("pin every version once, for the servers and for docker compose", () => {
    const { versions } = readSettings({});
    const names = readFileSync(new URL("../../.env", import.meta.url), "utf8").match(/^\w+(?==)/gm);
    expect(names?.sort()).toEqual(Object.keys(versions).sort());
  });
});

describe("the command", () => {
  it("shows a table whose columns line up", async () => {
    await startServer("redis", settings);
    const [head = "", ...rows] = statusTable(await stackStatus(settings), process.stderr).split("\n");
    const columns = ["server", "version", "state", "pid", "port", "RSS", "uptime"].map((name) => head.indexOf(name));
    expect(rows.map((row) => row.split(/\s/)[0])).toEqual(["kafka", "cassandra", "registry", "redis"]);
    for (const row of rows) {
      for (const column of columns) expect(` ${row}`.slice(column, column + 2)).toMatch(/^ \S$/);
    }
    expect(rows[3]).toMatch(/ running +\d+ +\d+ +\d+ MiB +\d+ s$/);
  });

  it("answers a wrong environment with one sentence, without a stack trace", async () => {
    const failed = runStack(["up"], { KAFKA_PORT: "kafka" });
    await expect(failed).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^error: [^\n]*KAFKA_PORT[^\n]*\n$/) });
  });
});

async function stateOf(name: string) {
  return (await stackStatus(settings)).find((server) => server.name === name)?.state;
}

async function withRedis<Result>(use: (redis: Redis) => Promise<Result>): Promise<Result> {
  const redis = new Redis(addresses(settings).redisUrl);
  try {
    return await use(redis);
  } finally {
    redis.disconnect();
  }
}

/** As if the machine had used the process id for a Redis before it gave it to this process. */
function recordOfEarlierProcess({ pid = 0 }: ChildProcess): void {
  const file = recordFile(settings, "redis");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify({ ...identify(pid), startTicks: "1", version: "1", ports: [1], startedAtMs: 0 }));
}

function runStack(list: readonly string[], environment: NodeJS.ProcessEnv) {
  const command = new URL("../../deploy/local/stack.ts", import.meta.url).pathname;
  return promisify(execFile)(process.execPath, [command, ...list], { env: { ...process.env, ...environment } });
}
