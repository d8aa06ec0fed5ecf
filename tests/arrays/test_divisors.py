"""Shares that only contractions read are not made: what they are divided by divides a smaller array."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes.contractions.divided import with_divisors_apart
from combdiff.arrays.plan import Plan, Scan, Step
from combdiff.arrays.text import read
from combdiff.arrays.verify import verify
from combdiff.meaning.evaluate import evaluate

FORWARD = """(y::RM{t, n}) -> (A::RM{n, n}, p::RV{n}) -> begin
  a = iterate((a, t) -> j -> logsumexp(i, a(i) + A(i, j)) + y(t, j), p, t)
  logsumexp(j, a(j))
end"""
CHOICES = "(y::RM{t, n}) -> (A::RM{n, n}) -> sum(k, logsumexp(j, sum(i, y(k, i) * A(i, j))))"
AVERAGES = "(y::RM{t, n}, A::RM{n, n}) -> (p::RV{n}) -> sum(k, sum(j, softmax(i, A(k, i))(j) * y(0, j) * p(j))^2)"
PROGRAMS = {"forward": FORWARD, "choices": CHOICES, "averages": AVERAGES}


def given(program: str, n: int) -> dict[str, np.ndarray]:
    """Arrays for the arguments of a program."""
    rng = np.random.default_rng(n)
    shapes = {"y": (4, n), "A": (n, n), "p": (n,)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items() if f"{name}::" in program}


def quotients(plan: Plan) -> Iterator[Step]:
    """The products of a plan and of its loops with inverses of arrays with fewer axes."""
    for step in plan.steps:
        if isinstance(step.op, Scan):
            yield from quotients(step.op.body.plan)
        elif isinstance(step.op, ops.Mul) and step.rank > 1:
            yield from (o for o in step.operands if isinstance(o.op, ops.Power) and 0 < o.rank < step.rank)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_table_is_divided(name: str) -> None:
    arrays = given(PROGRAMS[name], 40)
    plan = cd.grad(PROGRAMS[name]).plan(**{key: array.shape for key, array in arrays.items()})
    found = [*quotients(plan)]
    # of the choices the small table is divided
    assert all(o.rank == 1 and name == "choices" for o in found)
    verify(plan)
    assert with_divisors_apart(plan) == plan


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("name", PROGRAMS)
def test_products_with_shares_are_those_of_the_oracle(name: str, n: int) -> None:
    d = cd.grad(PROGRAMS[name])
    arrays = given(PROGRAMS[name], n)
    first = PROGRAMS[name].split("->")[0].count("::")
    values = [*arrays.values()]
    expected = evaluate(d.term, {})(*values[:first])(*values[first:])  # type: ignore[operator]  # a function of all
    found = d.compile()(**arrays)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


QUOTIENT = """n = Domain(name='n', sized=True)
size(n, 9)
x: real[n, n] = input(Map(params=(Index(domain=n), Index(domain=n)), result=Number(complex=False), space='RM'))
s: real[n] = input(Map(params=(Index(domain=n),), result=Number(complex=False), space='RV'))
b: real[n] = input(Map(params=(Index(domain=n),), result=Number(complex=False), space='RV'))
t4: real = const(value=LEAST)
t5: real[n] = call(s, t4, places=((0,), ()), function='max')
t6: real = const(value=-1)
t7: real[n] = power(t5, t6, places=((0,), ()))
t8: real[n, n] = mul(x, t7, places=((0, 1), (AXIS,)), coefficient=1)
t9: real[n] = tensordot(t8, b, left=(1,), right=(0,))
return OUTPUTS
"""


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("least", "outputs", "moved"), [("1", "t9", True), ("1/2", "t9", False), ("1", "(t9, t8)", False)]
)
def test_a_divisor_is_moved_if_it_is_large_and_the_quotient_is_not_needed(
    axis: int, least: str, outputs: str, moved: bool
) -> None:
    written = QUOTIENT.replace("AXIS", str(axis)).replace("LEAST", least).replace("OUTPUTS", outputs)
    before = read(written)
    after = with_divisors_apart(before)
    verify(after)
    assert (after != before) == moved
    # along what is left it divides the result
    last = after.outputs[0]
    assert isinstance(last.op, ops.Mul) == (moved and axis == 0)
