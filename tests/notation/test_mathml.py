"""MathML as browsers take it: aligned equations, bars with sides, limits below Σ, functions apart from factors."""

from __future__ import annotations

from xml.etree.ElementTree import Element, fromstring

import pytest

import combdiff as cd

pytest.importorskip("latex2mathml")

from combdiff.notation.mathml import mathml

SPACE = "{http://www.w3.org/1998/Math/MathML}"
EQUATIONS = "(x::CV, b::RV) -> (w::CV) -> sum(i, abs2(w(i) - x(i)) * exp(b(i)) + sin(b(i)) * exp(b(i)))"


def tree(latex: str) -> Element:
    return fromstring(mathml(latex))


def found(root: Element, name: str) -> list[Element]:
    return list(root.iter(SPACE + name))


def shown(root: Element) -> str:
    """The signs in a row, a space for a space."""
    return "".join(" " if part.tag == f"{SPACE}mspace" else part.text or "" for part in root.iter())


def test_equations_are_aligned_at_their_signs() -> None:
    cells = found(fromstring(cd.grad(EQUATIONS).mathml()), "mtd")
    sides = [cell.get("style", "").split(";")[0] for cell in cells]
    assert sides == ["text-align: right", "text-align: left"] * (len(cells) // 2)
    assert not any("columnalign" in cell.attrib for cell in cells)


def test_cases_are_aligned_to_the_left() -> None:
    root = tree(r"\begin{cases} x & \text{if}\ x < 1 \\ 1 & \text{otherwise} \end{cases}")
    assert [cell.get("style", "").split(";")[0] for cell in found(root, "mtd")] == ["text-align: left"] * 4


@pytest.mark.parametrize(
    "latex", [r"\lvert x \rvert", r"\left|x\right|", r"\lVert x \rVert", r"\left\lVert x \right\rVert"]
)
def test_bars_have_sides(latex: str) -> None:
    left, right = found(tree(latex), "mo")
    assert (left.get("form"), right.get("form")) == ("prefix", "postfix") and left.text == right.text


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"a \exp(x) \sin(y)", "a exp(x) sin(y)"),
        (r"-\exp(x)", "−exp(x)"),
        (r"\log \sum_{j} x", "log ∑jx"),
        (r"a \operatorname{sign}(x)", "a sign(x)"),
        (r"\operatorname{softmax}_{j}(x_{j})", "softmaxj(xj)"),
        (r"[i < j] \exp(x)", "[i<j] exp(x)"),
        (r"f\!\left(\frac{a}{b}\right)", "f(ab)"),
    ],
)
def test_functions_stand_apart_from_factors(latex: str, text: str) -> None:
    assert shown(tree(latex)) == text


@pytest.mark.parametrize("sign", [r"\sum", r"\prod", r"\max", r"\min"])
def test_limits_are_below_their_sign_in_brackets_too(sign: str) -> None:
    root = tree(rf"\left({sign}_{{k}} x_{{k}}\right)")
    assert len(found(root, "munder")) == len(found(root, "msub")) == 1


def test_letters_are_bold_by_themselves() -> None:
    assert shown(tree(r"\mathbf{1} \mathbf{I} \mathbf{let}")) == "𝟏𝐈𝐥𝐞𝐭"
    assert not [part for part in tree(r"\mathbf{1}").iter() if part.get("mathvariant") == "bold"]


def test_signs_are_tight_where_tex_sets_them_tight() -> None:
    minus, plus = found(tree(r"y = -x_{i+1}"), "mo")[1:]
    assert minus.get("form") == "prefix" and (plus.get("lspace"), plus.get("rspace")) == ("0", "0")
    assert found(tree("y - x"), "mo")[0].get("form") is None
