"""Letters for values that differentiation has numbered: `u1`, an argument of a function, is r, v, Z … in a result.

Values of one name, such as the cotangents that a loop is given, get letters too: then no name has two meanings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from combdiff.terms.terms import Add, App, Lam, Loop, Term, Var, body_of, fresh, split_coefficient, substitute, terms_of
from combdiff.terms.types import Map, Type

Binding = tuple[Var, Term]
Names = Collection[str]

_NUMBERED = re.compile(r"u\d+(_bar|_dot)*")
_LETTERS = {0: "stcgh", 1: "vwyzgh", 2: "ZQWGH"}
_MANY = "TZWGH"
_RESIDUAL = {0: "", 1: "r"}


def with_letters(
    bindings: Sequence[Binding], results: Sequence[Term], own: Names, taken: Names, lost: Names = ()
) -> tuple[list[Binding], list[Term]]:
    """Definitions and results in which a matrix is Z, a vector v, a number s, and a difference R or r.

    >>> from combdiff.terms.terms import call, number, power
    >>> from combdiff.terms.types import REAL
    >>> x, u = fresh("x", REAL), fresh("u1", REAL)
    >>> [var.name for var, _ in with_letters([(u, call("exp", x))], [power(u, number(2))], (), {"x"})[0]]
    ['s']

    `own` are the names that the program gives to its values, which stay, `taken` all names that are in use. No value
    has a name in `lost`, by which the program calls another. A value that finds no free letter keeps its name. A
    definition of another name, E = u1, leaves one of the two.
    """
    used = {*taken, *own, *lost}
    loops = {var.name for var, value in bindings if isinstance(value, Loop)}
    count = Counter(var.name for var, _ in bindings)
    met: set[str] = set()
    values: dict[Var, Term] = {}
    found: list[Binding] = []
    for var, value in bindings:
        value = substitute(value, values) if values else value
        same = _named_otherwise(value)
        if same is not None and same.kind == var.kind and any(v is same for v, _ in found):
            kept = var if var.name in own and same.name not in own else same
            other = same if kept is var else var
            found = [(kept if v is other else v, substitute(e, {other: kept})) for v, e in found]
            values = {v: kept if new is other else new for v, new in values.items()} | {other: kept}
            continue
        again = count[var.name] > 1 and not isinstance(value, Loop) and var.name in loops | met
        met.add(var.name)
        new, again = var, again or var.name in lost
        if var.name not in own and (again or _NUMBERED.fullmatch(var.name)):
            new = next(_free(var.kind, used, _is_difference(value)), var)
        if new is not var:
            used.add(new.name)
            values[var] = new
        found.append((new, value))
    return found, [substitute(t, values) if values else t for t in results]


def _named_otherwise(value: Term) -> Var | None:
    """The other value that a definition is, as in `E = u1` and `E = j -> u1(j)`."""
    match value:
        case Var():
            return value
        case Lam(params, App(Var() as f, args)) if args == params:
            return f
        case _:
            return None


def letter(kind: Type, used: Collection[str]) -> Var:
    """A new variable of a type, with a letter that is free.

    >>> from combdiff.terms.types import REAL
    >>> letter(REAL, {"s"}).name
    't'
    """
    return next(_free(kind, used), fresh("u1", kind))


def _free(kind: Type, used: Collection[str], difference: bool = False) -> Iterator[Var]:
    rank = len(kind.params) if isinstance(kind, Map) else 0
    letters = _LETTERS.get(rank, _MANY)
    if difference:
        letters = _RESIDUAL.get(rank, "R") + letters
    return (fresh(name, kind) for name in letters if name not in used)


def _is_difference(value: Term) -> bool:
    """A residual, a − b."""
    body = body_of(value)
    return isinstance(body, Add) and any(split_coefficient(t)[0].real < 0 for t in terms_of(body))
