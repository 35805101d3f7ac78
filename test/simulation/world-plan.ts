import { microsFromMs } from "../../services/common/clock.ts";
import type { RefreshRequested } from "../../services/common/messages/records.ts";
import type { Chance } from "./chance.ts";
import type { HostPlan } from "./hosts.ts";
import type { Weather } from "./network.ts";
import type { ServiceName } from "./process.ts";
import { epochMs } from "./time/ambient.ts";

/** What happens to the system from outside, and when. */
export type Fault =
  | { readonly kind: "kill"; readonly service: ServiceName; readonly number: number; readonly awayMs: number }
  | { readonly kind: "freeze"; readonly service: ServiceName; readonly number: number; readonly forMs: number }
  | { readonly kind: "restart"; readonly service: ServiceName; readonly number: number; readonly awayMs: number }
  | { readonly kind: "join"; readonly service: ServiceName }
  | { readonly kind: "weather"; readonly of: "kafka" | "cassandra"; readonly weather: Weather; readonly forMs: number }
  | { readonly kind: "duplicate"; readonly role: DuplicableTopic; readonly draw: number }
  | { readonly kind: "garbage"; readonly role: DuplicableTopic; readonly draw: number }
  | { readonly kind: "rewind"; readonly service: ServiceName; readonly back: number };

/** At a time, or when a service has had so many requests served: then it strikes between one effect and the next. */
export interface PlannedFault {
  readonly atMs: number;
  readonly afterRequests: { readonly service: ServiceName; readonly count: number } | undefined;
  readonly fault: Fault;
}

export type DuplicableTopic = "refreshRequested" | "tokenRequested" | "tokenOutcome" | "watchdog" | "retryTier";

export interface PlannedRefresh {
  readonly atMs: number;
  readonly record: RefreshRequested;
  /** Ingress crashed before its rows. */
  readonly withoutRows: boolean;
}

export interface ProjectPlan {
  readonly projectId: number;
  readonly collection: string;
  readonly host: HostPlan;
  /** Tokens that exist, where the policy is `registered`. */
  readonly registered: readonly string[];
}

export interface WorldPlan {
  readonly calm: boolean;
  readonly nodeCount: number;
  readonly partitions: { readonly fetch: number; readonly outcome: number; readonly other: number };
  readonly members: Readonly<Record<ServiceName, number>>;
  readonly settings: Readonly<Record<string, string>>;
  readonly brokerSkewMs: number;
  readonly skewsMs: readonly number[];
  readonly projects: readonly ProjectPlan[];
  readonly refreshes: readonly PlannedRefresh[];
  readonly faults: readonly PlannedFault[];
  /** Of the watchdog. In most worlds it comes sooner than in an hour: there is less idle time to go through. */
  readonly watchdogMs: number;
  /** Of the records for the fetcher and the aggregator, so many cannot be read. */
  readonly damagedShare: number;
}

const services = ["splitter", "fetcher", "aggregator"] as const;

export function planWorld(chance: Chance): WorldPlan {
  const calm = chance.happens(0.2);
  const damagedShare = !calm && chance.happens(0.1) ? 0.1 : 0;
  const eventfulMs = chance.pick([3_000, 12_000, 40_000]);
  // Refreshes that last: whatever happens, happens in the middle of one.
  const drawnOut = chance.happens(0.4);
  const projects = Array.from({ length: chance.between(1, 3) }, (_, index) => planProject(chance, { index, drawnOut }));
  return {
    calm,
    nodeCount: chance.between(1, 2),
    partitions: { fetch: chance.between(1, 3), outcome: chance.between(1, 3), other: chance.between(1, 2) },
    members: { splitter: chance.between(1, 2), fetcher: chance.between(1, 2), aggregator: chance.between(1, 2) },
    settings: {
      WINDOW_RECORDS: String(chance.pick([100, 30_000])),
      FETCH_CONCURRENCY: String(chance.pick([1, 4, 512])),
      PROGRESS_CACHE_COUNT: String(chance.pick([1, 2, 20_000])),
      TOKEN_CACHE_COUNT: String(chance.pick([1, 5, 50_000])),
    },
    brokerSkewMs: chance.pick([0, 0, -5_000, 5_000]),
    skewsMs: Array.from({ length: 4 }, () => (calm ? 0 : chance.pick([0, 0, 0, -60_000, 60_000]))),
    projects,
    refreshes: planRefreshes(chance, projects, {
      eventfulMs,
      drawnOut,
      deadlineMs: damagedShare > 0 ? 3_600_000 : 48 * 3_600_000,
    }),
    faults: calm ? [] : planFaults(chance, eventfulMs),
    watchdogMs: chance.happens(0.05) ? 3_600_000 : 120_000,
    damagedShare,
  };
}

