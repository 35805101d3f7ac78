import { afterEach, beforeEach, expect, it } from "vitest";
import { type ApiCall, type MetadataApi, startMetadataApi } from "../../support/metadata-api.ts";
import { waitFor } from "../../support/wait-for.ts";

let api: MetadataApi;

beforeEach(async () => {
  api = await startMetadataApi();
});

afterEach(() => api.close());

const call = (tokenId: string, init?: RequestInit) => fetch(`${api.url}/${tokenId}`, init);

it("answers with the token's metadata", async () => {
  const response = await call("7");
  expect([response.status, await response.text()]).toEqual([200, api.metadataOf("7")]);
});

it("follows a token's script call by call and stays with its last entry", async () => {
  api.script("7", [{ status: 503, retryAfter: 3 }, { status: 429 }, {}]);
  const replies = [await call("7"), await call("7"), await call("7"), await call("7")];
  expect(replies.map(({ status }) => status)).toEqual([503, 429, 200, 200]);
  expect(replies[0]?.headers.get("retry-after")).toBe("3");
  expect(api.callsOf("7").map(({ status }) => status)).toEqual([503, 429, 200, 200]);
});

it("knows how many calls were under way at once", async () => {
  api.otherwise({ delayMs: 500 });
  await Promise.all(["1", "2", "3"].map((tokenId) => call(tokenId)));
  await call("4");
  expect(api.maxConcurrent).toBe(3);
  expect(api.calls.map(({ concurrent }) => concurrent)).toEqual([1, 2, 3, 1]);
});

it("can take a call and never answer, and sees when the caller leaves", async () => {
  api.script("7", [{ hang: true }]);
  const caller = new AbortController();
  const answer = expect(call("7", { signal: caller.signal })).rejects.toThrow();
  const seen = (until: (one: ApiCall | undefined) => boolean) => waitFor("the call", () => api.callsOf("7")[0], until);
  await seen((one) => one !== undefined);
  caller.abort();
  await answer;
  const hung = await seen((one) => one?.endedMonotonicMs !== undefined);
  expect(hung?.status).toBeUndefined();
});

it("can close the connection instead of answering", async () => {
  api.script("7", [{ reset: true }]);
  await expect(call("7")).rejects.toThrow();
});

it("sends texts, bytes and objects as bodies", async () => {
  api.script("1", [{ body: "plain" }]);
  api.script("2", [{ body: Buffer.from([0xff, 0xfe]) }]);
  api.script("3", [{ status: 404, body: { error: "gone" } }]);
  expect(await (await call("1")).text()).toBe("plain");
  expect(new Uint8Array(await (await call("2")).arrayBuffer())).toEqual(new Uint8Array([0xff, 0xfe]));
  expect(await (await call("3")).json()).toEqual({ error: "gone" });
});

it("can send bytes that are no answer, and then be itself again", async () => {
  api.script("7", [{ hostile: "ssh-banner" }, { hostile: "103-then-200" }, {}]);
  await expect(call("7")).rejects.toThrow();
  expect(await (await call("7")).text()).toBe('{"name":"a"}');
  expect(await (await call("7")).text()).toBe(api.metadataOf("7"));
  expect(api.callsOf("7").map(({ status }) => status)).toEqual([undefined, undefined, 200]);
});

it("knows what it was asked with, and takes nothing but GET", async () => {
  await call("7?x=1", { headers: { "X-Trace": "a:b" } });
  expect(api.calls[0]).toMatchObject({ tokenId: "7", path: "/metadata/7?x=1", headers: { "x-trace": "a:b" } });
  expect((await call("7", { method: "POST", body: "GET /metadata/8 HTTP/1.1\r\n\r\n" })).status).toBe(405);
  expect(api.calls).toHaveLength(1);
});
