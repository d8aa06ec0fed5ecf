"""Logistic functions of one argument share its exponential: σ(u), σ(−u), softplus(u) and softplus(−u).

    t = exp(−|u|)         at most 1, so that nothing overflows and no digits are lost
    softplus(±u)          max(±u, 0) + log1p(t)
    σ(u), σ(−u)           1 / (1 + t) and t / (1 + t) for u ≥ 0, and the other way about

Value and gradient of a logistic loss need two of them, those of a negative binomial one all four.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.plan import Plan, Step, interned
from combdiff.records import dataclass
from combdiff.terms.terms import MINUS_ONE, ONE, ZERO, Const

_LARGE = 512  # entries: of fewer, calls take longer than what they compute
_FUNCTIONS = ("softplus", "sigmoid")


def with_exponentials_shared(plan: Plan, large: int = _LARGE) -> Plan:
    """The plan with one exponential for all logistic functions of an argument and of its negative, if there are two."""
    found: dict[Step, list[Step]] = defaultdict(list)
    for step in plan.steps:
        if _is_logistic(step) and plan.entries(step) >= large:
            found[_signed(step.operands[0])[0]].append(step)
    shared = {step: base for base, steps in found.items() if len(steps) > 1 for step in steps}
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
        size = _entrywise(ops.Call("abs"), self.of)
        self.small = _entrywise(ops.Call("exp"), _entrywise(ops.Mul(MINUS_ONE), size))
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
