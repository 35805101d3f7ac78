import type { RefreshRequested } from "../../../services/common/messages/records.ts";

const requestedAt = Date.UTC(2026, 0, 31, 8, 15, 30) * 1000 + 123_456;

/** An accepted refresh of three tokens, changed where a test says so. Times in micros. */
export function refreshOf(change: Partial<RefreshRequested> = {}): RefreshRequested {
  return {
    refresh_id: "01923f7a-0000-7000-8000-000000000001",
    project_id: 42,
    collection_address: "0x00000000000000000000000000000000000000aa",
    token_ids: ["5", "300", "7"],
    requested_at: requestedAt,
    deadline: requestedAt + 48 * 3_600 * 1_000_000,
    metadata_api_url: "https://api.game.example/metadata",
    token_policy: "registered",
    max_concurrency: 10,
    max_requests_per_second: null,
    ...change,
  };
}

/** A bitmap with the bits of these ordinals set. */
export function bitmapOf(total: number, ordinals: readonly number[]): Uint8Array {
  const bitmap = new Uint8Array(Math.ceil(total / 8));
  for (const ordinal of ordinals) bitmap[ordinal >> 3] = (bitmap[ordinal >> 3] ?? 0) | (1 << (ordinal & 7));
  return bitmap;
}
