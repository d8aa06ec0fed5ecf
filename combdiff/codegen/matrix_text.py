"""Prints matrix expressions as plain text (`xᵀ A x`) and as LaTeX (`x^{\\mathsf{T}} A x`; paper, Eq. 47–49)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from combdiff.codegen.latex_names import Scope
from combdiff.codegen.matrix import forms_within, is_unit
from combdiff.codegen.matrix_expr import (
    Adjoint,
    Conjugate,
    Diag,
    Diagonal,
    Entrywise,
    Function,
    Identity,
    Item,
    Leaf,
    MatrixExpr,
    Number,
    Ones,
    Pi,
    Power,
    Product,
    Scale,
    Sum,
    Trace,
    Transpose,
    Value,
)
from combdiff.language.printer import expression_text as in_language
from combdiff.language.scalars import SCALAR_FUNCTIONS
from combdiff.language.terms import MINUS_ONE, ONE, Const, Diff, Lam, Let, Term, Tuple, Var, mul

SUM, PRODUCT, POSTFIX, ATOM = range(4)
"""How tightly an expression holds together; one that stands in a tighter place gets brackets."""


@dataclass(frozen=True, slots=True)
class Notation:
    """How one medium writes what has no common form; the strings are formats, `{}` being the operand."""

    transpose: str
    adjoint: str
    conjugate: str
    conjugate_binds: int
    trace: str
    diag: str
    diagonal: str
    ones: str
    identity: str
    pi: str
    imaginary: str
    entrywise: str
    fraction: str
    power: str
    entrywise_power: str
    item: str
    gradient: str
    pullback: str
    functions: Mapping[str, str]


TEXT = Notation(
    transpose="{}ᵀ",
    adjoint="{}†",
    conjugate="conj({})",
    conjugate_binds=SUM,
    trace="tr({})",
    diag="diag({})",
    diagonal="diagonal({})",
    ones="𝟏",
    identity="𝐈",
    pi="π",
    imaginary="im",
    entrywise=" ∘ ",
    fraction="{}/{}",
    power="{}^{}",
    entrywise_power="{}^∘{}",
    item="{}[{}]",
    gradient="∇{}",
    pullback="𝒫({})",
    functions={},
)


def _quoted(text: str) -> str:
    """`text` for a format string, its braces as they are."""
    return text.replace("{", "{{").replace("}", "}}")


_WRITTEN_ROUND = {
    "sqrt": r"\sqrt{{{}}}",
    "abs": r"\left|{}\right|",
    "abs2": r"\left|{}\right|^{{2}}",
}
LATEX = Notation(
    transpose=r"{}^{{\mathsf{{T}}}}",
    adjoint=r"{}^{{\dagger}}",
    conjugate="{}^{{*}}",
    conjugate_binds=ATOM,
    trace=r"\mathrm{{tr}}({})",
    diag=r"\mathrm{{diag}}({})",
    diagonal=r"\mathrm{{diagonal}}({})",
    ones=r"\mathbf{1}",
    identity=r"\mathbf{I}",
    pi=r"\pi",
    imaginary=r"\mathrm{i}",
    entrywise=r" \circ ",
    fraction=r"\frac{{{}}}{{{}}}",
    power="{}^{{{}}}",
    entrywise_power=r"{}^{{\circ {}}}",
    item=r"{}_{{({})}}",
    gradient=r"\nabla {}",
    pullback=r"\mathcal{{P}}({})",
    functions={name: _WRITTEN_ROUND.get(name, _quoted(row.latex) + "({})") for name, row in SCALAR_FUNCTIONS.items()},
)


def matrix_text(term: Term) -> str:
    """A result's values in matrix form as plain text; a value that has none is written in the language.

    >>> from combdiff.language.terms import App, Lam, fresh, mul, number
    >>> from combdiff.language.types import REAL, Domain, Index, Map
    >>> i = fresh("i", Index(Domain("x.1")))
    >>> x = fresh("x", Map((i.kind,), REAL))
    >>> matrix_text(Lam((x,), Lam((i,), mul(number(2), App(x, (i,))))))
    '2 x'
    """
    return _Result(forms_within(term)).text(term, Scope(str).bind(sorted(term.free, key=lambda v: v.uid)))


@dataclass(frozen=True, slots=True)
class _Result:
    """The matrix forms within a result; the others are looked up in the language's own printer."""

    forms: Mapping[Term, MatrixExpr]

    def text(self, term: Term, scope: Scope) -> str:
        """Parameters are left out; shared values come first, a line each."""
        found = self.forms.get(term)
        match term:
            case _ if found is not None:
                return algebra_text(found, scope)
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
                return self.text(body, scope.bind(params))
            case _:
                return in_language(term)

    def _definition(self, value: Term, scope: Scope) -> str:
        if value in self.forms or not isinstance(value, Lam) or is_unit(value):
            return self.text(value, scope)
        inner = scope.bind(value.params)
        return f"{', '.join(inner[p] for p in value.params)} ↦ {self._definition(value.body, inner)}"


