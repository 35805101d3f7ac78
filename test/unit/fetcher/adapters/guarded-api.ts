import { systemClock } from "../../../../services/common/clock.ts";
import { addressPolicy } from "../../../../services/common/http/address-guard.ts";
import {
  createMetadataApi,
  type MetadataApi,
  type MetadataApiOptions,
} from "../../../../services/fetcher/adapters/metadata-api.ts";
import type { CallFailed, CallResult } from "../../../../services/fetcher/core/results.ts";

export const loopbackOnly = addressPolicy({ METADATA_API_ALLOWED_RANGES: ["127.0.0.0/8"], METADATA_API_ALLOWED_PORTS: ["*"] });

/** The real calls, with loopback allowed and no name known. */
export function guardedApi(changes: Partial<MetadataApiOptions> = {}): MetadataApi {
  return createMetadataApi({
    clock: systemClock,
    timeoutMs: 3_000,
    bodyCapBytes: 262_144,
    policy: loopbackOnly,
    resolve: (name) => Promise.reject(new Error(`${name} is unknown`)),
    ...changes,
  });
}

export function failureOf(result: CallResult): CallFailed {
  if (result.ok) throw new Error(`succeeded with ${result.text}`);
  return result;
}
