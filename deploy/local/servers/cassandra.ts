import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Client } from "cassandra-driver";
import { stringify } from "yaml";
import { configurationFile, dataFolder, writeWhole } from "../folders.ts";
import { type Package, packageFolder } from "../packages.ts";
import { addresses, host, type StackSettings } from "../settings.ts";
import { openedJdkInternals } from "./cassandra-jdk.ts";
import { java17 } from "./jvm.ts";
import type { ServerKind } from "./server.ts";

/** One node that is its own seed. */
export const cassandra: ServerKind = {
  name: "cassandra",
  title: "Cassandra",
  version: ({ versions }) => versions.CASSANDRA_VERSION,
  ports: ({ ports }) => [
    { name: "CASSANDRA_PORT", port: ports.CASSANDRA_PORT },
    { name: "CASSANDRA_STORAGE_PORT", port: ports.CASSANDRA_STORAGE_PORT },
    ...(ports.CASSANDRA_JMX_PORT === undefined ? [] : [{ name: "CASSANDRA_JMX_PORT" as const, port: ports.CASSANDRA_JMX_PORT }]),
  ],
  packages(settings) {
    java17("Cassandra");
    return [jars(settings)];
  },
  prepare: async (settings) => {
    mkdirSync(dataFolder(settings, "cassandra"), { recursive: true });
    writeWhole(configurationFile(settings, "cassandra.yaml"), stringify(nodeSettings(settings)));
    writeWhole(configurationFile(settings, "cassandra-logback.xml"), logging);
  },
  command: (settings) => ({ file: java17("Cassandra").command, arguments: javaArguments(settings) }),
  answers: selectVersion,
  // A stop drains: memtables go to disk and the commit log ends empty, 3 s when idle.
  stopWithinMs: 30_000,
};

function jars({ versions }: StackSettings): Package {
  const version = versions.CASSANDRA_VERSION;
  return { title: `Cassandra ${version}`, folder: `cassandra-${version}`, source: { mavenModule: "cassandra" } };
}

function javaArguments(settings: StackSettings): string[] {
  const folder = packageFolder(settings, jars(settings));
  const jmx = settings.ports.CASSANDRA_JMX_PORT;
  return [
    // Its own start script runs production nodes with assertions too.
    "-ea:org.apache.cassandra...",
    "-Xms256m",
    "-Xmx1G",
    "-Xss512k",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=300",
    "-XX:+ParallelRefProcEnabled",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.net.preferIPv4Stack=true",
    ...openedJdkInternals,
    // Measures objects instead of guessing their size, so that memtables are flushed in time.
    ...readdirSync(folder)
      .filter((name) => /^jamm-.*\.jar$/.test(name))
      .map((name) => `-javaagent:${join(folder, name)}`),
    `-Dcassandra.config=${pathToFileURL(configurationFile(settings, "cassandra.yaml"))}`,
    `-Dcassandra.storagedir=${dataFolder(settings, "cassandra")}`,
    `-Dlogback.configurationFile=${pathToFileURL(configurationFile(settings, "cassandra-logback.xml"))}`,
    // Two seconds of every stop, for peers to learn of it: there are none.
    "-Dcassandra.shutdown_announce_in_ms=0",
    // Without it the daemon closes its output, and the log with it.
    "-Dcassandra-foreground=yes",
    ...(jmx === undefined ? [] : [`-Dcassandra.jmx.local.port=${jmx}`]),
    ...["-cp", join(folder, "*")],
    "org.apache.cassandra.service.CassandraDaemon",
  ];
}

function nodeSettings(settings: StackSettings): Record<string, unknown> {
  const data = dataFolder(settings, "cassandra");
  const { CASSANDRA_PORT, CASSANDRA_STORAGE_PORT } = settings.ports;
  return {
    cluster_name: "local",
    num_tokens: 1,
    partitioner: "org.apache.cassandra.dht.Murmur3Partitioner",
    seed_provider: [
      {
        class_name: "org.apache.cassandra.locator.SimpleSeedProvider",
        parameters: [{ seeds: `${host}:${CASSANDRA_STORAGE_PORT}` }],
      },
    ],
    endpoint_snitch: "SimpleSnitch",
    auto_bootstrap: false,
    listen_address: host,
    storage_port: CASSANDRA_STORAGE_PORT,
    rpc_address: host,
    native_transport_port: CASSANDRA_PORT,
    authenticator: "AllowAllAuthenticator",
    authorizer: "AllowAllAuthorizer",
    data_file_directories: [join(data, "data")],
    commitlog_directory: join(data, "commitlog"),
    saved_caches_directory: join(data, "saved_caches"),
    hints_directory: join(data, "hints"),
    cdc_raw_directory: join(data, "cdc_raw"),
    // Written at once, synchronised every 10 s: a killed process loses nothing, a power cut may.
    commitlog_sync: "periodic",
    commitlog_sync_period: "10s",
    commitlog_segment_size: "16MiB",
    // A node that cannot write must be seen to be gone, not answer reads from what it has.
    disk_failure_policy: "die",
    commit_failure_policy: "die",
    // One round trip fewer for each lightweight transaction than v1, which is still the default.
    paxos_variant: "v2",
    // No other version will read these files: full TTL range and the newest formats.
    storage_compatibility_mode: "NONE",
    hinted_handoff_enabled: false,
    // Tests drop many keyspaces, each would leave a snapshot.
    auto_snapshot: false,
    // Measured on two cores: 30-45 % more single inserts than with the defaults (32 reads, 32 writes, 128 requests).
    concurrent_reads: 4,
    concurrent_writes: 4,
    native_transport_max_threads: 4,
    memtable: {
      configurations: {
        skiplist: { class_name: "SkipListMemtable" },
        trie: { class_name: "TrieMemtable" },
        default: { inherits: "trie" },
      },
    },
    memtable_allocation_type: "offheap_objects",
  };
}

/** Without a configuration of its own logback prints everything down to DEBUG. */
const logging = `<configuration>
  <appender name="console" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%date{ISO8601} %-5level %logger{1} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="console"/></root>
</configuration>
`;

async function selectVersion(settings: StackSettings): Promise<void> {
  const { cassandraContactPoints, cassandraPort, cassandraDataCenter } = addresses(settings);
  const client = new Client({
    contactPoints: [...cassandraContactPoints],
    localDataCenter: cassandraDataCenter,
    protocolOptions: { port: cassandraPort },
    socketOptions: { connectTimeout: 1000, readTimeout: 2000 },
  });
  try {
    await client.connect();
    await client.execute("SELECT release_version FROM system.local");
  } finally {
    await client.shutdown();
  }
}
