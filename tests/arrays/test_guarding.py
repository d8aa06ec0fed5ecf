"""Code for guards: what is excluded is chosen away, and functions see safe arguments there, in every library."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.run.compiled import Compiled
from combdiff.terms.terms import ONE, App, Lam, delta, indicator, number, power
from tests import random_terms as rt

R = "r = (i, j) -> sqrt(sum(c, (x(i, c) - x(j, c))^2))"


def value_of(text: str) -> Compiled:
    """The code of a program itself."""
    return Compiled(infer(parse(text)))


def lines(text: str, **options: object) -> list[str]:
    """The statements of a gradient."""
    return [line.strip() for line in cd.grad(text).source(**options).split('"""')[2].splitlines() if line.strip()]


def test_the_argument_is_replaced_as_well_as_the_result() -> None:
    assert lines("(x::RV) -> sum(i, indicator(0, x(i), sqrt(x(i))))") == [
        "return np.where(0 <= x, 1 / np.sqrt(np.where(0 <= x, x, 1)), 0) / 2"
    ]


@pytest.mark.slow
def test_a_definition_under_a_guard_is_computed_with_safe_arguments_once() -> None:
    text = f"(x::RM) -> begin; {R}\nsum((i, j), indicator(i + 1, j, 1 / r(i, j))); end"
    assert lines(text) == [
        "t1 = x[:, :, None] - np.ascontiguousarray(x.T)",
        't2 = np.einsum("ijk,ijk->ik", t1, t1)',
        "np.fill_diagonal(t2, 1)",
        "r = np.sqrt(t2)",
        "t3 = 1 / r**3",
        "np.fill_diagonal(t3, 0)",
        'return -np.einsum("ijk,ik->ij", t1, t3)',
    ]


@pytest.mark.slow
def test_what_is_finite_gets_no_safe_argument_and_is_masked_where_it_is_smallest() -> None:
    text = "(A::RM) -> (x::RV) -> sum((i, j), indicator(i, j, A(i, j) * sin(x(j)) / (1 + x(i)^2)))"
    code = "\n".join(lines(text))
    assert code.count("np.where(") == code.count("<=") and ", 1)" not in code
    plain = lines("(A::RM) -> (x::RV) -> sum((i, j), indicator(i, j, A(i, j) * x(j)))")
    assert plain[-1] == "return np.where(i[:, None] <= j, A, 0).sum(axis=0)"


def test_a_kernel_replaces_arguments_too() -> None:
    text = cd.grad("(x::RV) -> sum(i, indicator(0, x(i), log(1 + x(i))))").source("cupy")
    assert '"out = 0.0 <= x ? 1.0 / (0.0 <= x ? 1.0 + x : 1.0) : 0.0"' in text


