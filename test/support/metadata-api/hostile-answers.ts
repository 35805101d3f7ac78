/** Bytes that a hostile or broken server may send. Text is Latin-1. */
export interface HostileAnswer {
  readonly bytes: string | Buffer;
  /** What becomes of the connection when they are written; it stays by default. */
  readonly afterwards?: "end" | "reset";
  /** Written byte by byte from this one on. */
  readonly drip?: { readonly fromByte: number; readonly everyMs: number };
  /** Written again and again after them, as fast as the reader takes it. */
  readonly forEver?: string;
}

/** What the good answers among them, and the bodies of the bad ones, carry. */
export const hostileBody = '{"name":"a"}';

const head = (status: string, ...headers: string[]) => `${[`HTTP/1.1 ${status}`, ...headers].join("\r\n")}\r\n\r\n`;
const ok = (...headers: string[]) => head("200 OK", ...headers);
const okBody = (...headers: string[]) => ok(...headers, `content-length: ${hostileBody.length}`) + hostileBody;
const chunked = "transfer-encoding: chunked";
const body = hostileBody;
const zeros = (length: number) => "x".repeat(length);

/** Neither HTTP/1.1 nor harmless: a reader must stop at the first wrong byte. */
const notHttp = {
  "http-0.9": { bytes: "hello\n" },
  "http-2-preface": { bytes: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" },
  "http-3.7": { bytes: `HTTP/3.7 200 OK\r\ncontent-length: 12\r\n\r\n${body}` },
  "status-99": { bytes: head("99 X", "content-length: 12") + body },
  "status-1000": { bytes: head("1000 X", "content-length: 12") + body },
  "bare-line-feeds": { bytes: `HTTP/1.1 200 OK\ncontent-length: 12\n\n${body}` },
  "negative-length": { bytes: ok("content-length: -5") + body },
  "length-with-a-sign": { bytes: ok("content-length: +2") + body },
  "chunk-size-no-number": { bytes: `${ok(chunked)}ZZ\r\n{}\r\n` },
  "chunk-size-overflow": { bytes: `${ok(chunked)}FFFFFFFFFFFFFFFFFF\r\n{}\r\n` },
  "transfer-encoding-identity": { bytes: okBody("transfer-encoding: identity") },
  "nul-in-a-header": { bytes: okBody("x: a\0b") },
  "folded-header": { bytes: okBody("x: a\r\n b") },
  "blank-before-the-colon": { bytes: okBody("x : a") },
  "ssh-banner": { bytes: "SSH-2.0-OpenSSH_9.2\r\n" },
  "tls-alert": { bytes: Buffer.from([0x15, 3, 1, 0, 2, 2, 40]) },
  "redis-error": { bytes: "-ERR wrong number of arguments\r\n" },
  "length-overflow": { bytes: ok("content-length: 99999999999999999999") + body },
  "same-length-twice": { bytes: okBody("content-length: 12") },
  "two-lengths": { bytes: okBody("content-length: 13") },
  "length-and-chunks": { bytes: `${ok(chunked, "content-length: 12")}c\r\n${body}\r\n0\r\n\r\n` },
  "thousand-times-100-continue": { bytes: head("100 Continue").repeat(1_000) + okBody() },
  "103-for-ever": { bytes: "", forEver: head("103 Early Hints", "link: <x>") },
  "change-of-protocol": { bytes: head("101 Switching Protocols", "connection: upgrade", "upgrade: x") },
  "200000-chunks-of-one-byte": { bytes: `${ok(chunked)}${"1\r\n{\r\n".repeat(200_000)}0\r\n\r\n` },
} satisfies Record<string, HostileAnswer>;

const tooManyHeaders = {
  "header-of-20-kb": { bytes: okBody(`x: ${zeros(20_000)}`) },
  "headers-of-20-kb": { bytes: okBody(...Array.from({ length: 1_000 }, (_, index) => `x-${index}: 0123456789abcdef`)) },
  "header-without-end": { bytes: "HTTP/1.1 200 OK\r\nx: ", forEver: zeros(1_000) },
  "5000-trailers": { bytes: `${ok(chunked)}c\r\n${body}\r\n0\r\n${"x-t: 1234567890\r\n".repeat(5_000)}\r\n` },
} satisfies Record<string, HostileAnswer>;

/** Never complete, and never closed. */
const endless = {
  "http-1.0-kept-open": { bytes: `HTTP/1.0 200 OK\r\n\r\n${body}` },
  "body-shorter-than-its-length": { bytes: ok("content-length: 99") + body },
  "no-length-never-closed": { bytes: ok() + body },
  "chunks-without-end": { bytes: `${ok(chunked)}c\r\n${body}\r\n` },
  "unknown-transfer-encoding-never-closed": { bytes: ok("transfer-encoding: xchunked") + body },
  silence: { bytes: "" },
  "headers-drip": { bytes: okBody(), drip: { fromByte: 0, everyMs: 100 } },
  "body-drip": { bytes: okBody(), drip: { fromByte: okBody().length - body.length, everyMs: 900 } },
} satisfies Record<string, HostileAnswer>;

const broken = {
  "closed-without-a-word": { bytes: "", afterwards: "end" },
  "reset-without-a-word": { bytes: "", afterwards: "reset" },
  "body-shorter-than-its-length-then-closed": { bytes: ok("content-length: 99") + body, afterwards: "end" },
  "chunk-cut-then-closed": { bytes: `${ok(chunked)}ff\r\n${body}`, afterwards: "end" },
  "reset-in-mid-body": { bytes: ok("content-length: 99") + body, afterwards: "reset" },
} satisfies Record<string, HostileAnswer>;

/** A status other than 200 is the answer, whatever follows. */
const otherStatus = {
  "204-with-a-body": { bytes: head("204 No Content", "content-length: 12") + body },
  "status-304": { bytes: head("304 Not Modified") },
  "302-to-the-cloud": { bytes: head("302 Found", "location: http://169.254.169.254/latest/meta-data", "content-length: 0") },
  "status-999": { bytes: head("999 Request denied", "content-length: 12") + body },
} satisfies Record<string, HostileAnswer>;

/** Odd, but it says all it has to say. */
const accepted = {
  "no-reason-phrase": { bytes: `HTTP/1.1 200\r\ncontent-length: 12\r\n\r\n${body}` },
  "103-then-200": { bytes: head("103 Early Hints", "link: <x>") + okBody() },
  "more-bytes-than-announced": { bytes: `${okBody()}garbage` },
  "body-ends-with-the-connection": { bytes: ok("connection: close") + body, afterwards: "end" },
  "chunk-extension-of-100-kb": { bytes: `${ok(chunked)}c;${zeros(100_000)}\r\n${body}\r\n0\r\n\r\n` },
  "1000-headers": { bytes: okBody(...Array.from({ length: 1_000 }, () => "x-a: 1")) },
  "headers-called-proto": { bytes: okBody("__proto__: x", "constructor: y") },
  "latin-1-in-a-header": { bytes: okBody("x: \u00e9") },
  "unknown-content-encoding": { bytes: okBody("content-encoding: foo") },
} satisfies Record<string, HostileAnswer>;

const tooLong = {
  "body-of-2-mb": { bytes: ok("content-length: 2000000") + zeros(2_000_000) },
  "chunks-for-ever": { bytes: ok(chunked), forEver: `3e80\r\n${zeros(16_000)}\r\n` },
  "chunk-extension-for-ever": { bytes: `${ok(chunked)}c;`, forEver: zeros(16_000) },
  "500-with-a-body-for-ever": { bytes: head("500 Oops", chunked), forEver: `3e80\r\n${zeros(16_000)}\r\n` },
} satisfies Record<string, HostileAnswer>;

export const hostileGroups = { notHttp, tooManyHeaders, endless, broken, otherStatus, accepted, tooLong };

const all = { ...notHttp, ...tooManyHeaders, ...endless, ...broken, ...otherStatus, ...accepted, ...tooLong };

export type HostileName = keyof typeof all;
export const hostileAnswers: Readonly<Record<HostileName, HostileAnswer>> = all;
export const hostileNames = Object.keys(all) as readonly HostileName[];
