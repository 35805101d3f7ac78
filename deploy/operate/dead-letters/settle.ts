import type { RawRecord, RecordProducer, SendResult } from "../../../services/common/kafka/contracts.ts";
import type { Topics } from "../../../services/common/kafka/topics.ts";
import { type DeadLetter, idOf, letterOf, markerRecord, originalRecord, type Settlement } from "./letter.ts";

/** What became of one letter; `problem` says why it is still open. */
export interface Settled {
  readonly letter: DeadLetter;
  readonly problem?: string;
}

export interface SettleOptions {
  readonly producer: RecordProducer;
  readonly topics: Topics;
  readonly settlement: Settlement;
  readonly note: string;
}

const sendTimeoutMs = 15_000;

/**
 * Settles one letter: puts it back where it came from (replayed), then marks it. In this order, because a crash in between must not
 * lose the record: the next replay sends it once more, and every consumer takes a record twice for one.
 */
export async function settle(record: RawRecord, options: SettleOptions): Promise<Settled> {
  const letter = letterOf(record);
  const problem = options.settlement === "replayed" ? await putBack(record, letter, options) : undefined;
  if (problem !== undefined) return { letter, problem };
  const marked = await options.producer.send(markerRecord(options.topics.deadLetter.name, letter, options), sendTimeoutMs);
  return marked.ok ? { letter } : { letter, problem: `${options.settlement}, but not marked: ${reasonOf(marked)}` };
}

async function putBack(record: RawRecord, letter: DeadLetter, options: SettleOptions): Promise<string | undefined> {
  if (letter.lost !== undefined) return `it cannot be put back: ${letter.lost}`;
  const { topic } = letter.origin;
  if (!options.topics.all.some(({ name }) => name === topic)) return `it came from '${topic}', which is no topic of this service`;
  const sent = await options.producer.send(originalRecord(record), sendTimeoutMs);
  return sent.ok ? undefined : reasonOf(sent);
}

function reasonOf({ reason, message }: Extract<SendResult, { ok: false }>): string {
  const words = {
    not_sent: "not sent",
    unknown: "sent, and nobody answered (repeating it does no harm)",
    too_large: "too large",
  };
  return `${words[reason]}: ${message}`;
}

/** Goes through records in their order and settles those that were chosen. */
export function settleChosen(chosen: ReadonlySet<string>, options: SettleOptions, report: (settled: Settled) => void) {
  return async (record: RawRecord): Promise<void> => {
    if (chosen.has(idOf(record))) report(await settle(record, options));
  };
}
