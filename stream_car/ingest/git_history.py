"""The history of a feed's git repository: which files changed in which commit, oldest first.

Promise: git reads only the objects of the repository, through an empty repository of its own. So no configuration,
hook, filter or helper of the repository counts, nothing is fetched, and nothing is asked. The commits are those of the
first parents, which is what the branch itself showed. Their times never go back. Cost: git's; one file in memory.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from msgspec import Struct

from stream_car.codec.times import LATEST
from stream_car.errors import InvalidRequest
from stream_car.feeds.fields import PIECE_MAX
from stream_car.ingest.files import InputFile

SECOND = 1_000_000  # microseconds
REGULAR_FILES = ("100644", "100755")
CHUNK = 1 << 16  # bytes


class GitInput(InputFile, frozen=True, gc=False):
    """A repository as an input. `paths` are the folders and files of it that belong to the feed; none means all."""

    paths: tuple[str, ...] = ()


class ChangedFile(Struct, frozen=True, gc=False):
    """A file that a commit added or changed. Its content is `None` if it is larger than a piece may be.

    `number` counts the commits from 1. `time` is that of the commit in microseconds, or of an earlier one if that is
    later, or if the commit is dated after the year 9999.
    """

    commit: str
    number: int
    time: int
    path: str
    content: bytes | None


def git_input(name: str, paths: Sequence[str]) -> GitInput:
    """Return a repository as an input of a feed.

    Raises:
        InvalidRequest: it is not a repository on this machine with a whole history, or git is missing (`source`).
    """
    if name.startswith("-"):
        raise InvalidRequest("source", f"The repository {name!r} begins with a dash. Write ./{name} if it is a folder.")
    if "::" in name or "://" in name:
        raise InvalidRequest("source", f"{name!r} is an address. Clone it with git first, and give the folder.")
    folder = Path(name).resolve()
    if not folder.is_dir():
        raise InvalidRequest("source", f"There is no folder {name}. Give a git repository, bare or not.")
    for path in paths:
        if path.startswith(("-", ":", "/")) or ".." in Path(path).parts:
            raise InvalidRequest("source", f"{path!r} must be a path inside the repository, such as advisories/2024.")
    repository = GitInput(f"git:{folder}{_suffix(paths)}", name, tuple(paths))
    with opened(repository):
        return repository


def _suffix(paths: Sequence[str]) -> str:
    return "".join(f":{path}" for path in paths)


def folder_of(repository: GitInput) -> Path:
    """Return the folder of a repository."""
    return Path(repository.name.removeprefix("git:").removesuffix(_suffix(repository.paths)))


def tip_of(repository: GitInput) -> str:
    """Return the name of the last commit."""
    return _output(["rev-parse", "--verify", "HEAD^{commit}"], folder_of(repository), repository.shown).strip()


@contextmanager
def opened(repository: GitInput) -> Iterator["RepositoryHistory"]:
    """Open the history of a repository as it is now. Raises `InvalidRequest` (`source`)."""
    folder, shown = folder_of(repository), repository.shown
    questions = ("--path-format=absolute", "--git-path", "objects", "--is-shallow-repository", "--show-object-format")
    objects, is_shallow, form = _output(["rev-parse", *questions], folder, shown).splitlines()
    if is_shallow == "true":
        cure = "Complete it with `git fetch --unshallow`."
        raise InvalidRequest("source", f"{shown} is a shallow clone, so its history is missing. {cure}")
    tip = tip_of(repository)
    with tempfile.TemporaryDirectory(prefix="stream-car-") as empty:
        options = ("--quiet", "--bare", "--template=", f"--object-format={form}")
        _output(["init", *options, "."], Path(empty), "A new repository")
        yield RepositoryHistory(Path(empty), objects, tip, repository)


class RepositoryHistory:
    """The commits of a repository up to `tip`, which are on its branch."""

    def __init__(self, empty: Path, objects: str, tip: str, repository: GitInput) -> None:
        self.tip = tip
        self._empty = empty
        self._environment = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(objects)}
        self._shown = repository.shown
        self._paths = ("--", *(f":(literal){path}" for path in repository.paths)) if repository.paths else ()

    def has(self, commit: str) -> bool:
        """Return whether a commit is on the branch."""
        return commit in self._run("rev-list", "--first-parent", self.tip).split()

    def count(self, after: str = "") -> int:
        """Return the number of commits that changed something, after a commit or from the beginning."""
        return int(self._run("rev-list", "--first-parent", "--count", self._range(after), *self._paths))

    def changes(self, suffixes: Sequence[str], after: str = "") -> Iterator[ChangedFile]:
        """Yield the files with these suffixes that each commit added or changed, oldest first, after a commit.

        Hidden files and folders are left out, and so are links and what was removed.
        """
        earlier = self._run("log", "--first-parent", "--format=%ct", after).split() if after else []
        time = 0
        for seconds in reversed(earlier):
            time = _later(time, seconds)
        commit, number = "", 0
        raw = ("-m", "--root", "--raw", "-z", "--no-renames", "--no-abbrev", "--diff-filter=AMT", "--no-ext-diff")
        log = ("log", "--first-parent", "--reverse", *raw, "--format=%x01%H %ct", self._range(after), *self._paths)
        with self._open(*log) as listing, self._open("cat-file", "--batch") as blobs:
            words = _split(listing.stdout)
            for word in words:
                if word.startswith(b"\x01"):
                    commit, seconds = word[1:].decode().split()
                    number, time = number + 1, _later(time, seconds)
                elif word.strip():
                    _, mode, _, blob, _ = word.strip().decode().split()
                    path = next(words).decode("utf-8", "backslashreplace")
                    is_hidden = any(part.startswith(".") for part in path.split("/"))
                    if mode in REGULAR_FILES and path.endswith(tuple(suffixes)) and not is_hidden:
                        yield ChangedFile(commit, number, time, path, _read_blob(blobs, blob, self._shown))
            if listing.wait():
                raise _unreadable(self._shown, "its history has gaps")

    def _range(self, after: str) -> str:
        return f"{after}..{self.tip}" if after else self.tip

    def _run(self, *arguments: str) -> str:
        return _output(arguments, self._empty, self._shown, self._environment)

    @contextmanager
    def _open(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(
            _command(arguments),
            cwd=self._empty,
            env=_environment(self._environment, self._empty),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def _later(time: int, seconds: str) -> int:
    """Return the time of a commit, or that of the one before if that is later or no document may have this time."""
    own = int(seconds) * SECOND
    return max(time, own) if own <= LATEST else time


def _quoted(folder: str) -> str:
    """Return a folder as an entry of a list that git separates with colons."""
    escaped = folder.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _read_blob(blobs: subprocess.Popen[bytes], name: str, shown: str) -> bytes | None:
    """Return the content of a file, or `None` if it is too large."""
    assert blobs.stdin is not None
    assert blobs.stdout is not None
    blobs.stdin.write(f"{name}\n".encode())
    blobs.stdin.flush()
    header = blobs.stdout.readline().split()
    if len(header) != 3:
        raise _unreadable(shown, f"the file {name} is missing. Was it cloned with --filter? Clone it without")
    size = int(header[2])
    if size > PIECE_MAX:
        for start in range(0, size, CHUNK):
            blobs.stdout.read(min(CHUNK, size - start))
    content = blobs.stdout.read(size) if size <= PIECE_MAX else None
    blobs.stdout.read(1)
    return content


def _split(stream: IO[bytes] | None) -> Iterator[bytes]:
    """Yield what NUL characters separate."""
    assert stream is not None
    rest = b""
    while data := stream.read(CHUNK):
        *words, rest = (rest + data).split(b"\0")
        yield from words
    if rest:
        yield rest


def _output(arguments: Sequence[str], folder: Path, shown: str, more: Mapping[str, str] | None = None) -> str:
    """Return what git prints. Raises `InvalidRequest` (`source`)."""
    try:
        ran = subprocess.run(
            _command(arguments), cwd=folder, env=_environment(more or {}, folder), capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise InvalidRequest("source", "The command `git` was not found. Install git.") from error
    if ran.returncode:
        errors = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        raise _unreadable(shown, errors[-1] if errors else f"git ended with the exit code {ran.returncode}")
    return ran.stdout.decode("utf-8", "replace")


def _unreadable(shown: str, reason: str) -> InvalidRequest:
    return InvalidRequest("source", f"{shown} cannot be read as a git repository: {reason.rstrip('.')}.")


def _command(arguments: Sequence[str]) -> list[str]:
    """Return a command that obeys no configuration of a repository that could run a program, and asks nothing."""
    settings = ("safe.directory=*", "protocol.allow=never", "core.fsmonitor=false", "log.showSignature=false")
    given = [word for setting in settings for word in ("-c", setting)]
    return ["git", "--no-pager", "--no-replace-objects", *given, *arguments]


def _environment(more: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the environment in which git reads the repository in this folder, and never one around it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    fixed = {
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_DIR": str(folder / ".git" if (folder / ".git").exists() else folder),
    }
    return {**own, **fixed, **more}
