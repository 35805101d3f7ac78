export interface Alarm {
  /** Rings after this time, or earlier when an earlier ring is set already. */
  set(delayMs: number): void;
  clear(): void;
}

/** One timer for a pipeline that waits for nothing but time. It is asked at every call that ends: a timer is kept while it will do. */
export function createAlarm(ring: () => void): Alarm {
  let timer: NodeJS.Timeout | undefined;
  let ringsAtMs = Number.POSITIVE_INFINITY;
  const clear = (): void => {
    clearTimeout(timer);
    ringsAtMs = Number.POSITIVE_INFINITY;
  };
  return {
    set(delayMs) {
      const atMs = performance.now() + delayMs;
      if (atMs >= ringsAtMs) return;
      clear();
      ringsAtMs = atMs;
      timer = setTimeout(() => {
        clear();
        ring();
      }, delayMs);
    },
    clear,
  };
}
