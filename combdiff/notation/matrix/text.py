"""Prints a result in matrix form as plain text: shared values a line each, then the value, then where-clauses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from combdiff.language.printing.printer import expression_text as in_language
from combdiff.notation.extents import extent_text, size_names
from combdiff.notation.latex_names import Scope
from combdiff.notation.matrix.expr import MatrixExpr, Size
from combdiff.notation.matrix.forms import forms_within, is_unit
from combdiff.notation.matrix.notation import TEXT
from combdiff.notation.matrix.notes import named_in, notes, with_names
from combdiff.notation.matrix.parts import nodes
from combdiff.notation.matrix.printer import algebra_text
from combdiff.notation.page import without_needless_re
from combdiff.notation.signs import text_signs
from combdiff.records import dataclass
from combdiff.terms.terms import Lam, Let, Loop, Term, Tuple


def matrix_text(term: Term) -> str:
    """A result's values in matrix form as plain text; a value that has none is written in the language.

    >>> from combdiff.terms.terms import App, Lam, fresh, mul, number
    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> i = fresh("i", Index(Domain("x.1")))
    >>> x = fresh("x", Map((i.kind,), REAL))
    >>> matrix_text(Lam((x,), Lam((i,), mul(number(2), App(x, (i,))))))
    '2 x'
    """
    term = without_needless_re(term)
    result, sizes = _Result(forms_within(term)), size_names(term, spell=str)
    scope = Scope(str, signs=text_signs(term) | {*sizes.values()}, sizes=sizes)
    lines = [result.text(term, scope.bind(sorted(term.free, key=lambda v: v.uid)))]
    return "\n".join([*lines, *(f"where {clause}" for clause in result.clauses())])


@dataclass(frozen=True, slots=True)
class _Result:
    """The matrix forms within a result; the others are looked up in the language's own printer."""

    forms: Mapping[Term, MatrixExpr]
    used: list[tuple[MatrixExpr, Scope]] = field(default_factory=list)
    tensors: list[str] = field(default_factory=list)

    def clauses(self) -> list[str]:
        """What is to be said beside the lines: definitions first."""
        named = {named: scope for expr, scope in self.used for named in named_in(expr)}
        definitions = [f"{scope[of.var]} = {in_language(of.value, scope.names)}" for of, scope in named.items()]
        unnamed = any(isinstance(e, Size) and not e.domain.sized for expr, _ in self.used for e in nodes(expr))
        extents = [", ".join(self.tensors)] if unnamed else []
        return [*extents, *definitions, *notes(self.used, TEXT)]

    def text(self, term: Term, scope: Scope) -> str:
        """Parameters are left out; shared values come first, a line each."""
        found = self.forms.get(term)
        match term:
            case _ if found is not None:
                scope = with_names(found, scope)
                self.used.append((found, scope))
                return algebra_text(found, scope)
            case Let(bindings, _) if any(isinstance(value, Loop) for _, value in bindings):
                return in_language(term, scope.names)
            case Let(bindings, body):
                lines = []
                for var, value in bindings:
                    inner = scope.seeing(value)
                    scope = scope.bind([var])
                    lines.append(f"{scope[var]} = {self._definition(value, inner)}")
                return "\n".join([*lines, self.text(body, scope)])
            case Tuple(items):
                return f"({', '.join(self.text(item, scope) for item in items)})"
            case Lam(params, body) if isinstance(body, Let) or not is_unit(term):
                inner = scope.bind(params)
                self.tensors.extend(filter(None, (extent_text(p, inner[p], scope.sizes) for p in params)))
                return self.text(body, inner)
            case _:
                return in_language(term, scope.names)

    def _definition(self, value: Term, scope: Scope) -> str:
        if value in self.forms or not isinstance(value, Lam) or is_unit(value):
            return self.text(value, scope)
        inner = scope.bind(value.params)
        return f"{', '.join(inner[p] for p in value.params)} ↦ {self._definition(value.body, inner)}"
