import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { defects } from "../../simulation/defects.ts";

const run = promisify(execFile);
const program = new URL("../../simulation/main.ts", import.meta.url).pathname;
/** Far above what it takes: a machine under load is no broken promise. */
const patienceMs = 900_000;

/** In a process of its own: the simulation takes over its clock and timers. What it printed, whatever its exit code. */
async function simulate(...options: readonly string[]): Promise<string> {
  const outcome = run(process.execPath, ["--no-warnings", program, ...options], { maxBuffer: 64 * 1024 * 1024 });
  return outcome.then(({ stdout }) => stdout).catch((error: { stdout: string }) => error.stdout);
}

describe("the whole system in simulated worlds", { timeout: patienceMs }, () => {
  it("keeps every promise through 500 worlds of crashes, rebalances, lost answers and copies", async () => {
    const report: unknown = JSON.parse(await simulate("--seeds", "500", "--json"));
    expect(report).toMatchObject({ worlds: 500, failures: [] });
  });

  it("tells the same seed the same way every time", async () => {
    const [first, second] = [await simulate("--seed", "75"), await simulate("--seed", "75")];
    expect(first.split("\n").length).toBeGreaterThan(100);
    expect(second).toBe(first);
  });
});

describe("bugs that the simulation has to find", { timeout: patienceMs }, () => {
  const found = (async (): Promise<readonly { readonly name: string; readonly message?: string }[]> =>
    JSON.parse(await simulate("--defects", "--seeds", "300", "--json")))();

  it.each(defects)("$name", async ({ name, foundAs }) => {
    expect((await found).find((result) => result.name === name)?.message).toMatch(foundAs);
  });
});
