/**
 * One thing that holds of a server and of what stands for it in the simulation: `holds` rejects where it does not. Without a test
 * runner, for the simulation runs in a process of its own, on a clock of its own.
 */
export interface Contract<Stage> {
  readonly name: string;
  holds(stage: Stage): Promise<void>;
}

export interface Waiting {
  /** On the clock of the stage. */
  pause(ms: number): Promise<void>;
}

const patienceMs = 60_000;
const lookEveryMs = 50;

/** Waits until the answer is one that is wanted, and gives it back. */
export async function until<T>(
  { pause }: Waiting,
  what: string,
  ask: () => T | Promise<T>,
  wanted: (answer: T) => boolean,
): Promise<T> {
  for (let waitedMs = 0; ; waitedMs += lookEveryMs) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    if (waitedMs >= patienceMs) throw new Error(`${what}: ${JSON.stringify(answer)} after ${patienceMs} ms`);
    await pause(lookEveryMs);
  }
}
