"""Redis from the system's package: one server, or a cluster of three, in folders of their own.

Promise: settings are those of `deploy/redis/redis.conf`; state survives a kill and a new start in the same
folder.
"""

import shutil
import socket
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from deploy.local.processes import Failed, Process, Server, free_ports

START_S = 15.0
CLUSTER_S = 30.0
SETTINGS = Path(__file__).parents[1] / "redis" / "redis.conf"


def lacking() -> str | None:
    """What is missing to run it, or `None`."""
    return None if shutil.which("redis-server") else "redis-server is not installed"


class Redis(Server):
    """One server in `folder`. `start` may be called again after `stop` or `kill`; the port stays.

    `options` are further words of its command line; the last one said wins. `encrypted` serves TLS only.
    """

    def __init__(
        self, folder: Path, *, options: Sequence[str] = (), port: int | None = None, encrypted: bool = False
    ) -> None:
        super().__init__(folder, port if port is not None else free_ports(1)[0])
        self.options = tuple(options)
        self._encrypted = encrypted

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"{'rediss' if self._encrypted else 'redis'}://{self.address}"

    def start(self) -> None:
        """Run it; returns when it serves. Raises `Failed`."""
        if lacking():
            raise Failed(f"{lacking()}; `make servers` installs what is needed")
        self.folder.mkdir(parents=True, exist_ok=True)
        ports = ("--port", "0", "--tls-port") if self._encrypted else ("--port",)
        where = (*ports, str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder))
        self._process = Process(["redis-server", str(SETTINGS), *where, *self.options], self.folder)
        self._process.wait_until(self._answers, timeout=START_S)

    def wait_until(self, answers: Callable[[], bool], *, timeout: float) -> None:
        """Return when it answers. Raises `Failed` where it ends or stays silent."""
        assert self._process is not None
        self._process.wait_until(answers, timeout=timeout)

    def _answers(self) -> bool:
        if self._encrypted:
            return "Ready to accept connections" in self._log()
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

    def _log(self) -> str:
        assert self._process is not None
        return self._process.tail()


class RedisCluster:
    """Three masters without replicas: enough to see keys spread and redirections happen."""

    def __init__(self, folder: Path, *, options: Sequence[str] = ()) -> None:
        self.folder = folder
        words = ("--cluster-enabled", "yes", "--cluster-node-timeout", "5000", *options)
        ports = free_ports(6)
        self.nodes = [
            Redis(folder / str(n), port=ports[n], options=(*words, "--cluster-port", str(ports[n + 3])))
            for n in range(3)
        ]

    @property
    def url(self) -> str:
        """Where clients find one of the nodes."""
        return self.nodes[0].url

    def start(self) -> None:
        """Run all three and join them; returns when every slot is served. Raises `Failed`."""
        for node in self.nodes:
            node.start()
        command = ["redis-cli", "--cluster", "create", *(node.address for node in self.nodes), "--cluster-yes"]
        joined = subprocess.run(command, check=False, capture_output=True, text=True, timeout=CLUSTER_S)
        if joined.returncode:
            raise Failed(f"the nodes did not join:\n{joined.stdout}{joined.stderr}")
        for node in self.nodes:
            node.wait_until(partial(_is_whole, node), timeout=CLUSTER_S)

    def stop(self) -> None:
        """End all three in order."""
        for node in self.nodes:
            node.stop()

    def kill(self) -> None:
        """End all three at once."""
        for node in self.nodes:
            node.kill()


def _is_whole(node: Redis) -> bool:
    asked = ["redis-cli", "-p", str(node.port), "cluster", "info"]
    told = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=CLUSTER_S).stdout
    return "cluster_state:ok" in told
