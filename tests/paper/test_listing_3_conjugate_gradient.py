"""Listing 3: the step sizes of conjugate gradients, with R unknown (Eq. 48) and with R substituted (Eq. 49–51)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd

from . import oracle

TEXT = oracle.example("conjugate_gradient")
SIZES = (0, 1, 4)
gradient = cache(cd.grad)


def theory():
    return gradient(TEXT, keep=("R",))


def by_hand(t):
    """(pₖᵀ (A xₙ − b), α pᵀ (A xₙ − b)) with pₖ = r + β p and xₙ = x + α pₖ."""
    step = t["r"] + t["beta"] * t["p"]
    residual = t["A"] @ (t["x"] + t["alpha"] * step) - t["b"]
    return step @ residual, t["alpha"] * (t["p"] @ residual)


def with_residual(seed, size):
    """A trial in which the user gives the derivative of R."""
    given = oracle.trial(theory(), seed, A=(size, size))
    return oracle.trial(theory(), seed, {"grad_R": lambda x: given["A"] @ x - given["b"]}, A=(size, size))


def test_eq_48_keeps_the_unknown_function():
    d = theory()
    assert "grad(R)(" in str(d)
    first, second = d.matrix_text().splitlines()
    assert first == "R = x1 ↦ 1/2 x1ᵀ A x1 - x1ᵀ b"
    assert second == "(∇R(x + alpha (r + beta p))ᵀ (r + beta p), alpha ∇R(x + alpha (r + beta p))ᵀ p)"


def test_eq_48_in_latex():
    tex = theory().latex(form="matrix")
    point = r"\nabla R(x + \alpha (r + \beta p))^{\mathsf{T}}"
    assert rf"({point} (r + \beta p), \alpha {point} p)" in tex
    assert r"R = x_{1} \mapsto \frac{1}{2} x_{1}^{\mathsf{T}} A x_{1} - x_{1}^{\mathsf{T}} b" in tex


def test_eq_48_is_a_program_that_reads_back():
    again = cd.grad(TEXT, keep="R")
    assert str(again) == str(theory())
    assert str(theory()).startswith("(A::Sym, r::RV, p::RV, b::RV, x::RV) -> (alpha::R, beta::R) -> begin\n")


def test_eq_49_names_the_residual_at_the_new_point():
    residual, derivatives = gradient(TEXT).matrix_text().splitlines()
    assert residual == "v = A (x + alpha (r + beta p)) - b"
    assert derivatives == "((r + beta p)ᵀ v, alpha pᵀ v)"


def test_eq_49_has_no_unknown_function_and_no_delta():
    assert "grad(" not in str(gradient(TEXT))
    assert not oracle.has_delta(gradient(TEXT))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_48_as_numbers_with_the_derivative_given_by_the_user(seed, size):
    t = with_residual(seed, size)
    oracle.close(t.result(), by_hand(t))
    oracle.close(t.run(), by_hand(t))
    oracle.agrees_with_differences(t)


@pytest.mark.sampled
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_49_as_numbers(seed, size):
    t = oracle.trial(gradient(TEXT), seed, A=(size, size))
    oracle.close(t.result(), by_hand(t))
    oracle.close(t.run(), by_hand(t))
    oracle.agrees_with_differences(t)


def a_step(seed):
    """A, r, p, b, x and the step sizes of a step of conjugate gradients, where r is orthogonal to p."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((4, 4))
    a, b, x, p = root @ root.T + np.eye(4), rng.standard_normal(4), rng.standard_normal(4), rng.standard_normal(4)
    r = a @ x - b
    p = p - r * (p @ r) / (r @ r)
    beta = -(r @ a @ p) / (p @ a @ p)
    step = r + beta * p
    alpha = -(r @ r) / (step @ a @ step)
    return a, r, p, b, x, alpha, beta


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_50_and_51_the_step_sizes_of_conjugate_gradients_are_stationary(seed):
    a, r, p, b, x, alpha, beta = a_step(seed)
    oracle.close(gradient(TEXT).compile("numpy")(a, r, p, b, x, alpha, beta), (0.0, 0.0))


OBJECTIVE = "R = (x::RV) -> sum((i, j), 0.5 * x(i) * A(i, j) * x(j)) - sum(i, x(i) * b(i))"


