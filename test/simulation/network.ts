import type { Chance } from "./chance.ts";
import type { Owner } from "./time/planned-event.ts";
import type { VirtualTime } from "./time/virtual-time.ts";

/** How a server behaves for a while. Shares are of requests. */
export interface Weather {
  /** One way. */
  readonly latencyMs: number;
  /** Never reaches the server. */
  readonly lostShare: number;
  /** Is done, and the answer is lost. */
  readonly unansweredShare: number;
  /** Reaches the server only after the caller has given up. */
  readonly lateShare: number;
}

export const fineWeather: Weather = { latencyMs: 2, lostShare: 0, unansweredShare: 0, lateShare: 0 };

export interface Reply<T> {
  answer(value: T, how?: { readonly background?: boolean }): void;
  refuse(error: Error): void;
}

export interface Request<T> {
  readonly timeoutMs: number;
  readonly timeoutError: () => Error;
  /** A look that usually finds nothing: heartbeats and fetches. */
  readonly background?: boolean;
  /** Done at the server, whether or not the caller lives by then. */
  readonly serve: (reply: Reply<T>) => void;
}

/** The way from processes to one kind of server. */
export class Network {
  weather: Weather = fineWeather;
  /** Told of every request that was served and may have had an effect, before its answer is on its way. */
  onServed: (asker: Owner | undefined) => void = () => {};
  readonly #time: VirtualTime;
  readonly #chance: Chance;

  constructor(time: VirtualTime, chance: Chance) {
    this.#time = time;
    this.#chance = chance;
  }

  /** Must be called by the process that asks: the answer is its event. */
  request<T>(request: Request<T>): Promise<T> {
    const { owner } = this.#time;
    return new Promise((resolve, reject) => this.#send(request, owner, { resolve, reject }));
  }

  #send<T>(request: Request<T>, owner: Owner | undefined, caller: { resolve: (v: T) => void; reject: (e: Error) => void }): void {
    const { serve, timeoutMs, timeoutError, background = false } = request;
    const time = this.#time;
    let open = true;
    const settle = (settleCaller: () => void): void => {
      if (!open) return;
      open = false;
      timeout.cancelled = true;
      settleCaller();
    };
    const timeout = time.after(timeoutMs, () => settle(() => caller.reject(timeoutError())), { owner, background });
    const fate = this.#fate();
    if (fate === "lost") return;
    const back = (run: () => void, isBackground: boolean): void => {
      if (fate === "unanswered") return;
      time.after(this.#latency(), () => settle(run), { owner, background: isBackground });
    };
    const reply: Reply<T> = {
      answer: (value, how) => back(() => caller.resolve(value), how?.background ?? false),
      refuse: (error) => back(() => caller.reject(error), false),
    };
    const delayMs = fate === "late" ? timeoutMs * (1 + this.#chance.random() * 2) : this.#latency();
    const arrive = (): void => {
      serve(reply);
      if (!background) this.onServed(owner);
    };
    time.after(delayMs, arrive, { background });
  }

  #latency(): number {
    return this.#chance.wait(this.weather.latencyMs);
  }

  #fate(): "lost" | "unanswered" | "late" | "served" {
    const { lostShare, unansweredShare, lateShare } = this.weather;
    if (lostShare + unansweredShare + lateShare === 0) return "served";
    const draw = this.#chance.random();
    if (draw < lostShare) return "lost";
    if (draw < lostShare + unansweredShare) return "unanswered";
    return draw < lostShare + unansweredShare + lateShare ? "late" : "served";
  }
}
