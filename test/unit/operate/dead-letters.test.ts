import { describe, expect, it } from "vitest";
import { type LetterFilter, matches, parseTime } from "../../../deploy/operate/dead-letters/filter.ts";
import { letterOf, markerOf, originalRecord } from "../../../deploy/operate/dead-letters/letter.ts";
import { listText } from "../../../deploy/operate/dead-letters/report.ts";
import { settle } from "../../../deploy/operate/dead-letters/settle.ts";
import { printable } from "../../../deploy/operate/text.ts";
import type { OutgoingRecord, RawRecord, RecordProducer, SendResult } from "../../../services/common/kafka/contracts.ts";
import { loadTopics } from "../../../services/common/kafka/topics.ts";

const topics = loadTopics();
const nowMs = Date.UTC(2026, 0, 31, 12);

function dead(change: Partial<RawRecord> = {}, headers: RawRecord["headers"] = {}): RawRecord {
  return {
    topic: topics.deadLetter.name,
    partition: 2,
    offset: 17,
    key: Buffer.from("a key"),
    value: Buffer.from([0, 1, 2]),
    timestampMs: nowMs,
    headers: {
      traceparent: "00-aa",
      dead_letter_cause: "crashed",
      dead_letter_message: "why",
      dead_letter_topic: topics.refreshRequested.name,
      dead_letter_partition: "5",
      dead_letter_offset: "99",
      dead_letter_timestamp_ms: "1000",
      dead_letter_group: "group",
      dead_letter_service: "splitter",
      ...headers,
    },
    ...change,
  };
}

/** A producer that takes the first sends as these results say, and all others. */
function producerWith(...results: SendResult[]) {
  const sent: OutgoingRecord[] = [];
  const send = async (record: OutgoingRecord): Promise<SendResult> => {
    sent.push(record);
    return results.shift() ?? { ok: true, partition: 0, offset: 0, appendTimeMs: 0 };
  };
  return { sent, producer: { send } as unknown as RecordProducer };
}

const away: SendResult = { ok: false, reason: "not_sent", message: "no broker" };
const replay = { topics, settlement: "replayed", note: "n" } as const;

describe("a replay", () => {
  it("puts the record back before it marks it: a crash in between loses nothing", async () => {
    const { sent, producer } = producerWith();
    const letter = dead();
    expect((await settle(letter, { ...replay, producer })).problem).toBeUndefined();
    expect(sent.map(({ topic }) => topic)).toEqual([topics.refreshRequested.name, topics.deadLetter.name]);
    expect(sent[0]).toEqual(originalRecord(letter));
    const [, marker] = sent;
    const read = { ...letter, offset: 18, value: marker?.value ?? null, headers: marker?.headers ?? {} };
    expect(markerOf(read)).toEqual({ id: "2/17", settlement: "replayed", atMs: nowMs, note: "n" });
    expect(marker?.key).toBe("a key");
  });

  it("that is not sent marks nothing", async () => {
    const { sent, producer } = producerWith(away);
    expect((await settle(dead(), { ...replay, producer })).problem).toBe("not sent: no broker");
    expect(sent).toHaveLength(1);
  });

  it("that cannot be marked says so: the letter stays open", async () => {
    const { producer } = producerWith({ ok: true, partition: 0, offset: 0, appendTimeMs: 0 }, away);
    expect((await settle(dead(), { ...replay, producer })).problem).toBe("replayed, but not marked: not sent: no broker");
  });

  it("gives the record its bytes, its key, its own headers and its origin, and nothing of its death", () => {
    expect(originalRecord(dead())).toEqual({
      topic: topics.refreshRequested.name,
      key: "a key",
      value: Buffer.from([0, 1, 2]),
      headers: {
        traceparent: "00-aa",
        dead_letter_topic: topics.refreshRequested.name,
        dead_letter_partition: "5",
        dead_letter_offset: "99",
        dead_letter_timestamp_ms: "1000",
        dead_letter_replay_of: "2/17",
      },
    });
  });

  it.each([
    ["a tombstone", dead({}, { dead_letter_value: "null" }), "tombstone"],
    ["a value that was dropped", dead({}, { dead_letter_value: "dropped", dead_letter_value_bytes: "3000000" }), "too large"],
    ["a key that is no text", dead({}, { dead_letter_key: Buffer.from([255]) }), "no key that is text"],
    ["an empty key", dead({ key: Buffer.alloc(0) }), "no key that is text"],
    ["a foreign topic", dead({}, { dead_letter_topic: "other" }), "no topic of this service"],
  ])("of %s sends nothing", async (_what, letter, words) => {
    const { sent, producer } = producerWith();
    expect((await settle(letter, { ...replay, producer })).problem).toContain(words);
    expect(sent).toEqual([]);
  });

  it("a discard only marks", async () => {
    const { sent, producer } = producerWith();
    await settle(dead({}, { dead_letter_value: "null" }), { ...replay, settlement: "discarded", producer });
    expect(sent.map(({ topic }) => topic)).toEqual([topics.deadLetter.name]);
  });
});

