"""Letters for values that combdiff has named by numbers, `u1` and its cotangent `u1_bar`, in formulas for readers."""

from __future__ import annotations

import re
from collections.abc import Collection

from combdiff.terms.terms import Lam, Let, Term, Var, bound_by, fresh, let, substitute, subterms
from combdiff.terms.types import Map

_NUMBERED = re.compile(r"u\d+(_bar)?")
_LETTERS = {0: "stcgh", 1: "vwyzgh", 2: "RZQWGH"}
_MANY = "TRZWGH"


def with_letters(term: Term, taken: Collection[str] = ()) -> Term:
    """A result in which a matrix is R or Z, a vector v, a number s; what finds no free letter keeps its name.

    >>> from combdiff.terms.terms import add, call, number, power
    >>> from combdiff.terms.types import REAL
    >>> x, u = fresh("x", REAL), fresh("u1", REAL)
    >>> named = with_letters(Lam((x,), let([(u, call("exp", x))], power(add(u, number(1)), number(2)))))
    >>> named.body.bindings[0][0].name
    's'
    """
    if isinstance(term, Lam):
        return Lam(term.params, with_letters(term.body, {*taken, *names_in(term)}))
    if not isinstance(term, Let):
        return term
    used = {*taken, *names_in(term)}
    values: dict[Var, Term] = {}
    bindings = []
    for var, value in term.bindings:
        new = _lettered(var, used)
        bindings.append((new, substitute(value, values) if values else value))
        if new is not var:
            values[var] = new
            used.add(new.name)
    return let(bindings, substitute(term.body, values) if values else term.body)


def _lettered(var: Var, used: Collection[str]) -> Var:
    if not _NUMBERED.fullmatch(var.name):
        return var
    rank = len(var.kind.params) if isinstance(var.kind, Map) else 0
    letters = _LETTERS.get(rank, _MANY)
    return next((fresh(letter, var.kind) for letter in letters if letter not in used), var)


def names_in(term: Term) -> set[str]:
    """Every name that stands in a term."""
    found = list(subterms(term))
    return {v.name for u in found for v in (*bound_by(u), *((u,) if isinstance(u, Var) else ()))}
