import { afterEach, expect, it } from "vitest";
import { BareLoop } from "../../benchmark/programs/bare-loop.ts";
import { MetadataStub } from "../../benchmark/programs/metadata-stub.ts";
import { sampleBody } from "../../benchmark/programs/sample-body.ts";

const started: { stop(): Promise<void> }[] = [];
afterEach(() => Promise.all(started.splice(0).map((program) => program.stop())));

async function startStub(): Promise<MetadataStub> {
  const stub = await MetadataStub.start();
  started.push(stub);
  return stub;
}

async function startLoop(): Promise<BareLoop> {
  const loop = await BareLoop.start();
  started.push(loop);
  return loop;
}

it("the stub answers a profile's calls with its body and logs them", async () => {
  const stub = await startStub();
  const url = await stub.profile("some", { latencyMs: 0, bodyBytes: 512 });
  const answer = await fetch(`${url}/7`);
  expect([answer.status, answer.headers.get("content-type"), await answer.text()]).toEqual([
    200,
    "application/json",
    sampleBody("7", 512),
  ]);
  expect(await stub.takeFigures()).toMatchObject({ paths: ["/some/7"], mostUnderWay: 1 });
  expect(await stub.takeFigures()).toMatchObject({ paths: [] });
});

it("the stub answers late as the profile says", async () => {
  const stub = await startStub();
  const url = await stub.profile("slow", { latencyMs: 50, bodyBytes: 512 });
  const begin = performance.now();
  await (await fetch(`${url}/1`)).text();
  // Timers count whole milliseconds.
  expect(performance.now() - begin).toBeGreaterThanOrEqual(49);
});

it("a stub whose answers leave much later than wanted says so", async () => {
  const stub = await startStub();
  await stub.profile("slow", { latencyMs: 100, bodyBytes: 512 });
  stub.judgeLateness({ paths: [], mostUnderWay: 1, lateMs: [9, 9, 9] });
  expect(stub.saturation).toBeUndefined();
  stub.judgeLateness({ paths: [], mostUnderWay: 1, lateMs: [11, 11, 1] });
  expect(stub.saturation).toMatch(/late/);
});

it("the bare loop calls each token once, never more at once than it may", async () => {
  const [stub, loop] = await Promise.all([startStub(), startLoop()]);
  const url = await stub.profile("some", { latencyMs: 20, bodyBytes: 512 });
  await loop.run({ url, firstTokenId: 5, count: 40, concurrency: 8 });
  const { paths, mostUnderWay } = await stub.takeFigures();
  expect(paths.toSorted()).toEqual(Array.from({ length: 40 }, (_, index) => `/some/${index + 5}`).toSorted());
  expect(mostUnderWay).toBeLessThanOrEqual(8);
});

it("the bare loop does not take a failure for a result", async () => {
  const [stub, loop] = await Promise.all([startStub(), startLoop()]);
  await expect(loop.run({ url: `${stub.url}/nobody`, firstTokenId: 1, count: 1, concurrency: 1 })).rejects.toThrow();
});
