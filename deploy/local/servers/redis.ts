import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { dataFolder } from "../folders.ts";
import { type Package, packageFolder } from "../packages.ts";
import { StackProblem } from "../problem.ts";
import { findInPath } from "../processes.ts";
import { host, type StackSettings } from "../settings.ts";
import type { ServerKind } from "./server.ts";

export const redis: ServerKind = {
  name: "redis",
  title: "Redis",
  version: (settings) => runningVersion(settings) ?? settings.versions.REDIS_VERSION,
  ports: ({ ports }) => [{ name: "REDIS_PORT", port: ports.REDIS_PORT }],
  packages: (settings) => (installed(settings) === undefined ? [embedded(settings)] : []),
  prepare: async (settings) => {
    mkdirSync(dataFolder(settings, "redis"), { recursive: true });
    if (installed(settings) === undefined) requireRunnable(settings);
  },
  command: (settings) => ({
    file: programOf(settings),
    arguments: [
      ...["--bind", host],
      ...["--port", String(settings.ports.REDIS_PORT)],
      ...["--dir", dataFolder(settings, "redis")],
      // Limits survive a crash but for the last second, without the forks and pauses of snapshots.
      ...["--appendonly", "yes"],
      ...["--appendfsync", "everysec"],
      ...["--save", ""],
      // A limit that is evicted is a limit that is not kept.
      ...["--maxmemory-policy", "noeviction"],
    ],
  }),
  answers: ping,
  stopWithinMs: 10_000,
};

function embedded({ versions }: StackSettings): Package {
  const version = versions.EMBEDDED_REDIS_VERSION;
  return { title: "Redis", folder: `embedded-redis-${version}`, source: { mavenModule: "redis" } };
}

/** The machine's own redis-server, if it has the pinned major version. */
function installed({ versions }: StackSettings): string | undefined {
  const program = findInPath("redis-server");
  if (program === undefined) return undefined;
  const [wanted] = versions.REDIS_VERSION.split(".");
  return versionOf(program)?.split(".")[0] === wanted ? program : undefined;
}

function programOf(settings: StackSettings): string {
  return installed(settings) ?? embeddedProgram(settings);
}

function embeddedProgram(settings: StackSettings): string {
  const folder = packageFolder(settings, embedded(settings));
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  const file = readdirSync(folder).find((name) => name.endsWith(`linux-${architecture}`));
  if (file === undefined) throw new StackProblem(`there is no packaged Redis for ${process.arch}; ${install(settings)}`);
  return join(folder, file);
}

/** The packaged program is linked against OpenSSL 3, which a bare machine may lack. */
function requireRunnable(settings: StackSettings): void {
  const program = embeddedProgram(settings);
  // A jar keeps no permissions.
  chmodSync(program, 0o755);
  const { status, stderr } = spawnSync(program, ["--version"], { encoding: "utf8" });
  if (status !== 0)
    throw new StackProblem(
      `the packaged Redis does not run here (${(stderr ?? "").trim().slice(0, 200)}); install OpenSSL 3 (Debian: apt-get install libssl3), or ${install(settings)}`,
    );
}

function install({ versions }: StackSettings): string {
  return `install a redis-server ${versions.REDIS_VERSION.split(".")[0]} (Debian: apt-get install redis-server)`;
}

/** The packaged program is older than the pinned version: say what really runs. */
function runningVersion(settings: StackSettings): string | undefined {
  const fetched = existsSync(packageFolder(settings, embedded(settings)));
  const program = installed(settings) ?? (fetched ? embeddedProgram(settings) : undefined);
  return program === undefined ? undefined : versionOf(program);
}

function versionOf(program: string): string | undefined {
  return /v=(\S+)/.exec(spawnSync(program, ["--version"], { encoding: "utf8" }).stdout ?? "")?.[1];
}

/** While it reads its data back after a start Redis takes connections and refuses commands. */
async function ping({ ports }: StackSettings): Promise<void> {
  const client = new Redis({
    host,
    port: ports.REDIS_PORT,
    lazyConnect: true,
    enableReadyCheck: false,
    connectTimeout: 1000,
    commandTimeout: 1000,
    retryStrategy: () => null,
  });
  // ioredis reports a refused connection as an event too, and prints it when nobody listens.
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.ping();
  } finally {
    client.disconnect();
  }
}
