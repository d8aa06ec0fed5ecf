"""One plan cost for all spellings of a program, for value, gradient and product with the Hessian.

A sample; `python -m tests.spellings` takes a thousand.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays.passes.contractions import sharing
from combdiff.language.parsing.parser import parse
from tests.emit.test_backends import arrays
from tests.spellings.costs import LOOSE, OPEN, PROGRAMS, WITH_UNKNOWN_FUNCTIONS, costs, differences, respelled
from tests.spellings.respelling import Respelling
from tests.spellings.surface import text_of
from tests.thinned import thinned

SEED = 20_000


@pytest.fixture(autouse=True)
def parts_are_shared_at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that nobody tells are so small that what contractions share is not looked for, and orders tie."""
    monkeypatch.setattr(sharing, "_LEAST", 0)


HEAVY = ("two steps of a gated memory",)
"""Programs of which a dozen plans take half a minute."""

QUICK = ("quadratic", "ring", "skew_hermitian", "ridge", "layer", "coupled springs")


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("name", thinned(name for name in PROGRAMS if name not in WITH_UNKNOWN_FUNCTIONS))
def test_a_respelling_means_the_same(name: str) -> None:
    d = cd.grad(PROGRAMS[name])
    f = d.compile(value=True)
    given = arrays(d, f, 3)
    for seed in (SEED, SEED + 1):
        other = cd.grad(respelled(name, seed)).compile(value=True)
        with np.errstate(all="ignore"):
            found = zip(f(**given), other(**given), strict=True)
        for a, b in found:
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_respelling_costs_the_same(name: str) -> None:
    assert not differences(name, SEED - 1)


def _known(name: str) -> object:
    """A program, expected to fail where spellings of it are known to differ."""
    marks = [pytest.mark.xfail(strict=True, reason=OPEN[name])] if name in OPEN else []
    return pytest.param(name, marks=[*marks, pytest.mark.long] if name in HEAVY else marks)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("name", thinned(map(_known, PROGRAMS)))
def test_respellings_cost_the_same(name: str) -> None:
    assert not differences(name, SEED)


PARTS = {
    "a square": "pullback((x::RV) -> begin y = t -> x(t)^2; sum(r, y(r))^2 end)",
    "a function": "(c::RV) -> (x::RV) -> begin y = i -> exp(x(i)) + c(i); sum(i, y(i) * c(i) * y(i) + sin(y(i))) end",
    "a product of matrices": "(A::RM, B::RM) -> (X::RM) -> begin Y = (i, j) -> sum(k, A(i, k) * X(k, j)); "
    "sum((i, j), Y(i, j) * sum(k, Y(i, k) * B(k, j))) end",
    "a number": "(a::RV) -> (x::RV) -> begin s = sum(i, x(i) * a(i)); s^2 * exp(s) + s end",
}
"""Programs in which a part has a name."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_a_part_with_a_name_costs_the_same(name: str) -> None:
    module = parse(PARTS[name])
    inlined = next(
        text
        for seed in range(100)
        if " = " not in (text := text_of(module, Respelling(module, Random(seed))(["inlined"])))
    )
    ratios = [costs(PARTS[name])[what] / cost for what, cost in costs(inlined).items()]
    assert 1 / LOOSE <= min(ratios) <= max(ratios) <= LOOSE
