import type { Command } from "commander";
import { execute, type Terminal } from "../../deploy/operate/program.ts";

export interface ProgramEnd {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program of `deploy/operate` that is under way in this process. */
export interface StartedProgram {
  readonly ended: Promise<ProgramEnd>;
  /** Ctrl-C. */
  interrupt(): void;
}

/** As an operator types it, `args` without the program's name. */
export function startProgram(
  create: (terminal: Terminal) => Command,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): StartedProgram {
  const output = { stdout: "", stderr: "" };
  const controller = new AbortController();
  const terminal: Terminal = {
    // LOG_LEVEL is the services' in a test's environment: an operator sees what the program itself says.
    environment: { ...environment, LOG_LEVEL: "" },
    out: (text) => {
      output.stdout += text;
    },
    error: (text) => {
      output.stderr += text;
    },
    interrupted: controller.signal,
  };
  const ended = execute(create(terminal), args, terminal).then((code) => ({ code, ...output }));
  return { ended, interrupt: () => controller.abort() };
}

/** Runs it to its end. */
export function runProgram(
  create: (terminal: Terminal) => Command,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<ProgramEnd> {
  return startProgram(create, args, environment).ended;
}