# each with data for x under which something that is not taken is infinite, or has no value
EXCLUDED = {
    "a quotient": ("(x::RV) -> sum(i, indicator(1, i, 1 / x(i)))", [0.0, 2.0, 3.0]),
    "a logarithm": ("(x::RV) -> sum(i, indicator(1, i, log(x(i))^2))", [-1.0, 2.0, 3.0]),
    "a power": ("(x::RV) -> sum(i, indicator(1, i, x(i)^(-5/3)))", [0.0, 2.0, 3.0]),
    "a power of two indices": ("(x::RV) -> sum((i, j), indicator(i + 1, j, x(j)^x(i)))", [-0.5, 2.0, 0.25]),
    "an exponential": ("(x::RV) -> sum(i, indicator(x(i), 700, exp(x(i))))", [1e4, 2.0, 3.0]),
    "a power of a number": ("(x::RV) -> sum(i, indicator(x(i), 700, 2^x(i)))", [1e4, 2.0, 3.0]),
    "a comparison": ("(x::RV) -> sum(i, indicator(0, x(i), sqrt(x(i)) * x(i)))", [-1.0, 2.0, 3.0]),
    "a comparison of what has no value": (
        "(x::RV) -> sum(i, indicator(1, i, indicator(log(x(i)), 1, 1 / x(i))))",
        [0.0, 2.0, 3.0],
    ),
    "a guard in a function in a guard": (
        "(x::RV) -> sum(i, indicator(1, i, exp(indicator(2, i, 1 / x(i))) / x(i)))",
        [0.0, -2.0, 3.0],
    ),
    "a guard in a function": ("(x::RV) -> sum(i, exp(indicator(1, i, log(x(i)))))", [0.0, 2.0, 3.0]),
    "the diagonal alone": ("(x::RV) -> sum((i, j), delta(i, j, 1 / (1 + x(i) - x(j))))", [1.0, 2.0, 3.0]),
    "a delta that is left": ("(x::RV) -> sum((i, j), delta(i + j, 3, delta(i, 1, log(x(i) * x(j)))))", [0.0, 2.0, 3.0]),
    "a place": ("(x::RV) -> sum(i, delta(i, 2, log(x(i))))", [0.0, -2.0, 3.0]),
    "a sum in a guard": ("(x::RV) -> sum((i, k), indicator(1, i, log(sum(j, x(i) * x(j))) * x(k)))", [0.0, 2.0, 3.0]),
    "a sum of quotients": ("(x::RV) -> sum(i, indicator(1, i, x(i) * sum(j, 1 / (x(j) - 4 * x(i)))))", [0.0, 2.0, 3.0]),
    "an index of two": ("(x::RV) -> sum((i, j), indicator(j + 1, i, log(x(i)) * x(j)))", [0.0, 2.0, 3.0]),
    "the other index": ("(x::RV) -> sum((i, j), indicator(i + 1, j, log(x(i)) * x(j)))", [1.0, 2.0, -3.0]),
    "a definition of one index": (
        "(x::RV) -> begin; d = i -> log(x(i)); sum((i, j), indicator(i + 1, j, d(i) * x(j))); end",
        [1.0, 2.0, -3.0],
    ),
    "a definition with a sum": (
        "(x::RV) -> begin; d = i -> sum(k, 1 / (x(k) + x(i))); sum((i, j), indicator(j + 1, i, d(i) * x(j))); end",
        [0.0, 2.0, 3.0],
    ),
    "a sum that another sum does not see": (
        "(x::RV) -> sum((i, j), indicator(j + 1, i, sum(k, 1 / (x(k) + x(i))) * x(j)))",
        [0.0, 2.0, 3.0],
    ),
    "a definition of a definition": (
        "(x::RV) -> begin; d = i -> 1 / x(i); e = i -> log(d(i)); sum(i, indicator(1, i, e(i)^2)) + x(0); end",
        [0.0, 2.0, 3.0],
    ),
    "a definition in two orders": (
        "(x::RV) -> begin; d = (i, j) -> 1 / (x(i) - x(j));"
        " sum((i, j), indicator(i + 1, j, d(i, j))) + sum((i, j), indicator(j + 1, i, d(i, j)^2)); end",
        [0.0, 2.0, 3.0],
    ),
    "three indices": (
        "(x::RV) -> begin; d = (i, j) -> 1 / (x(i) - x(j));"
        " sum((i, j, k), indicator(i + 1, j, indicator(j + 1, k, d(i, j) * d(j, k) * d(i, k)))); end",
        [0.0, 2.0, 3.0],
    ),
    "what several indices say": (
        "(x::RV) -> sum((i, j), indicator(x(i) + 1, x(j), 1 / x(j) + log(4 - x(i))))",
        [0.0, 2.0, 5.0],
    ),
    "weights of indices": ("(x::RV) -> sum((i, j), indicator(i + 1, j, x(i) * x(j) / (j - i)))", [1.0, 2.0, 3.0]),
    "a distance of complex numbers": (
        "(x::RV) -> sum((i, j), indicator(i + 1, j, log(abs(exp(im * x(i)) - exp(im * x(j))))))",
        [0.0, 2.0, 3.0],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXCLUDED)
def test_what_is_excluded_does_not_matter_and_nothing_warns(name: str) -> None:
    text, data = EXCLUDED[name]
    x = np.array(data)
    program = infer(parse(text))
    assert isinstance(program, Lam)
    (parameter,) = program.params

    def energy(at: np.ndarray) -> float:
        return float(np.real(evaluate(program.body, {parameter: at})))

    value, gradient, hvp = cd.grad(text).compile(value=True, hvp=True)(x)
    direction = np.where((x > 0) & (x < 100), [0.5, -0.3, 0.7], 0.0)
    h = 1e-3
    far, near = ([energy(x + s * n * h * direction) for s in (1, -1)] for n in (2, 1))
    scale = max(1.0, abs(value))
    np.testing.assert_allclose(value, energy(x), rtol=1e-12)
    slope = (8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * h)
    np.testing.assert_allclose(gradient @ direction, slope, atol=1e-7 * scale)
    assert np.isfinite(gradient).all()
    curvature = (16 * sum(near) - sum(far) - 30 * energy(x)) / (12 * h * h)
    np.testing.assert_allclose(hvp(direction) @ direction, curvature, atol=1e-5 * scale)
    assert np.isfinite(hvp(np.ones(len(x)))).all()


@pytest.mark.sampled
@pytest.mark.parametrize("name", EXCLUDED)
def test_jax_differentiates_through_the_guard(name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    text, data = EXCLUDED[name]
    _, gradient = cd.grad(text).compile(value=True)(np.array(data))
    of_jax = cd.grad(text).compile("jax", value=True)
    np.testing.assert_allclose(jax.grad(lambda x: of_jax(x)[0].real)(np.array(data)), gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_a_function_of_the_user_sees_safe_arguments() -> None:
    seen = []

    def inverse(r: np.ndarray) -> np.ndarray:
        seen.append(np.array(r))
        return 1 / r

    text = f"(f::RF) -> (x::RM) -> begin; {R}\nsum((i, j), indicator(i + 1, j, f(r(i, j)))); end"
    x = np.random.default_rng(0).normal(size=(4, 3))
    f = cd.grad(text).compile(value=True)
    value, gradient = f(f=inverse, grad_f=lambda r: -1 / r**2, x=x)
    plain, same = cd.grad(text.replace("(f::RF) -> ", "").replace("f(r(i, j))", "1 / r(i, j)")).compile(value=True)(x)
    np.testing.assert_allclose(value, plain)
    np.testing.assert_allclose(gradient, same)
    (points,) = seen
    assert (points[np.tril_indices(4)] == 1).all()


@pytest.mark.slow
def test_a_packed_tensor_under_a_guard() -> None:
    text = f"(S::Sym) -> (x::RM) -> begin; {R}\nsum((i, j), indicator(i + 1, j, S(i, j) / r(i, j))); end"
    rng = np.random.default_rng(0)
    S, x = rng.normal(size=(5, 5)), rng.normal(size=(5, 3))
    S = S + S.T
    wanted = cd.grad(text).compile(value=True)(S, x)
    for found, expected in zip(cd.grad(text).compile(value=True, pack="S")(S, x), wanted, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.slow
def test_periodic_indices_are_compared_as_they_stand() -> None:
    zone = "@domain Z begin base = I; periodic = true end\n"
    text = zone + "(u::(Z) -> R) -> sum((k::Z, q::Z), indicator(k, q, delta(q, k + 1, 1 / (u(q) - u(k)))))"
    u = np.array([1.0, 4.0, 9.0, 1.0])
    f = cd.grad(text).compile(value=True, hvp=True)
    value, gradient, hvp = f(u)
    assert np.isclose(value, 1 / 3 + 1 / 5 - 1 / 8) and np.isfinite(gradient).all() and np.isfinite(hvp(u)).all()


def test_a_diagonal_under_a_guard_is_guarded_where_it_lies() -> None:
    n = rt.N
    u, k, q = rt.tensor("u", n), rt.index("k", n), rt.index("q", n)
    for guard in (lambda e: indicator(ONE, q, e), lambda e: indicator(ONE, k, e)):
        body = guard(delta(q, k, power(App(u, (k,)), number(-1))))
        found = Compiled(Lam((u,), Lam((k, q), body)))(np.array([0.0, 2.0, 4.0]))
        np.testing.assert_allclose(found, np.diag([0.0, 0.5, 0.25]))


def test_a_definition_that_is_used_elsewhere_too_is_no_factor_of_a_mask() -> None:
    f = value_of(
        "(A::RM, x::RV) -> begin; d = (i, j) -> 1 / (x(i) - x(j))\n"
        "sum((i, j), indicator(i + 1, j, A(i, j) * d(i, j))) + d(1, 0); end"
    )
    with np.errstate(divide="ignore"):
        assert np.isclose(f(np.ones((2, 2)), np.array([1.0, 3.0])), -0.5 + 0.5)


def test_a_program_of_the_users_own_infinity_stays_what_it_is() -> None:
    f = value_of("(x::RV) -> sum(i, indicator(1, i, x(i)) / x(i))")
    with np.errstate(all="ignore"):
        assert np.isnan(f(np.array([0.0, 1.0]))), "what stands beside a guard is not guarded"


MASKED = """(X::RM, G::RM) -> (q::RM, k::RM) -> begin
  e = (t, s) -> exp(sum(a, q(t, a) * k(s, a)))
  o = (t, a) -> sum(s, indicator(s, t, e(t, s) * X(s, a))) / sum(s, indicator(s, t, e(t, s)))
  sum((t, a), (o(t, a) - G(t, a))^2)
end"""
QUOTIENT = """(v::RV, g::RV) -> (x::RM) ->
  sum(t, g(t) * sum(s, indicator(s, t, x(t, s) * v(s))) / sum(s, indicator(s, t, x(t, s))))"""


@pytest.mark.slow
@pytest.mark.parametrize("text", [MASKED, QUOTIENT])
def test_what_a_guard_does_not_compare_is_summed_within_it(text: str) -> None:
    d = cd.grad(text)
    shapes = {
        a.name: (50,) if a.name in "vg" else (50, 50) if a.name == "x" else (50, 8) for a in d.compile().arguments
    }
    assert max(step.rank for step in d.plan(**shapes).steps) == 2, "matrices of pairs, and nothing larger"
    assert d.check()


@pytest.mark.parametrize("missing", [np.nan, np.inf])
def test_data_that_a_condition_excludes_may_be_no_number(missing: float) -> None:
    seen = np.array([1.0, 0.0, 1.0])
    y, x = np.array([1.0, missing, -2.0]), np.array([0.5, 2.0, 1.0])
    f = cd.grad("(y::RV, m::RV) -> (x::RV) -> sum(i, indicator(1, m(i), (y(i) - x(i))^2))").compile(value=True)
    value, gradient = f(y, seen, x)
    assert value == 9.25 and np.array_equal(gradient, [-1.0, 0.0, 6.0])


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_missing_entries_of_a_matrix_are_left_out_of_its_factors(n: int) -> None:
    rng = np.random.default_rng(n)
    Y, U, V = rng.normal(size=(n, 4)), rng.normal(size=(n, 2)), rng.normal(size=(4, 2))
    W = (rng.random((n, 4)) < 0.5).astype(float)
    text = "sum((i, j), indicator(1, W(i, j), (Y(i, j) - sum(k, U(i, k) * V(j, k)))^2))"
    d = cd.grad(f"(Y::RM, W::RM) -> (U::RM, V::RM) -> {text}")
    value, by_U, by_V = d.compile(value=True)(np.where(W == 1, Y, np.nan), W, U, V)
    R = W * (Y - U @ V.T)
    assert np.isclose(value, (R**2).sum())
    assert np.allclose(by_U, -2 * R @ V) and np.allclose(by_V, -2 * R.T @ U)


@pytest.mark.slow
def test_a_definition_that_both_branches_use_is_not_guarded() -> None:
    text = "(y::RV, w::RV) -> (x::RV) -> begin l = i -> log(x(i)); sum(i, where(y(i) == 0, l(i) * w(i), l(i)^2)); end"
    code = cd.grad(text).compile(value=True)
    assert "np.log(x)" in code.source
    value, gradient = code(np.array([0.0, 1.0]), np.array([3.0, 4.0]), np.array([2.0, 5.0]))
    np.testing.assert_allclose(value, 3 * np.log(2) + np.log(5) ** 2)
    np.testing.assert_allclose(gradient, [3 / 2, 2 * np.log(5) / 5])
