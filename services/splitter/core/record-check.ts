import { z } from "zod";
import { PoisonRecordError } from "../../common/errors.ts";
import { parseAddress } from "../../common/messages/address.ts";
import type { RefreshRequested, RefreshWatchdog } from "../../common/messages/records.ts";
import { parseTokenId } from "../../common/messages/token-id.ts";

const micros = z.int().positive();

/**
 * What a record must hold beyond its Avro schema, or every try at it would fail for ever: an id that Cassandra refuses, a
 * token that has no bucket. Ingress never writes such a record; a foreign producer, or a bug, may.
 */
const refreshSchema = z.object({
  refresh_id: z.guid(),
  project_id: z.int().min(0),
  collection_address: z.string().refine((text) => parseAddress(text) === text, "must be a lower-case address"),
  token_ids: z.array(z.string().refine((text) => parseTokenId(text) === text, "must be a canonical token id")).min(1),
  requested_at: micros,
  deadline: micros,
  metadata_api_url: z.url(),
  max_concurrency: z.int().min(1).nullable(),
  max_requests_per_second: z.int().min(1).nullable(),
  token_policy: z.enum(["registered", "open"]),
});

const watchdogSchema = z.object({ check: z.int().min(1), emission: z.int().min(1), refresh: refreshSchema });

/** Throws PoisonRecordError, naming the fields, when the record can never be processed. */
export function checkRefresh(value: RefreshRequested): void {
  throwProblems("refresh.requested", refreshSchema.safeParse(value));
}

/** Throws PoisonRecordError, naming the fields, when the record can never be processed. */
export function checkWatchdog(value: RefreshWatchdog): void {
  throwProblems("refresh.watchdog", watchdogSchema.safeParse(value));
}

function throwProblems(kind: string, result: z.ZodSafeParseResult<unknown>): void {
  if (result.success) return;
  const problems = result.error.issues.slice(0, 5).map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new PoisonRecordError(`${kind}: ${problems.join("; ")}`);
}
