"""Terms as flat tables, which can be pickled, copied and sent to other processes.

The number of a variable and the hash of a node belong to one process, so neither is kept: variables are made anew, in
the order that they had. A table is as long as the term has distinct parts and nested no deeper than one of them.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Sequence

from combdiff.records import dataclass
from combdiff.terms.nodes import Term, Var, end_named, fresh, is_end
from combdiff.terms.schema import bound_by, children
from combdiff.terms.types import Type


@dataclass(frozen=True, slots=True)
class _Row:
    """Where in the table a part stands."""

    number: int


@dataclass(frozen=True, slots=True)
class Archive:
    """Variables first, by name, type, and whether they are ends of intervals, then the `rows` of other nodes.

    A row is (class, fields), the parts of each before it.

    `roots` are the places of the terms, variables and rows counted as one table.

    >>> from combdiff.terms.terms import add, alpha_equal
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> total, first = Archive.of([add(x, y), x]).terms()
    >>> first in total.free, x in total.free
    (True, False)
    """

    variables: tuple[tuple[str, Type, bool], ...]
    rows: tuple[tuple[type[Term], tuple[object, ...]], ...]
    roots: tuple[int, ...]

    @classmethod
    def of(cls, terms: Sequence[Term]) -> Archive:
        """The table of `terms`, which share what they have in common, variables first of all."""
        parts = _in_order(terms)
        # affine forms have their terms in the order of their variables
        variables = sorted((t for t in parts if isinstance(t, Var)), key=lambda v: v.uid)
        nodes = [t for t in parts if not isinstance(t, Var)]
        places = {_key(t): n for n, t in enumerate((*variables, *nodes))}
        rows = [(type(t), tuple(_written(part, places) for part in _fields(t))) for t in nodes]
        named = tuple((v.name, v.kind, is_end(v)) for v in variables)
        return cls(named, tuple(rows), tuple(places[_key(t)] for t in terms))

    def terms(self) -> tuple[Term, ...]:
        """The terms, in variables of their own."""
        made: list[Term] = [end_named(name) if end else fresh(name, kind) for name, kind, end in self.variables]
        for node, fields in self.rows:
            made.append(node(*(_read(field, made) for field in fields)))
        return tuple(made[n] for n in self.roots)


def _key(t: Term) -> int:
    """A variable is its number; what is equal in another order is kept in its own."""
    return -t.uid if isinstance(t, Var) else id(t)


def _in_order(terms: Sequence[Term]) -> list[Term]:
    """All distinct parts of `terms`, the parts of each before it."""
    found: dict[int, Term] = {}
    stack = [(t, False) for t in reversed(terms)]
    while stack:
        t, ready = stack.pop()
        if ready:
            found[_key(t)] = t
        elif _key(t) not in found:
            stack.append((t, True))
            stack += [(part, False) for part in (*children(t), *bound_by(t))]
    return list(found.values())


def _fields(t: Term) -> list[object]:
    names: tuple[str, ...] = type(t).__match_args__
    return [getattr(t, name) for name in names]


def _written(field: object, places: dict[int, int]) -> object:
    match field:
        case Term():
            return _Row(places[_key(field)])
        case tuple():
            return tuple(_written(part, places) for part in field)
        case _:
            return field


def _read(field: object, made: Sequence[Term]) -> object:
    match field:
        case _Row(number):
            return made[number]
        case tuple():
            return tuple(_read(part, made) for part in field)
        case _:
            return field


def only(archive: Archive) -> Term:
    """The one term of a table."""
    (term,) = archive.terms()
    return term


def _reduced(t: Term) -> tuple[Callable[..., Term], tuple[Archive]]:
    return only, (Archive.of([t]),)


for _node in Term.__subclasses__():
    copyreg.pickle(_node, _reduced)
