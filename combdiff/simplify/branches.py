"""What is real by its symmetry alone, and the functions with a branch cut: log and roots of it need not be real.

z' A z is real for a Hermitian A, but its type is complex, and below zero its logarithm is log|z' A z| + iπ, which is
not its own conjugate. So a value that is known to be real is taken for a real number everywhere but there, unless it is
known not to be negative either, as z' z is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from combdiff.terms.scalars import leaves_the_real_numbers
from combdiff.terms.terms import Add, Call, Conj, Const, Mul, Pow, Sum, Term, Var, children, conj, rebuild
from combdiff.terms.types import is_complex


def taken_for_real(t: Term, twins: Mapping[Var, Term], positive: Collection[Term]) -> Term:
    """`t` with the real `twins` of variables in their place, but where a function leaves the real numbers below zero.

    `positive` are twins that are not negative.

    >>> from combdiff.terms.terms import call, fresh
    >>> from combdiff.terms.types import COMPLEX, REAL
    >>> u, twin = fresh("u", COMPLEX), fresh("u", REAL)
    >>> taken_for_real(call("exp", u), {u: twin}, ()) == call("exp", twin)
    True
    >>> taken_for_real(call("log", u), {u: twin}, ()) == call("log", u)
    True
    >>> taken_for_real(call("log", u), {u: twin}, {twin}) == call("log", twin)
    True
    """
    known: dict[Term, Term] = {}

    def go(u: Term) -> Term:
        if u.free.isdisjoint(twins):
            return u
        if isinstance(u, Var):
            return twins[u]
        if u not in known:
            below = [go(c) for c in children(u)]
            cut = leaves_the_real_numbers(u) and not at_least_zero(below[0], positive)
            known[u] = u if cut else rebuild(u, below)
        return known[u]

    return go(t)


def at_least_zero(t: Term, positive: Collection[Term] = ()) -> bool:
    """Whether `t` is provably real and not negative, where the terms in `positive` are not.

    >>> from combdiff.terms.terms import add, fresh, mul, number
    >>> from combdiff.terms.types import COMPLEX
    >>> z = fresh("z", COMPLEX)
    >>> at_least_zero(add(mul(number(2), z, conj(z)), number(1))), at_least_zero(add(mul(z, conj(z)), number(-1)))
    (True, False)
    """
    if t in positive:
        return True
    match t:
        case Const(real, imag):
            return real >= 0 and not imag
        case Call(name, args):
            return name in ("abs", "abs2", "pi") or (name == "exp" and not is_complex(args[0].type))
        case Pow(base, Const() as n) if n.is_integer and not n.real % 2:
            return not is_complex(base.type) or at_least_zero(base, positive)
        case Pow(base, exponent):
            return not is_complex(exponent.type) and at_least_zero(base, positive)
        case Add(terms):
            return all(at_least_zero(u, positive) for u in terms)
        case Sum(_, body):
            return at_least_zero(body, positive)
        case Mul(factors):
            return all(at_least_zero(u, positive) for u in _unpaired(factors))
        case _:
            return False


def _unpaired(factors: tuple[Term, ...]) -> list[Term]:
    """The factors that are left without those that stand beside their conjugates."""
    left = Counter(factors)
    for f in factors:
        partner = f.term if isinstance(f, Conj) else conj(f)
        if partner != f and left[f] > 0 and left[partner] > 0:
            left[f] -= 1
            left[partner] -= 1
    return [*left.elements()]
