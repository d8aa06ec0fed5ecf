"""The schema of a node kind, read off the annotations of its class: walks, rebuilding and archives use it.

    class Sum(Term):
        indices: tuple[Var, ...]      variables that the node binds
        body: Term                    a child

`tuple[Term, ...]` are children in a row, `tuple[tuple[Var, Term], ...]` variables that are bound to children; all other
fields are plain, and tell the node from others of its kind. Children stand last. So the class alone declares a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from combdiff.records import dataclass
from combdiff.terms.nodes import Term, Var

PLAIN, BOUND, CHILD, ROW, BINDINGS = "plain", "bound", "child", "row", "bindings"

_ROLES = {
    "Term": CHILD,
    "tuple[Term, ...]": ROW,
    "tuple[Var, ...]": BOUND,
    "tuple[tuple[Var, Term], ...]": BINDINGS,
}

Reader = Callable[[Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a node kind by their roles, and how its children, bound variables and plain fields are read."""

    kind: type[Term]
    roles: dict[str, str]
    children: Reader
    bound: Reader
    plain: Reader

    def arguments(self, t: Term, parts: Sequence[Term], bound: tuple[Var, ...] = ()) -> tuple[Any, ...]:
        """The fields of `t` with other children, each of a row for itself: what the constructors of terms take."""
        if BINDINGS in self.roles.values():
            return (tuple(zip(bound or self.bound(t), parts, strict=False)), parts[-1])
        return (*self.plain(t), *((bound or self.bound(t),) if BOUND in self.roles.values() else ()), *parts)

    def shape(self, t: Term, parts: Sequence[Term], bound: tuple[Var, ...] = ()) -> Term:
        """The node with other children."""
        make: Callable[..., Term] = self.kind
        given = self.arguments(t, parts, bound)
        if ROW not in self.roles.values():
            return make(*given)
        single = len(self.roles) - 1
        return make(*given[:single], given[single:])


def schema_of(kind: type[Term]) -> Schema:
    """The schema of a node kind.

    >>> from combdiff.terms.nodes import Call, Sum
    >>> schema_of(Sum).roles, schema_of(Call).roles
    ({'indices': 'bound', 'body': 'child'}, {'primitive': 'plain', 'args': 'row'})
    """
    roles = {f.name: _ROLES.get(str(f.type), PLAIN) for f in fields(kind) if f.init}
    of = {role: [name for name, r in roles.items() if r == role] for role in roles.values()}
    plain = _together(of.get(PLAIN, []))
    if BINDINGS in of:
        bindings, body = attrgetter(*of[BINDINGS]), attrgetter(*of[CHILD])
        return Schema(
            kind,
            roles,
            lambda t: (*[value for _, value in bindings(t)], body(t)),
            lambda t: tuple([var for var, _ in bindings(t)]),
            plain,
        )
    bound = attrgetter(*of[BOUND]) if BOUND in of else _nothing
    below = _together(of.get(CHILD, []))
    if ROW not in of:
        return Schema(kind, roles, below, bound, plain)
    row = attrgetter(*of[ROW])
    return Schema(kind, roles, (lambda t: (*below(t), *row(t))) if CHILD in of else row, bound, plain)


def _nothing(_: Term) -> tuple[Any, ...]:
    return ()


def _together(names: Sequence[str]) -> Reader:
    """What reads these fields as a tuple."""
    if not names:
        return _nothing
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda t: (get(t),)


class _Schemas(dict[type[Term], Schema]):
    def __missing__(self, kind: type[Term]) -> Schema:
        found = self[kind] = schema_of(kind)
        return found


SCHEMAS = _Schemas()
"""The schema of each node kind that was met."""


def children(t: Term) -> tuple[Term, ...]:
    """The terms directly below `t`, bound variables not counted.

    >>> from combdiff.terms.nodes import ONE, TWO, Add, Let, fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> children(Add((x, ONE))) == (x, ONE), children(Let(((x, TWO),), x)) == (TWO, x)
    (True, True)
    """
    return SCHEMAS[type(t)].children(t)


def bound_by(t: Term) -> tuple[Var, ...]:
    """The variables that the node `t` itself binds."""
    return SCHEMAS[type(t)].bound(t)


def label(t: Term) -> tuple[object, ...]:
    """What tells a node from others of its kind, children and bound names aside.

    >>> from combdiff.terms.nodes import ONE, Call
    >>> label(Call("exp", (ONE,)))
    ('exp',)
    """
    return SCHEMAS[type(t)].plain(t)


def reshaped(t: Term, parts: Sequence[Term], bound: tuple[Var, ...] = ()) -> Term:
    """`t` with other children and, if given, other bound variables, in the very shape that it has."""
    return SCHEMAS[type(t)].shape(t, parts, bound) if parts else t
