"""Holds the tokens of one collection as a marketplace would.

Bootstraps from public.metadata.token.state.v1, follows it, and drops what is not newer. Prints what it holds for each line on its
standard input; ends with it.
"""

import argparse
import json
import select
import struct
import sys
import uuid

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

parser = argparse.ArgumentParser()
parser.add_argument("--brokers", default="127.0.0.1:9092")
parser.add_argument("--registry", default="http://127.0.0.1:8081/apis/ccompat/v7")
parser.add_argument("--topic", default="public.metadata.token.state.v1")
parser.add_argument("--collection", default="")
options = parser.parse_args()

deserialize = AvroDeserializer(SchemaRegistryClient({"url": options.registry}))
consumer = Consumer(
    {
        "bootstrap.servers": options.brokers,
        # Partitions are assigned by hand and nothing is committed: the topic is the storage, and every start reads all of it.
        "group.id": f"example-{uuid.uuid4()}",
        "enable.auto.commit": False,
    }
)

tokens = {}
discarded = 0


def apply(state):
    global discarded
    if state["collection_address"] != options.collection:
        return
    held = tokens.get(state["token_id"])
    # Redelivered, or older than what is held: a version is never used for two contents.
    if held is not None and state["version"] <= held["version"]:
        discarded += 1
    else:
        tokens[state["token_id"]] = {
            name: state[name] for name in ("token_id", "version", "content_hash", "metadata")
        }


def read_one(timeout_seconds):
    message = consumer.poll(timeout_seconds)
    if message is None:
        return
    if message.error():
        print(message.error(), file=sys.stderr)
        return
    value = message.value()
    try:
        apply(deserialize(value, SerializationContext(message.topic(), MessageField.VALUE)))
    except Exception as problem:
        schema_id = struct.unpack(">I", value[1:5])[0] if value and len(value) >= 5 else None
        place = f"partition {message.partition()}, offset {message.offset()}, schema {schema_id}"
        raise SystemExit(f"{message.topic()}, {place}: {problem}")


def read_to_the_end():
    ends = {
        partition: consumer.get_watermark_offsets(TopicPartition(options.topic, partition))
        for partition in partitions
    }

    def behind():
        # The position says nothing until a record has been read.
        positions = consumer.position([TopicPartition(options.topic, partition) for partition in ends])
        read = {position.partition: max(0, position.offset) for position in positions}
        return any(high != low and read[partition] < high for partition, (low, high) in ends.items())

    while behind():
        read_one(0.1)


partitions = list(consumer.list_topics(options.topic, timeout=30).topics[options.topic].partitions)
consumer.assign([TopicPartition(options.topic, partition, OFFSET_BEGINNING) for partition in partitions])
while True:
    read_one(0.1)
    ready, _, _ = select.select([sys.stdin], [], [], 0)
    if not ready:
        continue
    if not sys.stdin.readline():
        break
    read_to_the_end()
    print(json.dumps({"tokens": list(tokens.values()), "discarded": discarded}), flush=True)
consumer.close()
