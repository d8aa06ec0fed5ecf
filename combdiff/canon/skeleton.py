"""The tree of factors with numbered indices that `labelling.py` searches, and its algebra.

Sums are pulled out of products, conj is pushed to the factors, numbers in front are gathered, and each factor lists
its equivalents under its group. Bound indices are numbered from 0; free variables and parameters of inner maps are
negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import gcd, lcm

from combdiff.records import dataclass
from combdiff.terms.types import Domain

Coefficient = tuple[Fraction, Fraction]
Expression = tuple[int, tuple[tuple[int, int], ...]]
Variant = tuple[bool, tuple[Expression, ...], int]
Head = tuple[int, int, int, str]

UNIT: Coefficient = (Fraction(1), Fraction(0))
MINUS: Coefficient = (Fraction(-1), Fraction(0))
NOTHING: Coefficient = (Fraction(0), Fraction(0))

LAMBDA = 1 << 40
"""Symbols of free variables lie between -LAMBDA and 0, those of parameters of λ-terms below."""


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """An entry of a tensor with its equivalents: (conj, index expressions, sign); δ and numbers are factors too.

    `moduli` says for each slot in which periodic domain index arithmetic is done there, if in any.
    """

    head: Head
    variants: tuple[Variant, ...]
    blocks: tuple[tuple[int, ...], ...] = ()
    signs: tuple[int, ...] = ()
    moduli: tuple[Domain | None, ...] = ()
    real: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """Factors in any order."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """Σ coefficient · part, in any order."""

    entries: tuple[tuple[Coefficient, Node], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Total:
    """Σ over bound indices."""

    indices: tuple[int, ...]
    body: Node


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A function of parts in order. `parity` ±1: f(−x) = ±f(x); `commutes` with conj; `binds`: symbols of a λ-term."""

    name: str
    parts: tuple[Node, ...]
    parity: int = 0
    commutes: bool = False
    real: bool = False
    binds: tuple[int, ...] = ()

    @property
    def keeps_zero(self) -> bool:
        """Whether it is 0 at 0: an odd function or a power, but no negative one."""
        if self.name.startswith("^"):
            return bool(self.parity) and not self.name.startswith("^-")
        return self.parity < 0


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """Equal up to signs, so that the least will do: real(z) and real(z')."""

    ways: tuple[tuple[int, Node], ...]


Node = Factor | Product | Combination | Total | Operation | Either
EMPTY = Product(())


def times(a: Coefficient, b: Coefficient) -> Coefficient:
    """The product of two exact complex numbers."""
    if a is UNIT:
        return b
    if b is UNIT:
        return a
    if a is MINUS or b is MINUS:
        return opposite(b if a is MINUS else a)
    if not a[1] and not b[1]:
        return (a[0] * b[0], a[1])
    return (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0])


def opposite(a: Coefficient) -> Coefficient:
    """−a."""
    return UNIT if a is MINUS else MINUS if a is UNIT else (-a[0], -a[1])


def plus(a: Coefficient, b: Coefficient) -> Coefficient:
    """The sum of two exact complex numbers."""
    return (a[0] + b[0], a[1] + b[1])


def content(coefficients: Sequence[Coefficient]) -> Fraction:
    """The positive rational that the parts of all coefficients are coprime integer multiples of."""
    parts = [x for c in coefficients for x in c if x]
    if all(x == 1 or x == -1 for x in parts):
        return Fraction(1)
    return Fraction(gcd(*(x.numerator for x in parts)), lcm(*(x.denominator for x in parts)))


def scaled(c: Coefficient, node: Node) -> Node:
    """A node for c·node, a combination even for c = 1: exp(−D(i, j)) and exp(D(j, i)) must be of one shape."""
    if c == NOTHING:
        return Combination(())
    entries = node.entries if isinstance(node, Combination) else ((UNIT, node),)
    return Combination(tuple((times(c, k), part) for k, part in entries))


def product(parts: list[Node]) -> Node:
    """Flat, with the sums of the parts pulled to the front."""
    indices: list[int] = []
    flat: list[Node] = []
    for part in parts:
        if isinstance(part, Total):
            indices += part.indices
            part = part.body
        flat += part.parts if isinstance(part, Product) else (part,)
    body = flat[0] if len(flat) == 1 else Product(tuple(flat))
    return Total(tuple(indices), body) if indices else body


def conjugated(node: Node) -> Node:
    """The node of the conjugate."""
    match node:
        case Factor(real=real, variants=variants):
            return node if real else replace(node, variants=tuple((not c, e, s) for c, e, s in variants))
        case Product(parts):
            return Product(tuple(map(conjugated, parts)))
        case Combination(entries):
            return Combination(tuple(((a, -b), conjugated(part)) for (a, b), part in entries))
        case Total(indices, body):
            return Total(indices, conjugated(body))
        case Either(ways):
            return Either(tuple((sign, conjugated(way)) for sign, way in ways))
        case Operation(name, parts):
            if node.real:
                return node
            if name == "conj":
                return parts[0]
            if node.commutes:
                return replace(node, parts=tuple(map(conjugated, parts)))
            return Operation("conj", (node,), parity=-1)


def below(node: Node) -> tuple[Node, ...]:
    """The nodes directly below."""
    match node:
        case Factor():
            return ()
        case Product(parts) | Operation(_, parts):
            return parts
        case Combination(entries):
            return tuple(part for _, part in entries)
        case Total(_, body):
            return (body,)
        case Either(ways):
            return tuple(part for _, part in ways)


def mask_of(node: Node, known: dict[int, int]) -> int:
    """The bound indices that stand in a node, as bits; those of all nodes below go to `known`, by identity."""
    mask = known.get(id(node))
    if mask is not None:
        return mask
    mask = 0
    if isinstance(node, Factor):
        for s in {s for _, expressions, _ in node.variants for _, symbols in expressions for s, _ in symbols}:
            mask |= 1 << s if s >= 0 else 0
    for part in below(node):
        mask |= mask_of(part, known)
    known[id(node)] = mask
    return mask


def factors(node: Node) -> Iterator[Factor]:
    """All factors, left to right."""
    if isinstance(node, Factor):
        yield node
    for part in below(node):
        yield from factors(part)


def totals(node: Node) -> Iterator[Total]:
    """All sums, outer ones first."""
    if isinstance(node, Total):
        yield node
    for part in below(node):
        yield from totals(part)


def mapped(node: Node, change: Callable[[Factor], Factor]) -> Node:
    """The tree with its factors changed; subtrees without a change stay the same objects."""
    match node:
        case Factor():
            return change(node)
        case Product(parts):
            new = tuple(mapped(part, change) for part in parts)
            return node if _same(new, parts) else Product(new)
        case Operation(_, parts):
            new = tuple(mapped(part, change) for part in parts)
            return node if _same(new, parts) else replace(node, parts=new)
        case Combination(entries):
            return Combination(tuple((c, mapped(part, change)) for c, part in entries))
        case Total(indices, body):
            return Total(indices, mapped(body, change))
        case Either(ways):
            return Either(tuple((s, mapped(part, change)) for s, part in ways))


def _same(a: tuple[Node, ...], b: tuple[Node, ...]) -> bool:
    return all(x is y for x, y in zip(a, b, strict=True))


def combined(terms: Sequence[tuple[int, Expression]]) -> Expression:
    """Σ c·expression in normal form."""
    constant = 0
    total: dict[int, int] = {}
    for c, (shift, symbols) in terms:
        constant += c * shift
        for symbol, k in symbols:
            total[symbol] = total.get(symbol, 0) + c * k
    return constant, tuple(sorted((s, k) for s, k in total.items() if k))
