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


def test_values_without_a_name_of_the_user_have_letters() -> None:
    text = cd.grad("(x::RM) -> sum((i, j), indicator(i + 1, j, 1 / sqrt(sum(c, (x(i, c) - x(j, c))^2))))").latex(
        style="paper"
    )
    assert "u_" not in text and r"\text{where}\ R_{ij} =" in text
    taken = cd.grad("(S::Sym, s::RV) -> (w::RV) -> sum(i, s(i) * w(i)) / sqrt(sum((i, j), w(i) * S(i, j) * w(j)))")
    page = taken.latex(style="paper")
    assert "u_" not in page and r"\text{where}\ c =" in page and r"}}\ t =" in page


def test_a_style_that_there_is_not() -> None:
    with pytest.raises(cd.UnsupportedError, match="no style 'journal'"):
        cd.grad("(x::R) -> x^2").latex(style="journal")


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
