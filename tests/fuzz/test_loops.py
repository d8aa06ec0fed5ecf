"""Loops of the generator: what they mean, beside loops of Python, and that each kind of them is drawn."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from tests.fuzz import oracle
from tests.fuzz.case import Case
from tests.fuzz.constructs import constructs
from tests.fuzz.kinds import REAL, Index, Number, Range, Tensor, longer
from tests.fuzz.looping import is_settled
from tests.fuzz.meaning import Held, Scope, evaluate
from tests.fuzz.programs import program
from tests.fuzz.shrinking import candidates, well_formed
from tests.fuzz.sight import bare
from tests.fuzz.syntax import (
    Add,
    Affine,
    App,
    Compared,
    Constant,
    Expr,
    Literal,
    Loop,
    Mul,
    Program,
    Ref,
    Sum,
    Tuple,
    Var,
    walk,
)

N = Range("n", "plain", (4,), named=True)
X = Var(Tensor((N,)))
NUMBERS = np.array([0.7, -1.2, 0.4, 1.5])


def number(value: object) -> Literal:
    return Literal(Fraction(str(value)))


def value_of(e: Expr) -> object:
    scope = Scope({X: Held(np.asarray(NUMBERS, np.longdouble)[None], 0, (N,))})
    return evaluate(e, scope)


def damped(name: str, stop: bool = False) -> Loop:
    """s ↦ s x(t) + t."""
    s, t = Var(REAL), Var(Index(N))
    step = Add((Mul((Ref(s), App(Ref(X), (bare(t),)))), bare(t)))
    condition = Compared((Ref(s), number("1.5")), ("<",)) if stop else None
    return Loop(name, (s,), t, (number(1),), step, condition)


def states(stop: bool = False) -> list[float]:
    found = [1.0]
    for t, x in enumerate(NUMBERS):
        found.append(found[-1] if stop and not found[-1] < 1.5 else found[-1] * x + t)
    return found


@pytest.mark.parametrize("stop", [False, True])
def test_a_loop_is_one_step_after_another(stop: bool) -> None:
    assert np.ravel(value_of(damped("iterate", stop)))[0] == pytest.approx(states(stop)[-1])
    found = value_of(damped("scan", stop))
    assert isinstance(found, Held) and found.slots == (longer(N, 1),)
    np.testing.assert_allclose(np.asarray(found.value, float)[0], states(stop))


def test_states_are_made_together_and_for_each_index_around() -> None:
    a, b, t, i = Var(REAL), Var(REAL), Var(Index(N)), Var(Index(N))
    swapped = Tuple((Ref(b), Add((Ref(a), App(Ref(X), (bare(i),))))))
    e = Loop("iterate", (a, b), t, (number(0), number(1)), swapped)
    first, second = evaluate_at(e, i)
    np.testing.assert_allclose(np.asarray(first, float), 2 * NUMBERS)
    np.testing.assert_allclose(np.asarray(second, float), 1 + 2 * NUMBERS)


def evaluate_at(e: Loop, i: Var) -> list[object]:
    """The states for each value of an index."""
    scope = Scope({X: Held(np.asarray(NUMBERS, np.longdouble)[None], 0, (N,))}).within([i])
    return [np.ravel(np.broadcast_to(v, (1, 4))) for v in evaluate(e, scope)]


@pytest.mark.slow
def test_a_loop_has_the_derivative_of_its_steps() -> None:
    t = Var(Index(N))
    h = App(damped("scan"), (Affine(((1, t),), 1),))
    p = Program(((X,),), Sum((t,), Mul((h, h))), seed=3)
    data = {X: NUMBERS}
    along = oracle.directions(p, data, np.random.default_rng(1))
    exact = oracle.slopes(p, data, along)
    for found in oracle.differences(p, data, along, range(along.count)):
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(exact, float), rtol=1e-8)
    assert Case(p).derivation.check()


def test_states_are_as_wide_as_steps_make_them() -> None:
    s, z, t = Var(REAL), Var(Number(True)), Var(Index(N))
    turned = [Loop("iterate", (v,), t, (number(1),), Mul((Ref(v), Constant("im")))) for v in (s, z)]
    assert [is_settled(e) for e in turned] == [False, True]


KINDS = (
    *("iterate", "scan", "loop of numbers", "loop of tensors", "loop of tuples", "loop that stops early"),
    *("loop in a sum", "loop in a map", "loop in a loop", "derivative in a loop"),
    *("T is a number", "T is a size", "T is a size less a number", "T is an Int"),
)


@pytest.mark.slow
def test_each_kind_of_loop_is_in_one_program_of_twenty() -> None:
    counts: Counter[str] = Counter()
    for n in range(800):
        counts.update(constructs(program(11, n)))
    assert 0.15 < counts["loop"] / 800 < 0.22
    assert {name: counts[name] for name in KINDS if counts[name] < 0.05 * 800} == {}


@pytest.mark.slow
def test_loops_stay_well_formed_when_they_are_made_smaller() -> None:
    programs = [p for n in range(60) if "loop" in constructs(p := program(12, n))]
    assert len(programs) > 5
    for p in programs[:5]:
        assert well_formed(p)
        smaller = [q for q, _ in zip(candidates(p), range(60), strict=False) if well_formed(q)]
        assert smaller and all(Case(q, plain=True).text for q in smaller)
        loops = [e for q in smaller for e in walk(q.body) if isinstance(e, Loop)]
        assert all(map(is_settled, loops))
