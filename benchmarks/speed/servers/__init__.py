"""Both hops on a real Kafka and a real Redis: `python -m benchmarks.speed.servers [DOCUMENTS]`.

Promise: servers and workers are processes of their own, with the shipped settings. Rates are wall-clock rates. The
processor time of every process per document is printed too, which other work on the machine hardly affects: two cores
divided by it is the rate that they can reach.
"""
