"""Chooses the plainest of equal spellings: of an entry of a symmetric tensor, and of the indices of a sum.

    J(q, p, r, s)'   with J(p, q, r, s) = J(q, p, s, r)' and p free   becomes   J(p, q, s, r)
    sum(k, U(k - b) * V(k - b) * W(k))   over a periodic domain       becomes   sum(k, U(k) * V(k) * W(k + b))

Least index arithmetic first, then least conj, then open indices in the front slots; an image that is not plainer than
what stands there is not taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeGuard

from combdiff.canon.slotgroup import SlotGroup
from combdiff.records import dataclass
from combdiff.terms.arithmetic import combination
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    Add,
    App,
    Conj,
    Const,
    Delta,
    Mul,
    Reduce,
    Sum,
    Term,
    Traverser,
    Var,
    conj,
    mul,
    number,
    numbers_read,
    split_coefficient,
    sub,
    substitute,
    subterms,
)
from combdiff.terms.types import Index, Map, Number, Symmetry, Type, is_periodic


def plainest(entry: Term, open_indices: Sequence[Var], derived: tuple[Symmetry, ...] = ()) -> Term:
    """`entry`, T(…) or T(…)', as its plainest equal, with a sign in front where the symmetry has one."""
    match entry:
        case App((Var() | Reduce()) as tensor, args) if _has_entries(tensor.type):
            conjugated = False
        case Conj(App((Var() | Reduce()) as tensor, args)) if _has_entries(tensor.type):
            conjugated = True
        case _:
            return entry
    group = SlotGroup.of(tensor.type, derived)
    if group.zero or (len(group.representatives) == 1 and not group.blocks):
        return entry
    best = (_cost(args, conjugated, open_indices), 1, conjugated, args)
    for moved, sign, turned in group.images(args, combination, lambda arg: _rank(arg, open_indices)):
        flipped = conjugated != turned
        cost = _cost(moved, flipped, open_indices)
        if cost < best[0]:
            best = (cost, sign, flipped, moved)
    _, sign, flipped, moved = best
    image = App(tensor, tuple(moved))
    return mul(number(sign), conj(image) if flipped else image)


def _has_entries(kind: Type) -> TypeGuard[Map]:
    """Whether it is a tensor, or a function of numbers, whose arguments a symmetry exchanges as well."""
    return (
        isinstance(kind, Map)
        and isinstance(kind.result, Number)
        and all(isinstance(p, Index | Number) for p in kind.params)
    )


def _rank(arg: Term, open_indices: Sequence[Var]) -> int:
    """Where an argument likes to stand: open indices in their order, then bound ones, then arithmetic."""
    if isinstance(arg, Var):
        return open_indices.index(arg) if arg in open_indices else len(open_indices)
    return len(open_indices) + 1


def _cost(args: Sequence[Term], conjugated: bool, open_indices: Sequence[Var]) -> tuple[int | tuple[int, ...], ...]:
    arithmetic = sum(isinstance(a, Add | Mul) for a in args if isinstance(a.type, Index))
    return arithmetic, int(conjugated), tuple(_rank(a, open_indices) for a in args)


# --- summed indices


@dataclass(frozen=True, slots=True)
class BareIndices:
    """Moves indices that are summed over periodic domains, so that they stand bare in as many slots as they can.

    `derived` adds to the declared symmetries of tensors; entries of those in `unused` are taken as they stand.
    """

    derived: Mapping[Var, tuple[Symmetry, ...]]
    unused: Collection[Var] = ()

    def __call__(self, t: Term) -> Term:
        return Traverser(self._settled, Sum)(t)

    def _settled(self, t: Term) -> Term:
        if not isinstance(t, Sum):
            return t
        body = t.body
        for i in t.indices:
            if is_periodic(i.kind):
                body = self._bare(i, body, {*t.indices, *t.free})
        return t if body is t.body else Sum(t.indices, body)

    def _bare(self, i: Var, body: Term, known: Collection[Var]) -> Term:
        """`body` with `i` moved by what is known around it, to where that leaves the least arithmetic."""
        choices = [body]
        for a in dict.fromkeys(_sums_with(i, body)):
            c, rest = split_off(i, a)
            if rest is not None and rest.free <= {*known}:
                choices.append(substitute(body, {i: mul(c, sub(i, rest))}))
        if len(choices) == 1 or not _is_free_to_move(i, body):
            return body
        return min(choices, key=self._effort)

    def _effort(self, body: Term) -> int:
        """The slots of plainest images that hold sums of indices."""
        slots = [a for u in subterms(body, App) for a in self._plainest(u).args]
        return sum(isinstance(a, Add) and isinstance(a.type, Index) for a in slots)

    def _plainest(self, entry: App) -> App:
        tensor = entry.function
        if not isinstance(tensor, Var) or tensor in self.unused:
            return entry
        image = split_coefficient(plainest(entry, (), self.derived.get(tensor, ())))[1]
        image = image.term if isinstance(image, Conj) else image
        return image if isinstance(image, App) else entry


def _sums_with(i: Var, body: Term) -> Iterator[Add]:
    """The sums of indices in slots of `body` that `i` is a term of."""
    for u in subterms(body):
        for a in u.args if isinstance(u, App) else ():
            if isinstance(a, Add) and isinstance(a.type, Index) and i in a.free:
                yield a


def split_off(i: Var, a: Add) -> tuple[Const, Term | None]:
    """c and r with a = c·i + r for c = ±1; no r where `i` has another number in front."""
    for u in a.terms:
        c, rest = split_coefficient(u)
        if rest == i and c in (ONE, MINUS_ONE):
            return c, sub(a, u)
    return ONE, None


def _is_free_to_move(i: Var, body: Term) -> bool:
    """Whether `i` stands only in slots of its own domain, where it counts modulo the size."""
    places = (
        (a, kind)
        for u in subterms(body)
        if isinstance(u, App) and isinstance(u.function.type, Map)
        for a, kind in zip(u.args, u.function.type.params, strict=True)
    )
    compared = (u for u in subterms(body, Delta))
    return (
        i not in numbers_read(body)
        and all(kind == i.kind for a, kind in places if i in a.free and isinstance(kind, Index))
        and not any(i in u.left.free | u.right.free for u in compared)
    )
