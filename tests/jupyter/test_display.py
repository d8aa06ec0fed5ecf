"""What a notebook is shown: complete LaTeX, escaped HTML, text; and the line that follows a derivation."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from itertools import accumulate
from pathlib import Path

import pytest

import combdiff as cd
from combdiff.arrays.plan import Plan
from combdiff.jupyter.display import Bundle, derivation_bundle, step_html
from combdiff.jupyter.marking import marked_latex, marked_text
from combdiff.notation.latex import latex

EXAMPLES = Path(__file__).parents[2] / "examples"
QUADRATIC = "(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"
COMPLEX = "(z::CV) -> sum(i, z(i)^2)"


class Reader(HTMLParser):
    """The text of a page; every tag that is opened is to be closed, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []
        self.tags: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def example(name: str) -> cd.grad:
    return cd.grad((EXAMPLES / f"{name}.cd").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def _no_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VSCODE_PID", raising=False)


def bundle(value: object) -> Bundle:
    return value._repr_mimebundle_()  # type: ignore[attr-defined]


PAGE = 80
"""Columns that fit into a cell."""


@pytest.mark.sampled
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.cd")), ids=lambda path: path.stem)
def test_a_derivation_shows_its_formula_in_every_form(path: Path) -> None:
    d = cd.grad(path.read_text(encoding="utf-8"))
    shown = bundle(d)
    assert set(shown) == {"text/plain", "text/latex", "text/html"}
    assert shown["text/latex"].startswith(r"$\displaystyle ") and shown["text/latex"].endswith("$")
    formula = d.latex(width=PAGE)
    assert formula in shown["text/latex"]
    page = Reader(shown["text/html"]).text
    assert rf"\(\displaystyle {formula}\)" in page and str(d) in page


def test_names_do_not_become_tags() -> None:
    page = Reader(bundle(cd.grad("(x::RV) -> sum(i, indicator(0, x(i), x(i)))"))["text/html"])
    assert r"\le" in page.text and "->" in page.text
    assert set(page.tags) <= {"div", "details", "summary", "pre"}


def test_that_a_real_part_is_meant_is_shown() -> None:
    shown = bundle(cd.grad(COMPLEX))
    assert all("gradient of its real part" in text for text in shown.values())
    assert shown["text/latex"].count(r"\text{its value is not provably real") == 1


def test_that_a_budget_was_spent_is_shown() -> None:
    shown = bundle(cd.grad((EXAMPLES / "hartree_fock.cd").read_text(encoding="utf-8"), seconds=1e-9))
    assert all("budget spent" in text for text in shown.values())


def test_remarks_cannot_break_latex() -> None:
    from combdiff.jupyter.display import _with_remarks

    assert _with_remarks("x", ["50 % of a_b & {c}"]).endswith("& \\text{50 \\% of a\\_b \\& \\{c\\}}\n\\end{aligned}")


def test_the_matrix_form_is_shown_on_request() -> None:
    assert derivation_bundle(cd.grad(QUADRATIC), "matrix")["text/latex"].endswith("2 A x$")


def test_an_editor_that_sets_no_formulas_in_html_gets_latex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSCODE_PID", "1")
    assert set(bundle(cd.grad(QUADRATIC))) == {"text/plain", "text/latex"}


def test_a_plan_is_a_table() -> None:
    plan = cd.grad(QUADRATIC).plan(A=(3, 3))
    assert isinstance(plan, Plan)
    page = Reader(bundle(plan)["text/html"])
    titles, *rows = plan.rows()
    assert page.tags.count("th") == len(titles) and page.tags.count("td") == sum(map(len, rows))
    assert plan.totals() in page.text
    assert bundle(plan)["text/plain"] == str(plan)


def test_a_report_is_one_line() -> None:
    report = cd.grad(QUADRATIC).check()
    page = Reader(bundle(report)["text/html"]).text
    assert page.startswith("passed, relative differences: finite differences ") and "\n" not in page
    failed = type(report)((type(report.findings[0])("finite differences", 0.5),))
    assert Reader(bundle(failed)["text/html"]).text == "FAILED, relative differences: finite differences 5.0e-01"


@pytest.mark.slow
def test_steps_show_their_laws_and_terms() -> None:
    steps = example("hartree_fock").steps
    page = Reader(bundle(steps)["text/html"])
    assert page.tags.count("details") == len(steps) + sum(step.before is not None for step in steps)
    assert all(step.name in page.text and all(line in page.text for line in step.words) for step in steps)
    assert str(steps[3]).splitlines()[:2] == ["merge like terms", f"  {steps[3].words[0]}"]
    assert steps[2].heading == repr(steps[2])[1:-1]


@pytest.mark.slow
def test_times_are_behind_a_fold() -> None:
    steps = example("hartree_fock").steps
    assert not any(" ms" in line for line in str(steps).splitlines())
    page = bundle(steps[2])["text/html"]
    before, fold, after = page.partition("<details")
    assert " ms" not in before and steps[2].heading in Reader(fold + after.removesuffix("</div>")).text


@pytest.mark.slow
def test_the_pages_are_the_stages_that_change_something() -> None:
    d = example("hartree_fock")
    explorer = d.explore()
    titles = [page.title for page in explorer.pages]
    unchanged = [step.name for step in d.steps if not step.changed]
    assert unchanged == ["collect and name"]
    assert titles == ["program", "B/C form", *(s.name for s in d.steps[1:] if s.name not in unchanged), "result"]
    shown = bundle(explorer)
    assert set(shown) == {"text/html", "text/plain"} and "collect and name" not in shown["text/plain"]
    page = Reader(shown["text/html"])
    assert page.tags.count("input") == page.tags.count("label") == len(titles)
    assert shown["text/html"].count(" checked ") == 1
    # all pages lie in one place of a grid, so that the height is that of the highest
    assert "grid-area:1/1" in shown["text/html"]


def test_two_explorers_on_a_page_have_names_of_their_own() -> None:
    explorer = cd.grad(QUADRATIC).explore()
    first, second = (set(re.findall(r'id="([^"]+)"', explorer.html())) for _ in range(2))
    assert len(first) == len(second) == 1 + len(explorer.pages) and first.isdisjoint(second)


def test_an_editor_gets_the_pages_as_a_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ipywidgets")
    monkeypatch.setenv("VSCODE_PID", "1")
    assert "application/vnd.jupyter.widget-view+json" in bundle(cd.grad(QUADRATIC).explore())


def test_what_is_new_in_a_formula_is_marked() -> None:
    steps = {step.name: step for step in example("hartree_fock").steps}
    # four equal terms became one with a number in front: the number is new, and nothing else
    assert re.findall(r"\\bbox\[[^]]*\]\{([^}]*)\}", step_html(steps["merge like terms"])) == ["4"]
    assert "bbox" not in step_html(steps["raw pullback"]) and "bbox" not in step_html(steps["collect and name"])


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.cd")), ids=lambda path: path.stem)
def test_marks_change_no_formula(path: Path) -> None:
    for step in cd.grad(path.read_text(encoding="utf-8")).steps:
        if step.before is not None:
            formula, before = latex(step.term, width=PAGE), latex(step.before, width=PAGE)
            marked = marked_latex(formula, before)
            assert marked.count("{") - marked.count("}") == formula.count("{") - formula.count("}")
            assert unmarked(marked) == formula
            text = marked_text(str(step), formula)
            assert unescape(re.sub("</?mark>", "", text)) == str(step)


def unmarked(marked: str) -> str:
    """A formula without the marks: each is a command with a group of braces."""
    start = r"\bbox[border-bottom:2px solid #d97706]{"
    while start in marked:
        head, _, tail = marked.partition(start)
        depths = accumulate(({"{": 1, "}": -1}.get(sign, 0) for sign in tail), initial=1)
        end = [*depths].index(0) - 1
        marked = head + tail[:end] + tail[end + 1 :]
    return marked


@pytest.mark.slow
def test_a_stage_is_shown_as_text_where_a_formula_has_too_many_lines() -> None:
    terms = " + ".join(f"exp({n} * x(i))" for n in range(2, 250))
    steps = cd.grad(f"(x::RV) -> sum(i, {terms})").steps
    assert "<pre" in step_html(steps[0]) and r"\(" not in step_html(steps[0])
    assert "<pre" not in step_html(cd.grad(QUADRATIC).steps[0])


def test_the_page_in_combinators_of_a_nested_derivative_shows_the_inner_one_taken() -> None:
    pages = cd.grad("(x::R) -> x * grad((y::R) -> y^3)(x)").explore().pages
    assert [page.title for page in pages][:2] == ["program", "B/C form"] and pages[-1].title == "result"
    assert "x ↦ result = B (mul 3) (B (pow 3) I)" in pages[1].html


def test_a_missing_library_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    d = cd.grad(QUADRATIC)
    with pytest.raises(cd.CombDiffError, match=r"pip install 'combdiff\[notebooks\]'"):
        d.explore().widget()
    with pytest.raises(cd.CombDiffError, match=r"pip install 'combdiff\[notebooks\]'"):
        d.picture()
