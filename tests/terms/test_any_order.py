"""Sums and products are equal in any order, so that what value and gradient share is found however it was spelled."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.terms.schema import reshaped
from combdiff.terms.terms import Add, Lam, Mul, Term, Traverser, add, children, fresh, mul, subterms
from combdiff.terms.types import REAL, Index
from tests.strategies import programs
from tests.thinned import thinned


def shuffled(t: Term, seed: int) -> Term:
    """The same term with the terms of each sum and the factors of each product in another order."""
    rng = Random(seed)

    def visit(u: Term) -> Term:
        if not isinstance(u, Add | Mul) or isinstance(u.type, Index):
            return u
        parts = list(children(u))
        rng.shuffle(parts)
        return reshaped(u, parts)

    return Traverser(visit)(t)


@pytest.mark.slow
@given(programs(), st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_a_term_is_equal_to_itself_in_any_order(program: Lam, seed: int) -> None:
    other = shuffled(program.body, seed)
    assert other == program.body
    assert hash(other) == hash(program.body)
    assert {*subterms(other)} == {*subterms(program.body)}


def test_unlike_sums_and_products_differ() -> None:
    x, y, z = (fresh(name, REAL) for name in "xyz")
    terms = [add(x, y), add(x, z), mul(x, y), mul(x, z), add(x, y, z), add(x, mul(x, y)), add(y, mul(x, y))]
    assert len({*terms}) == len(terms)
    assert all((a == b) == (a is b) for a in terms for b in terms)


SPELLINGS = [
    f"{sign}{first} {middle} {second}"
    for e in ("exp(q(i)) * L(i, j)", "L(i, j) * exp(q(i))")
    for f in ("2 * L(j, i)", "L(j, i) * 2")
    for sign, first, middle, second in (("", e, "-", f), ("-", f, "+", e), ("", f"({e})", "-", f"({f})"))
]


@pytest.mark.slow
@pytest.mark.parametrize("spelling", thinned(SPELLINGS))
@pytest.mark.parametrize("how", [{}, {"value": True}, {"value": True, "hvp": True}], ids=["gradient", "value", "hvp"])
def test_a_function_is_computed_once_however_its_argument_is_spelled(spelling: str, how: dict[str, bool]) -> None:
    text = f"""(q::RV{{n}}, x::RV{{n}}) -> (L::RM{{n, n}}) -> begin
        Q = (i, j) -> {spelling}
        sum((i, j), x(i) * exp(Q(i, j)) * x(j) + tanh(Q(i, j))^2 * L(j, i))
    end"""
    code = cd.grad(text).compile(**how).source.partition('"""')[2].partition('"""')[2]
    assert (code.count("np.exp("), code.count("np.tanh(")) == (2, 1)
