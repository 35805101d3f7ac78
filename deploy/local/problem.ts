/**
 * Something the person at the keyboard can put right: the message is one sentence that names the remedy.
 * The command line prints it without a stack trace; any other error is a bug and keeps its trace.
 */
export class StackProblem extends Error {
  override readonly name = "StackProblem";
}

/** What an unknown thrown value says, for use inside a sentence. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The `code` of a system error (`ENOENT`, `EADDRINUSE`, ...), if it has one. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

const remedies: Readonly<Record<string, string>> = {
  ENOSPC: "free some disk space",
  EDQUOT: "free some disk space",
  EACCES: "change its rights, or set STACK_HOME and STACK_PACKAGES to folders of your own",
  EROFS: "set STACK_HOME and STACK_PACKAGES to folders that can be written",
  EMFILE: "allow more open files (ulimit -n)",
};

/** A system error that only the person can put right, as a `StackProblem`; any other error as it is. */
export function asProblem(error: unknown): unknown {
  const remedy = remedies[codeOf(error) ?? ""];
  return remedy === undefined || error instanceof StackProblem ? error : new StackProblem(`${reasonOf(error)}; ${remedy}`);
}

/** Throws what went wrong in any of the works: all problems, one sentence a line, or a bug alone and with its trace. */
export function rejectWithAll(results: readonly PromiseSettledResult<unknown>[]): void {
  const reasons = results.flatMap((result) => (result.status === "rejected" ? [asProblem(result.reason)] : []));
  const problems = reasons.filter((reason) => reason instanceof StackProblem);
  if (problems.length < reasons.length) throw reasons.find((reason) => !(reason instanceof StackProblem));
  if (problems.length > 0) throw new StackProblem([...new Set(problems.map(({ message }) => message))].join("\n"));
}
