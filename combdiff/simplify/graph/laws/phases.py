"""A phase is a product of phases, none of which has all of its indices: exp(i(a + b)) = exp(ia) exp(ib).

    sum((j, k), f(j, k) * exp(im * (a * j + b * k)))   is   sum(j, exp(im * a * j) * sum(k, exp(im * b * k) * f(j, k)))

Of arguments that are not imaginary it is no law of numbers of a machine: exp(800) · exp(−800) is ∞ · 0.
Ends: each factor is split once, when its product is read, and a part has a term whose indices no other has.
"""

from __future__ import annotations

from collections.abc import Collection

from combdiff.terms.terms import IMAGINARY, Add, Call, Conj, Term, Var, add, call, conj, factors_of, mul, terms_of
from combdiff.terms.types import Index, is_complex

MOST = 4
"""Parts of a phase: three directions of space, and something else."""


def phases(t: Term, known: Collection[Var]) -> tuple[Term, ...]:
    """A phase as a product of phases that depend on different indices; `t` alone where it is none.

    The variables that are `known` everywhere are no indices here.

    >>> from combdiff.terms.terms import fresh
    >>> i, j, k = (fresh(name, Index()) for name in "ijk")
    >>> len(phases(call("exp", mul(IMAGINARY, add(mul(i, k), mul(j, k)))), ()))
    2
    """
    match t:
        case Conj(u):
            return tuple([conj(part) for part in phases(u, known)])
        case Call("exp", (argument,)):
            summands = _summands(argument)
            imaginary = all(not is_complex(mul(IMAGINARY, s).type) for s in summands)
            parts = _apart(summands, known)
            return tuple([call("exp", part) for part in parts]) if 1 < len(parts) <= MOST and imaginary else (t,)
        case _:
            return (t,)


def _summands(t: Term) -> list[Term]:
    """The terms of `t`, the sums among its factors multiplied out."""
    factors = factors_of(t)
    n = next((n for n, f in enumerate(factors) if isinstance(f, Add)), None)
    if n is None:
        return [t]
    rest = factors[:n] + factors[n + 1 :]
    return [s for u in terms_of(factors[n]) for s in _summands(mul(*rest, u))]


def _apart(summands: Collection[Term], known: Collection[Var]) -> list[Term]:
    """The terms in parts: each with those that have no index beside its own."""
    held = {s: frozenset(v for v in s.free if isinstance(v.kind, Index) and v not in known) for s in summands}
    parts: dict[frozenset[Var], Term] = {}
    for s in sorted(summands, key=lambda s: -len(held[s])):
        own = next((indices for indices in parts if held[s] <= indices), held[s])
        parts[own] = add(parts[own], s) if own in parts else s
    return [*parts.values()]
