import type { TokenRefresh } from "../../common/messages/records.ts";

/** What stays the same when the log brings a record twice, or a producer wrote it twice; and when it was moved to a delay tier. */
export type Turn = Pick<TokenRefresh, "refresh_id" | "ordinal" | "emission" | "attempt">;

const radix = 256;

/** One of a refresh's: a number each, small ones for a thousand tokens, where a text would take more memory than all the rest. */
export function turnNumber({ ordinal, emission, attempt }: Turn): number {
  return (ordinal * radix + emission) * radix + attempt;
}

/** Whether it has a number of its own. */
export function isCountable({ ordinal, emission, attempt }: Turn): boolean {
  return ordinal >= 0 && emission >= 0 && emission < radix && attempt >= 0 && attempt < radix;
}
