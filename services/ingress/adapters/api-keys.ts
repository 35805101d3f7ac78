import { LRUCache } from "lru-cache";
import { readApiKey } from "../../common/cassandra/registrations.ts";
import type { Cassandra } from "../../common/cassandra/session.ts";
import type { Clock } from "../../common/clock.ts";
import { parseApiKey } from "../../common/http/api-key.ts";
import type { ApiKey } from "../core/admission.ts";

/** How long a key is believed after it was looked up: so late a revocation can take effect. */
const believedMs = 10_000;
const maxKeys = 10_000;

interface Known {
  readonly key: ApiKey | undefined;
}

/**
 * Looks API keys up by their hash, unknown ones remembered too; requests with one key share one look-up. Rejects, without
 * remembering it, when Cassandra cannot be asked.
 */
export function createFindKey(cassandra: Cassandra, clock: Clock): (text: string) => Promise<ApiKey | undefined> {
  const cache = new LRUCache<string, Known>({
    max: maxKeys,
    ttl: believedMs,
    perf: { now: () => clock.monotonicMs() },
    fetchMethod: async (hash) => ({ key: await lookUp(cassandra, hash) }),
  });
  return async (text) => {
    const parsed = parseApiKey(text);
    return parsed === undefined ? undefined : (await cache.fetch(parsed.hash))?.key;
  };
}

async function lookUp(cassandra: Cassandra, hash: string): Promise<ApiKey | undefined> {
  const key = await readApiKey(cassandra, hash);
  if (key === undefined || key.revokedAt !== null) return undefined;
  return { projectId: key.projectId, requestsPerSecond: key.requestsPerSecond };
}
