/** A calendar hour in UTC: what the limit of refreshes is counted by (specification section 8). */
export interface Hour {
  readonly startMicros: number;
  /** The first instant that is not in it any more. */
  readonly endMicros: number;
}

/** What a project has used of its hour. */
export interface Usage {
  readonly limit: number;
  readonly used: number;
}

const hourMicros = 3_600_000_000;

export function hourOf(micros: number): Hour {
  const startMicros = Math.floor(micros / hourMicros) * hourMicros;
  return { startMicros, endMicros: startMicros + hourMicros };
}

/** The three headers of specification section 8; the reset is in UNIX seconds. */
export function limitHeaders({ limit, used }: Usage, hour: Hour): Record<string, string> {
  return {
    "x-svc-refreshes-limit": String(limit),
    "x-svc-remaining-refreshes": String(Math.max(0, limit - used)),
    "x-svc-refresh-limit-reset": String(hour.endMicros / 1_000_000),
  };
}

/** Whole seconds until the hour is over, at least one. */
export function secondsUntilReset(hour: Hour, nowMs: number): number {
  return Math.max(1, Math.ceil(hour.endMicros / 1_000_000 - nowMs / 1000));
}
