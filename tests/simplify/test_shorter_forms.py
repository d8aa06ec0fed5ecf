"""Forms in which experts write derivatives: deviations from a mean sum to zero, a Rayleigh quotient has a name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.simplify.laws.centred import without_deviations
from combdiff.terms.terms import MINUS_ONE, App, Term, Var, add, fresh, mul, total
from combdiff.terms.types import REAL, Domain, Index, Map

MEAN = "m = sum(i, x(i)) / sum(i::N{n}, 1); "

FORMS = {
    "variance": (f"(x::RV{{n}}) -> begin; {MEAN}sum(i, (x(i) - m)^2); end", "i -> 2 * (x(i) - m)"),
    "mean not named": (
        "(x::RV{n}) -> sum(i, (x(i) - sum(i, x(i)) / sum(i::N{n}, 1))^2)",
        "i -> 2 * (x(i) - sum(i1, x(i1)) / n)",
    ),
    "a factor beside a mean": (
        "(a::RV{n}) -> (x::RV{n}) -> sum(i, x(i) - mean(j, x(j))) * sum(i, a(i) * x(i)) + sum(i, a(i) * x(i)^2)",
        "i -> 2 * a(i) * x(i)",
    ),
    "weighted mean": (
        "(x::RV{n}, w::RV{n}) -> begin; m = sum(i, w(i) * x(i)) / sum(i, w(i)); sum(i, w(i) * (x(i) - m)^2); end",
        "(i -> 2 * w(i) * (x(i) - m), i -> (x(i) - m)^2)",
    ),
    "means of rows": (
        "(x::RM{n, k}) -> begin; m = b -> sum(i, x(b, i)) / sum(i::N{k}, 1); sum((b, i), (x(b, i) - m(b))^2); end",
        "(b, i) -> 2 * (x(b, i) - m(b))",
    ),
    "deviations of values": (
        "(A::RM{n, k}) -> (x::RV{k}) -> begin; u = i -> sum(j, A(i, j) * x(j)); m = sum(i, u(i)) / sum(i::N{n}, 1)\n"
        "sum(i, (u(i) - m)^2); end",
        "j -> 2 * sum(i, A(i, j) * (u(i) - m))",
    ),
    "Rayleigh quotient": (
        "(A::Sym) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j)) / sum(i, x(i)^2)",
        "i -> 2 * (sum(j, A(i, j) * x(j)) - t * x(i)) / s",
    ),
    "Rayleigh quotient, complex": (
        "(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j)) / sum(i, x(i)' * x(i))",
        "i -> 2 * (sum(j, A(i, j) * x(j)) - t * x(i)) / s",
    ),
    "a residual whose weights are varied": (
        "(Y::RM{n, p}, X::RM{n, q}) -> (B::RM{q, p}, W::SPD{p}) -> tr((Y - X*B) * W * (Y - X*B)')",
        "((j, k) -> -2 * sum((i, k1), X(i, j) * W(k, k1) * P(i, k1)), (j, k) -> sum(i, P(i, j) * P(i, k)))",
    ),
    "a residual of a vector": (
        "(y::RV{n}, X::RM{n, q}) -> (b::RV{q}, W::SPD{n}) -> (y - X*b)' * W * (y - X*b)",
        "(j -> -2 * sum((i, j1), X(i, j) * W(j1, i) * v(j1)), (i, j) -> v(i) * v(j))",
    ),
    "cosine": (
        "(y::RV) -> (x::RV) -> sum(i, x(i) * y(i)) / sqrt(sum(i, x(i)^2) * sum(i, y(i)^2))",
        "i -> (y(i) - t * x(i)) / sqrt(s)",
    ),
    "symmetric system": (
        "(A::Sym) -> (m::RV) -> sum(i, m(i) * inverse((y::RV) -> i -> sum(j, A(i, j) * y(j)))(m)(i))",
        "i -> 2 * v(i)",
    ),
    "distances of pairs": (
        "(k::Sym) -> (x::RM) -> sum((i, j), k(i, j) * norm(c -> x(i, c) - x(j, c)))",
        "(i, c) -> 2 * sum(j, k(i, j) * (x(i, c) - x(j, c)) * "
        "where(0 < norm(c1 -> x(i, c1) - x(j, c1)), 1 / norm(c1 -> x(i, c1) - x(j, c1))))",
    ),
    "distances of complex points": (
        "(z::CM) -> sum((i, j), exp(-norm(c -> z(i, c)' - z(j, c)')^2))",
        "(i, c) -> -4 * sum(j, (z(i, c) - z(j, c)) * exp(-sum(c1, abs2(z(i, c1)' - z(j, c1)'))))",
    ),
    "symmetric system with a name": (
        "(A::Sym) -> (m::RV) -> begin; x = inverse((y::RV) -> i -> sum(j, A(i, j) * y(j)))(m)\n"
        "sum(i, m(i) * x(i)); end",
        "i -> 2 * x(i)",
    ),
    "gamma regression, a sum of one factor beside a sum of two": (
        "(X::RM, y::RV) -> (b::RV) -> begin; m = i -> exp(sum(j, X(i, j) * b(j)))\n"
        "-sum(i, log(m(i)) + y(i) / m(i)); end",
        "j -> sum(i, X(i, j) * (y(i) / m(i) - 1))",
    ),
    "a number in front of a sum of one factor": (
        "(y::RV{n}, w::RV{n}) -> (f::R) -> -sum(i, (f + y(i)) * log(f + w(i))) + sum(i, log(f + w(i)))",
        "sum(i, (1 - y(i) - f) / (f + w(i)))",
    ),
    "a scale that is an exponential": (
        "(y::RV{n}) -> (ls::R) -> begin; s = exp(ls); sum(i, -log(s) - y(i)^2 / (2 * s^2)); end",
        "sum(i, y(i)^2) / s^2 - n",
    ),
    "a length that is an exponential": (
        "(d::RV{n}) -> (lh::R) -> begin; h = exp(lh); sum(i, (1 + d(i) / h) * exp(-d(i) / h)); end",
        "sum(i, d(i)^2 * exp(-d(i) / h)) / h^2",
    ),
    "saturation, with the quotient rule over one denominator": (
        "(V::RV, K::RV) -> (s::RV) -> sum(i, V(i) * s(i) / (K(i) + s(i)))",
        "i -> V(i) * K(i) / (K(i) + s(i))^2",
    ),
    "a denominator with a name": (
        "(V::R, K::R) -> (s::R) -> begin; q = K + s; V * s / q; end",
        "V * K / q^2",
    ),
    "a denominator of four terms": (
        "(a::R, b::R, c::R) -> (x::R) -> a * x / (x + a + b + c)",
        "a * (a + b + c) / (x + a + b + c)^2",
    ),
    "a denominator of four terms with a name": (
        "(a::R, b::R, c::R) -> (x::R) -> begin; q = x + a + b + c; a * x / q; end",
        "a / q * (1 - x / q)",
    ),
    "a square root of a denominator": ("(x::R) -> x / sqrt(1 + x^2)", "-> 1 / sqrt(1 + x^2)^3"),
    "a quotient of sums": ("(a::R, b::R) -> (x::R) -> (a * x + b) / (b * x + a)", "(a^2 - b^2) / (b * x + a)^2"),
    "a reflection coefficient": (
        "(A::C) -> (B::C) -> abs2((B - A) / (B + A))",
        "4 * A' * (B - A) / (B + A) / (B' + A')^2",
    ),
    "quotients under one sum": ("(K::RV) -> (p::R) -> sum(i, K(i) * p / (1 + K(i) * p))", "K(i) / (1 + p * K(i))^2"),
    "a sum as a term of the denominator": (
        "(K::R) -> (c::RV) -> sum(i, c(i)) / (K + sum(i, c(i)))",
        "K / (K + sum(i1, c(i1)))^2",
    ),
    "what is not divided stays beside a quotient": ("(x::R) -> x + log(1 + x) * x", "1 + x / (1 + x) + log(1 + x)"),
    "entries of one row, under one condition": (
        "(x::RV{n}, y::RV{n}) -> (w::RM{n, 2}) -> sum(i, w(i, 0) * x(i) + w(i, 0)^2 * y(i) + sin(w(i, 0)))",
        "x(i) + 2 * y(i) * w(i, 0) + cos(w(i, 0)))",
    ),
    "a diagonal, under one condition": (
        "(x::RV{n}, y::RV{n}) -> (A::RM{n, n}) -> sum(i, A(i, i) * x(i) + A(i, i)^2 * y(i))",
        "delta(i, d, x(i) + 2 * y(i) * A(i, i))",
    ),
    "a row of a known range": (
        "(A::RM{3, n}) -> (x::R) -> sum((i, j), where(i == 0, x, 2) * A(i, j))",
        "sum(j, A(0, j))",
    ),
    "the last row of a known range": (
        "(A::RM{3, n}) -> (x::R) -> sum((i, j), where(i < 2, 2, x) * A(i, j))",
        "sum(j, A(2, j))",
    ),
    "the rows of a map of three": (
        "(A::RM{3, n}) -> (x::R, y::R) -> begin\n"
        "R = (i::N{3}) -> where(i == 0, x * y, where(i == 1, x^2, y^2)); sum((i, j), R(i)^2 * A(i, j)); end",
        "(y * R_bar(0) + 2 * x * R_bar(1), x * R_bar(0) + 2 * y * R_bar(2))",
    ),
    "the first entry of a range that has one": (
        "(w::RV{n}) -> (a::R, y::RV{n + 1}) -> sum((i::N{n + 1}), where(i == 0, a) * y(i)) + sum(i, w(i))",
        "(y(0),",
    ),
    "real parts with a factor in common": (
        "(a::RV, x::CV, y::CV, z::CV) -> (s::R) -> "
        "s * (sum(k, a(k) * real(x(k)' * y(k))) + 3 * sum(k, a(k) * real(x(k)' * z(k))))",
        "sum(k, a(k) * real(x(k)' * (y(k) + 3 * z(k))))",
    ),
    "what is never negative": (
        "(x::RV) -> (a::C) -> sum(i, x(i)) * relu(abs(a)) + max(abs2(a), 0) - min(0, abs(a)) + max(0, relu(x(0)))",
        "-> sign(a) * sum(i, x(i)) + 2 * a",
    ),
    "a phase that cancels": (
        "(y::CV) -> (W::CV, p::R) -> -sum(k, log(1 + abs2(exp(im * p) * W(k) * y(k))))",
        "-2 * y(k) * y(k)' * W(k) / (1 + abs2(y(k) * W(k) * exp(im * p)))",
    ),
    "a number in a delta and one in front": (
        "(z::RM{n, d}) -> (S::Sym{d}) -> sum((m, i, j), z(m, i) * S(i, j) / sqrt(S(i, i) * S(j, j)) * z(m, j))",
        "- sum((i1, m), delta(i, j, z(m, i) * z(m, i1)",
    ),
}


def test_an_exponential_of_another_value_has_no_name() -> None:
    """Values of one form are merged once, but only one of these exponentials has a name."""
    d = cd.grad("(a::R, b::R) -> begin; m = exp(a); c = exp(a) * a; e = exp(b) * b; m^2 + sin(c) * cos(e); end")
    assert "e = b * exp(b)" in str(d)
    assert d.check()


@pytest.mark.sampled
@pytest.mark.parametrize("title", FORMS)
def test_the_derivative_reads_as_an_expert_writes_it(title: str) -> None:
    program, form = FORMS[title]
    d = cd.grad(program)
    assert form in " ".join(str(d).split())
    assert d.check()


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("real(-im * v) + im * real(v) + real(v * sign(a'))", "imag(v) + im * real(v) + real(v * sign(a'))"),
        ("im * real(v * a) + 2 * im * real(v * sign(a))", "im * real(v * (a + 2 * sign(a)))"),
        ("(1 + im) * real(v * a) + real(v * sign(a))", "(1 + im) * real(a * v) + real(v * sign(a))"),
        ("real(im * v * a) + real(im * v * a)", "-2 * imag(a * v)"),
    ],
)
def test_a_real_part_times_i_is_no_real_part(text: str, form: str) -> None:
    d = cd.simplified(f"(a::C) -> (v::C) -> {text}")
    assert str(d).endswith(f"-> {form}")
    assert d.check()


@pytest.mark.parametrize("value", [False, True])
@pytest.mark.parametrize("rate", ["v * s / (k + s)", "begin; q = k + s; v * s / q; end", "v - v * k / (k + s)"])
def test_the_slope_of_a_saturated_rate_keeps_its_digits(rate: str, value: bool) -> None:
    gradient = cd.grad(f"(v::R, k::R) -> (s::R) -> {rate}").compile(value=value)
    for s in (1e-9, 1.0, 1e6, 1e12):
        found = gradient(2.0, 3.0, s)
        assert np.isclose(found[1] if value else found, 6 / (3 + s) ** 2, rtol=1e-14)


ALL_NEGATIVE = {
    "x * (-b - c / 2)": "-x * (b + 1/2 * c)",
    "(-b - c)^2": "(b + c)^2",
    "(-b - c / 2)^3": "-(b + 1/2 * c)^3",
    "-sum(i::N{3}, x^i * (-b - c * i / 2))": "sum(i::N{3}, x^i * (b + 1/2 * c * i))",
}


@pytest.mark.parametrize("text", ALL_NEGATIVE)
def test_a_sum_has_not_a_minus_before_each_term(text: str) -> None:
    assert str(cd.simplified(f"(b::R, c::R, x::R) -> {text}")).split("-> ")[-1] == ALL_NEGATIVE[text]


POWERS_OF_QUOTIENTS = {
    "(c::R, k::R) -> (b::R) -> ((k * b - c) / (k * b + c))^2": "4 * c * k * (k * b - c) / (k * b + c)^3",
    "(c::R) -> (b::R) -> ((b - c) / (b + c))^3": "6 * c * (b - c)^2 / (b + c)^4",
    "(c::C, k::R) -> (b::C) -> abs2((k * b - c) / (k * b + c))": (
        "4 * c' * k * (k * b - c) / (k * b + c) / (k * b' + c')^2"
    ),
}


@pytest.mark.parametrize("text", POWERS_OF_QUOTIENTS)
def test_the_gradient_of_a_power_of_a_quotient_keeps_its_digits(text: str) -> None:
    """(b − c) / (b + c)² − (b − c)² / (b + c)³ loses digits where b is much larger than c."""
    d = cd.grad(text)
    assert str(d).split("-> ")[-1] == POWERS_OF_QUOTIENTS[text]
    assert d.check()


@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 5, 7))])
def test_deviations_from_another_mean_are_kept(n: int) -> None:
    """Σ v(i) (x(i) − m) is not zero for the mean with weights w, nor Σ (x(i) − m) then."""
    program = (
        "(w::RV{n}, v::RV{n}) -> (x::RV{n}) -> begin; m = sum(i, w(i) * x(i)) / sum(i, w(i))\n"
        "sum(i, v(i) * (x(i) - m)^2) + sum(i, (x(i) - m)^2)^2; end"
    )

    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def objective(w: Any, v: Any, x: Any) -> Any:
        m = jnp.sum(w * x) / jnp.sum(w)
        return jnp.sum(v * (x - m) ** 2) + jnp.sum((x - m) ** 2) ** 2

    rng = np.random.default_rng(n)
    data = [rng.uniform(0.5, 1.5, n) for _ in range(3)]
    with jax.enable_x64():
        expected = np.asarray(jax.grad(objective, argnums=2)(*data))
    assert np.allclose(cd.grad(program).compile()(*data), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_layer_normalisation_has_two_means_of_its_cotangent() -> None:
    d = cd.grad(
        "(y::RV{n}) -> (x::RV{n}) -> begin; m = sum(i, x(i)) / sum(i::N{n}, 1)\n"
        "v = sum(i, (x(i) - m)^2) / sum(i::N{n}, 1); sum(i, y(i) * (x(i) - m) / sqrt(v)); end"
    )
    assert str(d).count("sum(i1::N{n}, 1)") <= 3 and "x(i1) - m)) /" not in str(d)
    assert d.check()


@pytest.mark.slow
def test_an_overlap_and_its_image_under_index_arithmetic_are_one_term() -> None:
    """|Σ U' M U|² of overlaps M(p, q, k, b) = M(q, p, k + b, −b)': the two terms of the gradient are equal."""
    d = cd.grad(
        "@domain Z begin base = I; periodic = true end\n@domain X begin symmetric = true; contractable = false end\n"
        "@space M begin type = (N, N, Z, X) -> C; symmetries = (M -> (p, q, k, b) -> M(q, p, k + b, -b)',) end\n"
        "@space W begin type = (X,) -> R; symmetries = (((1,), :ineg),) end\n"
        "(M::M, w::W) -> pullback((U::(N, N, Z) -> C) -> -sum((m, n, k::Z, b::X), w(b) *\n"
        "  abs2(sum((p, q), U(p, m, k)' * M(p, q, k, b) * U(q, n, k + b)))))"
    )
    assert str(d).count("sum(") == 1 and "-4 * sum(" in str(d)
    assert d.check()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(x::R, k::R) -> x + (k - 1) * x", "(x::R, k::R) -> x * k"),
        ("(x::R, k::R, y::R) -> x * y + (k - 1) * x * y + y", "(x::R, k::R, y::R) -> y * (x * k + 1)"),
        ("(x::R, k::R) -> x + (k - 2) * x", "(x::R, k::R) -> x * (k - 1)"),
        ("(x::R, k::R) -> k * x + (k - 1) * x^2", "(x::R, k::R) -> x * k + x^2 * (k - 1)"),
    ],
)
def test_a_number_in_a_factor_takes_up_a_term(text: str, expected: str) -> None:
    assert str(cd.simplified(text)) == expected


def test_a_tower_of_products_of_values_is_not_multiplied_out() -> None:
    """A mean would have 2^60 factors."""
    n = Index(Domain("n"))
    x, i = fresh("x", Map((n,), REAL)), fresh("i", n)
    a, b = fresh("a", REAL), fresh("b", REAL)
    values: dict[Var, Term] = {}
    for level in range(60):
        c, d = fresh(f"c{level}", REAL), fresh(f"d{level}", REAL)
        values |= {c: mul(a, b), d: mul(a, b, b)}
        a, b = c, d
    deviations = total((i,), add(App(x, (i,)), mul(MINUS_ONE, a)))
    assert without_deviations(deviations, values) == deviations


PARTS = {
    "(κ::R, σ::R, ρ::R, φ::R) -> real(exp(im * φ * σ - im * ρ * σ * φ) / (im * κ))": [
        "(imag(t) / κ, φ * real(t) * (1 - ρ), -σ * φ * real(t), σ * real(t) * (1 - ρ))"
    ],
    "(a::RV, b::RV) -> (x::RV) -> abs2(sum(i, im * a(i) * x(i) + b(i)))": ["2 * a(i) * sum(i1, a(i1) * x(i1))"],
    "(b::R, z::CV) -> (a::R) -> sum(i, real(im * b * z(i) * exp(a * z(i))))": ["b * sum(i, imag("],
    "(r::R, T::R, u::R, S::R) -> (σ::R) -> real(exp(im * u * (log(S) + (r - σ^2 / 2) * T) - σ^2 * u^2 * T / 2) / u)": [
        "-T * σ * (imag(t) + u * real(t))"
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("program", PARTS)
def test_no_imaginary_unit_stands_in_front_of_what_a_real_part_is_taken_of(program: str) -> None:
    d = cd.grad(program)
    assert all(part in str(d) for part in PARTS[program])
    for part in ("real(im *", "real(-im *", "imag(im * u", "imag(-im *", "real(-1/2 * im"):
        assert part not in str(d)
    assert bool(d.check())
    assert str(cd.simplified(str(d))) == str(d)


def test_what_is_used_once_has_no_name_of_its_own() -> None:
    """A product of two numbers, or exp(-z), that a form of the result shares with others which were not chosen."""
    d = cd.grad("(a::RM{S, n}) -> (w::RV{n}) -> sum(s, exp(-sum(k, a(s, k) * w(k)))) / sum(w)")
    assert str(d).endswith("k -> -(sum(s, v(s)) / t + sum(s, a(s, k) * v(s))) / t\nend")
    lens = cd.grad("""(h::RV{n}, k::R) -> (R::R) -> begin
  b = i -> asin(h(i) / R)
  s = i -> tan(asin(k * sin(b(i))))
  sum(i, s(i)^2)
