import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { closeRefresh, missingOrdinals, splitRefresh } from "../../../services/splitter/core/split.ts";
import { bitmapOf, refreshOf } from "./refreshes.ts";

describe("splitRefresh", () => {
  it("asks for each known token in the order of the request, with everything the fetcher needs", () => {
    const refresh = refreshOf();
    const split = splitRefresh(refresh, { ordinals: [0, 1, 2], isKnown: () => true, emission: 1 });
    expect(split.outcomes).toEqual([]);
    expect(split.requested.map(({ token_id, ordinal }) => [token_id, ordinal])).toEqual([
      ["5", 0],
      ["300", 1],
      ["7", 2],
    ]);
    expect(split.requested[1]).toEqual({
      refresh_id: refresh.refresh_id,
      ordinal: 1,
      total: 3,
      project_id: 42,
      collection_address: refresh.collection_address,
      token_id: "300",
      requested_at: refresh.requested_at,
      deadline: refresh.deadline,
      metadata_api_url: refresh.metadata_api_url,
      max_concurrency: 10,
      max_requests_per_second: null,
      emission: 1,
      attempt: 1,
      first_queued_at: refresh.requested_at,
      attempts: [],
    });
  });

  it("ends an unknown token as token_not_found, dated by the record, with the URL as it would have been called", () => {
    const refresh = refreshOf();
    const split = splitRefresh(refresh, { ordinals: [0, 1, 2], isKnown: (id) => id !== "300", emission: 1 });
    expect(split.requested.map(({ token_id }) => token_id)).toEqual(["5", "7"]);
    expect(split.outcomes).toEqual([
      {
        refresh_id: refresh.refresh_id,
        ordinal: 1,
        total: 3,
        project_id: 42,
        collection_address: refresh.collection_address,
        token_id: "300",
        requested_at: refresh.requested_at,
        created_at: refresh.requested_at,
        emission: 1,
        url: "https://api.game.example/metadata/300",
        status_code: null,
        metadata: null,
        content_hash: null,
        error_code: "token_not_found",
        error_detail: "not_registered",
        response_body: null,
        attempts: [],
      },
    ]);
  });

  it("names every ordinal once, and a replay splits to the same records", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }), { minLength: 1, maxLength: 50 }),
        fc.func(fc.boolean()),
        fc.integer({ min: 1, max: 3 }),
        (ids, isKnown, emission) => {
          const refresh = refreshOf({ token_ids: ids.map(String) });
          const ordinals = ids.map((_, ordinal) => ordinal);
          const split = splitRefresh(refresh, { ordinals, isKnown, emission });
          const named = [...split.requested, ...split.outcomes].map(({ ordinal }) => ordinal);
          expect(named.toSorted((a, b) => a - b)).toEqual(ordinals);
          expect(splitRefresh(refresh, { ordinals, isKnown, emission })).toEqual(split);
        },
      ),
    );
  });

  it("refuses an ordinal that the request does not have", () => {
    expect(() => splitRefresh(refreshOf(), { ordinals: [3], isKnown: () => true, emission: 1 })).toThrow(RangeError);
  });
});

it("closes what is left as not retrieved, dated as told", () => {
  const refresh = refreshOf();
  const closed = closeRefresh(refresh, { ordinals: [2], emission: 3, createdAt: 77 });
  expect(closed).toHaveLength(1);
  expect(closed[0]).toMatchObject({
    token_id: "7",
    ordinal: 2,
    created_at: 77,
    emission: 3,
    url: "https://api.game.example/metadata/7",
    status_code: null,
    error_code: "unable_to_retrieve_metadata",
    error_detail: "deadline_exceeded",
  });
});

describe("missingOrdinals", () => {
  it("misses everything while there is no progress", () => {
    expect(missingOrdinals(3, undefined)).toEqual([0, 1, 2]);
  });

  it("misses exactly the bits that are not set", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 1000 }), (ended) => {
        const done = ended.flatMap((yes, ordinal) => (yes ? [ordinal] : []));
        const missing = ended.flatMap((yes, ordinal) => (yes ? [] : [ordinal]));
        expect(missingOrdinals(ended.length, bitmapOf(ended.length, done))).toEqual(missing);
      }),
    );
  });
});
