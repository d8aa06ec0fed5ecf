"""Letters for values that combdiff has named by numbers, `u1` and its cotangent `u1_bar`, in formulas for readers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import cycle

from combdiff.terms.terms import App, Lam, Let, Term, Var, bound_by, fresh, let, substitute, subterms
from combdiff.terms.types import Map, Type

_NUMBERED = re.compile(r"u\d+(_bar|_dot)*")
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
    return _with_letters(term, set(taken), {*taken, *names_in(term)})


def _with_letters(term: Term, given: Collection[str], used: set[str]) -> Term:
    """`given` are the names of the program, which stay."""
    if isinstance(term, Lam):
        return Lam(term.params, _with_letters(term.body, given, used))
    if not isinstance(term, Let):
        return term
    values: dict[Var, Term] = {}
    bindings = []
    for var, value in term.bindings:
        new = var if var.name.removesuffix("_bar").removesuffix("_dot") in given else lettered(var, used)
        bindings.append((new, substitute(value, values) if values else value))
        if new is not var:
            values[var] = new
            used.add(new.name)
    return let(bindings, substitute(term.body, values) if values else term.body)


def lettered(var: Var, used: Collection[str]) -> Var:
    """A variable of the same type that is called by a free letter."""
    if not _NUMBERED.fullmatch(var.name):
        return var
    return next(_free(var.kind, used), var)


def letter(kind: Type, used: Collection[str]) -> Var:
    """A new variable of a type, with a letter that is free.

    >>> from combdiff.terms.types import REAL
    >>> letter(REAL, {"s"}).name
    't'
    """
    return next(_free(kind, used), fresh("u1", kind))


def _free(kind: Type, used: Collection[str]) -> Iterator[Var]:
    rank = len(kind.params) if isinstance(kind, Map) else 0
    return (fresh(name, kind) for name in _LETTERS.get(rank, _MANY) if name not in used)


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


def names_on_page(objective: Term, result: Term) -> set[str]:
    """Every name that stands in either, but for indices that combdiff has numbered, `i1`."""
    given = names_in(objective)
    return given | {name for name in names_in(result) if not re.fullmatch(r"[A-Za-z]\d+", name)}


def names_in(term: Term) -> set[str]:
    """Every name that stands in a term."""
    found = list(subterms(term))
    return {v.name for u in found for v in (*bound_by(u), *((u,) if isinstance(u, Var) else ()))}
