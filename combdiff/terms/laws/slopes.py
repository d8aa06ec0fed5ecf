"""The derivative of a real number by another one of which it is an explicit function.

    k(j) = 1 / λ(j) has the slope −1 / λ(j)², for the eigenvalues λ of a matrix

What numbers are multiplied with eigenvectors changes by this slope where eigenvalues are exchanged for others nearby.
"""

from __future__ import annotations

from combdiff.terms.alpha import alpha_equal
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.nodes import (
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Delta,
    Indicator,
    Lam,
    Mul,
    Pow,
    Reduce,
    Sum,
    Term,
    Var,
    fresh,
)
from combdiff.terms.schema import bound_by
from combdiff.terms.terms import (
    MINUS_ONE,
    add,
    apply,
    call,
    delta,
    indicator,
    mul,
    power,
    reduction,
    substitute,
    subterms,
    total,
)
from combdiff.terms.traversal import Traverser
from combdiff.terms.types import REAL, is_complex


def slope_by_spectrum(whole: Reduce, values: str) -> Lam:
    """The slopes of the numbers of `spectral(A, K)` or `singular(A, K)` by `values` of A, like K; nan if unknown.

    The slope of k(j) is by λ(j) alone, with sums over all λ as they are: these move alike with equal λ. It is unknown
    if j says which λ are in such a sum, as in the product of all λ but λ(j).
    """
    i, j = whole.indices
    spectrum = reduction(values, whole.indices, ONE, whole.body)
    x = fresh("x", REAL)

    def visit(t: Term) -> Term:
        match t:
            case App(Reduce(kind) as f, (v,)) if kind == values and v == j and alpha_equal(f, spectrum):
                return x
            case App(Reduce("softmax") as f, (v,)) if v == j and not _has(f.mark, values):
                # exp(e(x) - e(j)) is 1, and moves as the share does
                own = apply(Lam(f.indices, f.body), j)
                return mul(call("exp", add(Traverser(visit)(own), mul(MINUS_ONE, own))), t)
            case _:
                return t

    numbers = Traverser(visit)(whole.mark)
    found = None if _says_which(numbers, j, values) else slope_of(numbers, x)
    value = UNKNOWN if found is None else substitute(found, {x: App(spectrum, (j,))})
    return Lam((i, j), value)


def _says_which(t: Term, j: Var, values: str) -> bool:
    """Whether j is free where an index is bound that `values` are read at, or a share of such values is read at j."""
    for u in subterms(t):
        binds = bool(bound_by(u)) and not (isinstance(u, Reduce) and u.kind == values)
        if binds and j in u.free and _has(u, values):
            return True
        shared = isinstance(u, App) and isinstance(u.function, Reduce) and u.function.kind == "ties"
        if shared and j in u.free and _has(u, values):
            return True
    return False


def _has(t: Term, values: str) -> bool:
    return any(u.kind == values for u in subterms(t, Reduce))


UNKNOWN = call("log", MINUS_ONE)
"""What is no number."""


def slope_of(t: Term, x: Var) -> Term | None:
    """The derivative of a real number by `x`; None where it is not known here.

    >>> from combdiff.terms.nodes import Const
    >>> x = fresh("x", REAL)
    >>> slope_of(power(x, Const(3)), x) == mul(Const(3), power(x, Const(2)))
    True
    """
    if x not in t.free:
        return ZERO
    match t:
        case Var():
            return ONE
        case Add(terms):
            return _sum([slope_of(u, x) for u in terms])
        case Mul(factors):
            slopes = [slope_of(u, x) for u in factors]
            rest = [mul(*factors[:n], *factors[n + 1 :]) for n in range(len(factors))]
            return _sum([None if s is None else mul(s, r) for s, r in zip(slopes, rest, strict=True)])
        case Pow(base, exponent) if x not in exponent.free and not is_complex(t.type):
            inner = slope_of(base, x)
            return None if inner is None else mul(exponent, power(base, add(exponent, MINUS_ONE)), inner)
        case Call(name, args) if not is_complex(t.type):
            return _of_call(name, args, x)
        case Sum(indices, body):
            inner = slope_of(body, x)
            return None if inner is None else total(indices, inner)
        case Delta(left, right, body) | Indicator(left, right, body) if x not in left.free | right.free:
            inner = slope_of(body, x)
            made = delta if isinstance(t, Delta) else indicator
            return None if inner is None else made(left, right, inner)
        case _:
            return None


def _of_call(name: str, args: tuple[Term, ...], x: Var) -> Term | None:
    row = SCALAR_FUNCTIONS[name]
    if any(is_complex(a.type) for a in args) or any(x in a.free for a in args[: row.orders]):
        return None
    numbers = args[row.orders :]
    if row.derivative is not None:
        slopes = row.derivatives(*args)
    elif row.pullback is not None and len(args) == 1:
        slopes = (row.pullback(args[0], ONE),)
    else:
        return None
    inner = [slope_of(a, x) for a in numbers]
    return _sum([None if s is None else mul(d, s) for d, s in zip(slopes, inner, strict=True)])


def _sum(parts: list[Term | None]) -> Term | None:
    known = [p for p in parts if p is not None]
    return add(*known) if len(known) == len(parts) else None
