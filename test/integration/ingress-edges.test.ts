import { once } from "node:events";
import { connect } from "node:net";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { refusalCodes } from "../../services/common/http/answer.ts";
import { refusalSchema } from "../../services/common/http/openapi.ts";
import { exchange } from "../unit/common/http/served-app.ts";
import { endpoint, type Ingress, IngressStage, ownerOf, SetClock, type StageProject } from "./ingress-stage.ts";

let stage: IngressStage;
let ingress: Ingress;
let project: StageProject;
let signed: string[];

beforeAll(async () => {
  stage = await IngressStage.open("ingress-edges");
  ingress = await stage.ingress();
  project = await stage.createProject({ refreshesPerHour: 1_000 });
  signed = Object.entries(await project.wallet.headers()).map(([name, value]) => `${name}: ${value}`);
});
afterAll(() => stage?.close());

const json = "Content-Type: application/json";
const port = () => Number(new URL(ingress.url).port);

/** The status of each answer that a connection got, and the text of all of them. */
async function ask(bytes: string | Buffer): Promise<{ statuses: number[]; text: string }> {
  const text = await exchange(port(), bytes);
  return { statuses: [...text.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) => Number(status)), text };
}

/** A signed POST, well-formed but for what the row changes. */
function post(body: string | Buffer, lines: readonly string[] = [json], target = endpoint): Buffer {
  const bytes = Buffer.from(body);
  const head = [
    `POST ${target} HTTP/1.1`,
    "Host: ingress",
    ...signed,
    ...lines,
    `Content-Length: ${bytes.length}`,
    "Connection: close",
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`, "latin1"), bytes]);
}

/** As it stands, with the wallet's headers behind the first line's. */
const raw = (firstLines: string, lines: readonly string[] = []) =>
  [firstLines, ...signed, json, ...lines, "Connection: close", "", ""].join("\r\n");

const ids = (tokenIds: unknown, collection = project.collection) =>
  post(JSON.stringify({ collection_address: collection, token_ids: tokenIds }));
const good = () => JSON.stringify({ collection_address: project.collection, token_ids: ["1"] });
const upTo = (count: number) => Array.from({ length: count }, (_, index) => String(index));

describe("a hostile request", () => {
  it.each<[string, () => string | Buffer, number]>([
    ["J1 a body of 200 KB", () => post(`"${"a".repeat(200_000)}"`), 413],
    ["J2 a gzip bomb", () => post(gzipSync(Buffer.alloc(50_000_000)), [json, "Content-Encoding: gzip"]), 415],
    ["J3 a brotli bomb", () => post(brotliCompressSync(Buffer.alloc(5_000_000)), [json, "Content-Encoding: br"]), 415],
    ["J4 gzip, gzip", () => post(gzipSync(gzipSync(good())), [json, "Content-Encoding: gzip, gzip"]), 415],
    ["J5 a prototype key", () => post(`{"__proto__":{"x":1},${good().slice(1)}`), 400],
    ["J6 a primitive", () => post("5"), 400],
    ["J7 bad JSON", () => post(`${good()},`), 400],
    ["J8 UTF-16", () => post(Buffer.from(`\uFEFF${good()}`, "utf16le")), 400],
    ["J9 no Host", () => raw(`POST ${endpoint} HTTP/1.1`), 400],
    ["J10 two lengths", () => raw(`POST ${endpoint} HTTP/1.1\r\nHost: a`, ["Content-Length: 2", "Content-Length: 2"]), 400],
    [
      "J11 length and chunks",
      () => raw(`POST ${endpoint} HTTP/1.1\r\nHost: a`, ["Content-Length: 2", "Transfer-Encoding: chunked"]),
      400,
    ],
    ["J12 an unknown coding", () => raw(`POST ${endpoint} HTTP/1.1\r\nHost: a`, ["Transfer-Encoding: xchunked"]), 400],
    ["J13 a folded length", () => raw(`POST ${endpoint} HTTP/1.1\r\nHost: a`, ["Content-Length:", " 2"]), 400],
    ["J14 a header of 20 KB", () => raw(`POST ${endpoint} HTTP/1.1\r\nHost: a\r\nX-A: ${"a".repeat(20_000)}`), 431],
    ["J15 a URL of 20 KB", () => raw(`POST ${endpoint}?${"a".repeat(20_000)} HTTP/1.1\r\nHost: a`), 431],
    ["J16 a line with CR alone", () => `GET ${endpoint} HTTP/1.1\rHost: a\r\r`, 400],
    ["J17 an odd expectation", () => post(good(), [json, "Expect: miracles"]), 417],
    ["J18 an array", () => post("[]"), 400],
    ["J19 40,000 levels", () => post(`{"token_ids":${"[".repeat(40_000)}${"]".repeat(40_000)}}`), 400],
    ["J20 an unknown charset", () => post(good(), ["Content-Type: application/json; charset=klingon"]), 415],
    ["J21 text/plain", () => post(good(), ["Content-Type: text/plain"]), 415],
    ["J22 a +json type", () => post(good(), ["Content-Type: application/vnd.api+json"]), 415],
    ["J23 no body", () => post(""), 400],
    ["J24 two Hosts", () => post(good(), [json, "Host: b"]), 400],
    ["J25 a Host with credentials", () => raw(`POST ${endpoint} HTTP/1.1\r\nHost: evil.com:fake@legit.com`), 400],
    ["J26 an absolute target", () => post(good(), [json], `http://evil.com${endpoint}`), 400],
    ["J27 TRACE", () => raw(`TRACE ${endpoint} HTTP/1.1\r\nHost: a\r\nX-Evil: evil.com`), 405],
    [
      "J28 an Upgrade to h2c",
      () => raw("GET /openapi.json HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"),
      200,
    ],
    ["J29 a query key twice", () => raw(`GET ${endpoint}?page_size=5&page_size=5 HTTP/1.1\r\nHost: a`), 400],
    ["J30 a prototype in the query", () => raw(`GET ${endpoint}?__proto__[x]=1 HTTP/1.1\r\nHost: a`), 400],
    ["J31 no ids", () => ids([]), 400],
    ["J34 1001 ids", () => ids(upTo(1_001)), 400],
    ["J35 1000 duplicates", () => ids(upTo(1_000).fill("7")), 400],
    ["J36 an empty id", () => ids([""]), 400],
    ["J37 a negative id", () => ids(["-1"]), 400],
    ["J38 an exponent", () => ids(["1e3"]), 400],
    ["J39 a hexadecimal id", () => ids(["0x1"]), 400],
    ["J41 79 digits", () => ids(["1".repeat(79)]), 400],
    ["J42 2^256", () => ids([(2n ** 256n).toString()]), 400],
    ["J43 digits of another script", () => ids(["١٢"]), 400],
    ["J44 an id of 1 MB", () => ids(["1".repeat(1_000_000)]), 413],
    ["J45 an address too short", () => ids(["1"], project.collection.slice(0, 41)), 400],
  ])("%s is answered once, in the form of every refusal, and does nothing", async (_name, build, expected) => {
    const { statuses, text } = await ask(build());
    expect(statuses, text.slice(0, 500)).toEqual([expected]);
    const body = text.slice(text.indexOf("\r\n\r\n") + 4);
    if (expected !== 200) expect(refusalSchema(refusalCodes).parse(JSON.parse(body))).toEqual(JSON.parse(body));
    expect(text).not.toMatch(/evil\.com|klingon|\.ts:\d|node_modules/);
  });

  it("leaves nothing behind, and the good ones beside them are taken: J32 one id, J33 1000, J40 78 digits, J45 any case", async () => {
    const upper = `0x${project.collection.slice(2).toUpperCase()}`;
    const accepted = [ids(["1"]), ids(upTo(1_000)), ids([(10n ** 77n).toString()]), ids(["1"], upper)];
    for (const request of accepted) expect((await ask(request)).statuses).toEqual([202]);
    expect(await stage.recordsOf(project.projectId)).toHaveLength(accepted.length);
  });

  it("hidden behind another one is not heard", async () => {
    const hidden = `GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n`;
    const framings = [
      ["Content-Length: 4", "Transfer-Encoding: chunked"],
      ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
      ["Transfer-Encoding : chunked"],
      ["Content-Length: 4", "Content-Length: 0"],
      ["Content-Length: +4"],
      ["Content-Length: 0x4"],
    ];
    for (const lines of framings) {
      const { statuses } = await ask(`${raw(`POST ${endpoint} HTTP/1.1\r\nHost: a`, lines)}0\r\n\r\n${hidden}`);
      expect(statuses, lines.join(", ")).toEqual([400]);
    }
  });

  it("changes nothing by what it says of itself: neither host, nor scheme, nor method, nor address", async () => {
    const claims = [
      "X-Forwarded-Host: evil.com",
      "X-Forwarded-Proto: https",
      "X-Forwarded-For: 127.0.0.1",
      "X-Forwarded-Prefix: /evil.com",
      "X-HTTP-Method-Override: DELETE",
      "X-Original-URL: /v1/evil.com",
      "Forwarded: for=127.0.0.1;host=evil.com;proto=https",
    ];
    const plain = await ask(raw(`GET ${endpoint} HTTP/1.1\r\nHost: a`));
    const claimed = await ask(raw(`GET ${endpoint} HTTP/1.1\r\nHost: evil.com`, claims));
    const lasting = ({ text }: { text: string }) => text.replace(/^(x-request-id|date): .*$/gim, "");
    expect(lasting(claimed)).toBe(lasting(plain));
  });
});

