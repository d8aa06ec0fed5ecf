"""What has a name in a result, and is the same in all steps of a loop, has this name in its steps."""

from __future__ import annotations

import pytest

import combdiff as cd
from combdiff.terms.laws.opening import closed
from combdiff.terms.terms import App, Lam, call, fresh, mul
from combdiff.terms.types import REAL, Map

PROGRAMS = {
    "implicit Euler": (
        "(u0::RV{n}, L::RM{n, n}, dt::R, T::Int) -> (k::RV{n}) -> begin A = Diagonal(k) * L; "
        "u = iterate((u, t) -> (I + dt * A) \\ u, u0, T); norm(u)^2 / 2 end",
        1,
    ),
    "a matrix with a name": (
        "(u0::RV{n}, L::RM{n, n}, T::Int) -> (k::RV{n}) -> begin "
        "u = iterate((u, t) -> (I + Diagonal(k) * L) \\ u, u0, T); norm(u)^2 / 2 end",
        1,
    ),
    "a matrix for each step": (
        "(u0::RV{n}, L::RM{n, n}) -> (k::RM{T, n}) -> begin "
        "u = iterate((u, t) -> ((i, j) -> delta(i, j, 1 + k(t, i)^2) + L(i, j)) \\ u, u0, T); norm(u)^2 / 2 end",
        2,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_matrix_is_written_once(name: str) -> None:
    program, most = PROGRAMS[name]
    d = cd.grad(program)
    assert str(d).count("delta(") <= most, str(d)
    assert d.check()


def test_a_definition_is_found_where_its_value_stands_and_nowhere_else() -> None:
    x, y, z, i = (fresh(name, REAL) for name in "xyzi")
    assert closed(call("sin", x), {z: call("sin", x)}) == z
    assert closed(call("sin", y), {z: call("sin", x)}) == call("sin", y)
    f = fresh("f", Map((REAL,), REAL))
    value = Lam((i,), mul(call("sin", i), call("cos", i)))
    assert closed(mul(call("sin", x), call("cos", x)), {f: value}) == App(f, (x,))
    assert closed(mul(call("sin", x), call("cos", y)), {f: value}) == mul(call("sin", x), call("cos", y))
