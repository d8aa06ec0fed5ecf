"""α-equivalence: whether terms are equal up to the names of bound variables, and a hash that respects it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from combdiff.records import dataclass
from combdiff.terms.nodes import Add, Loop, Mul, Term, Var
from combdiff.terms.schema import bound_by, children, label
from combdiff.terms.types import Index


def alpha_equal(a: Term, b: Term) -> bool:
    """Whether two terms differ by the names of bound variables at most, and in order where no bound variable stands.

    >>> from combdiff.terms.terms import Lam, add, fresh
    >>> from combdiff.terms.types import INTEGER, REAL
    >>> i, j, x, y = fresh("i", INTEGER), fresh("j", INTEGER), fresh("x", REAL), fresh("y", REAL)
    >>> alpha_equal(Lam((i,), i), Lam((j,), j)), alpha_equal(Lam((i,), add(x, y)), Lam((j,), add(y, x)))
    (True, True)
    """
    return _Comparison().same(a, b, {})


def same_recurrence(a: Loop, b: Loop) -> bool:
    """Whether two loops go through the same states, of which each may take another one."""
    together = a.backward == b.backward and a.time.kind == b.time.kind
    return together and alpha_equal(a.step, b.step) and alpha_equal(a.start, b.start)


@dataclass(slots=True)
class _Comparison:
    """One comparison: the pairs that are `known` to be equal, each in a scope of names; `scopes` are kept alive."""

    known: set[tuple[int, int, int]] = field(default_factory=set)
    scopes: list[Mapping[Var, Var]] = field(default_factory=list)

    def same(self, u: Term, v: Term, names: Mapping[Var, Var]) -> bool:
        """Whether two terms are equal, with `names` for the variables that are bound around the first."""
        if isinstance(u, Var):
            return names[u] == v if u in names else u == v and v not in names.values()
        # compared once in a scope, though they may stand in many places; what holds no bound variable, once at all
        closed = names.keys().isdisjoint(u.free) and v.free.isdisjoint(names.values())
        pair = id(u), id(v), 0 if closed else id(names)
        if pair in self.known or (closed and u == v):
            return True
        if not self._alike(u, v, names):
            return False
        self.known.add(pair)
        return True

    def _alike(self, u: Term, v: Term, names: Mapping[Var, Var]) -> bool:
        if type(u) is not type(v) or label(u) != label(v):
            return False
        left, right = children(u), children(v)
        ours, theirs = bound_by(u), bound_by(v)
        if len(left) != len(right) or [x.kind for x in ours] != [x.kind for x in theirs]:
            return False
        if ours:
            names = {**names, **dict(zip(ours, theirs, strict=True))}
            self.scopes.append(names)
        if isinstance(u, Add) and isinstance(u.type, Index):
            return self._same_multiset(left, right, names)
        return all(self.same(x, y, names) for x, y in zip(left, right, strict=True))

    def _same_multiset(self, left: Sequence[Term], right: Sequence[Term], names: Mapping[Var, Var]) -> bool:
        rest = list(right)
        for x in left:
            match_ = next((y for y in rest if self.same(x, y, names)), None)
            if match_ is None:
                return False
            rest.remove(match_)
        return True


def alpha_hash(t: Term) -> int:
    """A number that terms have in common which differ by the names of bound variables at most.

    >>> from combdiff.terms.terms import Lam, fresh
    >>> from combdiff.terms.types import INTEGER
    >>> i, j = fresh("i", INTEGER), fresh("j", INTEGER)
    >>> alpha_hash(Lam((i,), i)) == alpha_hash(Lam((j,), j))
    True
    """
    known: dict[Term, int] = {}

    def go(u: Term) -> int:
        found = known.get(u)
        if found is None:
            found = known[u] = step(u)
        return found

    def step(u: Term) -> int:
        if isinstance(u, Var):
            return hash(u if u in t.free else u.kind)
        below = [go(c) for c in children(u)]
        if isinstance(u, Add | Mul):
            below.sort()
        return hash((type(u), label(u), *below))

    return go(t)
