import type { DecodedRecord } from "../../../services/common/kafka/contracts.ts";
import type { ErrorCode, RefreshCompleted, TokenOutcome } from "../../../services/common/messages/records.ts";

/** What must be there in the end, found the simple way: every record once, one after the other, never a crash. */
export interface Reference {
  readonly tokens: Map<string, { metadata: string; version: number; refreshed_at: number; refresh_id: string }>;
  readonly summaries: Map<string, { succeeded: number; unchanged: number; failed: number; done: Set<number> }>;
  readonly errors: TokenOutcome[];
  readonly completions: Map<string, RefreshCompleted>;
}

export function processOnce(log: readonly DecodedRecord<TokenOutcome>[], generation: number): Reference {
  const reference: Reference = { tokens: new Map(), summaries: new Map(), errors: [], completions: new Map() };
  const codes = new Map<string, ErrorCode[]>();
  for (const { offset, value } of log) {
    const id = value.refresh_id;
    const summary = reference.summaries.get(id) ?? { succeeded: 0, unchanged: 0, failed: 0, done: new Set() };
    reference.summaries.set(id, summary);
    if (summary.done.has(value.ordinal)) continue;
    summary.done.add(value.ordinal);
    if (value.error_code !== null) {
      summary.failed += 1;
      reference.errors.push(value);
      codes.set(id, [...(codes.get(id) ?? []), value.error_code]);
    } else {
      summary.succeeded += 1;
      if (takeContent(reference, value, generation * 2 ** 40 + offset) === "unchanged") summary.unchanged += 1;
    }
    if (summary.done.size === value.total) reference.completions.set(id, completion(value, summary, codes.get(id) ?? []));
  }
  return reference;
}

function takeContent({ tokens }: Reference, value: TokenOutcome, version: number): "changed" | "unchanged" {
  const key = `${value.collection_address}:${value.token_id}`;
  const stored = tokens.get(key);
  const metadata = value.metadata ?? "";
  const unchanged = stored?.metadata === metadata;
  const read = { refreshed_at: value.created_at, refresh_id: value.refresh_id };
  tokens.set(key, { metadata, version: unchanged ? stored.version : version, ...read });
  return unchanged ? "unchanged" : "changed";
}

function completion(
  last: TokenOutcome,
  { succeeded, unchanged, failed }: { succeeded: number; unchanged: number; failed: number },
  codes: readonly ErrorCode[],
): RefreshCompleted {
  const inOrder = [
    "unable_to_retrieve_metadata",
    "invalid_response_status_code",
    "unable_to_decode_response",
    "token_not_found",
  ] as const;
  const counts = inOrder.map((code) => [code, codes.filter((one) => one === code).length] as const);
  return {
    refresh_id: last.refresh_id,
    project_id: last.project_id,
    collection_address: last.collection_address,
    requested_at: last.requested_at,
    completed_at: Math.max(last.requested_at, last.created_at),
    total: last.total,
    succeeded,
    unchanged,
    failed,
    failed_by_code: Object.fromEntries(counts.filter(([, times]) => times > 0)),
  };
}
