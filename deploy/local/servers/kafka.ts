import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Kafka, logLevel } from "kafkajs";
import { patchIdleTimer } from "../../../services/common/kafka/idle-timer.ts";
import { execute } from "../execute.ts";
import { configurationFile, dataFolder, logFile, writeWhole } from "../folders.ts";
import { type Package, packageFolder } from "../packages.ts";
import { StackProblem } from "../problem.ts";
import { addresses, host, type StackSettings } from "../settings.ts";
import { java17 } from "./jvm.ts";
import type { ServerKind } from "./server.ts";

/** One broker that is its own controller (KRaft). */
export const kafka: ServerKind = {
  name: "kafka",
  title: "Kafka",
  version: ({ versions }) => versions.KAFKA_VERSION,
  ports: ({ ports }) => [
    { name: "KAFKA_PORT", port: ports.KAFKA_PORT },
    { name: "KAFKA_CONTROLLER_PORT", port: ports.KAFKA_CONTROLLER_PORT },
  ],
  packages(settings) {
    java17("Kafka");
    return [jars(settings)];
  },
  prepare: async (settings) => {
    writeWhole(configurationFile(settings, "kafka.properties"), asProperties(brokerProperties(settings)));
    writeWhole(configurationFile(settings, "kafka-log4j2.properties"), asProperties(loggingProperties));
    await format(settings);
  },
  command: (settings) => ({
    file: java17("Kafka").command,
    arguments: [
      "-Xms256m",
      "-Xmx512m",
      "-XX:+UseG1GC",
      // Kafka's own start script asks for the same pause.
      "-XX:MaxGCPauseMillis=20",
      "-Djava.awt.headless=true",
      `-Dlog4j2.configurationFile=${pathToFileURL(configurationFile(settings, "kafka-log4j2.properties"))}`,
      ...mainClass(settings, "kafka.Kafka"),
      configurationFile(settings, "kafka.properties"),
    ],
  }),
  answers: describeCluster,
  stopWithinMs: 20_000,
};

function jars({ versions }: StackSettings): Package {
  const version = versions.KAFKA_VERSION;
  return { title: `Kafka ${version}`, folder: `kafka-${version}`, source: { mavenModule: "kafka" } };
}

function mainClass(settings: StackSettings, name: string): string[] {
  return ["-cp", join(packageFolder(settings, jars(settings)), "*"), name];
}

function brokerProperties(settings: StackSettings): Record<string, string | number | boolean> {
  const broker = `${host}:${settings.ports.KAFKA_PORT}`;
  const controller = `${host}:${settings.ports.KAFKA_CONTROLLER_PORT}`;
  const { kafkaDetour: detour } = settings;
  const also = (port: number | undefined) => (port === undefined ? "" : `,DETOUR://${host}:${port}`);
  return {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.quorum.voters": `1@${controller}`,
    listeners: `PLAINTEXT://${broker},CONTROLLER://${controller}${also(detour?.listenPort)}`,
    "advertised.listeners": `PLAINTEXT://${broker}${also(detour?.advertisedPort)}`,
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,DETOUR:PLAINTEXT",
    "log.dirs": dataFolder(settings, "kafka"),
    // A misspelt topic must fail as it does in production, not come into being with one partition.
    "auto.create.topics.enable": false,
    "delete.topic.enable": true,
    // One broker: Kafka's own topics cannot have the three replicas they want by default, and need few partitions.
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 4,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    // The default waits 3 s for more members before a new group's first assignment.
    "group.initial.rebalance.delay.ms": 0,
    // The default minimum of 6 s is too long for tests that wait for a killed consumer's session to end.
    "group.min.session.timeout.ms": 1000,
    // After kill -9 the broker may register again only when its old session is over: 9 s by default, 12 s until it answers.
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 500,
    // Two cores. The cleaner's buffer is 128 MiB by default, a quarter of this heap.
    "num.network.threads": 2,
    "num.io.threads": 4,
    "log.cleaner.dedupe.buffer.size": 16 * 1024 ** 2,
  };
}

const loggingProperties = {
  status: "warn",
  "appender.console.type": "Console",
  "appender.console.name": "console",
  "appender.console.layout.type": "PatternLayout",
  "appender.console.layout.pattern": "%d{ISO8601} %-5p %c{1} %m%n",
  "rootLogger.level": "info",
  "rootLogger.appenderRef.console.ref": "console",
  // It prints hundreds of lines of defaults at every start.
  "logger.settings.name": "org.apache.kafka.common.config",
  "logger.settings.level": "warn",
};

/** Java reads such a file as Latin-1: whatever a path holds beyond ASCII has to be escaped. */
function asProperties(values: Record<string, string | number | boolean>): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const lines = Object.entries(values).map(([key, value]) => `${key}=${String(value).replace(/[^ -[\]-~]/g, escaped)}\n`);
  return lines.join("");
}

/** A KRaft data folder has to be given a cluster id before its first start; the file it gets then is the sign that it has one. */
async function format(settings: StackSettings): Promise<void> {
  const data = dataFolder(settings, "kafka");
  if (existsSync(join(data, "meta.properties"))) return;
  mkdirSync(data, { recursive: true });
  // 16 bytes; a leading '-' would be read as an option.
  const clusterId = randomBytes(16).toString("base64url").replace(/^-/, "k");
  const log = logFile(settings, "kafka-format");
  const code = await execute({
    file: java17("Kafka").command,
    arguments: [
      "-Xmx128m",
      "-XX:TieredStopAtLevel=1",
      ...mainClass(settings, "kafka.tools.StorageTool"),
      "format",
      // An earlier try may have been interrupted half-way.
      "--ignore-formatted",
      "-t",
      clusterId,
      "-c",
      configurationFile(settings, "kafka.properties"),
    ],
    log,
  });
  if (code !== 0)
    throw new StackProblem(
      `Kafka could not lay out its data folder ${data}; read ${log}, or empty that folder and run the command again`,
    );
}

/** A broker that is still fenced off after a start answers too, with an empty list of brokers. */
async function describeCluster(settings: StackSettings): Promise<void> {
  // Without it Node 24 warns about a negative timer.
  patchIdleTimer();
  const brokers = [...addresses(settings).kafkaBrokers];
  const client = new Kafka({
    clientId: "local-stack",
    brokers,
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1000,
    requestTimeout: 2000,
    retry: { retries: 0 },
  });
  const admin = client.admin();
  try {
    await admin.connect();
    const cluster = await admin.describeCluster();
    if (cluster.brokers.length === 0) throw new Error("no broker has joined the cluster yet");
  } finally {
    await admin.disconnect();
  }
}
