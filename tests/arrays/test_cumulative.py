"""Sums up to an index: they are cumulative sums in code, and have the values that the program has."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import Lam
from tests.emit.array_libraries import Numbers

SUMS = {
    "up to": "(x::RV) -> sum(i, sin(sum(j, indicator(j, i, x(j)))) * x(i))",
    "from one on": "(x::RV) -> sum(i, sin(sum(j, indicator(i, j, x(j)))) * x(i))",
    "before": "(x::RV) -> sum(i, sin(sum(j, indicator(j + 1, i, x(j)))) * x(i))",
    "far behind": "(x::RV) -> sum(i, sin(sum(j, indicator(i + 3, j, x(j)))) * x(i))",
    "pairs": "(x::RV) -> sum((i, j), indicator(i + 1, j, sin(x(i)) * x(j)))",
    "three in a row": "(x::RV) -> sum((i, j, k), indicator(i, j, indicator(j + 1, k, x(i) * x(j) * x(k)^2)))",
    "two conditions of one index": "(x::RV) -> "
    "sum((i, j, k), indicator(i, j, indicator(i + 2, k, x(i) * x(j) * x(k))))",
    "a corner": "(x::RM{n, n}) -> sum((i, j), x(j, i) * cos(sum((a, b), indicator(a, i, indicator(b, j, x(a, b))))))",
    "along one axis": "(x::RM) -> sum((i, a), x(a, i) * cos(sum(j, indicator(j, i, x(a, j)^2))))",
    "with an index that stays": "(x::RM) -> sum((i, j, a), indicator(j, i, sin(x(i, a)) * x(j, a)))",
    "between bounds": "@domain Z begin base = I; lower = -2; upper = 4 end\n"
    "(x::(Z) -> R) -> sum((i::Z, j::Z), indicator(i + 1, j, x(i) * sin(x(j))))",
    "between other bounds": "@domain Z begin base = I; lower = -1; upper = 4 end\n"
    "@domain Y begin base = I; lower = 1; upper = 3 end\n"
    "(x::(Z) -> R, y::(Y) -> R) -> "
    "sum((i::Z, j::Y), indicator(i + 1, j, x(i) * sin(y(j))) + indicator(j, i, x(i) * y(j)))",
    "periodic": "@domain Z begin base = I; periodic = true end\n"
    "(x::(Z) -> R) -> sum((i::Z, j::Z), indicator(i + 1, j, x(i) * sin(x(j))))",
    "symmetric": "@domain Z begin symmetric = true end\n"
    "(x::(Z) -> R) -> sum((i::Z, j::Z), indicator(i, j, x(i) * sin(x(j))))",
    "complex": "(x::CV) -> real(sum((i, j), indicator(i + 1, j, x(i)' * exp(x(j)))))",
    "a number of two indices": "(x::RV) -> sum((i, j), indicator(i, j, sin(x(i) * x(j))))",
    "two conditions of both indices": "(x::RV) -> sum((i, j), indicator(i, j, indicator(x(i), x(j), x(i)^2)))",
    "ahead": "(x::RV) -> sum((i, j), indicator(j, i + 1, sin(x(i)) * x(j)))",
}
TWO_SIZES = {
    "up to": "(x::RV, y::RV) -> sum(i, (sum(j, indicator(j, i, sin(x(j)))) - y(i))^2)",
    "from one on": "(x::RV, y::RV) -> sum(i, (sum(j, indicator(i, j, sin(x(j)))) - y(i))^2)",
    "before": "(x::RV, y::RV) -> sum((i, j), indicator(j + 2, i, x(j) * sin(y(i))))",
    "two of three in a row": "(x::RV, y::RV) -> "
    "sum((i, j, k), indicator(i, j, indicator(j + 1, k, x(i) * y(j) * x(k))))",
}


def agrees(text: str, shapes: list[tuple[int, ...]]) -> None:
    """Value, gradient and Hessian product of the code against the oracle and its differences."""
    program = infer(parse(text))
    assert isinstance(program, Lam)
    rng = np.random.default_rng(sum(map(sum, shapes)))
    complex_too = "CV" in text
    at = [rng.normal(size=s) + 1j * complex_too * rng.normal(size=s) for s in shapes]
    along = [rng.normal(size=s) + 1j * complex_too * rng.normal(size=s) for s in shapes]
    at, along = ([a if complex_too else a.real for a in arrays] for arrays in (at, along))
    h = 1e-3

    def value_at(step: float) -> float:
        points = [a + step * h * d for a, d in zip(at, along, strict=True)]
        return float(np.real(evaluate(program.body, dict(zip(program.params, points, strict=True)))))

    value, *gradients, hvp = cd.grad(text).compile(value=True, hvp=True)(*at)
    np.testing.assert_allclose(value, value_at(0), rtol=1e-12, atol=1e-12)
    slope = (8 * (value_at(1) - value_at(-1)) - (value_at(2) - value_at(-2))) / (12 * h)
    found = sum(np.vdot(g, d).real for g, d in zip(gradients, along, strict=True))
    np.testing.assert_allclose(found, slope, atol=1e-8 * max(1, abs(value)), rtol=1e-8)
    curvature = (16 * (value_at(1) + value_at(-1)) - (value_at(2) + value_at(-2)) - 30 * value_at(0)) / (12 * h * h)
    products = hvp(*along) if len(along) > 1 else (hvp(*along),)
    found = sum(np.vdot(p, d).real for p, d in zip(products, along, strict=True))
    np.testing.assert_allclose(found, curvature, atol=1e-6 * max(1, abs(value)), rtol=1e-6)


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("name", SUMS)
def test_a_sum_up_to_an_index_is_what_the_program_means(name: str, n: int) -> None:
    text = SUMS[name]
    shape = {"RM{n, n}": (n, n), "RM)": (n, 3)}
    found = next((s for word, s in shape.items() if word in text), (n,))
    if "lower" in text:
        agrees(text, [(6,), (3,)] if "Y" in text else [(7,)])
    elif "symmetric" not in text or n % 2:
        agrees(text, [found])


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1, 1), (1, 4), (4, 1), (3, 7), (7, 3), (5, 5)])
@pytest.mark.parametrize("name", TWO_SIZES)
def test_the_indices_may_be_of_different_sizes(name: str, sizes: tuple[int, int]) -> None:
    agrees(TWO_SIZES[name], [(n,) for n in sizes])


MASKED = (
    "periodic",
    "symmetric",
    "a number of two indices",
    "two conditions of both indices",
    "ahead",
    "between other bounds",
)


@pytest.mark.sampled
@pytest.mark.parametrize("name", sorted(SUMS.keys() - MASKED))
def test_no_mask_over_two_indices_is_made(name: str) -> None:
    text = SUMS[name]
    d = cd.grad(text)
    shapes = {a.name: (40, 40) if "RM" in text else (40,) for a in d.compile().arguments}
    plan = d.plan(value=True, **({} if "lower" in text else shapes))
    assert any(isinstance(step.op, ops.CumulativeSum) for step in plan.steps)
    assert max(step.rank for step in plan.steps) == ("RM" in text) + 1


COX = """(X::RM, c::RV) -> (w::RV) -> begin
  s = n -> sum(d, X(n, d) * w(d))
  sum(n, c(n) * (s(n) - log(sum(m, indicator(n, m, exp(s(m)))))))
