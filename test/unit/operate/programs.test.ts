import { execFile } from "node:child_process";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { deadLettersProgram } from "../../../deploy/operate/dead-letters.ts";
import { refreshProgram } from "../../../deploy/operate/refresh.ts";
import { tokenStateProgram } from "../../../deploy/operate/token-state.ts";
import { runProgram } from "../../support/program.ts";

/** As `npm run` starts it. */
function start(name: string, args: readonly string[]): Promise<{ code: number; stdout: string }> {
  const file = new URL(`../../../deploy/operate/${name}.ts`, import.meta.url).pathname;
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ["--no-warnings", file, ...args], (_error, stdout) =>
      resolve({ code: child.exitCode ?? -1, stdout }),
    );
  });
}

it.each([
  ["dead-letters list", deadLettersProgram, "--cause"],
  ["dead-letters replay", deadLettersProgram, "--again"],
  ["dead-letters discard", deadLettersProgram, "--yes"],
  ["token-state republish", tokenStateProgram, "--from"],
  ["refresh inspect", refreshProgram, "--json"],
])("%s explains its options", async (typed, program, option) => {
  const { code, stdout } = await runProgram(program, [typed.split(" ")[1] ?? "", "--help"], {});
  expect(code).toBe(0);
  expect(stdout).toContain(option);
});

it.each([
  ["dead-letters", ["list", "show", "replay", "discard"]],
  ["token-state", ["republish"]],
  ["refresh", ["inspect"]],
])("%s is a program, and says what it can do", { timeout: 60_000 }, async (name, commands) => {
  const { code, stdout } = await start(name, ["--help"]);
  expect(code).toBe(0);
  for (const command of commands) expect(stdout).toMatch(new RegExp(`^ +${command} `, "m"));
  expect((await start(name, ["unheard-of"])).code).toBe(1);
});

describe("a wrong configuration", () => {
  const environment = { CASSANDRA_KEYSPACE: "Upper", SCHEMA_REGISTRY_URL: "no url", KAFKA_REQUEST_TIMEOUT_MS: "soon" };
  it.each([
    ["dead-letters", deadLettersProgram, ["list"]],
    ["token-state", tokenStateProgram, ["republish"]],
    ["refresh", refreshProgram, ["inspect", "00000000-0000-7000-8000-000000000000"]],
  ])("is told in full by %s, which does nothing", async (_name, program, args) => {
    const { code, stderr, stdout } = await runProgram(program, args, environment);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    for (const name of Object.keys(environment)) expect(stderr).toContain(`  ${name}: `);
  });
});
