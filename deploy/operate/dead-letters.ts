import { type Command, InvalidArgumentError, Option } from "commander";
import { deadLetterCauses } from "../../services/common/kafka/consume/dead-letters.ts";
import type { RawRecord } from "../../services/common/kafka/contracts.ts";
import { type LetterFilter, matches, parseTime } from "./dead-letters/filter.ts";
import { idOf, type Settlement } from "./dead-letters/letter.ts";
import { readDeadLetterTopic, readLetters, type SettledLetter } from "./dead-letters/letters.ts";
import { bytesText, decodedText, listText, showText, stateOf } from "./dead-letters/report.ts";
import { type Settled, settleChosen } from "./dead-letters/settle.ts";
import { CommandProblem, programFor, runAsProcess, type Terminal, type Tools, withTools } from "./program.ts";
import { printable } from "./text.ts";

interface FilterOptions {
  readonly topic?: string;
  readonly cause?: string;
  readonly since?: number;
  readonly until?: number;
}

interface ChoiceOptions extends FilterOptions {
  readonly all: boolean;
  readonly note: string;
}

/** `dead-letters list|show|replay|discard`. */
export function deadLettersProgram(terminal: Terminal): Command {
  const program = programFor(terminal, "dead-letters").description(
    "Records that our own code could not process: what they are, back to where they came from, or done with.",
  );
  addList(program, terminal);
  addShow(program, terminal);
  addReplay(program, terminal);
  addDiscard(program, terminal);
  return program;
}

function addList(program: Command, terminal: Terminal): void {
  withFilters(program.command("list").description("every dead letter, oldest first"))
    .option("--open", "only those that nobody has settled", false)
    .option("--json", "for programs: one JSON document", false)
    .action((options: FilterOptions & { open: boolean; json: boolean }) =>
      withTools(terminal, async (tools) => {
        const letters = await chosenLetters(tools, filterOf([], options, options.open));
        tools.out(options.json ? `${JSON.stringify(letters.map(documentOf))}\n` : listText(letters, nameIn(tools)));
      }),
    );
}

function addShow(program: Command, terminal: Terminal): void {
  program
    .command("show")
    .description("everything about one dead letter, its value decoded where it can be")
    .argument("<id>", "as list shows it: partition/offset", parseId)
    .action((id: string) => withTools(terminal, (tools) => show(tools, id)));
}

function addReplay(program: Command, terminal: Terminal): void {
  const command = program
    .command("replay")
    .description("put dead letters back where they came from, as they were, and mark them");
  withChoice(command)
    .option("--again", "those as well that are settled already", false)
    .action((ids: string[], options: ChoiceOptions & { again: boolean }) =>
      withTools(terminal, (tools) =>
        settleAll(tools, { settlement: "replayed", note: options.note }, choice(ids, options, !options.again)),
      ),
    );
}

function addDiscard(program: Command, terminal: Terminal): void {
  const command = program.command("discard").description("mark dead letters as done with; the topic's retention deletes them");
  withChoice(command)
    .option("--yes", "do it: without this it is only said what would be discarded", false)
    .action((ids: string[], options: ChoiceOptions & { yes: boolean }) =>
      withTools(terminal, async (tools) => {
        const filter = choice(ids, options, true);
        if (options.yes) return settleAll(tools, { settlement: "discarded", note: options.note }, filter);
        tools.out(listText(await chosenLetters(tools, filter), nameIn(tools)));
        throw new CommandProblem("nothing was discarded: say --yes");
      }),
    );
}

function withFilters(command: Command): Command {
  return command
    .option("--topic <part>", "a part of the name of the topic they come from: refresh.requested")
    .addOption(new Option("--cause <cause>", "why they are dead").choices(deadLetterCauses))
    .option("--since <time>", "dead at or after: 90m, 2h, 3d (before now), or an ISO 8601 time", parseTimeOption)
    .option("--until <time>", "dead before: the same", parseTimeOption);
}

