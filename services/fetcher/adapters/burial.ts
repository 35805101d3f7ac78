import type { DeadLetters } from "../../common/kafka/consume/dead-letters.ts";
import type { Codec, DecodedRecord } from "../../common/kafka/contracts.ts";
import type { TokenRefresh } from "../../common/messages/records.ts";

/** Puts a record that was decoded and makes no sense to the dead letters, with the bytes that it was decoded from. */
export function createBurial(deadLetters: DeadLetters, codec: Codec) {
  return (record: DecodedRecord<TokenRefresh>, reason: string): Promise<void> => {
    const { topic, partition, offset, timestampMs } = record;
    const [key, value] = [Buffer.from(record.key), codec.encode(topic, record.value)];
    return deadLetters.put({ topic, partition, offset, timestampMs, key, value, headers: {} }, "rejected", reason);
  };
}
