"""Slots of closed tensors, and the moves of slots that leave a tensor alone.

A label says which index stands in a slot: a positive number, negative where the index stands there reversed
(k ↦ −k, over a periodic or symmetric domain). Within a class the slots themselves are the labels 1…rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from combdiff.canon.slotgroup import SlotGroup
from combdiff.terms.types import Symmetry

Labels = tuple[int, ...]

LARGEST = 200
"""Elements of a group that are listed; of a larger one only some are used, which is right and finds less."""


class Move(NamedTuple):
    """K(l) = sign · K(l ∘ slots), or its conjugate, for a class K."""

    slots: Labels
    sign: int = 1
    conj: bool = False


def at(labels: Labels, slots: Labels) -> Labels:
    """labels ∘ slots: what stands in `slots` if `labels` stand in 1…rank.

    >>> at((7, 8), (2, -1))
    (8, -7)
    """
    return tuple([labels[s - 1] if s > 0 else -labels[-s - 1] for s in slots])


def inverse(slots: Labels) -> Labels:
    """The labels whose composition with `slots`, a signed permutation, is 1…rank.

    >>> inverse((2, -1)), at(inverse((2, -1)), (2, -1))
    ((-2, 1), (1, 2))
    """
    found = [0] * len(slots)
    for n, s in enumerate(slots, start=1):
        found[abs(s) - 1] = n if s > 0 else -n
    return tuple(found)


def identity(rank: int) -> Labels:
    """1…rank."""
    return tuple(range(1, rank + 1))


def generated(rank: int, generators: Iterable[Move]) -> tuple[Move, ...]:
    """The group of `generators`, least first; of one larger than `LARGEST` the generators, and the identity.

    >>> len(generated(3, [Move((2, 1, 3)), Move((1, 3, 2))]))
    6
    """
    one = Move(identity(rank))
    known = dict.fromkeys(generators)
    found = {one: None}
    todo = [one]
    while todo:
        move = todo.pop()
        for g in known:
            image = Move(at(move.slots, g.slots), move.sign * g.sign, move.conj != g.conj)
            if image not in found:
                found[image] = None
                todo.append(image)
        if len(found) > LARGEST:
            return (one, *(g for g in known if g != one))
    return tuple(sorted(found))


def moves_of(group: SlotGroup) -> tuple[Move, ...] | None:
    """The moves of the declared symmetries of a tensor; None if they do arithmetic with indices."""
    exchanges = [
        Move(_exchanged(group.rank, a, b), sign)
        for block, sign in zip(group.blocks, group.signs, strict=True)
        for a, b in pairwise(block)
    ]
    moves = [moved(s) for s in group.representatives]
    return generated(group.rank, [*exchanges, *(m for m in moves if m is not None)]) if None not in moves else None


def moved(symmetry: Symmetry) -> Move | None:
    """A symmetry that exchanges and reverses slots as a move; None for one that does more."""
    if any(len(row) != 1 or abs(row[0][1]) != 1 for row in symmetry.rows):
        return None
    return Move(tuple((row[0][0] + 1) * row[0][1] for row in symmetry.rows), symmetry.sign, symmetry.conj)


def symmetry_of(move: Move) -> Symmetry:
    """A move as a symmetry of a tensor."""
    return Symmetry(tuple(((abs(s) - 1, 1 if s > 0 else -1),) for s in move.slots), move.sign, move.conj)


def _exchanged(rank: int, a: int, b: int) -> Labels:
    slots = list(range(1, rank + 1))
    slots[a], slots[b] = slots[b], slots[a]
    return tuple(slots)


def without_conj(moves: Sequence[Move]) -> list[Move]:
    """The moves of a real tensor."""
    return [Move(m.slots, m.sign) for m in moves]