end"""


@pytest.mark.slow
def test_a_partial_likelihood_reads_as_by_hand() -> None:
    code = cd.grad(COX).source(value=True)
    assert "t1 = cumulative_logsumexp(s[::-1], 0)[::-1]\n" in code
    assert "return c @ (s - t1), (c - cumulative_exponentials(c, -t1, s, 0)) @ X" in code


@pytest.mark.slow
def test_few_columns_against_many_indices_decide() -> None:
    text = """(q::RM, k::RM, v::RM) -> sum((t, d), sum((s, a), indicator(s, t, q(t, a) * k(s, a) * v(s, d)))^2)"""
    d = cd.grad(text)
    long, short = (d.plan(q=(n, a), k=(n, a), v=(n, a)) for n, a in ((4000, 4), (40, 20)))
    assert max(long.entries(s) for s in long.steps) < 4000 * 4 * 4 * 2
    assert not any(isinstance(s.op, ops.CumulativeSum) for s in short.steps)


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_a_factor_of_no_index_stays_under_the_condition_that_it_stands_under(n: int) -> None:
    running = "sum(j, j <= i, where(y(j) <= 0, s * x(j) / sum(k, 0 < k, y(k))))"
    f = cd.grad(f"(y::RV) -> (x::RV, s::R) -> sum(i, x(i) * {running})")
    y, x = np.ones(n), np.linspace(1, 2, n)
    with np.errstate(all="raise"):  # for n = 1 the sum is that of nothing, and the condition holds nowhere
        value, of_x, of_s = f.compile(value=True)(y, x, 2.0)
    assert value == 0 and of_s == 0 and np.array_equal(of_x, np.zeros(n))


@pytest.mark.parametrize("missing", [np.nan, np.inf])
def test_what_is_beyond_an_index_may_be_no_number(missing: float) -> None:
    f = cd.grad("(y::RV, m::RV) -> (x::RV) -> sum(i, m(i) * sum(j, indicator(j, i, y(j))) * x(i))").compile(value=True)
    y, m, x = np.array([1.0, 2.0, 5.0, missing]), np.array([1.0, 1.0, 1.0, 0.0]), np.array([1.0, 2.0, 3.0, 1.0])
    with np.errstate(invalid="ignore"):
        _, gradient = f(y, m, x)
    assert np.array_equal(gradient[:3], [1.0, 3.0, 8.0])
    before = cd.grad("(y::RV) -> (x::RV) -> sum((i, j), indicator(j + 1, i, x(j) * y(i)))").compile(value=True)
    value, gradient = before(np.array([missing, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    assert value == 8 and np.array_equal(gradient, [5.0, 3.0, 0.0])


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["cupy", "jax", "torch", "dask"])
def test_every_library_has_cumulative_sums(backend: str) -> None:
    code = cd.grad(SUMS["along one axis"]).source(backend, value=True)
    assert ".cumsum(axis=" in code and "where(" not in code.split('"""')[2]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch", "dask"])
