"""Named values are put in the place of what equals them: a whole term, part of a product, or part of a sum.

2 * sum((r, s), V(p, r, q, s) * P(r, s)) * C(q, i)   becomes   2 * K(p, q) * C(q, i)
h(p, q) * c + 2 * J(p, q) * c - K(p, q) * c          becomes   F(p, q) * c          after F = h + 2 * J - K
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import partial
from itertools import islice, permutations

from combdiff.canon.canonical import normal_form
from combdiff.simplify.forms.intermediates import Intermediates
from combdiff.simplify.products import connected_parts, look
from combdiff.terms.network import Network, addends, network
from combdiff.terms.terms import (
    ZERO,
    Add,
    Const,
    Lam,
    Let,
    Mul,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    add,
    apply,
    mul,
    number,
    reciprocal,
    substitute,
    total,
)
from combdiff.terms.types import Index, Number, is_complex

ORDERS = 120
"""Orders of the open indices of a sum in which a named sum is looked for: all of five."""

WIDEST = 12
"""Factors of a product in which named products of any length are looked for; in a longer one only pairs."""


def recognised(t: Term, named: Intermediates) -> Term:
    """`t` with the named values that stand in it written out; `t` itself if there are none. It may raise OutOfTime."""
    for _ in named.values:
        # a value that is found may be part of another one
        near = named.within(t)
        found = Traverser(partial(_replaced, named=near))(t) if near.values else t
        if found == t:
            break
        t = found
    return t


def _replaced(t: Term, named: Intermediates) -> Term:
    named.budget.check()
    if not isinstance(t.type, Number) or isinstance(t, Var | Const | Let | Tuple | Lam):
        return t
    known = named.known(t)
    if known is not None:
        return known
    match t:
        case Sum() | Mul():
            return _in_product(t, named)
        case Add():
            return _in_sum(t, named)
        case _:
            return t


def _in_product(t: Term, named: Intermediates) -> Term:
    """A named product in the place of the factors that it consists of."""
    p = network(t)
    if len(p.factors) < 2:
        return t
    lengths = {len(network(v.entry).factors) for v in named.values.values()}
    links = frozenset(v for f in p.factors for v in f.free if isinstance(v.kind, Index))
    most = max(lengths) if len(p.factors) <= WIDEST else 2
    for part in connected_parts(p.factors, links, most):
        if len(part) in lengths and len(part) > 1:
            found = _part(p, part, named)
            if found is not None:
                return _in_product(found, named)
    return t


def _part(p: Network, part: tuple[int, ...], named: Intermediates) -> Term | None:
    inside = [p.factors[n] for n in part]
    outside = [f for n, f in enumerate(p.factors) if n not in part]
    without = frozenset().union(*(f.free for f in outside))
    private = [i for i in p.indices if i not in without and any(i in f.free for f in inside)]
    front = total(private, mul(*inside))
    entry = named.known(front)
    if entry is None:
        return None
    rest = tuple(i for i in p.indices if i not in private)
    return mul(p.coefficient, total(rest, mul(entry, *outside)))


def _in_sum(t: Add, named: Intermediates) -> Term:
    """A named sum in the place of the terms that it consists of."""
    opens = named.open_indices(t)
    looks = Counter(look(u) for u in t.terms)
    for value in named.values.values():
        params, entry = value.params, value.entry
        if not isinstance(entry, Add) or Counter(look(u) for u in entry.terms) - looks:
            continue
        for order in islice(permutations(opens, len(params)), ORDERS):
            if [v.kind for v in order] == [v.kind for v in params]:
                wanted = substitute(entry, dict(zip(params, order, strict=True)))
                found = _without(t, wanted, named)
                if found is not None:
                    ratio, rest = found
                    result = add(mul(ratio, apply(value.var, *order) if order else value.var), rest)
                    if is_complex(t.type) or not is_complex(result.type):
                        return result
    return t


def _without(t: Add, part: Term, named: Intermediates) -> tuple[Const, Term] | None:
    """(c, rest) with t = c · part + rest, if `t` holds all terms of `part` in one ratio."""

    held, wanted = _by_form(t, named), _by_form(part, named)
    if not wanted or any(key not in held for key in wanted):
        return None
    ratios = {_times(held[key][0], reciprocal(c)) for key, (c, _) in wanted.items()}
    if len(ratios) > 1:
        return None
    return ratios.pop(), add(*(u for key, (_, u) in held.items() if key not in wanted))


def _by_form(t: Term, named: Intermediates) -> dict[Hashable, tuple[Const, Term]]:
    """The terms of a sum by their normal forms, those of one form added up, with how often the form is in them."""
    found: dict[Hashable, tuple[Const, Term]] = {}
    for u in addends(t):
        form = normal_form(u, named.symmetries, named.unused, named.budget)
        known, others = found.get(form.key, (ZERO, ZERO))
        count = add(known, _times(number(form.coefficient), number(form.sign)))
        assert isinstance(count, Const), "a sum of numbers"
        found[form.key] = count, add(others, u)
    return {key: (count, u) for key, (count, u) in found.items() if count != ZERO}


def _times(a: Const, b: Const) -> Const:
    result = mul(a, b)
    assert isinstance(result, Const), "a product of numbers"
    return result
