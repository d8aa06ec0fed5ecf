"""Eq. 28–30: the pullback of a root of an equation, and of the inverse of a linear map; stationary points."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import program_text
from tests.thinned import thinned

from . import oracle

CUBIC = "(a::R) -> begin y = root((x::R) -> x^3 + x - a); y end"
CUBICS = "(a::RV) -> sum(i, root((x::R) -> x^3 + x - a(i))^2)"
MINIMISER = """(c::RV) -> (A::RM, b::RV) -> begin
  f = (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j)) / 2 - sum(i, b(i) * x(i))
  x = root((x::RV) -> grad(f)(x))
  sum(i, c(i) * x(i))
end"""
SOLUTION = "(c::RV) -> (A::RM, b::RV) -> sum(i, c(i) * inverse((x::RV) -> i -> sum(j, A(i, j) * x(j)))(b)(i))"
LAYER = oracle.example("implicit")
ENVELOPE = """(p::RV) -> begin
  f = (x::RV, p::RV) -> sum(i, x(i)^4 / 4 + x(i)^2 + p(i) * x(i)) + sum(i, p(i) * x(i))^2
  x = root((x::RV) -> grad((x::RV) -> f(x, p))(x))
  f(x, p)
end"""
HOLOMORPHIC = "(a::C) -> abs2(root((z::C) -> z^3 / 8 + 2 * z - a))"
CONJUGATING = "(a::C) -> abs2(root((z::C) -> 3 * z + z' * z^2 + z' - a))"
SYLVESTER = """(A::RM, B::RM) -> (F::RM) -> begin
  X = inverse((X::RM) -> (i, k) -> sum(j, A(i, j) * X(j, k)) + sum(j, X(i, j) * B(j, k)))(F)
  sum((i, k), X(i, k)^3)
end"""
COMPLEX_SOLUTION = "(A::CM, b::CV) -> sum(i, abs2(inverse((x::CV) -> i -> sum(j, A(i, j) * x(j)))(b)(i)))"
REAL_LINEAR = "(A::CM, b::CV) -> sum(i, abs2(inverse((x::CV) -> i -> sum(j, A(i, j) * x(j)) + 2 * x(i)')(b)(i)))"
NESTED = "(a::R) -> root((x::R) -> x + root((z::R) -> z^3 + z - a * x) - a)"
PROGRAMS = {
    "cubic": CUBIC,
    "cubics": CUBICS,
    "minimiser": MINIMISER,
    "solution": SOLUTION,
    "layer": LAYER,
    "envelope": ENVELOPE,
    "holomorphic": HOLOMORPHIC,
    "conjugating": CONJUGATING,
    "Sylvester": SYLVESTER,
    "complex solution": COMPLEX_SOLUTION,
    "real-linear": REAL_LINEAR,
    "nested": NESTED,
}
gradient = cache(cd.grad)


def diagonally_dominant(rng, n):
    return rng.normal(size=(n, n)) / n + 3 * np.eye(n)


def test_eq_30_the_pullback_of_a_root_by_its_map():
    d = cd.pullback("(g::RF) -> root(g)")
    assert oracle.squeezed(d) == oracle.squeezed(
        "(g::RF, k::R) -> (d::R) -> begin s = root(g); delta(s, d, -k / grad(g)(s)) end"
    ).replace(";", "")


def test_eq_29_the_raw_pullback_reads_like_the_equation():
    raw = next(step for step in gradient(CUBIC).steps if step.name == "raw pullback")
    # the cotangent of y is the number 1
    assert "λ = -inverse((v::R) -> 3 * y^2 * v + v)(1)" in str(raw)


@pytest.mark.slow
def test_the_slope_of_the_root_of_a_cubic():
    assert oracle.squeezed(gradient(CUBIC)) == oracle.squeezed(
        "(a::R) -> begin y = root((x::R) -> x^3 + x - a) 1 / (1 + 3 * y^2) end"
    )
    y = 1.7
    oracle.close(gradient(CUBIC).compile()(y**3 + y), 1 / (3 * y**2 + 1))


@pytest.mark.slow
def test_the_curvature_of_the_root_of_a_cubic():
    y, k = 0.6, 2.5
    oracle.close(cd.hvp(CUBIC).compile()(y**3 + y, k), -6 * y * k / (3 * y**2 + 1) ** 3)


@pytest.mark.slow
def test_roots_in_a_sum_are_those_of_one_equation():
    d = gradient(CUBICS)
    assert "v = root((x::RV) -> i -> x(i) + x(i)^3 - a(i))" in str(d)
    y = np.array([0.3, -1.1, 0.0, 2.0])
    oracle.close(d.compile(value=True)(y**3 + y), (np.sum(y**2), 2 * y / (3 * y**2 + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("size", (1, 2, 5))
@pytest.mark.parametrize("text", [MINIMISER, SOLUTION])
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_minimiser_of_a_quadratic_by_its_coefficients(seed, size, text):
    rng = np.random.default_rng(seed)
    A, b, c = diagonally_dominant(rng, size), rng.normal(size=size), rng.normal(size=size)
    matrix = (A + A.T) / 2 if text is MINIMISER else A
    x, adjoint = np.linalg.solve(matrix, b), np.linalg.solve(matrix.T, c)
    by_A = -np.outer(adjoint, x)
    by_A = (by_A + by_A.T) / 2 if text is MINIMISER else by_A
    oracle.close(gradient(text).compile()(c, A, b), (by_A, adjoint))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a::R, b::R) -> root((x::R) -> a * x - b)", "b / a"),
        (
            "(a::R, b::R) -> root((x::R) -> a * (x - b) + exp(b) * (2 * x + 1))",
            "a * b / (a + 2 * exp(b)) - 1 / (2 + a * exp(-b))",
        ),
        ("(a::C, b::C) -> root((x::C) -> a * x - b')", "b' / a"),
        ("(a::RV, b::RV) -> i -> root((x::R) -> a(i) * x - b(i))", "b(i) / a(i)"),
        ("(a::RV, b::RV) -> root((x::RV) -> i -> a(i) * x(i) - b(i))", "b(i) / a(i)"),
        ("(a::RV, b::RV) -> root((x::R) -> grad((x::R) -> sum(i, (a(i) * x - b(i))^2))(x))", None),
    ],
)
def test_an_affine_equation_of_one_number_is_solved(text, expected):
    d = cd.simplified(text)
    assert "root" not in str(d)
    if expected:
        left, unknowns = str(d), text.split(" -> ")[0]
        index = "i -> " if "(i)" in expected else ""
        same = oracle.squeezed(cd.simplified(f"{unknowns} -> {index}{expected}"))
        assert oracle.squeezed(left).replace("d1", "i") == same
    else:
        oracle.close(d.compile()(np.array([1.0, 2.0]), np.array([3.0, 1.0])), 1.0)


@pytest.mark.parametrize(
    "text", ["(a::R, b::R) -> root((x::R) -> a * x - b)^2", "(a::C) -> abs2(root((z::C) -> a * z - a^2 - 1))"]
)
def test_the_gradient_of_a_solved_root_is_that_of_the_root_that_newton_finds(text):
    """The value that is differenced comes from Newton's method, not from the solution."""
    d = gradient(text)
    assert "root" not in str(d) and "inverse" not in str(d)
    assert d.check()
    assert d.compile(value=True)(*[1.5] * len(d.objective.params))


