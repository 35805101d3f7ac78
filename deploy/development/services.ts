import { describe, type ServiceName, type ServiceProcess, serviceNames, startService } from "./service-process.ts";

/** The five services as child processes. */
export interface RunningServices {
  /** Resolves when all are ready. Rejects, with its last words, when one is not. */
  readonly ready: Promise<void>;
  /** Resolves when one has ended that was not asked to, with a sentence that says which and how. */
  readonly ended: Promise<string>;
  /** Gracefully, all at once: each finishes or gives back what it has in its hands. */
  stop(): Promise<void>;
}

export interface StartOptions {
  readonly environment: (name: ServiceName) => Readonly<Record<string, string>>;
  readonly onReady: (service: ServiceProcess) => void;
  readonly onLine: (name: ServiceName, line: string) => void;
}

/** Starts every service, and does not wait for them. */
export function startServices({ environment, onReady, onLine }: StartOptions): RunningServices {
  let stopping = false;
  const processes = serviceNames.map((name) =>
    startService(name, { environment: environment(name), ownGroup: true, onLine: (line) => onLine(name, line) }),
  );
  const ready = Promise.all(processes.map((service) => service.ready().then(() => onReady(service)))).then(() => undefined);
  const ended = new Promise<string>((resolve) => {
    for (const { name, pid, exited } of processes) {
      void exited.then((exit) => {
        if (!stopping) resolve(`${name} (process ${pid}) has ended by itself (${describe(exit)})`);
      });
    }
  });
  return {
    ready,
    ended,
    async stop() {
      stopping = true;
      await Promise.all(processes.map((service) => service.stop()));
    },
  };
}
