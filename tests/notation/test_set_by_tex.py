"""LaTeX of many kinds of programs is what TeX sets: in every form and style, and no line is wider than a page."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import combdiff as cd
from combdiff.notation.widths import WIDTH, columns, cut

EXAMPLES = {file.stem: file.read_text() for file in sorted((Path(__file__).parents[2] / "examples").glob("*.cd"))}
PROGRAMS = EXAMPLES | {
    "third moment": "(x::RV{n}) -> begin\n  m = sum(i, x(i)) / sum(i::N{n}, 1)\n"
    "  sum(i, (x(i) - m)^3) / sum(i::N{n}, 1)\nend",
    "correlation": "(y::RV{n}) -> (x::RV{n}) -> begin\n  m = sum(i, x(i)) / sum(i::N{n}, 1)\n"
    "  sum(i, (x(i) - m) * y(i)) / sqrt(sum(i, (x(i) - m)^2) * sum(i, y(i)^2))\nend",
    "repulsion": "(z::RV) -> (R::RM) -> "
    "sum((a, b), indicator(a + 1, b, z(a) * z(b) / sqrt(sum(c, (R(a, c) - R(b, c))^2))))",
    "partial likelihood": "(X::RM, c::RV) -> (w::RV) -> begin\n  s = n -> sum(d, X(n, d) * w(d))\n"
    "  sum(n, c(n) * (s(n) - log(sum(m, indicator(n, m, exp(s(m)))))))\nend",
    "a ring": "@domain Z begin base = I; periodic = true end\n@space W begin type = (Z) -> C end\n"
    "(J::R, g::R) -> (a::W) -> sum(i, J * abs2(a(i + 1) - a(i)) + g * abs2(a(i))^2 + g * log(1 + abs2(a(i - 1))))",
    "names of several letters": "(U::R, na::RV) -> (nb::RV) -> U * sum((i, r), na(i) * nb(r) * nb(i) * exp(nb(r)))",
    "names with numbers": "(p0::RM, R1::RM, c0::R) -> (x1::RV) -> "
    "sum((i, j), p0(i, j) * x1(j) * R1(i, j) * conj(x1(i))) + c0 * x1(0)^2 * R1(0, 1)",
    "the user's own u1": "(a::RV, K::RM) -> (M::RM) -> begin\n  L = (i, j) -> exp(-M(i, j)) * K(i, j)\n"
    "  u1 = i -> a(i) / sum(j, L(i, j))\n  sum((i, j), u1(i) * L(i, j) * M(i, j))\nend",
    "powers of moduli": "(b::CV) -> (z::CV) -> sum(i, abs2(z(i))) / abs2(sum(i, z(i) * b(i)))",
    "a total variation": "@domain Z begin base = I; periodic = true end\n@space W begin type = (Z, Z) -> R end\n"
    "(y::W, c::R, e::R) -> (x::W) -> sum((i, j), (x(i, j) - y(i, j))^2 "
    "+ c * sqrt((x(i + 1, j) - x(i, j))^2 + (x(i, j + 1) - x(i, j))^2 + e))",
}
FORMS = [(form, style) for form in ("index", "matrix") for style in ("map", "paper")]
GROUP = re.compile(r"\{[^{}]*\}")


@cache
def derived(name: str) -> cd.Derivation:
    return cd.grad(PROGRAMS[name])


@pytest.mark.parametrize(("form", "style"), FORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_brackets_and_scripts(name: str, form: str, style: str) -> None:
    text = derived(name).latex(form, style=style)
    depth = 0
    for sign in re.findall(r"\\.|[{}]", text):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0
    assert depth == 0
    for row in text.split(r"\\" + "\n"):
        assert len(re.findall(r"\\left\b", row)) == len(re.findall(r"\\right\b", row))
    assert text.count(r"\biggl(") == text.count(r"\biggr)")
    flat, before = text, ""
    while flat != before:
        flat, before = GROUP.sub("•", flat), flat
        assert not re.search(r"_(?:•|\w)(?:\^•)?_|\^(?:•|[\w*])(?:_•)?\^", before), "two scripts on one sign"


@pytest.mark.parametrize(("form", "style"), FORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_signs(name: str, form: str, style: str) -> None:
    text = derived(name).latex(form, style=style)
    assert not re.search(r"(=|\(|\{|\\mapsto) \+|\+ -|- -|- \+|(?<!\d)1 \\, |(?<![\d/}])1 [a-zA-Z\\(](?!c|o|m|l)", text)
    assert not re.search(r"\\frac\{\\left\((?:(?!\\right).)*\\right\)\}|\\frac\{\([^()]*\)\}", text), (
        "needless brackets"
    )
    assert not re.search(r"\\sqrt\{[^{}]*\}\^", text), "a power of a root"


@pytest.mark.parametrize("form", ("index", "matrix"))
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_line_is_wider_than_a_page(name: str, form: str) -> None:
    rows = derived(name).latex(form, style="paper").splitlines()[1:-1]
    lefts = max(columns(row.split("&")[0]) for row in rows)
    assert max(columns(row.split("&")[1]) for row in rows) <= WIDTH - lefts
    assert max(map(len, derived(name).unicode_text().splitlines())) <= 100


@pytest.mark.parametrize("form", ("index", "matrix"))
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_name_is_explained_once(name: str, form: str) -> None:
    text = derived(name).latex(form, style="paper")
    whole = [re.sub(r"_\{[^{}]*\}$", "", left) for left in re.findall(r"\\text\{where\}\}?\\ ([^=\n]*?) = ", text)]
    below = whole[len(whole) - len(set(whole)) :] if "where}" in text.split(r"\partial")[0] else whole
    assert len(below) == len(set(below))


def test_a_name_in_matrix_form_stands_for_one_value_on_a_page() -> None:
    text = derived("a total variation").latex("matrix", style="paper")
    defined = re.findall(r"([A-Z])_\{ij\} = (.*?)(?: \\\\|\n)", text)
    assert len(defined) > 3
    assert len({left for left, _ in defined}) == len({right for _, right in defined}) == len(defined)


def test_sizes_with_names_stand_for_themselves() -> None:
    text = derived("third moment").latex(style="paper")
    assert r"m = \frac{1}{n} \sum_{i} x_{i}" in text and "1}" not in text.replace(r"\frac{1}", "")
    assert "Σ_i x(i) / n" in derived("third moment").unicode_text()


def test_a_solution_is_named_by_its_equation() -> None:
    d = cd.grad("(b::RV, t::RV) -> (A::Sym) -> begin\n"
                "  x = inverse((v::RV) -> i -> sum(j, A(i, j) * v(j)))(b)\n  sum(i, (x(i) - t(i))^2)\nend")  # fmt: skip
    text = d.latex("matrix", style="paper")
    assert r"x\ \text{solves}\ A x = b" in text and r"\mapsto" not in text and "^{-1}" not in text
    assert "x solves Σ_j A(i,j) x(j) = b(i)" in d.unicode_text()


def test_indices_have_letters_and_no_numbers() -> None:
    text = cd.grad("(A::RM, b::RV) -> (x::RV) -> sum(i, (sum(j, A(i, j) * x(j)) - b(i))^2)").latex(style="paper")
    assert r"2 \sum_{i} A_{ij} \left(\sum_{k} A_{ik}\, x_{k} - b_{i}\right)" in text


def test_plain_text_has_a_condition_among_the_factors_of_a_product() -> None:
    text = cd.grad("(w::RV) -> (s::RV) -> sum((i, j), w(i) * indicator(i, j, exp(s(j))))").unicode_text()
    assert "w(i) [i ≤ j] exp(s(j))" in text and "([" not in text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (r"a \left(\frac{b}{c} + d\right)", [r"a \biggl(\frac{b}{c}", r"+ d\biggr)"]),
        (r"f(a + b) (c - d)", ["f(a + b) (c", "- d)"]),
        (r"f(a + b)", ["f(a", "+ b)"]),
        (r"\frac{a + b}{c}", [r"\frac{a + b}{c}"]),
        (r"a\, b\, \mathrm{d}t", ["a", r"\times b\, \mathrm{d}t"]),
    ],
)
def test_where_a_formula_is_cut(text: str, parts: list[str]) -> None:
    assert cut(text) == parts
