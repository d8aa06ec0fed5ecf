"""The group of slot moves that leave a tensor unchanged, all elements listed.

A label says which index stands in a slot: a positive number, negative where the index stands there reversed
(k ↦ −k, over a periodic or symmetric domain). The slots themselves are the labels 1…rank.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from combdiff.records import dataclass
from combdiff.terms.types import Map, Symmetry, is_complex

G = TypeVar("G")
H = TypeVar("H", bound=Hashable)
T = TypeVar("T")

Labels = tuple[int, ...]

LARGEST = 1000
"""Elements of a group that are listed."""


def orbit(start: H, moves: Collection[G], act: Callable[[H, G], H]) -> Iterator[H]:
    """All that `moves`, one after the other, make of `start`, itself first: the shortest products come first.

    >>> list(orbit(1, (2, 3), lambda x, factor: x * factor % 7))
    [1, 2, 3, 4, 6, 5]
    """
    found, seen = [start], {start}
    yield start
    for x in found:
        for move in moves:
            image = act(x, move)
            if image not in seen:
                seen.add(image)
                found.append(image)
                yield image


class Move(NamedTuple):
    """K(l) = sign · K(l ∘ slots), or its conjugate, for a tensor K."""

    slots: Labels
    sign: int = 1
    conj: bool = False

    def after(self, first: Move) -> Move:
        """The composition, as that of symmetries."""
        return Move(at(self.slots, first.slots), self.sign * first.sign, self.conj != first.conj)


class Image(NamedTuple, Generic[T]):
    """What an entry K(l), or its conjugate, is equal to: sign · K(labels), or its conjugate."""

    conj: bool
    labels: tuple[T, ...]
    sign: int = 1


def at(labels: Sequence[T], slots: Labels) -> tuple[T, ...]:
    """labels ∘ slots: what stands in `slots` if `labels` stand in 1…rank.

    >>> at((7, 8), (2, -1))
    (8, -7)
    """
    # only numbers are reversed
    return tuple([labels[s - 1] if s > 0 else -labels[-s - 1] for s in slots])  # type: ignore[operator]


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


@dataclass(frozen=True, slots=True)
class MoveGroup:
    """What the generators say of a tensor, all `moves` listed, the identity first.

    >>> MoveGroup.generated(3, [Move((2, 1, 3)), Move((1, 3, 2))]).order
    6

    `real`: the values are real, because they are numbers of R or because the moves say K = K'; no move conjugates.
    """

    generators: tuple[Move, ...] = field(compare=False)
    moves: tuple[Move, ...]
    real: bool

    @classmethod
    def generated(cls, rank: int, moves: Iterable[Move], *, real: bool = False, most: int = LARGEST) -> MoveGroup:
        """The group of `moves`; those that would make it too large to list `most` elements are left out."""
        return _generated(rank, tuple(dict.fromkeys(moves)), real, most)

    @classmethod
    def exchanging(cls, kind: Map) -> MoveGroup:
        """The group of the declared symmetries of a tensor that exchange whole slots.

        >>> from combdiff.terms.types import COMPLEX, HERMITIAN, Index
        >>> MoveGroup.exchanging(Map((Index(), Index()), COMPLEX, (HERMITIAN,))).images("ij")[1]
        Image(conj=True, labels=('j', 'i'), sign=1)
        """
        moves = [move for s in kind.symmetries if s.permutes and (move := moved(s)) is not None]
        return cls.generated(len(kind.params), moves, real=not is_complex(kind.result))

    @property
    def said(self) -> tuple[Move, ...]:
        """The generators, and K = K' where they are known to say so."""
        return (*self.generators, *([Move(self.moves[0].slots, 1, True)] if self.real else []))

    @property
    def order(self) -> int:
        """How many elements there are."""
        return len(self.moves)

    @property
    def zero(self) -> bool:
        """Whether it says K = −K."""
        return Move(self.moves[0].slots, -1) in self.moves

    def images(self, labels: Sequence[T], conj: bool = False) -> list[Image[T]]:
        """What K(labels), or its conjugate, is also written as, each way once, as it stands first."""
        return [*dict.fromkeys([Image(conj != m.conj, at(labels, m.slots), m.sign) for m in self.moves])]

    def least_image(self, labels: Labels, conj: bool = False) -> Image[int]:
        """The least of the images."""
        return min(self.images(labels, conj)) if len(self.moves) > 1 else Image(conj, labels)


@lru_cache(maxsize=4096)
def _generated(rank: int, moves: tuple[Move, ...], real: bool, most: int) -> MoveGroup:
    one = Move(identity(rank))
    taken: list[Move] = []
    found = [one]
    for move in (Move(m.slots, m.sign) for m in moves) if real else moves:
        if move not in found:
            larger = [*islice(orbit(one, [*taken, move], Move.after), most + 1)]
            if len(larger) <= most:
                taken, found = [*taken, move], larger
    if Move(one.slots, 1, True) in found:
        return _generated(rank, moves, True, most)
    return MoveGroup(tuple(taken), (one, *sorted(found[1:])), real)


def moved(symmetry: Symmetry) -> Move | None:
    """A symmetry that exchanges and reverses slots as a move; None for one that does more."""
    if any(len(row) != 1 or abs(row[0][1]) != 1 for row in symmetry.rows):
        return None
    return Move(tuple((row[0][0] + 1) * row[0][1] for row in symmetry.rows), symmetry.sign, symmetry.conj)


def symmetry_of(move: Move) -> Symmetry:
    """A move as a symmetry of a tensor."""
    return Symmetry(tuple(((abs(s) - 1, 1 if s > 0 else -1),) for s in move.slots), move.sign, move.conj)
