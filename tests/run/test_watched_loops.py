"""`check="states"`: which state of a loop becomes nan or infinite first, and in which step."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import ArrayError, UnsupportedError
from tests.emit.array_libraries import stand_ins

GROWTH = "(x::RV{n}) -> iterate((h, t) -> h^2 * x(t), 10, n)"
PAIR = """(x::RV{n}) -> begin
  (a, b) = iterate(((a, b), t) -> (b, sqrt(a - x(t))), (4, 9), n)
  a + b
end"""
NESTED = "(x::RV{n}) -> iterate((h, t) -> h + iterate((y, s) -> y + log(x(s) - t), x(t), n), 1, n)"
STOPPING = "(x::RV{n}) -> iterate((h, t) -> h / x(t), 1, n, h -> h < 5)"


@pytest.fixture(autouse=True)
def _in_silence() -> Iterator[None]:
    """NumPy's warnings are not what is tested; JAX computes in double precision."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(params=["numpy", pytest.param("jax", marks=pytest.mark.slow)])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "jax":
        pytest.importorskip("jax").config.update("jax_enable_x64", True)
    return str(request.param)


def _told(found: object, *args: object, **named: object) -> str:
    """The first line of the error."""
    assert callable(found)
    with pytest.raises(ArrayError) as caught:
        found(*args, **named)
    return str(caught.value).splitlines()[0]


def test_the_step_in_which_a_state_becomes_infinite_is_named(backend: str) -> None:
    x = np.full(20, 1.0)
    h, first = 10.0, None
    for t in range(len(x)):
        h = h * h * x[t]
        if np.isinf(h):
            first = t
            break
    told = _told(cd.simplified(GROWTH).compile(backend, check="states"), x)
    assert told == f"the state h becomes infinite in step {first} of its loop"


def test_of_two_states_the_one_that_becomes_nan_is_named(backend: str) -> None:
    x = np.array([0.0, 0.0, 0.0, 10.0, 0.0, 0.0])
    told = _told(cd.simplified(PAIR).compile(backend, check="states"), x)
    assert told == "the state b becomes nan in step 3 of its loop"


def test_of_a_loop_in_a_loop_both_steps_are_named(backend: str) -> None:
    told = _told(cd.simplified(NESTED).compile(backend, check="states"), np.array([5.0, 4, 3, 2, 1.5]))
    assert told == "the state y becomes infinite in step 3 of its loop, inside step 2 of the loop of h"


def test_a_first_state_that_is_nan_is_named(backend: str) -> None:
    f = cd.simplified(NESTED).compile(backend, check="states")
    told = _told(f, np.array([5.0, np.nan, 9.0]))
    assert told == "the state y becomes nan in step 1 of its loop, inside step 0 of the loop of h"
    program = "(x::RV{n}, a::R) -> iterate((h, t) -> h + x(t), a, n)"
    told = _told(cd.simplified(program).compile(backend, check="states"), np.ones(3), np.nan)
    assert told == "the state h is nan before the first step"


def test_an_infinite_first_state_may_be_meant(backend: str) -> None:
    program = "(x::RV{n}, a::R) -> iterate((h, t) -> max(h, x(t)), a, n)"
    f = cd.simplified(program).compile(backend, check="states")
    assert f(np.array([1.0, 3.0, 2.0]), -np.inf) == 3


def test_a_loop_that_runs_backwards_tells_the_step_of_the_loop_forwards(backend: str) -> None:
    """The states are finite, and only the derivative of a square root at 0 is not."""
    x = np.array([3.0, 5.0, 0.0, 7.0])
    program = "(x::RV{n}) -> iterate((h, t) -> h * x(t) + sqrt(h * x(t)), 2, n)"
    assert np.isfinite(cd.simplified(program).compile(check="states")(x))
    told = _told(cd.grad(program).compile(backend, check="states"), x)
    found = re.fullmatch(r"the state h_bar becomes (infinite|nan) in step (\d) of its loop, which runs backwards", told)
    assert found
    assert found[2] == "3"  # h is 0 after step 2


