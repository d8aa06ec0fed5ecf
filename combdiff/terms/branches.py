"""Functions with a branch cut: below zero they are complex or nan, as the type of their argument says.

log(x) of a real number is nan below zero, log(z) of a complex one is log|z| + iπ. So a complex argument stays one where
arithmetic finds that it is real, as (im x)² is: `complex(x)` is ι x, a real number meant as a complex one. It is
written wherever a term is rebuilt, stands under these functions only, and is left out where x is not negative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache

from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.nodes import Add, App, Call, Conj, Const, Mul, Pow, Reduce, Sum, Term, Var
from combdiff.terms.types import Map, is_complex


def leaves_the_real_numbers(t: Term) -> bool:
    """Whether it is a complex function whose value at a negative number is no real one."""
    match t:
        case Call(name, _):
            return is_complex(t.type) and bool(_cut(name))
        case Pow(_, exponent):
            return is_complex(t.type) and not (isinstance(exponent, Const) and exponent.is_integer)
        case _:
            return False


def leaves_them_at(t: Term, argument: Term, positive: Collection[Term] = ()) -> bool:
    """Whether it may be no real number at a real `argument`, where the terms in `positive` are not negative.

    >>> from combdiff.terms.nodes import ONE, fresh
    >>> from combdiff.terms.types import COMPLEX
    >>> z = fresh("z", COMPLEX)
    >>> leaves_them_at(Call("log", (z,)), ONE), leaves_them_at(Call("asin", (z,)), ONE)
    (False, True)
    """
    below_zero = not isinstance(t, Call) or _cut(t.primitive) == "below zero"
    return leaves_the_real_numbers(t) and not (below_zero and at_least_zero(argument, positive))


@cache
def _cut(name: str) -> str:
    return SCALAR_FUNCTIONS[name].cut if name in SCALAR_FUNCTIONS else ""


@cache
def _least(name: str) -> int:
    return SCALAR_FUNCTIONS[name].least


def kept_complex(t: Term, parts: Sequence[Term]) -> Sequence[Term]:
    """New children of `t`: the argument of a function with a cut stays complex.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import COMPLEX, REAL
    >>> z, x = fresh("z", COMPLEX), fresh("x", REAL)
    >>> kept_complex(Call("log", (z,)), [x]) == [Call("complex", (x,))], kept_complex(Call("exp", (z,)), [x]) == [x]
    (True, True)
    """
    if isinstance(t, Call | Pow) and parts and not is_complex(parts[0].type) and leaves_the_real_numbers(t):
        of = t.args[0] if isinstance(t, Call) else t.base
        if is_complex(of.type) and leaves_them_at(t, parts[0]):
            return [Call("complex", (parts[0],)), *parts[1:]]
    return parts


def at_least_zero(t: Term, positive: Collection[Term] = ()) -> bool:
    """Whether `t` is provably real and not negative, where the terms in `positive` are not.

    >>> from combdiff.terms.terms import add, conj, fresh, mul, number
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
        case App(Var(kind=Map(positive=True)), _):
            return True
        case Call(name, args):
            return not is_complex(t.type) and (not args or _least(name) >= 0)
        case Reduce("norm", _):
            return True
        case Pow(base, Const() as n) if n.is_integer and not n.real % 2:
            return not is_complex(base.type) or at_least_zero(base, positive)
        case Pow(base, exponent):
            return not is_complex(exponent.type) and at_least_zero(base, positive)
        case Add(terms):
            return all(at_least_zero(u, positive) for u in terms) or _is_complement(terms)
        case Sum(_, body):
            return at_least_zero(body, positive)
        case Mul(factors):
            return all(at_least_zero(u, positive) for u in _unpaired(factors))
        case _:
            return False


def _is_complement(terms: Sequence[Term]) -> bool:
    """Whether they are those of 1 − σ(u)."""
    match sorted(terms, key=lambda u: isinstance(u, Mul)):
        case [Const(real), Mul((Const() as c, Call("sigmoid", _)))]:
            return real == 1 and c.real == -1 and not c.imag
        case _:
            return False


def above_zero(t: Term) -> bool:
    """Whether `t` is provably real and above zero, made of what is declared to be.

    >>> from combdiff.terms.terms import fresh, mul, number
    >>> from combdiff.terms.types import REAL, Domain, Index
    >>> n = Index(Domain("n"))
    >>> i, s = fresh("i", n), fresh("s", Map((n,), REAL, positive=True))
    >>> above_zero(mul(number(2), App(s, (i,)))), above_zero(i)
    (True, False)
    """
    match t:
        case Const(real, imag):
            return real > 0 and not imag
        case App(Var(kind=Map(positive=True)), _):
            return True
        case Mul(parts) | Add(parts):
            return all(map(above_zero, parts))
        case Pow(base, exponent):
            return not is_complex(exponent.type) and above_zero(base)
        case Call("sqrt", (base,)):
            return above_zero(base)
        case _:
            return False


def is_scale(t: Term) -> bool:
    """Whether `t` is provably above zero, where π is a number too.

    The logarithm of a product is a sum of those of what is declared to be positive, and log(2π) stays as it is.

    >>> from combdiff.terms.terms import PI, mul, number
    >>> is_scale(Call("sqrt", (mul(number(2), PI),))), above_zero(PI)
    (True, False)
    """
    match t:
        case Mul(parts) | Add(parts):
            return all(map(is_scale, parts))
        case Call("sqrt", (base,)) | Pow(base, Const()):
            return is_scale(base)
        case _:
            return t == Call("pi", ()) or above_zero(t)


def _unpaired(factors: tuple[Term, ...]) -> list[Term]:
    """The factors that are left without those that stand beside their conjugates."""
    left = Counter(factors)
    for f in factors:
        partner = f.term if isinstance(f, Conj) else Conj(f)
        if left[f] > 0 and left[partner] > 0:
            left[f] -= 1
            left[partner] -= 1
    return [*left.elements()]
