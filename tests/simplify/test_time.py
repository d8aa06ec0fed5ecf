"""A budget of time is kept by programs whose derivatives are long, and what they are left with is right."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import process_time

import pytest

import combdiff as cd
from combdiff.arrays.passes.contractions import sharing
from combdiff.budget import SPENT, OutOfTime
from combdiff.calculus.definitions.cutting import LONG, derivative_size
from combdiff.errors import BudgetError
from combdiff.simplify.stages import Simplifier
from combdiff.terms.terms import Lam, Term, add, alpha_equal, apply, call, fresh, mul
from combdiff.terms.types import REAL, Domain, Index, Map
from tests.calculus.test_pairs import ANGLES

SECONDS = 2.0
ALLOWED = 1.5 * SECONDS + 1
"""What a budget of `SECONDS` may take, on the clock of the processor: others may have their turn in between."""


def _nested(step: str, levels: int) -> str:
    text = "x"
    for _ in range(levels):
        text = step.replace("@", text)
    return text


def _iterated(step: Callable[[float, float], float], levels: int) -> Callable[[float], float]:
    def value(x: float) -> float:
        t = x
        for _ in range(levels):
            t = step(t, x)
        return t

    return value


NAMED = "; ".join(f"t{n + 1} = exp(t{n} / 9) / 9 + sin(t{n})" for n in range(18))
LONG_PROGRAMS: dict[str, tuple[str, Callable[[float], float], float]] = {
    "sin of sin, 190 deep": (_nested("sin(@)", 190), _iterated(lambda t, x: math.sin(t), 190), 0.7),
    "a tower of 61 powers": ("^".join(["x"] * 61), _iterated(lambda t, x: x**t, 60), 1.1),
    "a tower of 20 powers": ("^".join(["x"] * 20), _iterated(lambda t, x: x**t, 19), 1.1),
    "18 levels in terms of x": (
        _nested("(exp(@ / 9) / 9 + sin(x))", 18),
        _iterated(lambda t, x: math.exp(t / 9) / 9 + math.sin(x), 18),
        0.7,
    ),
    "9 levels of two uses, written out": (
        _nested("(exp(@ / 9) / 9 + sin(@))", 9),
        _iterated(lambda t, x: math.exp(t / 9) / 9 + math.sin(t), 9),
        0.7,
    ),
    "18 levels of two uses, named": (
        f"begin; t0 = x; {NAMED}; t18; end",
        _iterated(lambda t, x: math.exp(t / 9) / 9 + math.sin(t), 18),
        0.7,
    ),
    "a product of 59 sums": (
        " * ".join(f"(1 + x / {n})" for n in range(1, 60)),
        lambda x: math.prod(1 + x / n for n in range(1, 60)),
        0.1,
    ),
    "149 products of two functions": (
        " + ".join(f"sin({n} * x) * exp(x / {n})" for n in range(1, 150)),
        lambda x: sum(math.sin(n * x) * math.exp(x / n) for n in range(1, 150)),
        0.1,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("mode", ["grad", "hvp"])
@pytest.mark.parametrize("what", LONG_PROGRAMS)
def test_a_long_derivative_keeps_to_its_budget_and_is_right(what: str, mode: str) -> None:
    body, value, x = LONG_PROGRAMS[what]
    cd.grad("(x::R) -> x^2")  # what is imported is so once
    start = process_time()
    try:
        d = getattr(cd, mode)(f"(x::R) -> {body}", seconds=SECONDS)
    except BudgetError as refused:
        # on a busy machine there may be no time for the second derivative itself
        assert process_time() - start < ALLOWED and mode == "hvp" and "tower" in what
        assert "allow more seconds" in str(refused)
        return
    assert process_time() - start < ALLOWED
    assert all((SPENT in step.note) == step.spent for step in d.steps)
    h = 1e-3
    first = (value(x - 2 * h) - 8 * value(x - h) + 8 * value(x + h) - value(x + 2 * h)) / (12 * h)
    second = (16 * (value(x + h) + value(x - h)) - 30 * value(x) - value(x + 2 * h) - value(x - 2 * h)) / (12 * h * h)
    found = d.compile()(x) if mode == "grad" else d.compile()(x, 1.0)
    assert math.isclose(found, first if mode == "grad" else second, rel_tol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["grad", "hvp"])
@pytest.mark.parametrize(
    "text",
    [
        "@domain Z begin base = I; periodic = true end\n"
        "(y::(Z, Z, Z) -> R) -> sum((l::Z, k::Z), y(l, l - k, k) * y(l + k, l - k, k))",
        "(x::RV) -> sum(i, x(i))^40 * sum(i, x(i)^2)^20",
    ],
)
def test_sums_keep_to_their_budget(text: str, mode: str) -> None:
    cd.grad("(x::R) -> x^2")
    start = process_time()
    d = getattr(cd, mode)(text, seconds=SECONDS)
    assert process_time() - start < ALLOWED
    assert d.check()


# what getrusage tells begins with the memory of the process that started this one
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell a process's own memory")
@pytest.mark.parametrize("mode", ["grad", "hvp"])
def test_a_tower_of_powers_takes_little_memory(mode: str) -> None:
    script = f"""
