"""A mutant: one file of the project with one fault in it, and the tests that are to notice."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class StaleError(Exception):
    """A mutant does not fit the code any more: what it replaces is not there, or is there twice."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """`name` says which law, row or rule is broken and how; `text` is the whole file with the fault in it.

    `tests` are run in their order, up to the first failure: what notices most faults, and soonest, stands first.
    """

    name: str
    file: str
    text: str
    tests: tuple[str, ...]


@cache
def source(file: str) -> str:
    """The text of a file of the project."""
    return (ROOT / file).read_text(encoding="utf-8")


def inside(file: str, scope: str, old: str, new: str) -> str:
    """The text of `file` with `old` replaced inside the function, class or assignment `scope` ("Class.method").

    >>> "subtract" in inside("combdiff/calculus/primitives.py", "multiply", "mul(conj(by), k)", "subtract")
    True
    """
    text = source(file)
    first, last = _lines_of(_tree(file), scope, file)
    lines = text.splitlines(keepends=True)
    part = "".join(lines[first - 1 : last])
    if part.count(old) != 1:
        raise StaleError(f"{file}, {scope}: {old!r} is there {part.count(old)} times, not once")
    return "".join([*lines[: first - 1], part.replace(old, new), *lines[last:]])


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse(source(file))


def _lines_of(tree: ast.AST, scope: str, file: str) -> tuple[int, int]:
    """The first and the last line of a definition."""
    for name in scope.split("."):
        found = next((node for node in ast.iter_child_nodes(tree) if name in _names(node)), None)
        if found is None:
            raise StaleError(f"{file} has no {scope}")
        tree = found
    assert isinstance(tree, ast.stmt)
    return tree.lineno, tree.end_lineno or tree.lineno


def _names(node: ast.AST) -> list[str]:
    """What a statement defines."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign():
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name() as target):
            return [target.id]
        case _:
            return []
