import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * The address a request came from, IPv4 where it is one. Each trusted proxy appended the address it saw to X-Forwarded-For, so
 * with n of them the n-th value from the right is the client; what stands further left was written by whoever liked to.
 * Without proxies the header means nothing. A hop that is no address ends the walk at the last one that is.
 * undefined: the connection has no address (a unix socket, or it is gone).
 */
export function clientAddress(
  peerAddress: string | undefined,
  forwardedFor: readonly string[],
  trustedProxyCount: number,
): string | undefined {
  let client = peerAddress === undefined ? undefined : canonical(peerAddress);
  const hops = forwardedFor.flatMap((value) => value.split(","));
  for (let hop = 1; hop <= Math.min(trustedProxyCount, hops.length); hop += 1) {
    const address = canonical(withoutPort(hops[hops.length - hop]?.trim() ?? ""));
    if (address === undefined) break;
    client = address;
  }
  return client;
}

/**
 * Who shares one per-IP bucket: an IPv4 address, or the /64 of an IPv6 one, which is the least a single customer gets.
 * Requests without an address share one bucket.
 */
export function addressBucket(address: string | undefined): string {
  if (address === undefined) return "none";
  const parsed = ipaddr.parse(address);
  if (parsed.kind() === "ipv4") return address;
  const network = parsed.toByteArray().slice(0, 8);
  return `${Buffer.from(network).toString("hex")}/64`;
}

/** IPv4-mapped addresses as IPv4, no zone. isIP first: the parser also takes spellings like `0x7f.1` and `2130706433`. */
function canonical(text: string): string | undefined {
  const [withoutZone = ""] = text.split("%", 1);
  return isIP(withoutZone) === 0 ? undefined : ipaddr.process(withoutZone).toString();
}

/** `1.2.3.4:5678`, `[2001:db8::1]:443` and `[2001:db8::1]` are what proxies write beside plain addresses. */
function withoutPort(hop: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(hop);
  if (bracketed?.[1] !== undefined) return bracketed[1];
  return /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(hop)?.[1] ?? hop;
}
