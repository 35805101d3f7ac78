import { Command, CommanderError } from "commander";
import type { Kafka } from "kafkajs";
import { type Cassandra, connectCassandra } from "../../services/common/cassandra/session.ts";
import type { Environment } from "../../services/common/config/config.ts";
import { messageOf } from "../../services/common/errors.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import { createCodec } from "../../services/common/kafka/codec.ts";
import type { Codec, RecordProducer } from "../../services/common/kafka/contracts.ts";
import { createProducer } from "../../services/common/kafka/produce/producer.ts";
import { loadTopics, type TopicDefinition, type Topics } from "../../services/common/kafka/topics.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { type OperateSettings, parseOperateSettings } from "./settings.ts";

/** Where a command was typed. */
export interface Terminal {
  readonly environment: Environment;
  out(text: string): void;
  error(text: string): void;
  /** Aborted by Ctrl-C, for commands that can stop in order; the second one ends the process. */
  readonly interrupted: AbortSignal;
}

/** What an operator's command works with. What it connects is closed when the command ends. */
export interface Tools extends Pick<Terminal, "out" | "error" | "interrupted"> {
  readonly settings: OperateSettings;
  readonly topics: Topics;
  readonly kafka: Kafka;
  cassandra(): Promise<Cassandra>;
  producer(): Promise<RecordProducer>;
  codec(uses: readonly TopicDefinition[]): Promise<Codec>;
}

/** A mistake of whoever typed the command, or an answer that ends it: printed as it is. */
export class CommandProblem extends Error {
  override readonly name = "CommandProblem";
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A program without its commands. What they add to it prints to the terminal and never ends the process. */
export function programFor(terminal: Terminal, name: string): Command {
  return new Command(name)
    .exitOverride()
    .configureOutput({ writeOut: (text) => terminal.out(text), writeErr: (text) => terminal.error(text) });
}

/** Runs what was typed. Resolves with the exit code: 0; 1 when it failed, with the reason; 2 for a wrong configuration. */
export async function execute(command: Command, args: readonly string[], terminal: Pick<Terminal, "error">): Promise<number> {
  try {
    await command.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    // It has been said already; help ends so too, with 0.
    if (error instanceof CommanderError) return error.exitCode;
    terminal.error(`error: ${messageOf(error)}\n`);
    return error instanceof CommandProblem ? error.exitCode : 1;
  }
}

/** A program as a process. */
export async function runAsProcess(create: (terminal: Terminal) => Command): Promise<void> {
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => controller.abort());
  const terminal: Terminal = {
    environment: process.env,
    out: (text) => process.stdout.write(text),
    error: (text) => process.stderr.write(text),
    interrupted: controller.signal,
  };
  process.exitCode = await execute(create(terminal), process.argv.slice(2), terminal);
}

/** An action of a command: `work` with the tools, then everything closed. */
export async function withTools(terminal: Terminal, work: (tools: Tools) => Promise<void>): Promise<void> {
  const parsed = parseOperateSettings(terminal.environment);
  if (!parsed.ok) throw new CommandProblem(["the configuration has mistakes:", ...parsed.problems].join("\n  "), 2);
  await using cleanups = new AsyncDisposableStack();
  await work(createTools(parsed.config, terminal, cleanups));
}

function createTools(settings: OperateSettings, terminal: Terminal, cleanups: AsyncDisposableStack): Tools {
  const logger = createLogger("operate", settings.LOG_LEVEL, process.stderr);
  const topics = loadTopics({ prefix: settings.TOPIC_PREFIX, delays: settings.TOPIC_DELAYS_MS });
  const requestTimeoutMs = settings.KAFKA_REQUEST_TIMEOUT_MS;
  const kafka = createKafka({ brokers: settings.KAFKA_BROKERS, clientId: "operate", requestTimeoutMs, logger });
  return {
    out: terminal.out,
    error: terminal.error,
    interrupted: terminal.interrupted,
    settings,
    topics,
    kafka,
    cassandra: async () => {
      const cassandra = await connectCassandra({
        contactPoints: settings.CASSANDRA_CONTACT_POINTS,
        datacenter: settings.CASSANDRA_DATACENTER,
        keyspace: settings.CASSANDRA_KEYSPACE,
        logger,
        connectTimeoutMs: 15_000,
      });
      cleanups.defer(() => cassandra.close());
      return cassandra;
    },
    producer: async () => {
      const producer = await createProducer(kafka, { topics, logger, requestTimeoutMs });
      cleanups.defer(() => producer.close());
      return producer;
    },
    codec: (uses) => createCodec({ registryUrl: settings.SCHEMA_REGISTRY_URL, uses }),
  };
}
