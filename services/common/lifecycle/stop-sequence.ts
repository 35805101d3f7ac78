import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "../logging/logger.ts";

/** The steps of a graceful stop, run in reverse order of their registration. */
export class StopSequence {
  readonly #steps: { name: string; stop: () => Promise<void> }[] = [];
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  add(name: string, stop: () => Promise<void>): void {
    this.#steps.push({ name, stop });
  }

  /** Resolves with whether every step ended well within the time; a failing step does not keep the others from running. */
  async run(timeoutMs: number): Promise<boolean> {
    const deadline = new AbortController();
    const late = delay(timeoutMs, false, { signal: deadline.signal }).catch(() => false);
    const stopped = await Promise.race([this.#runAll(), late]);
    deadline.abort();
    return stopped;
  }

  async #runAll(): Promise<boolean> {
    let well = true;
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step.stop();
        this.#logger.debug({ step: step.name }, "service.step_stopped");
      } catch (error) {
        well = false;
        this.#logger.error({ step: step.name, err: error }, "service.step_failed");
      }
    }
    return well;
  }
}
