import { PoisonRecordError } from "../../common/errors.ts";
import type { DecodedRecord } from "../../common/kafka/contracts.ts";
import { parseAddress } from "../../common/messages/address.ts";
import { type ErrorCode, errorCodes, type TokenOutcome } from "../../common/messages/records.ts";
import { isRefreshId } from "../../common/messages/refresh-id.ts";
import { parseTokenId } from "../../common/messages/token-id.ts";
import { versionOf } from "./version.ts";

/** A token.outcome record that can be counted. */
export interface Outcome {
  /** Generation and offset of the record: README, Exactness. */
  readonly version: number;
  /** Encoded size: an upper bound for the text that the rows made from it hold. */
  readonly bytes: number;
  /** `collection:token`. */
  readonly tokenKey: string;
  readonly record: TokenOutcome;
  readonly result: Success | Failure;
}
export interface Success {
  readonly ok: true;
  readonly metadata: string;
  readonly contentHash: string;
}
export interface Failure {
  readonly ok: false;
  readonly errorCode: ErrorCode;
}

/**
 * What a record must hold beyond its Avro schema. Our own producers never break it, a foreign one or a bug may, and then every
 * try would fail for ever (an id that Cassandra refuses, a token without a bucket) or do silent harm. Throws PoisonRecordError.
 */
export function checkOutcome(record: DecodedRecord<TokenOutcome>, generation: number): Outcome {
  const { value } = record;
  const result = resultOf(value);
  const flaw = typeof result === "string" ? result : (flawOfKey(record) ?? flawOfPlace(value));
  if (typeof result === "string" || flaw !== undefined) throw new PoisonRecordError(`token.outcome: ${flaw}`);
  return {
    version: versionOf(generation, record.offset),
    bytes: record.bytes,
    tokenKey: `${value.collection_address}:${value.token_id}`,
    record: value,
    result,
  };
}

/** Another key is another partition: then a token or a refresh has two writers, and versions that cannot be compared. */
function flawOfKey({ key, value }: DecodedRecord<TokenOutcome>): string | undefined {
  if (parseAddress(value.collection_address) !== value.collection_address) return "collection_address is not an address";
  if (key !== value.collection_address) return "the key is not the collection";
  if (parseTokenId(value.token_id) === undefined) return "token_id is not a token id";
  return isRefreshId(value.refresh_id) ? undefined : "refresh_id is not a UUID in lower case";
}

/** Far above the specification's 1000 tokens, far below a bitmap that hurts. */
const largestTotal = 1_000_000;

function flawOfPlace({ ordinal, total }: TokenOutcome): string | undefined {
  if (total < 1 || total > largestTotal) return `a total of ${total}`;
  return ordinal >= 0 && ordinal < total ? undefined : `ordinal ${ordinal} of ${total} tokens`;
}

const knownCodes: ReadonlySet<string> = new Set(errorCodes);
const sha256 = /^[0-9a-f]{64}$/;

/** Succeeded or failed, never both, never neither (invariant I1); a text says what is wrong. */
function resultOf({ metadata, content_hash, error_code }: TokenOutcome): Success | Failure | string {
  if (error_code !== null) {
    if (metadata !== null || content_hash !== null) return "an error code and metadata";
    return knownCodes.has(error_code) ? { ok: false, errorCode: error_code } : "an error code that does not exist";
  }
  if (metadata === null || content_hash === null) return "neither metadata with its hash nor an error code";
  return sha256.test(content_hash) ? { ok: true, metadata, contentHash: content_hash } : "content_hash is not a SHA-256";
}
