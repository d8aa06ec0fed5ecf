"""How results show themselves in a notebook: bundles of LaTeX, HTML and plain text, for light and dark pages alike.

A bundle maps MIME types to texts, and the page takes the richest that it knows. LaTeX is what MathJax and LaTeX both
read. HTML holds the same formula, set by the page, and what a formula cannot say.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from html import escape
from typing import TYPE_CHECKING

from combdiff.jupyter.marking import marked_latex, marked_text
from combdiff.language.printing.printer import expression_text
from combdiff.notation.latex import latex
from combdiff.notation.widths import columns
from combdiff.shown import Bundle
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.terms import Term

if TYPE_CHECKING:
    from combdiff.arrays.plan import Plan
    from combdiff.checking.report import Report
    from combdiff.derivation import Derivation
    from combdiff.simplify.account import Step, Steps

_PAGE = 80
"""Columns of a formula that a cell of a notebook shows without a scroll bar."""

_WIDEST, _MOST_LINES = 160, 24
"""A formula beyond these is read more easily as text, which is broken at every level."""


# --- derivations ----------------------------------------------------------------------------------------------------


def derivation_bundle(d: Derivation, form: str = "index") -> Bundle:
    """The result as a formula, with what a reader must know of it; its text is there to be unfolded."""
    formula, remarks = d.latex(form, _PAGE), remarks_on(d)
    bundle = {"text/plain": "\n".join([str(d), *remarks]), "text/latex": in_math(_with_remarks(formula, remarks))}
    below = "".join(map(_remark, remarks)) + _unfolding("as text", str(d))
    return _with_html(bundle, _framed(_typeset(formula) + below))


def remarks_on(d: Derivation) -> list[str]:
    """What a reader must know: that a real part is meant, that a budget was spent, that a check could not be made."""
    first, *others = d.steps
    told = [*first.note.splitlines(), *(f"{s.name}: {s.note}" for s in others if s.spent or "not checked" in s.note)]
    return list(dict.fromkeys(filter(None, told)))


def step_bundle(step: Step) -> Bundle:
    """A step: its name, what it did, and its term."""
    return _with_html({"text/plain": str(step)}, _framed(_heading(step.name) + step_html(step)))


def step_html(step: Step) -> str:
    """What a step did in words, its note, and its term with what is new marked; the time that it took is folded."""
    note = "".join(map(_remark, step.note.splitlines()))
    words = "".join(f"<li>{escape(line)}</li>" for line in step.words)
    told = f'<ul style="margin:.3em 0 .3em 1.4em;padding:0">{words}</ul>' if words else ""
    times = _folded("times and laws", _remark(step.heading)) if step.before is not None else ""
    return note + told + term_html(step.term, step.before) + times


def steps_bundle(steps: Steps) -> Bundle:
    """All steps, each to be unfolded; the last is open."""
    opening = {id(steps[-1]): " open"}
    parts = [
        f"<details{opening.get(id(step), '')}><summary>{escape(step.name)}</summary>{step_html(step)}</details>"
        for step in steps
    ]
    return _with_html({"text/plain": str(steps)}, _framed("".join(parts)))


def term_html(term: Term, before: Term | None = None) -> str:
    """A term as a formula, or as text where that is read more easily; what it has not of `before` is marked."""
    with deep_recursion():
        formula = latex(term, width=_PAGE)
        if columns(formula) <= _WIDEST and formula.count(r"\\") < _MOST_LINES:
            return _typeset(formula if before is None else marked_latex(formula, latex(before, width=_PAGE)))
        text = expression_text(term)
        return preformatted(text) if before is None else _set_as_text(marked_text(text, expression_text(before)))


# --- tables and reports ---------------------------------------------------------------------------------------------


def plan_bundle(plan: Plan) -> Bundle:
    """The table of costs, or the lines of the array program."""
    if plan.as_text:
        return _with_html({"text/plain": str(plan)}, _framed(f"<pre>{escape(str(plan))}</pre>"))
    (*titles,), *rows = plan.rows()
    head = _row("th", titles)
    body = "".join(_row("td", row) for row in rows)
    table = (
        '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        f"<thead>{head}</thead><tbody>{body}</tbody></table>"
    )
    return _with_html({"text/plain": str(plan)}, _framed(table + "".join(map(_remark, plan.totals().splitlines()))))


_COUNTS = (4, 5)
"""The columns of numbers: FLOPs and bytes."""


def _row(tag: str, cells: Iterable[str]) -> str:
    style = "padding:.15em .8em;text-align:{};border-bottom:1px solid rgba(128,128,128,.35)"
    entries = (
        f'<{tag} style="{style.format("right" if n in _COUNTS else "left")}">{escape(cell)}</{tag}>'
        for n, cell in enumerate(cells)
    )
    return f"<tr>{''.join(entries)}</tr>"


def report_bundle(report: Report) -> Bundle:
    """A check in one line."""
    word, colour = ("passed", "#2e9e4f") if report else ("FAILED", "#d9433b")
    told = [f"{f.what} {f.difference:.1e}" for f in report.findings]
    line = f'<b style="color:{colour}">{word}</b>, relative differences: {escape(", ".join(told))}'
    return _with_html({"text/plain": str(report)}, _framed(line + "".join(map(_remark, report.notes))))


# --- a line that changes --------------------------------------------------------------------------------------------


def line_of_notebook() -> Callable[[str], None]:
    """What writes one line of a cell's output over and over."""
    from IPython.display import display

    shown: list[object] = []

    def write(text: str) -> None:
        # an empty line of HTML takes no room
        bundle = {"text/plain": text, "text/html": _remark(text) if text else ""}
        if shown:
            shown[0].update(bundle, raw=True)  # type: ignore[attr-defined]  # a DisplayHandle
        else:
            shown.append(display(bundle, raw=True, display_id=True))

    return write


