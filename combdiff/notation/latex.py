"""Turns a result into LaTeX: index form (paper, Eq. 53–58) or, where there is one, matrix form (Eq. 47–49).

Parameters come first, then shared values as **let**, then the result. A formula that is too wide is broken before +
and − outside brackets, in an `aligned` environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from combdiff.errors import UnsupportedError
from combdiff.language.printing.document import sum_parts
from combdiff.notation.latex_names import Scope
from combdiff.notation.latex_terms import number_latex, params_latex, signed_terms, term_latex
from combdiff.notation.matrix.expr import MatrixExpr
from combdiff.notation.matrix.forms import forms_within, is_unit
from combdiff.notation.matrix.notation import LATEX
from combdiff.notation.matrix.notes import named_in, notes, with_names
from combdiff.notation.matrix.printer import matrix_latex_terms
from combdiff.notation.signs import latex_signs
from combdiff.terms.terms import Add, Const, Lam, Let, Mul, Term, Tuple, Var
from combdiff.terms.types import Number


def latex(term: Term, form: str = "index", width: int = 100) -> str:
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
    forms = forms_within(term) if form == "matrix" else {}
    scope = Scope(signs=latex_signs(term, form)).bind(sorted(term.free, key=lambda v: v.uid))
    page = Page(width, forms)
    page.set(term, scope)
    page.explain()
    return page.text()


@dataclass(frozen=True, slots=True)
class _Formula:
    """`head` before it (parameters), then the terms of a sum, each with its sign."""

    head: str
    pieces: list[str]

    def line(self) -> str:
        return " ".join(part for part in (self.head, *self.pieces) if part)


@dataclass(slots=True)
class Page:
    """Lines as (indentation, text), filled from the top."""

    width: int
    forms: Mapping[Term, MatrixExpr]
    lines: list[tuple[str, str]] = field(default_factory=list)
    used: list[tuple[MatrixExpr, Scope]] = field(default_factory=list)

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
            scope = scope.bind([var])
            self._binding(word, var, value, scope, inner)
            word = r"\phantom{\mathbf{let}}\ "
        self._values(r"\mathbf{in}\ ", body.body, scope, r"\quad ")

    def _heads(self, term: Term, scope: Scope) -> tuple[str, Term, Scope]:
        heads = []
        while isinstance(term, Lam) and (not is_unit(term) or isinstance(term.body, Let)):
            scope = scope.bind(term.params)
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
            return _Formula("", [part for piece in pieces for part in self._bracketed_sums(piece)])
        if isinstance(term, Lam) and is_unit(term):
            scope = scope.bind(term.params)
            return _Formula(rf"{params_latex(term.params, scope)} \mapsto", self._broken(term.body, scope))
        if isinstance(term.type, Number) and not isinstance(term, Let):
            return _Formula("", self._broken(term, scope))
        return _Formula("", [term_latex(term, scope)])

    def _bracketed_sums(self, piece: str) -> list[str]:
        """A product that takes most of a line, broken before + and − inside its outermost brackets."""
        return _within_brackets(piece) if 3 * _seen(piece) > 2 * self.width else [piece]

    def _broken(self, term: Term, scope: Scope) -> list[str]:
        """Where a sum may be broken; one with a number in front is broken within its brackets if it is too wide."""
        pieces = sum_parts(signed_terms(term, scope))
        match term:
            case Mul((Const() as c, Add() as inner)) if 3 * _seen(pieces[0]) > 2 * self.width:
                first, *most, last = sum_parts(signed_terms(inner, scope))
                return [rf"{number_latex(c, alone=False)} \bigl({first}", *most, rf"{last}\bigr)"]
            case _:
                return pieces

    def _binding(self, word: str, var: Var, value: Term, scope: Scope, inner: Scope) -> None:
        name = scope[var]
        if value not in self.forms and isinstance(value, Lam) and is_unit(value):
            self._entries(word, var, value, scope, inner)
            return
        heads, body, inner = self._heads(value, inner)
        formula = self._formula(body, inner)
        self._fill(
            " ".join(part for part in (word + f"{name} =", heads, formula.head) if part), formula.pieces, r"\qquad "
        )

    def explain(self) -> None:
        """Where-clauses: what stands under a name of its own, then what the signs mean."""
        word, following = r"\text{where}\ ", r"\phantom{\text{where}}\ "
        named = {named: scope for expr, scope in self.used for named in named_in(expr)}
        for definition, scope in named.items():
            self._entries(word, definition.var, definition.value, scope, scope)
            word = following
        for clause in notes(self.used, LATEX):
            self.lines.append(("", word + clause))
            word = following

    def _entries(self, word: str, var: Var, value: Term, scope: Scope, inner: Scope) -> None:
        """x_{i} = …: a tensor in index form."""
        params, body = (value.params, value.body) if isinstance(value, Lam) else ((), value)
        inner, name = inner.bind(params), scope[var]
        name = f"{{{name}}}" if name.endswith("}") and "_{" in name else name
        slots = f"_{{{inner.subscripts(inner[p] for p in params)}}}" if params else ""
        self._fill(f"{word}{name}{slots} =", self._broken(body, inner), r"\qquad ")

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
        whole = rf"\left({', '.join(formula.line() for formula in formulas)}\right)"
        if _seen(f"{lead} {whole}") <= self.width:
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
        """`lead` and `pieces` on one line if they fit, otherwise broken between pieces."""
        gap = "" if not lead or lead.endswith((" ", "(")) or lead.endswith("(}") else " "
        whole = lead + gap + " ".join(pieces)
        if _seen(whole) <= self.width or (len(pieces) == 1 and not lead):
            self.lines.append((first, whole))
            return
        line, margin = lead, first
        for piece in pieces:
            longer = f"{line}{gap if line is lead else ' '}{piece}" if line else piece
            if line and _seen(longer) > self.width:
                self.lines.append((margin, line))
                line, margin = piece, first + indent
            else:
                line = longer
        self.lines.append((margin, line))


def _within_brackets(text: str) -> list[str]:
    """`text` cut before the + and − that stand in the fewest round brackets, and in no braces.

    >>> _within_brackets("2 (A + B^{n + 1} - f(C + D)) E")
    ['2 (A', '+ B^{n + 1}', '- f(C + D)) E']
    """
    depth = braces = 0
    cuts: dict[int, list[int]] = {}
    for match in re.finditer(r"\\left|\\right|[(){}]| [-+] ", text):
        sign = match.group()
        if sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign.strip() in "+-":
            if not braces:
                cuts.setdefault(depth, []).append(match.start())
        else:
            braces += 1 if sign in (r"\left", "{") else -1
    at = [0, *cuts.get(min(cuts, default=0), []), len(text)]
    return [text[a:b].strip() for a, b in pairwise(at)]


_INVISIBLE = re.compile(r"\\(?:left|right|bigl|bigr|math[a-z]+|operatorname|frac|quad|,)(?![a-z])|[{}^_ ]")
_SPACED = re.compile(r" (?:[-+=]|\\mapsto) ")
_SIGN = re.compile(r"\\[a-zA-Z]+")


def columns(text: str) -> int:
    """About how many signs wide the widest line of a formula is.

    >>> columns(r"x + \\frac{a}{b} \\\\ & y")
    6
    """
    return max(map(_seen, text.split(r"\\")))


def _seen(text: str) -> int:
    """About how many signs wide the formula is; + − = ↦ have space around them."""
    return len(_SIGN.sub("x", _INVISIBLE.sub("", _SPACED.sub("===", text))))
