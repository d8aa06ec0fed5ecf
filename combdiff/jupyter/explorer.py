"""The stages of a derivation, one at a time: λ-term, B/C form, raw pullback, simplification in words, the result.

The pages lie on one another, so that their height is that of the highest and stays, and a button for each shows it; the
arrow keys go from one to the next. This is HTML alone, which needs no kernel and no widget, and stays in a saved
notebook. Where a page takes no styles from a notebook that is not trusted, all stages stand one below the other.
"""

from __future__ import annotations

from hashlib import sha256
from html import escape
from itertools import count
from typing import TYPE_CHECKING, Any

from combdiff.explanation import LEGEND, changing_stages, combinator_form, explanation
from combdiff.jupyter.display import in_editor, preformatted, step_html, term_html
from combdiff.optional import optional
from combdiff.records import dataclass
from combdiff.terms.recursion import deep_recursion

if TYPE_CHECKING:
    from combdiff.derivation import Derivation

_shown_so_far = count()

_STYLE = """
#ID>input{position:absolute;opacity:0;width:1px;height:1px}
#ID>.tabs{display:flex;flex-wrap:wrap;gap:.3em;margin-bottom:.5em}
#ID label{cursor:pointer;padding:.15em .6em;border:1px solid rgba(128,128,128,.5);border-radius:.3em}
#ID>.pages{display:grid}
#ID>.pages>div{grid-area:1/1;visibility:hidden;max-height:34em;overflow:auto;min-width:0}
#ID mark{background:none;color:inherit;border-bottom:2px solid #d97706}
"""
_CHOSEN = """#ID>input:nth-of-type(N):checked~.pages>div:nth-of-type(N){visibility:visible}
#ID>input:nth-of-type(N):checked~.tabs>label:nth-of-type(N){background:rgba(128,128,128,.3)}
#ID>input:nth-of-type(N):focus-visible~.tabs>label:nth-of-type(N){outline:2px solid #d97706}
"""


@dataclass(frozen=True, slots=True)
class Page:
    """What is seen of one stage: `title` names it, `heading` says what was done, `html` shows it."""

    title: str
    heading: str
    html: str


def pages(d: Derivation) -> list[Page]:
    """The stages as a reader follows them, the result last; those that change nothing are left out."""
    program, *stages = d.steps
    found = [Page("program", "the program, as read: a λ-term", step_html(program))]
    with deep_recursion():
        found.append(Page("B/C form", "in combinators", preformatted(f"{combinator_form(d)}\n\n{LEGEND}")))
        found += [Page(step.name, step.name, step_html(step)) for step in changing_stages(stages)]
    return [*found, Page("result", "the result", term_html(d.term) + preformatted(str(d)))]


class Explorer:
    """The pages of a derivation; a notebook shows one at a time, chosen by a button or with the arrow keys."""

    def __init__(self, d: Derivation) -> None:
        self.pages = pages(d)
        self._text = explanation(d)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<{len(self.pages)} stages of a derivation>"

    def widget(self) -> Any:  # a widget of ipywidgets, which has no types
        """The pages as a widget, for editors that set formulas in widgets alone."""
        return optional("ipywidgets", "notebooks", "the stages in an editor").HTMLMath(self.html())

    def html(self) -> str:
        """All pages, of which one is seen."""
        name = f"cd{sha256(self._text.encode()).hexdigest()[:8]}-{next(_shown_so_far)}"
        numbers = range(1, len(self.pages) + 1)
        style = _STYLE + "".join(_CHOSEN.replace("N", str(n)) for n in numbers)
        inputs = "".join(
            f'<input type="radio" name="{name}" id="{name}-{n}"{" checked" if n == 1 else ""} '
            f'aria-label="{escape(page.title)}"/>'
            for n, page in enumerate(self.pages, 1)
        )
        tabs = "".join(
            f'<label for="{name}-{n}">{n}. {escape(page.title)}</label>' for n, page in enumerate(self.pages, 1)
        )
        shown = "".join(map(_shown, self.pages))
        return (
            f'<div id="{name}" style="text-align:left;color:inherit"><style>{style.replace("ID", name)}</style>'
            f'{inputs}<div class="tabs">{tabs}</div><div class="pages">{shown}</div></div>'
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        bundle: dict[str, object] = {"text/html": self.html(), "text/plain": str(self)}
        return {**self.widget()._repr_mimebundle_(), **bundle} if in_editor() else bundle


def _shown(page: Page) -> str:
    return f"<div><b>{escape(page.heading)}</b>{page.html}</div>"
