"""Ranges, spaces and parameters of a program."""

from __future__ import annotations

from itertools import permutations

from .data import group
from .kinds import COMPLEX, REAL, Function, Integers, Law, Number, Range, Space, Tensor, Type
from .sight import Draw
from .syntax import Var

SIZES = (1, 2, 2, 3, 3, 3, 5, 5, 7)
SYM = Space("Sym", (Law((((1, 1),), ((0, 1),))),), builtin=True)
HER = Space("Her", (Law((((1, 1),), ((0, 1),)), conj=True),), builtin=True)


class Declarations:
    """Draws what stands in front of a program."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.ranges: list[Range] = []

    # --- ranges -----------------------------------------------------------------------------------------------------

    def draw_ranges(self) -> None:
        sorts = [s for s in ("ring", "symmetric", "bounded", "lattice", "list") if s in self.draw.favoured]
        plain = self.draw.one((1, 2, 2, 3)) if not sorts or self.draw.odds(0.8) else 0
        self.ranges = [self.range("plain") for _ in range(plain)]
        self.ranges += [self.range(s) for s in sorts]
        if "ring" in sorts and self.draw.odds(0.3):
            self.ranges.append(self.range(self.draw.one(("symmetric", "ring"))))
        if "lattice" in sorts and self.draw.odds(0.5):
            self.ranges.append(self.range("list", self.ranges[-1].directions))
        if "bounded" in sorts:
            self.ranges.append(self.range("bounded"))

    def range(self, sort: str, directions: int = 1) -> Range:
        one, odds = self.draw.one, self.draw.odds
        name = f"{sort}{len(self.ranges)}"
        size = one(SIZES)
        named = odds(0.9 if {"mean", "centred", "count"} & self.draw.favoured or "names" in self.draw.favoured else 0.4)
        match sort:
            case "ring":
                return Range(name, "ring", (one((1, 2, 3, 3, 5, 7)),))
            case "symmetric":
                return Range(name, "symmetric", (one((1, 3, 3, 5)),), contractable=odds(0.8))
            case "bounded":
                return Range(name, "bounded", (one((2, 3, 3, 5)),), lower=one((0, 0, 1, -1, -2)))
            case "lattice":
                return Range(name, "ring", tuple(one((1, 2, 3)) for _ in range(one((2, 2, 3)))))
            case "list":
                return self.offsets(name, directions)
        return Range(name, "plain", (size,), named=named)

    def offsets(self, name: str, directions: int) -> Range:
        """A list of points, closed under negation now and then."""
        reflected = self.draw.odds(0.6)
        rows: dict[tuple[int, ...], None] = {}
        if self.draw.odds(0.3):
            rows[(0,) * directions] = None
        for _ in range(self.draw.one((1, 2, 2, 3))):
            row = tuple(self.draw.rng.randrange(-2, 3) for _ in range(directions))
            rows[row] = None
            if reflected:
                rows[tuple(-x for x in row)] = None
        order = list(rows)
        self.draw.rng.shuffle(order)
        return Range(
            name, "list", (len(order),), offsets=tuple(order), reflected=reflected, contractable=self.draw.odds(0.7)
        )

    # --- parameters -------------------------------------------------------------------------------------------------

    def number(self) -> Var:
        c = self.draw.odds(self.complexity)
        return Var(COMPLEX if c else REAL, positive=not c and self.draw.odds(self.positivity))

    @property
    def positivity(self) -> float:
        return 0.7 if {"fraction", "exponent", "singular"} & self.draw.favoured else 0.25

    @property
    def complexity(self) -> float:
        return 0.75 if "complex" in self.draw.favoured else 0.1 if "real" in self.draw.favoured else 0.4

    def tensor(self, most: int = 2) -> Var:
        rank = self.draw.one((1, 1, 1, 2, 2, 2, 3, 4)[: 6 if most <= 2 and self.draw.odds(0.85) else 8])
        slots: list[Range] = []
        for _ in range(rank):
            r = self.draw.one(slots) if slots and self.draw.odds(0.3) else self.draw.one(self.ranges)
            slots.append(r)
        while len(slots) > 1 and _entries(slots) > 400:
            slots.pop()
        c = self.draw.odds(self.complexity)
        space = self.space_of(tuple(slots), c)
        if space is None and not c and self.draw.odds(0.25 if self.positivity > 0.5 else 0.08):
            return Var(Tensor(tuple(slots), c, Space("own", positive=True)), positive=True)
        return Var(Tensor(tuple(slots), c, space), positive=space is None and not c and self.draw.odds(self.positivity))

    def integers(self) -> Var | None:
        """An array of integers, whose entries are indices of a range with a name."""
        entries = [r for r in self.ranges if r.directions == 1 and r.sort != "list" and (r.named or r.declared)]
        slots = [r for r in self.ranges if r.directions == 1 and r.sort != "list"]
        if not entries or not slots:
            return None
        rank = self.draw.one((1, 1, 1, 2))
        return Var(Integers(tuple(self.draw.one(slots) for _ in range(rank)), self.draw.one(entries)))

    def space_of(self, slots: tuple[Range, ...], c: bool) -> Space | None:
        """A space of its own for a tensor, with symmetries where slots are alike."""
        if len(slots) == 2 and slots[0] is slots[1] and slots[0].sort == "plain" and self.draw.odds(0.6):
            return HER if c else SYM
        if self.draw.odds(0.1):
            return Space("own")
        if not self.draw.odds(0.8 if "symmetry" in self.draw.favoured else 0.3):
            return None
        laws = self.laws(slots, c)
        return Space("own", laws) if laws else None

    def symmetric(self) -> Var:
        """A tensor with a declared symmetry."""
        for _ in range(10):
            rank = self.draw.one((2, 2, 3, 4, 4, 1))
            r = self.draw.one(self.ranges)
            slots = [r] * rank
            if rank == 4 and self.draw.odds(0.5):
                other = self.draw.one(self.ranges)
                slots = [r, r, other, other]
            while len(slots) > 1 and _entries(slots) > 400:
                slots.pop()
            c = self.draw.odds(max(0.4, self.complexity))
            laws = self.laws(tuple(slots), c)
            if laws:
                return Var(Tensor(tuple(slots), c, Space("own", laws)))
        return self.tensor()

    def laws(self, slots: tuple[Range, ...], c: bool) -> tuple[Law, ...]:
        """One to three laws that do not make every tensor zero."""
        found: list[Law] = []
        for _ in range(self.draw.one((1, 1, 2, 3))):
            law = self.law(slots, c)
            if law is not None and _consistent(slots, (*found, law), c):
                found.append(law)
        return tuple(found)

    def law(self, slots: tuple[Range, ...], c: bool) -> Law | None:
        orders = [p for p in permutations(range(len(slots))) if all(slots[a] is slots[b] for a, b in enumerate(p))]
        orders = [p for p in orders if any(a != b for a, b in enumerate(p))]
        signed = [n for n, r in enumerate(slots) if r.signed]
        conj = c and self.draw.odds(0.75)
        sign = self.draw.one((1, 1, -1))
        if signed and (not orders or self.draw.odds(0.5)):
            flipped = [n for n in signed if self.draw.odds(0.6)] or signed[:1]
            rows = tuple(((n, -1 if n in flipped else 1),) for n in range(len(slots)))
            return Law(rows, 1, conj)
        if not orders:
            return None
        order = self.draw.one(orders)
        rows = tuple(((p, 1),) for p in order)
        rings = [n for n, r in enumerate(slots) if r.sort == "ring"]
        if self.draw.odds(0.35):
            return self.map_law(slots, order, rings, sign, conj)
        if conj or self.draw.odds(0.2):
            sign = 1
        return Law(rows, sign, conj)

    def map_law(self, slots: tuple[Range, ...], order: tuple[int, ...], rings: list[int], sign: int, conj: bool) -> Law:
        """A law written as a map: signs, conjugates, and k + b in a periodic slot for b of another."""
        rows: list[tuple[tuple[int, int], ...]] = [((p, 1),) for p in order]
        steps = [n for n, r in enumerate(slots) if r.signed and order[n] == n]
        pairs = [
            (k, b)
            for k in rings
            for b in steps
            if k != b and order[k] == k and slots[k].directions == slots[b].directions
        ]
        pairs = [(k, b) for k, b in pairs if slots[b].sort != "ring" or slots[b] is slots[k]]
        if pairs and self.draw.odds(0.7):
            k, b = self.draw.one(pairs)
            rows[k] = tuple(sorted(((k, 1), (b, 1))))
            rows[b] = ((b, -1),)
        return Law(tuple(rows), sign, conj, as_map=True)

    def function(self) -> Var:
        """An unknown function of numbers, such as RF, CF, RO."""
        roll = self.draw.rng.random()
        if roll < 0.5:
            return Var(Function((REAL,), REAL))
        if roll < 0.65:
            return Var(Function((REAL,), COMPLEX))
        if roll < 0.77:
            return Var(Function((REAL, REAL), REAL))
        if roll < 0.92:
            return Var(Function((REAL, REAL), COMPLEX))
        return Var(Function((COMPLEX,), COMPLEX))

    def functional(self) -> Var:
        """An unknown real function of a real tensor."""
        simple = [r for r in self.ranges if r.directions == 1]
        if not simple:
            return self.function()
        slots = tuple(self.draw.one(simple) for _ in range(self.draw.one((1, 1, 2))))
        return Var(Function((Tensor(slots),), REAL))

    def linear(self) -> Var | None:
        """A linear map of vectors or matrices."""
        small = [r for r in self.ranges if r.count <= 5]
        if not small:
            return None
        c = self.draw.odds(self.complexity)
        source = self.draw.one(small)
        target = source if self.draw.odds(0.6) else self.draw.one(small)
        kinds: list[Type] = [Tensor((source,), c), Tensor((target,), c)]
        return Var(Function((kinds[0],), kinds[1], linear=True, space=Space("own")))


def _entries(slots: list[Range]) -> int:
    result = 1
    for r in slots:
        result *= r.count
    return result


def _consistent(slots: tuple[Range, ...], laws: tuple[Law, ...], c: bool) -> bool:
    """Whether some tensor that is not zero has the laws, at sizes where all elements of the group differ."""
    from dataclasses import replace

    big = {
        r: replace(
            r,
            sizes=tuple(3 for _ in r.sizes)
            if r.sort == "symmetric"
            else tuple(5 if r.sort == "ring" else 3 for _ in r.sizes),
        )
        for r in slots
        if r.sort != "list"
    }
    wide = tuple(big.get(r, r) for r in slots)
    if any(r.sort == "list" for r in slots):
        wide = tuple(
            replace(r, offsets=_SPREAD[r.directions], sizes=(len(_SPREAD[r.directions]),)) if r.sort == "list" else r
            for r in wide
        )
    if _entries(list(wide)) > (3000 if any(r.sort == "list" for r in slots) else 20_000):
        return False
    elements = group(wide, laws, _MOST_ELEMENTS)
    if len(elements) > _MOST_ELEMENTS:
        return False
    identity = next(at for at, s, k in elements if s == 1 and not k)
    return not any((at == identity).all() and s < 0 and (not k or not c) for at, s, k in elements)


_MOST_ELEMENTS = 64
_SPREAD = {
    1: ((-2,), (-1,), (0,), (1,), (2,)),
    2: ((-1, 0), (1, 0), (0, 0), (1, 2), (-1, -2)),
    3: ((-1, 0, 0), (1, 0, 0), (0, 0, 0), (1, 2, 0), (-1, -2, 0)),
}
__all__ = ["HER", "SIZES", "SYM", "Declarations", "Number"]
