"""Both hops on a real Kafka and a real Redis: `python -m benchmarks.speed.servers [DOCUMENTS]`.

Promise: servers and workers are processes of their own, with the settings that ship. Rates are of the clock on
the wall; beside them stands the processor's time of every process a document, which other work on the machine
hardly disturbs: two cores divided by it is the rate that they can reach.
"""
