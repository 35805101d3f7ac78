import { Command, InvalidArgumentError } from "commander";
import { resetStack, stackStatus, startServers, stopStack } from "./lifecycle.ts";
import { printLogs } from "./logs.ts";
import { availablePorts } from "./private.ts";
import { asProblem, StackProblem } from "./problem.ts";
import { createReporter, paint } from "./reporter.ts";
import { addresses, readSettings, type ServerName, serverNames } from "./settings.ts";
import { statusTable } from "./table.ts";

const reporter = createReporter(process.stderr);

const program = new Command("stack")
  .description("Real Kafka, Cassandra, schema registry and Redis as local processes, on loopback only.")
  .addHelpText(
    "after",
    "\nPorts and folders are set in the environment: KAFKA_PORT, CASSANDRA_PORT, REGISTRY_PORT, REDIS_PORT, STACK_HOME, ...\n",
  );

program
  .command("up")
  .description("fetch what is missing, start what does not run, wait until everything answers")
  .action(async () => {
    const settings = readSettings();
    await startServers(serverNames, settings, reporter);
    const { kafkaBrokers, cassandraContactPoints, cassandraPort, registryUrl, redisUrl } = addresses(settings);
    process.stdout.write(
      `Kafka      ${kafkaBrokers}\nCassandra  ${cassandraContactPoints}:${cassandraPort}\nregistry   ${registryUrl}\nRedis      ${redisUrl}\n`,
    );
  });

program
  .command("down")
  .description("stop what up started; data stays")
  .action(() => stopStack(readSettings(), reporter));

program
  .command("reset")
  .description("down, and delete the data")
  .action(() => resetStack(readSettings(), reporter));

program
  .command("status")
  .description("show what runs")
  .option("--json", "for programs: one JSON document", false)
  .action(async ({ json }: { json: boolean }) => {
    const servers = await stackStatus(readSettings());
    process.stdout.write(`${json ? JSON.stringify(servers) : statusTable(servers, process.stdout)}\n`);
  });

program
  .command("ports")
  .description("print, as NAME=number, the ports to set for a stack beside others: free ones where the usual are taken")
  .action(async () => {
    const lines = Object.entries(await availablePorts(readSettings())).map(([name, port]) => `${name}=${port}\n`);
    process.stdout.write(lines.join(""));
  });

program
  .command("logs")
  .description("show the end of the logs of one server, or of all")
  .argument("[server]", serverNames.join(", "), parseServer)
  .option("-f, --follow", "go on with what is added", false)
  .option("-n, --lines <count>", "how many lines of each log", parseCount, 40)
  .action((server: ServerName | undefined, options: { follow: boolean; lines: number }) =>
    printLogs(readSettings(), server === undefined ? serverNames : [server], options),
  );

function parseServer(text: string): ServerName {
  const name = serverNames.find((known) => known === text);
  if (name === undefined) throw new InvalidArgumentError(`The servers are ${serverNames.join(", ")}.`);
  return name;
}

function parseCount(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
}

try {
  await program.parseAsync();
} catch (error) {
  const problem = asProblem(error);
  if (!(problem instanceof StackProblem)) throw error;
  for (const sentence of problem.message.split("\n"))
    process.stderr.write(`${paint(process.stderr, "red", "error:")} ${sentence}\n`);
  process.exitCode = 1;
}
