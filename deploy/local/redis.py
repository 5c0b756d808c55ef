"""Redis from the system's package: one server, or a cluster of three, each in its own folder.

Promise: it uses the settings of `deploy/redis/redis.conf`. State survives a kill and a restart in the same folder.
"""

import shutil
import socket
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from deploy.local.processes import Process, Server, StartFailed, free_ports

START_S = 15.0
CLUSTER_S = 30.0
SETTINGS = Path(__file__).parents[1] / "redis" / "redis.conf"


def missing_requirement() -> str | None:
    """Say what is missing to run Redis; return `None` if nothing is."""
    return None if shutil.which("redis-server") else "redis-server is not installed"


class Redis(Server):
    """One server in `folder`. `start` may be called again after `stop` or `kill`; the port stays the same.

    `options` are additional words of its command line; of repeated ones the last counts. `encrypted` serves TLS only.
    """

    def __init__(
        self, folder: Path, *, options: Sequence[str] = (), port: int | None = None, encrypted: bool = False
    ) -> None:
        super().__init__(folder, port if port is not None else free_ports(1)[0])
        self.options = tuple(options)
        self._encrypted = encrypted

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"{'rediss' if self._encrypted else 'redis'}://{self.address}"

    def start(self) -> None:
        """Start the server and return when it serves.

        Raises:
            StartFailed: it cannot be started, or it ended.
        """
        missing = missing_requirement()
        if missing:
            raise StartFailed(f"{missing}. Run `make servers` to install it.")
        self.folder.mkdir(parents=True, exist_ok=True)
        ports = ("--port", "0", "--tls-port") if self._encrypted else ("--port",)
        placement = (*ports, str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder))
        self._process = Process(["redis-server", str(SETTINGS), *placement, *self.options], self.folder)
        self._process.wait_until(self._answers, timeout=START_S)

    def wait_until(self, answers: Callable[[], bool], *, timeout: float) -> None:
        """Wait until the server answers.

        Raises:
            StartFailed: it ended, or did not answer within `timeout` seconds.
        """
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
    """Three masters without replicas: enough to spread keys and to cause redirections."""

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
        """The URL of one of the nodes."""
        return self.nodes[0].url

    def start(self) -> None:
        """Start and join the nodes; return when every slot is served.

        Raises:
            StartFailed: a node cannot be started, or the nodes did not join.
        """
        for node in self.nodes:
            node.start()
        command = ["redis-cli", "--cluster", "create", *(node.address for node in self.nodes), "--cluster-yes"]
        joined = subprocess.run(command, check=False, capture_output=True, text=True, timeout=CLUSTER_S)
        if joined.returncode:
            raise StartFailed(f"The nodes did not join:\n{joined.stdout}{joined.stderr}")
        for node in self.nodes:
            node.wait_until(partial(_is_complete, node), timeout=CLUSTER_S)

    def stop(self) -> None:
        """Stop the nodes in an orderly way."""
        for node in self.nodes:
            node.stop()

    def kill(self) -> None:
        """Kill the nodes."""
        for node in self.nodes:
            node.kill()


def _is_complete(node: Redis) -> bool:
    command = ["redis-cli", "-p", str(node.port), "cluster", "info"]
    info = subprocess.run(command, check=False, capture_output=True, text=True, timeout=CLUSTER_S).stdout
    return "cluster_state:ok" in info