def test_states_in_blocks_tell_the_step_of_the_whole_loop() -> None:
    x = np.ones(20)
    x[13] = np.nan
    f = cd.grad("(x::RV{n}) -> iterate((h, t) -> sin(h) * x(t), 1, n)").compile(checkpoint=True, check="states")
    assert _told(f, x) == "the state h becomes nan in step 13 of its loop"
    # h is finite, its adjoint is not: blocks of four steps run again, from the last one on
    x = np.ones(20)
    steep = "(x::RV{n}) -> iterate((h, t) -> where(t == 13, sqrt(h - 14) + 1, h + x(t)), 1, n)"
    told = _told(cd.grad(steep).compile(checkpoint=True, check="states"), x)
    assert told == "the state h_bar becomes infinite in step 13 of its loop, which runs backwards"


def test_products_with_a_hessian_are_watched() -> None:
    f = cd.grad("(x::RV{n}) -> iterate((h, t) -> h^2 * x(t), 1, n)").compile(hvp=True, check="states")
    _, hvp = f(np.ones(5))
    assert np.isfinite(hvp(np.ones(5))).all()
    told = _told(hvp, np.array([0.0, 1.0, np.nan, 0.0, 0.0]))
    assert re.fullmatch(r"the state \w+ becomes nan in step 2 of its loop.*", told)


def test_a_loop_that_stops_is_not_watched_after_its_end(backend: str) -> None:
    f = cd.simplified(STOPPING).compile(backend, check="states")
    assert f(np.array([0.5, 0.25, 0.0, 0.0])) == 8
    assert _told(f, np.array([0.5, 0.0])) == "the state h becomes infinite in step 1 of its loop"


@pytest.mark.slow
def test_under_jit_the_error_of_jax_holds_the_text() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    f = jax.jit(cd.simplified(PAIR).compile("jax", check="states"))
    with pytest.raises(Exception, match="the state b becomes nan in step 3 of its loop"):
        jax.block_until_ready(f(np.array([0.0, 0.0, 0.0, 10.0])))
        jax.effects_barrier()


def test_code_for_a_gpu_is_watched_as_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in stand_ins("cupy").items():
        monkeypatch.setitem(sys.modules, name, module)
    f = cd.simplified(PAIR).compile("cupy", check="states")
    assert _told(f, np.array([0.0, 0.0, 0.0, 10.0])) == "the state b becomes nan in step 3 of its loop"


@pytest.mark.parametrize("check", ["sample", "full", False])
def test_code_that_is_not_asked_looks_at_no_state(check: object) -> None:
    d = cd.grad(GROWTH)
    assert "watch" in d.compile(check="states").source
    plain = d.compile(check=check).source  # type: ignore[call-overload]  # one of three
    assert plain == d.compile().source
    assert "watch" not in plain


@pytest.mark.parametrize("check", ["sample", "full", False])
def test_code_for_jax_that_is_not_asked_looks_at_no_state(check: object) -> None:
    pytest.importorskip("jax")
    assert "watch" not in cd.grad(GROWTH).compile("jax", check=check).source  # type: ignore[call-overload]  # one of three


def test_what_numpy_is_asked_to_raise_is_its_own_error() -> None:
    f = cd.simplified(GROWTH).compile(check="states")
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        f(np.full(20, 1.0))


def test_all_entries_are_held_against_declared_symmetries() -> None:
    f = cd.simplified("(A::Sym) -> (x::RV) -> A * x").compile(check="states")
    A = np.eye(100)
    A[99, 3] = 1
    with pytest.raises(ArrayError, match="declared symmetry"):
        f(A, np.ones(100))


def test_other_words_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r'check is .loops.*\n.*"states"'):
        cd.grad(GROWTH).compile(check="loops")  # type: ignore[call-overload]  # no such check