it("J47 a client that stops in the middle of its header or its body is cut off long before Node would do it", async () => {
  const halves = [`POST ${endpoint} HTTP/1.1\r\nHost: a\r\nX-A`, post(good()).subarray(0, -5)];
  const closed = halves.map((bytes) => {
    const socket = connect(port(), "127.0.0.1");
    socket.write(bytes);
    return once(socket.resume(), "close", { signal: AbortSignal.timeout(50_000) });
  });
  expect((await fetch(`${ingress.url}/openapi.json`)).status).toBe(200);
  await Promise.all(closed);
});

describe("an API key", () => {
  it("H4 in two headers is refused, whichever of them is good", async () => {
    const { apiKey } = await stage.createApiKey(project.projectId, 1_000);
    for (const keys of [
      [apiKey, "amr_x"],
      ["amr_x", apiKey],
      [apiKey, apiKey],
    ]) {
      const { statuses, text } = await ask(
        raw(
          `GET ${endpoint} HTTP/1.1\r\nHost: a`,
          keys.map((key) => `x-api-key: ${key}`),
        ),
      );
      expect([statuses, text.includes('"code":"invalid_api_key"')]).toEqual([[401], true]);
    }
  });

  it("H9 without a signature opens nothing", async () => {
    const { apiKey } = await stage.createApiKey(project.projectId, 1_000);
    for (const target of [endpoint, `${endpoint}/${uuidv7()}`, `${endpoint}/${uuidv7()}/errors`]) {
      const reply = await fetch(ingress.url + target, { headers: { "x-api-key": apiKey } });
      expect([reply.status, ((await reply.json()) as { code: string }).code]).toEqual([401, "invalid_signature"]);
    }
  });
});

