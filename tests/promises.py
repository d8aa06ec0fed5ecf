"""What every derivation promises, whatever its construct: it is checked, it reads back, libraries compute the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

import combdiff as cd
from combdiff.arrays.plan import Argument
from combdiff.arrays.text import read, text
from combdiff.arrays.verify import verify
from combdiff.derivation import Derivation
from tests.emit.array_libraries import Numbers
from tests.reading_back import assert_reads_back


def assert_holds(d: Derivation, alike: bool = True) -> None:
    """The built-in check holds, the text and the text of the plan are read back, and the plan is sound.

    Stages and trees are compared with all sizes called n, which `alike` tells whether the program has a value for.
    """
    assert d.check()
    if alike:
        assert not any("not checked" in step.note for step in d.steps)
        assert_reads_back(d.term)
    plan = str(d.plan(ir=True))
    assert text(read(plan)).strip() == plan
    verify(read(plan))


@cache
def arguments_of(program: str) -> tuple[Argument, ...]:
    """The arguments of the gradient's code."""
    return tuple(cd.grad(program).compile().arguments)


def assert_libraries_agree(d: Derivation, backend: str, given: Sequence[Any]) -> None:
    """Value and derivative are those that NumPy computes."""
    library = Numbers(backend)
    theirs = d.compile(backend, value=True)(*map(library.to, given))
    for a, b in zip(d.compile(value=True)(*given), theirs, strict=True):
        np.testing.assert_allclose(library.back(b), a, rtol=1e-11, atol=1e-12)


def differences(f: Callable[..., Any], given: Sequence[Any], step: float = 1e-4) -> list[Any]:
    """The gradient of `f` by each argument: differences of fourth order, real and imaginary parts apart."""
    return [gradient_by(n, f, given, step) for n in range(len(given))]


def gradient_by(n: int, f: Callable[..., Any], given: Sequence[Any], step: float = 1e-4) -> Any:
    """The gradient of `f` by one argument, `n` counted as places of a list are."""
    x = np.asarray(given[n])
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        for unit in (1, 1j) if np.iscomplexobj(x) else (1,):
            low2, low, high, high2 = (f(*_moved(given, n, place, k * step * unit)) for k in (-2, -1, 1, 2))
            found[place] += unit * (low2 - 8 * low + 8 * high - high2) / (12 * step)
    return found


def _moved(given: Sequence[Any], n: int, place: tuple[int, ...], by: complex) -> list[Any]:
    moved = [*given]
    moved[n] = np.array(given[n])
    moved[n][place] += by
    return moved