def test_the_libraries_agree(backend: str) -> None:
    library = pytest.importorskip({"dask": "dask.array"}.get(backend, backend))
    if backend == "jax":
        library.config.update("jax_enable_x64", True)
    x = np.random.default_rng(3).normal(size=6)
    given = {"torch": lambda: library.tensor(x), "dask": lambda: library.from_array(x, chunks=4)}.get(
        backend, lambda: x
    )()
    for name in ("up to", "from one on", "far behind", "three in a row"):
        d = cd.grad(SUMS[name])
        for found, expected in zip(d.compile(backend, value=True)(given), d.compile(value=True)(x), strict=True):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


SHARES = {
    "from one on": "(x::RV{n}) -> sum(i, x(i) - logsumexp(j, j >= i, x(j)))",
    "up to": "(x::RV{n}) -> sum(i, sin(x(i) * logsumexp(j, j <= i, x(j))))",
    "as a logarithm": "(x::RV{n}) -> sum(i, cos(x(i)) * log(sum(j, j >= i, exp(x(j)))))",
    "weights of both signs": "(w::RV{n}, x::RV{n}) -> sum(i, w(i) * logsumexp(j, j <= i, x(j)))",
    "weights in the sum": "(x::RV{n}, w::RV{n}) -> sum(i, x(i) * logsumexp(j, w(j)^2 * indicator(j, i, 1), x(j)))",
    "weights of an exponential": "(x::RV{n}, w::RV{n}) -> sum(i, x(i) * log(sum(j, j <= i, (1 + w(j)^2) * exp(x(j)))))",
    "later ones": "(x::RV{n}) -> sum(i, i + 1 < n, x(i) * logsumexp(j, j > i, x(j)))",
    "a batch": "(x::RM{n, n}) -> sum((a, i), x(a, i) * logsumexp(j, j <= i, x(a, j)))",
    "a sum over two": "(x::RM{n, n}) -> sum(i::N{n}, sin(logsumexp((a, j), j <= i, x(a, j))))",
    "shares themselves": "(x::RV{n}) -> "
    "sum(i::N{n}, sum(j, j <= i, sin(x(j)) * exp(x(j))) / sum(j, j <= i, exp(x(j))))",
    "two conditions": "(x::RV{n}) -> sum(i, x(i) * logsumexp(j, j <= i and x(j) < 1/2 + x(0)^2, x(j)^2))",
}
"""Sums of exponentials up to an index, or from one on."""


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("name", SHARES)
def test_a_sum_of_exponentials_up_to_an_index_is_what_the_program_means(name: str, n: int) -> None:
    text = SHARES[name]
    agrees(text, [(n, n)] if "RM" in text else [(n,)] * text.count("RV"))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1, 1), (1, 4), (4, 1), (3, 7), (7, 3), (5, 5)])
@pytest.mark.parametrize("relation", ["<=", ">=", "+ 1 >="])
def test_exponentials_and_their_bounds_may_be_of_different_sizes(relation: str, sizes: tuple[int, int]) -> None:
    agrees(
        f"(x::RV{{n}}, y::RV{{m}}) -> sum(i, sin(y(i)) * log(1 + sum(j, j {relation} i, exp(x(j)))))"
        f" + sum(i, y(i) * log(exp(y(i)) + sum(j, j {relation} i, exp(x(j)))))",
        [(n,) for n in sizes],
    )


