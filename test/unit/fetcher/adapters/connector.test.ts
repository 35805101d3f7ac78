import { readFileSync } from "node:fs";
import { type AddressInfo, createServer as createPlainServer } from "node:net";
import { createServer, getCACertificates, setDefaultCACertificates, type TlsOptions } from "node:tls";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { addressPolicy } from "../../../../services/common/http/address-guard.ts";
import type { Resolve } from "../../../../services/fetcher/adapters/resolver.ts";
import { writeHostile } from "../../../support/metadata-api/hostile-writer.ts";
import { startDeafServer } from "./deaf-server.ts";
import { failureOf, guardedApi, loopbackOnly } from "./guarded-api.ts";
import { answerOf, type RawServer, startRawServer } from "./raw-server.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function well(): Promise<RawServer> {
  const server = await startRawServer((socket) => void socket.write(answerOf("{}")));
  closing.push(() => server.close());
  return server;
}

function api(resolve: Resolve, changes: Parameters<typeof guardedApi>[0] = {}) {
  const created = guardedApi({ resolve, ...changes });
  closing.push(() => created.close());
  return created;
}

const answers =
  (...addresses: string[]): Resolve =>
  () =>
    Promise.resolve(addresses);

describe("where a name leads", () => {
  it("is followed when every address may be called", async () => {
    const server = await well();
    const result = await api(answers("127.0.0.2", "127.0.0.1")).call({
      projectId: 1,
      origin: `http://api.example.test:${server.port}`,
      path: "/1",
    });
    expect(result.ok).toBe(true);
    expect(server.requests[0]).toContain(`host: api.example.test:${server.port}`);
  });

  it.each([
    ["loopback", ["127.0.0.1"], "not_global_unicast"],
    ["the cloud's metadata", ["169.254.169.254"], "not_global_unicast"],
    ["a private range", ["10.1.2.3"], "private_range"],
    ["a public and a private address", ["8.8.8.8", "10.1.2.3"], "private_range"],
    ["a public A and a private AAAA record", ["8.8.8.8", "fd00::1"], "private_range"],
    ["a mapped address", ["::ffff:127.0.0.1"], "ipv6_embedding"],
  ])("is not followed to %s", async (_name, addresses, block) => {
    const policy = addressPolicy({ METADATA_API_ALLOWED_RANGES: [], METADATA_API_ALLOWED_PORTS: ["*"] });
    const server = await well();
    const origin = `http://api.example.test:${server.port}`;
    const result = failureOf(await api(answers(...addresses), { policy }).call({ projectId: 1, origin, path: "/1" }));
    expect(result).toMatchObject({ detail: "blocked_address", block, status: null, excerpt: null, bodyBytes: 0 });
    expect(server.connectionCount).toBe(0);
  });

  it("does not connect to an allowed address of a name that has a forbidden one too", async () => {
    const server = await well();
    const origin = `http://api.example.test:${server.port}`;
    const result = await api(answers("127.0.0.1", "10.1.2.3")).call({ projectId: 1, origin, path: "/1" });
    expect(failureOf(result).detail).toBe("blocked_address");
    expect(server.connectionCount).toBe(0);
  });

  it("is asked once for a connection: an answer that changes between the check and the connection changes nothing", async () => {
    const server = await well();
    const asked: string[][] = [["127.0.0.1"], ["10.1.2.3"]];
    let calls = 0;
    const flip: Resolve = () => Promise.resolve(asked[calls++] ?? []);
    const calling = api(flip);
    const origin = `http://api.example.test:${server.port}`;
    expect(await calling.call({ projectId: 1, origin, path: "/1" })).toMatchObject({ ok: true });
    expect(calls).toBe(1);
    // Another connection, as for the next attempt: the new answer is judged anew.
    expect(failureOf(await calling.call({ projectId: 2, origin, path: "/1" })).detail).toBe("blocked_address");
    expect(server.connectionCount).toBe(1);
  });

  it.each([
    ["http://127.0.0.1", "not_global_unicast"],
    ["http://[::1]", "not_global_unicast"],
    ["https://[::ffff:127.0.0.1]", "ipv6_embedding"],
    ["http://localhost", "not_global_unicast"],
    ["http://x.localhost", "not_global_unicast"],
    ["http://168.63.129.16", "special_purpose"],
  ])("is judged for %s too, which is never resolved", async (base, block) => {
    const server = await well();
    const policy = addressPolicy({ METADATA_API_ALLOWED_RANGES: [], METADATA_API_ALLOWED_PORTS: ["*"] });
    const calling = api(answers("127.0.0.1"), { policy });
    const result = await calling.call({ projectId: 1, origin: `${base}:${server.port}`, path: "/1" });
    expect(failureOf(result)).toMatchObject({ detail: "blocked_address", block });
    expect(server.connectionCount).toBe(0);
  });

  it("takes localhost for the loopback address that is allowed, without asking anybody", async () => {
    const server = await well();
    const unasked: Resolve = (name) => Promise.reject(new Error(`asked for ${name}`));
    const result = await api(unasked, { policy: loopbackOnly }).call({
      projectId: 1,
      origin: `http://localhost:${server.port}`,
      path: "/1",
    });
    expect(result.ok).toBe(true);
  });

  it("may be a literal IPv6 address that is allowed", async () => {
    const server = createPlainServer((socket) => void socket.on("data", () => socket.write(answerOf("{}"))));
    await new Promise<void>((resolve) => server.listen(0, "::1", resolve));
    closing.push(() => new Promise((resolve) => server.close(resolve)));
    const policy = addressPolicy({ METADATA_API_ALLOWED_RANGES: ["::1/128"], METADATA_API_ALLOWED_PORTS: ["*"] });
    const calling = api(answers(), { policy });
    const origin = `http://[::1]:${(server.address() as AddressInfo).port}`;
    expect(await calling.call({ projectId: 1, origin, path: "/1" })).toMatchObject({ ok: true });
    calling.close();
  });

  it("says dns when the name has no address", async () => {
    const unknown: Resolve = () => Promise.reject(Object.assign(new Error("queryA ENOTFOUND"), { code: "ENOTFOUND" }));
    const result = await api(unknown).call({ projectId: 1, origin: "http://api.example.test", path: "/1" });
    expect(failureOf(result)).toMatchObject({ detail: "dns", status: null, excerpt: null });
  });

  it("counts silent name servers against the one deadline", async () => {
    const silent: Resolve = () => new Promise(() => {});
    const result = await api(silent, { timeoutMs: 300 }).call({ projectId: 1, origin: "http://api.example.test", path: "/1" });
    expect(failureOf(result).detail).toBe("timeout");
    expect(result.durationMs).toBeGreaterThanOrEqual(299);
  });

  it("gives a host up that takes no connections, at the deadline, and leaves nothing behind", async () => {
    const deaf = await startDeafServer("127.0.0.1");
    closing.push(() => deaf.close());
    const calling = api(answers("127.0.0.1"), { timeoutMs: 300 });
    const origin = `http://api.example.test:${deaf.port}`;
    const results = await Promise.all(Array.from({ length: 5 }, () => calling.call({ projectId: 1, origin, path: "/1" })));
    for (const result of results) {
      expect(failureOf(result)).toMatchObject({ detail: "timeout", status: null });
      expect(result.durationMs).toBeGreaterThanOrEqual(299);
    }
    expect([calling.underWay, calling.idleConnections]).toEqual([0, 0]);
  });

  it("goes on to another address of the name when one takes no connections", async () => {
    const deaf = await startDeafServer("127.0.0.1");
    closing.push(() => deaf.close());
    const server = await startRawServer((socket) => void socket.write(answerOf("{}")), "127.0.0.2", deaf.port);
    closing.push(() => server.close());
    const calling = api(answers("127.0.0.1", "127.0.0.2"));
    const origin = `http://api.example.test:${deaf.port}`;
    expect(await calling.call({ projectId: 1, origin, path: "/1" })).toMatchObject({ ok: true });
  });

  it("does not try more than a few of the addresses of a name, however many it has", async () => {
    const nobody = await startRawServer(() => {});
    await nobody.close();
    const server = await startRawServer((socket) => void socket.write(answerOf("{}")), "127.9.9.9", nobody.port);
    closing.push(() => server.close());
    const refusing = Array.from({ length: 2_000 }, (_, index) => `127.1.${index >> 8}.${index & 255}`);
    const origin = `http://api.example.test:${nobody.port}`;
    const result = await api(answers(...refusing, "127.9.9.9")).call({ projectId: 1, origin, path: "/1" });
    expect(failureOf(result).detail).toBe("connect");
    expect(server.connectionCount).toBe(0);
  });

  it("says connect when nobody listens", async () => {
    const server = await startRawServer(() => {});
    await server.close();
    const result = await api(answers("127.0.0.1")).call({ projectId: 1, origin: server.origin, path: "/1" });
    expect(failureOf(result).detail).toBe("connect");
  });
});