describe("H12 a refresh of another project", () => {
  /** Requests to Cassandra so far. */
  const reads = async () => {
    const { body } = await ingress.context.metrics.text();
    const counts = [...body.matchAll(/^cassandra_request_duration_seconds_count\{.*operation="read".*\} (\d+)$/gm)];
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  };

  it.each(["", "/errors"])("costs as much as one that does not exist (%s)", async (tail) => {
    const refreshId = await stage.storeRefresh(project, Date.now() * 1000);
    const stranger = ownerOf(ingress, await stage.createProject());
    const costOf = async (id: string) => {
      const before = await reads();
      const { status } = await stranger.send("GET", `${endpoint}/${id}${tail}`);
      return { status, reads: (await reads()) - before };
    };
    const theirs = await costOf(refreshId);
    expect(theirs).toEqual({ status: 404, reads: (await costOf(uuidv7())).reads });
    expect(theirs.reads).toBeGreaterThan(0);
  });
});

describe("a signature", () => {
  const clock = new SetClock(Date.now());
  let strict: Ingress;
  beforeAll(async () => {
    strict = await stage.ingress({ SIGNATURE_TOLERANCE_SECONDS: "300" }, clock);
  });

  it("G21 opens every endpoint while its time lasts: it binds no path, which is why the API needs TLS", async () => {
    const headers = await project.wallet.headers(Math.floor(clock.nowMs() / 1000));
    const statuses = [];
    for (const target of [endpoint, endpoint, `${endpoint}?page_size=1`]) {
      statuses.push((await fetch(strict.url + target, { headers })).status);
    }
    expect(statuses).toEqual([200, 200, 200]);
  });

  it("G22 opens nothing when its time is over", async () => {
    const headers = await project.wallet.headers(Math.floor(clock.nowMs() / 1000));
    clock.advance(301_000);
    const reply = await fetch(strict.url + endpoint, { headers });
    expect([reply.status, ((await reply.json()) as { code: string }).code]).toEqual([401, "invalid_signature"]);
  });
});