# --- pieces ---------------------------------------------------------------------------------------------------------


def in_math(formula: str) -> str:
    r"""A formula in its dollars, set large as in a line of its own.

    >>> print(in_math("x"))
    $\displaystyle x$
    """
    return rf"$\displaystyle {formula}$"


def preformatted(text: str) -> str:
    """Text in one width, as HTML."""
    return _set_as_text(escape(text))


def _set_as_text(html: str) -> str:
    return f'<pre style="margin:.3em 0;background:none;font-family:monospace;white-space:pre-wrap">{html}</pre>'


def _typeset(formula: str) -> str:
    # these brackets are read by every version of MathJax, dollars only where a page asks for them
    math = escape(rf"\(\displaystyle {formula}\)")
    return f'<div style="padding:.4em 0;overflow:auto hidden">{math}</div>'


def _framed(content: str) -> str:
    # colours are those of the page
    return f'<div style="text-align:left;color:inherit">{content}</div>'


def _heading(text: str) -> str:
    return f"<div><b>{escape(text)}</b></div>"


def _remark(text: str) -> str:
    return f'<div style="opacity:.75;font-size:92%">{escape(text)}</div>'


def _unfolding(title: str, text: str) -> str:
    return _folded(title, preformatted(text))


def _folded(title: str, html: str) -> str:
    return f'<details style="opacity:.85"><summary>{escape(title)}</summary>{html}</details>'


def in_editor() -> bool:
    """Whether Visual Studio Code shows the notebook, which takes HTML before LaTeX and sets no formulas in it."""
    return "VSCODE_PID" in os.environ


_IN_TEXT = str.maketrans({c: f"\\{c}" for c in "#$%&_{}"} | {"\\": r"\backslash ", "^": r"\^{}", "~": r"\~{}"})


def _with_remarks(formula: str, remarks: list[str]) -> str:
    """The formula with a line of text below it for each remark."""
    if not remarks:
        return formula
    rows = [formula, *(rf"\text{{{remark.translate(_IN_TEXT)}}}" for remark in remarks)]
    return "\\begin{aligned}\n" + " \\\\\n".join(f"& {row}" for row in rows) + "\n\\end{aligned}"


def _with_html(bundle: Bundle, html: str) -> Bundle:
    if in_editor() and "text/latex" in bundle:
        return bundle
    return {**bundle, "text/html": html}
