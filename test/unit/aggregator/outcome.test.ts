import { describe, expect, it } from "vitest";
import { checkOutcome } from "../../../services/aggregator/core/outcome.ts";
import { PoisonRecordError } from "../../../services/common/errors.ts";
import type { TokenOutcome } from "../../../services/common/messages/records.ts";
import { collection, failure, hashOf, outcomeRecord, success } from "./outcomes.ts";

describe("a token.outcome record", () => {
  it("gets the version generation × 2^40 + offset, exact where doubles are still whole", () => {
    expect(checkOutcome(outcomeRecord(5), 1).version).toBe(1_099_511_627_781);
    const largest = checkOutcome(outcomeRecord(2 ** 40 - 1), 8_191).version;
    expect(largest).toBe(Number.MAX_SAFE_INTEGER);
  });

  it.each<[string, Partial<TokenOutcome>]>([
    ["a success", success("{}")],
    ["a success with an empty body, should the fetcher ever allow one", success("")],
    ["a failure with an answer", failure("invalid_response_status_code")],
    ["a failure without an answer", failure("token_not_found")],
    ["the last ordinal", { ordinal: 999, total: 1_000 }],
    ["the largest token id", { token_id: (2n ** 256n - 1n).toString() }],
  ])("counts %s", (_, value) => {
    expect(checkOutcome(outcomeRecord(1, value), 1).record).toMatchObject(value);
  });

  it.each<[string, Partial<TokenOutcome>, RegExp]>([
    ["an ordinal at the total", { ordinal: 3, total: 3 }, /ordinal 3 of 3/],
    ["a negative ordinal", { ordinal: -1, total: 3 }, /ordinal -1/],
    ["no tokens at all", { ordinal: 0, total: 0 }, /total of 0/],
    ["a total that would take all memory", { ordinal: 0, total: 2 ** 31 - 1 }, /total of 2147483647/],
    ["an id that Cassandra refuses", { refresh_id: "r1" }, /refresh_id/],
    ["an id in another spelling", { refresh_id: "ABCDEF00-0000-7000-8000-000000000001" }, /refresh_id/],
    ["a token without a bucket", { token_id: "0x10" }, /token_id/],
    ["a token in another spelling", { token_id: "01" }, /token_id/],
    ["a token above 256 bits", { token_id: (2n ** 256n).toString() }, /token_id/],
    ["a collection that is no address", { collection_address: "games" }, /collection_address/],
    ["success and failure at once", { ...success("A"), error_code: "token_not_found" }, /error code and metadata/],
    ["neither success nor failure", { metadata: null, content_hash: null, error_code: null }, /neither/],
    ["metadata without its hash", { metadata: "{}", content_hash: null }, /neither/],
    ["a hash of another kind", { metadata: "{}", content_hash: "abc" }, /content_hash/],
    ["an unknown error code", { ...failure(), error_code: "teapot" as never }, /error code that does not exist/],
  ])("is poison with %s", (_, value, message) => {
    const record = outcomeRecord(1, value);
    expect(() => checkOutcome(record, 1)).toThrow(PoisonRecordError);
    expect(() => checkOutcome(record, 1)).toThrow(message);
  });

  it("is poison under a key that is not its collection: another partition's writer owns the token", () => {
    const record = { ...outcomeRecord(1), key: collection.replace("c", "d") };
    expect(() => checkOutcome(record, 1)).toThrow(/key is not the collection/);
  });

  it("keeps the hash it came with", () => {
    expect(checkOutcome(outcomeRecord(1, success("A")), 1).result).toEqual({ ok: true, metadata: "A", contentHash: hashOf("A") });
  });
});
