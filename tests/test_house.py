"""The rooms of the house: what a file may import, and how much a folder holds.

The rooms are in order: a room knows those before it. Imports inside of functions count, and those for types alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "combdiff"
GROUND = ("errors", "boundary", "resources", "optional", "budget", "shown", "records")
ROOMS = (
    "terms",
    "canon",
    "language",
    "meaning",
    "calculus",
    "simplify",
    "arrays",
    "gate",
    "emit",
    "notation",
    "pictures",
    "run",
)
FACE = len(ROOMS) + 1
"""The files of the package itself, and `jupyter`: they may know everything."""

MOST_FILES = 16

LATE = {
    # plans print themselves
    "arrays.plan": {"arrays.liveness", "arrays.text"},
    # a Derivation is derived once more when a second derivative is asked for, or code for an equivalent program
    "derivation": {"deriving.derive", "deriving.runnable"},
}
"""Imports inside of functions that would close a circle at the top of their file, with the reasons for them."""


def modules(package: Path) -> dict[str, Path]:
    """The files of a package by their dotted names without the package's; `__init__` stands for its folder."""
    found = {path.relative_to(package).with_suffix(""): path for path in package.rglob("*.py")}
    return {".".join(p for p in name.parts if p != "__init__"): path for name, path in found.items()}


def level(module: str) -> int:
    """How high the room of a module is: 0 on the ground."""
    room, *inside = module.split(".")
    if not inside and room in GROUND:
        return 0
    return ROOMS.index(room) + 1 if room in ROOMS else FACE


@cache
def parsed(path: Path, text: str) -> ast.Module:
    """The syntax tree of a file, read once for all tests."""
    return ast.parse(text, filename=str(path))


def imports(path: Path, package: Path, known: Collection[str], *, at_once: bool = False) -> Iterator[tuple[str, int]]:
    """The `known` modules that a file imports, with the lines; `at_once`: only those that it needs to be imported."""
    tree = parsed(path, path.read_text(encoding="utf-8"))
    for node in tree.body if at_once else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == package.name:
            base = ".".join(node.module.split(".")[1:])
            for alias in node.names:
                inside = f"{base}.{alias.name}".lstrip(".")
                yield (inside if inside in known else base), node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == package.name:
                    yield alias.name.partition(".")[2], node.lineno


def upwards(package: Path) -> list[str]:
    """The imports that point to a higher room."""
    known = modules(package)
    return [
        f"{module}, line {line}: {target}"
        for module, path in known.items()
        for target, line in imports(path, package, known)
        if level(target) > level(module)
    ]


def circle(package: Path) -> list[str]:
    """Modules that import one another, if there are such."""
    known = modules(package)
    graph = {
        module: {target for target, _ in imports(path, package, known, at_once=True)} - {module}
        for module, path in known.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.slow
def test_no_import_points_upwards() -> None:
    assert upwards(PACKAGE) == []


@pytest.mark.slow
def test_no_modules_import_one_another() -> None:
    assert circle(PACKAGE) == []


def late_circles(package: Path) -> dict[str, set[str]]:
    """The imports inside of functions, by module, whose target imports the module; those for types do not count."""
    known = modules(package)
    graph = {m: {t for t, _ in run_imports(path, package, known)} & known.keys() - {m} for m, path in known.items()}
    found: dict[str, set[str]] = {}
    for module, path in known.items():
        for target in graph[module] - {t for t, _ in imports(path, package, known, at_once=True)}:
            if module in reached(target, graph):
                found.setdefault(module, set()).add(target)
    return found


def run_imports(path: Path, package: Path, known: Collection[str]) -> Iterator[tuple[str, int]]:
    """The imports that a program may run, inside of functions too: all but those under `if TYPE_CHECKING`."""
    lines = {
        line
        for node in ast.walk(parsed(path, path.read_text(encoding="utf-8")))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    yield from ((target, line) for target, line in imports(path, package, known) if line not in lines)


def reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    """The modules that `start` imports, and those that these import, itself among them."""
    found, open_ = {start}, [start]
    while open_:
        new = graph[open_.pop()] - found
        found |= new
        open_ += new
    return found


@pytest.mark.slow
def test_only_circles_with_a_reason_hide_in_functions() -> None:
    assert late_circles(PACKAGE) == LATE


@pytest.mark.parametrize("folder", sorted({path.parent for path in PACKAGE.rglob("*.py")}), ids=lambda p: p.name)
def test_a_folder_holds_what_can_be_overlooked(folder: Path) -> None:
    assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= MOST_FILES


def test_every_room_is_there() -> None:
    assert {module.split(".")[0] for module in modules(PACKAGE) if level(module) < FACE} == {*ROOMS, *GROUND}


def test_the_picture_shows_the_rooms_in_their_order() -> None:
    picture = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").split("```text\n")[1].split("\n\n")[0]
    shown = [folder for line in picture.splitlines() for folder in re.findall(r"(\w+)/", line[:38])]
    assert [folder for folder in shown if folder in ROOMS] == [*reversed(ROOMS)]
    assert {*shown} <= {path.name for path in PACKAGE.rglob("*") if path.is_dir()}


def test_an_import_that_points_upwards_is_seen(tmp_path: Path) -> None:
    for_types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import house.run\n"
    for room, text in {
        "terms": "def f():\n    from house.emit import writer\n",
        "emit": f"from house.terms import inside\n{for_types}",
        "run": "",
    }.items():
        (tmp_path / "house" / room).mkdir(parents=True)
        (tmp_path / "house" / room / "inside.py").write_text(text)
    (tmp_path / "house" / "emit" / "writer.py").write_text("from house.emit.inside import x\n")
    (tmp_path / "house" / "run" / "__init__.py").write_text("")
    found = upwards(tmp_path / "house")
    assert sorted(found) == ["emit.inside, line 4: run", "terms.inside, line 2: emit.writer"]
    assert circle(tmp_path / "house") == []
    (tmp_path / "house" / "terms" / "inside.py").write_text("from house.emit.writer import y\n")
    assert {"terms.inside", "emit.writer"} <= set(circle(tmp_path / "house"))
    (tmp_path / "house" / "terms" / "inside.py").write_text("def f():\n    from house.emit.writer import y\n")
    (tmp_path / "house" / "emit" / "inside.py").write_text("from house.terms import inside\n")
    assert circle(tmp_path / "house") == []
    assert late_circles(tmp_path / "house") == {"terms.inside": {"emit.writer"}}
    (tmp_path / "house" / "terms" / "inside.py").write_text(for_types.replace("house.run", "house.emit.writer"))
    assert late_circles(tmp_path / "house") == {}
