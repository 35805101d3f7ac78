/**
 * The partition of a key: Kafka's murmur2 over its UTF-8 bytes, the same as in every Kafka client with the default partitioner.
 * `partitionCount` is the topic's count in deploy/topics.yaml. kafkajs' own hash counts in 64-bit objects: 20 µs a key.
 */
export function partitionOf(key: string, partitionCount: number): number {
  // Tokens of one refresh come one after the other.
  if (key !== last.key) last = { key, hash: murmur2(Buffer.from(key)) };
  return (last.hash & 0x7fffffff) % partitionCount;
}

let last = { key: "", hash: murmur2(Buffer.from("")) };

/** As in org.apache.kafka.common.utils.Utils: the constants and the order are those of the Java client. */
function murmur2(bytes: Uint8Array): number {
  const multiplier = 0x5bd1e995;
  const at = (index: number): number => bytes[index] ?? 0;
  let hash = 0x9747b28c ^ bytes.length;
  let index = 0;
  for (; index + 4 <= bytes.length; index += 4) {
    const word = at(index) | (at(index + 1) << 8) | (at(index + 2) << 16) | (at(index + 3) << 24);
    const mixed = Math.imul(word, multiplier);
    hash = Math.imul(hash, multiplier) ^ Math.imul(mixed ^ (mixed >>> 24), multiplier);
  }
  const rest = bytes.length - index;
  if (rest > 0) hash = Math.imul(hash ^ (at(index) | (at(index + 1) << 8) | (at(index + 2) << 16)), multiplier);
  hash = Math.imul(hash ^ (hash >>> 13), multiplier);
  return hash ^ (hash >>> 15);
}
