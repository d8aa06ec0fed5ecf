"""Arrays of one number are equal up to their factors and the order of their axes, whatever they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from combdiff.arrays import ops
from combdiff.arrays.passes.loops.values import Placed, Values
from combdiff.arrays.plan import Step
from combdiff.terms.terms import ONE, Const, number
from combdiff.terms.types import Domain

Array = npt.NDArray[np.float64]
SIZES = {Domain("n"): 2, Domain("m"): 3}
N, M = SIZES
INPUTS = [Step(ops.Input(name), (), at, False) for name, at in (("a", ()), ("x", (N,)), ("y", (M,)), ("A", (N, M)))]


def added(*terms: tuple[Const, Step, ops.Row], domains: Sequence[Domain]) -> Step:
    op = ops.Add(tuple(c for c, _, _ in terms), places=tuple(at for _, _, at in terms))
    return Step(op, tuple(o for _, o, _ in terms), tuple(domains), False)


def summed(of: Step, axis: int) -> Step:
    return Step(ops.Sum((axis,)), (of,), (*of.domains[:axis], *of.domains[axis + 1 :]), False)


def norm(of: Step) -> Step:
    return Step(ops.Norm(), (of,), of.domains[:-1], False)


def random_step(rng: Random, known: Sequence[Step]) -> Step:
    """An array that is made of known ones."""
    one, other = rng.choice(known), rng.choice(known)
    numbers = [number(n) for n in (1, 1, 2, -1)]
    match rng.choice("+*∑ftbn"):
        case "+" | "*" as kind:
            domains = [d for d in SIZES if d in one.domains or d in other.domains]
            rows = tuple(tuple(map(domains.index, o.domains)) for o in (one, other))
            op = ops.Mul(rng.choice(numbers), places=rows)
            if kind == "*":
                return Step(op, (one, other), tuple(domains), False)
            return added(
                *((rng.choice(numbers), o, at) for o, at in zip((one, other), rows, strict=True)), domains=domains
            )
        case "∑" if one.rank:
            return summed(one, rng.randrange(one.rank))
        case "f":
            return Step(ops.Call("sin", places=(tuple(range(one.rank)),)), (one,), one.domains, False)
        case "t" if one.rank == 2:
            return Step(ops.Permute((1, 0)), (one,), one.domains[::-1], False)
        case "b" if one.rank == 1:
            domains = (one.domains[0], N if one.domains[0] == M else M)
            return Step(ops.Broadcast((0,)), (one,), domains, False)
        case "n" if one.rank:
            return norm(one)
        case _:
            return one


def spread_out(array: Array, row: ops.Row, shape: Sequence[int]) -> Array:
    """An array whose axes lie at these places of a shape."""
    others = tuple(n for n in range(len(shape)) if n not in row)
    return np.broadcast_to(np.expand_dims(np.transpose(array, [*np.argsort(row)]), others), shape)


def value(step: Step, known: dict[Step, Array]) -> Array:
    if step in known:
        return known[step]
    operands = [value(o, known) for o in step.operands]
    rows = step.op.places if isinstance(step.op, ops.Aligned) else ()
    shape = [SIZES[d] for d in step.domains]
    spread = [spread_out(o, row, shape) for o, row in zip(operands, rows, strict=False)]
    found: object
    match step.op:
        case ops.Add(coefficients):
            found = sum(float(c.real) * o for c, o in zip(coefficients, spread, strict=True))
        case ops.Mul(coefficient):
            found = float(coefficient.real) * np.prod(np.stack(spread), axis=0)
        case ops.Call():
            found = np.sin(operands[0])
        case ops.Sum((axis,)):
            found = operands[0].sum(axis)
        case ops.Permute():
            found = operands[0].T
        case ops.Broadcast():
            found = np.broadcast_to(operands[0][:, None], shape)
        case _:
            found = np.linalg.norm(operands[0], axis=-1)
    known[step] = np.asarray(found)
    return known[step]


def along_own_axes(array: Array, placed: Placed) -> Array:
    """An array with the axes of its value: along others it is the same."""
    _, at = placed
    others = tuple(n for n in range(array.ndim) if n not in at)
    return np.transpose(array, (*at, *others))[(..., *(0 for _ in others))]


def assert_alike(steps: Sequence[Step]) -> None:
    values, rng = Values(), np.random.default_rng(7)
    arrays: dict[Step, Array] = {s: rng.uniform(0.5, 1.5, [SIZES[d] for d in s.domains]) for s in INPUTS}
    found: dict[int, Array] = {}
    for step in steps:
        placed, c = values.number(step)
        if c.real:
            array = along_own_axes(value(step, arrays), placed) / float(c.real)
            np.testing.assert_allclose(array, found.setdefault(placed[0], array), rtol=1e-9)


@given(st.integers(0, 10**6))
def test_random_arrays_of_one_number_are_equal(seed: int) -> None:
    rng, steps = Random(seed), [*INPUTS]
    for _ in range(25):
        steps.append(random_step(rng, steps))
    assert_alike(steps)


def test_orders_of_terms_and_factors_make_no_other_number() -> None:
    a, x, y, _ = INPUTS
    values = Values()
    one = Step(ops.Mul(number(2), places=((0,), (1,))), (x, y), (N, M), False)
    other = Step(ops.Mul(number(6), places=((0,), (1,))), (y, x), (M, N), False)
    (first, at), c = values.number(one)
    (second, turned), d = values.number(other)
    assert first == second and at == turned[::-1] and (c, d) == (number(2), number(6))
    sums = [added((ONE, x, (0,)), (number(3), a, ()), domains=(N,)), added((ONE, a, ()), (ONE, x, (0,)), domains=(N,))]
    assert values.number(sums[0])[0] != values.number(sums[1])[0]


@pytest.mark.parametrize("of", [lambda s: summed(s, 0), norm], ids=["sum", "norm"])
def test_what_is_the_same_along_an_axis_counts_as_often_as_the_axis_is_long(of: Callable[[Step], Step]) -> None:
    """Σ_i (x(i) + a) is no Σ_i x(i) + a; of a number, n and m copies have other sums, and other norms."""
    a, x, *_ = INPUTS
    copies = [Step(ops.Broadcast(()), (a,), (d,), False) for d in SIZES]
    longer = added((ONE, x, (0,)), (ONE, a, ()), domains=(N,))
    whole = added((ONE, of(x), ()), (ONE, a, ()), domains=())
    values = Values()
    found = [values.number(s) for s in (*map(of, copies), of(longer), whole, a)]
    assert len({*found}) == len(found)