@pytest.mark.parametrize(
    "equation", ["x^2 - a", "abs(x) - a", "where(x < a, x, 2 * x) - a", "exp(x) + x - a", "max(x, a) - 1"]
)
def test_other_equations_keep_their_root(equation):
    assert "root" in str(cd.simplified(f"(a::R) -> root((x::R) -> {equation})"))


@pytest.mark.parametrize("entry", ["a(i) * x(i) - x(0)", "x(i) + sum(j, x(j)) - a(i)", "x(i) * x(i) - a(i)"])
def test_a_system_whose_entries_depend_on_one_another_keeps_its_root(entry):
    assert "root" in str(cd.simplified(f"(a::RV) -> root((x::RV) -> i -> {entry})"))


@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_envelope_theorem_where_the_minimum_is_solved_for(seed):
    """The root is solved for after the derivative was taken: of the minimum only the explicit part is left."""
    d = gradient("""(a::RV) -> (p::RV) -> begin
      f = (t::R, p::RV) -> sum(i, (a(i) * t - p(i))^2)
      t = root((t::R) -> grad((t::R) -> f(t, p))(t))
      f(t, p)
    end""")
    a, p = np.random.default_rng(seed).normal(size=(2, 4))
    oracle.close(d.compile()(a, p), 2 * (p - a * (a @ p) / (a @ a)))
    assert str(d).count("sum(") == 2 and "root" not in str(d)


def test_an_equation_with_the_conjugate_keeps_its_root():
    assert "root" in str(cd.simplified("(a::C) -> root((z::C) -> 2 * z + z' - a)"))


