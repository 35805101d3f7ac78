/** The text of whatever was thrown, for a log line or a reply. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/**
 * The record can never be processed, however often it is tried: our own code cannot make sense of it.
 * Everything else that a handler throws is taken for lost infrastructure and tried again.
 */
export class PoisonRecordError extends Error {
  override readonly name = "PoisonRecordError";
}

/** The work was given up because the partition was lost or the service stops: nothing is wrong, nothing is committed. */
export class AbandonedError extends Error {
  override readonly name = "AbandonedError";
}
