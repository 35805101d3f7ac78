import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

export interface WaitOptions {
  /** The bound: a test that is not there by then fails with what it saw last. A loaded machine must not reach it. */
  readonly withinMs?: number;
  readonly everyMs?: number;
}

/**
 * Looks again and again until what is seen satisfies `until`, and returns it. A look that throws counts as not there yet.
 * Past the bound it throws an error that says what was waited for and what was seen, or thrown, last.
 */
export async function waitFor<T>(
  what: string,
  look: () => T | Promise<T>,
  until: (seen: T) => boolean,
  { withinMs = 60_000, everyMs = 25 }: WaitOptions = {},
): Promise<T> {
  const deadline = performance.now() + withinMs;
  let last = "nothing yet";
  do {
    try {
      const seen = await look();
      if (until(seen)) return seen;
      last = inspect(seen, { depth: 4, maxArrayLength: 5, maxStringLength: 500 });
    } catch (error) {
      last = `thrown: ${inspect(error)}`;
    }
    await sleep(everyMs);
  } while (performance.now() < deadline);
  throw new Error(`${what}: not within ${withinMs} ms; last seen: ${last}`);
}