import contextlib
import combdiff as cd
with contextlib.suppress(cd.errors.BudgetError):  # on a busy machine; what was needed before counts
    cd.{mode}("(x::R) -> " + "^".join(["x"] * 61), seconds={SECONDS})
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 1 << 20, "kilobytes"


def test_differentiation_that_takes_too_long_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Simplifier, "_allowance", lambda _: -10.0)
    with pytest.raises(BudgetError, match="differentiation takes more than its budget") as problem:
        cd.grad("(x::RV) -> sum(i, exp(x(i)))", seconds=1e-9)
    assert "allow more seconds" in str(problem.value)


def _doubled(levels: int, start: Term) -> Term:
    for _ in range(levels):
        start = add(call("sin", start), call("cos", start))
    return start


def test_terms_of_shared_parts_are_compared_in_linear_time() -> None:
    x = fresh("x", REAL)
    assert _doubled(60, x) == _doubled(60, x)
    assert alpha_equal(_doubled(60, x), _doubled(60, x))
    assert not alpha_equal(_doubled(60, x), _doubled(60, mul(x, x)))


def test_terms_of_shared_parts_below_a_binder_are_compared_in_linear_time() -> None:
    n = Index(Domain("n"))
    f = fresh("f", Map((n,), REAL))
    one, other = fresh("i", n), fresh("j", n)
    a, b = (Lam((i,), _doubled(60, apply(f, i))) for i in (one, other))
    assert alpha_equal(a, b)
    assert not alpha_equal(Lam((one,), apply(f, one)), Lam((other,), apply(f, one)))


def test_the_size_of_a_derivative_is_known_before_it_is_taken() -> None:
    x = fresh("x", REAL)
    assert derivative_size(_doubled(3, x), [x]) < LONG < derivative_size(_doubled(60, x), [x])
    assert derivative_size(_doubled(60, x), []) == 0


THREE_BODIES = """(w::RV) -> (x::RM) -> begin
r2 = (i, j) -> sum(a, (x(i, a) - x(j, a))^2)
sum((i, j, k), indicator(i + 1, j, indicator(j + 1, k, w(i) * w(j) * w(k) / (r2(i, j) * r2(j, k) * r2(i, k)))))
end"""


@pytest.mark.long
def test_parts_to_share_are_sought_in_counted_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    d = cd.grad(THREE_BODIES)
    rng = np.random.default_rng(3)
    w, x = rng.normal(size=5), rng.normal(size=(5, 3))
    gradient = d.compile()(w, x)
    for work in (0, 100):
        monkeypatch.setattr(sharing, "_WORK", work)
        assert np.allclose(cd.grad(THREE_BODIES).compile()(w, x), gradient)


def test_what_there_is_no_time_to_check_is_not_used_or_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object) -> list[str]:
        raise OutOfTime

    monkeypatch.setattr(Simplifier, "_checked", late)
    d = cd.grad("(A::Her) -> (x::CV) -> real(sum((i, j), x(i)' * A(i, j) * x(j)))")
    for before, step in pairwise(d.steps[1:]):
        if step.name == "contract":
            assert "not checked on numbers: there was no time" in step.note
        else:
            assert step.spent and step.term == before.term
    monkeypatch.undo()
    assert d.check()


@pytest.mark.slow
def test_one_round_of_the_graph_keeps_the_budget() -> None:
    """The products of this Hessian are joined in tens of thousands of ways, in one round of one law."""
    start = process_time()
    d = cd.hvp(ANGLES, seconds=SECONDS)
    assert process_time() - start < ALLOWED
    assert any(SPENT in step.note for step in d.steps)
