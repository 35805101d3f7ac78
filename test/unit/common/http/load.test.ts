import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, expect, it } from "vitest";
import type { Answer } from "../../../../services/common/http/answer.ts";
import type { Route } from "../../../../services/common/http/app.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { exchange, read, type ServedApp, serveApp } from "./served-app.ts";

let app: ServedApp;
afterEach(() => app.server.close(0));

/** Answers when it is told to. */
function held() {
  const release = Promise.withResolvers<Answer>();
  const route: Route<undefined> = { method: "GET", path: "/held", handle: () => release.promise };
  return { route, release: () => release.resolve({ status: 200, body: {} }) };
}
const quick: Route<undefined> = { method: "GET", path: "/", handle: () => ({ status: 200, body: {} }) };

async function gauge(name: string): Promise<number> {
  const { body } = await app.metrics.text();
  return Number(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, "m").exec(body)?.[1] ?? Number.NaN);
}
const gaugeIs = (name: string, value: number) =>
  waitFor(
    name,
    () => gauge(name),
    (seen) => seen === value,
  );
const post = (length: number) =>
  `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

it("what is too much is told to come again, before anybody is asked for it, and what is under way ends", async () => {
  const { route, release } = held();
  const asked: string[] = [];
  app = await serveApp([route, quick], {
    load: { requests: 2, bodyBytes: 1_000 },
    admit: async (request) => {
      asked.push(request.route ?? "");
      return { ok: true, caller: undefined };
    },
  });
  const underWay = [fetch(`${app.url}/held`), fetch(`${app.url}/held`)];
  await gaugeIs("http_requests_under_way", 2);
  const refused = await fetch(app.url);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(await refused.json()).toMatchObject({ code: "unavailable", message: expect.stringContaining("nothing was done") });
  expect(asked).toEqual(["GET /held", "GET /held"]);
  release();
  expect((await Promise.all(underWay)).map(({ status }) => status)).toEqual([200, 200]);
  expect((await fetch(app.url)).status).toBe(200);
  await gaugeIs("http_requests_under_way", 0);
});

it("a request that fails gives its place back", async () => {
  const broken: Route<undefined> = { method: "GET", path: "/", handle: () => Promise.reject(new Error("no")) };
  app = await serveApp([broken], { load: { requests: 1, bodyBytes: 1_000 } });
  const statuses = [(await fetch(app.url)).status, (await fetch(app.url)).status];
  expect([statuses, await gauge("http_requests_under_way")]).toEqual([[503, 503], 0]);
});

it("bodies that drip take room and nobody's place; what does not fit is refused, and the room comes back", async () => {
  app = await serveApp([quick, read], { load: { requests: 1, bodyBytes: 100 } });
  const slow = connect(app.port, "127.0.0.1");
  slow.write(`${post(90)}${" ".repeat(80)}`);
  await gaugeIs("http_body_bytes_held", 80);
  expect((await fetch(app.url)).status).toBe(200);
  const refused = await exchange(app.port, `${post(60)}${" ".repeat(60)}`, /\}$/);
  expect(refused).toMatch(/^HTTP\/1\.1 503 .*retry-after: 1\r\n.*"code":"unavailable"/s);
  slow.write(`${" ".repeat(8)}{}`);
  expect(String(await once(slow, "data"))).toMatch(/^HTTP\/1\.1 200 /);
  slow.destroy();
  expect(await exchange(app.port, `${post(60)}${" ".repeat(58)}{}`, /\}$/)).toMatch(/^HTTP\/1\.1 200 /);
  expect([await gauge("http_body_bytes_held"), await gauge("http_requests_under_way")]).toEqual([0, 0]);
});

it("a client that goes away in the middle of its body gives its room back", async () => {
  app = await serveApp([read], { load: { requests: 1, bodyBytes: 100 } });
  const slow = connect(app.port, "127.0.0.1");
  slow.write(`${post(90)}${" ".repeat(80)}`);
  await gaugeIs("http_body_bytes_held", 80);
  slow.destroy();
  await gaugeIs("http_body_bytes_held", 0);
});
