"""A real Kafka and a real Redis for tests and experiments, on a machine without containers.

Promise: each server runs in its own folder on free ports, answers when `start` returns, and ends with the process that
started it, even if that process is killed. Logs stay until the folder is removed. Standard library only.
"""

from deploy.local.kafka import Kafka
from deploy.local.processes import StartFailed
from deploy.local.redis import Redis, RedisCluster

__all__ = ["Kafka", "Redis", "RedisCluster", "StartFailed"]
