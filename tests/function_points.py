"""Points in the domains of the functions of numbers, away from poles, kinks and branch cuts."""

from __future__ import annotations

from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import Term, Var, call, fresh, number
from combdiff.terms.types import Number

COMPLEX_POINTS = (0.7 + 0.4j, -0.6 + 1.1j, 0.3 - 0.8j)
_REAL_POINTS = {
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv"), ((0.7,), (-0.3,), (0.0,))),
    "norminv": ((0.7,), (0.2,), (0.5,)),
    "acosh": ((1.7,), (3.1,)),
    **dict.fromkeys(("log", "sqrt", "log2", "log10"), ((0.7,), (2.3,))),
    "log1p": ((0.7,), (-0.6,)),
    **dict.fromkeys(("sign", "abs", "angle", "relu", "floor", "ceil", "round"), ((0.7,), (-1.3,), (2.4,))),
    **dict.fromkeys(("gamma", "lgamma", "digamma", "polygamma"), ((0.7,), (-1.3,), (4.2,))),
    "hypot": ((0.7, 0.4), (-0.3, -1.2), (0.5, 0.0)),
    "atan2": ((0.7, 0.4), (-0.3, -1.2), (0.5, -0.4)),
    **dict.fromkeys(("max", "min"), ((0.7, 0.4), (-1.3, 2.0))),
    "clip": ((0.7, -0.4, 1.1), (-1.3, -0.4, 1.1), (2.5, -0.4, 1.1), (0.3, 1.1, -0.4)),
}


def points_of(name: str, complex_: bool) -> tuple[tuple[complex, ...], ...]:
    """Arguments of a function, without its orders; none where it takes no complex numbers."""
    if complex_:
        return () if SCALAR_FUNCTIONS[name].of_reals else tuple((z,) for z in COMPLEX_POINTS)
    return _REAL_POINTS.get(name, ((0.7,), (-1.3,), (0.0,)))


def orders_of(name: str) -> tuple[Term, ...]:
    """Orders for a function that takes some."""
    return tuple(number(n + 2) for n in range(SCALAR_FUNCTIONS[name].orders))


def applied(name: str, kind: Number) -> tuple[Term, tuple[Var, ...]]:
    """A function of variables, and these."""
    row = SCALAR_FUNCTIONS[name]
    variables = tuple(fresh(f"v{n}", kind) for n in range(row.arity - row.orders))
    return call(name, *orders_of(name), *variables), variables
