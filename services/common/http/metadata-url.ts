import { isIP } from "node:net";
import { type AddressBlock, type AddressPolicy, classifyAddress, loopbackAddresses } from "./address-guard.ts";

/** What a metadata_api_url may break; part of the message that its owner reads. */
export type MetadataUrlRule =
  | "characters"
  | "length"
  | "syntax"
  | "scheme"
  | "credentials"
  | "query"
  | "fragment"
  | "host"
  | "port"
  | "address";

export type MetadataUrlCheck =
  | { readonly ok: true; readonly url: string }
  | {
      readonly ok: false;
      readonly rule: MetadataUrlRule;
      readonly message: string;
      /** Set when and only when the rule is `address`. */
      readonly block?: AddressBlock;
    };

const maxUrlLength = 2_048;

/**
 * Whether the service may call `{text}/{token_id}`: the rule for setting a collection's URL, and again before every call. Says
 * nothing of what a name resolves to: the fetcher checks that when it connects. `url` is the canonical spelling, without a slash at
 * the end.
 */
export function checkMetadataApiUrl(text: string, policy: AddressPolicy): MetadataUrlCheck {
  // Before parsing: the URL standard silently drops tabs and newlines and reads a backslash as a slash.
  if (text.length > maxUrlLength) return broken("length", `must have at most ${maxUrlLength} characters`);
  if (/[\p{Cc}\p{Cf}\p{Z}\\]/u.test(text)) {
    return broken("characters", "must not contain blanks, control characters or backslashes");
  }
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== "http" && scheme !== "https")
    return broken("scheme", "must start with https:// or http://");
  const url = /^https?:\/\/[^/]/i.test(text) ? URL.parse(text) : null;
  return url === null ? broken("syntax", "must be a URL such as https://api.example.com/tokens") : checkUrl(url, text, policy);
}

function checkUrl(url: URL, text: string, policy: AddressPolicy): MetadataUrlCheck {
  if (url.username !== "" || url.password !== "") return broken("credentials", "must not contain a user name or password");
  if (text.includes("?")) return broken("query", "must not have a query: the token id is added to its path");
  if (text.includes("#")) return broken("fragment", "must not have a fragment");
  if (!isHost(url.hostname)) return broken("host", "must name a host of at most 253 characters, 63 in each label");
  if (!portAllowed(url, policy)) return broken("port", `must use an allowed port, not ${portOf(url)}`);
  const block = blockOfHost(url.hostname, policy);
  if (block !== undefined) {
    return { ...broken("address", `must lead to a public address: ${url.hostname} is none (${block})`), block };
  }
  return { ok: true, url: url.origin + url.pathname.replace(/\/+$/, "") };
}

function broken(rule: MetadataUrlRule, message: string): MetadataUrlCheck & { ok: false } {
  return { ok: false, rule, message };
}

/** RFC 1035, section 2.3.4, and no empty punycode: the URL parser does not ask. */
function isHost(hostname: string): boolean {
  if (hostname.startsWith("[")) return true;
  const name = hostname.replace(/\.$/, "");
  return name.length <= 253 && name.split(".").every((label) => label.length >= 1 && label.length <= 63 && label !== "xn--");
}

function portOf(url: URL): number {
  return url.port === "" ? { "http:": 80, "https:": 443 }[url.protocol as "http:" | "https:"] : Number(url.port);
}

function portAllowed(url: URL, { allowedPorts }: AddressPolicy): boolean {
  return allowedPorts === "any" ? portOf(url) > 0 : allowedPorts.has(portOf(url));
}

/** For a literal address and the names of this machine; another name is checked when it is resolved. */
function blockOfHost(hostname: string, policy: AddressPolicy): AddressBlock | undefined {
  const literal = hostname.replace(/^\[|\]$/g, "");
  if (isIP(literal) !== 0) return classifyAddress(literal, policy);
  return loopbackAddresses(hostname, policy)?.length === 0 ? "not_global_unicast" : undefined;
}
