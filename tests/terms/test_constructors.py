"""What constructors decide of constants, and make of functions of numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from combdiff.meaning.evaluate import evaluate
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import (
    ONE,
    TWO,
    ZERO,
    Add,
    App,
    Call,
    Const,
    Delta,
    Lam,
    Mul,
    Pow,
    Term,
    apply,
    call,
    delta,
    fresh,
    number,
)
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map, is_complex
from tests.function_points import orders_of

X, Y = fresh("x", REAL), fresh("y", REAL)
N = Index(Domain("n"))
P = fresh("p", Map((N,), REAL, positive=True))
FIRST, SECOND = App(P, (ZERO,)), App(P, (ONE,))
ARGUMENTS: dict[str, Term] = {
    "a number": number(3),
    "a root": Call("sqrt", (number(2),)),
    "a root of what is positive": Call("sqrt", (Call("exp", (X,)),)),
    "a power": Pow(number(2), number(Fraction(1, 3))),
    "a power of what is positive": Pow(Call("cosh", (X,)), Y),
    "a product of what is positive": Mul((Call("exp", (X,)), Call("softplus", (Y,)))),
    "an entry declared positive": FIRST,
    "a product of entries declared positive": Mul((FIRST, SECOND)),
    "a root of an entry declared positive": Call("sqrt", (FIRST,)),
    "a power of an entry declared positive": Pow(FIRST, X),
    "a negative product": Mul((number(-2), Call("exp", (X,)))),
    "a negative sum": Add((number(-2), Mul((number(-1), Call("abs", (X,)))))),
    "a logarithm": Call("log", (number(Fraction(5, 2)),)),
    "an exponential": Call("exp", (Mul((number(-1), X)),)),
    "a complex number": Call("complex", (Call("exp", (X,)),)),
    "an imaginary product": Mul((Const(Fraction(0), Fraction(2)), Call("exp", (X,)))),
}
"""Arguments that constructors look into."""


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


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_what_is_made_of_a_function_has_its_values(argument: str) -> None:
    others = [t for t in ARGUMENTS.values() if not is_complex(t.type) and t != ARGUMENTS[argument]]
    for name, row in SCALAR_FUNCTIONS.items():
        for n in range(len(others) if row.arity > 1 + row.orders else 1):
            given = [*orders_of(name), ARGUMENTS[argument], *others[n:], *others][: row.arity]
            if not (row.of_reals and any(is_complex(t.type) for t in given)):
                _assert_same(call(name, *given), Call(name, tuple(given)))


def _assert_same(made: Term, plain: Term) -> None:
    for at in ((0.3, 0.8), (-0.7, 0.2), (1.4, -2.1)):
        values = {X: at[0], Y: at[1], P: np.array([0.6, 2.5])}
        with np.errstate(all="ignore"):
            one, other = (complex(evaluate(t, values)) for t in (made, plain))  # type: ignore[arg-type]
        assert one == pytest.approx(other, rel=1e-12, abs=1e-12, nan_ok=True)


def test_the_squared_size_of_a_real_number_is_its_square() -> None:
    assert call("abs2", X) == Pow(X, TWO)
    assert call("abs2", Call("sqrt", (number(3),))) == number(3)
    z = fresh("z", COMPLEX)
    assert call("abs2", z) == Call("abs2", (z,))
