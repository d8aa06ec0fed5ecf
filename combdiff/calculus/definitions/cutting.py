"""Long expressions are computed through values of their own, so that derivatives grow with their length, not its cube.

    (x + 1) * (x + 2) * … * (x + 99)   becomes   u1 = (x + 1) * (x + 2) * (x + 3) * (x + 4);  …;  u25 * u26 * …

The derivative has a summand for each place of an unknown, a product of all that is applied to it there: n places below
n levels of functions make n² factors, each as long as what the function is applied to, and a second derivative does so
again. Only what has a long derivative is cut; other expressions stay in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from operator import is_
from typing import Protocol

from combdiff.records import dataclass
from combdiff.terms.terms import (
    Add,
    App,
    Call,
    Conj,
    Delta,
    Indicator,
    Lam,
    Mul,
    Pow,
    Sum,
    Term,
    Tuple,
    Var,
    bound_by,
    children,
    mul,
    rebuild,
    subterms,
)
from combdiff.terms.types import Index, Number, is_function

LONG = 5_000
"""Nodes of a derivative, as it would be written, from which on an expression is cut."""

PIECE = 10
"""Nodes that a part of what is cut may have without a name."""

WIDEST, CHUNK = 8, 4
"""Factors of a product that stays in one piece, and factors that get a name together where there are more."""

FEW = 2
"""Indices of a named value: one of more would take much memory."""


class Namer(Protocol):
    """What gives names to values, as `naming.Names` does."""

    @property
    def reached(self) -> set[Var]:
        """The variables that the unknowns reach."""

    @property
    def ask(self) -> Callable[[], None]:
        """To be called often; it may raise to stop."""

    def always_named(self, u: Term, scope: Sequence[Var]) -> Term:
        """An entry of a value of its own, made of `u`."""


def derivative_size(t: Term, unknowns: Collection[Var]) -> int:
    """How many nodes the derivative of `t` by `unknowns` would be written with, about.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> derivative_size(mul(x, y), [x]), derivative_size(mul(x, y), [x, y])
    (3, 6)
    """
    known: dict[Term, tuple[int, int, int]] = {}

    def measured(u: Term) -> tuple[int, int, int]:
        """Nodes of `u`, places of unknowns in it, and nodes of its derivative."""
        if u not in known:
            parts = [measured(c) for c in children(u)]
            nodes = 1 + sum(n for n, _, _ in parts)
            places = sum(p for _, p, _ in parts) + (u in unknowns)
            below = sum(d for _, _, d in parts)
            match u:
                case Mul():
                    own = sum(p * (nodes - n) for n, p, _ in parts)
                case Pow() | Call() | App():
                    own = places * nodes
                case _:
                    own = places
            known[u] = nodes, places, below + own
        return known[u]

    return measured(t)[2]


def cut(t: Term, scope: tuple[Var, ...], names: Namer) -> Term:
    """`t` with names for its parts, if its derivative is long; `scope` are the variables bound around it."""
    if derivative_size(t, names.reached) < LONG:
        return t
    return _Cut(names).go(t, scope)


@dataclass(slots=True)
class _Cut:
    """One expression that is cut; what occurs several times in it is so once."""

    names: Namer
    done: dict[Term, Term] = field(default_factory=dict)

    def go(self, t: Term, scope: tuple[Var, ...]) -> Term:
        # what is guarded by a condition is computed only where that holds
        if t.free.isdisjoint(self.names.reached) or isinstance(t, Delta | Indicator | Var):
            return t
        if not isinstance(t, Add | Mul | Pow | Call | Conj | Sum | Tuple | App | Lam):
            return t
        if isinstance(t, Lam) and is_function(t.type):
            return t
        known = self.done.get(t)
        if known is None:
            self.names.ask()
            known = self.done[t] = self._parted(t, scope)
        return known

    def _parted(self, t: Term, scope: tuple[Var, ...]) -> Term:
        inner = (*scope, *bound_by(t))
        below = children(t)
        parts = [self.go(c, inner) for c in below]
        if isinstance(t, Mul | Pow | Call):
            parts = [self._named(part, inner) for part in parts]
        if isinstance(t, Mul):
            parts = self._chunks(parts, inner)
        if len(parts) == len(below) and all(map(is_, parts, below)):
            return t
        match t:
            case Lam(params, _):
                return Lam(params, parts[0])
            case Sum(indices, _):
                return Sum(indices, parts[0])
            case Tuple():
                return Tuple(tuple(parts))
            case Mul():
                return mul(*parts)
            case _:
                return rebuild(t, parts)

    def _named(self, u: Term, scope: Sequence[Var]) -> Term:
        """A part, or its name if it is long."""
        if not isinstance(u.type, Number) or u.free.isdisjoint(self.names.reached):
            return u
        if sum(1 for _ in subterms(u)) <= PIECE or not _is_small(self._around(u, scope)):
            return u
        return self.names.always_named(u, scope)

    def _chunks(self, factors: Sequence[Term], scope: Sequence[Var]) -> list[Term]:
        """A few factors: of many that have the same indices, some get a name together."""
        groups: dict[frozenset[Var], list[Term]] = {}
        left: list[Term] = []
        for f in factors:
            around = self._around(f, scope)
            is_part = isinstance(f.type, Number) and not f.free.isdisjoint(self.names.reached) and _is_small(around)
            (groups.setdefault(frozenset(around), []) if is_part else left).append(f)
        for group in groups.values():
            while len(group) > WIDEST:
                chunks = [mul(*group[n : n + CHUNK]) for n in range(0, len(group), CHUNK)]
                group = [self.names.always_named(u, scope) if isinstance(u, Mul) else u for u in chunks]
            left += group
        return left

    def _around(self, u: Term, scope: Sequence[Var]) -> list[Var]:
        return [v for v in scope if v in u.free]


def _is_small(around: Sequence[Var]) -> bool:
    """Whether a value of these variables is a small array."""
    return len(around) <= FEW and all(isinstance(v.kind, Index) for v in around)
