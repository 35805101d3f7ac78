/** A simulated process: what it has planned happens as long as it lives, and not while it is stopped. */
export interface Owner {
  readonly name: string;
  readonly alive: boolean;
  /** Stopped until then, as by SIGSTOP; what falls due meanwhile happens at once afterwards, in order. */
  readonly stoppedUntilMs: number;
  /** How far its wall clock is off. */
  readonly skewMs: number;
}

export interface PlannedEvent {
  atMs: number;
  readonly run: () => void;
  readonly owner: Owner | undefined;
  cancelled: boolean;
}
