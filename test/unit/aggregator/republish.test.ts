import { describe, expect, it } from "vitest";
import { type RepublishingParts, withRepublishing } from "../../../services/aggregator/core/republish.ts";
import { PoisonRecordError } from "../../../services/common/errors.ts";
import type { BatchContext, DecodedRecord } from "../../../services/common/kafka/contracts.ts";
import type { TokenOutcome, TokenState } from "../../../services/common/messages/records.ts";
import { republishOrder } from "../../../services/common/messages/republish.ts";
import { collection, outcomeRecord, topic } from "./outcomes.ts";

const context: BatchContext = {
  topic,
  partition: 0,
  signal: new AbortController().signal,
  mayAct: () => true,
  highWatermark: 1_000,
};

function order(offset: number, tokenId: string, key = collection): DecodedRecord<TokenOutcome> {
  const value = republishOrder(collection, tokenId);
  return { ...outcomeRecord(offset), key, value };
}

const stateOf = (token_id: string): TokenState => ({
  collection_address: collection,
  token_id,
  version: 5,
  content_hash: "",
  metadata: "{}",
  refresh_id: "",
  refreshed_at: 0,
});

/** Steps in the order they are made: outcomes by offset, loads and publications by token. */
function setUp(change: Partial<RepublishingParts> = {}) {
  const steps: string[] = [];
  const reports: object[] = [];
  const handler = withRepublishing({
    outcomes: async (records) => void steps.push(`outcomes ${records.map(({ offset }) => offset)}`),
    loadStates: async (tokens) => {
      steps.push(`load ${tokens.length}`);
      return tokens.filter(({ token_id }) => token_id !== "404").map(({ token_id }) => stateOf(token_id));
    },
    publisher: { publishStates: async (states) => void steps.push(`publish ${states.map(({ token_id }) => token_id)}`) },
    report: (counts) => reports.push(counts),
    ...change,
  });
  return { handler, steps, reports };
}

describe("orders to publish again", () => {
  it("are carried out after the outcomes of their batch, those behind them included", async () => {
    const { handler, steps } = setUp();
    await handler([order(1, "7"), outcomeRecord(2), order(3, "8"), outcomeRecord(4)], context);
    expect(steps).toEqual(["outcomes 2,4", "load 2", "publish 7,8"]);
  });

  it("do not reach what counts outcomes, and outcomes alone reach nothing else", async () => {
    const { handler, steps } = setUp();
    await handler([order(1, "7")], context);
    await handler([outcomeRecord(2)], context);
    expect(steps).toEqual(["load 1", "publish 7", "outcomes 2"]);
  });

  it("are counted by what became of them", async () => {
    const { handler, reports } = setUp();
    await handler([order(1, "7"), order(2, "404")], context);
    expect(reports).toEqual([{ publishedCount: 1, unknownCount: 1 }]);
  });

  it("have few rows in memory at a time: an order is small, a body is not", async () => {
    const { handler, steps } = setUp();
    await handler(
      Array.from({ length: 100 }, (_, index) => order(index, String(index))),
      context,
    );
    expect(steps.filter((step) => step.startsWith("load"))).toEqual(["load 32", "load 32", "load 32", "load 4"]);
  });

  it("are not carried out when the outcomes before them could not be", async () => {
    const { handler, steps } = setUp({ outcomes: () => Promise.reject(new Error("Cassandra is away")) });
    await expect(handler([outcomeRecord(1), order(2, "7")], context)).rejects.toThrow("Cassandra is away");
    expect(steps).toEqual([]);
  });

  it.each([
    ["a key that is not the collection", order(1, "7", "0x01"), "the key"],
    ["a token id that is none", order(1, "07"), "token_id"],
    ["an address that is none", { ...order(1, "7"), value: republishOrder("0xAB", "7") }, "collection_address"],
  ])("with %s are poison before anything happens", async (_what, record, words) => {
    const { handler, steps } = setUp();
    const handled = handler([outcomeRecord(0), record], context);
    await expect(handled).rejects.toBeInstanceOf(PoisonRecordError);
    await expect(handled).rejects.toThrow(words);
    expect(steps).toEqual([]);
  });
});