@pytest.mark.parametrize(
    "name", ["from one on", "as a logarithm", "weights of both signs", "weights of an exponential", "a batch"]
)
def test_no_table_of_exponentials_is_made(name: str) -> None:
    d = cd.grad(SHARES[name])
    shape = (40, 40) if "RM" in SHARES[name] else (40,)
    plan = d.plan(value=True, **{a.name: shape for a in d.compile().arguments})
    assert max(step.rank for step in plan.steps) == len(shape)


@pytest.mark.parametrize(
    "backend", ["numpy", *(pytest.param(b, marks=pytest.mark.slow) for b in ("jax", "torch", "dask"))]
)
def test_scores_of_hundreds_neither_overflow_nor_vanish(backend: str) -> None:
    """The sum from i on is that of its largest exponential, whatever the others are."""
    numbers = Numbers(backend)
    x, w = np.array([800.0, -800, 700, 0, 3, -745, -1000]), np.array([1.0, -2, 0.5, 0, 1, -1, 3])
    f = cd.grad("(w::RV{n}) -> (x::RV{n}) -> sum(i, w(i) * logsumexp(j, j >= i, x(j)))").compile(backend, value=True)
    value, gradient = (numbers.back(a) for a in f(numbers.to(w), numbers.to(x)))
    sums = np.logaddexp.accumulate(x[::-1])[::-1]
    shares = np.exp(np.where(np.arange(7) >= np.arange(7)[:, None], x - sums[:, None], -np.inf))
    np.testing.assert_allclose(value, w @ sums, rtol=1e-13)
    np.testing.assert_allclose(gradient, w @ shares, rtol=1e-12, atol=1e-300)


@pytest.mark.slow
def test_the_second_derivative_of_a_partial_likelihood_takes_cumulative_sums() -> None:
    d = cd.hvp(COX)
    last = "t3 = cumulative_exponentials(c * t2, t1, u1, 0) - t * cumulative_exponentials(c, t1, u1, 0)"
    assert last in d.source() and "return t3 @ X" in d.source()
    plan = d.plan(**{"X": (50, 3), "c": (50,), "w": (3,), "k": (3,)})
    assert max(step.rank for step in plan.steps) == 2 and all(
        step.domains.count(step.domains[0]) < 2 for step in plan.steps if step.rank == 2
    )


LISTS = """(o::(N{q}, N{k}) -> N{n}, X::RM{n, p}) -> (w::RV{p}) -> begin
  s = i -> sum(j, X(i, j) * w(j))
  sum((a, b), s(o(a, b)) - log(sum(c, b <= c, exp(s(o(a, c))))))
end"""


@pytest.mark.slow
def test_a_loss_of_many_short_lists_takes_cumulative_sums_and_no_masks() -> None:
    rng = np.random.default_rng(0)
    o, X, w = np.argsort(rng.random((300, 50)), 1)[:, :6].copy(), rng.normal(size=(50, 4)), rng.normal(size=4)
    d = cd.grad(LISTS)
    plan = d.plan(o=o.shape, X=X.shape, w=w.shape, value=True)
    assert not any(isinstance(s.op, ops.Where) for s in plan.steps)
    assert sum(isinstance(s.op, ops.Cumulative) for s in plan.steps) == 2
    s = (X @ w)[o]
    sums = np.cumsum(np.exp(s)[:, ::-1], 1)[:, ::-1]
    weights = 1 - np.exp(s) * np.cumsum(1 / sums, 1)
    value, gradient = d.compile(value=True)(o, X, w)
    assert np.isclose(value, (s - np.log(sums)).sum(), rtol=1e-12)
    assert np.allclose(gradient, np.einsum("qk,qkp->p", weights, X[o]), rtol=1e-10)


@pytest.mark.slow
def test_a_cumulative_sum_is_scattered_as_it_is() -> None:
    text = """(o::(N{q}, N{k}) -> N{n}, y::RM{q, k}) -> (s::RV{n}) ->
      sum((a, b), -y(a, b) * log(sum(c, b <= c, exp(s(o(a, c))))))"""
    d = cd.grad(text)
    code = d.source().partition("def gradient")[2]
    assert "cumulative_exponentials(y, -t2, t1, 1)" in code or "cumulative_exponentials(y, " in code
    assert "np.where" not in code
    assert d.check()
