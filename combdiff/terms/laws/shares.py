"""The shares of a whole are 1 together: Σ_i softmax(x)_i = 1.

They are, of a range that has an index. Of none they are 0 together.
"""

from __future__ import annotations

from collections.abc import Collection

from combdiff.terms.network import conditions_apart
from combdiff.terms.nodes import SHARES
from combdiff.terms.terms import ONE, App, Reduce, Sum, Term, Traverser, Var, factors_of, mul, total
from combdiff.terms.types import Domain, Index


def with_whole_shares(t: Term, known: Collection[Domain] = ()) -> Term:
    """`t` with 1 for sums of all shares over ranges that have an index: those of `known`, and of free variables.

    >>> from combdiff.terms.terms import fresh, reduction
    >>> from combdiff.terms.types import REAL, Map
    >>> n = Index(Domain("n"))
    >>> i, j, x = fresh("i", n), fresh("j", n), fresh("x", Map((n,), REAL))
    >>> share = reduction("softmax", [i], ONE, App(x, (i,)))
    >>> whole = Sum((j,), App(share, (j,)))
    >>> with_whole_shares(whole, [n.domain]) == ONE, with_whole_shares(whole) == whole
    (True, True)
    """
    filled = {*known, *(d for v in t.free if isinstance(v.kind, Index) and (d := v.kind.domain) is not None)}
    return Traverser(lambda u: _whole(u, filled) if isinstance(u, Sum) else u, Reduce)(t) if filled else t


def _whole(t: Sum, filled: Collection[Domain]) -> Term:
    """A sum without the shares in it of which all are added up."""
    factors = [g for f in factors_of(t.body) for u in conditions_apart(f) for g in factors_of(u)]
    for f in factors:
        match f:
            case App(Reduce(kind) as shares, args) if kind in SHARES and shares.mark == ONE:
                others = [g for g in factors if g is not f]
                own = {v for v in args if isinstance(v, Var) and v in t.indices}
                alone = own.isdisjoint(v for u in (shares, *others) for v in u.free)
                filled_all = all(_is_filled(v, i, filled) for v, i in zip(args, shares.indices, strict=True))
                if alone and filled_all and len(own) == len(args):
                    return total([v for v in t.indices if v not in own], mul(*others))
    return t


def _is_filled(index: Term, of: Var, filled: Collection[Domain]) -> bool:
    """Whether an index runs over the whole range of another one, which has an index."""
    return index.type == of.kind and isinstance(of.kind, Index) and of.kind.domain in filled
