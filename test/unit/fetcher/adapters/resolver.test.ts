import { afterEach, describe, expect, it } from "vitest";
import { createResolver } from "../../../../services/fetcher/adapters/resolver.ts";
import { type NameAnswer, type NameServer, startNameServer } from "./name-server.ts";

let server: NameServer | undefined;
afterEach(() => server?.close());

async function resolver(answer: (type: "A" | "AAAA", name: string) => NameAnswer | undefined) {
  server = await startNameServer(answer);
  return { resolve: createResolver([server.address]), asked: server.asked };
}
const onlyA = (answer: NameAnswer) => (type: "A" | "AAAA") => (type === "A" ? answer : {});
const v6 = "2606:4700:0000:0000:0000:0000:0000:1111";

describe("the resolver", () => {
  it("gives the addresses of both kinds", async () => {
    const { resolve } = await resolver((type) => ({ addresses: type === "A" ? ["8.8.8.8", "8.8.4.4"] : [v6] }));
    expect(await resolve("api.example.test")).toEqual(["8.8.8.8", "8.8.4.4", "2606:4700::1111"]);
  });

  it.each([
    ["has no IPv6 address", onlyA({ addresses: ["8.8.8.8"] })],
    ["gives an error for the other kind", (type: string) => (type === "A" ? { addresses: ["8.8.8.8"] } : { code: 2 })],
    ["is silent about the other kind", (type: string) => (type === "A" ? { addresses: ["8.8.8.8"] } : undefined)],
  ])("is content with one kind when the name server %s", async (_name, answer) => {
    const { resolve } = await resolver(answer);
    expect(await resolve("api.example.test")).toEqual(["8.8.8.8"]);
  });

  it.each([
    ["does not know the name", () => ({ code: 3 })],
    ["fails", () => ({ code: 2 })],
    ["has no address for it", () => ({})],
    ["is silent", () => undefined],
  ])("rejects when the name server %s", async (_name, answer) => {
    const { resolve } = await resolver(answer);
    await expect(resolve("api.example.test")).rejects.toThrow();
  });

  it.each([`${"a".repeat(64)}.example.test`, `${"a.".repeat(130)}test`])("rejects the impossible name %s", async (name) => {
    const { resolve } = await resolver(onlyA({ addresses: ["8.8.8.8"] }));
    await expect(resolve(name)).rejects.toThrow();
  });

  it("asks once for callers at the same time, and again for nobody while the answer holds", async () => {
    const { resolve, asked } = await resolver(onlyA({ addresses: ["8.8.8.8"], ttlSeconds: 60 }));
    await Promise.all(Array.from({ length: 20 }, () => resolve("api.example.test")));
    await resolve("api.example.test");
    expect(asked.toSorted()).toEqual(["A api.example.test", "AAAA api.example.test"]);
  });

  it("asks again when the answer was for now only", async () => {
    const { resolve, asked } = await resolver(onlyA({ addresses: ["8.8.8.8"], ttlSeconds: 0 }));
    await resolve("api.example.test");
    await resolve("api.example.test");
    expect(asked).toHaveLength(4);
  });

  it("asks again after a failure", async () => {
    let known = false;
    const { resolve } = await resolver((type) => (known && type === "A" ? { addresses: ["8.8.8.8"] } : { code: 3 }));
    await expect(resolve("api.example.test")).rejects.toThrow();
    known = true;
    expect(await resolve("api.example.test")).toEqual(["8.8.8.8"]);
  });
});
