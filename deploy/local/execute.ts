import { spawn } from "node:child_process";
import { createWriteStream, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { codeOf, StackProblem } from "./problem.ts";

export interface Execution {
  readonly file: string;
  readonly arguments: readonly string[];
  readonly environment?: NodeJS.ProcessEnv;
  /** Everything the program prints goes here. */
  readonly log: string;
  readonly onLine?: (line: string) => void;
}

/** Runs a program to its end and tells its exit code; a program that cannot be started is a `StackProblem`. */
export async function execute({ file, arguments: list, environment, log, onLine }: Execution): Promise<number> {
  mkdirSync(dirname(log), { recursive: true });
  const output = createWriteStream(log);
  const child = spawn(file, list, { env: environment ?? process.env, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => {
      output.write(`${line}\n`);
      onLine?.(line);
    });
  }
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => resolve(code ?? 1));
    });
  } catch (error) {
    throw new StackProblem(`${file} cannot be started (${codeOf(error) ?? error}); check that it is installed and executable`);
  } finally {
    await new Promise<void>((flushed) => output.end(flushed));
  }
}
