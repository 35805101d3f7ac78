import { Command } from "commander";
import { messageOf } from "../services/common/errors.ts";
import { createKafka } from "../services/common/kafka/client.ts";
import { provisionSchemas } from "../services/common/kafka/provision/schemas.ts";
import { provisionTopics } from "../services/common/kafka/provision/topics.ts";
import { loadTopics } from "../services/common/kafka/topics.ts";
import { createLogger, type Logger } from "../services/common/logging/logger.ts";
import { type Change, type Report, reportText, schemaChange, topicChange } from "./provision/report.ts";
import { type ProvisionSettings, parseProvisionSettings } from "./provision/settings.ts";
import { provisionTables } from "./provision/tables.ts";

export type { Report } from "./provision/report.ts";
export { type ProvisionSettings, parseProvisionSettings } from "./provision/settings.ts";

interface Part {
  readonly changes: readonly Change[];
  readonly problems: readonly string[];
}

/**
 * Topics, schemas and tables as this release needs them. Safe to repeat and to run twice at once; deletes nothing. Resolves with
 * what was done, and with the problems where something was refused or could not be reached; the other parts are done all the same.
 */
export async function provision(
  settings: ProvisionSettings,
  options: { readonly dryRun?: boolean; readonly logger?: Logger } = {},
): Promise<Report> {
  const dryRun = options.dryRun ?? false;
  const logger = options.logger ?? createLogger("provision", settings.LOG_LEVEL, process.stderr);
  const parts = await Promise.all([
    part("topics", topicsPart(settings, { logger, dryRun })),
    part("schemas", schemasPart(settings, dryRun)),
    part("tables", tablesPart(settings, { logger, dryRun })),
  ]);
  return { changes: parts.flatMap(({ changes }) => changes), problems: parts.flatMap(({ problems }) => problems) };
}

async function topicsPart(settings: ProvisionSettings, { logger, dryRun }: { logger: Logger; dryRun: boolean }): Promise<Part> {
  const brokers = settings.KAFKA_BROKERS;
  // That a topic is missing is a question here, and an error to kafkajs.
  const quiet = logger.child({}, { level: "fatal" });
  const kafka = createKafka({ brokers, clientId: "provision", requestTimeoutMs: 30_000, logger: quiet });
  const replicationFactor = settings.KAFKA_REPLICATION_FACTOR;
  const plans = await provisionTopics(kafka, { topics: topicsOf(settings), replicationFactor, dryRun });
  return { changes: plans.map(topicChange), problems: plans.flatMap(({ refusal }) => refusal ?? []) };
}

async function schemasPart(settings: ProvisionSettings, dryRun: boolean): Promise<Part> {
  const registryUrl = settings.SCHEMA_REGISTRY_URL;
  const reports = await provisionSchemas({ registryUrl, topics: topicsOf(settings), dryRun });
  return { changes: reports.map(schemaChange), problems: reports.flatMap(({ refusal }) => refusal ?? []) };
}

async function tablesPart(settings: ProvisionSettings, options: { logger: Logger; dryRun: boolean }): Promise<Part> {
  return { changes: await provisionTables(settings, options), problems: [] };
}

function topicsOf(settings: ProvisionSettings) {
  return loadTopics({ prefix: settings.TOPIC_PREFIX, delays: settings.TOPIC_DELAYS_MS });
}

async function part(name: string, work: Promise<Part>): Promise<Part> {
  try {
    return await work;
  } catch (error) {
    return { changes: [], problems: [`${name}: ${messageOf(error)}`] };
  }
}

async function main(): Promise<number> {
  const command = new Command("provision")
    .description("Creates topics, tables and schemas, or brings them up to this release. Safe to repeat; deletes nothing.")
    .option("--dry-run", "print what would be done, and do nothing", false)
    .parse();
  const parsed = parseProvisionSettings(process.env);
  if (!parsed.ok) {
    process.stderr.write(`provision: the configuration has mistakes:\n${parsed.problems.map((line) => `  ${line}\n`).join("")}`);
    return 2;
  }
  const { dryRun } = command.opts<{ dryRun: boolean }>();
  const report = await provision(parsed.config, { dryRun });
  process.stdout.write(reportText(report));
  if (dryRun) process.stdout.write("dry run: nothing was changed\n");
  return report.problems.length === 0 ? 0 : 1;
}

if (import.meta.main) process.exitCode = await main();
