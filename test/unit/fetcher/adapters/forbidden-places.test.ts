import { hostname } from "node:os";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AddressPolicy, addressPolicy } from "../../../../services/common/http/address-guard.ts";
import { createEndpoints } from "../../../../services/fetcher/adapters/endpoints.ts";
import { createResolver, type Resolve } from "../../../../services/fetcher/adapters/resolver.ts";
import {
  brokenSpellings,
  forbiddenAddresses,
  forbiddenParts,
  forbiddenSpellings,
  refusedUrls,
} from "../../../support/metadata-api/forbidden-places.ts";
import { failureOf, guardedApi, loopbackOnly } from "./guarded-api.ts";
import { type NameAnswer, startNameServer } from "./name-server.ts";
import { answerOf, type RawServer, startRawServer } from "./raw-server.ts";

const allowing = (...ranges: string[]) =>
  addressPolicy({ METADATA_API_ALLOWED_RANGES: ranges, METADATA_API_ALLOWED_PORTS: ["*"] });
const nothingPrivate = allowing();

const closing: (() => unknown)[] = [];
/** Stands on every loopback address: what gets through is seen here. */
let server: RawServer;
beforeEach(async () => {
  server = await startRawServer((socket) => void socket.write(answerOf("{}")), "0.0.0.0");
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await server.close();
});

const answers =
  (...addresses: string[]): Resolve =>
  () =>
    Promise.resolve(addresses);

function caller(resolve: Resolve, policy: AddressPolicy) {
  const api = guardedApi({ resolve, policy });
  closing.push(() => api.close());
  return (origin: string) => api.call({ projectId: 1, origin, path: "/1" });
}
const named = (name = "api.example.test") => `http://${name}:${server.port}`;

/** All that anybody gets to see of a blocked call: nothing that answered, for nothing was asked. */
const blocked = (block: unknown) => ({
  ok: false,
  detail: "blocked_address",
  block,
  status: null,
  excerpt: null,
  bodyBytes: 0,
  startedAtMs: expect.any(Number),
  durationMs: expect.any(Number),
});

