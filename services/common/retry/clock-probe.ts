import type { RecordProducer } from "../kafka/contracts.ts";
import type { Topics } from "../kafka/topics.ts";

/**
 * Resolves when one record is acknowledged, by which a taught producer (broker-clock.ts) has learned the broker's clock. For the
 * start of a service with delay tiers: what it fetches only proves a lower bound, and a record that is due could look as if it
 * had to wait its whole time anew.
 */
export async function probeBrokerClock(producer: RecordProducer, topics: Topics, service: string): Promise<void> {
  await producer.deliver([{ topic: topics.clock.name, key: service, value: Buffer.alloc(0) }]);
}
