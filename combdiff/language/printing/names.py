"""Chooses names for the text of a term: no two meanings share one, and the language reads each one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from combdiff.language.printing.anchors import domains_of
from combdiff.language.vocabulary import WORDS
from combdiff.terms.schema import reshaped
from combdiff.terms.terms import Let, Term, Var, bound_by, children, fresh, subterms


def names_in(*terms: Term) -> set[str]:
    """The names of all variables of the terms, also of those that are bound and not used, and of sizes.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> sorted(names_in(infer(parse("(x::RV{M}, y::R) -> sum(i, x(i))"))))
    ['M', 'i', 'x', 'y']
    """
    variables = {v for t in terms for u in subterms(t) for v in (*bound_by(u), *((u,) if isinstance(u, Var) else ()))}
    return {v.name for v in variables} | {d.name for v in variables for d in domains_of(v.kind) if d.sized}


def with_own_binders(t: Term) -> Term:
    """`t` with a variable of its own for each binder: parts that were copied bind the same ones, for other ranges.

    >>> from combdiff.terms.terms import Conj, Lam, Tuple, fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> f, g = with_own_binders(Tuple((Lam((x,), x), Lam((x,), Conj(x))))).items
    >>> f.params == (x,), g.params == (x,), children(g.body) == g.params
    (True, False, True)
    """
    bound = [var for u in subterms(t) for var in bound_by(u)]
    if len(bound) == len(set(bound)):
        return t
    first: dict[Var, Term] = {}

    def go(u: Term, names: Mapping[Var, Var]) -> Term:
        if isinstance(u, Var):
            return names.get(u, u)
        bound = bound_by(u)
        own = tuple([v if first.setdefault(v, u) is u else fresh(v.name, v.kind) for v in bound])
        inner = dict(names)
        if not isinstance(u, Let):
            inner.update(zip(bound, own, strict=True))
            return reshaped(u, [go(c, inner) for c in children(u)], own)
        values = []
        for new, (var, value) in zip(own, u.bindings, strict=True):
            values.append(go(value, inner))
            inner[var] = new
        return reshaped(u, [*values, go(u.body, inner)], own)

    return go(t, {})


_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def unique_name(name: str, taken: Collection[str]) -> str:
    """`name`, made one that the language reads, with a subscript if it is taken.

    >>> unique_name("i", {"i", "i₁"}), unique_name("pi", set())
    ('i₂', 'pi₁')
    """
    name = re.sub(r"[^\w\u0300-\u036f\u20d0-\u20f0]|[¹²³⁰-ⁿ]", "", name).lstrip("0123456789₀₁₂₃₄₅₆₇₈₉\u0300") or "v"
    found, n = name, 1
    while found in taken or found in WORDS:
        found, n = name + str(n).translate(_SUBSCRIPTS), n + 1
    return found
