"""Powers of one array as products of one root: a library computes each power by a logarithm and an exponential.

    x^(4/3), x^(-1/3), x^(7/6)   become, with   r = x^(1/6),   x r^2,   1 / r^2,   x r
    x^(-1/4)                     becomes          r = √√x,       1 / r

    1 / w, 1 / x^2               become, with   w = 1 / x,       x, w^2

A root of a negative number is nan, and so are these products of it; whole powers are products of the array itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from math import floor, lcm

from combdiff.arrays import ops
from combdiff.arrays.numbers import exponent_of
from combdiff.arrays.plan import Builder, Step, ordered
from combdiff.records import dataclass
from combdiff.terms.terms import ONE, number

_FEWEST = 2  # powers that take a call of the library: one alone is one call, like the root
_ROOTS = 12  # the largest denominator of the exponents together
_MOST = 16  # the whole part of an exponent: beyond it, rounding adds up


def with_roots_shared(outputs: Sequence[Step], names: Mapping[Step, str]) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps, with fractional powers of a real array as products of one root of it.

    Equal steps must be one. Complex arrays and single numbers keep their powers.
    """
    exponents: dict[Step, list[Fraction]] = {}
    steps = ordered(outputs)
    for step in steps:
        n = _exponent(step)
        if n is not None:
            exponents.setdefault(step.operands[0], []).append(n)
    roots = {base: _root(own) for base, own in exponents.items()}
    bases = {
        base for base, own in exponents.items() if roots[base] > 1 or len({n for n in own if _is_high(n)}) >= _FEWEST
    }
    if not bases:
        return tuple(outputs), dict(names)
    builder = Builder()
    new: dict[Step, Step] = {}
    families: dict[Step, _Powers] = {}
    for step in steps:
        operands = tuple(new[o] for o in step.operands)
        n = _exponent(step)
        if n is not None and step.operands[0] in bases and not roots[step.operands[0]] % n.denominator:
            family = families.setdefault(operands[0], _Powers(builder, operands[0], roots[step.operands[0]]))
            new[step] = family.power(n)
        else:
            new[step] = builder.first(step if operands == step.operands else replace(step, operands=operands))
    return tuple(new[o] for o in outputs), {new.get(step, step): name for step, name in names.items()}


def with_inverses_once(outputs: Sequence[Step], names: Mapping[Step, str]) -> tuple[tuple[Step, ...], dict[Step, str]]:
    """The outputs and the names of steps, without inverses of inverses, and with squares of inverses that there are."""
    steps = ordered(outputs)
    inverted = {step.operands[0] for step in steps if _is_power(step, -1)}
    if not inverted:
        return tuple(outputs), dict(names)
    builder = Builder()
    new: dict[Step, Step] = {}
    for step in steps:
        operands = tuple(new[o] for o in step.operands)
        if _is_power(step, -1) and _is_power(step.operands[0], -1):
            new[step] = new[step.operands[0].operands[0]]
        elif _is_power(step, -2) and step.operands[0] in inverted:
            one, two = (builder.step(ops.Constant(number(n)), (), (), False) for n in (-1, 2))
            inverse = builder.step(step.op, (operands[0], one), step.domains, step.complex)
            new[step] = builder.step(step.op, (inverse, two), step.domains, step.complex)
        else:
            new[step] = builder.first(step if operands == step.operands else replace(step, operands=operands))
    kept: dict[Step, str] = {}
    for step, name in names.items():
        kept.setdefault(new.get(step, step), name)
    return tuple(new[o] for o in outputs), kept


def _is_power(step: Step, n: int) -> bool:
    """Whether a step is this power of an array, entry by entry."""
    match step.op:
        case ops.Power(places=places) if step.rank and places[0] == tuple(range(step.rank)):
            return exponent_of(step.operands[1]) == n and step.complex == step.operands[0].complex
        case _:
            return False


def _exponent(step: Step) -> Fraction | None:
    """The exponent of a power of a real array, entry by entry, if it is a number."""
    match step.op:
        case ops.Power(places=places) if step.rank and not step.complex and not step.operands[0].complex:
            n = exponent_of(step.operands[1])
            return n if n is not None and places[0] == tuple(range(step.rank)) and abs(n) < _MOST else None
        case _:
            return None


def _is_high(n: Fraction) -> bool:
    """Whether a power is a whole one that libraries compute by a logarithm: all but squares and inverses of them."""
    return n.denominator == 1 and abs(n) > 2


def _root(exponents: Sequence[Fraction]) -> int:
    """The root that all of these powers are products of; 1 if they stay as they are."""
    fractional = {n for n in exponents if n.denominator > 1}
    common = lcm(*(n.denominator for n in fractional))
    # square roots are cheap, and most libraries have them
    expensive = {n for n in fractional if n.denominator > 2}
    pays = len(expensive) >= _FEWEST or (expensive and _is_of_squares(common))
    return common if pays and common <= _ROOTS else 1


def _is_of_squares(root: int) -> bool:
    """Whether a root is a square root, or one of another."""
    return root & (root - 1) == 0


@dataclass(slots=True)
class _Powers:
    """Powers of `base`, made of its root number `root` and of itself."""

    builder: Builder
    base: Step
    root: int
    made: dict[tuple[Step, int], Step] = field(default_factory=dict)

    def power(self, n: Fraction) -> Step:
        """base^n."""
        if n < 0:
            return self._raised(self.power(-n), Fraction(-1))
        whole = floor(n)
        part = (n - whole) * self.root
        parts = [self._whole(self.base, whole)] if whole else []
        parts += [self._whole(self._rooted(), int(part))] if part else []
        return self._product(parts[0], parts[1]) if len(parts) == 2 else parts[0]

    def _rooted(self) -> Step:
        """The root of `base` that all powers are made of."""
        if not _is_of_squares(self.root):
            return self._raised(self.base, Fraction(1, self.root))
        x = self.base
        for _ in range(self.root.bit_length() - 1):
            x = self._raised(x, Fraction(1, 2))
        return x

    def _whole(self, x: Step, n: int) -> Step:
        """x^n, by squares."""
        if n == 1:
            return x
        if (x, n) not in self.made:
            half = self._whole(x, n // 2)
            square = self._raised(half, Fraction(2))
            self.made[x, n] = self._product(square, x) if n % 2 else square
        return self.made[x, n]

    def _raised(self, x: Step, n: Fraction) -> Step:
        exponent = self.builder.step(ops.Constant(number(n)), (), (), False)
        places = (tuple(range(x.rank)), ())
        return self.builder.step(ops.Power(places=places), (x, exponent), x.domains, False)

    def _product(self, x: Step, y: Step) -> Step:
        own = tuple(range(x.rank))
        return self.builder.step(ops.Mul(ONE, places=(own, own)), (x, y), x.domains, False)
