import { afterEach, expect, it } from "vitest";
import { OperationsServer } from "../../../../services/common/http/operations.ts";
import { Health } from "../../../../services/common/lifecycle/context.ts";
import { Metrics } from "../../../../services/common/metrics/metrics.ts";

let server: OperationsServer | undefined;
afterEach(() => server?.close());

async function serve(health: Health): Promise<(path: string) => Promise<{ status: number; text: string }>> {
  server = new OperationsServer(health, new Metrics("sample"));
  const port = await server.listen("127.0.0.1", 0);
  return async (path) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: response.status, text: await response.text() };
  };
}

it("is live but not ready while it starts, ready when it has started, not ready while it stops", async () => {
  const health = new Health();
  const get = await serve(health);
  const statuses = async () => [(await get("/livez")).status, (await get("/startupz")).status, (await get("/readyz")).status];
  expect(await statuses()).toEqual([200, 503, 503]);
  health.markStarted();
  expect(await statuses()).toEqual([200, 200, 200]);
  health.markStopping();
  expect(await statuses()).toEqual([200, 200, 503]);
});

it("names what is wrong, and a lost dependency does not make it die", async () => {
  const health = new Health();
  health.markStarted();
  health.addReadyCheck("cassandra", () => "no host answers");
  const get = await serve(health);
  expect(await get("/readyz")).toEqual({ status: 503, text: '{"status":"failing","failing":{"cassandra":"no host answers"}}' });
  expect((await get("/livez")).status).toBe(200);
});

it("serves metrics, and nothing else", async () => {
  const get = await serve(new Health());
  expect((await get("/metrics")).text).toContain("process_cpu_seconds_total");
  expect((await get("/")).status).toBe(404);
});
