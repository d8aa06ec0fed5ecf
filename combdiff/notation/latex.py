"""Turns a result into LaTeX: index form (paper, Eq. 53–58) or, where there is one, matrix form (Eq. 47–49).

Parameters come first, then shared values as **let**, then the result. A formula that is too wide is broken before +
and − outside brackets, in an `aligned` environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from combdiff.errors import UnsupportedError
from combdiff.language.printing.document import sum_parts
from combdiff.language.printing.vectors import without_index
from combdiff.notation.brackets import bracketed, subscripted
from combdiff.notation.extents import belongs, size_names
from combdiff.notation.latex_names import Scope
from combdiff.notation.latex_terms import listed, params_latex, signed_terms, term_latex
from combdiff.notation.matrix.expr import MatrixExpr
from combdiff.notation.matrix.forms import forms_within, is_unit
from combdiff.notation.matrix.notation import LATEX
from combdiff.notation.matrix.notes import named_in, notes, with_names
from combdiff.notation.matrix.printer import matrix_latex_terms
from combdiff.notation.page import without_needless_re
from combdiff.notation.recursions import Recursions
from combdiff.notation.signs import latex_signs
from combdiff.notation.widths import WIDTH, columns, cut
from combdiff.records import dataclass
from combdiff.terms.terms import Lam, Let, Term, Tuple, Var
from combdiff.terms.types import Index, Number


def latex(term: Term, form: str = "index", width: int = WIDTH) -> str:
    """`term` as LaTeX for math mode; `width` counts signs as they are seen, not characters of the source.

    >>> from combdiff.terms.terms import App, fresh, mul, number, total
    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> i = fresh("i", Index(Domain("x.1")))
    >>> x = fresh("x", Map((i.kind,), REAL))
    >>> gradient = Lam((x,), Lam((i,), mul(number(2), App(x, (i,)))))
    >>> print(latex(gradient), "and", latex(gradient, form="matrix"))
    x \\mapsto i \\mapsto 2 x_{i} and x \\mapsto 2 x

    In matrix form, whatever has none (a value, an item of a tuple, a shared value) stays in index form. Raises
    UnsupportedError for another form.
    """
    if form not in ("index", "matrix"):
        raise UnsupportedError(f"there is no {form!r} form", remedy='ask for form="index" or form="matrix"')
    term = without_needless_re(term)
    forms = forms_within(term) if form == "matrix" else {}
    sizes = size_names(term)
    scope = Scope(signs=latex_signs(term, form) | {*sizes.values()}, sizes=sizes)
    scope = scope.bind(sorted(term.free, key=lambda v: v.uid))
    recursions = Recursions()
    page = Page(width, forms, recursions=recursions)
    page.set(recursions.of(term), scope)
    page.explain()
    return page.text()


WHERE = r"\text{where}\ "


@dataclass(frozen=True, slots=True)
class _Formula:
    """`head` before it (parameters), then the terms of a sum, each with its sign."""

    head: str
    pieces: list[str]

    def line(self) -> str:
        return " ".join(part for part in (self.head, *self.pieces) if part)


def _terms(term: Term, scope: Scope) -> list[str]:
    """The terms of a sum, with their signs."""
    return sum_parts(signed_terms(term, scope))


@dataclass(slots=True)
class Page:
    """Lines as (indentation, text), filled from the top."""

    width: int
    forms: Mapping[Term, MatrixExpr]
    lines: list[tuple[str, str]] = field(default_factory=list)
    used: list[tuple[MatrixExpr, Scope]] = field(default_factory=list)
    word: str = WHERE
    tensors: list[str] = field(default_factory=list)
    """Parameters with the sizes that the formula names."""
    recursions: Recursions = field(default_factory=Recursions)

    def text(self) -> str:
        """The lines in one `aligned` environment; a single line stands alone."""
        if len(self.lines) == 1:
            return self.lines[0][1]
        rows = " \\\\\n".join(f"& {indent}{text}" for indent, text in self.lines)
        return f"\\begin{{aligned}}\n{rows}\n\\end{{aligned}}"

    def set(self, term: Term, scope: Scope) -> None:
        """A whole result: parameters, **let**, the values."""
        heads, body, scope = self._heads(term, scope)
        if not isinstance(body, Let):
            self._values(heads, body, scope, "")
            return
        if heads:
            self.lines.append(("", heads))
        word = r"\mathbf{let}\ "
        for var, value in body.bindings:
            inner = scope.seeing(value)
            scope = scope.bind(self.recursions.bound(var))
            self._binding(word, var, value, scope, inner)
            word = r"\phantom{\mathbf{let}}\ "
        self._values(r"\mathbf{in}\ ", body.body, scope, r"\quad ")

    def _heads(self, term: Term, scope: Scope) -> tuple[str, Term, Scope]:
        heads = []
        while isinstance(term, Lam) and (not is_unit(term) or isinstance(term.body, Let)):
            scope = scope.bind(term.params)
            self.tensors += filter(None, (belongs(p, scope[p], scope.sizes) for p in term.params))
            heads.append(rf"{params_latex(term.params, scope)} \mapsto")
            term = term.body
        return " ".join(heads), term, scope

    def _formula(self, term: Term, scope: Scope) -> _Formula:
        """A number or tensor, in matrix form if it has one."""
        found = self.forms.get(term)
        if found is not None:
            scope = with_names(found, scope)
            self.used.append((found, scope))
            pieces = sum_parts(matrix_latex_terms(found, scope))
            return _Formula("", pieces)
        if matrix := listed(term, scope):
            return _Formula("", [matrix])
        if (vector := without_index(term)) is not term:
            return _Formula("", [term_latex(vector, scope)])
        if isinstance(term, Lam) and is_unit(term):
            scope = scope.bind(term.params)
            return _Formula(rf"{params_latex(term.params, scope)} \mapsto", _terms(term.body, scope))
        if isinstance(term.type, Number) and not isinstance(term, Let):
            return _Formula("", _terms(term, scope))
        return _Formula("", [term_latex(term, scope)])

    def _binding(self, word: str, var: Var, value: Term, scope: Scope, inner: Scope) -> None:
        if var in self.recursions.equations:
            for left, right in self.recursions.equations[var]:
                self._recursion(word, left, right, scope)
                word = _hidden(word)
            return
        name = scope[var]
        if value not in self.forms and isinstance(value, Lam) and is_unit(value) and not listed(value, inner):
            self._entries(word, var, value, scope, inner)
            return
        heads, body, inner = self._heads(value, inner)
        formula = self._formula(body, inner)
        lead = " ".join(part for part in (f"{name} =", heads, formula.head) if part)
        self._fill(word + lead, formula.pieces, margin(word))

    def _recursion(self, word: str, left: Term, right: Term, scope: Scope) -> None:
        """s_{t+1,i} = …: a state of a loop by the one before it."""
        scope = scope.bind(sorted((v for v in left.free if isinstance(v.kind, Index)), key=lambda v: v.uid))
        self._fill(f"{word}{term_latex(left, scope)} =", _terms(right, scope), margin(word))

    def explain(self) -> None:
        """Where-clauses: sizes that have names, what stands under a name of its own, then what the signs mean."""
        if self.tensors:
            self.lines.append(("", self._where() + r",\ ".join(self.tensors)))
        named = {named: scope for expr, scope in self.used for named in named_in(expr)}
        for definition, scope in named.items():
            self._entries(self._where(), definition.var, definition.value, scope, scope)
        for clause in notes(self.used, LATEX):
            self.lines.append(("", self._where() + clause))

    def _where(self) -> str:
        """What stands before the next where-clause."""
        word, self.word = self.word, _hidden(self.word)
        return word

    def _entries(self, word: str, var: Var, value: Term, scope: Scope, inner: Scope) -> None:
        """x_{i} = …: a tensor in index form."""
        params, body = (value.params, value.body) if isinstance(value, Lam) else ((), value)
        inner, name = inner.bind(params), scope[var]
        left = f"{subscripted(name)}_{{{inner.subscripts(inner[p] for p in params)}}}" if params else name
        self._fill(f"{word}{left} =", _terms(body, inner), margin(word))

    def _values(self, lead: str, term: Term, scope: Scope, indent: str) -> None:
        """The result itself: one value, or a tuple with an item a line if it does not fit in one."""
        heads, body, scope = self._heads(term, scope)
        space = " " if lead and not lead.endswith(" ") else ""
        lead += space + heads if heads else ""
        if not isinstance(body, Tuple):
            formula = self._formula(body, scope)
            gap = " " if lead and not lead.endswith(" ") and formula.head else ""
            self._fill(lead + gap + formula.head, formula.pieces, indent or r"\quad ")
            return
        formulas = [self._formula(item, scope) for item in body.items]
        whole = bracketed(", ".join(formula.line() for formula in formulas))
        if self._fits(f"{lead} {whole}"):
            self._fill(lead, [whole], indent)
            return
        if lead:
            self.lines.append(("", lead.strip().removesuffix("\\")))
        for n, formula in enumerate(formulas):
            left = r"\bigl(" if n == 0 else r"\phantom{\bigl(}"
            *most, last = formula.pieces
            last += r"\bigr)" if n == len(formulas) - 1 else ","
            self._fill(left + formula.head, [*most, last], r"\quad\quad ", r"\quad ")

    def _fill(self, lead: str, pieces: list[str], indent: str, first: str = "") -> None:
        """`lead` and `pieces` on one line if they fit, otherwise broken between pieces, and within those too wide."""
        gap = "" if not lead or lead.endswith((" ", "(")) or lead.endswith("(}") else " "
        whole = lead + gap + " ".join(pieces)
        if self._fits(whole):
            self.lines.append((first, whole))
            return
        line, margin = lead, first
        left = list(reversed(pieces))
        while left:
            piece = left.pop()
            longer = f"{line}{gap if line is lead else ' '}{piece}" if line else piece
            if self._fits(margin + longer):
                line = longer
            elif len(parts := cut(piece)) > 1 and not self._fits(first + indent + piece):
                left += reversed(parts)
            elif not line.strip() or line in ("=", r"\mathbf{in}\ "):
                line = longer
            else:
                self.lines.append((margin, line))
                line, margin = piece, first + indent
        self.lines.append((margin, line))

    def _fits(self, text: str) -> bool:
        return columns(text) <= self.width


def _hidden(word: str) -> str:
    """The space that `word` takes; `word` ends in a space."""
    return word if word.startswith(r"\phantom") else rf"\phantom{{{word[:-2]}}}\ "


def margin(word: str) -> str:
    """The space before what goes on in the next line."""
    return _hidden(word)[:-2] + r"\qquad "
