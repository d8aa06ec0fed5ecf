"""Spaces of positive numbers, `positive = true`: what is known of their entries, and that the data keep to it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from tests.emit.array_libraries import Numbers
from tests.reading_back import assert_reads_back

SPACE = "@space P begin type = (N) -> R; positive = true end\n"

SIMPLER = {
    "log(p(i) / q(i))": "log(p(i)) - log(q(i))",
    "log(p(i)^3 * q(i))": "3 * log(p(i)) + log(q(i))",
    "log(sqrt(p(i)))": "1/2 * log(p(i))",
    "sqrt(p(i)^2)": "p(i)",
    "(p(i)^x(i))^2": "p(i)^(2 * x(i))",
    "(p(i) * q(i))^(1/2)": "p(i)^(1/2) * q(i)^(1/2)",
    "abs(p(i)) * sign(q(i) + p(i))": "p(i)",
    # of other numbers nothing is known
    "log(p(i) * x(i))": "log(p(i) * x(i))",
    "log(x(i)^2)": "log(x(i)^2)",
    "abs(p(i) - q(i))": "abs(p(i) - q(i))",
}


@pytest.mark.sampled
@pytest.mark.parametrize("text", SIMPLER)
def test_logarithms_and_powers_are_taken_apart(text: str) -> None:
    d = cd.simplified(f"{SPACE}(p::P, q::P, x::RV) -> i -> {text}")
    assert str(d).endswith(f"-> {SIMPLER[text]}")
    assert d.check()


OBJECTIVES = {
    "a divergence": "sum(i, p(i) * log(p(i) / q(i)) - p(i) + q(i))",
    "a likelihood": "sum(i, -log(sqrt(p(i))) - x(i)^2 / (2 * p(i)) - sqrt(q(i)))",
    "an entropy of powers": "log(sum(i, p(i)^2.5)) + sum(i, abs(q(i) * x(i)))",
    "geometric means": "sum((i, j), sqrt(p(i) * q(j)) * x(i) * x(j))",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_are_right_and_read_back(name: str) -> None:
    d = cd.grad(f"{SPACE}(p::P, q::P, x::RV) -> {OBJECTIVES[name]}")
    assert d.check()
    assert_reads_back(d.term)
    assert "  positive = true" in str(d)
    assert str(cd.simplified(str(d))) == str(d)


BAD: list[tuple[Any, str]] = [
    ([1.0, 0.0, 2.0], r"p is declared positive, and its entry \(1,\) is 0"),
    ([1.0, 2.0, -3.5], r"its entry \(2,\) is -3.5"),
    ([np.nan, 2.0, 3.0], r"its entry \(0,\) is nan"),
]


@pytest.mark.parametrize(("data", "said"), BAD)
@pytest.mark.parametrize("backend", ["numpy", "jax", "torch", "dask"])
def test_the_data_are_looked_at(data: list[float], said: str, backend: str) -> None:
    library = Numbers(backend)
    f = cd.grad(SPACE + "(p::P) -> (x::RV) -> sum(i, p(i) * x(i)^2)").compile(backend)
    ones = library.to(np.ones(3))
    np.testing.assert_allclose(library.back(f(ones, ones)), 2 * np.ones(3))
    with pytest.raises(cd.CombDiffError, match=said):
        f(library.to(data), ones)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", [np.int64, np.uint8, bool, np.float32])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_data_may_be_integers_or_none_at_all(kind: type, n: int) -> None:
    f = cd.grad(SPACE + "(p::P) -> (x::RV) -> sum(i, p(i) * x(i)^2)").compile(value=True)
    value, gradient = f(np.ones(n, kind), np.ones(n))
    assert value == n and np.array_equal(gradient, 2 * np.ones(n))


def test_an_array_that_is_changed_is_looked_at_again() -> None:
    f = cd.grad(SPACE + "(p::P) -> sum(i, log(p(i)))").compile()
    p = np.ones(3)
    np.testing.assert_array_equal(f(p), 1)
    p[1] = -1
    with pytest.raises(cd.CombDiffError, match="declared positive"):
        f(p)
    assert f(np.ones(0)).shape == (0,)


def test_what_is_positive_stays_so_in_a_pickle() -> None:
    d = pickle.loads(pickle.dumps(cd.grad(SPACE + "(p::P) -> sum(i, p(i)^2)")))
    assert "positive = true" in str(d)
    with pytest.raises(cd.CombDiffError, match="declared positive"):
        d.compile()(-np.ones(2))


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ("type = (N) -> C; positive = true", "its entries are no real numbers"),
        ("type = (RV) -> RV; linear = true; positive = true", "its entries are no real numbers"),
        ("type = (N) -> R; positive = 1", "expected true or false"),
    ],
)
def test_what_cannot_be_positive_is_refused(space: str, said: str) -> None:
    with pytest.raises(cd.LanguageError, match=said):
        cd.grad(f"@space P begin {space} end\n(p::P, x::RV) -> sum(i, x(i)^2)")
