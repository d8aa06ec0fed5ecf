"""What the project promises about itself: light imports, short functions, reasoned laws, a true README."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "combdiff").rglob("*.py"))
LAWS = sorted((ROOT / "rules").glob("*.egg"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
HEAVY = ("cupy", "dask", "egglog", "jax", "lark", "sympy", "torch")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LONGEST_FUNCTION, MOST_NAMES = 40, 20


def blocks(language: str) -> list[str]:
    """The README's code in `language`, block by block."""
    return [code for name, code in FENCE.findall(README) if name == language]


def commands() -> Iterator[str]:
    """The README's shell commands, one a line, continued lines joined."""
    for block in blocks("sh"):
        yield from (line for line in block.replace("\\\n", " ").splitlines() if line and not line.startswith("#"))


def command_lines() -> list[tuple[str, ...]]:
    """The arguments of every `combdiff …` in the README's shell commands."""
    steps = (shlex.split(step) for line in commands() for step in line.split("&&"))
    return sorted({tuple(step[1:]) for step in steps if Path(step[0]).name == "combdiff"})


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path.relative_to(ROOT)))


def long_functions(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {length} lines"


def fresh_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_takes_no_heavy_library() -> None:
    loaded = set(fresh_python("import sys, combdiff; print(*sys.modules)").split())
    assert "combdiff" in loaded
    assert sorted(loaded & set(HEAVY)) == []


@pytest.mark.slow
def test_the_first_formula_takes_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    """What code, pictures and SymPy need is read later; a formula that was found before needs hardly anything."""
    once = (
        f"import os, sys; os.environ['XDG_CACHE_HOME'] = {str(tmp_path)!r}; from combdiff.command.cli import main; "
        "main(['grad', '-e', '(x::RV) -> sum(i, x(i)^2)', '-o', os.devnull]); print(*sys.modules)"
    )
    first, again = ({*fresh_python(once).split()} for _ in range(2))
    assert "combdiff.gate.gate" in first
    assert first.isdisjoint(("sympy", "scipy", "opt_einsum", "egglog", "combdiff.arrays.plan", "combdiff.emit.emit"))
    assert "combdiff.language.printing.printer" in again
    assert again.isdisjoint(("numpy", "lark", "egglog.bindings", "combdiff.calculus.modes", "combdiff.gate.gate"))


def test_few_names_are_public_and_all_exist() -> None:
    import combdiff

    assert 0 < len(combdiff.__all__) <= MOST_NAMES
    assert [name for name in combdiff.__all__ if not hasattr(combdiff, name)] == []


@pytest.mark.slow
def test_no_function_is_long() -> None:
    assert [line for path in SOURCES for line in long_functions(path)] == []


@pytest.mark.slow
def test_every_module_says_what_it_is_for() -> None:
    trees = {path: parsed(path) for path in SOURCES}
    assert [str(path.relative_to(ROOT)) for path, tree in trees.items() if not ast.get_docstring(tree)] == []


@pytest.mark.parametrize("path", LAWS, ids=lambda path: path.name)
def test_a_file_of_laws_says_why_it_terminates(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    end = next((n for n, line in enumerate(lines) if not line.startswith(";")), len(lines))
    assert re.search(r"\bterminates\b", "\n".join(lines[:end]), re.IGNORECASE)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", command_lines(), ids=" ".join)
def test_a_command_of_the_readme_runs(arguments: tuple[str, ...]) -> None:
    code = f"import sys; sys.argv = {['combdiff', *arguments]!r}; from combdiff import __main__"
    assert fresh_python(code).strip()


@pytest.mark.slow
def test_the_tests_are_read_without_optional_libraries() -> None:
    """The README's test command installs none of them."""
    found = [
        f"{path.relative_to(ROOT)}, line {node.lineno}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in parsed(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
        if name.partition(".")[0] in ("jax", "torch", "dask", "cupy", "cotengra")
    ]
    assert not found


def test_continuous_integration_runs_the_test_command_of_the_readme() -> None:
    (command,) = [line for line in commands() if "pytest" in line]
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
