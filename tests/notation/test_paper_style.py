"""LaTeX in the style of a paper: the objective above, left-hand sides, where-clauses; MathML of it."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import combdiff as cd
from tests.programs import every_example

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.cd"))
RECORDED = Path(__file__).with_name("paper_style.txt")
PROGRAMS = {
    "names with numbers": "(x1::RV, y_2::RV) -> sum(i, x1(i)^2 * y_2(i))",
    "an objective's name": "(E::Her, f::RV) -> (x::CV) -> sum((i, j), x(i)' * E(i, j) * x(j)) + sum(i, f(i))",
    "Greek": "(α::R) -> (ψ::CV) -> α * sum(i, abs2(ψ(i))^2)",
    "a number": "(x::R) -> sin(x)^2",
    "a long sum": "(x::RV, y::RV) -> sum(i, sin(x(i))) * sum(i, exp(y(i))) + "
    + " + ".join(f"sum(i, cos({n} * x(i)) * y(i)^{n})" for n in range(2, 7)),
}


def recorded() -> str:
    """The pages of some examples, one after another."""
    pages = []
    for name in ("hartree_fock", "restricted_hartree_fock", "wannier", "cp_loss", "conjugate_gradient"):
        d = cd.grad(next(file for file in EXAMPLES if file.stem == name))
        pages += [f"% {name}, {form}\n{d.latex(form, style='paper')}\n" for form in ("index", "matrix")]
    d = cd.pullback("(A::CM) -> (x::CV) -> (i::N) -> sum(j, A(i, j) * x(j))")
    pages.append(f"% a pullback\n{d.latex(style='paper')}\n")
    d = cd.hvp("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))^2")
    pages.append(f"% a Hessian-vector product\n{d.latex(style='paper')}\n")
    return "\n".join(pages)


@pytest.mark.slow
def test_pages_are_as_recorded() -> None:
    """`python -m tests.notation.test_paper_style` records them anew."""
    assert recorded() == RECORDED.read_text(encoding="utf-8")


def _is_set(text: str) -> None:
    """What TeX refuses, or prints as nobody wants it."""
    depth = 0
    for sign in re.findall(r"\\.|[{}]", text):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0
    assert depth == 0
    assert len(re.findall(r"\\left\b", text)) == len(re.findall(r"\\right\b", text))
    flat = text
    while "{" in flat:
        flat, before = re.sub(r"\{[^{}]*\}", "•", flat), flat
        assert not re.search(r"_(?:•|\w)_|\^(?:•|[\w*])\^", before), "two subscripts"
        if flat == before:
            break
    for line in text.splitlines()[1:-1]:
        assert line.count("&") == 1 and "u_{1}_" not in line


@pytest.mark.sampled
@pytest.mark.parametrize(("file", "mode"), every_example("grad", "hvp"))
def test_every_example_is_set(file: Path, mode: str) -> None:
    if file.stem == "least_action" and mode == "hvp":
        pytest.skip("its Hessian is an operator of the line")
    d = getattr(cd, mode)(file)
    for form in ("index", "matrix"):
        _is_set(d.latex(form, style="paper"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_hard_names_are_set(name: str) -> None:
    text = cd.grad(PROGRAMS[name]).latex(style="paper")
    _is_set(text)
    if name == "an objective's name":
        assert text.splitlines()[1].startswith("L(x) &=")


def test_indices_that_are_single_letters_stand_side_by_side() -> None:
    text = cd.grad("(A::RM) -> sum((i, row), A(i, row)^2)").latex(style="paper")
    assert r"A_{i,\mathrm{row}}" in text
    text = cd.grad("(A::RM) -> sum((μ, ν), A(μ, ν)^2)").latex(style="paper")
    assert r"A_{\mu \nu}" in text and r"\partial A_{\mu \nu}" in text


@pytest.mark.slow
def test_values_without_a_name_of_the_user_have_letters() -> None:
    text = cd.grad("(A::RM) -> sum((i, j), where(i < j, A(i, j) / sqrt(sum(c, (A(i, c) - A(j, c))^2))))").latex(
        style="paper"
    )
    assert "u_" not in text and r"\text{where}\ P_{ij} =" in text
    taken = cd.grad("(S::Sym, s::RV) -> (w::RV) -> sum(i, s(i) * w(i)) / sqrt(sum((i, j), w(i) * S(i, j) * w(j)))")
    page = taken.latex(style="paper")
    assert "u_" not in page and r"\text{where}\ c =" in page and r"}}\ t =" in page


def test_a_residual_is_called_r_or_R() -> None:
    vector = cd.grad("(A::RM, y::RV) -> (x::RV) -> norm(A * x - y)").latex(style="paper")
    assert r"\text{where}\ r_{i} = \sum_{j} A_{ij}\, x_{j} - y_{i}" in vector
    matrix = cd.grad(
        "(A::RM, M::RM) -> (U::RM, V::RM) -> sum((i, j), M(i, j) * (A(i, j) - sum(r, U(i, r) * V(j, r)))^2)"
    )
    assert r"\text{where}\ R = A - U V^{\mathsf{T}}" in matrix.latex("matrix", style="paper")


def test_the_objective_has_a_name_that_nothing_else_has() -> None:
    text = "(H::Her) -> (c::CV) -> begin n = c' * c ; E = c' * H * c / n ; real(E) end"
    assert r"f(c) &= \operatorname{Re}(E)" in cd.grad(text).latex(style="paper")
    text = "(x::RV) -> begin y = i -> exp(x(i)) ; i -> y(i) * sum(j, y(j)) end"
    assert r"z_{i} &= y_{i} \sum_{j} y_{j}" in cd.simplified(text).latex(style="paper")
    assert r"z &= \sum_{i} y_{i}^{2}" in cd.simplified("(y::RV) -> sum(i, y(i)^2)").latex(style="paper")


def test_a_name_that_the_program_gives_stays() -> None:
    d = cd.grad("(A::RM) -> (x::RV) -> begin\n u1 = i -> sum(j, A(i, j) * x(j))\n sum(i, exp(u1(i)))\nend")
    assert "u1 = i ->" in str(d)


def test_the_gradient_by_a_function_is_a_functional_derivative() -> None:
    text = cd.grad("(V::RF, m::R) -> (r::RF) -> sum(t, m * r(t)^2 / 2 - V(r(t)))").latex(style="paper")
    assert r"\frac{\delta E}{\delta r(t)} &= m\, r(t) - V'(r(t))" in text
    both = cd.grad("(r::RF, a::RV) -> sum(t, r(t)^2) * sum(i, a(i))").latex(style="paper")
    assert r"\frac{\delta E}{\delta r(t)}" in both and r"\frac{\partial E}{\partial a_{i}}" in both


def test_derivatives_by_values_and_slopes_at_ends_have_left_sides_of_their_own() -> None:
    line = "@domain Line begin base = R; lower = 0; upper = 1 end\n"
    text = cd.grad(line + "(u::(Line) -> R) -> sum(x::Line, grad(grad(u))(x)^2 / 2)").latex(style="paper")
    assert text.splitlines()[2:-1] == [
        r"\frac{\delta E}{\delta u(x)} &= u^{(4)}(x) \\",
        r"\frac{\partial E}{\partial u(0)} &= u'''(0) \\",
        r"\frac{\partial E}{\partial u'(0)} &= -u''(0) \\",
        r"\frac{\partial E}{\partial u(1)} &= -u'''(1) \\",
        r"\frac{\partial E}{\partial u'(1)} &= u''(1)",
    ]


@pytest.mark.slow
def test_no_real_part_is_written_of_what_is_real_by_symmetry() -> None:
    quotient = "({}) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j)) / sum(i, abs2(x(i)))"
    hermitian = cd.grad(quotient.format("A::Her")).latex("matrix", style="paper")
    assert r"t = \frac{x^{\dagger} A x}{s}" in hermitian and "Re" not in hermitian
    assert "Re" in cd.grad(quotient.format("A::CM")).latex("matrix", style="paper")


@pytest.mark.slow
def test_a_sum_of_real_parts_is_the_real_part_of_a_sum() -> None:
    d = cd.grad("(A::CM) -> (x::CV) -> real(sum((i, j), x(i)' * A(i, j) * x(j)))^2")
    assert d.matrix_text() == "2 real(x† A x) (A + A†) x"
    assert d.check()


def test_definitions_in_a_sum_of_the_objective_stand_behind_it() -> None:
    d = cd.grad("(y::RV) -> (x::RV) -> sum(n, begin\n t = y(n) - x(n)\n t^2 + exp(t)\nend)")
    for text in (d.latex(style="paper"), d.unicode_text()):
        assert "let" not in text and text.count("t_{n} =") + text.count("t(n) =") > 0


def test_a_multiple_of_a_solution_solves_one_equation() -> None:
    text = cd.grad(
        "(A::RM, b::RV) -> begin\n x = inverse((v::RV) -> i -> sum(j, A(i, j) * v(j)))(b)\n sum(i, x(i)^2)\nend"
    )
    assert r"\lambda\ \text{solves}\ \sum_{i} A_{ij}\, \lambda_{i} = 2 x_{j}" in text.latex(style="paper")
    assert "λ solves Σ_i A(i,j) λ(i) = 2 x(j)" in text.unicode_text()


def test_small_numbers_are_powers_of_ten() -> None:
    d = cd.grad("(x::RV) -> sum(i, 1e-9 * x(i) + 0.0310907 * x(i)^2)")
    assert "10^{-9}" in d.latex(style="paper") and "10⁻⁹" in d.unicode_text() and "1e-9" in str(d)
    assert "0.0621814" in str(d)


def test_a_style_that_there_is_not() -> None:
    with pytest.raises(cd.UnsupportedError, match="no style 'journal'"):
        cd.grad("(x::R) -> x^2").latex(style="journal")


@pytest.mark.sampled
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda f: f.stem)
def test_mathml_is_read_by_a_parser(file: Path) -> None:
    pytest.importorskip("latex2mathml")
    d = cd.grad(file)
    for style in ("map", "paper"):
        tree = ElementTree.fromstring(d.mathml(style=style))
        assert tree.tag.endswith("math") and not [e for e in tree.iter() if (e.text or "").strip() == "&"]


if __name__ == "__main__":
    RECORDED.write_text(recorded(), encoding="utf-8")


def test_sizes_that_count_have_names_and_are_explained() -> None:
    text = cd.grad("(A::RM) -> (x::RV) -> mean(n, sum(d, A(n, d) * x(d))^2)").latex(style="paper")
    assert r"\frac{1}{m} \sum_{n}" in text and r"\frac{2}{m} \sum_{ne}" in text
    assert text.count(r"\text{where}\ A \in \mathbb{R}^{m \times l},\ x \in \mathbb{R}^{l}") == 1
