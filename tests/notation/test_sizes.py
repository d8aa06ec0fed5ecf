"""The size of a declared domain is |Z| on a page, in subscripts and conditions too; text has `size(Z)` for it."""

from __future__ import annotations

import pytest

import combdiff as cd
from tests.notation.test_printed_forms import assert_reads_as
from tests.reading_back import assert_reads_back

PLAIN = "@domain Z begin base = I end\n@space V begin type = (Z,) -> R end\n"
RING = "@domain Z begin base = I; periodic = true end\n@space V begin type = (Z,) -> R end\n"
GRID = "@domain BZ begin base = (I, I); periodic = true end\n@space V begin type = (BZ,) -> R end\n"
SQUARE = "@domain Z begin base = I end\n@space V begin type = (Z, Z) -> R end\n"
EVEN = "@domain Z begin base = I; symmetric = true end\n@space V begin type = (Z,) -> R end\n"
PROGRAMS = {
    PLAIN + "(x::V) -> x(size(Z) - 1)^2": r"x \mapsto i \mapsto 2 \delta_{i,\lvert Z \rvert-1}\, x_{\lvert Z \rvert-1}",
    RING + "(x::V) -> x(size(Z) - 1)^2": r"x \mapsto i \mapsto 2 \delta_{i,\lvert Z \rvert-1}\, x_{\lvert Z \rvert-1}",
    EVEN + "(x::V) -> sum(i, x(i)^2) / size(Z)": r"x \mapsto i \mapsto \frac{2 x_{i}}{\lvert Z \rvert}",
    GRID + "(x::V) -> mean(k, x(k)^2)": r"x \mapsto k \mapsto \frac{2 x_{k}}{\lvert \mathrm{BZ} \rvert}",
    SQUARE + "(x::V) -> sum(i, x(i, size(Z) - 1 - i)^2)": (
        r"x \mapsto (i, d) \mapsto 2 \delta_{i+d,\lvert Z \rvert-1}\, x_{i,\lvert Z \rvert-1-i}"
    ),
    PLAIN + "(x::V) -> sum(i::Z, where(i < size(Z) - 1, x(i) * x(i + 1)))": (
        r"x \mapsto i \mapsto [i < \lvert Z \rvert - 1]\, x_{i+1} + [1 \le i]\, x_{i-1}"
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_size_of_a_domain_is_its_number_of_values(program: str) -> None:
    d = cd.grad(program)
    assert d.latex() == PROGRAMS[program]
    assert_reads_as(d.term, d.latex(), "index")
    assert_reads_back(d.term)
    assert r"\lvert" in d.latex(style="paper") and r"\sum_{i \in" not in d.latex(style="paper")
    assert "Σ_i 1" not in d.unicode_text() and "Σ_j 1" not in d.unicode_text()


def test_in_plain_signs_a_size_stands_between_bars_and_a_domain_behind_its_index() -> None:
    assert cd.grad(RING + "(x::V) -> x(size(Z) - 1)^2").unicode_text().splitlines() == [
        "in    x ↦ x(|Z| - 1)²",
        "out   i ↦ 2 δ(i,|Z| - 1) x(|Z| - 1)",
    ]
    assert "Σ_i∈Z" in cd.simplified(PLAIN + "(x::V) -> sum(i::Z, i * x(0))").unicode_text()


AS_FACTORS = {
    "(X::RM{n, p}, y::RV{n}) -> (w::RV{p}) -> norm(X * w - y)^2 / n": "2/n Xᵀ (X w - y)",
    "(X::RM{n, p}) -> (S::Sym{p}) -> logdet(X' * X / n + S)": "(1/n Xᵀ X + S)⁻¹",
    "(X::RM{n, p}, y::RV{n}) -> (w::RV{p}) -> norm(X * w - y)^2 / (n * p) + n * sum(w)": ("n 𝟏 + 2/(n p) Xᵀ (X w - y)"),
    "(X::RM{n, p}) -> (w::RV{p}, s::R) -> sum(exp.(X * w)) / (s * n^2)": (
        "v = exp(X w)\n(1/n^2 s^(-1) Xᵀ v, -1/n^2 s^(-2) 𝟏ᵀ v)"
    ),
    "(X::RM, y::RV) -> (w::RV) -> mean(i, (X * w - y)(i)^2)": ("2/n Xᵀ (X w - y)\nwhere X ∈ ℝ^(n×m), y ∈ ℝ^n, w ∈ ℝ^m"),
    "(n_s::CV) -> (x::CV{n}) -> abs2(sum(x)) / n": "2/n (𝟏ᵀ x) 𝟏",
}


@pytest.mark.sampled
@pytest.mark.parametrize("program", AS_FACTORS)
def test_a_size_is_a_number_of_matrix_form(program: str) -> None:
    d = cd.grad(program)
    assert d.matrix_text() == AS_FACTORS[program]
    assert_reads_as(d.term, d.latex("matrix"), "matrix")
    assert r"\sum" not in d.latex("matrix")


def test_a_name_that_matrix_form_makes_is_no_name_of_a_size() -> None:
    d = cd.grad("(X::RM{s, M}) -> (w::RV{M}) -> exp(sum(i, (X * w)(i) / (1 + w(0)^2)) / s / M) / s / M")
    formula, *clauses = d.matrix_text().split("\nwhere ")
    assert clauses and not any(clause.startswith(("s =", "M =")) for clause in clauses), formula


def test_bars_round_the_name_of_a_variable_are_a_magnitude() -> None:
    d = cd.grad(PLAIN + "(Z::R) -> (x::V) -> size(Z) * Z * sum(i, x(i)^2)")
    assert r"\lvert" not in d.latex() and r"\sum_{i_{1}} 1" in d.latex()


@pytest.mark.parametrize(
    "program",
    [
        "(A::(N{n}, N{m}, N{m}, N{n}) -> R, x::RV{n}) -> sum((i, j, k, l), A(i, j, k, l) * (n * x(i)))",
        "(A::(N{n}, N{m}, N{m}, N{n}) -> R, B::RM{n, m}) -> "
        "sum((i, j, k, l), A(i, j, k, l) * n * B(i, k) * B(l, j) * m)",
        "(A::(N{n}, N{m}, N{k}) -> R) -> (a::RM{n, r}, b::RM{m, r}, c::RM{k, r}) -> "
        "sum((i, j, k), (n * A(i, j, k) - sum(l, a(i, l) * b(j, l) * c(k, l)))^2)",
        "(A::(N{n}, N{m}, N{k}) -> R) -> (a::RM{n, r}, b::RM{m, r}, c::RM{k, r}) -> "
        "sum((i, j, k), (A(i, j, k) - n * sum(l, a(i, l) * b(j, l) * c(k, l)))^2)",
    ],
)
def test_sizes_stand_in_front_of_products_of_pairs(program: str) -> None:
    """They are sums over an index that no factor has."""
    d = cd.grad(program)
    assert "n " in d.matrix_text()
    assert d.check()
