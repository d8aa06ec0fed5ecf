"""Squared distances multiplied out, on request: Σ_c (x(i, c) − y(j, c))² is Σ x² + Σ y² − 2 Σ x y, a matrix product.

Differences of all pairs take n · m · r numbers, and what is multiplied out n · m. It costs digits: where two points are
much nearer to one another than to the origin, their distance is a small difference of large numbers. Sines and cosines
of differences are multiplied out, too: Σ_j cos(x(i) − x(j)) is cos x(i) Σ cos x(j) + sin x(i) Σ sin x(j).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from combdiff.arrays import ops
from combdiff.arrays.lower.arrays import Arrays, Labels, Value, domain_of
from combdiff.arrays.numbers import exponent_of
from combdiff.arrays.passes.contractions.paths import Contractions
from combdiff.arrays.plan import Plan, Step, ordered
from combdiff.records import dataclass
from combdiff.terms.terms import MINUS_ONE, ONE, Const, Var, fresh, times
from combdiff.terms.types import Domain, Index

_MOST = 36
"""Products that a contraction may become; more are no distance."""

Product = tuple[Const, tuple[Value, ...]]
Distances = Literal["differences", "expanded"]


def expanded(plan: Plan) -> Plan:
    """The plan with every contraction of differences between all pairs multiplied out.

    >>> import combdiff as cd
    >>> d = cd.grad("(x::RM) -> sum((i, j), exp(-sum(c, (x(i, c) - x(j, c))^2)))")
    >>> plan = d.plan(value=True, x=(500, 3))
    >>> max(len(s.domains) for s in plan.steps), max(len(s.domains) for s in expanded(plan).steps)
    (3, 2)
    """
    passing = Expansion(plan.sizes)
    new: dict[Step, Step] = {}
    for step in ordered(plan.outputs):
        operands = tuple(new[o] for o in step.operands)
        made = step if operands == step.operands else replace(step, operands=operands)
        new[step] = passing.multiplied_out(made) or made
    names = {new[step]: name for step, name in plan.names.items() if step in new}
    return replace(plan, outputs=tuple(new[o] for o in plan.outputs), names=names)


@dataclass
class Expansion:
    """Contractions as sums of contractions of what their operands are sums of."""

    sizes: Mapping[Domain, int]
    arrays: Arrays = field(default_factory=Arrays)

    def multiplied_out(self, step: Step) -> Step | None:
        """The contraction made of smaller ones; None where no operand holds differences between all pairs."""
        if not isinstance(step.op, ops.Contraction | ops.Sum) or not any(map(self.holds_pairs, step.operands)):
            return None
        kept = tuple(fresh("d", Index(domain)) for domain in step.domains)
        terms = self.terms(step, kept, self.products)
        return None if terms is None else self.arrays.arranged(self.arrays.total(terms, kept), kept)

    def terms(
        self, step: Step, kept: Labels, products: Callable[[Step, Labels], list[Product]]
    ) -> list[tuple[Const, Value]] | None:
        """The contractions that one with these labels is a sum of, by the products that each operand is a sum of."""
        *rows, out = step.rows
        labels = dict(zip(out, kept, strict=True))
        for row, operand in zip(rows, step.operands, strict=True):
            for label, domain in zip(row, operand.domains, strict=True):
                labels.setdefault(label, fresh("d", Index(domain)))
        sides = [products(o, tuple(labels[x] for x in row)) for row, o in zip(rows, step.operands, strict=True)]
        found = multiplied(*sides)
        if len(found) > _MOST:
            return None
        summed = [v for label, v in labels.items() if label not in out]
        contractions = Contractions(self.arrays, self.sizes, None)
        return [(c, self._contracted(values, kept, summed, contractions)) for c, values in _gathered(found)]

    def _contracted(
        self, values: Sequence[Value], kept: Labels, summed: Sequence[Var], contractions: Contractions
    ) -> Value:
        """Σ of a product; over an index that none of its factors has, it is that many times the product."""
        present = {x for v in values for x in v.labels}
        counts = [self.arrays.size(domain_of(x)) for x in summed if x not in present]
        return self.arrays.product(ONE, [*counts, contractions.total([*values], {*kept}, kept)], kept)

    def products(self, step: Step, labels: Labels) -> list[Product]:
        """What an array with these labels is the sum of."""
        if not self.holds_pairs(step):
            return [(ONE, (Value(step, labels),))]
        match step.op:
            case ops.Conj():
                found = self.products(step.operands[0], labels)
                return [(Const(c.real, -c.imag), tuple(map(self.arrays.conj, values))) for c, values in found]
            case ops.Permute(order):
                return self.products(step.operands[0], tuple(labels[order.index(n)] for n in range(step.rank)))
            case ops.Power(places=places):
                base = self.products(step.operands[0], tuple(labels[n] for n in places[0]))
                return multiplied(base, base)
            case ops.Mul(coefficient, places=places):
                rows = [tuple(labels[n] for n in at) for at in places]
                parts = [self.products(o, row) for o, row in zip(step.operands, rows, strict=True)]
                return multiplied([(coefficient, ())], *parts)
            case ops.Add(coefficients, places=places):
                found = []
                for c, operand, at in zip(coefficients, step.operands, places, strict=True):
                    inner = self.products(operand, tuple(labels[n] for n in at))
                    found += [(times(c, own), values) for own, values in inner]
                return found
            case ops.Call("cos" | "sin" as name, places=places):
                angles = self.angles(step.operands[0], tuple(labels[n] for n in places[0]))
                return self._of_sum(name, angles)
        raise AssertionError("only these hold differences between all pairs")

    def holds_pairs(self, step: Step) -> bool:
        """Whether an array is a sum of smaller ones, or a product with such, which a contraction goes through."""
        return _holds_pairs(step)

    def angles(self, step: Step, labels: Labels) -> list[Product]:
        """What an angle is the sum of."""
        return self.products(step, labels)

    def _of_sum(self, name: str, angles: Sequence[Product]) -> list[Product]:
        """The cosine or the sine of a sum of angles as a sum of products of theirs."""
        (c, values), *rest = angles
        sign, size = (MINUS_ONE, Const(-c.real, -c.imag)) if c.real < 0 else (ONE, c)
        angle = self.arrays.product(size, values)
        cos, sin = (self.arrays.elementwise(ops.Call(f), [angle], complex=angle.step.complex) for f in ("cos", "sin"))
        if not rest:
            return [(ONE, (cos,))] if name == "cos" else [(sign, (sin,))]
        cosines, sines = (self._of_sum(f, rest) for f in ("cos", "sin"))
        if name == "cos":
            return [*multiplied([(ONE, (cos,))], cosines), *multiplied([(times(MINUS_ONE, sign), (sin,))], sines)]
        return [*multiplied([(sign, (sin,))], cosines), *multiplied([(ONE, (cos,))], sines)]


def _holds_pairs(step: Step) -> bool:
    """Whether an array is a sum of smaller ones, or a product with such, which a contraction goes through."""
    match step.op:
        case ops.Add():
            # of an array as large as the sum, nothing is spared
            return step.rank > 1 and all(o.rank < step.rank for o in step.operands)
        case ops.Conj() | ops.Permute():
            return _holds_pairs(step.operands[0])
        case ops.Power():
            return exponent_of(step.operands[1]) == 2 and _holds_pairs(step.operands[0])
        case ops.Mul():
            return any(map(_holds_pairs, step.operands))
        case ops.Call("cos" | "sin"):
            return _is_sum_of_smaller(step.operands[0])
        case _:
            return False


def _is_sum_of_smaller(step: Step) -> bool:
    """Whether it is a sum of arrays each of which has fewer indices, up to factors."""
    match step.op:
        case ops.Add():
            return _holds_pairs(step)
        case ops.Permute():
            return _is_sum_of_smaller(step.operands[0])
        case ops.Mul():
            smaller = [o for o in step.operands if o.rank < step.rank]
            rest = [o for o in step.operands if o.rank == step.rank]
            return len(rest) == 1 and _is_sum_of_smaller(rest[0]) and not any(o.rank for o in smaller)
        case _:
            return False


def multiplied(*sums: Sequence[Product]) -> list[Product]:
    """The products of sums, multiplied out."""
    result: list[Product] = [(ONE, ())]
    for terms in sums:
        result = [(times(a, b), (*one, *other)) for a, one in result for b, other in terms]
    return result


def _gathered(products: Sequence[Product]) -> list[Product]:
    """Products that are equal but for the order of their factors, once."""
    found: dict[object, Product] = {}
    for c, values in products:
        key = frozenset(Counter(values).items())
        before = found.get(key)
        total = c if before is None else Const(before[0].real + c.real, before[0].imag + c.imag)
        found[key] = total, values if before is None else before[1]
    return [(c, values) for c, values in found.values() if c.real or c.imag]
