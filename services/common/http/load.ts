import type { Metrics } from "../metrics/metrics.ts";
import { type Refusal, refuse } from "./answer.ts";

/** What a service takes into its hands at once. Beyond it the answer is 503: memory is bounded, whatever the servers behind it do. */
export interface LoadLimits {
  /** Requests that are being worked on; one whose body is still on its way is not. */
  readonly requests: number;
  /** Bodies that have arrived and are not answered yet. What is made of them takes about four times as much. */
  readonly bodyBytes: number;
}

export const usualLoad: LoadLimits = { requests: 1_024, bodyBytes: 32 * 1024 * 1024 };

/** The answer to what is too much now. */
export function refuseLoad(): Refusal {
  return refuse(503, "unavailable", "too many requests are under way; nothing was done for this one", {
    headers: { "retry-after": "1" },
  });
}

/** Everything that is under way. */
export class Load {
  readonly #limits: LoadLimits;
  #requests = 0;
  #bodyBytes = 0;

  constructor(limits: LoadLimits, metrics: Metrics) {
    this.#limits = limits;
    metrics.gauge("http_requests_under_way", "Requests that are being worked on.", {}, (gauge) => gauge.set(this.#requests));
    metrics.gauge("http_body_bytes_held", "Bodies that are not answered yet.", {}, (gauge) => gauge.set(this.#bodyBytes));
  }

  takeRequest(): boolean {
    if (this.#requests >= this.#limits.requests) return false;
    this.#requests += 1;
    return true;
  }

  giveRequest(): void {
    this.#requests -= 1;
  }

  takeBytes(count: number): boolean {
    if (this.#bodyBytes + count > this.#limits.bodyBytes) return false;
    this.#bodyBytes += count;
    return true;
  }

  giveBytes(count: number): void {
    this.#bodyBytes -= count;
  }
}

/** One request's share of the load. False from `enter` and `hold`: too much is under way, and nothing was taken. */
export class Share {
  readonly #load: Load;
  #inside = false;
  #bytes = 0;

  constructor(load: Load) {
    this.#load = load;
  }

  enter(): boolean {
    this.#inside ||= this.#load.takeRequest();
    return this.#inside;
  }

  /** Until the next `enter` it is the client who is waited for: a body that drips takes nobody's place. */
  stepAside(): void {
    if (this.#inside) this.#load.giveRequest();
    this.#inside = false;
  }

  hold(bytes: number): boolean {
    if (!this.#load.takeBytes(bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  end(): void {
    this.stepAside();
    this.#load.giveBytes(this.#bytes);
    this.#bytes = 0;
  }
}
