"""A derivation as a paper prints it: the objective, its derivatives with their left-hand sides, and where-clauses.

Indices that are single letters stand side by side, equations are aligned at their signs, and a long sum is broken at
its + and −.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from combdiff.notation.latex import Page
from combdiff.notation.latex_names import Scope
from combdiff.notation.latex_terms import term_latex
from combdiff.notation.letters import names_in, with_letters
from combdiff.notation.matrix.forms import forms_within, is_unit
from combdiff.notation.signs import latex_signs
from combdiff.terms.terms import Lam, Let, Term, Tuple, Var
from combdiff.terms.types import Number

_OBJECTIVES = ("E", "f", "L", "F", "g", r"\Phi")
_VALUES = ("y", "z", "w", "F", r"\Phi")


@dataclass(frozen=True, slots=True)
class Opened:
    """A map taken apart: its parameters, the values that have names, and the items that it returns."""

    params: tuple[Var, ...]
    bindings: tuple[tuple[Var, Term], ...]
    items: tuple[Term, ...]

    @classmethod
    def of(cls, term: Term) -> Opened:
        params: list[Var] = []
        while isinstance(term, Lam) and (not is_unit(term) or isinstance(term.body, Let)):
            params += term.params
            term = term.body
        bindings = term.bindings if isinstance(term, Let) else ()
        body = term.body if isinstance(term, Let) else term
        return cls(tuple(params), bindings, body.items if isinstance(body, Tuple) else (body,))


def paper_latex(objective: Lam, result: Term, mode: str, form: str = "index", width: int = 100) -> str:
    """An objective and its derivative, of the mode "grad", "pullback" or "hvp", as LaTeX for math mode.

    >>> from combdiff.terms.terms import App, fresh, mul, number, power, total
    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> i = fresh("i", Index(Domain("x.1")))
    >>> x = fresh("x", Map((i.kind,), REAL))
    >>> energy = Lam((x,), total([i], power(App(x, (i,)), number(2))))
    >>> print(paper_latex(energy, Lam((x,), Lam((i,), mul(number(2), App(x, (i,))))), "grad"))
    \\begin{aligned}
    E(x) &= \\sum_{i} x_{i}^{2} \\\\
    \\frac{\\partial E}{\\partial x_{i}} &= 2 x_{i}
    \\end{aligned}
    """
    result = with_letters(result, names_in(objective))
    forms = {**forms_within(objective), **forms_within(result)} if form == "matrix" else {}
    signs = latex_signs(result, form) | latex_signs(objective, form)
    page = PaperPage(width, forms, scope=Scope(signs=signs, commas=False))
    page.objective(objective, mode, {var.name for var, _ in Opened.of(result).bindings})
    page.derivatives(objective, result, mode)
    page.explain()
    return page.text()


@dataclass(slots=True)
class PaperPage(Page):
    """Lines as (what stands left of the sign, the rest)."""

    scope: Scope = field(default_factory=Scope)
    name: str = ""

    def text(self) -> str:
        """The lines, aligned at their signs."""
        rows = " \\\\\n".join(f"{left} &{text}".strip() for left, text in self.lines)
        return f"\\begin{{aligned}}\n{rows}\n\\end{{aligned}}"

    def objective(self, objective: Lam, mode: str, later: Collection[str]) -> None:
        """E(x) = …, with what it names below, but for the names that are explained later."""
        opened = Opened.of(objective)
        free = sorted(objective.free, key=lambda v: v.uid)
        scope = self.scope.bind([*free, *objective.params])
        taken = {*scope.names.values(), *scope.signs}
        names = _OBJECTIVES if mode != "pullback" else _VALUES
        self.name = next((n for n in names if n not in taken), names[0])
        arguments = ", ".join(scope[p] for p in objective.params)
        scope = self._named(opened.bindings, scope, later=True)
        for n, item in enumerate(opened.items):
            number = f"^{{({n + 1})}}" if len(opened.items) > 1 else ""
            left, inner, body = self._entry(f"{self.name}{number}", item, scope)
            self._equation(left if isinstance(item, Lam) else f"{left}({arguments})", body, inner)
        own = [(var, value) for var, value in opened.bindings if var.name not in later]
        self._named(own, self.scope.bind([*free, *objective.params]))

    def derivatives(self, objective: Lam, result: Term, mode: str) -> None:
        """∂E/∂x = …, one for each unknown, with what they name below."""
        opened = Opened.of(result)
        count = len(objective.params)
        behind = {"grad": 0, "hvp": count}.get(mode, len(opened.params) - _given(opened.params, objective) - count)
        unknowns = opened.params[len(opened.params) - behind - count : len(opened.params) - behind]
        bound = self.scope.bind([*sorted(result.free, key=lambda v: v.uid), *opened.params])
        scope = self._named(opened.bindings, bound, later=True)
        for n, item in enumerate(opened.items):
            unknown = scope[unknowns[n]] if len(opened.items) == count else str(n + 1)
            self._derivative(mode, unknown, item, scope, opened.params[len(opened.params) - behind :], count)
        self._named(opened.bindings, bound)

    def _derivative(
        self, mode: str, unknown: str, item: Term, scope: Scope, directions: Sequence[Var], count: int
    ) -> None:
        if mode == "pullback":
            stem, _, subscript = unknown.partition("_")
            left, inner, body = self._entry(rf"\bar{{{stem}}}" + (f"_{subscript}" if subscript else ""), item, scope)
        elif mode == "hvp":
            along = ", ".join(scope[k] for k in directions)
            which = f"_{{{unknown}}}" if count > 1 else ""
            product = rf"\left(\nabla^{{2}} {self.name}\, {along if count == 1 else f'({along})'}\right){which}"
            left, inner, body = self._entry(product, item, scope)
        else:
            entry, inner, body = self._entry(unknown, item, scope)
            left = rf"\frac{{\partial {self.name}}}{{\partial {entry}}}"
        self._equation(left, body, inner)

    def _entry(self, name: str, item: Term, scope: Scope) -> tuple[str, Scope, Term]:
        """The left-hand side of an item: with its indices, unless it has a matrix form."""
        if item in self.forms or not (isinstance(item, Lam) and is_unit(item)):
            return name, scope, item
        inner = scope.bind(item.params)
        # TeX refuses a second subscript on x_{1}
        base = f"{{{name}}}" if name.endswith("}") and "_{" in name else name
        return f"{base}_{{{inner.subscripts(inner[p] for p in item.params)}}}", inner, item.body

    def _equation(self, left: str, body: Term, scope: Scope) -> None:
        """left = the terms of a sum, in lines."""
        if body in self.forms:
            pieces = self._formula(body, scope).pieces
        elif isinstance(body.type, Number):
            pieces = self._broken(body, scope)
        else:
            pieces = [term_latex(body, scope)]
        start = len(self.lines)
        self._fill("=", pieces, r"\quad ")
        self.lines[start] = (left, self.lines[start][1])

    def _named(self, bindings: Sequence[tuple[Var, Term]], scope: Scope, later: bool = False) -> Scope:
        """Where-clauses for values that have names; `later`: only their names, for what stands above them."""
        word = r"\quad \text{where}\ "
        for var, value in bindings:
            inner, scope = scope.seeing(value), scope.bind([var])
            if not later:
                self._binding(word, var, value, scope, inner)
                word = r"\phantom{\quad \text{where}}\ "
        return scope


def _given(params: Sequence[Var], objective: Lam) -> int:
    """How many parameters stand before the unknowns."""
    names = [p.name for p in params]
    return names.index(objective.params[0].name)
