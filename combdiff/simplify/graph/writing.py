"""Writes classes as terms again, each in the form that an extraction chose."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from math import lcm

from combdiff.canon.skeleton import MINUS, UNIT, Coefficient, times
from combdiff.records import dataclass
from combdiff.simplify.graph.extraction import Extraction
from combdiff.simplify.graph.graph import BOUND, Child, Con, Leaf, Lin, Node, Ref, conjugate, reciprocal
from combdiff.simplify.graph.reading import Reader
from combdiff.terms.arithmetic import content
from combdiff.terms.network import addends
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    Add,
    Const,
    Delta,
    Lam,
    Mul,
    Sum,
    Term,
    Var,
    add,
    call,
    conj,
    delta,
    fresh,
    holds_entries,
    mul,
    number,
    split_coefficient,
    substitute,
    total,
)
from combdiff.terms.types import Index, Type, is_complex, slot_types

EQUAL = 0.01
"""Two lengths that differ by less are equal: what breaks ties is smaller."""


@dataclass(slots=True)
class WrittenProduct:
    """number · Σ over indices · factors, as it is being written."""

    number: Coefficient = UNIT
    indices: list[Var] = field(default_factory=list)
    factors: list[Term] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    settled: list[Term] = field(default_factory=list)

    def append(self, rank: int, factor: Term, settled: bool = False) -> None:
        """Another factor, which stands behind those of lower rank; a sum that is `settled` keeps its signs."""
        place = bisect_right(self.ranks, rank)
        self.ranks.insert(place, rank)
        self.factors.insert(place, factor)
        if settled:
            self.settled.append(factor)

    def term(self) -> Term:
        """As a term: a sum of negative terms gives up its sign, and a difference takes one in front on itself.

        Fractions in a sum are cleared where the number in front holds their denominators: 8 (a + b/2) is 4 (2 a + b).
        """
        for n, factor in enumerate(self.factors):
            below = _denominator(factor)
            if below > 1 and not self.number[0] % below and not self.number[1] % below:
                self._scale(n, Fraction(below))
            if _signs(factor) == {-1}:
                self._scale(n, Fraction(-1))
        mixed = [n for n, factor in enumerate(self.factors) if _signs(factor) == {-1, 1} and factor not in self.settled]
        if mixed and self.number[0] < 0 and not self.number[1]:
            self._scale(mixed[0], Fraction(-1))
        return mul(number(self.number), total(self.indices, mul(*self.factors)))

    def _scale(self, n: int, by: Fraction) -> None:
        """Multiply the terms of factor `n` by a number, and divide the number in front by it."""
        self.factors[n] = add(*(mul(number(by), u) for u in addends(self.factors[n])))
        self.number = (self.number[0] / by, self.number[1] / by)


def _denominator(t: Term) -> int:
    """The least number by which the numbers in a sum become whole; 1 for what is no sum."""
    return lcm(*(split_coefficient(u)[0].real.denominator for u in t.terms)) if isinstance(t, Add) else 1


def _signs(t: Term) -> set[int]:
    """The signs of the terms of a sum; none for what is no sum."""
    return {-1 if split_coefficient(u)[0].real < 0 else 1 for u in t.terms} if isinstance(t, Add) else set()


@dataclass(slots=True)
class Writer:
    """Writes classes in the forms of `chosen`; `indices` are the variables that labels stand for.

    `names` has what the indices of a kind are called, `used` the leaves that were written. What a class was read
    from is written again where nothing that was chosen is shorter (`read`), unless it mentions what is
    defined `later`.
    """

    chosen: Extraction
    read: Reader
    names: Mapping[Type, str]
    later: Collection[Var] = ()
    used: dict[Leaf, None] = field(default_factory=dict)

    def __call__(self, ref: Ref, indices: Mapping[int, Term]) -> Term:
        """`ref` as a term, at `indices`: a sum of entries with its number in front, any other multiplied out."""
        ref = self.chosen.graph.find(ref)
        original = self._original(ref, indices)
        if original is not None:
            return mul(number(original[0]), original[1])
        node = self.chosen.best[ref.of].term_node
        if not isinstance(node, Lin):
            return self._alone(ref, indices)
        result = self._sum(ref, node, indices)
        if any(isinstance(v, Sum | Add | Mul) for u in addends(result) for v in [split_coefficient(u)[1]]):
            return result
        size, rest = content(result)
        return mul(size, rest)

    def _original(self, ref: Ref, indices: Mapping[int, Term]) -> tuple[Coefficient, Term] | None:
        """(c, t) with ref = c · t, where t is what the class was read from; None if what was chosen is shorter."""
        for known in self.read.originals.get(ref.of, ()):
            frame = self.chosen.graph.find(known.frame)
            if known.length > self.chosen.best[ref.of].term + EQUAL:
                return None
            if frame.conj == ref.conj and known.term.free.isdisjoint(self.later):
                scale, _, slots = self._by(frame, ref, indices)
                values = {v: slots[n] for n, v in enumerate(known.slots, start=1)}
                return scale, substitute(known.term, values)
        return None

    def _alone(self, ref: Ref, indices: Mapping[int, Term]) -> Term:
        product = WrittenProduct()
        self._into(product, ref, indices)
        return product.term()

    def _frame(self, ref: Ref, node: Node, indices: Mapping[int, Term]) -> tuple[Coefficient, bool, dict[int, Term]]:
        """(c, conjugated, what stands in the slots) with ref = c · node(slots), or its conjugate."""
        return self._by(self.chosen.graph.frame(node), ref, indices)

    def _by(self, frame: Ref, ref: Ref, indices: Mapping[int, Term]) -> tuple[Coefficient, bool, dict[int, Term]]:
        turned = frame.conj != ref.conj
        share = reciprocal(frame.number)
        share = conjugate(share) if turned else share
        slots: dict[int, Term] = {}
        for slot, label in zip(frame.labels, ref.labels, strict=True):
            index = indices[abs(label)]
            slots[abs(slot)] = index if (slot > 0) == (label > 0) else mul(MINUS_ONE, index)
        return times(ref.number, share), turned, slots

    def _sum(self, ref: Ref, node: Lin, indices: Mapping[int, Term]) -> Term:
        """A sum whose number is multiplied into its terms."""
        scale, turned, slots = self._frame(ref, node, indices)
        return add(*self._terms(node, scale, turned, slots))

    def _terms(self, node: Lin, scale: Coefficient, turned: bool, slots: Mapping[int, Term]) -> list[Term]:
        found = []
        of = self.chosen.graph.frame(node).of
        order = self.read.sums[of].order if of in self.read.sums else {}
        one = self.chosen.graph.holder(self.read.one().of)

        def place(term: tuple[Child, Coefficient]) -> tuple[int, bool, int]:
            held = self.chosen.graph.holder(term[0].of)
            return order.get(held, len(order)), held == one, held

        for child, own in sorted(node.terms, key=place):
            own = times(scale, conjugate(own) if turned else own)
            ref = self.chosen.graph.find(Ref(own, child.conj != turned, child.slots, child.of))
            best = self.chosen.best[ref.of]
            original = self._original(ref, slots)
            if original is not None:
                found += [mul(number(original[0]), u) for u in addends(original[1])]
            elif isinstance(best.term_node, Lin) and ref.number in (UNIT, MINUS):
                found.append(self._sum(ref, best.term_node, slots))
            else:
                found.append(self._alone(ref, slots))
        return found

    def _into(self, product: WrittenProduct, ref: Ref, indices: Mapping[int, Term]) -> None:
        """Write `ref` into a product."""
        ref = self.chosen.graph.find(ref)
        node = self.chosen.best[ref.of].factor_node
        assert node is not None, "a class has a form"
        original = self._original(ref, indices) if isinstance(node, Lin) else None
        if original is not None and isinstance(original[1], Add):
            size, entry = content(original[1])
            product.number = times(times(product.number, original[0]), (size.real, size.imag))
            product.append(ref.of, entry, settled=True)
            return
        scale, turned, slots = self._frame(ref, node, indices)
        match node:
            case Leaf():
                size, entry = _number_out(self._leaf(node, slots))
                front = (size.real, -size.imag if turned else size.imag)
                product.number = times(times(product.number, scale), front)
                product.append(ref.of, conj(entry) if turned else entry)
            case Lin():
                # as it was read: y - P is not written as P - y
                own = self.read.sums[ref.of].number if ref.of in self.read.sums else UNIT
                size, entry = content(add(*self._terms(node, own, turned, slots)))
                product.number = times(times(product.number, times(scale, reciprocal(own))), (size.real, size.imag))
                product.append(ref.of, entry, settled=ref.of in self.read.sums)
            case Con():
                product.number = times(product.number, scale)
                self._product_into(product, node, turned, slots)

    def _product_into(self, product: WrittenProduct, node: Con, turned: bool, slots: Mapping[int, Term]) -> None:
        """Write the factors of a node into a product, with names for what is summed over."""
        inner = {**slots}
        for child in node.children:
            kinds = self.chosen.graph.classes[self.chosen.graph.holder(child.of)].kinds
            spelled = self.chosen.graph.find(Ref(UNIT, child.conj, child.slots, child.of))
            for slot, kind in zip(spelled.labels, kinds, strict=True):
                if abs(slot) >= BOUND and abs(slot) not in inner:
                    v = fresh(self.names.get(kind, "i"), kind)
                    inner[abs(slot)] = v
                    product.indices.append(v)
        refs = [Ref(UNIT, child.conj != turned, child.slots, child.of) for child in node.children]
        if self.chosen.is_written_as_square(node):
            self._square_into(product, refs, inner)
            return
        for below in refs:
            self._into(product, below, inner)

    def _square_into(self, product: WrittenProduct, refs: Sequence[Ref], indices: Mapping[int, Term]) -> None:
        """Write the square of a contraction, or of its absolute value, into a product: the sum stands once."""
        size, root = content(self._alone(refs[0], indices))
        other, same = (size.real, -size.imag), refs[0].conj == refs[1].conj
        product.number = times(product.number, (size.real, size.imag))
        product.number = times(product.number, (size.real, size.imag) if same else other)
        product.append(refs[0].of, mul(root, root) if same else _square_of_modulus(root))

    def _argument(self, ref: Ref, indices: Mapping[int, Term]) -> Term:
        """`ref` as an argument: 1 - x/2 rather than (2 - x)/2, but (x - y)/2 as it is."""
        ref = self.chosen.graph.find(ref)
        original = self._original(ref, indices)
        if original is not None and original[0] == UNIT:
            return original[1]
        node = self.chosen.best[ref.of].term_node
        if isinstance(node, Lin):
            if original is not None:
                result = add(*(mul(number(original[0]), u) for u in addends(original[1])))
            else:
                result = self._sum(ref, node, indices)
            if any(split_coefficient(u)[0] in (ONE, MINUS_ONE) for u in addends(result)):
                return result
        return self._alone(ref, indices)

    def _leaf(self, leaf: Leaf, slots: Mapping[int, Term]) -> Term:
        self.used[leaf] = None
        spelling = self.read.spelled[leaf.key]
        values = {v: slots[n] for n, v in enumerate(spelling.slots, start=1)}
        return substitute(spelling.term, values | {v: self._hole(v, r) for v, r in spelling.holes.items()})

    def _hole(self, var: Var, ref: Ref) -> Term:
        """What stands for a class within a leaf, as a map of its slots and of what is bound around it."""
        kinds = slot_types(var.kind)
        within = sorted(self.chosen.graph.classes[self.chosen.graph.holder(ref.of)].within, key=_number)
        params = [fresh(self.names.get(kind, "i"), kind) for kind in kinds if isinstance(kind, Index)]
        term = self._argument(ref, dict(enumerate(params, start=1)))
        params += [v for v in within if not isinstance(v.kind, Index)]
        return Lam(tuple(params), term) if params else term


def _square_of_modulus(z: Term) -> Term:
    """|z|^2; of a real number its square."""
    return call("abs2", z) if is_complex(z.type) else mul(z, z)


def _number_out(t: Term) -> tuple[Const, Term]:
    """(c, rest) with t = c · rest, for a δ of entries of arrays of integers whose body has a number in front."""
    if not isinstance(t, Delta) or not holds_entries(t.left, t.right):
        return ONE, t
    size, rest = content(t.body) if isinstance(t.body, Add) else split_coefficient(t.body)
    return size, delta(t.left, t.right, rest)


def _number(v: Var) -> int:
    return v.uid
