"""The canonical form of a tensor whose slots may be renamed too, and the symmetries that it finds.

Two maps of indices get one key if one of them is the other with slots exchanged or reversed, conjugated or negated.
The slots are named in one search with the bound indices, ahead of them, and the renamings found on the way that leave
the value alone are its symmetries.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from itertools import pairwise

from combdiff.budget import Budget, OutOfTime
from combdiff.canon.canonical import normal_form, reader_of, too_deep
from combdiff.canon.labelling import Vanishes
from combdiff.canon.leastform import Key, Naming
from combdiff.canon.reading import Unreadable
from combdiff.canon.skeleton import (
    NOTHING,
    UNIT,
    Coefficient,
    Node,
    Total,
    conjugated,
    times,
)
from combdiff.canon.slotgroup import SlotGroup
from combdiff.errors import BudgetError
from combdiff.records import dataclass
from combdiff.terms.terms import Lam, Var
from combdiff.terms.types import Symmetry, Type, is_complex

Symmetries = Mapping[Var, tuple[Symmetry, ...]]
_NONE: Symmetries = {}


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """value(a₁…aₙ) = coefficient · view K(a₁…aₙ), where K is what `key` stands for and `view` reads as a symmetry does:

    view K(a) = ± K(b), or its conjugate, with b_s = ±a_slot for the one pair (slot, ±1) of `view.rows[s]`. `group`
    generates the symmetries of K, in the slots of K. A value that is zero has coefficient (0, 0).
    """

    key: Hashable
    coefficient: Coefficient
    view: Symmetry
    group: tuple[Symmetry, ...]


def closed_form(
    value: Lam, symmetries: Symmetries = _NONE, unused: Collection[Var] = (), budget: Budget | None = None
) -> ClosedForm:
    """The canonical form of a map of indices to a number.

    >>> from combdiff.terms.terms import App, conj, fresh, mul, total
    >>> from combdiff.terms.types import COMPLEX, Domain, Index, Map
    >>> n = Index(Domain("n"))
    >>> C, i, j, k = fresh("C", Map((n, n), COMPLEX)), fresh("i", n), fresh("j", n), fresh("k", n)
    >>> density = total((k,), mul(App(C, (i, k)), conj(App(C, (j, k)))))
    >>> one, other = closed_form(Lam((i, j), density)), closed_form(Lam((j, i), density))
    >>> one.key == other.key, [str(s) for s in one.group]
    (True, ['((2, 1), :conj)'])

    `symmetries` adds to what the types of tensors declare; the declared ones of variables in `unused` are not used.
    When the budget is spent, or the value is none that can be read, it is its own canonical form.
    """
    found = _searched(value, symmetries, unused, budget or Budget())
    if found is None:
        identity = Symmetry.identity(len(value.params))
        return ClosedForm(value, UNIT, identity, ())
    back = inverse(found.view)
    group = tuple(_plain(found.view, move, back) for move in found.moves)
    return ClosedForm(found.key, found.coefficient, found.view, group)


def derived_symmetries(
    value: Lam, symmetries: Symmetries = _NONE, unused: Collection[Var] = (), budget: Budget | None = None
) -> tuple[Symmetry, ...]:
    """Generators of the symmetries that a tensor provably has: slots exchanged or reversed, conj, signs.

    >>> from combdiff.terms.terms import App, conj, fresh, mul
    >>> from combdiff.terms.types import COMPLEX, Domain, Index, Map
    >>> n = Index(Domain("n"))
    >>> x, i, j = fresh("x", Map((n,), COMPLEX)), fresh("i", n), fresh("j", n)
    >>> outer = Lam((i, j), mul(conj(App(x, (i,))), App(x, (j,))))
    >>> [str(s) for s in derived_symmetries(outer)]
    ['((2, 1), :conj)']
    """
    found = _searched(value, symmetries, unused, budget or Budget())
    if found is None or found.coefficient == NOTHING:
        return ()
    a, b = found.coefficient
    if not a or not b:
        # T = i K: what K says of its conjugate has the other sign for T
        turned = -1 if b else 1
        return tuple(Symmetry(m.rows, m.sign * (turned if m.conj else 1), m.conj) for m in found.moves)
    mirrors = [m for m in found.moves if m.conj]
    plain = [m for m in found.moves if not m.conj]
    one = Symmetry.identity(len(value.params))
    return tuple(plain + [mirrors[0].after(m) for m in mirrors if mirrors[0].after(m) != one])


# --- the search ---


@dataclass(frozen=True, slots=True)
class _Found:
    """As in `ClosedForm`, with the symmetries in the slots of the value."""

    key: Key
    coefficient: Coefficient
    view: Symmetry
    moves: tuple[Symmetry, ...]


def _searched(value: Lam, symmetries: Symmetries, unused: Collection[Var], budget: Budget) -> _Found | None:
    rank = len(value.params)
    zero = _Found(None, NOTHING, Symmetry.identity(rank), ())
    if too_deep(value.body) or budget.over():
        return None
    reader = reader_of(symmetries, unused, budget)
    for n, slot in enumerate(value.params):
        reader.names[slot] = n
        reader.bound.append(slot.kind)
    try:
        coefficient, node = reader.read(value.body)
        if coefficient == NOTHING:
            return zero
        root = _with_slots(node, rank)
        ways = [_assembled(root, reader.bound, budget, rank, False)]
        if is_complex(value.body.type):
            ways.append(_assembled(conjugated(root), reader.bound, budget, rank, True))
    except (Unreadable, OutOfTime):
        return None
    except Vanishes:
        return zero
    found = _simplest(_joined(ways), rank)
    if any(m.sign < 0 for m in found.moves) and not normal_form(value.body, symmetries, unused, budget).sign:
        return zero
    return _Found(found.key, times(coefficient, found.coefficient), found.view, found.moves)


def _with_slots(node: Node, rank: int) -> Node:
    """The tree with its slots among the indices to be named."""
    slots = tuple(range(rank))
    return Total((*slots, *node.indices), node.body) if isinstance(node, Total) else Total(slots, node)


def _assembled(root: Node, bound: list[Type], budget: Budget, rank: int, mirrored: bool) -> _Found:
    """The pieces of the tree side by side, in the order of their keys; equal pieces may be exchanged.

    Raises:
        Vanishes: if the tree is its own negative whatever its slots are.
        OutOfTime: if the budget ends first.
    """
    naming = Naming.of(root, bound, budget, rank)
    pieces, idle = naming.pieces(root)
    used = {slot for piece in pieces for slot, _ in piece.slots}
    pieces += [naming.idle_slot(slot) for slot in range(rank) if slot not in used]
    pieces.sort(key=lambda piece: piece.key)
    scale = UNIT
    moves: list[Symmetry] = []
    for piece in pieces:
        scale = times(scale, piece.scale)
        moves += [_move(images, rank, sign) for images, sign in piece.moves]
    for one, other in pairwise(pieces):
        if one.key == other.key and one.slots:
            pairs = [(s, t, turn * back) for (s, turn), (t, back) in zip(one.slots, other.slots, strict=True)]
            images = {s: (t, turn) for a, b, turn in pairs for s, t in ((a, b), (b, a))}
            moves.append(_move(images, rank, 1))
    rows = tuple(((slot, turn),) for piece in pieces for slot, turn in piece.slots)
    a, b = scale
    sign = -1 if not b and a < 0 else 1
    key = (idle, tuple(piece.key for piece in pieces))
    size = (a * sign, -b if mirrored else b)
    return _Found(key, size, Symmetry(rows, sign, mirrored), tuple(moves))


def _move(images: Mapping[int, tuple[int, int]], rank: int, sign: int) -> Symmetry:
    return Symmetry(tuple((images.get(slot, (slot, 1)),) for slot in range(rank)), sign)


def _joined(ways: list[_Found]) -> _Found:
    """The lesser of the forms of a value and of its conjugate; where they are one, that is a symmetry."""
    first, *others = sorted(ways, key=lambda way: way.key)
    moves = list(first.moves)
    for other in others:
        if other.key == first.key and other.coefficient == first.coefficient:
            moves.append(other.view.after(inverse(first.view)))
            moves += other.moves
    return _Found(first.key, first.coefficient, first.view, tuple(moves))


def _simplest(found: _Found, rank: int) -> _Found:
    """With the symmetries in simple words: those that move least come first, and none follows from those before it."""
    kept: list[Symmetry] = []
    for s in sorted({s for s in found.moves if s != Symmetry.identity(rank)}, key=_effort):
        if not _follows(rank, kept, s):
            kept.append(s)
    return _Found(found.key, found.coefficient, found.view, tuple(kept))


def _effort(s: Symmetry) -> tuple[int, bool, int, bool, object]:
    moved = sum(row[0][0] != slot for slot, row in enumerate(s.rows))
    return moved, s.conj, sum(row[0][1] < 0 for row in s.rows), s.sign < 0, s.rows


def _follows(rank: int, generators: list[Symmetry], s: Symmetry) -> bool:
    if not generators:
        return False
    try:
        return SlotGroup.generated(rank, tuple(generators), real=False).equivalent(s)
    except BudgetError:
        return s in generators


def inverse(s: Symmetry) -> Symmetry:
    """The inverse of a symmetry that only exchanges and reverses slots, conjugates and negates."""
    rows: list[tuple[tuple[int, int], ...]] = [()] * len(s.rows)
    for slot, row in enumerate(s.rows):
        rows[row[0][0]] = ((slot, row[0][1]),)
    return Symmetry(tuple(rows), s.sign, s.conj)


def _plain(view: Symmetry, move: Symmetry, back: Symmetry) -> Symmetry:
    """A symmetry of the value as one of what its key stands for."""
    return back.after(move).after(view)
