"""The stages of a derivation, one at a time under a slider: λ-term, B/C form, raw pullback, simplification, result.

The slider moves without a kernel, so that a saved notebook keeps it; where no widget can be shown, the first and the
last stage stand open and the others are to be unfolded.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from combdiff.explanation import LEGEND, combinator_form, explanation
from combdiff.jupyter.display import preformatted, step_html, term_html
from combdiff.optional import optional
from combdiff.terms.recursion import deep_recursion

if TYPE_CHECKING:
    from combdiff.derivation import Derivation
    from combdiff.simplify.account import Step

_MIDDLE = "margin:.2em 0;opacity:.9"


@dataclass(frozen=True, slots=True)
class Page:
    """What is seen of one stage: `title` names it, `heading` says what was done, `html` shows it."""

    title: str
    heading: str
    html: str


def pages(d: Derivation) -> list[Page]:
    """The stages as a reader follows them, the result last."""
    program, *stages = d.steps
    found = [Page("program", "the program, as read: a λ-term", step_html(program))]
    with deep_recursion():
        found.append(Page("B/C form", "in combinators", preformatted(f"{combinator_form(d)}\n\n{LEGEND}")))
    return [*found, *map(_page, stages), Page("result", "the result", term_html(d.term) + preformatted(str(d)))]


def _page(step: Step) -> Page:
    return Page(step.name, step.heading, step_html(step))


class Explorer:
    """The pages of a derivation; a notebook shows one at a time, chosen by a slider."""

    def __init__(self, d: Derivation) -> None:
        self.pages = pages(d)
        self._text = explanation(d)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<{len(self.pages)} stages of a derivation>"

    def widget(self) -> Any:  # a widget of ipywidgets, which has no types
        """A new slider, with the pages below it."""
        widgets = optional("ipywidgets", "notebooks", "the slider over the stages")
        titles = [(f"{n}. {page.title}", n) for n, page in enumerate(self.pages, 1)]
        wide = widgets.Layout(width="100%", max_width="48em")
        slider = widgets.SelectionSlider(options=titles, value=1, description="stage", layout=wide)
        stack = widgets.Stack([widgets.HTMLMath(_shown(page)) for page in self.pages], selected_index=0)
        # linked in the browser, so that it works without a kernel too
        link = widgets.jslink((slider, "index"), (stack, "selected_index"))
        box = widgets.VBox([slider, stack])
        box.link = link
        return box

    def html(self) -> str:
        """All pages without a widget: the first and the last are open."""
        first, *middle, last = self.pages
        folded = (
            f'<details style="{_MIDDLE}"><summary>{escape(page.heading)}</summary>{page.html}</details>'
            for page in middle
        )
        return f"<div>{_shown(first)}{''.join(folded)}{_shown(last)}</div>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        return {**self.widget()._repr_mimebundle_(), "text/html": self.html(), "text/plain": str(self)}


def _shown(page: Page) -> str:
    return f"<div><b>{escape(page.heading)}</b>{page.html}</div>"
