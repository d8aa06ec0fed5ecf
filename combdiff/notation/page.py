"""Prepares a formula for readers, and collects the names that stand on a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import cycle

from combdiff.budget import Budget
from combdiff.calculus.definitions.floating import float_lets
from combdiff.calculus.functions.points import Points
from combdiff.canon.canonical import normal_form
from combdiff.terms.terms import (
    App,
    Call,
    Const,
    Lam,
    Let,
    Sum,
    Term,
    Traverser,
    Var,
    bound_by,
    conj,
    fresh,
    holds,
    let,
    mul,
    split_coefficient,
    subterms,
    total,
)
from combdiff.terms.types import Map, is_complex


def entrywise(value: Term) -> Term:
    """A tensor as a map of its indices, x as i ↦ x(i); any other term is as it was.

    >>> from combdiff.terms.types import REAL, Index
    >>> x = fresh("x", Map((Index(),), REAL))
    >>> entrywise(x).params[0].name
    'i'
    """
    if isinstance(value, Lam) or not (isinstance(value.type, Map) and value.type.is_tensor):
        return value
    indices = tuple(fresh(letter, kind) for letter, kind in zip(cycle("ijklmn"), value.type.params, strict=False))
    return Lam(indices, App(value, indices))


def definitions_outside(objective: Term) -> Term:
    """A map whose definitions stand behind it: Σ_n (t² where t = x_n) as Σ_n t_n² where t_n = x_n."""
    if not isinstance(objective, Lam) or any(isinstance(t.type, Map) and not t.type.is_array for t in _lets(objective)):
        return objective
    core = objective.body.body if isinstance(objective.body, Let) else objective.body
    if not holds(core, Let):
        return objective
    points = Points.of(objective)
    outside = objective if points is None else points.map
    outside = Lam(outside.params, let(*float_lets(outside.body)))
    return outside if points is None else points.back(outside)


def without_needless_re(term: Term) -> Term:
    """x†Ax for Re(x†Ax), Re(Σ_i z_i) for Σ_i Re(z_i).

    Of what is its own conjugate, by the declared symmetries, no real part is written.

    >>> from combdiff.terms.terms import call, conj, mul
    >>> from combdiff.terms.types import COMPLEX
    >>> z, w = fresh("z", COMPLEX), fresh("w", COMPLEX)
    >>> size, product = mul(conj(z), z), mul(conj(z), w)
    >>> without_needless_re(call("real", size)) == size, without_needless_re(call("real", product)) == product
    (True, False)
    """
    budget = Budget.of(SECONDS)

    def visit(t: Term) -> Term:
        match t:
            case Call("real", (u,)) if is_complex(u.type) and not budget.over():
                return u if _is_its_own_conjugate(u, budget) else t
            case Sum(indices, body) if (inner := _under_re(body)) is not None:
                number, u = inner
                return mul(number, visit(Call("real", (total(indices, u),))))
            case _:
                return t

    found = any(t.primitive == "real" for t in subterms(term, Call))
    return Traverser(visit)(term) if found else term


def _under_re(t: Term) -> tuple[Const, Term] | None:
    """c and u of c Re(u)."""
    number, core = split_coefficient(t)
    match core:
        case Call("real", (u,)):
            return number, u
        case _:
            return None


SECONDS = 1.0
"""For canonical forms of what stands under real parts."""


def _is_its_own_conjugate(u: Term, budget: Budget) -> bool:
    form, other = (normal_form(t, budget=budget) for t in (u, conj(u)))
    return form.key is not None and form == other


def _lets(term: Term) -> Iterator[Term]:
    """The values that a term defines anywhere."""
    return (value for t in subterms(term, Let) for _, value in t.bindings)


def names_on_page(objective: Term, result: Term) -> set[str]:
    """Every name that stands in either, but for indices that combdiff has numbered, `i1`."""
    given = names_in(objective)
    return given | {name for name in names_in(result) if not re.fullmatch(r"[A-Za-z]\d+", name)}


def names_in(term: Term) -> set[str]:
    """Every name that stands in a term."""
    found = list(subterms(term))
    return {v.name for u in found for v in (*bound_by(u), *((u,) if isinstance(u, Var) else ()))}
