"""Views a term as a product under Σ: number · Σ over indices · factors, with inner sums pulled out.

    2 * sum(i, A(i, j) * sum(k, B(i, k)))   is   2, (i, k), (A(i, j), B(i, k))

The caller says what counts as one factor: `parts` tells what a term is a product of, itself alone if it is
one factor, `drawn` which sums are drawn out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from combdiff.records import dataclass
from combdiff.terms.arithmetic import mul, split_coefficient
from combdiff.terms.constructors import total
from combdiff.terms.nodes import ONE, Add, Const, Delta, Indicator, Sum, Term, Var, factors_of, terms_of
from combdiff.terms.traversal import refreshed
from combdiff.terms.types import Index, Map


@dataclass(frozen=True, slots=True)
class Network:
    """coefficient · Σ_indices factors, none of which is a number."""

    coefficient: Const
    indices: tuple[Var, ...]
    factors: tuple[Term, ...]

    def bare(self) -> Term:
        """The term without its number."""
        return total(self.indices, mul(*self.factors))

    def term(self) -> Term:
        """The product as a term."""
        return mul(self.coefficient, self.bare())


def is_of_one_term(t: Sum) -> bool:
    """Whether a sum is over no sum of terms."""
    return not isinstance(t.body, Add)


def network(
    t: Term,
    parts: Callable[[Term], Sequence[Term]] = factors_of,
    drawn: Callable[[Sum], bool] = is_of_one_term,
) -> Network:
    """`t` as a product under Σ; sums that bind the same index get names of their own.

    >>> from combdiff.terms.nodes import TWO, App, fresh
    >>> from combdiff.terms.types import REAL, Index, Map
    >>> n = Index()
    >>> x, i = fresh("x", Map((n,), REAL)), fresh("i", n)
    >>> found = network(mul(TWO, Sum((i,), App(x, (i,)))))
    >>> found.coefficient == TWO, found.indices == (i,), found.factors == (App(x, (i,)),)
    (True, True, True)
    """
    coefficient, bare = split_coefficient(t)
    indices: list[Var] = []
    factors: list[Term] = []
    numbers: list[Const] = []
    left = [bare]
    while left:
        u = left.pop()
        if isinstance(u, Sum) and drawn(u):
            own = u if set(u.indices).isdisjoint(indices) else refreshed(u)
            assert isinstance(own, Sum), "new names change no node"
            indices += own.indices
            left.append(own.body)
        elif isinstance(u, Const):
            numbers.append(u)
        elif (below := parts(u)) == (u,):
            factors.append(u)
        else:
            left += reversed(below)
    if numbers:
        coefficient, _ = split_coefficient(mul(coefficient, *numbers))
    return Network(coefficient, tuple(indices), tuple(factors))


def is_never_drawn(t: Sum) -> bool:
    """No sum is drawn out."""
    return False


def conditions_apart(t: Term) -> tuple[Term, ...]:
    """The factors of a product; a δ and an indicator are factors that mark where it is not zero.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import REAL
    >>> i, j, x = fresh("i", Index()), fresh("j", Index()), fresh("x", REAL)
    >>> conditions_apart(Delta(i, j, x)) == (Delta(i, j, ONE), x)
    True
    """
    match t:
        case Delta(left, right, body) | Indicator(left, right, body) if body != ONE and not isinstance(left.type, Map):
            return type(t)(left, right, ONE), body
        case _:
            return factors_of(t)


def guards_apart(t: Term) -> tuple[Term, ...]:
    """The factors of a product, where conditions of order that stand under one another mark it together.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> guards_apart(Indicator(ONE, x, Indicator(x, y, y))) == (Indicator(ONE, x, Indicator(x, y, ONE)), y)
    True
    """
    conditions, core = list[Indicator](), t
    while isinstance(core, Indicator):
        conditions.append(core)
        core = core.body
    if not conditions or core == ONE:
        return (t,) if conditions else conditions_apart(t)
    mark: Term = ONE
    for condition in reversed(conditions):
        mark = Indicator(condition.left, condition.right, mark)
    return mark, core


def factors_before_sums(t: Term) -> list[Term]:
    """The factors of a product, with what does not depend on the indices of a sum in front of the sum.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import REAL, Domain
    >>> i, x = fresh("i", Index(Domain("n"))), fresh("x", REAL)
    >>> factors_before_sums(Sum((i,), mul(x, i))) == [x, Sum((i,), i)]
    True
    """
    found: list[Term] = []
    for f in factors_of(t):
        if isinstance(f, Sum):
            inner = factors_of(f.body)
            found += [g for g in inner if g.free.isdisjoint(f.indices)]
            found.append(total(f.indices, mul(*(g for g in inner if not g.free.isdisjoint(f.indices)))))
        else:
            found.append(f)
    return found


def addends(t: Term) -> tuple[Term, ...]:
    """The terms of a sum of terms; any other term is the only one of its own."""
    return (t,) if isinstance(t.type, Index) else terms_of(t)
