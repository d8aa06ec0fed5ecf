"""Plain signs for readers: what the README shows at its top."""

from __future__ import annotations

from pathlib import Path

import pytest

import combdiff as cd
from tests.programs import every_example

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.cd"))
LINES = {
    "(x::RM) -> sum((i, j), indicator(i + 1, j, 1 / sqrt(sum(c, (x(i, c) - x(j, c))^2))))": [
        "in    x ↦ Σ_ij [i < j] / √(Σ_c (x(i,c) - x(j,c))²)",
    ],
    "(a::R) -> (z::CV) -> abs2(exp(im * a) - 1) * sum(i, abs2(z(i))) / pi^2": [
        "in    z ↦ |exp(i a) - 1|² Σ_i |z(i)|² / π²",
        "out   i ↦ 2 z(i) |exp(i a) - 1|² / π²",
    ],
    "(lambda::R) -> (x::R) -> -x^3 / 2 + lambda * x^(1/3) - 3": [
        "in    x ↦ -1/2 x³ + λ x¹ᐟ³ - 3",
    ],
}


@pytest.mark.parametrize("program", LINES)
def test_lines(program: str) -> None:
    assert cd.grad(program).unicode_text().splitlines()[: len(LINES[program])] == LINES[program]


def test_the_readme_shows_the_lines_of_hartree_fock() -> None:
    text = cd.grad(next(f for f in EXAMPLES if f.stem == "hartree_fock")).unicode_text()
    assert text in (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.sampled
@pytest.mark.parametrize(("file", "mode"), every_example("grad", "pullback", "hvp"))
def test_every_example_is_written(file: Path, mode: str) -> None:
    if file.stem == "least_action" and mode != "grad":
        pytest.skip("an operator of the line")
    text = getattr(cd, mode)(file).unicode_text()
    assert text.startswith("in    ") and "\nout   " in text
    assert text.count("(") == text.count(")") and "*(" not in text


def test_sizes_that_count_have_names_and_are_explained() -> None:
    text = cd.grad("(A::RM) -> (x::RV) -> mean(n, sum(d, A(n, d) * x(d))^2)").unicode_text()
    assert text.splitlines() == [
        "in    x ↦ Σ_n (Σ_d A(n,d) x(d))² / m",
        "out   d ↦ 2 Σ_ne A(n,d) A(n,e) x(e) / m",
        "      where A ∈ ℝ^(m×l), x ∈ ℝ^l",
    ]
    text = cd.grad("(A::RM) -> (x::RV) -> sum((i, j), where(i <= j, A(i, j) * x(j), x(i)^2))").unicode_text()
    assert "2 x(j) Σ_i<m [i < j]" in text and "where A ∈ ℝ^(m×m), x ∈ ℝ^m" in text
