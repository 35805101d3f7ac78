import { type Command, InvalidArgumentError, Option } from "commander";
import type { Cassandra } from "../../services/common/cassandra/session.ts";
import { systemClock } from "../../services/common/clock.ts";
import { addressForm, parseAddress } from "../../services/common/messages/address.ts";
import { parseTokenId, tokenIdForm } from "../../services/common/messages/token-id.ts";
import { CommandProblem, programFor, runAsProcess, type Terminal, type Tools, withTools } from "./program.ts";
import { type RepublishProgress, republish } from "./token-state/republish.ts";
import { findToken, firstPosition, scanTokens, type TokenBucket } from "./token-state/scan.ts";

interface RepublishOptions {
  readonly collection?: string;
  readonly token?: string;
  readonly rate: number;
  readonly from: bigint;
}

/** `token-state republish`. */
export function tokenStateProgram(terminal: Terminal): Command {
  const program = programFor(terminal, "token-state").description("The public topic of the tokens' latest metadata.");
  program
    .command("republish")
    .description("publish the stored row of every token once more, with its stored version, through the aggregator")
    .option("--collection <address>", "of this collection only", parseAddressOption)
    .option("--token <id>", "this token of the collection only", parseTokenOption)
    .option("--rate <number>", "tokens a second at most", parseRate, 500)
    .addOption(fromOption())
    .action((options: RepublishOptions) => withTools(terminal, (tools) => run(tools, options)));
  return program;
}

function fromOption(): Option {
  const option = new Option("--from <position>", "go on where an earlier run stopped");
  return option.argParser(parsePosition).default(firstPosition, "the beginning");
}

async function run(tools: Tools, options: RepublishOptions): Promise<void> {
  const { collection, token } = options;
  if (token !== undefined && collection === undefined) throw new CommandProblem("--token needs its --collection");
  const topic = tools.topics.tokenOutcome;
  const [cassandra, codec, producer] = await Promise.all([tools.cassandra(), tools.codec([topic]), tools.producer()]);
  const end = await republish(await bucketsOf(cassandra, options), {
    producer,
    codec,
    topic,
    ratePerSecond: options.rate,
    monotonicMs: systemClock.monotonicMs,
    signal: tools.interrupted,
    onProgress: createProgressLines(tools),
  });
  if (token !== undefined && end.sentCount === 0) throw new CommandProblem("nothing is stored of this token");
  tools.out(`${end.sentCount} tokens ordered\n`);
  if (!end.complete) throw new CommandProblem(`stopped before the end: go on with --from=${end.position ?? options.from}`, 130);
}

async function bucketsOf(cassandra: Cassandra, options: RepublishOptions): Promise<AsyncIterable<TokenBucket> | TokenBucket[]> {
  const { collection, token, from } = options;
  if (collection !== undefined && token !== undefined) return findToken(cassandra, collection, token);
  return scanTokens(cassandra, { from, collection });
}

const secondsBetweenLines = 5;

function createProgressLines(tools: Tools): (progress: RepublishProgress) => void {
  let lastMs = systemClock.monotonicMs();
  return ({ sentCount, position }) => {
    if (systemClock.monotonicMs() - lastMs < secondsBetweenLines * 1_000) return;
    lastMs = systemClock.monotonicMs();
    tools.error(`${sentCount} tokens, position ${position}\n`);
  };
}

function parseAddressOption(text: string): string {
  const address = parseAddress(text);
  if (address === undefined) throw new InvalidArgumentError(`It ${addressForm}.`);
  return address;
}

function parseTokenOption(text: string): string {
  const tokenId = parseTokenId(text);
  if (tokenId === undefined) throw new InvalidArgumentError(`It ${tokenIdForm}.`);
  return tokenId;
}

function parseRate(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError("It must be a whole number from 1 to 999999.");
  return Number(text);
}

function parsePosition(text: string): bigint {
  if (!/^-?\d{1,19}$/.test(text)) throw new InvalidArgumentError("It must be a position as an earlier run printed it.");
  return BigInt(text);
}

if (import.meta.main) await runAsProcess(tokenStateProgram);
