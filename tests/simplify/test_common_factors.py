"""What all terms of a sum have in common is taken out once: a repeated factor as often as every term has it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import combdiff as cd
from combdiff.budget import Budget
from combdiff.errors import CheckError
from combdiff.gate.gate import Gate
from combdiff.simplify import order
from combdiff.simplify.graph.choice import chosen
from combdiff.terms.terms import Add, App, Const, Pow, Term, Var, add, alpha_equal, fresh, mul, number, total
from combdiff.terms.types import REAL, Domain, Index, Map

MEAN = "m = sum(i, x(i)) / sum(i::N{n}, 1); "
CENTRED = {
    "fourth central moment": "sum(i, (x(i) - m)^4) / sum(i::N{n}, 1)",
    "third central moment": "sum(i, (x(i) - m)^3) / sum(i::N{n}, 1)",
    "kurtosis": "s = sum(i, (x(i) - m)^2) / sum(i::N{n}, 1); sum(i, (x(i) - m)^4) / sum(i::N{n}, 1) / s^2",
    "skewness": "s = sum(i, (x(i) - m)^2) / sum(i::N{n}, 1); sum(i, (x(i) - m)^3) / sum(i::N{n}, 1) / s^(3/2)",
    "mean absolute deviation": "sum(i, abs(x(i) - m)) / sum(i::N{n}, 1)",
    "smooth centred Huber loss": "sum(i, sqrt(1 + (x(i) - m)^2) - 1) / sum(i::N{n}, 1)",
}
HUBER = (
    "sum(i, indicator(abs(x(i) - m), 1, (x(i) - m)^2 / 2) + indicator(1, abs(x(i) - m), abs(x(i) - m) - 1/2))"
    " / sum(i::N{n}, 1)"
)
PROGRAMS = {name: f"(x::RV{{n}}) -> begin {MEAN}{text} end" for name, text in CENTRED.items()} | {
    "one number": "(z::RV) -> (x::R) -> (x + x^2 / sum(i, z(i))) / sum(i, z(i))",
    "one number, twice": "(z::RV) -> (x::R) -> (x / sum(i, z(i)) + x^2 / sum(i, z(i))^2) / sum(i, z(i))",
}


TAKEN_OUT_LATE = ("fourth central moment", "third central moment", "one number", "one number, twice")
"""The programs whose common factors the reading order takes out; those of the others the graph of forms has already."""


def every_occurrence(rows: list[tuple[Term, ...]]) -> tuple[list[Term], list[list[Term]]]:
    """What must not be: of a common factor that is repeated nothing is left behind."""

    def base(f: Term) -> Term:
        return f.base if isinstance(f, Pow) else f

    def among(f: Term, row: list[Term] | tuple[Term, ...]) -> bool:
        return any(alpha_equal(base(f), base(g)) for g in row)

    common = [f for f in rows[0] if not isinstance(f, Const) and all(among(f, row) for row in rows[1:])]
    return common, [[f for f in row if not among(f, common)] for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_a_repeated_factor_is_taken_out_as_often_as_all_terms_have_it(text: str) -> None:
    for derive in (cd.grad, cd.hvp):
        d = derive(text)
        assert d.check()
        assert d.check(seed=1)


@pytest.mark.slow
def test_a_centred_loss_of_several_branches_is_right() -> None:
    assert cd.grad(f"(x::RV{{n}}) -> begin {MEAN}{HUBER} end").check()


def test_the_mean_stays_in_the_derivative_of_a_central_moment() -> None:
    text = str(cd.grad(PROGRAMS["fourth central moment"]))
    assert "4 * ((x(i) - m)^3 - sum(i1, (x(i1) - m)^3) / n) / n" in text


@pytest.mark.parametrize("text", [PROGRAMS[name] for name in TAKEN_OUT_LATE], ids=TAKEN_OUT_LATE)
def test_the_gate_sees_a_factor_that_is_taken_out_too_often(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "_common", every_occurrence)
    with pytest.raises(CheckError, match=r"order and names changed the value .* reading order \(order\.py\)"):
        cd.grad(text)


@pytest.mark.sampled
@pytest.mark.parametrize("text", [PROGRAMS[name] for name in TAKEN_OUT_LATE], ids=TAKEN_OUT_LATE)
def test_the_check_sees_a_factor_that_is_taken_out_too_often(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    blind: Callable[..., bool] = lambda *_: True  # noqa: E731
    monkeypatch.setattr(Gate, "same", blind)
    monkeypatch.setattr(order, "_common", every_occurrence)
    assert not cd.grad(text).check()


def test_a_named_sum_is_not_found_where_one_of_its_terms_stands_twice() -> None:
    n = Index(Domain("x.1"))
    x, y, value = fresh("x", Map((n,), REAL)), fresh("y", REAL), fresh("f", REAL)

    def whole() -> Term:
        i: Var = fresh("i", n)
        return total((i,), App(x, (i,)))

    def found(t: Term) -> Term:
        _, (result,), _ = chosen([(value, add(whole(), mul(number(2), y)))], [t], {value}, {}, (), {}, Budget())
        return result

    assert found(add(whole(), mul(number(2), y))) == value
    assert value not in found(Add((whole(), whole(), mul(number(2), y)))).free
    assert found(Add((whole(), whole(), mul(number(4), y)))) == mul(number(2), value)


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_a_common_factor_leaves_the_sign_of_an_index_that_is_compared(size: int) -> None:
    ring = "@domain Z begin base = I; periodic = true end\n"
    terms = [f"x * sum((i, k), where(i <= 1, {t}(k, k)) * b(-i, i))" for t in "ba"]
    d = cd.grad(f"{ring}(b::(Z, Z) -> R, a::(Z, Z) -> R) -> (x::R) -> {' + '.join(terms)}")
    a, b = np.random.default_rng(size).standard_normal((2, size, size))
    expected = sum(b[-i % size, i] * (np.trace(a) + np.trace(b)) for i in range(size) if i <= 1)
    assert np.isclose(d.compile()(b, a, 1.0), expected)


def test_sums_that_two_terms_share_are_taken_out_before_single_factors_that_more_have() -> None:
    """p and q stand in three terms each, and each sum in two: as in the adjoint of a step of Runge and Kutta."""
    pairs = [("x + h * y", 0), ("y + h * z", 1), ("z + h * x", 2)]
    terms = " + ".join(f"p * a({n}) * ({e}) - q * b({n}) * ({e})" for e, n in pairs)
    d = cd.simplified(f"(a::RV{{3}}, b::RV{{3}}, h::R) -> (p::R, q::R, x::R, y::R, z::R) -> {terms}")
    for e, n in pairs:
        assert f"({e}) * (p * a({n}) - q * b({n}))" in str(d)
