import type { LoggedCall } from "../metadata-hosts.ts";
import type { Book } from "./book.ts";

const mostCalls = 3;
/** Specification section 8: exponential back-off, 2 s after the first attempt, 4 s after the second. */
const backOffMs = [2_000, 4_000];

/** I7, I8. Strict where nothing happened that may repeat a call. */
export function checkCalls(book: Book): string[] {
  const byPath = Map.groupBy(book.calls, ({ path }) => path);
  return [...byPath].flatMap(([path, calls]) => {
    const { refreshIndex, ordinal } = tokenOf(book, path);
    const refresh = book.plan.refreshes[refreshIndex]?.record;
    if (refresh === undefined || ordinal === -1) return [`somebody called ${path}, which nobody asked for`];
    const deliveries = deliveriesOf(book, refresh.refresh_id, ordinal);
    if (calls.length > mostCalls * deliveries) {
      return [`I8: ${path} was called ${calls.length} times in ${deliveries} deliveries`];
    }
    return deliveries === 1 ? strictly(book, calls, refresh.refresh_id) : [];
  });
}

/** How often the token may have been begun anew: by emission, by a copy of its record, by a fault of the fetchers or of Kafka. */
function deliveriesOf({ index, disturbances }: Book, refreshId: string, ordinal: number): number {
  const requests = index.trail(refreshId, ordinal)?.requests ?? [];
  const emissions = new Set(requests.map(({ content }) => content.emission)).size;
  const attempts = new Set(requests.map(({ content }) => `${content.emission}/${content.attempt}`)).size;
  const copies = requests.length - attempts;
  return Math.max(1, emissions) + copies + 2 * (disturbances.get("fetcher") ?? 0);
}

function strictly({ index }: Book, calls: readonly LoggedCall[], refreshId: string): string[] {
  const completed = index.completions.find(({ content }) => content.refresh_id === refreshId);
  const [{ path = "" } = {}] = calls;
  return calls.flatMap((call, place) => {
    if (completed !== undefined && call.startedMs > completed.atMs) return [`I7: ${path} was called after the completion`];
    const before = calls[place - 1];
    if (before === undefined) return [];
    if (before.status !== 429 && before.status !== 503) return [`I8: ${path} was called again after ${before.status}`];
    const waitMs = Math.max(backOffMs[place - 1] ?? 0, before.retryAfterMs ?? 0);
    const waitedMs = call.startedMs - before.endsMs;
    return waitedMs >= waitMs ? [] : [`I8: ${path} was called ${waitedMs} ms after its refusal, not ${waitMs}`];
  });
}

function tokenOf({ plan }: Book, path: string): { refreshIndex: number; ordinal: number } {
  const [, number = "", token = ""] = /^\/r(\d+)\/(\d+)$/.exec(path) ?? [];
  const refreshIndex = Number(number) - 1;
  return { refreshIndex, ordinal: plan.refreshes[refreshIndex]?.record.token_ids.indexOf(token) ?? -1 };
}