function withChoice(command: Command): Command {
  return withFilters(command)
    .argument("[ids...]", "as list shows them: partition/offset", collectIds)
    .option("--all", "every open one, where neither ids nor filters are given", false)
    .option("--note <text>", "why: show keeps it", "");
}

async function show(tools: Tools, id: string): Promise<void> {
  const letter = (await readLetters(tools)).find((known) => known.id === id);
  if (letter === undefined) throw new CommandProblem(`there is no dead letter ${id}`);
  let text = "";
  await readDeadLetterTopic(tools, async (record) => {
    if (idOf(record) === id) text = await valueText(tools, letter, record);
  });
  tools.out(showText(letter, text));
}

async function valueText(tools: Tools, { origin }: SettledLetter, record: RawRecord): Promise<string> {
  const topic = tools.topics.all.find(({ name }) => name === origin.topic);
  if (topic === undefined || topic.schema === null) return bytesText(record);
  const codec = await tools.codec([topic]).catch(() => undefined);
  const decoded = await codec?.decode(topic.name, record.value);
  return decoded?.ok === true ? decodedText(decoded.value) : bytesText(record);
}

async function settleAll(tools: Tools, how: { settlement: Settlement; note: string }, filter: LetterFilter): Promise<void> {
  const chosen = await chosenLetters(tools, filter);
  const unknown = filter.ids.filter((id) => !chosen.some((letter) => letter.id === id));
  if (unknown.length > 0) throw new CommandProblem(`not there, or settled already: ${unknown.join(", ")}`);
  const producer = await tools.producer();
  const name = nameIn(tools);
  let failedCount = 0;
  const report = ({ letter, problem }: Settled) => {
    if (problem !== undefined) failedCount += 1;
    tools.out(`${letter.id}  ${printable(name(letter.origin.topic))}  ${printable(problem ?? how.settlement)}\n`);
  };
  const ids = new Set(chosen.map(({ id }) => id));
  await readDeadLetterTopic(tools, settleChosen(ids, { producer, topics: tools.topics, ...how }, report));
  tools.out(`${chosen.length - failedCount} ${how.settlement}, ${failedCount} still open\n`);
  if (failedCount > 0) throw new CommandProblem("some are still open");
}

async function chosenLetters(tools: Tools, filter: LetterFilter): Promise<SettledLetter[]> {
  return (await readLetters(tools)).filter((letter) => matches(filter, letter));
}

/** Commands that do something want to be told to what. */
function choice(ids: readonly string[], options: ChoiceOptions, openOnly: boolean): LetterFilter {
  const { topic, cause, since, until, all } = options;
  const said = ids.length > 0 || all || [topic, cause, since, until].some((option) => option !== undefined);
  if (!said) throw new CommandProblem("which ones? Give ids, filters, or --all");
  return filterOf(ids, options, openOnly);
}

function filterOf(ids: readonly string[], { topic, cause, since, until }: FilterOptions, openOnly: boolean): LetterFilter {
  return { ids, topic, cause, sinceMs: since, untilMs: until, openOnly };
}

function documentOf({ marker, ...letter }: SettledLetter): object {
  return { ...letter, headers: Object.keys(letter.headers), state: stateOf({ marker }), settled_at_ms: marker?.atMs ?? null };
}

function nameIn({ topics }: Tools): (topic: string) => string {
  const names = new Map(topics.all.map(({ name, baseName }) => [name, baseName]));
  return (topic) => names.get(topic) ?? topic;
}

function parseId(text: string): string {
  if (!/^\d+\/\d+$/.test(text)) throw new InvalidArgumentError("It must be partition/offset, as in 2/17.");
  return text;
}

function collectIds(text: string, known: readonly string[] = []): string[] {
  return [...known, parseId(text)];
}

function parseTimeOption(text: string): number {
  const ms = parseTime(text, Date.now());
  if (ms === undefined) throw new InvalidArgumentError("It must be like 90m, 2h, 3d, or an ISO 8601 time with its zone.");
  return ms;
}

if (import.meta.main) await runAsProcess(deadLettersProgram);
