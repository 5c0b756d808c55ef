"""The log, the journal and the publisher on Apache Kafka, and its topics."""
