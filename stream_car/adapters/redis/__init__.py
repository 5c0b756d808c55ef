"""State in Redis or Redis Cluster: one hash per shard."""
