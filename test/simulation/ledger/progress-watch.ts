import type { Row } from "../../../services/common/cassandra/session.ts";
import { ordinalsIn } from "./bits.ts";

/** I2, I3: what a reader of the progress table sees at any moment. */
export class ProgressWatch {
  readonly #seen = new Map<string, ReadonlySet<number>>();
  readonly #report: (problem: string) => void;

  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  changed(row: Row): void {
    const id = String(row.refresh_id);
    const done = new Set(ordinalsIn(row.done));
    const failed = ordinalsIn(row.failed);
    const [succeededCount, failedCount, total] = [Number(row.succeeded_count), Number(row.failed_count), Number(row.total)];
    const before = this.#seen.get(id) ?? new Set();
    this.#seen.set(id, done);
    const byCode = Object.values((row.failed_by_code ?? {}) as Record<string, number>).reduce((sum, count) => sum + count, 0);
    if ([...before].some((ordinal) => !done.has(ordinal))) this.#report(`I2: ${id} had done ${[...before]}, now ${[...done]}`);
    if (succeededCount + failedCount !== done.size) {
      this.#report(`I2: ${id} counts ${succeededCount} succeeded and ${failedCount} failed of ${done.size} done`);
    }
    if (failed.length !== failedCount || byCode !== failedCount || failed.some((ordinal) => !done.has(ordinal))) {
      this.#report(`I4: ${id} counts ${failedCount} failed, ${byCode} by code, and marks ${failed}`);
    }
    const isCompleted = Number(row.completed_version) > 0;
    if (isCompleted !== (done.size === total)) {
      this.#report(`I3: ${id} is ${isCompleted ? "completed" : "open"} with ${done.size} of ${total}`);
    }
  }
}
