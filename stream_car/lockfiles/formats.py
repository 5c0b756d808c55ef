"""The lockfiles and bills of material that can be read: which is which, by its name or its content."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from stream_car.lockfiles.dependencies import Dependencies, DependencyFile, joined, unreadable
from stream_car.lockfiles.lines import read_go_sum, read_requirements
from stream_car.lockfiles.npm import read_package_lock
from stream_car.lockfiles.sboms import read_json_sbom, read_xml_sbom
from stream_car.lockfiles.toml_locks import read_toml_lock

LOCKFILES: Mapping[str, Callable[[DependencyFile], Dependencies]] = {
    "package-lock.json": read_package_lock,
    "npm-shrinkwrap.json": read_package_lock,
    "poetry.lock": partial(read_toml_lock, kind="pypi"),
    "uv.lock": partial(read_toml_lock, kind="pypi"),
    "Cargo.lock": partial(read_toml_lock, kind="cargo"),
    "go.sum": read_go_sum,
}


def read_dependencies(files: Sequence[DependencyFile]) -> Dependencies:
    """Return the packages that files list together.

    Raises:
        InvalidRequest: a file cannot be read, or refers to another one that is not among them (`files`).
    """
    parts = [_read_whole(file) for file in files]
    names = {_base(file.name) for file in files}
    for file, part in zip(files, parts, strict=True):
        for include in part.includes:
            if _base(include) not in names:
                raise unreadable(file, f"it includes {include}. Give that file as well, or the output of `pip freeze`.")
    return joined(parts)


def _read_whole(file: DependencyFile) -> Dependencies:
    try:
        return _read(file)
    except ValueError as error:  # a package without a name has no purl
        raise unreadable(file, str(error)) from None


def _read(file: DependencyFile) -> Dependencies:
    name, start = _base(file.name), file.text.lstrip("\ufeff \t\r\n")[:1]
    if name in LOCKFILES:
        return LOCKFILES[name](file)
    if name.endswith(".txt"):
        return read_requirements(file)
    if start == "<":
        return read_xml_sbom(file)
    sbom = read_json_sbom(file) if start == "{" else None
    if sbom is not None:
        return sbom
    if '"lockfileVersion"' in file.text:
        return read_package_lock(file)
    known = ", ".join((*LOCKFILES, "requirements.txt"))
    raise unreadable(file, f"its format is not known. Known are {known}, CycloneDX (JSON, XML) and SPDX (JSON).")


def _base(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2]
