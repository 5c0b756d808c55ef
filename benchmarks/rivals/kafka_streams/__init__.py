"""Both hops beside Kafka Streams: `python -m benchmarks.rivals.kafka_streams [DOCUMENTS]`.

Promise: two workers and the peer, a program of this folder, run on one broker. They take in the same documents in turn,
from topics with the same settings and partitions, through the same publisher. All are warm, and what runs is only what
is measured; the others wait. The peer must have the same active documents at the end, or the run fails.
"""
