"""Whether the files of a text index are whole. Promise: changes nothing. Cost: reads the files."""

from collections.abc import Callable
from pathlib import Path

from stream_car.adapters.database import find_fault
from stream_car.adapters.search.checksums import is_intact
from stream_car.adapters.search.schema import FORMAT
from stream_car.adapters.search.scope_names import find_names_fault
from stream_car.files.seals import Verdict, compare_with_seal

FILES = ("scopes.sqlite", "analysed.sqlite")
META = ("meta.json", ".managed.json")  # of tantivy's files, those without a checksum of their own


def find_index_fault(folder: Path) -> str:
    """Return what is wrong with the files of an index that is not open, as a sentence, or an empty string."""
    words = folder / "tantivy"
    for name in FILES:
        if not (folder / name).exists():
            return f"The file {name} is missing."
        find = find_names_fault if name == "scopes.sqlite" else find_fault
        if fault := find(folder / name, compare_with_seal(folder / name)):
            return f"The file {name} {fault}."
    if not are_words_whole(words, compare_with_seal):
        return "Its files are missing or have been changed."
    if not (folder / "format").is_file() or not (folder / "format").read_text("utf-8", "replace").startswith(FORMAT):
        return "It has another format."
    return ""


def are_words_whole(words: Path, compare: Callable[[Path], Verdict]) -> bool:
    """Return whether tantivy's files in a folder are whole and unchanged."""
    verdicts = [compare(words / name) for name in META]
    return "changed" not in verdicts and is_intact(words)