function planProject(chance: Chance, { index, drawnOut }: { index: number; drawnOut: boolean }): ProjectPlan {
  const trouble = (share: number): number => (chance.happens(0.25) ? chance.random() * share : 0);
  const fromMs = chance.between(0, 10_000);
  const hasOutage = chance.happens(0.15);
  return {
    projectId: index + 1,
    collection: `0x${String(index + 1).repeat(40)}`,
    host: {
      latencyMs: drawnOut ? chance.pick([400, 900]) : chance.pick([5, 50, 300]),
      busyShare: trouble(0.7),
      missingShare: trouble(0.4),
      hangingShare: trouble(0.3),
      brokenShare: trouble(0.3),
      callsAtOnce: chance.pick([1_000, 1_000, 3]),
      retryAfterMs: chance.happens(0.15) ? chance.pick([1_000, 5_000, 30_000]) : undefined,
      outage: { fromMs, untilMs: hasOutage ? fromMs + chance.between(1_000, 20_000) : fromMs, hangs: chance.happens(0.3) },
      revisionMs: chance.pick([500, 4_000, 1_000_000_000]),
    },
    registered: Array.from({ length: 30 }, (_, token) => String(token * 100)).filter(() => chance.happens(0.8)),
  };
}

function planRefreshes(
  chance: Chance,
  projects: readonly ProjectPlan[],
  { eventfulMs, drawnOut, deadlineMs }: { eventfulMs: number; drawnOut: boolean; deadlineMs: number },
): PlannedRefresh[] {
  return Array.from({ length: chance.between(1, 7) }, (_, index) => {
    const { projectId, collection } = chance.pick(projects);
    const atMs = chance.between(0, eventfulMs);
    const requestedAt = microsFromMs(epochMs + atMs);
    const record: RefreshRequested = {
      refresh_id: `00000000-0000-4000-8000-${String(index + 1).padStart(12, "0")}`,
      project_id: projectId,
      collection_address: collection,
      token_ids: planTokens(chance, drawnOut),
      requested_at: requestedAt,
      deadline: requestedAt + microsFromMs(deadlineMs),
      metadata_api_url: `https://api-${projectId}.example/r${index + 1}`,
      token_policy: chance.pick(["registered", "open"]),
      max_concurrency: drawnOut || chance.happens(0.15) ? chance.between(1, 4) : null,
      max_requests_per_second: chance.happens(0.1) ? chance.between(5, 50) : null,
    };
    return { atMs, record, withoutRows: chance.happens(0.3) };
  });
}

/** Of few tokens in all, so that refreshes meet in them. */
function planTokens(chance: Chance, drawnOut: boolean): string[] {
  const count = drawnOut ? chance.between(8, 30) : chance.pick([1, 2, 5, 9, 12]);
  const tokens = Array.from({ length: Math.max(12, count) }, (_, token) => String(token * 100));
  return tokens.filter((_, index) => index < count || chance.happens(0.1)).sort(() => chance.random() - 0.5);
}

function planFaults(chance: Chance, eventfulMs: number): PlannedFault[] {
  const kinds = chance.pick<readonly Fault["kind"][]>([
    ["kill"],
    ["freeze", "join"],
    ["weather", "kill"],
    ["duplicate", "garbage"],
    ["kill", "restart", "join"],
    ["freeze", "kill", "weather"],
    ["kill", "freeze", "restart", "join", "weather", "duplicate", "garbage", "rewind"],
  ]);
  // Trouble that stays with one service meets itself.
  const focus = chance.happens(0.5) ? chance.pick(services) : undefined;
  return Array.from({ length: chance.between(1, 8) }, () => {
    const service = focus ?? chance.pick(services);
    const byRequest = chance.happens(0.5);
    return {
      atMs: chance.between(100, eventfulMs + 15_000),
      afterRequests: byRequest ? { service, count: chance.between(5, 120) } : undefined,
      fault: planFault(chance, chance.pick(kinds), service),
    };
  });
}

function planFault(chance: Chance, kind: Fault["kind"], service: ServiceName): Fault {
  const which = { service, number: chance.between(0, 3) };
  const roles: readonly DuplicableTopic[] = ["refreshRequested", "tokenRequested", "tokenOutcome", "watchdog", "retryTier"];
  const draw = chance.between(0, 1_000_000);
  if (kind === "kill") return { kind, ...which, awayMs: chance.pick([100, 2_000, 10_000]) };
  if (kind === "restart") return { kind, ...which, awayMs: chance.pick([10, 2_000]) };
  if (kind === "freeze") return { kind, ...which, forMs: chance.pick([500, 3_000, 9_000, 20_000]) };
  if (kind === "join") return { kind, service };
  if (kind === "rewind") return { kind, service, back: chance.between(1, 50) };
  if (kind === "weather")
    return { kind, of: chance.pick(["kafka", "cassandra"]), weather: planWeather(chance), forMs: chance.between(500, 12_000) };
  return { kind, role: chance.pick(roles), draw };
}

function planWeather(chance: Chance): Weather {
  const share = (): number => (chance.happens(0.5) ? chance.pick([0.1, 0.3, 0.9]) : 0);
  const [lostShare, unansweredShare, lateShare] = [share(), share(), share()];
  const sum = Math.max(1, lostShare + unansweredShare + lateShare);
  return {
    latencyMs: chance.pick([2, 30, 400]),
    lostShare: lostShare / sum,
    unansweredShare: unansweredShare / sum,
    lateShare: lateShare / sum,
  };
}