describe("a filter", () => {
  const letter = { ...letterOf(dead()), marker: undefined };
  const settled = { ...letter, marker: { id: "2/17", settlement: "replayed" as const, atMs: 0, note: "" } };
  const all: LetterFilter = { ids: [], openOnly: false };
  it.each<[string, Partial<LetterFilter>, boolean]>([
    ["nothing", {}, true],
    ["its id", { ids: ["0/1", "2/17"] }, true],
    ["another id", { ids: ["2/1"] }, false],
    ["a part of its topic", { topic: "refresh.req" }, true],
    ["another topic", { topic: "outcome" }, false],
    ["its cause", { cause: "crashed" }, true],
    ["another cause", { cause: "rejected" }, false],
    ["its own instant on", { sinceMs: nowMs }, true],
    ["an instant behind it on", { sinceMs: nowMs + 1 }, false],
    ["up to its own instant", { untilMs: nowMs }, false],
    ["up to behind it", { untilMs: nowMs + 1 }, true],
  ])("by %s", (_what, filter, expected) => {
    expect(matches({ ...all, ...filter }, letter)).toBe(expected);
  });

  it("leaves out what is settled only where it is asked to", () => {
    expect([matches(all, settled), matches({ ...all, openOnly: true }, settled)]).toEqual([true, false]);
  });

  it.each([
    ["90m", nowMs - 5_400_000],
    ["2h", nowMs - 7_200_000],
    ["3d", nowMs - 259_200_000],
    ["2026-01-31", Date.UTC(2026, 0, 31)],
    ["2026-01-31T10:00:00+02:00", Date.UTC(2026, 0, 31, 8)],
    ["2026-01-31T10:00:00", undefined],
    ["yesterday", undefined],
    ["5", undefined],
    ["2026-13-45", undefined],
  ])("reads the time %s", (text, expected) => {
    expect(parseTime(text, nowMs)).toBe(expected);
  });
});

it("the list says what a letter is and how many are open", () => {
  const marker = { id: "2/17", settlement: "discarded" as const, atMs: 0, note: "" };
  const letters = [letterOf(dead()), letterOf(dead({ offset: 18 }))].map((letter, index) => ({
    ...letter,
    marker: index === 0 ? marker : undefined,
  }));
  const lines = listText(letters, (topic) => topic.replace("internal.metadata.", "")).split("\n");
  expect(lines[1]).toMatch(/^2\/17 +2026-01-31T12:00:00Z +discarded +crashed +refresh\.requested\.v1 +5\/99 +a key +why$/);
  expect(lines.at(-2)).toBe("1 open, 1 discarded");
});

it.each([
  ["an escape sequence", "\u001b[31mred", "\\u001b[31mred"],
  ["a line feed", "a\nb", "a\\u000ab"],
  ["a mark that turns the writing round", "a\u202eb", "a\\u202eb"],
  ["what is harmless", "Größe 🐉", "Größe 🐉"],
])("%s is shown and not obeyed", (_what, text, shown) => {
  expect(printable(text)).toBe(shown);
});