interface SecureOptions extends TlsOptions {
  readonly answer?: Buffer;
}

describe("TLS", () => {
  const certificate = (name: string) => readFileSync(new URL(`certificates/${name}.pem`, import.meta.url), "utf8");
  const usual = getCACertificates("default");
  const trusting = [...usual, certificate("authority")];
  beforeEach(() => setDefaultCACertificates(trusting));
  afterEach(() => {
    setDefaultCACertificates(usual);
    vi.unstubAllEnvs();
  });

  async function secure(name: string, { answer = answerOf("{}"), ...options }: SecureOptions = {}): Promise<string> {
    const pem = certificate(name);
    const server = createServer({ key: pem, cert: pem, ...options }, (socket) => {
      socket.on("error", () => {});
      socket.on("data", () => socket.write(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closing.push(() => new Promise((resolve) => server.close(resolve)));
    return String((server.address() as AddressInfo).port);
  }

  it("calls a host whose certificate is good", async () => {
    const port = await secure("api.example.test");
    const calling = api(answers("127.0.0.1"));
    const origin = `https://api.example.test:${port}`;
    expect(await calling.call({ projectId: 1, origin, path: "/1" })).toMatchObject({ ok: true });
    // Before the server is closed: it waits for its connections.
    calling.close();
  });

  it.each([
    ["of an unknown authority", "api.example.test", "api.example.test", usual],
    ["that has expired", "expired", "api.example.test", trusting],
    ["for another name", "api.example.test", "other.example.test", trusting],
    ["for a name, when an address is called", "api.example.test", "127.0.0.1", trusting],
  ])(
    "refuses a certificate %s, also the second time, and whatever the process is told of TLS",
    async (_name, file, hostname, authorities) => {
      setDefaultCACertificates(authorities);
      vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
      for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
        const port = await secure(file, { maxVersion });
        const calling = api(answers("127.0.0.1"));
        // Twice: a session that was remembered would skip the check of the name.
        for (let call = 0; call < 2; call++) {
          const result = await calling.call({ projectId: 1, origin: `https://${hostname}:${port}`, path: "/1" });
          expect(failureOf(result)).toMatchObject({ detail: "tls", status: null, excerpt: null });
        }
      }
    },
  );

  it("does not follow a redirect out of it", async () => {
    const plain = await well();
    const answer = answerOf("", "302 Found", `location: http://127.0.0.1:${plain.port}/1\r\n`);
    const port = await secure("api.example.test", { answer });
    const calling = api(answers("127.0.0.1"));
    const result = await calling.call({ projectId: 1, origin: `https://api.example.test:${port}`, path: "/1" });
    expect(failureOf(result)).toMatchObject({ detail: "redirect", status: 302 });
    expect(plain.connectionCount).toBe(0);
    calling.close();
  });

  it("counts a handshake that drips against the one deadline", async () => {
    // The head of a record that announces 16 KB of handshake.
    const record = Buffer.concat([Buffer.from([0x16, 3, 3, 0x40, 0]), Buffer.alloc(16_384)]);
    const server = createPlainServer((socket) => {
      socket.on("error", () => {});
      writeHostile(socket, { bytes: record, drip: { fromByte: 5, everyMs: 20 } });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closing.push(() => new Promise((resolve) => server.close(resolve)));
    const origin = `https://api.example.test:${(server.address() as AddressInfo).port}`;
    const result = await api(answers("127.0.0.1"), { timeoutMs: 300 }).call({ projectId: 1, origin, path: "/1" });
    expect(failureOf(result)).toMatchObject({ detail: "timeout", status: null });
  });

  it("does not shake hands again and again because a server asks for it", async () => {
    const pem = certificate("api.example.test");
    const handshakes: string[] = [];
    const server = createServer({ key: pem, cert: pem, maxVersion: "TLSv1.2" }, (socket) => {
      socket.on("error", ({ message }) => handshakes.push(message));
      socket.once("data", () => socket.renegotiate({}, (error) => handshakes.push(error?.message ?? "again")));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closing.push(() => new Promise((resolve) => server.close(resolve)));
    const origin = `https://api.example.test:${(server.address() as AddressInfo).port}`;
    const result = await api(answers("127.0.0.1"), { timeoutMs: 500 }).call({ projectId: 1, origin, path: "/1" });
    expect(failureOf(result)).toMatchObject({ status: null, excerpt: null });
    expect(handshakes).not.toContain("again");
  });

  it("says tls when the port speaks plain text", async () => {
    const server = createPlainServer((socket) => void socket.resume().end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closing.push(() => new Promise((resolve) => server.close(resolve)));
    const origin = `https://api.example.test:${(server.address() as AddressInfo).port}`;
    const result = await api(answers("127.0.0.1")).call({ projectId: 1, origin, path: "/1" });
    expect(failureOf(result).detail).toBe("tls");
  });
});
