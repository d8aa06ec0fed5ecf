"""Logistic functions of one argument share its exponential: σ(u), σ(−u), softplus(u) and softplus(−u).

    t = exp(−|u|)         at most 1, so that nothing overflows and no digits are lost
    softplus(±u)          max(±u, 0) + log1p(t)
    σ(u), σ(−u)           1 / (1 + t) and t / (1 + t) for u ≥ 0, and the other way about

Value and gradient of a logistic loss need two of them, those of a negative binomial one all four. NumPy's `logaddexp`
takes twice as long as this even for one softplus, or longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.plan import Plan, Step, interned
from combdiff.records import dataclass
from combdiff.terms.terms import MINUS_ONE, ONE, ZERO, Const

_LARGE = 512  # entries: of fewer, calls take longer than what they compute
_FUNCTIONS = ("softplus", "sigmoid")


def with_exponentials_shared(plan: Plan, large: int = _LARGE) -> Plan:
    """The plan with one exponential for all logistic functions of an argument and of its negative.

    A σ that has none beside it stays as it is.
    """
    found: dict[Step, list[Step]] = defaultdict(list)
    for step in plan.steps:
        if _is_logistic(step) and plan.entries(step) >= large:
            found[_signed(step.operands[0])[0]].append(step)
    shared = {step: base for base, steps in found.items() if _is_worth_it(steps) for step in steps}
    if not shared or plan.loops:
        return plan
    new: dict[Step, Step] = {}
    made: dict[Step, _Exponential] = {}
    for step in plan.steps:
        if step in shared:
            of = made.setdefault(shared[step], _Exponential(new[shared[step]]))
            new[step] = of.value(step)
            continue
        operands = tuple(new[o] for o in step.operands)
        new[step] = step if operands == step.operands else replace(step, operands=operands)
    names = {new[step]: name for step, name in plan.names.items() if step in new}
    outputs, names = interned([new[o] for o in plan.outputs], names)
    return replace(plan, outputs=outputs, names=names)


def _is_worth_it(steps: Sequence[Step]) -> bool:
    """Whether functions of one argument, and of its negative, are to be made of its exponential."""
    return len(steps) > 1 or any(isinstance(s.op, ops.Call) and s.op.function == "softplus" for s in steps)


def _is_never_positive(step: Step) -> bool:
    """Whether it is −c |u| for a number c."""
    match step.op:
        case ops.Mul(coefficient):
            sizes = all(isinstance(o.op, ops.Call) and o.op.function == "abs" for o in step.operands)
            return bool(step.operands) and sizes and not coefficient.imag and coefficient.real < 0
        case _:
            return False


def _is_logistic(step: Step) -> bool:
    """Whether it is one of the functions, of real numbers."""
    named = isinstance(step.op, ops.Call) and step.op.function in _FUNCTIONS
    return named and step.rank > 0 and not step.operands[0].complex and step.operands[0].domains == step.domains


def _signed(step: Step) -> tuple[Step, bool]:
    """(u, whether the step is −u), whatever the sign of u itself."""
    negative = False
    while _is_negative(step):
        step, negative = step.operands[0], not negative
    return step, negative


def _is_negative(step: Step) -> bool:
    """Whether it is the negative of its operand, as a product or as a sum."""
    match step.op:
        case ops.Mul(coefficient, places=places):
            coefficients: tuple[Const, ...] = (coefficient,)
        case ops.Add(coefficients, places=places):
            pass
        case _:
            return False
    return coefficients == (MINUS_ONE,) and places == (tuple(range(step.rank)),)


@dataclass(eq=False)
class _Exponential:
    """exp(−|u|) of a step, and what is made of it."""

    of: Step

    def __post_init__(self) -> None:
        self.below_zero = _is_never_positive(self.of)
        size = _entrywise(ops.Call("abs"), self.of)
        least = self.of if self.below_zero else _entrywise(ops.Mul(MINUS_ONE), size)
        self.small = _entrywise(ops.Call("exp"), least)
        self.logarithm = _entrywise(ops.Call("log1p"), self.small)
        self.inverse = _entrywise(
            ops.Power(), _entrywise(ops.Add((ONE, ONE)), _number(ONE), self.small), _number(MINUS_ONE)
        )
        self.opposite = _entrywise(ops.Mul(MINUS_ONE), self.of)

    def value(self, step: Step) -> Step:
        """One of the functions of the argument, or of its negative."""
        assert isinstance(step.op, ops.Call), "a logistic function"
        negative = _signed(step.operands[0])[1]
        if step.op.function == "softplus":
            if self.below_zero and not negative:
                return self.logarithm
            positive = _entrywise(ops.Call("relu"), self.opposite if negative else self.of)
            return _entrywise(ops.Add((ONE, ONE)), positive, self.logarithm)
        numerators = (self.small, _number(ONE)) if negative else (_number(ONE), self.small)
        chosen = _entrywise(ops.Where("<=", None, None), _number(ZERO), self.of, *numerators)
        return _entrywise(ops.Mul(ONE), chosen, self.inverse)


def _number(value: Const) -> Step:
    return Step(ops.Constant(value), (), (), False)


def _entrywise(op: ops.Aligned, *operands: Step) -> Step:
    """An operation on arrays that have the same axes, and on numbers."""
    whole = max(operands, key=lambda o: o.rank)
    places = tuple(tuple(range(o.rank)) for o in operands)
    return Step(op.placed(places), operands, whole.domains, False)
