"""Loops: value, gradient, tangent and Hessian product against loops of Python, differences, JAX and all libraries."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.calculus.reverse import gradient_of
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import Lam, Loop, subterms
from tests.emit.array_libraries import Numbers, library
from tests.promises import assert_holds, assert_libraries_agree, differences

__all__ = ["library"]

SIZES = (1, 2, 3, 5, 7)
Objective = Callable[..., Any]


def last(step: Callable[[Any, int], Any], state: Any, count: int) -> Any:
    for t in range(count):
        state = step(state, t)
    return state


def recurrent(W: Any, x: Any) -> Any:
    h = last(lambda h, t: np.tanh(W @ h + x[t]), np.zeros(len(W)), len(x))
    return h @ h


def rows(x: Any, a: Any) -> Any:
    return (last(lambda s, t: s * a + x[t], x[0] + 0 * a, len(x)) ** 2).sum()


def nested(x: Any, y: Any) -> Any:
    return last(lambda s, t: last(lambda u, r: u * y[r] + s * x[t], s, len(y)), 1.0, len(x))


def differences_of_states(x: Any) -> Any:
    states = [x[0]]
    for each in x:
        states.append(np.sin(states[-1]) + each)
    return sum((b - a) ** 2 for a, b in pairwise(states)) + states[-1] + sum(states)


def middle(x: Any, a: Any) -> Any:
    def step(s: Any, t: int) -> Any:
        moved = s.copy()
        moved[t] = s[t] ** 2 + a * x[t]
        return moved

    return last(step, x, len(x)).sum()


def root(a: Any) -> Any:
    x = a
    for _ in range(30):
        if not abs(x * x - a) > 1e-6:
            break
        x = x - (x * x - a) / (2 * x)
    return x**3


PROGRAMS: dict[str, tuple[str, Objective, tuple[str, ...]]] = {
    "of a number": (
        "(x::RV{n}) -> iterate((s, t) -> s^2 / 3 + x(t), 0, n)",
        lambda x: last(lambda s, t: s * s / 3 + x[t], 0.0, len(x)),
        ("n",),
    ),
    "recurrent network": (
        "(W::RM{m, m}, x::RV{n}) -> begin\n"
        "  h = iterate((h, t) -> i -> tanh(sum(j, W(i, j) * h(j)) + x(t)), i -> 0, n)\n"
        "  sum(i, h(i)^2)\nend",
        recurrent,
        ("mm", "n"),
    ),
    "of two numbers": (
        "(x::RV{n}) -> begin (a, b) = iterate(((a, b), t) -> (b, a + b * x(t)), (x(0), 1), n); a * b end",
        lambda x: np.prod(last(lambda s, t: np.array([s[1], s[0] + s[1] * x[t]]), np.array([x[0], 1.0]), len(x))),
        ("n",),
    ),
    "for each index": (
        "(x::RV{n}, a::RV{m}) -> sum(i, iterate((s, t) -> s * a(i) + x(t), x(0), n)^2)",
        rows,
        ("n", "m"),
    ),
    "in a loop": (
        "(x::RV{n}, y::RV{m}) -> iterate((s, t) -> iterate((u, r) -> u * y(r) + s * x(t), s, m), 1, n)",
        nested,
        ("n", "m"),
    ),
    "all states": (
        "(x::RV{n}) -> begin\n"
        "  h = scan((s, t) -> sin(s) + x(t), x(0), n)\n"
        "  sum(t::N{n}, (h(t + 1) - h(t))^2) + h(n) + sum(t, h(t))\nend",
        differences_of_states,
        ("n",),
    ),
    "at one entry a step": (
        "(x::RV{n}, a::R) -> sum(i, iterate((s, t) -> i -> where(i == t, s(t)^2 + a * x(t), s(i)), x, n)(i))",
        middle,
        ("n", ""),
    ),
    "with definitions": (
        "(x::RV{n}) -> iterate((s, t) -> begin u = s * x(t); v = exp(-u^2); u * v / 2 + v end, 0.1, n)",
        lambda x: last(
            lambda s, t: s * x[t] * np.exp(-((s * x[t]) ** 2)) / 2 + np.exp(-((s * x[t]) ** 2)), 0.1, len(x)
        ),
        ("n",),
    ),
    "of conditions": (
        "(x::RV{n}) -> iterate((s, t) -> where(t < 2, s^2 / 2 + x(t), where(s < 0, s * x(0), s - x(t))), 0.3, n)",
        lambda x: last(lambda s, t: s * s / 2 + x[t] if t < 2 else s * x[0] if s < 0 else s - x[t], 0.3, len(x)),
        ("n",),
    ),
    "of numbers of steps": (
        "(x::RV{n}, a::R) -> iterate((s, t) -> s * a + t * x(t)^2, 1, n)",
        lambda x, a: last(lambda s, t: s * a + t * x[t] ** 2, 1.0, len(x)),
        ("n", ""),
    ),
    "that stops early": (
        "(a::R) -> iterate((x, t) -> x - (x^2 - a) / (2 * x), a, 30, x -> 1e-6 < abs(x^2 - a))^3",
        root,
        ("",),
    ),
    "complex": (
        "(x::CV{n}, a::C) -> real(iterate((s, t) -> s^2 * a / 8 + x(t)' + im / 2, 0, n))",
        lambda x, a: last(lambda s, t: s * s * a / 8 + x[t].conj() + 0.5j, 0, len(x)).real,
        ("n*", "*"),
    ),
    "of a matrix": (
        "(A::RM{m, m}, x::RV{m}) -> begin\n"
        "  v = iterate((v, t) -> begin w = A * v; w / norm(w) end, x, 4)\n  v' * A * v\nend",
        lambda A, x: (lambda v: v @ A @ v)(last(lambda v, t: A @ v / np.linalg.norm(A @ v), x, 4)),
        ("mm", "m"),
    ),
}


def data(shapes: tuple[str, ...], n: int, m: int) -> list[Any]:
    rng = np.random.default_rng(n + 10 * m)
    found = []
    for shape in shapes:
        axes = tuple({"n": n, "m": m}[letter] for letter in shape.strip("*"))
        value = rng.uniform(0.4, 1.2, axes) * (rng.choice([-1, 1], axes) if axes else 1)
        found.append(value + 1j * rng.normal(size=axes) / 2 if "*" in shape else value)
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_gradient_are_those_of_a_loop_of_python(name: str) -> None:
    text, objective, shapes = PROGRAMS[name]
    f = cd.grad(text).compile(value=True)
    for n in SIZES:
        given = data(shapes, n, 3 if n == 2 else 2)
        value, *slopes = f(*given)
        np.testing.assert_allclose(value, objective(*given), rtol=1e-12, atol=1e-13)
        for found, expected in zip(slopes, differences(objective, given), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_raw_adjoint_is_right_before_anything_is_simplified(name: str) -> None:
    text, objective, shapes = PROGRAMS[name]
    f = infer(parse(text))
    assert isinstance(f, Lam)
    raw = gradient_of(f)
    given = data(shapes, 3, 2)
    found = evaluate(raw.body, dict(zip(raw.params, given, strict=True)))
    for a, b in zip(found if isinstance(found, tuple) else (found,), differences(objective, given), strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6, atol=1e-7)


SECOND = ("of a number", "all states", "in a loop", "that stops early", "complex")
"""Programs of which all modes are tried: a tangent or a Hessian product takes seconds to check."""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hvp", "jvp"])
@pytest.mark.parametrize("name", SECOND)
def test_every_mode_keeps_its_promises(name: str, mode: str) -> None:
    assert_holds(getattr(cd, mode)(PROGRAMS[name][0]), alike=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ("recurrent network", "of two numbers", "of conditions", *SECOND))
def test_libraries_compute_the_same(name: str, library: Numbers) -> None:
    text, _, shapes = PROGRAMS[name]
    if library.name == "dask":
        with pytest.raises(cd.CombDiffError, match="in a loop"):
            cd.grad(text).source(backend="dask")
        return
    assert_libraries_agree(cd.grad(text), library.name, data(shapes, 3, 2))


def test_the_time_to_derive_does_not_depend_on_the_number_of_steps() -> None:
    texts = [cd.grad(f"(x::R) -> iterate((s, t) -> sin(s) * x, x, {n})") for n in (10, 100_000)]
    counts = [sum(1 for _ in subterms(d.term)) for d in texts]
    assert counts[0] == counts[1]


@pytest.mark.slow
def test_one_loop_goes_forwards_and_one_backwards() -> None:
    d = cd.grad(PROGRAMS["recurrent network"][0])
    loops = [u for u in subterms(d.term) if isinstance(u, Loop)]
    assert {loop.backward for loop in loops} == {False, True}
    code = d.source(value=True)
    assert code.count("for ") == 2 and code.count("np.tanh(") == 2


@pytest.mark.slow
def test_what_no_state_reaches_is_computed_before_the_loop() -> None:
    text = "(U::RM{m, k}, x::RM{n, k}, A::RM{m, m}) -> (W::RM{m, m}) -> sum(i, iterate((h, t) -> i ->"
    text += " tanh(sum(j, W(i, j) * h(j)) + sum(k, U(i, k) * x(t, k)) + inv(A)(i, i)), i -> 0, n)(i))"
    inside = cd.grad(text).source(value=True).partition("for ")[2].partition("\n    t")[0].splitlines()[1:3]
    assert not any("inv(" in line or "U" in line for line in inside)


def test_a_state_that_is_always_zero_has_no_adjoint() -> None:
    d = cd.grad("(a::R, b::R) -> begin (x, y) = iterate(((x, y), t) -> (x * a, y + b), (1, 0), 5); x end")
    assert str(cd.grad("(a::R, b::R) -> iterate((x, t) -> x * a, 1, 5)")).count("bar") >= 1
    assert "y_bar" not in str(d)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "states"),
    [
        (
            "(x::RV{n}) -> begin; (a, b) = iterate(((a, b), t) -> (tanh(a * x(t)), b + a^2), (1, 0), n)\n"
            "a + sin(b); end",
            ["a_bar"],
        ),
        (
            "(x::RV{n}) -> begin; (a, b) = iterate(((a, b), t) -> (b, b + x(t)^2), (1, 0), n)\na * b; end",
            ["a_bar", "b_bar"],
        ),
        ("(x::RV{n}) -> begin; b = iterate((b, t) -> b + x(t)^2, 1, n)\nb^2; end", []),
        (
            "(x::RM{n, m}) -> begin; (a, b) = iterate(((a, b), t) -> (a * x(t, 0), i -> b(i) + a * x(t, i)),\n"
            "  (1, i -> x(0, i)), n)\na * sum(i, b(i)^3); end",
            ["a_bar"],
        ),
    ],
)
def test_a_state_that_only_adds_up_has_one_cotangent(program: str, states: list[str]) -> None:
    d = cd.grad(program)
    assert [name for name in ("a_bar", "b_bar") if f"{name}, " in str(d) or f"{name})," in str(d)] == states
    assert d.check()
    assert cd.hvp(program).check()


def test_a_number_of_steps_is_given_at_the_call() -> None:
    f = cd.grad("(T::Int) -> (x::R) -> iterate((s, t) -> s * x, 1, T)").compile(value=True)
    assert f(2.0, T=5) == (32.0, 80.0)
    assert f(2.0, T=0) == (1.0, 0.0)
    assert f(2.0, T=1) == (2.0, 1.0)


@pytest.mark.slow
def test_jax_runs_one_scan_under_jit() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    text, objective, shapes = PROGRAMS["recurrent network"]
    given = data(shapes, 5, 3)
    f = jax.jit(cd.grad(text).compile("jax", value=True))
    np.testing.assert_allclose(f(*given)[0], objective(*given), rtol=1e-12)
    sizes = [str(jax.make_jaxpr(f)(*data(shapes, n, 3))).count("\n") for n in (5, 50)]
    assert sizes[0] == sizes[1]
