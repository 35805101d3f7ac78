import { Resolver as DnsResolver } from "node:dns/promises";
import { LRUCache } from "lru-cache";

/** Every address of a name, in the order to try them. Rejects when it has none that could be had in time. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

/** Two tries of 700 ms: a lost packet is made up for, and a silent server leaves time inside the 3 s for the reason to be told. */
const patience = { timeout: 700, tries: 2, maxTimeout: 700 };
const rememberedNames = 1_000;
/** However long a record says that it holds: an owner who moves an API must not wait for us. */
const longestMemoryMs = 5_000;

interface Answer {
  readonly address: string;
  readonly ttl: number;
}

/**
 * Asks the name servers themselves, not getaddrinfo: that takes one of the process's four worker threads for as long as a name
 * server is silent, so one project's dead name would stop all others. It reads no hosts file and no search list; neither has a
 * public API's name. Callers at the same time share one look-up, and an answer is kept for its time to live, 5 s at most.
 */
export function createResolver(servers: readonly string[] = []): Resolve {
  const dns = new DnsResolver(patience);
  if (servers.length > 0) dns.setServers(servers);
  const known = new LRUCache<string, readonly string[]>({ max: rememberedNames });
  const asked = new Map<string, Promise<readonly string[]>>();

  const ask = async (hostname: string): Promise<readonly string[]> => {
    const answers = await Promise.allSettled([dns.resolve4(hostname, { ttl: true }), dns.resolve6(hostname, { ttl: true })]);
    const found: readonly Answer[] = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    const addresses = found.map((answer) => answer.address);
    if (addresses.length === 0) throw answers.find((answer) => answer.status === "rejected")?.reason ?? new Error("no address");
    const memoryMs = Math.min(longestMemoryMs, ...found.map((answer) => answer.ttl * 1_000));
    // Zero would mean for ever to the cache.
    if (memoryMs > 0) known.set(hostname, addresses, { ttl: memoryMs });
    return addresses;
  };

  return (hostname) => {
    const remembered = known.get(hostname);
    if (remembered !== undefined) return Promise.resolve(remembered);
    const underWay = asked.get(hostname);
    if (underWay !== undefined) return underWay;
    const asking = ask(hostname).finally(() => asked.delete(hostname));
    asked.set(hostname, asking);
    return asking;
  };
}