@pytest.mark.slow
def test_code_for_a_linear_system_is_what_one_would_write():
    lines = gradient(SOLUTION).source().split('"""')[-1]
    assert "t1 = lu_factors(A)" in lines and lines.count("lu_factors") == 1
    assert "lu_solution(t1, b)" in lines and "lu_solution(t1, c, adjoint=True)" in lines
    assert "newton" not in lines


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_an_implicit_layer(seed):
    rng = np.random.default_rng(seed)
    W, b, Y = rng.normal(size=(4, 4)) / 4, rng.normal(size=4), rng.normal(size=4)
    x = np.zeros(4)
    for _ in range(200):
        x = np.tanh(W @ x + b)
    slope = 1 - np.tanh(W @ x + b) ** 2
    adjoint = np.linalg.solve(np.eye(4) - (slope[:, None] * W).T, x - Y)
    value, by_W, by_b = gradient(LAYER).compile(value=True)(Y, W, b)
    oracle.close(value, np.sum((x - Y) ** 2) / 2)
    oracle.close((by_W, by_b), (np.outer(adjoint * slope, x), adjoint * slope))


@pytest.mark.slow
@pytest.mark.parametrize("seed", oracle.SEEDS)
def test_the_envelope_theorem(seed):
    """The gradient of min f(x, p) by p is that of f at the minimum, the minimum held fixed."""
    p = np.random.default_rng(seed).normal(size=3)
    value, found = gradient(ENVELOPE).compile(value=True)(p)
    x = np.zeros(3)
    for _ in range(50):
        g = x**3 + 2 * x + p + 2 * (p @ x) * p
        x = x - np.linalg.solve(np.diag(3 * x**2 + 2) + 2 * np.outer(p, p), g)
    oracle.close(found, x + 2 * (p @ x) * x)
    oracle.close(value, np.sum(x**4 / 4 + x**2 + p * x) + (p @ x) ** 2)


@pytest.mark.slow
def test_a_start_chooses_the_root():
    run = gradient("(a::R) -> root((x::R) -> x^2 - a)").compile()
    assert run(4.0, start_x=1.0) == pytest.approx(0.25)
    assert run(4.0, start_x=-1.0) == pytest.approx(-0.25)


@pytest.mark.slow
@pytest.mark.parametrize("size", (0, 1))
def test_equations_of_no_unknowns_and_of_one(size):
    y = np.linspace(0.5, 1.0, size)
    oracle.close(gradient(CUBICS).compile()(y**3 + y), 2 * y / (3 * y**2 + 1))
    A, b = 2 * np.eye(size), np.ones(size)
    oracle.close(gradient(SOLUTION).compile()(np.ones(size), A, b), (-np.outer(b / 2, b / 2), b / 2))


@pytest.mark.slow
@pytest.mark.parametrize("start", [None, 1.0])
def test_an_equation_without_a_root_is_told(start):
    run = gradient("(a::R) -> root((x::R) -> x^2 + a)").compile()
    with pytest.raises(cd.CombDiffError) as refusal:
        run(4.0, start_x=start)
    assert "start" in refusal.value.remedy


def test_a_singular_system_is_told():
    with pytest.raises(cd.CombDiffError, match="no unique solution"):
        gradient(SOLUTION).compile()(np.ones(2), np.ones((2, 2)), np.ones(2))


@pytest.mark.slow
def test_emitted_solvers_stand_alone():
    text = gradient(CONJUGATING).source()
    assert [line for line in text.splitlines() if "import" in line] == ["import numpy as np"]
    assert text.count("def newton_of_parts(") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", thinned(oracle.SEEDS))
def test_every_implicit_gradient_agrees_with_differences(seed, name):
    report = gradient(PROGRAMS[name]).check(seed)
    compared = [finding.what for finding in report.findings]
    assert report and compared[:2] == ["finite differences", "emitted NumPy code"], str(report)


@pytest.mark.long
@pytest.mark.parametrize("name", ["cubic", "cubics", "layer", "solution", "conjugating", "nested"])
def test_second_derivatives_agree_with_differences(name):
    assert cd.hvp(PROGRAMS[name]).check()


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_implicit_gradients_parse_back(name):
    written = str(gradient(PROGRAMS[name]))
    assert program_text(infer(parse(written))) == written


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_of_an_implicit_gradient_was_checked(name):
    assert [step.note for step in gradient(PROGRAMS[name]).steps if "not checked" in step.note] == []


@pytest.mark.slow
def test_a_root_by_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def layer(W, b, Y):
        x = jnp.zeros(3)
        for _ in range(300):
            x = jnp.tanh(W @ x + b)
        return jnp.sum((x - Y) ** 2) / 2

    rng = np.random.default_rng(3)
    W, b, Y = rng.normal(size=(3, 3)) / 4, rng.normal(size=3), rng.normal(size=3)
    expected = jax.grad(layer, argnums=(0, 1))(W, b, Y)
    oracle.close(gradient(LAYER).compile()(Y, W, b), tuple(map(np.asarray, expected)), 1e-8)
