import { ensureStack } from "../../deploy/development/stack.ts";
import { createReporter } from "../../deploy/local/reporter.ts";

/**
 * The stack is up before the first test. It stays up after the last one, so that the next run is warm; with CI=true it is taken
 * down again, unless somebody else had started it.
 */
export async function setup(): Promise<() => Promise<void>> {
  const stack = await ensureStack(createReporter(process.stderr));
  return async () => {
    if (process.env.CI === "true" && stack.startedHere) await stack.stop();
  };
}
