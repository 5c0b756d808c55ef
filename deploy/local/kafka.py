"""Apache Kafka in KRaft mode from its published jars: one node that is broker and controller.

Promise: settings are those of `deploy/kafka/server.properties`; ready in seconds, with a small heap;
acknowledged records survive a kill and a new start in the same folder. Its jars lie in the user's cache:
`python -m deploy.local fetch` puts them there.
"""

import base64
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from deploy.local.processes import Failed, Process, Server, free_ports

VERSION = "4.3.0"
START_S = 60.0
SETTINGS = Path(__file__).parents[1] / "kafka" / "server.properties"
_POM = Path(__file__).with_name("pom.xml")
_LOG4J = Path(__file__).with_name("log4j.properties")  # for 3.9, which still has it
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_JAVA = ("-Xms96m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_READY = "Kafka Server started"


def jars(version: str = VERSION) -> Path:
    """The folder of this version's jars, whether it is there or not."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "stream-car" / f"kafka-{version}"


def lacking(version: str = VERSION) -> str | None:
    """What is missing to run this version, or `None`."""
    if shutil.which("java") is None:
        return "java is not installed"
    return None if jars(version).is_dir() else f"the jars of Kafka {version} are not here"


def fetch(version: str = VERSION) -> Path:
    """Put the jars of this version into the cache (about 45 MB), with Maven."""
    target = jars(version)
    if not target.is_dir():
        part = target.with_name(f"{target.name}.{os.getpid()}")
        logging = "slf4j-reload4j" if version.startswith("3.") else "slf4j-simple"
        arguments = [f"-Dkafka.version={version}", f"-Dlogging={logging}", _COPY, f"-DoutputDirectory={part}"]
        subprocess.run(["mvn", "-B", "-q", "-f", str(_POM), *arguments], check=True)
        part.rename(target)
    return target


def said(settings: Path) -> dict[str, str]:
    """The lines of a file of settings, by name."""
    lines = settings.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


class Kafka(Server):
    """One broker in `folder`. `start` may be called again after `stop` or `kill`; the port stays.

    `protocol` and `properties` are for tests of encryption and passwords: the listener's security
    protocol, and further lines of `server.properties`.
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
        """Run it; returns when it serves. Raises `Failed`."""
        missing = lacking(self._version)
        if missing:
            raise Failed(f"{missing}; `make servers` installs what is needed")
        settings = self.folder / "server.properties"
        if not settings.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            settings.write_text("".join(f"{name}={value}\n" for name, value in self._settings().items()))
            self._format(settings)
        log = self.folder / "log"
        behind = log.stat().st_size if log.exists() else 0
        self._process = Process([*self._java(), "kafka.Kafka", str(settings)], self.folder)

        def is_ready() -> bool:
            with log.open("rb") as stream:
                stream.seek(behind)
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
            done = subprocess.run(command, check=False, stdout=log, stderr=subprocess.STDOUT)
        if done.returncode:
            raise Failed(f"Kafka's folder cannot be prepared, see {log.name}")

    def _settings(self) -> dict[str, str]:
        """Those of `deploy/kafka/server.properties`, but small, in this folder and on these ports."""
        return {
            **said(SETTINGS),
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "listeners": f"CLIENTS://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller}",
            "advertised.listeners": f"CLIENTS://127.0.0.1:{self.port}",
            "listener.security.protocol.map": f"CLIENTS:{self._protocol},CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
            "offsets.topic.num.partitions": "4",
            "broker.session.timeout.ms": "1500",  # how long a killed broker is waited for when it is back
            "broker.heartbeat.interval.ms": "400",
            "log.cleaner.dedupe.buffer.size": "2097152",
            **self._properties,
        }
