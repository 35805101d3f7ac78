import { afterAll, expect, it } from "vitest";
import { catalogue } from "../faults/catalogue.ts";
import { Runner } from "../faults/run.ts";

/** A few of `npm run faults`: one crash of each service, in the middle of what it does, a zombie, and a graceful stop. */
const chosen = [
  "crash-before-refresh-rows",
  "crash-half-fan-out",
  "crash-mid-fetch",
  "crash-after-token-rows",
  "crash-after-completion-mark",
  "stop-fetcher",
  "zombie-aggregator",
];

const runner = new Runner({ seed: 2026, tell: () => undefined });
afterAll(() => runner.close());

/** Longer than the waits of a scenario one after the other, each of which says what it has waited for. */
const timeoutMs = 900_000;

it.each(chosen)("every guarantee holds in the scenario %s", { timeout: timeoutMs }, async (name) => {
  const scenario = catalogue.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`there is no scenario ${name}`);
  const { problem, findings, counts } = await runner.run(scenario);
  expect(problem).toBeNull();
  expect(findings.filter(({ wrong }) => wrong.length > 0)).toEqual([]);
  expect(findings.length).toBeGreaterThanOrEqual(18);
  expect(counts).toMatchObject({ faults: expect.toSatisfy((faults: number) => faults > 0) });
});
