"""A real Kafka and a real Redis for tests and for trying out, on a machine without containers.

Promise: each server runs in a folder of its own on free ports, answers when `start` returns, and ends
with whoever started it, however that ends. Logs stay until the folder is removed. Standard library only.
"""

from deploy.local.kafka import Kafka
from deploy.local.processes import Failed
from deploy.local.redis import Redis, RedisCluster

__all__ = ["Failed", "Kafka", "Redis", "RedisCluster"]
