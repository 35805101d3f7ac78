import { createRequire, syncBuiltinESMExports } from "node:module";
import type { PlannedEvent } from "./planned-event.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** 2026-09-21, so that micros and months are of a usual size. */
export const epochMs = 1_790_000_000_000;

let time: VirtualTime | undefined;
let random: () => number = () => 0.5;

/** From here on every timer, clock and random number of this thread belongs to this world. */
export function enterWorld(world: { readonly time: VirtualTime; readonly random: () => number }): void {
  install();
  time = world.time;
  random = world.random;
}

/** What setTimeout and setInterval give. */
class Timer {
  event: PlannedEvent | undefined;

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  refresh(): this {
    throw new Error("the simulation has no timer.refresh()");
  }

  [Symbol.dispose](): void {
    clear(this);
  }
}

let installed = false;

function install(): void {
  if (installed) return;
  installed = true;
  const now = (): number => world().nowMs;
  const wallNow = (): number => epochMs + Math.floor(now()) + (world().owner?.skewMs ?? 0);
  Object.assign(globalThis, { setTimeout: startTimer, setInterval: startInterval, clearTimeout: clear, clearInterval: clear });
  Date.now = wallNow;
  Object.defineProperty(performance, "now", { value: now });
  Math.random = () => random();
  const timers = createRequire(import.meta.url)("node:timers/promises") as Record<string, unknown>;
  timers.setTimeout = delay;
  syncBuiltinESMExports();
}

function world(): VirtualTime {
  if (time === undefined) throw new Error("there is no world");
  return time;
}

function startTimer(run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): Timer {
  const { owner, inBackground } = world();
  const timer = new Timer();
  timer.event = world().after(Math.max(1, ms), () => run(...args), { owner, background: inBackground });
  return timer;
}

function startInterval(run: () => void, ms = 1): Timer {
  const { owner } = world();
  const timer = new Timer();
  const arm = (): void => {
    timer.event = world().after(
      ms,
      () => {
        arm();
        run();
      },
      { owner, background: true },
    );
  };
  arm();
  return timer;
}

function clear(timer: unknown): void {
  if (timer instanceof Timer && timer.event !== undefined) timer.event.cancelled = true;
}

function delay<T>(ms: number, value?: T, { signal }: { signal?: AbortSignal } = {}): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clear(timer);
      reject(signal?.reason);
    };
    const timer = startTimer(() => {
      signal?.removeEventListener("abort", abort);
      resolve(value);
    }, ms);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}
