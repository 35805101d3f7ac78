import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export type { Counter, Gauge, Histogram } from "prom-client";

type Labels = Readonly<Record<string, readonly string[]>>;

/** Seconds: of one step, from a millisecond to ten minutes; of a whole refresh, to the 48 hours it may take. */
const durationBuckets = {
  step: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600],
  refresh: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 43_200, 86_400, 172_800],
};

/**
 * The metrics of one process. Label values come from closed sets and are declared, so that every series exists, at zero,
 * from the start: no project, collection or host is ever a label.
 */
export class Metrics {
  readonly #registry = new Registry();

  constructor(service: string) {
    this.#registry.setDefaultLabels({ service });
    collectDefaultMetrics({ register: this.#registry });
  }

  counter<L extends Labels>(name: string, help: string, labels: L): Counter<keyof L & string> {
    const labelNames = Object.keys(labels) as (keyof L & string)[];
    const counter = new Counter({
      name,
      help,
      labelNames,
      registers: [this.#registry],
    });
    for (const combination of combinations(labels)) counter.inc(combination as Partial<Record<keyof L & string, string>>, 0);
    return counter;
  }

  gauge<L extends Labels>(name: string, help: string, labels: L, collect?: (gauge: Gauge<keyof L & string>) => void) {
    const labelNames = Object.keys(labels) as (keyof L & string)[];
    const gauge: Gauge<keyof L & string> = new Gauge({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      ...(collect === undefined ? {} : { collect: () => collect(gauge) }),
    });
    return gauge;
  }

  /** `name` ends in `_seconds`; observe seconds. */
  duration<L extends Labels>(
    name: string,
    help: string,
    labels: L,
    scale: keyof typeof durationBuckets = "step",
  ): Histogram<keyof L & string> {
    const labelNames = Object.keys(labels) as (keyof L & string)[];
    const histogram = new Histogram({
      name,
      help,
      labelNames,
      buckets: durationBuckets[scale],
      registers: [this.#registry],
    });
    for (const combination of combinations(labels)) {
      histogram.zero(combination as Record<keyof L & string, string>);
    }
    return histogram;
  }

  /** The Prometheus text format and its content type. */
  async text(): Promise<{ contentType: string; body: string }> {
    return {
      contentType: this.#registry.contentType,
      body: await this.#registry.metrics(),
    };
  }
}

function combinations(labels: Labels): Record<string, string>[] {
  return Object.entries(labels).reduce<Record<string, string>[]>(
    (rows, [name, values]) => rows.flatMap((row) => values.map((value) => ({ ...row, [name]: value }))),
    [{}],
  );
}
