"""Rewrites tensors that are zero off their diagonals, (i, j) ↦ δ(i, j, e(i)), in terms of the diagonal entries.

    v = (i, j) -> delta(i, j, e(i));  … v(p, q) …   becomes   w = i -> e(i);  … delta(p, q, w(p)) …

The derivative of what acts entry by entry is such a tensor. `parts_by_pattern` says of any tensor which of its terms
lie on which diagonal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product

from combdiff.records import dataclass
from combdiff.simplify.choose import Binding, is_cheap
from combdiff.terms.terms import (
    ZERO,
    Add,
    App,
    Conj,
    Delta,
    Indicator,
    Lam,
    Mul,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    apply,
    compares_indices,
    conj,
    delta,
    fresh,
    held_whole,
    holds,
    indicator,
    mul,
    refreshed,
    substitute,
    total,
)
from combdiff.terms.types import Index, is_contractable

Condition = tuple[Term, Term]


@dataclass(frozen=True, slots=True)
class Part:
    """What a tensor is where each of its slots is what `at` says, in the slots that are `kept`; it is 0 elsewhere."""

    at: tuple[Term, ...]
    entry: Term

    @property
    def kept(self) -> tuple[Var, ...]:
        """The slots that are free."""
        return tuple(dict.fromkeys(v for form in self.at for v in (form,) if isinstance(v, Var)))


def parts_by_pattern(slots: Sequence[Var], body: Term, *, periodic: bool = False) -> list[Part]:
    """The terms of `body`, an entry at `slots`, by the diagonals that they lie on.

    A slot may be an entry of an array of integers at others, as in δ(J(e), j, …); with `periodic`, slots of a periodic
    domain may be any affine forms of others, as in δ(i + 1, j, …).

    >>> from combdiff.terms.terms import ONE, TWO
    >>> from combdiff.terms.types import Domain
    >>> i, j = (fresh(name, Index(Domain("n"))) for name in "ij")
    >>> [(len(p.kept), p.entry == ONE) for p in parts_by_pattern((i, j), add(TWO, delta(i, j, ONE)))]
    [(2, False), (1, True)]
    """
    found: dict[tuple[Term, ...], list[Term]] = {}
    for conditions, rest in _taken_apart(body):
        part = _solved(slots, conditions, rest, periodic)
        if part.entry != ZERO:
            found.setdefault(part.at, []).append(part.entry)
    return [Part(at, add(*entries)) for at, entries in found.items()]


def _solved(slots: Sequence[Var], conditions: Sequence[Condition], rest: Term, periodic: bool) -> Part:
    at: dict[Var, Term] = {v: v for v in slots}
    for left, right in conditions:
        left, right = substitute(left, at), substitute(right, at)
        found = _solution(left, right, slots, periodic)
        if found is None:
            rest = delta(left, right, rest)
            continue
        v, form = found
        rest = substitute(rest, {v: form})
        at = {slot: substitute(value, {v: form}) for slot, value in at.items()}
    return Part(tuple(at[v] for v in slots), substitute(rest, at))


def _solution(left: Term, right: Term, slots: Sequence[Var], periodic: bool) -> tuple[Var, Term] | None:
    """A later slot in terms of earlier ones."""
    both = [u for u in (left, right) if isinstance(u, Var) and u in slots]
    if len(both) == 2 and both[0].kind == both[1].kind:
        first, last = sorted(both, key=slots.index)
        return (last, first) if is_contractable(first.kind) else None
    for v in both[:1]:
        other = right if v is left else left
        if isinstance(other, App) and other.type == v.kind and v not in other.free:
            indices = {u for u in other.free if isinstance(u.kind, Index)}
            return (v, other) if indices <= set(slots) and is_contractable(v.kind) else None
    if periodic and both:
        (v,) = both[:1]
        other = right if v is left else left
        wraps = isinstance(v.kind, Index) and v.kind.domain is not None and v.kind.domain.periodic
        plain = wraps and v.kind.domain.directions == 1 and not v.kind.domain.symmetric  # type: ignore[union-attr]
        own = other.free and all(u in slots and u.kind == v.kind for u in other.free)
        if plain and own and v not in other.free and is_contractable(v.kind):
            return v, other
    return None


def _taken_apart(t: Term) -> list[tuple[tuple[Condition, ...], Term]]:
    """`t` as a sum of terms, each with the δ of indices that are factors of it."""
    if not holds(t, Delta):
        return [((), t)]
    match t:
        case Add(terms):
            return [part for u in terms for part in _taken_apart(u)]
        case Delta(left, right, body) if isinstance(left.type, Index) and isinstance(right.type, Index):
            return [(((left, right), *conditions), rest) for conditions, rest in _taken_apart(body)]
        case Delta(left, right, body) if compares_indices(left, right):
            # at a number, as in δ(s, 0, …)
            return [(conditions, delta(left, right, rest)) for conditions, rest in _taken_apart(body)]
        case Indicator(left, right, body):
            return [(conditions, indicator(left, right, rest)) for conditions, rest in _taken_apart(body)]
        case Conj(body):
            return [(conditions, conj(rest)) for conditions, rest in _taken_apart(body)]
        case Mul(factors):
            choices = product(*map(_taken_apart, factors))
            return [(tuple(c for part, _ in choice for c in part), mul(*(r for _, r in choice))) for choice in choices]
        case Sum(indices, body):
            return [_summed(indices, conditions, rest) for conditions, rest in _taken_apart(body)]
        case _:
            return [((), t)]


def _summed(indices: Sequence[Var], conditions: Sequence[Condition], rest: Term) -> tuple[tuple[Condition, ...], Term]:
    """Conditions on what is summed over stay under the sum."""
    outer = tuple(c for c in conditions if all(side.free.isdisjoint(indices) for side in c))
    for left, right in conditions:
        if (left, right) not in outer:
            rest = delta(left, right, rest)
    return outer, total(tuple(indices), rest)


def without_diagonals(
    bindings: Sequence[Binding], results: Sequence[Term], stay: Collection[Var] = ()
) -> tuple[list[Binding], list[Term]] | None:
    """The same values with tensors that lie on diagonals alone replaced by what is there; None if there are none.

    Those that are to `stay` do.
    """
    whole = set().union(*(held_whole(t) for t in (*(e for _, e in bindings), *results)))
    known: dict[Var, list[_Diagonal]] = {}
    found: list[Binding] = []
    for var, value in bindings:
        value = _seen_through(value, known)
        parts = _diagonals(value) if var not in stay and var not in whole else None
        if parts is None:
            found.append((var, value))
            continue
        assert isinstance(value, Lam), "a tensor"
        known[var] = []
        for part in parts:
            own = Lam(part.kept, part.entry)
            if not is_cheap(own):
                new = fresh(var.name, own.type)
                found.append((new, refreshed(own)))
                own = Lam(part.kept, App(new, part.kept))
            known[var].append(_Diagonal(value.params, part.at, own))
    return (found, [_seen_through(t, known) for t in results]) if known else None


@dataclass(frozen=True, slots=True)
class _Diagonal:
    """What a tensor with these slots is where each is as `at` says: `entry` at the slots that are free."""

    slots: tuple[Var, ...]
    at: tuple[Term, ...]
    entry: Lam

    def read(self, args: Sequence[Term]) -> Term:
        """The entry at arguments, under the conditions that these lie there."""
        given = dict(zip(self.slots, args, strict=True))
        kept = dict.fromkeys(form for form in self.at if isinstance(form, Var))
        entry = apply(self.entry, *(given[v] for v in kept))
        for slot, form in zip(self.slots, self.at, strict=True):
            if form is not slot:
                entry = delta(substitute(form, given), given[slot], entry)
        return entry


def _diagonals(value: Term) -> list[Part] | None:
    """The parts of a tensor, if it is 0 but on diagonals."""
    if not isinstance(value, Lam) or not holds(value.body, Delta):
        return None
    if not all(isinstance(p.kind, Index) for p in value.params):
        return None
    parts = parts_by_pattern(value.params, value.body)
    return parts if parts and all(len(part.kept) < len(value.params) for part in parts) else None


def _seen_through(t: Term, known: Mapping[Var, Sequence[_Diagonal]]) -> Term:
    """`t` with entries of diagonal tensors written out."""

    def visit(u: Term) -> Term:
        if not (isinstance(u, App) and isinstance(u.function, Var) and u.function in known):
            return u
        return add(*(diagonal.read(u.args) for diagonal in known[u.function]))

    return Traverser(visit)(t) if known else t
