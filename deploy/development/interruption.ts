/** Ctrl-C, a kill, or a terminal that is closed. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
}

/**
 * Aborts, with `Interrupted`, at the first signal that asks this process to end; what was started is then stopped in order. A
 * second signal ends at once: whatever was started as a child is killed with this process.
 */
export function onInterruption(tell: (text: string) => void): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(130);
      tell("stopping; once more to end at once");
      controller.abort(new Interrupted(signal));
    });
  }
  return controller.signal;
}

/** The work's result, unless the signal comes first. The work goes on unwatched then: whoever started it also stops it. */
export async function unlessInterrupted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  work.catch(() => undefined);
  signal.throwIfAborted();
  let onAbort = () => {};
  const interrupted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([work, interrupted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
