"""Which names the files of the project define, read from their syntax trees."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class DefinedName(NamedTuple):
    """A name that a file defines. `scope_lines` are the lines of its comprehension; 0 if it is not the name of one."""

    name: str
    line: int
    scope_lines: int = 0


def defined_names(path: Path) -> Iterator[DefinedName]:
    """Yield each variable, parameter, attribute, function and class that a file defines, and the file's own name."""
    yield DefinedName(path.stem, 1)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    in_comprehension: dict[ast.AST, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, COMPREHENSIONS):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            targets = (target for part in node.generators for target in ast.walk(part.target))
            in_comprehension.update(dict.fromkeys(targets, lines))
    for node in ast.walk(tree):
        for name in _names_of(node):
            yield DefinedName(name, getattr(node, "lineno", 1), in_comprehension.get(node, 0))


def _names_of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name


def defined_classes(path: Path) -> list[str]:
    """Return the names of the classes at the top level of a file."""
    return [node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the dotted name of everything that a file imports: modules, and names as members of their module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
