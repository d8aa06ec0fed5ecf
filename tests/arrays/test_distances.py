"""Squared distances multiplied out: the same values with products of matrices, and no array of all differences."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays.verify import verify
from combdiff.errors import UnsupportedError

GRAVITY = """(m::RV, e::R) -> (x::RM) ->
  sum((i, j), m(i) * m(j) / sqrt(sum(d, (x(i, d) - x(j, d))^2) + e))"""
PROGRAMS = {
    "gravity": GRAVITY,
    "two sets of points": "(y::RM) -> (x::RM) -> sum((i, j), exp(-sum(c, (x(i, c) - y(j, c))^2) / 2))",
    "a length for each direction": """(y::RM, w::RV) -> (x::RM) ->
        sum((i, j), tanh(sum(c, w(c) * (x(i, c) - y(j, c))^2)))""",
    "three points": "(y::RM) -> (x::RM) -> sum((i, j), sin(sum(c, (x(i, c) + x(j, c) - 2 * y(i, c))^2)))",
    "complex points": "(y::CM) -> (x::CM) -> sum((i, j), exp(-sum(c, abs2(x(i, c) - y(j, c)))))",
    "products of differences": """(y::CM) -> (x::CM) ->
        sum((i, j), abs2(sum(c, (x(i, c) - y(j, c))' * (x(j, c) - y(i, c)))))""",
    "angles": "(m::RV) -> (x::RM) -> sum((i, j, c), m(i) * m(j) * cos(3 * x(i, c) - x(j, c)))",
    "three angles": "(m::RV, e::R) -> (x::RM) -> sum((i, j, k), m(k) * sin(e * (x(i, 0) - x(j, 0) - x(k, 0))))",
    "waves": "(y::RM, m::RV) -> (x::RM) -> sum((a, i, j), m(i) * m(j) * cos(sum(c, y(a, c) * (x(i, c) - x(j, c)))))",
    "complex angles": "(x::CM) -> real(sum((i, j, c), sin(x(i, c) + x(j, c)') * x(j, c)))",
    "springs under a condition": """(x::RM) -> sum((i, j), indicator(i + 1, j,
        sqrt(sum(c, (x(i, c) - x(j, c))^2) + 1)))""",
}


def arrays(program: str, n: int, r: int) -> dict[str, object]:
    rng = np.random.default_rng(n + r)
    over_complex = "CM" in program
    found: dict[str, object] = {}
    for name, shape in (("m", (n,)), ("w", (r,)), ("y", (n, r)), ("x", (n, r)), ("k", (n, r))):
        found[name] = rng.normal(size=shape) + (1j * rng.normal(size=shape) if over_complex else 0)
    return found | {"e": 0.5}


@pytest.mark.parametrize("coupling", ["K(i, j)", "1"])
def test_no_table_of_angles_is_made(coupling: str) -> None:
    d = cd.grad(f"(K::Sym{{n}}, w::RV{{n}}) -> (t::RV{{n}}) -> sum((i, j), {coupling} * cos(t(i) - t(j))) + sum(w)")
    code = d.source(value=True, distances="expanded")
    assert code.count("np.cos(t)") == code.count("np.sin(t)") == 1 and "[:, None]" not in code


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["grad", "hvp"])
@pytest.mark.parametrize("n", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3, 7))])
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_multiplied_out_has_the_same_value(program: str, n: int, mode: str) -> None:
    d = getattr(cd, mode)(PROGRAMS[program])
    given = arrays(PROGRAMS[program], n, 3)
    f, g = d.compile(), d.compile(distances="expanded")
    # the direction of a Hessian product is called after what it is a direction of
    values = [given.get(a.name, given["k"]) for a in f.arguments]
    for one, other in zip(np.atleast_1d(f(*values)), np.atleast_1d(g(*values)), strict=True):
        assert np.allclose(one, other, rtol=1e-8, atol=1e-8)
    verify(d.plan(distances="expanded"))


@pytest.mark.sampled
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_array_of_all_differences_is_made(program: str) -> None:
    d = cd.grad(PROGRAMS[program])
    shapes = {a.name: (400, 3) for a in d.compile().arguments if a.name in "xy"}
    shown = [
        max(map(len, (s.domains for s in d.plan(distances=how, **shapes).steps))) for how in ("differences", "expanded")
    ]
    # sums with cosines of differences are made of those of each angle in any case
    assert shown == [2 if program in ("angles", "three angles", "waves") else 3, 2]


@pytest.mark.slow
def test_gravity_is_what_an_expert_writes() -> None:
    source = cd.grad(GRAVITY).source(value=True, distances="expanded", x=(500, 3))
    assert "x @ x.T" in source and "[:, :, None]" not in source
    assert "[:, :, None]" in cd.grad(GRAVITY).source(value=True, x=(500, 3))


@pytest.mark.slow
def test_the_hessian_product_next_to_a_gradient_is_multiplied_out_too() -> None:
    d = cd.grad(PROGRAMS["two sets of points"])
    x, y, k = (np.random.default_rng(n).normal(size=(6, 3)) for n in range(3))
    f, g = (d.compile(hvp=True, distances=how) for how in ("differences", "expanded"))
    for copied in (g, copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
        (one, product), (other, again) = f(y, x), copied(y, x)
        assert np.allclose(one, other) and np.allclose(product(k), again(k))
    assert "y @" in g.source or "@ y.T" in g.source


@pytest.mark.slow
def test_a_sum_with_an_array_of_its_own_size_is_left_as_it_is() -> None:
    text = "(A::RM, b::RV) -> (x::RV) -> sum(i, tanh(sum(j, (A(i, j) + b(j)) * x(j))))"
    assert cd.grad(text).source(distances="expanded") == cd.grad(text).source()


def test_a_way_that_there_is_not_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="distances is 'fast'"):
        cd.grad(GRAVITY).compile(distances="fast")  # type: ignore[arg-type]
