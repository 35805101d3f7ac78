export interface Alarm {
  /** Replaces what was set before. */
  set(delayMs: number): void;
  clear(): void;
}

/** One timer for a pipeline that waits for nothing but time. */
export function createAlarm(ring: () => void): Alarm {
  let timer: NodeJS.Timeout | undefined;
  return {
    set(delayMs) {
      clearTimeout(timer);
      timer = setTimeout(ring, delayMs);
    },
    clear: () => clearTimeout(timer),
  };
}
