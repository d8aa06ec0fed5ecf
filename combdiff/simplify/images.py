"""How an entry of a symmetric tensor is written: of its equal images the plainest.

    J(q, p, r, s)'   with J(p, q, r, s) = J(q, p, s, r)' and p free   becomes   J(p, q, s, r)

Least index arithmetic first, then least conj, then open indices in the front slots; an image that is not plainer than
what stands there is not taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.canon.slotgroup import SlotGroup
from combdiff.terms.terms import Add, App, Conj, Mul, Term, Var, add, conj, mul, number
from combdiff.terms.types import Index, Map, Number, Symmetry


def plainest(entry: Term, open_indices: Sequence[Var], derived: tuple[Symmetry, ...] = ()) -> Term:
    """`entry`, T(…) or T(…)', as its plainest equal, with a sign in front where the symmetry has one."""
    match entry:
        case App(Var(_, Map() as kind), args) if _has_entries(kind):
            conjugated = False
        case Conj(App(Var(_, Map() as kind), args)) if _has_entries(kind):
            conjugated = True
        case _:
            return entry
    group = SlotGroup.of(kind, derived)
    if group.zero or (len(group.representatives) == 1 and not group.blocks):
        return entry
    tensor = entry.term.function if isinstance(entry, Conj) and isinstance(entry.term, App) else None
    tensor = entry.function if isinstance(entry, App) else tensor
    assert tensor is not None, "an entry of a tensor"
    best = (_cost(args, conjugated, open_indices), 1, conjugated, args)
    for moved, sign, turned in group.images(args, _combined, lambda arg: _rank(arg, open_indices)):
        flipped = conjugated != turned
        cost = _cost(moved, flipped, open_indices)
        if cost < best[0]:
            best = (cost, sign, flipped, moved)
    _, sign, flipped, moved = best
    image = App(tensor, tuple(moved))
    return mul(number(sign), conj(image) if flipped else image)


def _has_entries(kind: Map) -> bool:
    """Whether it is a tensor, or a function of numbers, whose arguments a symmetry exchanges as well."""
    return isinstance(kind.result, Number) and all(isinstance(p, Index | Number) for p in kind.params)


def _combined(pairs: Sequence[tuple[int, Term]]) -> Term:
    return add(*(mul(number(c), arg) for c, arg in pairs))


def _rank(arg: Term, open_indices: Sequence[Var]) -> int:
    """Where an argument likes to stand: open indices in their order, then bound ones, then arithmetic."""
    if isinstance(arg, Var):
        return open_indices.index(arg) if arg in open_indices else len(open_indices)
    return len(open_indices) + 1


def _cost(args: Sequence[Term], conjugated: bool, open_indices: Sequence[Var]) -> tuple[int | tuple[int, ...], ...]:
    arithmetic = sum(isinstance(a, Add | Mul) for a in args if isinstance(a.type, Index))
    return arithmetic, int(conjugated), tuple(_rank(a, open_indices) for a in args)
