"""Lowers guards to `where`: a guarded value stays finite where its condition does not hold.

    indicator(i + 1, j, 1 / r(i, j))   becomes   np.where(i + 1 <= j, 1 / np.where(i + 1 <= j, r, 1), 0)

The argument is replaced as well as the result: nothing warns, and what differentiates the code finds no 0 · ∞. This is
the one place where arguments are made safe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from combdiff.arrays import ops
from combdiff.arrays.lower.arrays import Arrays, Value, domain_of
from combdiff.arrays.lower.conditions import common, compared_in, conditions_of, solution
from combdiff.arrays.lower.cumulative import Cumulative, may_be_of_nothing
from combdiff.arrays.lower.indexing import affine, position, shifted
from combdiff.arrays.lower.inner.running import Tied
from combdiff.arrays.passes.contractions.paths import Network
from combdiff.arrays.plan import Step
from combdiff.terms.conditions.choices import Choice, Row, choice_of
from combdiff.terms.conditions.comparing import Part, Relation, comparison_of
from combdiff.terms.conditions.guards import (
    SAFE,
    Condition,
    Finite,
    FiniteInCode,
    Guard,
    both,
    condition_of,
    reads_beyond,
    under,
)
from combdiff.terms.conditions.ordering import existing
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    App,
    Call,
    Const,
    Delta,
    Indicator,
    Pow,
    Term,
    Var,
    domains_compared,
    factors_of,
    fresh,
    indicator,
    is_integer_valued,
    mul,
    number,
    substitute,
    total,
)
from combdiff.terms.types import COMPLEX, REAL, Index, Map


class Guarding(ABC):
    """The part of a lowering that deals with conditions. `guards` are those around what is lowered, outer ones first.

    `partial` are the definitions that may be infinite, `bounds` are of those that are not below 0, `finite` says of a
    term whether it is surely not infinite.
    """

    arrays: Arrays
    known: dict[Term, Step]

    def __init__(self) -> None:
        self.guards: Guard = ()
        self.partial: set[Var] = set()
        self.bounds: dict[Var, int] = {}
        self.finite: Finite = FiniteInCode(self.partial, self.bounds)
        self.unnamed: dict[Step, Var] = {}

    @abstractmethod
    def scalar(self, t: Term, wanted: Sequence[Var] = ()) -> Value:
        """A number that depends on indices."""

    @abstractmethod
    def constrained(
        self, summed: list[Var], conditions: list[tuple[Term, Term]], rest: Term, wanted: Sequence[Var]
    ) -> Value:
        """Σ of δ(l, r, …)."""

    def guarded(self, t: Delta | Indicator, wanted: Sequence[Var]) -> Value:
        """The body where the condition holds, else 0; never 0 times the body, which may be infinite there."""
        if isinstance(t, Delta):
            conditions, rest = conditions_of(t)
            inside = under(self.guards, rest)
            others = [[o for o in conditions if o is not c] for c in conditions]
            found = [compared_in(inside, o) for o in others]
            pairs = zip(conditions, found, strict=True)
            if any(common(c) or solution(c, [], inside, o, wanted) for c, o in pairs):
                return self.constrained([], conditions, rest, wanted)
        condition = condition_of(t)
        with self.under(both(self.guards, (condition,))):
            body = self.scalar(t.body, wanted)
        return self.where(condition, body, ZERO, wanted)

    def operands(self, t: Term, parts: Sequence[Term], wanted: Sequence[Var] = ()) -> list[Value]:
        """The operands of a function or a power; what is guarded and may not be finite gets safe ones."""
        values = [self.scalar(u, wanted) for u in parts]
        if not self.guards or self.finite.is_total(t):
            return values
        if not isinstance(t, Pow):
            safe = number(SCALAR_FUNCTIONS[t.primitive].safe) if isinstance(t, Call) else SAFE
            return [
                value if isinstance(u, Const) else self._safe(value, (), safe)
                for u, value in zip(parts, values, strict=True)
            ]
        # x^1 is as harmless as 1^n: the exponent where it alone has all indices that are compared, else the base
        base, exponent = values
        compared = {v for c in self.guards for v in c.free}.intersection((*base.labels, *exponent.labels))
        if isinstance(t.base, Const) or (not compared.issubset(base.labels) and compared.issubset(exponent.labels)):
            return [base, self._safe(exponent)]
        return [self._safe(base, tuple(v for v in exponent.labels if v in compared)), exponent]

    def _safe(self, value: Value, over: Sequence[Var] = (), safe: Const = SAFE) -> Value:
        """The values where the guards hold; where one does not, what the function can be applied to.

        They are made for all values of the indices in `over`.
        """
        # of indices that are not at hand, it matters whether the guards hold for some value
        at_hand = {*value.labels, *over}
        away = {v for c in self.guards for v in c.free if isinstance(v.kind, Index) and v not in at_hand}
        known = existing(self.guards, away)
        for condition in known:
            # what is compared is guarded by the conditions around it
            outside = self.guards[: self.guards.index(condition)] if condition in self.guards else ()
            with self.under(outside):
                value = self.where(condition, value, safe)
        return value

    def summed_within(self, summed: Sequence[Var], body: Term) -> Term | None:
        """Σ of a product with a guard as a guard around the Σ, over the indices that its condition does not have.

        Σ_k f(i, k) · [i ≤ j] g(k) is [i ≤ j] Σ_k f(i, k) g(k): what may be infinite is not made for all i, j and k.
        None where no guard is that of fewer indices.
        """
        factors = factors_of(body)
        marks = [f for f in factors if isinstance(f, Indicator) and f.body == ONE]
        if marks and not summed and len(factors) > 1 and all(map(self.finite, factors)):
            # what is marked by a condition is chosen by it: nan in data that it excludes comes to nothing
            rest = list(factors)
            rest.remove(marks[0])
            return indicator(marks[0].left, marks[0].right, mul(*rest))
        for n, guard in enumerate(factors):
            if isinstance(guard, Indicator) and not self.finite(guard.body):
                compared = guard.left.free | guard.right.free
                inner = tuple(v for v in summed if v not in compared)
                if inner:
                    outer = tuple(v for v in summed if v in compared)
                    others = [*factors[:n], *factors[n + 1 :]]
                    # what meets the guarded sum in a sum of its own stays beside it
                    beside = [f for f in others if outer and f.free.isdisjoint(inner) and self.finite(f)]
                    within = total(inner, mul(guard.body, *(f for f in others if f not in beside)))
                    return total(outer, mul(*beside, indicator(guard.left, guard.right, within)))
        return None

    @contextmanager
    def under(self, guards: Guard) -> Iterator[None]:
        """What is lowered meanwhile stands under these guards."""
        outer, self.guards = self.guards, guards
        yield
        self.guards = outer

    def where(
        self, c: Condition, body: Value, otherwise: Const, wanted: Sequence[Var] = (), other: Value | None = None
    ) -> Value:
        """`body` where a condition holds, else a number, or `other`."""
        told = Relation(c.left, "==", c.right) if c.equal else comparison_of(c)
        left, right = self._side(told.left), self._side(told.right)
        modulo = None
        if c.equal or (told.sign == "!=" and isinstance(c.left, Delta)):
            modulo = next((d for d in domains_compared(told.left, told.right) if d.periodic), None)
        if other is not None:
            kind = ops.Where(told.sign, modulo, None)
            return self.arrays.elementwise(kind, (left, right, body, other), wanted, body.step.complex)
        kind = ops.Where(told.sign, modulo, otherwise)
        if otherwise == SAFE and _is_chosen(body, left, right, kind):
            return body
        return self.arrays.elementwise(kind, (left, right, body), wanted, body.step.complex)

    def chosen(self, choice: Choice, wanted: Sequence[Var]) -> Value:
        """The values of a choice, each where it is taken: where(c, a, where(d, b, e)) takes each condition once."""
        *rows, last = choice.rows
        value = self._taken(last, wanted)
        for row in reversed(rows):
            value = self._either(row.parts, self._taken(row, wanted), value, wanted)
        for part in reversed(choice.around):
            value = self._either((part,), value, self.arrays.number(ZERO), wanted)
        return value

    def _taken(self, row: Row, wanted: Sequence[Var]) -> Value:
        with self.under(both(self.guards, row.guard)):
            return self.scalar(row.value, wanted)

    def _either(self, parts: Sequence[Part], body: Value, other: Value, wanted: Sequence[Var]) -> Value:
        (told,) = parts
        assert isinstance(told, Relation), "a choice of single comparisons"
        sides = self._side(told.left), self._side(told.right)
        if isinstance(other.step.op, ops.Constant) and other.step.op.value == ZERO:
            return self.arrays.elementwise(ops.Where(told.sign, None, ZERO), (*sides, body), wanted, body.step.complex)
        are_complex = body.step.complex or other.step.complex
        return self.arrays.elementwise(ops.Where(told.sign, None, None), (*sides, body, other), wanted, are_complex)

    def cumulated(self, c: Cumulative, wanted: Sequence[Var]) -> Value:
        """A sum up to an index, or from one on, times what else depends on that index."""
        found = self._cumulated(c)
        if not c.rest and c.factor == ONE:
            return found
        return self.scalar(total(c.rest, mul(c.factor, self._entry(found))), wanted)

    def cumulated_logarithm(self, c: Cumulative) -> Value:
        """log Σ_along [condition] w exp(exponent), where w is the summand, at least 0."""
        assert c.exponent is not None, "a sum of exponentials"
        with self.under(both(self.guards, (c.condition,))):
            exponent = self._exponent(c.exponent)
            if c.summand != ONE:
                exponent = self.arrays.total([(ONE, exponent), (ONE, self._logarithm(c.summand))])
        return self._up_to(c, ops.CumulativeLogSumExp, (exponent, self._lowest))

    def cumulated_extremum(self, c: Cumulative, kind: str, value: Value) -> Value:
        """The largest, or the least, of numbers up to an index: of none of them −∞, or ∞."""
        nothing = self._lowest if kind == "maximum" else self.arrays.named("inf")
        return self._up_to(c, partial(ops.CumulativeExtremum, kind=kind), (value, nothing))

    def cumulated_ties(self, c: Tied, numbers: Value, wanted: Sequence[Var]) -> Value:
        """A sum over shares in maxima of `numbers` up to an index, times what else there is."""
        up = c.up
        weight = self.scalar(c.weight if c.back else substitute(c.weight, {c.at: up.along}))
        if c.back:
            weight = self._over(weight, up.bound)
            weight = shifted(self.arrays, weight, up.bound, up.along, -up.lag if up.reverse else up.lag)
            for condition in existing((replace(up.condition, equal=True),), {up.bound}):
                weight = self.where(condition, weight, ZERO, weight.labels)
        labels = tuple(dict.fromkeys((*numbers.labels, *weight.labels, up.along)))
        steps = tuple(self.arrays.arranged(value, labels) for value in (weight, numbers))
        op = ops.CumulativeTies(labels.index(up.along), up.reverse, c.back)
        found = Value(self.arrays.builder.step(op, steps, map(domain_of, labels), weight.step.complex), labels)
        if c.back:
            found = Value(found.step, tuple(c.at if v == up.along else v for v in labels))
        else:
            found = self._met(found, up, None)
        return self.scalar(total(c.rest, mul(c.factor, self._entry(found))), wanted)

    def _over(self, value: Value, index: Var) -> Value:
        """The value with an axis for an index."""
        labels = (*value.labels, index)
        return value if index in value.labels else Value(self.arrays.arranged(value, labels), labels)

    def _cumulated(self, c: Cumulative) -> Value:
        if c.exponent is None:
            with self.under(both(self.guards, (c.condition,))):
                value = self.scalar(c.summand)
            return self._up_to(c, ops.CumulativeSum, (value, None))
        if c.summand == ONE:
            logarithm = self.arrays.total([(ONE, self._exponent(c.level)), (ONE, self.cumulated_logarithm(c))])
            return self.arrays.elementwise(ops.Call("exp"), [logarithm], complex=False)
        with self.under(both(self.guards, (c.condition,))):
            weight, exponent = self.scalar(c.summand), self._exponent(c.exponent)
        return self._up_to(c, ops.CumulativeExponentials, (weight, None), (exponent, self._lowest), level=c.level)

    def _exponent(self, t: Term) -> Value:
        """An exponent in which no logarithm of nothing is subtracted: a share in nothing is 0."""
        value = self.scalar(t)
        if not may_be_of_nothing(t):
            return value
        kind = ops.Where("==", None, None)
        sides = [value, self.arrays.named("inf"), self._lowest, value]
        return self.arrays.elementwise(kind, sides, value.labels, complex=False)

    def _logarithm(self, weight: Term) -> Value:
        """The logarithm of what is above 0, −∞ of all else."""
        value = self.scalar(weight)
        if self.finite.least(weight) > 0:
            return self.arrays.elementwise(ops.Call("log"), [value], complex=False)
        zero, one = self.arrays.number(ZERO), self.arrays.number(ONE)
        safe = self.arrays.elementwise(ops.Where("<", None, None), [zero, value, value, one], complex=False)
        logarithm = self.arrays.elementwise(ops.Call("log"), [safe], complex=False)
        return self.arrays.elementwise(
            ops.Where("<", None, None), [zero, value, logarithm, self._lowest], complex=False
        )

    @property
    def _lowest(self) -> Value:
        return self.arrays.product(MINUS_ONE, [self.arrays.named("inf")])

    def _up_to(
        self,
        c: Cumulative,
        op: Callable[[int, bool], ops.Cumulative],
        *summed: tuple[Value, Value | None],
        level: Term | None = None,
    ) -> Value:
        """What is made of all entries up to an index, of each operand and of what adds nothing to it (None: 0)."""
        own = c.along if c.reverse else c.bound
        # from one index on, what lies beyond the places of the other index counts
        values = [value if c.reverse else self._met(value, c, nothing) for value, nothing in summed]
        if level is not None:
            value = self._exponent(level)
            values.append(shifted(self.arrays, value, c.bound, c.along, -c.lag) if c.reverse else value)
        labels = tuple(dict.fromkeys(v for value in values for v in value.labels))
        steps = tuple(self.arrays.arranged(value, labels) if len(values) > 1 else value.step for value in values)
        made = op(labels.index(own), c.reverse)
        found = Value(self.arrays.builder.step(made, steps, map(domain_of, labels), steps[0].complex), labels)
        return self._met(found, c, summed[0][1]) if c.reverse else found

    def _met(self, value: Value, c: Cumulative, nothing: Value | None) -> Value:
        """The entries for the values of `bound` that end the sums; what adds nothing where there is no such entry."""
        found = shifted(self.arrays, value, c.along, c.bound, -c.lag if not c.reverse else c.lag)
        for condition in c.met:
            found = self.where(condition, found, ZERO, found.labels, nothing)
        return found

    def _entry(self, value: Value) -> Term:
        """An array that has no name in the program as an entry of a tensor, which products and sums are made of."""
        key = value.step
        if key not in self.unnamed:
            kind = Map(tuple(v.kind for v in value.labels), COMPLEX if value.step.complex else REAL)
            self.unnamed[key] = fresh("t", kind)
            self.known[self.unnamed[key]] = value.step
        return App(self.unnamed[key], value.labels)

    def _side(self, t: Term) -> Value:
        if is_integer_valued(t):
            return position(self.arrays, affine(t), None)
        return self.scalar(t)

    def place_masks(self, network: Network) -> None:
        """A mask goes on the smallest factor that has its indices, wherever it stands; else it is a factor of its own.

        Of a square both factors are masked, so that nan in data that the condition excludes comes to nothing.
        """
        for mask in map(condition_of, network.masks):
            labels = {*self._side(mask.left).labels, *self._side(mask.right).labels}
            homes = [n for n, v in enumerate(network.operands) if labels <= set(v.labels)]
            home = min(homes, key=lambda n: len(network.operands[n].labels), default=None)
            if home is None:
                network.operands.append(self.where(mask, self.arrays.number(ONE), ZERO))
            else:
                masked, bare = self.where(mask, network.operands[home], ZERO), network.operands[home]
                network.operands = [masked if v == bare else v for v in network.operands]


def comparisons(t: Term) -> Choice | None:
    """The choice that a term is, if each of its values is chosen by one comparison in a single order of numbers."""
    choice = choice_of(t)
    if choice is None or any(c.equal for row in choice.rows for c in row.guard):
        return None
    if any(reads_beyond(row.value) for row in choice.rows):
        return None  # parts of a range, of which each is made alone
    parts = [*((part,) for part in choice.around), *(row.parts for row in choice.rows[:-1])]
    return choice if all(len(p) == 1 and _is_order(p[0]) for p in parts) else None


def _is_order(part: Part) -> bool:
    if not isinstance(part, Relation):
        return False
    return not any(d.periodic or d.directions > 1 or d.listed for d in domains_compared(part.left, part.right))


def _is_chosen(value: Value, left: Value, right: Value, kind: ops.Where) -> bool:
    """Whether `value` is SAFE already where the condition does not hold: a root or a power of what was chosen so."""
    step, labels = value.step, value.labels
    while True:
        if not isinstance(step.op, ops.Aligned):
            return False
        operands = [
            Value(o, tuple(labels[axis] for axis in at)) for o, at in zip(step.operands, step.op.places, strict=True)
        ]
        match step.op:
            case ops.Where(_, _, otherwise) if otherwise == SAFE:
                *sides, body = operands
                if step.op.placed(()) == kind and sides == [left, right]:
                    return True
                step, labels = body.step, body.labels
            case ops.Power() | ops.Call("sqrt"):
                step, labels = operands[0].step, operands[0].labels
            case _:
                return False
