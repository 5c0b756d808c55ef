"""The log and the journal on Apache Kafka, and its topics."""
