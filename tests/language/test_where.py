"""Conditions, reductions with conditions, and sizes as numbers: meaning, derivatives, text, code, messages."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import program_text
from combdiff.meaning.evaluate import evaluate
from tests.promises import gradient_by
from tests.reading_back import assert_reads_back

Oracle = Callable[[Any], float]

OF_VECTORS: dict[str, Oracle] = {
    "sum((i, j), i < j, x(i) * x(j)^2)": lambda x: sum(a * b * b for m, a in enumerate(x) for b in x[m + 1 :]),
    "sum((i, j), i >= j, x(i) * x(j)^2)": lambda x: sum(a * b * b for m, a in enumerate(x) for b in x[: m + 1]),
    "sum((i, j), i != j, x(i) * x(j)^2)": lambda x: sum(
        a * b * b for m, a in enumerate(x) for k, b in enumerate(x) if m != k
    ),
    "sum((i, j), where(abs(i - j) <= 1 and not i == j, x(i)^2 * x(j)))": lambda x: sum(
        a * a * b for m, a in enumerate(x) for k, b in enumerate(x) if abs(m - k) == 1
    ),
    "sum(i, where(0 < x(i) < 1 or x(i) == 2, log(abs(x(i))), x(i)^2))": lambda x: sum(
        np.log(abs(a)) if 0 < a < 1 or a == 2 else a * a for a in x
    ),
    "sum(i, where(not (x(i) > 0.5 and i ≥ 1), x(i)^3, exp(x(i))))": lambda x: sum(
        a**3 if not (a > 0.5 and m >= 1) else np.exp(a) for m, a in enumerate(x)
    ),
    "sum(i, where(x(i) ≠ 0, 1 / (1 + x(i)^2)))": lambda x: sum(1 / (1 + a * a) for a in x if a != 0),
    "sum(i, i == 0 or i == n - 1, x(i)^2)": lambda x: sum(a * a for m, a in enumerate(x) if m in (0, len(x) - 1)),
    "sum(i, i + 1 < n, (x(i + 1) - x(i))^2)": lambda x: sum((b - a) ** 2 for a, b in itertools.pairwise(x)),
    "sum(i, where(1 <= i, x(i - 1) * x(i)^2))": lambda x: sum(a * b * b for a, b in itertools.pairwise(x)),
    "prod(i, x(i)) + n": lambda x: np.prod(x) + len(x),
    "prod(i, 0 < i, x(i)^2)": lambda x: np.prod(x[1:] ** 2),
    "mean(i, x(i)^2)": lambda x: np.mean(x * x),
    "maximum(i, x(i)) * minimum(i, x(i)^3)": lambda x: max(x) * min(x) ** 3,
    "sum(i::N{n}, i + 1 < n, maximum(j, i < j, x(j)))": lambda x: sum(max(x[m + 1 :]) for m in range(len(x) - 1)),
}


def program(objective: str) -> str:
    return "(x::RV{n}) -> " + objective


@pytest.mark.slow
@pytest.mark.parametrize("objective", OF_VECTORS)
def test_the_value_and_the_gradient_are_those_of_python(objective: str) -> None:
    oracle = OF_VECTORS[objective]
    term = infer(parse(program(objective)))
    f = cd.grad(program(objective)).compile(value=True)
    for n in (1, 2, 3, 5, 7):
        x = np.random.default_rng(n).normal(size=n)
        assert np.isclose(evaluate(term.body, {term.params[0]: x}), oracle(x))  # type: ignore[attr-defined]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value, gradient = f(x)
        assert np.isclose(value, oracle(x))
        np.testing.assert_allclose(gradient, gradient_by(0, oracle, [x], 1e-5), rtol=1e-7, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("objective", OF_VECTORS)
def test_a_program_and_its_derivatives_are_read_back(objective: str) -> None:
    term = infer(parse(program(objective)))
    x = np.random.default_rng(0).normal(size=4)
    again = infer(parse(program_text(term)))
    values = [evaluate(t.body, {t.params[0]: x}) for t in (term, again)]  # type: ignore[attr-defined]
    assert np.isclose(*values)
    for derivation in (cd.grad(program(objective)), cd.hvp(program(objective))):
        assert derivation.check()


@pytest.mark.slow
@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_a_product_is_differentiated_where_factors_are_zero(zeros: int) -> None:
    x = np.array([1.5, -0.5, 2.0, 3.0, 0.25])
    x[:zeros] = 0
    k = np.arange(1.0, 6.0)
    others = [np.prod(np.delete(x, i)) for i in range(5)]
    second = [sum(k[j] * np.prod(np.delete(x, [i, j])) for j in range(5) if j != i) for i in range(5)]
    _, gradient, hvp = cd.grad("(x::RV) -> prod(i, x(i))").compile(value=True, hvp=True)(x)
    np.testing.assert_allclose(gradient, others)
    np.testing.assert_allclose(hvp(k), second)


def test_ties_share_the_derivative() -> None:
    x = np.array([1.0, 3.0, 3.0, 3.0])
    np.testing.assert_allclose(cd.grad("(x::RV) -> maximum(i, x(i))").compile()(x), [0, 1 / 3, 1 / 3, 1 / 3])
    np.testing.assert_allclose(cd.grad("(x::RV) -> minimum(i, x(i))").compile()(x), [1, 0, 0, 0])


@pytest.mark.slow
def test_of_nothing() -> None:
    x = np.array([1.0, 2.0])
    for objective, value in {"prod": 1.0, "maximum": -np.inf, "minimum": np.inf}.items():
        found, gradient = cd.grad(f"(x::RV) -> {objective}(i, i > 5, x(i)^2)").compile(value=True)(x)
        assert found == value
        np.testing.assert_allclose(gradient, [0, 0])


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_nothing_has_a_share_in_the_maximum_of_nothing(size: int) -> None:
    x = np.arange(1.0, size + 1)
    found, gradient = cd.grad("(x::RV) -> sum(k, ties(i, i > 3, x(i))(k) * x(k))").compile(value=True)(x)
    share = [0.0] * (size - 1) + [float(size > 4)]
    assert found == x @ share
    np.testing.assert_allclose(gradient, share)


@pytest.mark.slow
def test_a_function_that_is_called_twice_keeps_its_indices_in_range_each_time() -> None:
    twice = "f = (a::R) -> sum(h, where(h < n - 1, a * x(h + 1) * x(h)))\nf(2) * f(c)"
    d = cd.grad(f"(c::R) -> (x::RV{{n}}) -> begin\n{twice}\nend")
    x = np.arange(1.0, 6.0)
    assert d.compile(value=True)(3.0, x)[0] == 6 * (x[1:] @ x[:-1]) ** 2
    assert d.check()
    unguarded = "f = (k::N{n}) -> x(k + 1)\nsum(k::N{n}, where(k < n - 1, f(k)) + f(k))"
    with pytest.raises(cd.CombDiffError, match="may leave the range"):
        cd.grad(f"(x::RV{{n}}) -> begin\n{unguarded}\nend")


@pytest.mark.slow
def test_inverse_distances_of_all_pairs_are_finite() -> None:
    d = cd.grad("(x::RM) -> sum((i, j), i != j, 1 / sqrt(sum(c, (x(i, c) - x(j, c))^2)))")
    x = np.random.default_rng(1).normal(size=(4, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, gradient, hvp = d.compile(value=True, hvp=True)(x)
    assert np.isfinite([value, *gradient.ravel(), *hvp(x).ravel()]).all()
    assert "where(i != j, " in str(d)


@pytest.mark.slow
def test_a_periodic_index_is_compared_as_a_number_of_its_range() -> None:
    ring = "@domain Ring begin base = I; periodic = true end\n(x::(Ring) -> R) -> "
    d = cd.grad(ring + "sum((i, j), where(i + 1 < j, x(i)^2 * x(j)))")
    term, x = d.program, np.arange(1.0, 6.0)
    pairs = [(i, j) for i in range(5) for j in range(5) if (i + 1) % 5 < j]
    assert np.isclose(d.compile(value=True)(x)[0], sum(x[i] ** 2 * x[j] for i, j in pairs)), term
    assert d.check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sides", "same"),
    {
        "i + 2 | 0": lambda i, j, n: (i + 2) % n == 0,
        "i | 5": lambda i, j, n: (i - 5) % n == 0,
        "2 * i | j": lambda i, j, n: (2 * i - j) % n == 0,
        "i + j + 1 | 0": lambda i, j, n: (i + j + 1) % n == 0,
        "i | 0": lambda i, j, n: i == 0,
        "i | j": lambda i, j, n: i == j,
    }.items(),
)
def test_two_points_of_a_ring_are_equal_or_not(sides: str, same: Callable[[int, int, int], bool]) -> None:
    ring = "@domain Ring begin base = I; periodic = true end\n(x::(Ring) -> R) -> "
    for sign, branches in {"==": "x(i)^2 * x(j), x(j)", "!=": "x(j), x(i)^2 * x(j)"}.items():
        text = f"{ring}sum((i::Ring, j::Ring), where({sides.replace('|', sign)}, {branches}))"
        term, code = infer(parse(text)), cd.simplified(text).compile()
        for n in (1, 2, 3, 5, 7):
            x = np.random.default_rng(n).normal(size=n)
            chosen = np.array([[same(i, j, n) for j in range(n)] for i in range(n)])
            value = (x[:, None] ** 2 * x * chosen + x * ~chosen).sum()
            assert np.isclose(evaluate(term.body, {term.params[0]: x}), value)  # type: ignore[attr-defined]
            assert np.isclose(code(x), value)


@pytest.mark.parametrize("shape", [(1, 3), (2, 5), (3, 1), (3, 7), (5, 5)])
def test_an_index_of_another_range_meets_a_ring_as_often_as_it_comes_round(shape: tuple[int, int]) -> None:
    ring = "@domain Ring begin base = I; periodic = true end\n"
    code = cd.grad(f"{ring}(u::RV{{n}}) -> (x::(Ring) -> R) -> sum((i::Ring, j::N{{n}}), delta(i, j, x(i) * u(j)))")
    u, found = np.arange(1.0, shape[1] + 1), np.zeros(shape[0])
    np.add.at(found, np.arange(shape[1]) % shape[0], u)
    np.testing.assert_array_equal(code.compile()(u, np.ones(shape[0])), found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sides", "equal"),
    {
        "x(i) | i + j": lambda x, J, i, j, n: x[i] == (i + j) % n,
        "2 * i | x(j)": lambda x, J, i, j, n: x[j] == 2 * i % n,
        "x(i) | J(j) + 1": lambda x, J, i, j, n: x[i] == (J[j] + 1) % n,
    }.items(),
)
def test_arithmetic_in_a_ring_equals_a_number_as_one_of_its_range(sides: str, equal: Callable[..., bool]) -> None:
    head = "@domain Ring begin base = I; periodic = true end\n(x::(Ring) -> R, J::(Ring) -> Ring) -> (a::R) -> a * "
    for sign, branches in {"==": "x(i), 3 + x(j)", "!=": "3 + x(j), x(i)"}.items():
        text = f"{head}sum((i::Ring, j::Ring), where({sides.replace('|', sign)}, {branches}))"
        code = cd.grad(text).compile()
        for n in (1, 2, 3, 5, 7):
            x, J = np.random.default_rng(n).integers(0, n, (2, n))
            value = sum(x[i] if equal(x, J, i, j, n) else 3 + x[j] for i in range(n) for j in range(n))
            assert np.isclose(code(x.astype(float), J, 1.0), value)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("condition", "holds"),
    {
        "1 <= i and i != -1": lambda i, n: i >= 1 and i != n - 1,
        "i > 0 and i + 1 == 0": lambda i, n: 0 < i == n - 1,
        "2 <= i and i + 2 != 0": lambda i, n: i >= 2 and (i + 2) % n != 0,
        "1 <= i and i != 0": lambda i, n: i >= 1,
    }.items(),
)
def test_an_order_of_numbers_rules_out_no_point_of_a_ring(condition: str, holds: Callable[[int, int], bool]) -> None:
    head = "@domain Ring begin base = I; periodic = true end\n(x::(Ring) -> R) -> (a::R) -> "
    d = cd.grad(f"{head}a^2 * sum(i::Ring, where({condition}, x(i)))")
    assert d.check()
    for n in (1, 2, 3, 5, 7):
        x = np.arange(1.0, n + 1)
        assert np.isclose(d.compile()(x, 1.5), 3 * sum(x[i] for i in range(n) if holds(i, n)))


@pytest.mark.slow
def test_points_of_a_lattice_are_equal_or_not() -> None:
    lattice = "@domain BZ begin base = (I, I); periodic = true end\n(x::(BZ) -> R) -> "
    assert cd.grad(lattice + "sum((k, q), k != q, x(k) * x(q)^2)").check()
    with pytest.raises(cd.CombDiffError, match="point of a lattice"):
        cd.grad(lattice + "sum((k, q), k < q, x(k) * x(q))")


def test_gradients_of_open_boundaries_read_as_by_hand() -> None:
    d = cd.grad("(x::RV{n}) -> sum(i, i < n - 1, (x(i + 1) - x(i))^2)")
    assert str(d).endswith("2 * where(1 <= i, x(i) - x(i - 1)) - 2 * where(i < n - 1, x(i + 1) - x(i))")


@pytest.mark.slow
def test_indices_of_a_part_of_a_range_are_slices() -> None:
    domains = "@domain Z begin base = I; lower = 0; upper = 6 end\n@domain B begin base = I; lower = 0; upper = 5 end\n"
    d = cd.grad(domains + "(f::(Z) -> R) -> sum(r::B, (f(r + 1) - f(r))^2)")
    f = np.random.default_rng(2).normal(size=7)
    value, gradient = d.compile(value=True)(f)
    step = np.diff(f)
    assert np.isclose(value, step @ step) and d.check()
    np.testing.assert_allclose(gradient, 2 * (np.append(0, step) - np.append(step, 0)))
    assert "f[1:7] - f[:6]" in d.source(value=True) and "np.where" not in d.source(value=True)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch", "dask"])
@pytest.mark.parametrize("objective", OF_VECTORS)
def test_the_libraries_agree(objective: str, backend: str) -> None:
    library = pytest.importorskip({"dask": "dask.array"}.get(backend, backend))
    if backend == "jax":
        library.config.update("jax_enable_x64", True)
    x = np.random.default_rng(5).normal(size=5)
    given = {"torch": lambda: library.tensor(x), "dask": lambda: library.from_array(x, chunks=5)}.get(
        backend, lambda: x
    )()
    d = cd.grad(program(objective))
    for ours, theirs in zip(d.compile(value=True)(x), d.compile(backend, value=True)(given), strict=True):
        np.testing.assert_allclose(np.asarray(theirs), ours, atol=1e-12)


def test_pytorch_has_no_maximum_of_nothing_and_says_so() -> None:
    torch = pytest.importorskip("torch")
    for text, shape in (("(x::RV) -> maximum(i, x(i))", (0,)), ("(x::RM) -> (i -> minimum(j, x(i, j)))", (2, 0))):
        f = cd.simplified(text).compile("torch")
        with pytest.raises(cd.ArrayError, match="no maximum or minimum of no numbers"):
            f(torch.zeros(shape, dtype=torch.float64))


@pytest.mark.slow
@pytest.mark.parametrize("function", ["sqrt", "exp"])
def test_what_exists_under_a_condition_only_gets_no_name_outside_of_it(function: str) -> None:
    steps = "(X(i + 1, j) - X(i, j))^2 + (X(i, j + 1) - X(i, j))^2"
    d = cd.grad(f"(X::RM{{n, m}}) -> sum((i, j), i < n - 1 and j < m - 1, {function}({steps}))")
    assert_reads_back(d.term)
    assert d.check()


@pytest.mark.sampled
@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("domain", ["base = (I, I); periodic = true", "base = (I, I)", "base = I; periodic = true"])
def test_numbers_at_points_of_a_lattice_are_compared_as_numbers(domain: str, sign: str) -> None:
    meant = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal}
    d = cd.grad(
        f"@domain Z begin {domain} end\n(y::(Z) -> R) -> (x::(Z) -> R) -> sum(i, where(x(i) {sign} y(i), x(i)^2))"
    )
    rng = np.random.default_rng(4)
    y, x = rng.integers(0, 3, (2, 5, 3) if "(I, I)" in domain else (2, 9)).astype(float)
    holds = meant[sign](x, y) if sign in meant else x != y
    value, gradient = d.compile(value=True)(y, x)
    assert value == np.sum(x[holds] ** 2)
    np.testing.assert_array_equal(gradient, np.where(holds, 2 * x, 0))


PRODUCTS = {
    "prod(i, x(i))": lambda x: np.ones(len(x), bool),
    "prod(i, 1 <= i, x(i))": lambda x: np.arange(len(x)) >= 1,
    "prod(i, 0 < x(i), x(i))": lambda x: x > 0,
    "prod(i, 0 < x(i) or i == 0, x(i))": lambda x: (x > 0) | (np.arange(len(x)) == 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("product", PRODUCTS)
def test_products_of_small_numbers_keep_their_digits(product: str) -> None:
    f, hvp = cd.grad(f"(x::RV) -> {product}").compile(value=True), cd.hvp(f"(x::RV) -> {product}").compile()
    for n in (1, 2, 3, 7):
        x = 1e-9 * np.linspace(-1, 2.3, n)
        marked = PRODUCTS[product](x)
        others = [np.prod(x[marked & (np.arange(n) != i)]) * marked[i] for i in range(n)]
        value, gradient = f(x)
        assert value == pytest.approx(np.prod(x[marked]), rel=1e-13, abs=0)
        np.testing.assert_allclose(gradient, others, rtol=1e-13)
        both = [[np.prod(x[marked & ~np.isin(np.arange(n), (i, j))]) * (i != j) for j in range(n)] for i in range(n)]
        product_of_hessian = (np.array(both).reshape(n, n) * np.outer(marked, marked)) @ np.ones(n)
        np.testing.assert_allclose(hvp(x, np.ones(n)), product_of_hessian, rtol=1e-13)
