"""Copy a topic of documents to another one, which may have another number of partitions.

Keys, values and headers stay as they are. Records that a worker forwarded are left out, because their originals are in
the topic too. Whatever was there when the copy began is copied; a second copy changes no answer.

Usage: python copy_documents.py HOST:PORT FROM_TOPIC TO_TOPIC
"""

import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

FORWARDED = "stream-car-rerouted"


def copy(servers: str, source: str, target: str) -> int:
    """Copy, and return how many records were copied."""
    consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False)
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    count = 0
    for number in sorted(consumer.partitions_for_topic(source) or ()):
        partition = TopicPartition(source, number)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end = consumer.end_offsets([partition])[partition]
        while consumer.position(partition) < end:
            for record in consumer.poll(timeout_ms=1000).get(partition, ()):
                if record.offset < end and FORWARDED not in dict(record.headers):
                    producer.send(target, key=record.key, value=record.value, headers=list(record.headers))
                    count += 1
    producer.flush()
    producer.close()
    consumer.close()
    return count


if __name__ == "__main__":
    print(f"{copy(*sys.argv[1:4]):,} records are copied.")
