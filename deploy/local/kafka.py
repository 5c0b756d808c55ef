"""Apache Kafka in KRaft mode from its published jars: one node that is broker and controller.

Promise: it uses the settings of `deploy/kafka/server.properties` with a small heap and is ready in seconds.
Acknowledged records survive a kill and a restart in the same folder. The jars are in the user's cache;
`python -m deploy.local fetch` downloads them.
"""

import base64
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from deploy.local.processes import Process, Server, StartFailed, free_ports

VERSION = "4.3.0"
START_S = 60.0
SETTINGS = Path(__file__).parents[1] / "kafka" / "server.properties"
_POM = Path(__file__).with_name("pom.xml")
_LOG4J = Path(__file__).with_name("log4j.properties")  # for Kafka 3.9, which still uses it
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_JAVA = ("-Xms96m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_READY = "Kafka Server started"


def jars(version: str = VERSION) -> Path:
    """Return the folder for the jars of this version; it may not exist."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "stream-car" / f"kafka-{version}"


def missing_requirement(version: str = VERSION) -> str | None:
    """Say what is missing to run this version; return `None` if nothing is."""
    if shutil.which("java") is None:
        return "Java is not installed"
    return None if jars(version).is_dir() else f"The jars of Kafka {version} are not installed"


def fetch(version: str = VERSION) -> Path:
    """Download the jars of this version into the cache (about 45 MB) with Maven; return their folder."""
    target = jars(version)
    if not target.is_dir():
        partial = target.with_name(f"{target.name}.{os.getpid()}")
        logging = "slf4j-reload4j" if version.startswith("3.") else "slf4j-simple"
        arguments = [f"-Dkafka.version={version}", f"-Dlogging={logging}", _COPY, f"-DoutputDirectory={partial}"]
        subprocess.run(["mvn", "-B", "-q", "-f", str(_POM), *arguments], check=True)
        partial.rename(target)
    return target


def read_properties(file: Path) -> dict[str, str]:
    """Read the settings of a properties file, by name."""
    lines = file.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


class Kafka(Server):
    """One broker in `folder`. `start` may be called again after `stop` or `kill`; the port stays the same.

    `protocol` and `properties` are for tests of encryption and passwords: the listener's security protocol, and
    additional lines of `server.properties`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        version: str = VERSION,
        protocol: str = "PLAINTEXT",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        port, self._controller = free_ports(2)
        super().__init__(folder, port)
        self._protocol = protocol
        self._jars = jars(version)
        self._version = version
        self._properties = dict(properties or {})

    def start(self) -> None:
        """Start the broker and return when it serves.

        Raises:
            StartFailed: it cannot be started, or it ended.
        """
        missing = missing_requirement(self._version)
        if missing:
            raise StartFailed(f"{missing}. Run `make servers` to install it.")
        settings = self.folder / "server.properties"
        if not settings.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            settings.write_text("".join(f"{name}={value}\n" for name, value in self._settings().items()))
            self._format(settings)
        log = self.folder / "log"
        previous_size = log.stat().st_size if log.exists() else 0
        self._process = Process([*self._java(), "kafka.Kafka", str(settings)], self.folder)

        def is_ready() -> bool:
            with log.open("rb") as stream:
                stream.seek(previous_size)
                return _READY.encode() in stream.read()

        self._process.wait_until(is_ready, timeout=START_S)

    def _java(self) -> list[str]:
        java = shutil.which("java") or "java"
        logging = ("-Dorg.slf4j.simpleLogger.logFile=System.out", f"-Dlog4j.configuration=file:{_LOG4J}")
        return [java, *_JAVA, *logging, "-cp", f"{self._jars}/*"]

    def _format(self, settings: Path) -> None:
        name = base64.urlsafe_b64encode(uuid.uuid5(uuid.NAMESPACE_OID, str(self.folder)).bytes).decode().rstrip("=")
        cluster = "A" + name[1:]  # a leading dash would read as an option
        command = [*self._java(), "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
        with (self.folder / "log").open("ab") as log:
            finished = subprocess.run(command, check=False, stdout=log, stderr=subprocess.STDOUT)
        if finished.returncode:
            raise StartFailed(f"Cannot prepare Kafka's folder. See {log.name}.")

    def _settings(self) -> dict[str, str]:
        """Return the settings of `deploy/kafka/server.properties`, but small, for this folder and these ports."""
        return {
            **read_properties(SETTINGS),
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "listeners": f"CLIENTS://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller}",
            "advertised.listeners": f"CLIENTS://127.0.0.1:{self.port}",
            "listener.security.protocol.map": f"CLIENTS:{self._protocol},CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
            "offsets.topic.num.partitions": "4",
            "broker.session.timeout.ms": "1500",  # a restarted broker waits this long for the session of the killed one
            "broker.heartbeat.interval.ms": "400",
            "log.cleaner.dedupe.buffer.size": "2097152",
            **self._properties,
        }
