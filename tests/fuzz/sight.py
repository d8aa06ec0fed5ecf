"""What may be used where an expression is drawn, and how likely each construct is in one program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random
from typing import TypeVar

from .kinds import Index, Number, Range, Tensor, over_complex
from .syntax import Affine, Expr, Var

LARGEST_LOOP = 1200
Item = TypeVar("Item")


@dataclass(frozen=True)
class Sight:
    """Variables in sight. `loop` is how many values the indices in sight take together."""

    numbers: tuple[Var, ...] = ()
    tensors: tuple[Var, ...] = ()
    functions: tuple[Var, ...] = ()
    indices: tuple[Var, ...] = ()
    integers: tuple[Var, ...] = ()
    counts: tuple[Var, ...] = ()
    loop: int = 1
    depth: int = 0

    def within(self, indices: Sequence[Var]) -> Sight:
        loop = self.loop
        for i in indices:
            assert isinstance(i.kind, Index), "an index"
            loop *= i.kind.range.count
        return replace(self, indices=(*self.indices, *indices), loop=loop, depth=self.depth + 1)

    def and_(self, *variables: Var) -> Sight:
        """With further numbers and tensors."""
        numbers = tuple(v for v in variables if isinstance(v.kind, Number))
        tensors = tuple(v for v in variables if isinstance(v.kind, Tensor))
        return replace(self, numbers=(*self.numbers, *numbers), tensors=(*self.tensors, *tensors))

    def over(self, range_: Range) -> list[Var]:
        """The indices of a range."""
        return [i for i in self.indices if isinstance(i.kind, Index) and i.kind.range is range_]

    def real(self) -> Sight:
        """Without complex values."""
        keep = [tuple(v for v in vs if not over_complex(v.kind)) for vs in (self.numbers, self.tensors)]
        return replace(self, numbers=keep[0], tensors=keep[1])

    def ranges(self) -> list[Range]:
        """The ranges of the tensors in sight."""
        found: dict[Range, None] = {}
        for t in self.tensors:
            assert isinstance(t.kind, Tensor), "a tensor"
            found.update(dict.fromkeys(t.kind.slots))
        return list(found)


@dataclass
class Draw:
    """Choices of one program: the source of randomness, and the weights of constructs, some of them in favour."""

    rng: Random
    favoured: frozenset[str] = frozenset()
    weights: dict[str, float] = field(default_factory=dict)
    strength: float = 6.0

    def odds(self, chance: float) -> bool:
        return self.rng.random() < chance

    def one(self, items: Sequence[Item]) -> Item:
        return self.rng.choice(items)

    def weighted(self, table: dict[str, float]) -> str:
        names = list(table)
        weights = [table[n] * (self.strength if n in self.favoured else 1.0) for n in names]
        return self.rng.choices(names, weights)[0]

    def split(self, budget: int, parts: int) -> list[int]:
        """A budget in so many parts, at random."""
        cuts = sorted(self.rng.random() for _ in range(parts - 1))
        ends = [0.0, *cuts, 1.0]
        return [max(1, round(budget * (b - a))) for a, b in pairwise(ends)]


def bare(i: Var) -> Affine:
    return Affine(((1, i),))


def is_complex(e: Expr) -> bool:
    return over_complex(e.kind)
