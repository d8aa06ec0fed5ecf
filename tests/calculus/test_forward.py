"""Forward mode: the rules of B and C, every row against differences and its own pullback, and programs against JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.calculus import primitives as row
from combdiff.calculus.combinators import B, C, eliminate
from combdiff.calculus.primitives import Primitive
from combdiff.calculus.pushforward import push_forward
from combdiff.errors import CombDiffError
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.functions import SCALAR_FUNCTIONS, ScalarFunction
from combdiff.terms.terms import App, Lam, Sum, add, call, fresh, mul, number, subterms
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map, Number, is_complex
from tests.calculus.test_primitives import POINTS, TABLE

TANGENTS = (1.0 + 0j, 0.4 - 1.3j, 1j)
SIZES = (1, 2, 3, 5, 7)


def _slope(f: Callable[[complex], complex], z: complex, k: complex) -> complex:
    """The derivative of f at z along k, by central differences of fourth order."""
    h = 1e-3
    return (8 * (f(z + h * k) - f(z - h * k)) - f(z + 2 * h * k) + f(z - 2 * h * k)) / (12 * h)


def _agrees(primitive: Primitive, z: complex, k: complex, kind: Number = COMPLEX) -> None:
    v, c = fresh("v", kind), fresh("k", kind)
    value = primitive.value(v)
    at, along = (z, k) if kind.complex else (z.real, k.real)

    def f(x: complex) -> complex:
        return complex(evaluate(value, {v: x if kind.complex else complex(x).real}))  # type: ignore[arg-type]

    pushed = primitive.pushforward(v, c)
    found = complex(evaluate(pushed, {v: at, c: along}))  # type: ignore[arg-type]
    expected = _slope(f, at, along)
    assert abs(found - expected) < 1e-8 * max(1, abs(expected)), primitive.name
    w = fresh("w", value.type)
    weight = 0.3 - 0.8j if is_complex(value.type) else 0.3
    pulled = complex(evaluate(primitive.pullback(v, w), {v: at, w: weight}))  # type: ignore[arg-type]
    assert np.isclose((np.conj(weight) * found).real, (np.conj(pulled) * along).real), primitive.name


OF_ONE = [name for name, r in SCALAR_FUNCTIONS.items() if r.arity == 1]
OF_SEVERAL = {"atan2": np.arctan2, "max": np.maximum, "min": np.minimum, "clip": np.clip}


@pytest.mark.parametrize("name", [n for n in OF_ONE if not SCALAR_FUNCTIONS[n].of_reals])
def test_the_pushforward_of_a_scalar_function_agrees_with_differences_and_its_pullback(name: str) -> None:
    for z in POINTS:
        for k in TANGENTS:
            _agrees(row.scalar(name), z, k)


@pytest.mark.parametrize("name", [n for n in OF_ONE if n not in ("real", "imag", "conj")])
def test_the_pushforward_of_a_scalar_function_agrees_on_the_real_line(name: str) -> None:
    _agrees(row.scalar(name), 1.7 if name == "acosh" else 0.7, 0.4, REAL)


def test_the_pushforward_of_a_function_with_an_order_agrees_on_the_real_line() -> None:
    for order in (0, 1, 2):
        _agrees(row.scalar("polygamma", number(order)), 0.7, 0.4, REAL)


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_the_pushforward_of_a_function_of_several_numbers_agrees_with_differences(name: str) -> None:
    count = SCALAR_FUNCTIONS[name].arity
    names = "xyz"[:count]
    push = cd.jvp(f"({', '.join(f'{v}::R' for v in names)}) -> {name}({', '.join(names)})^2").compile()
    for at in ((0.3, -0.7, 1.2), (-1.1, -2.0, 0.4), (0.9, 0.2, 0.5)):
        tangent = np.array([0.4, -1.3, 0.7])[:count]

        def f(t: float, at: tuple[float, ...] = at, tangent: np.ndarray = tangent) -> float:
            return float(OF_SEVERAL[name](*(np.array(at[:count]) + t * tangent)) ** 2)

        assert np.isclose(push(*at[:count], *tangent), (f(1e-6) - f(-1e-6)) / 2e-6, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", TABLE)
def test_the_pushforward_of_a_primitive_agrees_with_differences(name: str) -> None:
    for z in POINTS:
        for k in TANGENTS:
            _agrees(TABLE[name], z, k)


def test_a_row_without_a_pushforward_takes_it_from_its_pullback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, scalar in SCALAR_FUNCTIONS.items():
        if scalar.pullback is None:
            continue
        fields = {f: getattr(scalar, f) for f in ScalarFunction.__dataclass_fields__} | {"pushforward": None}
        monkeypatch.setitem(SCALAR_FUNCTIONS, name, ScalarFunction(**fields))
        for z in POINTS:
            _agrees(row.scalar(name), z, 0.4 - 1.3j)


def test_the_c_rule_pushes_every_entry() -> None:
    n = Index(Domain("n", declared=True))
    a, x, b = fresh("a", Map((n,), COMPLEX)), fresh("x", COMPLEX), fresh("b", n)
    k = fresh("k", COMPLEX)
    comb = eliminate(x, Lam((b,), mul(App(a, (b,)), x)))
    assert isinstance(comb, C)
    (pushed,) = push_forward(comb, k)
    values = np.array([1.0 + 2j, -0.5j, 3.0])
    assert np.allclose(evaluate(pushed, {a: values, k: 0.3 - 1j, x: 2.0}), values * (0.3 - 1j))  # type: ignore[arg-type]


def test_the_b_rule_is_the_product_rule_without_a_delta() -> None:
    z, k = fresh("z", COMPLEX), fresh("k", COMPLEX)
    comb = eliminate(z, mul(call("sin", z), call("exp", z)))
    assert isinstance(comb, B) and comb.capture is not None
    pushed = add(*push_forward(comb, k))
    assert not any(isinstance(t, Sum) for t in subterms(pushed))
    at, c = 0.3 - 0.7j, 1.1 + 0.4j
    expected = (np.cos(at) + np.sin(at)) * np.exp(at) * c
    assert np.isclose(complex(evaluate(pushed, {z: at, k: c})), expected)  # type: ignore[arg-type]


def test_the_pushforward_of_a_matrix_product_is_eq_13() -> None:
    d = cd.jvp("(A::CM, B::CM) -> (p, q) -> sum(n, A(p, n) * B(n, q))")
    assert str(d) == (
        "(A::CM, B::CM, k1::CM, k2::CM) -> (p, q) -> sum(n, B(n, q) * k1(p, n)) + sum(n, A(p, n) * k2(n, q))"
    )


REAL_PROGRAMS = {
    "quadratic": "(A::RM{n, n}) -> (x::RV{n}) -> sum((i, j), x(i) * A(i, j) * x(j))",
    "layer": "(A::RM{n, n}) -> (x::RV{n}) -> (i::N) -> tanh(sum(j, A(i, j) * x(j)))",
    "two layers": """(A::RM{n, n}) -> (x::RV{n}) -> begin
        h = i -> tanh(sum(j, A(i, j) * x(j)))
        i -> sum(j, A(j, i) * exp(-h(j)^2))
    end""",
    "shared": """(A::RM{n, n}) -> (x::RV{n}) -> begin
        s = sum(j, x(j)^2)
        t = sqrt(s + 1)
        i -> x(i) / t + sum(j, A(i, j) * x(j)) * s
    end""",
    "absolute": "(A::RM{n, n}) -> (x::RV{n}) -> (i::N) -> abs(x(i)) * sum(j, A(i, j) * x(j))",
}


def _in_jax(name: str) -> Callable[[Any, Any], Any]:
    jnp = pytest.importorskip("jax.numpy")
    return {
        "quadratic": lambda A, x: x @ A @ x,
        "layer": lambda A, x: jnp.tanh(A @ x),
        "two layers": lambda A, x: A.T @ jnp.exp(-(jnp.tanh(A @ x) ** 2)),
        "shared": lambda A, x: x / jnp.sqrt(x @ x + 1) + (A @ x) * (x @ x),
        "absolute": lambda A, x: jnp.abs(x) * (A @ x),
    }[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL_PROGRAMS)
def test_code_for_tangents_and_jacobians_agrees_with_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    f = _in_jax(name)
    jvp, jacobian = (mode(REAL_PROGRAMS[name]).compile() for mode in (cd.jvp, cd.jacobian))
    rng = np.random.default_rng(4)
    with jax.enable_x64(True):
        for n in SIZES:
            A, x, k = rng.standard_normal((n, n)), rng.standard_normal(n), rng.standard_normal(n)
            _, expected = jax.jvp(lambda x, A=A: f(A, x), (x,), (k,))
            assert np.allclose(jvp(A, x, k), expected)
            assert np.allclose(jacobian(A, x), jax.jacfwd(lambda x, A=A: f(A, x))(x))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadratic", "quartic", "norms"])
def test_code_for_hessians_agrees_with_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    text, f = {
        "quadratic": (REAL_PROGRAMS["quadratic"], _in_jax("quadratic")),
        "quartic": (
            "(A::RM{n, n}) -> (x::RV{n}) -> sum(i, (sum(j, A(i, j) * x(j)) - 1)^4)",
            lambda A, x: jnp.sum((A @ x - 1) ** 4),
        ),
        "norms": (
            "(A::RM{n, n}) -> (x::RV{n}) -> sum(i, sqrt(1 + sum(j, A(i, j) * x(j)^2)^2))",
            lambda A, x: jnp.sum(jnp.sqrt(1 + (A @ x**2) ** 2)),
        ),
    }[name]
    hessian = cd.hessian(text).compile()
    rng = np.random.default_rng(5)
    with jax.enable_x64(True):
        for n in SIZES:
            A, x = rng.standard_normal((n, n)), rng.standard_normal(n)
            assert np.allclose(hessian(A, x), jax.hessian(lambda x, A=A: f(A, x))(x))


ENERGIES = (
    "(A::CM{n, n}) -> (x::CV{n}) -> real(sum((i, j), x(i)' * A(i, j) * x(j)))",
    "(A::CM{n, n}) -> (x::CV{n}) -> sum(i, abs2(sum(j, A(i, j) * x(j)))^2)",
    "(A::CM{n, n}) -> (x::CV{n}) -> begin h = i -> sum(j, A(i, j) * x(j)); sum(i, abs2(exp(h(i)))) end",
)


@pytest.mark.slow
@pytest.mark.parametrize("text", ENERGIES)
def test_all_ways_to_a_hessian_product_agree_at_complex_points(text: str) -> None:
    head, objective = text.rsplit(" -> (x::CV{n}) -> ", 1)
    forward_over_reverse = cd.jvp(f"{head} -> pullback(grad((x::CV{{n}}) -> {objective}))").compile()
    reverse_over_reverse = cd.hvp(text).compile()
    # of the printed tangent, which is a program again
    reverse_over_forward = cd.grad(str(cd.jvp(text)), wrt="x").compile()
    rng = np.random.default_rng(6)
    for n in SIZES:
        A, x, k = (rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in ((n, n), n, n))
        expected = reverse_over_reverse(A, x, k)
        assert np.allclose(forward_over_reverse(A, x, k), expected)
        assert np.allclose(reverse_over_forward(A, k, x), expected)


@pytest.mark.slow
def test_the_tangent_of_a_root_is_that_of_the_implicit_function_theorem() -> None:
    text = "(a::R) -> (x::R) -> begin y = root((y::R) -> y^3 + y - a * x); y^2 end"
    f = cd.jvp(text).compile(value=True)
    y = 1.2  # a x = y³ + y
    value, tangent = f(2.0, (y**3 + y) / 2, 0.7)
    assert np.isclose(value, y**2) and np.isclose(tangent, 2 * y * 2 * 0.7 / (3 * y**2 + 1))


@pytest.mark.slow
def test_a_tangent_stays_finite_where_a_guard_excludes_its_value() -> None:
    d = cd.jvp("""(x::RM) -> begin
      r = (i, j) -> sqrt(sum(c, (x(i, c) - x(j, c))^2))
      sum((i, j), indicator(i + 1, j, 1 / r(i, j)))
    end""")
    x = np.random.default_rng(7).standard_normal((4, 3))
    with np.errstate(all="raise"):
        assert np.isfinite(d.compile()(x, np.ones((4, 3)))) and d.check()


@pytest.mark.sampled
@pytest.mark.parametrize(
    "text",
    [
        "(f::RF) -> (x::RV) -> sum(i, f(x(i)))",
        "(h::RO) -> (s::R, t::R) -> h(s * t, t)^2",
        "(g::CF) -> (t::R) -> g(t)^2 * t",
        "(F::(CV) -> R) -> (x::CV) -> F(x)^2",
        "(x::RV) -> (n::N) -> x(n)^n",
    ],
)
def test_tangents_of_unknown_functions_and_powers_agree_with_differences(text: str) -> None:
    assert cd.jvp(text).check()


def test_tangents_of_maps_of_tensors_to_tensors_that_nobody_knows_are_refused() -> None:
    with pytest.raises(CombDiffError, match="whose values are no numbers"):
        cd.jvp("(g::(CV) -> CV) -> (x::CV) -> g(x)")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        # ∫₀ᵃ x² dx = a³/3
        (
            "(a::R) -> sum(x::R, indicator(0, x, indicator(x, a, x^2)))",
            "(a::R, k::R) -> k * where(0 <= a, a^2)",
        ),
        (
            "(f::RF) -> (a::R) -> sum(x::R, delta(2 * x, a, f(x)))",
            "(f::RF) -> (a::R, k::R) -> 1/4 * k * grad(f)(1/2 * a)",
        ),
        (
            "(f::RF) -> (g::RF) -> sum(x::R, g(x)^2 * f(x))",
            "(f::RF) -> (g::RF, k::RF) -> 2 * sum(x::R, f(x) * g(x) * k(x))",
        ),
    ],
)
def test_integrals_have_tangents_whose_jumps_count(text: str, printed: str) -> None:
    assert str(cd.jvp(text)) == printed


@pytest.mark.slow
def test_value_and_tangent_come_together() -> None:
    f = cd.jvp(REAL_PROGRAMS["shared"]).compile(value=True)
    rng = np.random.default_rng(8)
    A, x, k = rng.standard_normal((3, 3)), rng.standard_normal(3), rng.standard_normal(3)
    value, tangent = f(A, x, k)
    assert value.shape == tangent.shape == (3,)
    assert np.allclose(tangent, cd.jvp(REAL_PROGRAMS["shared"]).compile()(A, x, k))


def test_a_derivative_of_an_unknown_map_of_two_numbers_has_a_tangent() -> None:
    """∂k/∂y along (v1, v2), of k = sin(2 y + 3 z): its second derivatives are −sin times 4 and 6."""

    def pulled(y: float, z: float, k: tuple[float, float]) -> tuple[float, float]:
        s = -np.sin(2 * y + 3 * z)
        return s * (4 * k[0] + 6 * k[1]), s * (6 * k[0] + 9 * k[1])

    d = cd.jvp("(k::RO) -> (y::R, z::R) -> grad(k)(y, z)")
    assert "pullback(grad(k)" in str(cd.simplified(str(d)))
    found = d.compile()(pullback_grad_k=pulled, y=0.3, z=-0.4, v1=0.7, v2=1.1)
    s = -np.sin(2 * 0.3 + 3 * -0.4)
    np.testing.assert_allclose(found, [s * (4 * 0.7 + 6 * 1.1), s * (6 * 0.7 + 9 * 1.1)], rtol=1e-12)
