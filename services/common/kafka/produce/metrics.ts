import type { Counter, Histogram, Metrics } from "../../metrics/metrics.ts";
import type { Topics } from "../topics.ts";

/** What a producer has waiting. */
export interface WaitingRecords {
  readonly recordCount: number;
  readonly bytes: number;
}

export interface ProducerMetrics {
  readonly records: Counter<"topic" | "result">;
  readonly retries: Counter<"topic" | "cause">;
  readonly calls: Histogram<"result">;
  /** Counts a producer's queue in until it is taken out again. */
  readonly queues: Set<WaitingRecords>;
}

const registered = new WeakMap<Metrics, ProducerMetrics>();

/** The metrics of all producers of a process: a second producer shares those of the first. */
export function producerMetrics(metrics: Metrics, topics: Topics): ProducerMetrics {
  const existing = registered.get(metrics);
  if (existing !== undefined) return existing;
  const topic = topics.all.map(({ baseName }) => baseName);
  const queues = new Set<WaitingRecords>();
  const sum = (of: (queue: WaitingRecords) => number) => [...queues].reduce((total, queue) => total + of(queue), 0);
  metrics.gauge("kafka_producer_waiting_records", "Records that wait to be produced.", {}, (gauge) =>
    gauge.set(sum(({ recordCount }) => recordCount)),
  );
  metrics.gauge("kafka_producer_waiting_bytes", "Bytes of the records that wait to be produced.", {}, (gauge) =>
    gauge.set(sum(({ bytes }) => bytes)),
  );
  const created: ProducerMetrics = {
    records: metrics.counter("kafka_producer_records_total", "Records by how they ended.", {
      topic,
      result: ["acknowledged", "not_sent", "unknown", "too_large"],
    }),
    retries: metrics.counter("kafka_producer_retries_total", "Records that go again, by what became of the try before.", {
      topic,
      cause: ["not_sent", "unknown"],
    }),
    calls: metrics.duration("kafka_producer_call_duration_seconds", "Produce calls, each with what waited then.", {
      result: ["acknowledged", "failed"],
    }),
    queues,
  };
  registered.set(metrics, created);
  return created;
}
