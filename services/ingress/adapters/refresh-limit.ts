import { LRUCache } from "lru-cache";
import type { Cassandra } from "../../common/cassandra/session.ts";
import { monthFromMicros } from "../../common/clock.ts";
import { messageOf } from "../../common/errors.ts";
import type { Logger } from "../../common/logging/logger.ts";
import type { Redis } from "../../common/redis/client.ts";
import type { LimitPort, Place } from "../core/acceptance.ts";
import type { RateDecisions } from "./request-rate.ts";

type Asked = Omit<Place, "refreshId">;

interface Taken {
  readonly granted: boolean;
  readonly used: number;
}

/** What this process knows of one hour of a project. */
interface KnownHour {
  /** Ids that were granted here. */
  readonly ids: Set<string>;
  /** The era in which Redis was last told what Cassandra has. */
  seededEra: number;
}

/** Hours of projects that are remembered, for as long as an hour can still be charged in the ordinary way. */
const remembered = { max: 50_000, ttl: 2 * 3_600_000 };
const keyTtlSeconds = 2 * 3_600;

/**
 * The limit of refreshes per project and hour, as a set of refresh ids in Redis. Sets merge: taking twice is taking once, and
 * adding what Cassandra has is never wrong. So Redis is told again whenever it may have forgotten: where it has nothing for
 * the hour, and once per hour and process after every failure. While it is away, the rows in Cassandra and the ids granted
 * here decide.
 *
 * What may then be granted too many: of n instances without Redis, what n − 1 of them have granted and not written yet, which
 * is a few milliseconds' worth; where only some are cut off, what they grant until they are back, never more than the limit
 * once more. Ids that Redis held alone, of refreshes whose rows nobody could write, are forgotten with it.
 */
export class RefreshLimit implements LimitPort {
  readonly #redis: Redis;
  readonly #cassandra: Cassandra;
  readonly #decisions: RateDecisions;
  readonly #logger: Logger;
  readonly #hours = new LRUCache<string, KnownHour>(remembered);
  /** Raised when Redis fails or goes: what it was told before may be lost. */
  #era = 0;

  constructor(options: { redis: Redis; cassandra: Cassandra; decisions: RateDecisions; logger: Logger }) {
    this.#redis = options.redis;
    this.#cassandra = options.cassandra;
    this.#decisions = options.decisions;
    this.#logger = options.logger;
    this.#redis.on("close", () => {
      this.#era += 1;
    });
  }

  async take(place: Place): Promise<Taken> {
    const hour = this.#known(place);
    const shared = await this.#takeInRedis(place, place.refreshId, hour);
    const taken = shared ?? takeAlone(place, hour, await this.#rows(place));
    if (taken.granted) hour.ids.add(place.refreshId);
    const decision = taken.granted ? "allowed" : "refused";
    this.#decisions.inc({ limit: "refreshes", store: shared === undefined ? "fallback" : "redis", decision });
    return taken;
  }

  async giveBack(place: Place): Promise<void> {
    this.#known(place).ids.delete(place.refreshId);
    await this.#ask(() => this.#redis.srem(keyOf(place), place.refreshId));
  }

  async look(asked: Asked): Promise<number> {
    const hour = this.#known(asked);
    const shared = await this.#takeInRedis(asked, "", hour);
    return shared?.used ?? union(hour, await this.#rows(asked)).size;
  }

  /** undefined when Redis could not be asked. An empty id looks and takes nothing. */
  async #takeInRedis(asked: Asked, refreshId: string, hour: KnownHour): Promise<Taken | undefined> {
    const era = this.#era;
    if (hour.seededEra === era) {
      const taken = await this.#script(asked, refreshId);
      if (taken !== "forgotten") return taken;
    }
    if (this.#redis.status !== "ready") return undefined;
    const seeds = union(hour, await this.#rows(asked));
    const taken = await this.#script(asked, refreshId, seeds);
    if (taken === undefined || taken === "forgotten") return undefined;
    hour.seededEra = era;
    return taken;
  }

  async #script(asked: Asked, refreshId: string, seeds?: ReadonlySet<string>): Promise<Taken | "forgotten" | undefined> {
    const mode = seeds === undefined ? "known" : "seeding";
    const parameters = [refreshId, asked.limit, keyTtlSeconds, mode, ...(seeds ?? [])];
    const reply = await this.#ask(() => this.#redis.eval(takeScript, 1, keyOf(asked), ...parameters));
    if (!Array.isArray(reply)) return undefined;
    const [granted, used] = reply.map(Number);
    return granted === -1 ? "forgotten" : { granted: granted === 1, used: used ?? 0 };
  }

  async #ask(command: () => Promise<unknown>): Promise<unknown> {
    try {
      return await command();
    } catch (error) {
      this.#era += 1;
      this.#logger.debug({ reason: messageOf(error) }, "refresh_limit.redis_failed");
      return undefined;
    }
  }

  async #rows({ projectId, hour }: Asked): Promise<string[]> {
    const month = monthFromMicros(hour.startMicros);
    const rows = await this.#cassandra.read(selectHour, [projectId, month, hour.startMicros, hour.endMicros]);
    return rows.map((row) => String(row.refresh_id));
  }

  #known(asked: Asked): KnownHour {
    const key = keyOf(asked);
    const known = this.#hours.get(key) ?? { ids: new Set<string>(), seededEra: -1 };
    this.#hours.set(key, known);
    return known;
  }
}

/** Decides in one step with the ids of this process, so that its own requests do not overtake each other. */
function takeAlone(place: Place, hour: KnownHour, rows: readonly string[]): Taken {
  const ids = union(hour, rows);
  if (ids.has(place.refreshId)) return { granted: true, used: ids.size };
  if (ids.size >= place.limit) return { granted: false, used: ids.size };
  return { granted: true, used: ids.size + 1 };
}

const union = (hour: KnownHour, rows: readonly string[]): ReadonlySet<string> => new Set([...hour.ids, ...rows]);

const keyOf = ({ projectId, hour }: Asked): string => `refreshes:${projectId}:${hour.startMicros / 1_000_000}`;

const selectHour = `SELECT refresh_id FROM refreshes_by_project
  WHERE project_id = ? AND month = ? AND created_at >= ? AND created_at < ?`;

/**
 * Arguments: id (empty: look only), limit, seconds to keep the set, mode, ids to add. Gives: 1 granted, 0 not, -1 nothing is
 * known of the hour; and the number of ids.
 */
const takeScript = `
if ARGV[4] == 'known' and redis.call('EXISTS', KEYS[1]) == 0 then return {-1, 0} end
for i = 5, #ARGV do redis.call('SADD', KEYS[1], ARGV[i]) end
local used = redis.call('SCARD', KEYS[1])
local granted = 0
if ARGV[1] ~= '' then
  if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then
    granted = 1
  elseif used < tonumber(ARGV[2]) then
    redis.call('SADD', KEYS[1], ARGV[1])
    used = used + 1
    granted = 1
  end
end
redis.call('EXPIRE', KEYS[1], ARGV[3])
return {granted, used}
`;