describe("a forbidden address is not called", () => {
  it.each(forbiddenAddresses)("%s as what a name leads to (%s)", async (address, block) => {
    expect(await caller(answers(address), nothingPrivate)(named())).toEqual(blocked(block));
    // Beside one that may be called, it condemns the name, wherever it stands.
    const allowed = allowing("127.7.7.7/32");
    expect(await caller(answers("127.7.7.7", address), allowed)(named())).toEqual(blocked(block));
    expect(await caller(answers(address, "127.7.7.7"), allowed)(named())).toEqual(blocked(block));
    expect(server.connectionCount).toBe(0);
  });

  it.each(forbiddenAddresses)("%s as a literal (%s)", async (address, block) => {
    const host = address.includes(":") ? `[${address}]` : address;
    const unasked: Resolve = (name) => Promise.reject(new Error(`asked for ${name}`));
    for (const scheme of ["http", "https"]) {
      const { origin } = new URL(`${scheme}://${host}:${server.port}`);
      expect(await caller(unasked, nothingPrivate)(origin)).toEqual(blocked(block));
    }
    expect(server.connectionCount).toBe(0);
  });

  const spelled = [...forbiddenSpellings, ...brokenSpellings, ...forbiddenParts]
    .map(([url]) => url)
    // Public addresses and names of other machines: refused for their spelling alone.
    .filter((url) => URL.canParse(url) && !/2\.2\.2\.2#|xn--|api\.\.?example\.com/.test(url));

  it.each(spelled)("%j, also where a URL was stored before the rules were these", async (url) => {
    const parsed = new URL(url);
    parsed.port = String(server.port);
    const result = failureOf(await caller(answers("127.0.0.1"), nothingPrivate)(parsed.origin));
    expect(result).toEqual(blocked(expect.any(String)));
    expect(server.connectionCount).toBe(0);
  });
});

describe("what a URL alone gives away", () => {
  const endpointOf = createEndpoints(
    addressPolicy({ METADATA_API_ALLOWED_RANGES: [], METADATA_API_ALLOWED_PORTS: ["80", "443"] }),
  );

  it.each(refusedUrls)("is refused before a call too: %j (%s)", (url, rule) => {
    const detail = rule === "address" || rule === "port" ? "blocked_address" : "invalid_url";
    expect(endpointOf(url)).toMatchObject({ ok: false, detail });
  });
});

describe("an operator's allow-list", () => {
  it("opens its range and no address beside it", async () => {
    const policy = allowing("127.7.7.0/24");
    expect(await caller(answers("127.7.7.255"), policy)(named())).toMatchObject({ ok: true });
    expect(await caller(answers("127.7.8.0"), policy)(named())).toEqual(blocked("not_global_unicast"));
    expect(await caller(answers(), policy)(`http://127.7.7.1:${server.port}`)).toMatchObject({ ok: true });
    expect(await caller(answers(), policy)(`http://127.7.6.255:${server.port}`)).toEqual(blocked("not_global_unicast"));
    expect(server.connectionCount).toBe(2);
  });

  it("opens its ports and no others", () => {
    const policy = addressPolicy({ METADATA_API_ALLOWED_RANGES: [], METADATA_API_ALLOWED_PORTS: ["443", "8443"] });
    const endpointOf = createEndpoints(policy);
    expect(endpointOf("https://api.example.com:8443/x")).toMatchObject({ ok: true });
    expect(endpointOf("https://api.example.com:8444/x")).toEqual({ ok: false, detail: "blocked_address" });
    expect(endpointOf("http://api.example.com/x")).toEqual({ ok: false, detail: "blocked_address" });
  });
});

describe("a name that changes", () => {
  it("between check and connection is called where it was checked", async () => {
    let asked = 0;
    const flip: Resolve = () => Promise.resolve([asked++ === 0 ? "127.7.7.7" : "127.0.0.1"]);
    expect(await caller(flip, allowing("127.7.7.7/32"))(named())).toMatchObject({ ok: true });
    expect(asked).toBe(1);
  });

  it("between one attempt and the next is judged anew, for a name server that forbids to remember", async () => {
    const script = [["127.7.7.7"], ["169.254.169.254"], ["127.7.7.7", "10.0.0.1"]];
    let asked = 0;
    const names = await startNameServer((type) =>
      type === "A" ? { addresses: script[asked++] ?? [], ttlSeconds: 0 } : { ttlSeconds: 0 },
    );
    closing.push(() => names.close());
    const resolve = createResolver([names.address]);
    const call = () => caller(resolve, allowing("127.7.7.7/32"))(named());
    expect(await call()).toMatchObject({ ok: true });
    expect(await call()).toEqual(blocked("not_global_unicast"));
    expect(await call()).toEqual(blocked("private_range"));
    expect(server.connectionCount).toBe(1);
  });

  it("cannot bring a call anywhere else, even when what was checked is not what was reached", async () => {
    let judged = 0;
    const { allowedRanges } = loopbackOnly;
    const changing: AddressPolicy = {
      allowedPorts: "any",
      get allowedRanges() {
        judged += 1;
        return judged === 1 ? allowedRanges : [];
      },
    };
    expect(await caller(answers("127.0.0.1"), changing)(named())).toEqual(blocked("not_global_unicast"));
    expect(judged).toBe(2);
    expect(server.requests).toEqual([]);
  });
});

describe("through real look-ups", () => {
  async function calling(answer: (type: "A" | "AAAA", name: string) => NameAnswer | undefined) {
    const names = await startNameServer(answer);
    closing.push(() => names.close());
    return caller(createResolver([names.address]), nothingPrivate);
  }
  const onlyA = (addresses: readonly string[], alias?: string) => (type: "A" | "AAAA") =>
    type === "A" ? { addresses, ...(alias === undefined ? {} : { alias }) } : {};
  const cloud = "0000:0000:0000:0000:0000:ffff:a9fe:a9fe";
  const unique = "fd00:0000:0000:0000:0000:0000:0000:0001";

  it.each<[string, string, (type: "A" | "AAAA") => NameAnswer, string]>([
    ["127.0.0.1.nip.example.test", "loopback", onlyA(["127.0.0.1"]), "not_global_unicast"],
    ["metadata.google.internal", "the cloud's metadata", onlyA(["169.254.169.254"]), "not_global_unicast"],
    ["api.default.svc.cluster.local", "the cluster", onlyA(["10.96.0.1"]), "private_range"],
    ["mixed.example.test", "a public and a private address", onlyA(["8.8.8.8", "10.0.0.1"]), "private_range"],
    ["alias.example.test", "an internal zone, by an alias", onlyA(["192.168.1.1"], "db.corp.internal"), "private_range"],
    [
      "v6.example.test",
      "a public A and a private AAAA record",
      (type) => ({ addresses: type === "A" ? ["8.8.8.8"] : [unique] }),
      "private_range",
    ],
    ["mapped.example.test", "a mapped address", (type) => (type === "AAAA" ? { addresses: [cloud] } : {}), "ipv6_embedding"],
  ])("%s is not followed to %s", async (name, _what, answer, block) => {
    expect(await (await calling(answer))(named(name))).toEqual(blocked(block));
    expect(server.connectionCount).toBe(0);
  });

  it.each<[string, string, (type: "A" | "AAAA") => NameAnswer | undefined]>([
    ["unknown.example.test", "is unknown", () => ({ code: 3 })],
    ["empty.example.test", "has no address", () => ({})],
    ["broken.example.test", "cannot be looked up", () => ({ code: 2 })],
    ["silent.example.test", "nobody answers for", () => undefined],
    [hostname(), "stands in the hosts file alone", () => ({ code: 3 })],
    [`${"a".repeat(64)}.example.test`, "has a label of 64 characters", onlyA(["8.8.8.8"])],
    [`${"a.".repeat(130)}test`, "is longer than any name", onlyA(["8.8.8.8"])],
  ])("%s, which %s, is dns, and said so inside the 3 s", async (name, _what, answer) => {
    const result = failureOf(await (await calling(answer))(named(name)));
    expect(result).toMatchObject({ detail: "dns", status: null, excerpt: null });
    expect(server.connectionCount).toBe(0);
  });
});

describe("a redirect", () => {
  it.each([301, 302, 303, 307, 308])("with %i is told and not followed, wherever it leads", async (status) => {
    const locations = [
      `http://127.0.0.1:${server.port}/elsewhere`,
      "/1",
      "http://169.254.169.254/latest/meta-data",
      "//10.0.0.1/",
      "file:///etc/passwd",
    ];
    for (const location of locations) {
      const redirecting = await startRawServer(
        (socket) => void socket.write(answerOf("", `${status} Moved`, `location: ${location}\r\n`)),
      );
      const result = failureOf(await caller(answers(), loopbackOnly)(redirecting.origin));
      expect(result).toMatchObject({ detail: "redirect", status });
      expect(redirecting.requests).toHaveLength(1);
      await redirecting.close();
    }
    expect(server.connectionCount).toBe(0);
  });
});
