import type { Clock } from "../../clock.ts";
import { Lease } from "./lease.ts";

const lookEveryMs = 5_000;

/** What kafkajs' events tell of the member's standing in its group: the lease, and whether kafkajs is alive at all. */
export class Heartbeats {
  readonly lease: Lease;
  readonly #sessionTimeoutMs: number;
  readonly #clock: Clock;
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  #signOfLife = false;
  #silentLooks = 0;
  #watch: NodeJS.Timeout | undefined;

  constructor(timing: { readonly sessionTimeoutMs: number; readonly requestTimeoutMs: number }, clock: Clock) {
    this.lease = new Lease(timing);
    this.#sessionTimeoutMs = timing.sessionTimeoutMs;
    this.#clock = clock;
  }

  /** A request was answered; comes just before the event that says whether the answer was a good one. `sentAt`: wall clock. */
  noteAnswer({ apiName, sentAt }: { readonly apiName: string; readonly sentAt: number }): void {
    if (apiName !== "Heartbeat" && apiName !== "SyncGroup") return;
    // A wall clock that was set back meanwhile must not make it younger than now.
    this.#answeredAtMs = this.#clock.monotonicMs() - Math.max(0, this.#clock.nowMs() - sentAt);
  }

  /** The heartbeat, or the join, that was answered last got a good answer. */
  noteGood(): void {
    this.lease.renew(this.#answeredAtMs);
  }

  /** Nothing was answered for a whole session: the group has put this member out, or its coordinator is another one by now. */
  get lapsed(): boolean {
    return this.lease.ageMs(this.#clock.monotonicMs()) > this.#sessionTimeoutMs;
  }

  noteSignOfLife(): void {
    this.#signOfLife = true;
  }

  /**
   * A kafkajs consumer can stand still without a word: no request, no error. Looks are counted, not time, so that a process
   * that was itself stopped for long is not taken for one.
   */
  watch(silentForMs: number, onSilence: () => void): void {
    this.#watch = setInterval(() => {
      this.#silentLooks = this.#signOfLife ? 0 : this.#silentLooks + 1;
      this.#signOfLife = false;
      if (this.#silentLooks * lookEveryMs >= silentForMs) onSilence();
    }, lookEveryMs).unref();
  }

  stop(): void {
    clearInterval(this.#watch);
  }

  health(): string | undefined {
    const now = this.#clock.monotonicMs();
    if (this.lease.valid(now)) return undefined;
    const ageMs = this.lease.ageMs(now);
    return Number.isFinite(ageMs) ? `no heartbeat was answered for ${Math.round(ageMs / 1000)} s` : "not in the group yet";
  }
}
