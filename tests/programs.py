"""The programs at hand: those of `examples/`, of the golden transcripts, of the documents, and of matrix forms.

What is claimed of printed results is tested for all of them.
"""

from __future__ import annotations

from functools import cache
from itertools import product as product_of
from pathlib import Path

import pytest

import combdiff as cd
from combdiff.derivation import Derivation
from tests.test_documents import MODES, SHOWN, name_of

ROOT = Path(__file__).parent.parent
SECTIONS = (ROOT / "tests" / "notation" / "matrix_programs.txt").read_text(encoding="utf-8").strip().split("\n\n# ")


def _with_forms() -> dict[str, tuple[str, str]]:
    """The programs of `matrix_programs.txt` by their titles, each with its matrix form (below a line `--`)."""
    found = {}
    for section in SECTIONS:
        title, rest = section.removeprefix("# ").split("\n", 1)
        program, form = rest.split("\n--\n")
        found[title] = program, form
    return found


WITH_FORMS = _with_forms()


def _all() -> dict[str, tuple[str, str]]:
    """Every program with the mode in which it is derived."""
    found = {f"matrix: {title}": (program, "gradient") for title, (program, _) in WITH_FORMS.items()}
    for folder in ("examples", "tests/golden"):
        for path in sorted((ROOT / folder).glob("*.cd")):
            mode = "pullback" if path.stem == "cotangents" else "gradient"
            found[f"{folder}: {path.stem}"] = path.read_text(encoding="utf-8"), mode
    for number, (path, program, kind, _) in enumerate(SHOWN):
        if kind != "message":
            found[f"{name_of(path)}: {number}"] = program, kind or "gradient"
    once = {program: name for name, program in reversed(found.items())}
    return {name: program for name, program in found.items() if once[program] == name}


PROGRAMS = _all()


@cache
def derived(name: str) -> Derivation:
    """The derivation of a program at hand."""
    text, mode = PROGRAMS[name]
    return MODES[mode](text)


@cache
def product(name: str) -> Derivation:
    """Its Hessian-vector product, for a program whose gradient is asked for."""
    return cd.hvp(PROGRAMS[name][0])


PRODUCTS = [name for name, (_, mode) in PROGRAMS.items() if mode == "gradient"]

EXAMPLES = sorted((ROOT / "examples").glob("*.cd"))
LONG = ("implicit", "cp_loss")
"""Examples whose Hessian products take long to derive."""


def every_example(*modes: str) -> list[object]:
    """Each example in each mode, as parameters of a test."""
    heavy = {(file, "hvp") for file in EXAMPLES if file.stem in LONG}
    return [
        pytest.param(file, mode, marks=[pytest.mark.slow] if (file, mode) in heavy else [], id=f"{file.stem}-{mode}")
        for file, mode in product_of(EXAMPLES, modes)
    ]