def step_size(name, other):
    """The step size at which the derivative of R(x + alpha (r + beta p)) by it vanishes, the other one being given."""
    return cd.simplified(f"""(A::Sym, r::RV, p::RV, b::RV, x::RV, {other}::R) -> begin
      {OBJECTIVE}
      root(({name}::R) -> grad(({name}::R) -> R(i -> x(i) + alpha * (r(i) + beta * p(i))))({name}))
    end""")


@pytest.mark.slow
def test_eq_50_the_step_size_is_solved_for():
    """alpha = pₖᵀ (b − A x) / pₖᵀ A pₖ, with pₖ = r + beta p."""
    d = step_size("alpha", "beta")
    assert d.matrix_text() == "((r + beta p)ᵀ A (r + beta p))^(-1) (b - A x)ᵀ (r + beta p)"
    assert "root" not in str(d)


@pytest.mark.slow
def test_eq_51_the_share_of_the_last_direction_is_solved_for():
    """beta = (bᵀ − xᵀ A − alpha rᵀ A) p / alpha pᵀ A p."""
    d = step_size("beta", "alpha")
    assert d.matrix_text() == "alpha^(-1) (pᵀ A p)^(-1) pᵀ (b - A (x + alpha r))"
    assert "root" not in str(d)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_50_and_51_with_the_residual_orthogonal_to_the_last_direction(seed):
    """alpha = −rᵀr / pₖᵀ A pₖ and beta = −rᵀ A p / pᵀ A p: the paper has the other sign."""
    a, r, p, b, x, alpha, beta = a_step(seed)
    oracle.close(step_size("alpha", "beta").compile()(a, r, p, b, x, beta), alpha)
    for other in (alpha, 0.7):
        # whatever the step is, beta is the same
        oracle.close(step_size("beta", "alpha").compile()(a, r, p, b, x, other), beta)


TOGETHER = f"""(A::Sym, p::RV, b::RV, x::RV) -> begin
  {OBJECTIVE}
  r = grad(R)(x)
  along = (alpha::R) -> root((gamma::R) -> grad((gamma::R) -> R(i -> x(i) + alpha * r(i) + gamma * p(i)))(gamma))
  alpha = root((alpha::R) -> grad((alpha::R) -> R(i -> x(i) + alpha * r(i) + along(alpha) * p(i)))(alpha))
  (alpha, along(alpha) / alpha)
end"""
"""Both step sizes: gamma = alpha beta is solved for in terms of alpha, and then alpha."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_eq_50_and_51_are_solved_together(seed):
    d = cd.simplified(TOGETHER)
    assert "root" not in str(d)
    assert "(rᵀ A r - (pᵀ A p)^(-1) (pᵀ A r)^2)^(-1)" in d.matrix_text()
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((4, 4))
    a, b, x, p = root @ root.T + np.eye(4), rng.standard_normal(4), rng.standard_normal(4), rng.standard_normal(4)
    r = a @ x - b
    p = p - r * (p @ r) / (r @ r)
    beta = -(r @ a @ p) / (p @ a @ p)
    step = r + beta * p
    oracle.close(d.compile()(a, p, b, x), (-(r @ r) / (step @ a @ step), beta))


@pytest.mark.slow
def test_conjugate_gradients_with_these_step_sizes_end_after_as_many_steps_as_unknowns():
    rng = np.random.default_rng(5)
    root = rng.standard_normal((5, 5))
    a, b, x, p = root @ root.T + np.eye(5), rng.standard_normal(5), np.zeros(5), np.zeros(5)
    of_alpha, of_beta = step_size("alpha", "beta").compile(), step_size("beta", "alpha").compile()
    for n in range(5):
        r = a @ x - b
        beta = of_beta(a, r, p, b, x, 1.0) if n else 0.0
        x = x + of_alpha(a, r, p, b, x, beta) * (r + beta * p)
        p = r + beta * p
    oracle.close(a @ x, b)


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_both_step_sizes_by_jax(seed):
    t = oracle.trial(gradient(TEXT), seed, A=(3, 3))

    def f(alpha, beta):
        at = t["x"] + alpha * (t["r"] + beta * t["p"])
        return at @ t["A"] @ at / 2 - at @ t["b"]

    oracle.close(t.run(), oracle.jax_gradient(f, t["alpha"], t["beta"]))