end""")
    assert not any(str(lens).count(f"{name}(i)") == 1 for name in "vwyz")
    assert lens.check()


@pytest.mark.parametrize(
    ("program", "gradient"),
    [
        (
            "(y::RV{N}) -> (c::RV{n}) -> sum(i::N{n}, 2 * i + 1 < N, "
            "(y(2 * i) - c(i) / sqrt(2))^2 + (y(2 * i + 1) - c(i) / sqrt(2))^2)",
            "-> i ->\n    where(2 * i + 2 <= N,",
        ),
        (
            "(s::R) -> (x::RM{n, m}) -> s * sum((i, j), i < n - 1 and j < m - 1, sqrt(1 + (x(i+1, j) - x(i, j))^2))",
            "where(1 <= i and j < m - 1,",
        ),
        (
            "(c::(N{e}) -> N{n}) -> (x::RV{n}) -> begin s = e -> x(c(e))^2 / n; sum(e, max(s(e), s(e) / 5)^2) end",
            "x(c(e)) * v(e) * (3 + 2 * sign(s(e)))",
        ),
    ],
    ids=["a number in front of one of two", "a condition under another one", "a size that is divided by"],
)
def test_what_is_asked_is_asked_once(program: str, gradient: str) -> None:
    d = cd.grad(program)
    assert gradient in str(d), str(d)
    assert d.check()
