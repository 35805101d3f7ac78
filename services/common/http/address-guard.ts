import ipaddr from "ipaddr.js";

/** Why an address may not be called; the words of `fetch_blocked_total{reason}`. */
export type AddressBlock =
  | "not_global_unicast"
  | "private_range"
  | "cgnat_range"
  | "ipv6_embedding"
  | "special_purpose"
  | "not_an_address";

export const addressBlocks: readonly AddressBlock[] = [
  "not_global_unicast",
  "private_range",
  "cgnat_range",
  "ipv6_embedding",
  "special_purpose",
  "not_an_address",
];

type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type AddressRange = readonly [Address, number];

/** What an operator allows beyond the public internet. */
export interface AddressPolicy {
  /** Exceptions from the ranges that are denied. */
  readonly allowedRanges: readonly AddressRange[];
  readonly allowedPorts: ReadonlySet<number> | "any";
}

/**
 * The policy that the settings METADATA_API_ALLOWED_RANGES (CIDRs) and METADATA_API_ALLOWED_PORTS (numbers, or `*` alone)
 * describe. Throws on a text that the settings' own checks would have refused.
 */
export function addressPolicy(settings: {
  readonly METADATA_API_ALLOWED_RANGES: readonly string[];
  readonly METADATA_API_ALLOWED_PORTS: readonly string[];
}): AddressPolicy {
  const ports = settings.METADATA_API_ALLOWED_PORTS;
  return {
    allowedRanges: settings.METADATA_API_ALLOWED_RANGES.map((text) => ipaddr.parseCIDR(text)),
    allowedPorts: ports.includes("*") ? "any" : new Set(ports.map(Number)),
  };
}

/** An IPv4 CIDR needs all four parts: `10/8` would be read as 0.0.0.10/8. */
export function isRange(text: string): boolean {
  return ipaddr.IPv4.isValidCIDRFourPartDecimal(text) || ipaddr.IPv6.isValidCIDR(text);
}

/**
 * Undefined when the address may be called: it is globally routable, or in a range that the operator allows. Everything else
 * is denied by its reason. IPv6 must lie in 2000::/3, the only block that is handed out for the internet. An IPv4 address in IPv6
 * clothes is denied whatever it carries, `::ffff:8.8.8.8` too: an honest name has an A record for it.
 */
export function classifyAddress(text: string, policy: AddressPolicy): AddressBlock | undefined {
  if (!ipaddr.isValid(text)) return "not_an_address";
  const address = ipaddr.parse(text);
  if (policy.allowedRanges.some((range) => contains(range, address))) return undefined;
  const range: string = address.range();
  if (range !== "unicast") return blocks[range] ?? "special_purpose";
  if (unroutable.some((range) => contains(range, address))) return "special_purpose";
  return address instanceof ipaddr.IPv6 ? outsideGlobalUnicast(address) : undefined;
}

/** The loopback addresses, of those the allowed ones, that a name of this machine stands for; undefined for any other name. */
export function loopbackAddresses(hostname: string, policy: AddressPolicy): readonly string[] | undefined {
  if (!loopbackName.test(hostname)) return undefined;
  return ["127.0.0.1", "::1"].filter((address) => classifyAddress(address, policy) === undefined);
}

/** RFC 6761, and what distributions write into the hosts file. */
const loopbackName = /^(.*\.)?localhost(\.localdomain)?\.?$|^ip6-(localhost|loopback)\.?$/i;

function contains([base, bits]: AddressRange, address: Address): boolean {
  return base.kind() === address.kind() && address.match(base, bits);
}

const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");

/** ::/96 carries an IPv4 address in its last 32 bits (`::127.0.0.1`: deprecated, still understood by some stacks). */
function outsideGlobalUnicast(address: ipaddr.IPv6): AddressBlock | undefined {
  if (contains(globalUnicast, address)) return undefined;
  return address.parts.slice(0, 6).every((part) => part === 0) ? "ipv6_embedding" : "special_purpose";
}

/** Unicast to the library, but not the internet. */
const unroutable: readonly AddressRange[] = [
  // Azure's host answers here, with the metadata of the virtual machine.
  ipaddr.parseCIDR("168.63.129.16/32"),
];

/** By the range names of ipaddr.js. */
const blocks: Readonly<Record<string, AddressBlock>> = {
  unspecified: "not_global_unicast",
  loopback: "not_global_unicast",
  linkLocal: "not_global_unicast",
  multicast: "not_global_unicast",
  broadcast: "not_global_unicast",
  private: "private_range",
  uniqueLocal: "private_range",
  deprecatedSiteLocal: "private_range",
  carrierGradeNat: "cgnat_range",
  ipv4Mapped: "ipv6_embedding",
  rfc6145: "ipv6_embedding",
  rfc6052: "ipv6_embedding",
  "6to4": "ipv6_embedding",
  teredo: "ipv6_embedding",
};
