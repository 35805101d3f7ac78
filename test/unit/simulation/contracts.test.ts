import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { codecContract } from "../../simulation/contracts/codec-contract.ts";
import { logContract } from "../../simulation/contracts/log-contract.ts";
import { tableContract } from "../../simulation/contracts/table-contract.ts";

const run = promisify(execFile);
const program = new URL("../../simulation/contracts/simulated-main.ts", import.meta.url).pathname;

/** In a process of its own: the simulation takes over its clock and timers. The real servers: simulation-contracts.test.ts. */
describe("what stands for the servers keeps what the real ones keep", () => {
  const held = (async (): Promise<readonly { readonly name: string; readonly problem: string | null }[]> =>
    JSON.parse((await run(process.execPath, ["--no-warnings", program])).stdout))();

  it.each([...logContract, ...tableContract, ...codecContract].map(({ name }) => name))("%s", async (name) => {
    expect((await held).find((result) => result.name === name)).toEqual({ name, problem: null });
  });
});