def algebra_text(expr: MatrixExpr, scope: Scope | None = None) -> str:
    """`expr` as plain text.

    >>> from combdiff.language.terms import fresh
    >>> from combdiff.language.types import REAL
    >>> algebra_text(Product((Transpose(Leaf(fresh("x", REAL))), Leaf(fresh("A", REAL)))))
    'xᵀ A'
    """
    return _Printer(TEXT, scope or Scope(str), scope is None).write(expr, SUM)


def algebra_latex(expr: MatrixExpr, scope: Scope | None = None) -> str:
    """`expr` as LaTeX, variables written as in `scope`.

    >>> from combdiff.language.terms import fresh
    >>> from combdiff.language.types import REAL
    >>> print(algebra_latex(Adjoint(Leaf(fresh("rho", REAL)))))
    \\rho^{\\dagger}
    """
    return _Printer(LATEX, scope or Scope(), scope is None).write(expr, SUM)


def matrix_latex_terms(expr: MatrixExpr, scope: Scope) -> list[tuple[bool, str]]:
    """The terms of the sum `expr`, each with whether it is subtracted.

    >>> matrix_latex_terms(Number(MINUS_ONE), Scope())
    [(True, '1')]
    """
    return _Printer(LATEX, scope, False).terms(expr)


@dataclass(slots=True)
class _Printer:
    notation: Notation
    scope: Scope
    open_scope: bool

    def name(self, var: Var) -> str:
        if self.open_scope and var not in self.scope.names:
            self.scope = self.scope.bind([var])
        return self.scope[var]

    def terms(self, expr: MatrixExpr) -> list[tuple[bool, str]]:
        """A sum's terms as (is it subtracted, text)."""
        if isinstance(expr, Sum):
            return [term for item in expr.items for term in self.terms(item)]
        coefficient = expr.coefficient if isinstance(expr, Scale) else expr.value if isinstance(expr, Number) else ONE
        if coefficient.real < 0 and not coefficient.imag:
            flipped = mul(MINUS_ONE, coefficient)
            assert isinstance(flipped, Const), "a number times a number"
            expr = Scale(flipped, expr.scalars, expr.of) if isinstance(expr, Scale) else Number(flipped)
            return [(True, self.write(expr, PRODUCT))]
        return [(False, self.write(expr, PRODUCT))]

    def write(self, expr: MatrixExpr, least: int) -> str:
        """The text of `expr`, bracketed if it binds less than `least`."""
        text, binds = self._written(expr)
        return f"({text})" if binds < least else text

    def _written(self, expr: MatrixExpr) -> tuple[str, int]:
        n = self.notation
        match expr:
            case Leaf(var):
                return self.name(var), ATOM
            case Sum():
                return _signed(self.terms(expr)), SUM
            case Number(value):
                return self._number(value)
            case Scale():
                return self._scaled(expr)
            case Product(items):
                return " ".join(self.write(item, POSTFIX) for item in items), PRODUCT
            case Entrywise(items):
                return n.entrywise.join(self.write(item, POSTFIX) for item in items), SUM
            case Function(name, of):
                pattern = n.functions.get(name, name + "({})")
                return pattern.format(self.write(of, SUM)), POSTFIX if "^" in pattern else ATOM
            case Power(base, exponent, by_entry):
                pattern = n.entrywise_power if by_entry else n.power
                return pattern.format(self.write(base, ATOM), self._exponent(exponent)), POSTFIX
            case Value(function, args):
                return f"{self._head(function)}({', '.join(self.write(a, SUM) for a in args)})", ATOM
            case Item(item, of):
                return n.item.format(self.write(of, ATOM), item + 1), POSTFIX
            case Conjugate(of):
                return n.conjugate.format(self.write(of, n.conjugate_binds)), ATOM if n is TEXT else POSTFIX
            case _:
                return self._of_a_matrix(expr)

    def _of_a_matrix(self, expr: MatrixExpr) -> tuple[str, int]:
        n = self.notation
        match expr:
            case Transpose(of):
                return n.transpose.format(self.write(of, ATOM)), POSTFIX
            case Adjoint(of):
                return n.adjoint.format(self.write(of, ATOM)), POSTFIX
            case Diag(of):
                return n.diag.format(self.write(of, SUM)), ATOM
            case Diagonal(of):
                return n.diagonal.format(self.write(of, SUM)), ATOM
            case Trace(of):
                return n.trace.format(self.write(of, SUM)), ATOM
            case Ones():
                return n.ones, ATOM
            case Identity():
                return n.identity, ATOM
            case Pi():
                return n.pi, ATOM
            case _:
                raise AssertionError(f"unknown node {type(expr).__name__}")

    def _scaled(self, expr: Scale) -> tuple[str, int]:
        front = [self.write(scalar, POSTFIX) for scalar in expr.scalars]
        last = self.write(expr.of, PRODUCT)
        minus = expr.coefficient == MINUS_ONE
        if expr.coefficient not in (ONE, MINUS_ONE):
            text, binds = self._number(expr.coefficient)
            minus = text.startswith("-") and not expr.coefficient.imag
            text = text.removeprefix("-") if minus else text
            front.insert(0, f"({text})" if binds == SUM and not minus else text)
        text = " ".join([*front, last])
        return ("-" + text, SUM) if minus else (text, PRODUCT)

    def _exponent(self, exponent: MatrixExpr) -> str:
        if isinstance(exponent, Number) and not exponent.value.imag:
            text = str(exponent.value.real)
            return text if self.notation is LATEX or text.isdigit() else f"({text})"
        return self.write(exponent, SUM if self.notation is LATEX else ATOM)

    def _head(self, function: Term) -> str:
        match function:
            case Var():
                return self.name(function)
            case Diff("grad", of):
                return self.notation.gradient.format(self._head(of))
            case Diff(_, of):
                return self.notation.pullback.format(self._head(of))
            case _:
                raise AssertionError("only unknown maps have values here")

    def _number(self, value: Const) -> tuple[str, int]:
        def fraction(x: Fraction) -> str:
            sign, x = "-" if x < 0 else "", abs(x)
            return sign + (str(x) if x.denominator == 1 else self.notation.fraction.format(x.numerator, x.denominator))

        if not value.imag:
            whole = value.real.denominator == 1
            return fraction(value.real), SUM if value.real < 0 else ATOM if whole else PRODUCT
        unit = self.notation.imaginary
        imag = unit if abs(value.imag) == 1 else f"{fraction(abs(value.imag))} {unit}"
        if not value.real:
            return ("-" + imag, SUM) if value.imag < 0 else (imag, PRODUCT)
        return f"{fraction(value.real)} {'-' if value.imag < 0 else '+'} {imag}", SUM


def _signed(terms: list[tuple[bool, str]]) -> str:
    """a − b + c.

    >>> _signed([(True, "a"), (False, "b"), (True, "c")])
    '-a + b - c'
    """
    first, *rest = terms
    return ("-" if first[0] else "") + first[1] + "".join(f" {'-' if minus else '+'} {text}" for minus, text in rest)
