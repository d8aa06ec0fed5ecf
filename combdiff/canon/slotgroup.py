"""The group that the declared symmetries of a tensor generate: what T(a₁…aₙ) equals.

The group is held as blocks of freely exchangeable slots times listed representatives, each a `Symmetry` (sign, conj,
integer map of the slots). A fully symmetric tensor of order 8 is one block and one representative, not 40,320 of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, TypeVar

from combdiff.canon.moves import Move, MoveGroup, moved, orbit
from combdiff.errors import BudgetError, LanguageError
from combdiff.records import dataclass
from combdiff.terms.types import Map, Symmetry, is_complex

_LARGEST = 50_000
_STEEPEST = 64

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SlotGroup:
    """All elements are a permutation within `blocks` after one of `representatives`.

    >>> from combdiff.terms.types import HERMITIAN
    >>> len(SlotGroup.generated(2, (HERMITIAN,), real=False).representatives)
    2
    >>> SlotGroup.generated(2, (HERMITIAN,), real=True).blocks
    ((0, 1),)

    `signs` says for each block whether an exchange keeps (1) or flips (−1) the sign. `real`: conj acts as the identity,
    because the values are numbers of R or because the symmetries say T = T'. `zero`: they say T = −T.
    """

    rank: int
    blocks: tuple[tuple[int, ...], ...]
    signs: tuple[int, ...]
    representatives: tuple[Symmetry, ...]
    real: bool
    zero: bool

    @classmethod
    def of(cls, kind: Map, derived: tuple[Symmetry, ...] = (), *, declared: bool = True) -> SlotGroup:
        """The group of a tensor type; `derived` adds to the declared symmetries, `declared=False` leaves those out."""
        symmetries = (kind.symmetries if declared else ()) + derived
        return cls.generated(len(kind.params), symmetries, real=not is_complex(kind.result))

    @classmethod
    def generated(cls, rank: int, symmetries: tuple[Symmetry, ...], *, real: bool) -> SlotGroup:
        """The closure of `symmetries` on tensors of `rank` slots.

        Raises:
            LanguageError: if the powers of a map do not come back to the identity.
        """
        return _generated(rank, symmetries, real)

    def equivalent(self, symmetry: Symmetry) -> bool:
        """Whether the group holds `symmetry`."""
        if self.zero:
            return True
        wanted = _least(symmetry, self.blocks, self.signs, self.real)
        return wanted in self.representatives

    def images(
        self,
        args: Sequence[T],
        combined: Callable[[Sequence[tuple[int, T]]], T],
        key: Callable[[T], int] | None = None,
    ) -> Iterator[tuple[tuple[T, ...], int, bool]]:
        """The entries equal to that at `args`, each with its sign and whether it is conjugated.

        One for each representative: what may be exchanged freely is put in the order of `key`, if there is one.
        """
        for s in self.representatives:
            image, sign = s.image(args, combined), s.sign
            if key is not None:
                image, sign = _in_order(image, sign, self.blocks, self.signs, key)
            yield image, sign, s.conj

    def moves(self, most: int) -> MoveGroup | None:
        """The elements as moves of slots, at `most` so many; None if one does arithmetic with indices."""
        moves = [moved(s) for s in self.representatives]
        for block, sign in zip(self.blocks, self.signs, strict=True):
            moves += [Move(_exchanged(self.rank, a, b), sign) for a, b in pairwise(block)]
        known = [m for m in moves if m is not None]
        return MoveGroup.generated(self.rank, known, real=self.real, most=most) if len(known) == len(moves) else None


@lru_cache(maxsize=4096)
def _generated(rank: int, symmetries: tuple[Symmetry, ...], real: bool) -> SlotGroup:
    identity = Symmetry.identity(rank)
    generators = tuple(Symmetry(s.rows, s.sign, s.conj and not real) for s in symmetries)
    exchanges, zero = _exchanges(generators)
    blocks = _blocks(rank, exchanges)
    signs = tuple(exchanges[block[0], block[1]] for block in blocks)
    members = _closure(identity, generators, blocks, signs)
    one = _least(identity, blocks, signs, real)
    zero = zero or Symmetry(one.rows, -one.sign, one.conj) in members
    if not real and Symmetry(one.rows, one.sign, not one.conj) in members:
        return _generated(rank, symmetries, True)
    return SlotGroup(rank, blocks, signs, members, real, zero)


def _exchanged(rank: int, a: int, b: int) -> tuple[int, ...]:
    slots = list(range(1, rank + 1))
    slots[a], slots[b] = slots[b], slots[a]
    return tuple(slots)


def _exchange(symmetry: Symmetry) -> tuple[int, int] | None:
    """The two slots that `symmetry` exchanges, if that is all it does."""
    if symmetry.conj or not symmetry.permutes:
        return None
    moved = [slot for slot, row in enumerate(symmetry.rows) if row[0][0] != slot]
    return (moved[0], moved[1]) if len(moved) == 2 else None


def _exchanges(generators: Sequence[Symmetry]) -> tuple[dict[tuple[int, int], int], bool]:
    """Transpositions of the group with their signs: those given, and their images under the permutations given."""
    found: dict[tuple[int, int], int] = {}
    todo = [(pair, g.sign) for g in generators if (pair := _exchange(g))]
    places = [[row[0][0] for row in g.rows] for g in generators if g.permutes]
    zero = False
    while todo:
        pair, sign = todo.pop()
        if pair in found:
            zero = zero or found[pair] != sign
            continue
        a, b = pair
        images = [(place.index(a), place.index(b)) for place in places]
        for c, d in found:
            if len({a, b, c, d}) == 3:
                x, y = {a, b} ^ {c, d}
                images.append((x, y))
        found[pair] = sign
        # conjugates keep the sign; (ac) = (ab)(bc)(ab) has the sign of (bc), and both signs agree unless T is zero
        todo += [((min(p), max(p)), sign) for p in images]
    return found, zero


def _blocks(rank: int, exchanges: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    home = list(range(rank))
    for a, b in exchanges:
        old, new = home[b], home[a]
        home = [new if h == old else h for h in home]
    blocks = (tuple(s for s in range(rank) if home[s] == h) for h in dict.fromkeys(home))
    return tuple(block for block in blocks if len(block) > 1)


def _least(symmetry: Symmetry, blocks: Sequence[Sequence[int]], signs: Sequence[int], real: bool) -> Symmetry:
    """The least of the elements that differ from `symmetry` by a permutation within blocks."""
    rows, sign = _in_order(symmetry.rows, symmetry.sign, blocks, signs, lambda row: row)
    return Symmetry(rows, sign, symmetry.conj and not real)


def _in_order(
    args: tuple[T, ...], sign: int, blocks: Sequence[Sequence[int]], signs: Sequence[int], key: Callable[[T], Any]
) -> tuple[tuple[T, ...], int]:
    """The arguments with those in a block sorted by `key`, and the sign that this leaves."""
    found = list(args)
    for block, flip in zip(blocks, signs, strict=True):
        ranks = [key(found[slot]) for slot in block]
        order = sorted(range(len(block)), key=ranks.__getitem__)
        sign *= parity(order) if flip < 0 else 1
        for slot, arg in zip(block, [found[block[n]] for n in order], strict=True):
            found[slot] = arg
    return tuple(found), sign


def _closure(
    identity: Symmetry, generators: Sequence[Symmetry], blocks: Sequence[Sequence[int]], signs: Sequence[int]
) -> tuple[Symmetry, ...]:
    """Breadth first; generators act first, so that cosets of the block permutations go to cosets."""

    def image(member: Symmetry, g: Symmetry) -> Symmetry:
        found = _least(g.after(member), blocks, signs, False)
        if any(abs(c) > _STEEPEST for row in found.rows for _, c in row):
            raise LanguageError(
                f"the powers of the symmetry {_spelled(g)} do not come back to the identity",
                remedy="write a map of finite order, such as M(p, q, k, b) = M(q, p, k + b, -b)'",
            )
        return found

    members = tuple(islice(orbit(_least(identity, blocks, signs, False), generators, image), _LARGEST + 1))
    if len(members) > _LARGEST:
        raise BudgetError(
            f"the declared symmetries generate more than {_LARGEST} variants of a tensor",
            remedy="declare fewer symmetries, or exchanges of slots without conj",
        )
    return members


def _spelled(symmetry: Symmetry) -> str:
    """As a map: `(s1, s2) -> (s1 + s2, s2)`."""
    slots = ", ".join(f"s{n + 1}" for n in range(len(symmetry.rows)))
    rows = []
    for row in symmetry.rows:
        text = " + ".join(f"s{s + 1}" if c == 1 else f"{c} s{s + 1}" for s, c in row)
        rows.append(text or "0")
    return f"({slots}) -> ({', '.join(rows)})"


def parity(order: Sequence[int]) -> int:
    """The sign of a permutation of 0…n−1.

    >>> parity((1, 0, 2)), parity((1, 2, 0))
    (-1, 1)
    """
    seen = [False] * len(order)
    sign = 1
    for start in range(len(order)):
        length = 0
        while not seen[start]:
            seen[start] = True
            start = order[start]
            length += 1
        if length and length % 2 == 0:
            sign = -sign
    return sign
