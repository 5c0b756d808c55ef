"""Query workers: the service over HTTP on Kafka and Redis, as many processes as there are questions."""
