"""What constructors decide of constants."""

from __future__ import annotations

from combdiff.terms.terms import ONE, TWO, ZERO, Delta, Lam, apply, delta, fresh, number
from combdiff.terms.types import REAL, Domain, Index


def test_a_delta_of_different_constants_is_zero() -> None:
    x = fresh("x", REAL)
    assert delta(ZERO, ONE, x) == ZERO
    assert delta(ONE, number(1), x) == delta(ONE, ONE, x)


def test_an_entry_at_a_constant_is_decided() -> None:
    i, x, y = fresh("i", Index(Domain("n"))), fresh("x", REAL), fresh("y", REAL)
    listed = Lam((i,), delta(i, ONE, x))
    assert apply(listed, TWO) == ZERO
    assert isinstance(apply(listed, fresh("j", i.kind)), Delta)
    assert delta(ONE, y, x) == Delta(ONE, y, x)
