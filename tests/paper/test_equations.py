"""The numbered equations of the paper that are rules rather than examples, one test each."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd
from combdiff.calculus.combinators import combinator_text, eliminate
from combdiff.explanation import combinator_form
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import Delta, Lam, alpha_equal, subterms

from . import oracle

gradient, pullback = cache(cd.grad), cache(cd.pullback)


def body_of(text):
    """(the last parameter of a program, the expression below it)."""
    t = infer(parse(text))
    while isinstance(t.body, Lam):
        t = t.body
    return t.params[0], t.body


def random_complex(rng, *shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


# --- Eq. 9–19: pullbacks and the chain rule -------------------------------------------------------------------------

QUADRATIC_MAP = "(A::(N, N, N) -> R) -> (x::RV) -> (i::N) -> sum((j, l), A(i, j, l) * x(j) * x(l))"


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_09_the_pullback_of_a_real_map_is_the_transposed_jacobian(seed):
    t = oracle.trial(pullback(QUADRATIC_MAP), seed, A=(2, 3, 3))
    a, x = t["A"], t["x"]
    jacobian = np.einsum("ijl,l->ij", a, x) + np.einsum("ijl,j->il", a, x)
    (k,) = t.cotangents()
    oracle.close(t.run(), jacobian.T @ k)
    oracle.agrees_with_differences(t)


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_08_the_gradient_of_a_composition_is_a_product_of_transposed_jacobians(seed):
    d = gradient("""(A::(N, N, N) -> R, c::RV) -> (x::RV) -> begin
        y = (i::N) -> sum((j, l), A(i, j, l) * x(j) * x(l))
        sum(i, c(i) * exp(y(i)))
    end""")
    t = oracle.trial(d, seed, A=(2, 3, 3))
    a, x = t["A"], t["x"]
    y = np.einsum("ijl,j,l->i", a, x, x)
    jacobian = np.einsum("ijl,l->ij", a, x) + np.einsum("ijl,j->il", a, x)
    oracle.close(t.run(), jacobian.T @ (t["c"] * np.exp(y)))


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_10_the_pushforward_is_the_jacobian_times_the_tangent(seed):
    rng = np.random.default_rng(seed)
    a, x, k = rng.standard_normal((2, 3, 3)), rng.standard_normal(3), rng.standard_normal(3)
    jacobian = np.einsum("ijl,l->ij", a, x) + np.einsum("ijl,j->il", a, x)
    oracle.close(cd.jvp(QUADRATIC_MAP).compile()(a, x, k), jacobian @ k)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_14_the_pullback_of_a_composition_is_the_composition_of_pullbacks(seed):
    inner = "(A::CM) -> (x::CV) -> (i::N) -> sum(j, A(i, j) * x(j)^2)"
    outer = "(B::CM) -> (y::CV) -> (l::N) -> sum(i, B(l, i) * exp(y(i)'))"
    whole = """(A::CM, B::CM) -> (x::CV) -> begin
        y = (i::N) -> sum(j, A(i, j) * x(j)^2)
        (l::N) -> sum(i, B(l, i) * exp(y(i)'))
    end"""
    rng = np.random.default_rng(seed)
    a, b, x, k = (random_complex(rng, *shape) for shape in ((3, 2), (4, 3), (2,), (4,)))
    back_outer, back_inner = pullback(outer).compile(), pullback(inner).compile()
    expected = back_inner(a, x, back_outer(b, a @ x**2, k))
    oracle.close(pullback(whole).compile()(a, b, x, k), expected)


def test_eq_14_with_unknown_maps():
    d = pullback("(f::(C) -> C, g::(C) -> C) -> (x::C) -> f(g(x))")
    assert str(d).endswith("-> (x::C, k::C) -> pullback(g)(x, pullback(f)(g(x), k))")
    assert str(gradient("(f::RF, g::RF) -> (x::R) -> f(g(x))")).endswith("(x::R) -> grad(g)(x) * grad(f)(g(x))")


def test_eq_19_the_pullback_of_a_composition_with_a_capture():
    assert str(pullback("(w::R) -> (x::R) -> exp(w * x)")) == "(w::R) -> (x::R, k::R) -> w * k * exp(w * x)"
    assert str(gradient("(w::R) -> (x::R) -> exp(w * x)")) == "(w::R) -> (x::R) -> w * exp(w * x)"


# --- Eq. 20–27: the combinators and their rules ---------------------------------------------------------------------


def test_eq_20_b_is_composition():
    x, e = body_of("(f::RF, g::RF) -> (x::R) -> f(g(x))")
    comb = eliminate(x, e)
    assert combinator_text(comb) == "B f (B g I)"
    assert alpha_equal(comb.value, e)


def test_eq_21_c_exchanges_the_arguments():
    x, e = body_of("(f::(R) -> (R) -> R) -> (x::R) -> (f(x), 1)")
    y = infer(parse("(f::(R, R) -> R, x::R) -> ((y::R) -> f(y, x), 1)"))
    exchanged = eliminate(y.params[1], y.body.items[0])
    assert combinator_text(exchanged).startswith("C (y ↦ B f ")
    assert alpha_equal(exchanged.value, y.body.items[0])
    assert alpha_equal(eliminate(x, e).value, e)


def test_eq_22_a_map_that_returns_a_map_is_c_of_a_composition_with_a_capture():
    d = pullback("pullback((w::R) -> (x::R) -> exp(w * x))")
    assert combinator_form(d) == "w ↦ result = C (x ↦ B exp (B (mul x) I))"


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_23_the_c_rule_sums_the_pullbacks_of_the_entries(seed):
    """𝒫(C g)(x, k) = Σ_b 𝒫(g b)(x, k(b))."""
    entries = pullback("(A::CM) -> (x::CV) -> (b::N) -> sum(j, A(b, j) * exp(x(j)))").compile()
    entry = pullback("(a::CV) -> (x::CV) -> sum(j, a(j) * exp(x(j)))").compile()
    rng = np.random.default_rng(seed)
    a, x, k = random_complex(rng, 3, 2), random_complex(rng, 2), random_complex(rng, 3)
    oracle.close(entries(a, x, k), sum(entry(row, x, kb) for row, kb in zip(a, k, strict=True)))


def test_eq_26_the_c_rule_over_the_reals_is_an_integral():
    d = pullback("pullback((w::R) -> (x::R) -> exp(w * x))")
    assert str(d) == "(w::R, k::RF) -> sum(x::R, x * k(x) * exp(w * x))"


def test_eq_27_the_pullback_of_evaluation_at_a_point_is_a_delta():
    d = pullback("(a::R) -> (f::RF) -> f(a)")
    assert str(d) == "(a::R) -> (f::RF, k::R) -> (a1::R) -> delta(a, a1, k)"


def test_eq_27_both_terms_where_a_function_is_applied_to_its_own_value():
    d = pullback("(a::R) -> (f::RF) -> f(f(a))")
    assert oracle.squeezed(d) == oracle.squeezed(
        "(a::R) -> (f::RF, k::R) -> (a1::R) -> begin s = f(a) delta(s, a1, k) + delta(a, a1, k * grad(f)(s)) end"
    )


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_27_the_pullback_of_a_tensor_read_at_an_index_is_a_unit_tensor(seed):
    d = pullback("(i::N) -> (f::CV) -> f(i)")
    assert sum(isinstance(t, Delta) for t in subterms(d.term)) == 1
    k = complex(*np.random.default_rng(seed).standard_normal(2))
    parameters = {v.name: v for t in subterms(d.term) if isinstance(t, Lam) for v in t.params}
    values = {parameters["i"]: 2, parameters["f"]: np.zeros(4, complex), parameters["k"]: k}
    assert isinstance(d.term, Lam) and isinstance(d.term.body, Lam)
    oracle.close(evaluate(d.term.body.body, values), k * np.eye(4)[2])
    # code returns those of all i, in rows
    oracle.close(d.compile()(np.zeros(4, complex), k), k * np.eye(4))


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_27_a_delta_that_meets_its_sum_is_gone(seed):
    d = pullback("(A::CM) -> (x::CV) -> (i::N) -> sum(j, A(i, j) * x(j) * x(i))")
    assert not oracle.has_delta(d)
    t = oracle.trial(d, seed, A=(3, 3))
    (k,) = t.cotangents()
    a, x = t["A"], t["x"]
    oracle.close(t.run(), a.conj().T @ (x.conj() * k) + (a @ x).conj() * k)
    oracle.agrees_with_differences(t)


# --- Eq. 31–37: the product rule ------------------------------------------------------------------------------------

PRODUCT = "(f::(C) -> C, g::(C) -> C) -> (x::C) -> f(x) * g(x)"


def test_eq_37_the_product_rule_with_unknown_maps_has_the_conjugates():
    written = oracle.squeezed(pullback(PRODUCT)).split("(x::C,k::C)->")[1]
    first, second = sorted(written.replace("+pullback", "|pullback").split("|"))
    assert first in ("pullback(f)(x,k*g(x)')", "pullback(f)(x,g(x)'*k)")
    assert second in ("pullback(g)(x,k*f(x)')", "pullback(g)(x,f(x)'*k)")


def test_eq_37_the_product_rule_over_the_reals():
    d = gradient("(f::RF, g::RF) -> (x::R) -> f(x) * g(x)")
    assert str(d) == "(f::RF, g::RF) -> (x::R) -> g(x) * grad(f)(x) + f(x) * grad(g)(x)"


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_37_as_numbers(seed):
    functions = {
        "f": np.exp,
        "g": lambda z: np.conj(z) * z,
        "pullback_f": lambda z, k: np.conj(np.exp(z)) * k,
        "pullback_g": lambda z, k: 2 * z * np.real(k),
    }
    t = oracle.trial(pullback(PRODUCT), seed, functions)
    oracle.agrees_with_differences(t)
    oracle.close(t.run(), t.result())


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_37_for_known_maps_of_tensors(seed):
    d = pullback("(A::CM) -> (x::CV) -> sum(i, x(i)') * sum((i, j), A(i, j) * x(i) * x(j))")
    t = oracle.trial(d, seed, A=(3, 3))
    (k,) = t.cotangents()
    a, x = t["A"], t["x"]
    form = x @ a @ x
    expected = np.conj(np.conj(form) * k) * np.ones(3) + np.conj((a + a.T) @ x) * np.conj(np.sum(x.conj())) * k
    oracle.close(t.run(), expected)
    oracle.agrees_with_differences(t)


# --- Eq. 38–46: complex numbers -------------------------------------------------------------------------------------

REAL_FUNCTION = "(A::CM) -> (z::CV) -> sum((i, j), abs2(A(i, j) * z(j) + exp(z(i)')))"


def real_function(a, z):
    return np.sum(np.abs(a * z[None, :] + np.exp(z.conj())[:, None]) ** 2)


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_38_the_gradient_is_the_derivative_along_both_axes(seed):
    """∂f/∂a + i ∂f/∂b for z = a + ib, entry by entry."""
    t = oracle.trial(gradient(REAL_FUNCTION), seed, A=(3, 3))
    a, z = t["A"], t["z"]

    def along(entry, unit):
        direction = unit * np.eye(3)[entry]
        return oracle.slope(lambda h: real_function(a, z + h * direction))

    oracle.close(t.run(), np.array([along(n, 1) + 1j * along(n, 1j) for n in range(3)]), 1e-8)


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_43_a_step_along_the_gradient_is_the_steepest_ascent(seed):
    t = oracle.trial(gradient(REAL_FUNCTION), seed, A=(2, 2))
    a, z, g = t["A"], t["z"], np.asarray(t.run())
    length = np.linalg.norm(g)
    steepest = oracle.slope(lambda h: real_function(a, z + h * g / length))
    oracle.close(steepest, length, 1e-8)
    for turned in (1j * g, -g, random_complex(t.rng, 2)):
        along = oracle.slope(lambda h, turned=turned: real_function(a, z + h * turned / np.linalg.norm(turned)))
        assert along <= steepest + 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_43_the_gradient_is_the_conjugate_of_what_jax_returns(seed):
    jnp = pytest.importorskip("jax.numpy")
    t = oracle.trial(gradient(REAL_FUNCTION), seed, A=(3, 3))

    def f(z):
        return jnp.sum(jnp.abs(t["A"] * z[None, :] + jnp.exp(z.conj())[:, None]) ** 2)

    oracle.close(t.run(), oracle.jax_gradient(f, t["z"]))


def flat(z):
    """𝒱 of Eq. 39."""
    return np.stack([z.real, z.imag], -1).ravel()


def lifted(v):
    """𝒱⁻¹."""
    return v[0::2] + 1j * v[1::2]


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_41_a_minimiser_sees_the_function_of_the_pairs(seed):
    """𝒱(f(z)) = (𝒲 f)(𝒱 z): `d.problem` is 𝒲 f, `pack` is 𝒱; the gradient of 𝒲 f is that of Eq. 42–43."""
    rng = np.random.default_rng(seed)
    a, z = random_complex(rng, 3, 3), random_complex(rng, 3)
    problem = gradient(REAL_FUNCTION).problem(A=a, z=z)
    oracle.close(problem.pack(z), flat(z))
    oracle.close(problem.unpack(flat(z)), z)
    oracle.close(problem.fun(flat(z)), real_function(a, z))
    slopes = [oracle.slope(lambda h, e=e: real_function(a, lifted(flat(z) + h * e))) for e in np.eye(6)]
    oracle.close(problem.jac(flat(z)), np.array(slopes), 1e-8)


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_44_the_complex_pullback_is_the_transposed_jacobian_of_the_real_map(seed):
    t = oracle.trial(pullback("(A::CM) -> (z::CV) -> (i::N) -> sum(j, A(i, j) * z(j)' * z(i)^2)"), seed, A=(2, 2))
    a, z = t["A"], t["z"]

    def over_reals(v):
        at = lifted(v)
        return flat((a @ at.conj()) * at**2)

    u = flat(z)
    columns = [oracle.slope(lambda h, d=d: over_reals(u + h * d)) for d in np.eye(len(u))]
    (k,) = t.cotangents()
    oracle.close(t.run(), lifted(np.array(columns) @ flat(k)), 1e-8)


def test_eq_46_the_pullback_of_the_conjugate_is_the_conjugate():
    assert str(pullback("(z::C) -> z'")) == "(z::C, k::C) -> k'"
    assert str(pullback("(z::CV) -> i -> z(i)'")) == "(z::CV, k::CV) -> i -> k(i)'"


def test_table_1_multiply_and_add():
    assert str(pullback("(v::C) -> (x::C) -> v * x")) == "(v::C) -> (x::C, k::C) -> v' * k"
    assert str(pullback("(v::C) -> (x::C) -> v + x")) == "(v::C) -> (x::C, k::C) -> k"


@pytest.mark.parametrize("size", [0, 1, 4])
def test_table_1_contract(size):
    """Σ ↦ (x, k) ↦ (i ↦ k)."""
    d = pullback("(x::CV) -> sum(i, x(i))")
    assert oracle.slot_names(d) == [("i",)]
    assert d.matrix_text() == "k 𝟏"
    oracle.close(d.compile()(np.zeros(size, complex), 2 - 1j), (2 - 1j) * np.ones(size))
