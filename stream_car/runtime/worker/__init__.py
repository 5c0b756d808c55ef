"""Workers: processes that keep shards of both hops moving, as many as there are partitions to share."""
