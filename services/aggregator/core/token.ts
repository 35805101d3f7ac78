import type { Success } from "./outcome.ts";

/** What is stored of a token's content; its metadata is never needed again. */
export interface TokenHead {
  /** Version of the outcome that brought the content; 0 when none is stored. */
  readonly version: number;
  readonly contentHash: string;
  /** Hash of the content before it, empty for the first. */
  readonly previousHash: string;
}

export const noContent: TokenHead = { version: 0, contentHash: "", previousHash: "" };

/**
 * What a success that counts does to its token.
 * - changed: another content. Publish it, write it.
 * - unchanged: the stored content once more. Only who read it last, and when, is written.
 * - replayed: the stored content came from this very record, whose effects stopped somewhere behind its row. The row is written
 *   again, because what a majority was asked for when the row was read (hash and version) may be all that a majority has.
 * - overtaken: a newer content is stored. Publish nothing, write nothing.
 * - contradicted: the stored content has this record's version and another hash: it came from another log.
 */
export type TokenEffect = TokenTouch | { readonly kind: "overtaken" } | { readonly kind: "contradicted" };
export interface TokenTouch {
  readonly kind: "changed" | "unchanged" | "replayed";
  readonly head: TokenHead;
  /** Whether the outcome counts as unchanged: the same on every replay. */
  readonly unchanged: boolean;
}

/** Rules: README, Exactness, "version". */
export function effectOn(head: TokenHead, version: number, { contentHash }: Success): TokenEffect {
  if (version < head.version) return { kind: "overtaken" };
  if (version === head.version) {
    if (contentHash !== head.contentHash) return { kind: "contradicted" };
    return { kind: "replayed", head, unchanged: head.previousHash === head.contentHash };
  }
  if (contentHash === head.contentHash) return { kind: "unchanged", head, unchanged: true };
  return { kind: "changed", head: { version, contentHash, previousHash: head.contentHash }, unchanged: false };
}
