"""A sum cancels with its inverse, also where contraction has made one sum of a product of sums.

Σ_{i,j,k} A(i, j) p(i) p(j) x(k) / (Σ_{i,j} A(i, j) p(i) p(j))²   is   Σ_k x(k) / Σ_{i,j} A(i, j) p(i) p(j)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from combdiff.canon.canonical import normal_form
from combdiff.terms.terms import Const, Mul, Pow, Sum, Term, Traverser, Var, factors_of, mul, number, power, total


def without_inverses(t: Term) -> Term:
    """`t` with sums cancelled that stand beside their inverses.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> f = infer(parse("(x::RV, y::RV) -> sum((i, j), x(i) * y(j) / sum(i, x(i)))"))
    >>> expression_text(without_inverses(f))
    '(x::RV, y::RV) -> sum(j, y(j))'
    """
    return Traverser(lambda u: _cancelled(u) if isinstance(u, Sum) and isinstance(u.body, Mul) else u, Sum)(t)


def _cancelled(t: Sum) -> Term:
    inverses = [f for f in factors_of(t.body) if _is_inverse(f) and f.free.isdisjoint(t.indices)]
    if not inverses:
        return t
    for indices, part in _parts(t.indices, [f for f in factors_of(t.body) if not f.free.isdisjoint(t.indices)]):
        whole = total(indices, mul(*part))
        for f in inverses:
            assert isinstance(f, Pow) and isinstance(f.exponent, Const), "an inverse power of a sum"
            if _same(whole, f.base):
                left = [g for g in factors_of(t.body) if g is not f and g not in part]
                rest = [v for v in t.indices if v not in indices]
                met = total(rest, mul(power(f.base, number(f.exponent.real + 1)), *left))
                return _cancelled(met) if isinstance(met, Sum) and isinstance(met.body, Mul) else met
    return t


def _is_inverse(f: Term) -> bool:
    """Whether it is a power below 0 of a sum, with a whole exponent."""
    return (
        isinstance(f, Pow)
        and isinstance(f.base, Sum)
        and isinstance(f.exponent, Const)
        and (f.exponent.is_integer and f.exponent.real < 0)
    )


def _parts(indices: Sequence[Var], factors: Sequence[Term]) -> Iterator[tuple[list[Var], list[Term]]]:
    """The factors that share indices with one another, with these indices."""
    left = list(factors)
    while left:
        part, free = [left.pop(0)], set[Var]()
        while True:
            free = {v for f in part for v in f.free if v in indices}
            joined = [f for f in left if not f.free.isdisjoint(free)]
            if not joined:
                break
            part += joined
            left = [f for f in left if f not in joined]
        yield [v for v in indices if v in free], part


def _same(a: Term, b: Term) -> bool:
    """Whether two terms are equal up to names; symmetries are not used, as one of what is varied must not be."""
    given = a.free | b.free
    ours, theirs = (normal_form(t, unused=given) for t in (a, b))
    return ours.key == theirs.key and ours.sign == theirs.sign and ours.coefficient == theirs.coefficient
