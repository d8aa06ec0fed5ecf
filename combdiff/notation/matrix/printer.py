"""Prints matrix expressions as plain text (`xᵀ A x`) and as LaTeX (`x^{\\mathsf{T}} A x`; paper, Eq. 47–49)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from combdiff.language.printing.document import ATOM, ENTRYWISE, POSTFIX, PRODUCT, SUM, Piece, placed, sum_text
from combdiff.notation.brackets import beside, bracketed, is_tall, subscripted
from combdiff.notation.latex_names import Scope, latex_name
from combdiff.notation.matrix.expr import (
    Adjoint,
    AtMost,
    Conjugate,
    Contraction,
    Diag,
    Diagonal,
    Entrywise,
    Function,
    Identity,
    Item,
    KhatriRao,
    Kronecker,
    Leaf,
    MatrixExpr,
    Named,
    Norm,
    Number,
    OfMatrix,
    Ones,
    Pi,
    Power,
    Product,
    Reciprocal,
    Scale,
    Size,
    Sum,
    Tensor,
    Trace,
    Transpose,
    Unfolding,
    Value,
    Vec,
)
from combdiff.notation.matrix.notation import LATEX, TEXT, Notation, pattern_of, quoted
from combdiff.notation.matrix.reading import is_column, is_number
from combdiff.records import dataclass
from combdiff.terms.terms import MINUS_ONE, ONE, ZERO, Call, Const, Diff, Lam, Term, Var, mul, number


def algebra_text(expr: MatrixExpr, scope: Scope | None = None) -> str:
    """`expr` as plain text.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> algebra_text(Product((Transpose(Leaf(fresh("x", REAL))), Leaf(fresh("A", REAL)))))
    'xᵀ A'
    """
    return _Printer(TEXT, scope or Scope(str), scope is None).write(expr, SUM)


def algebra_latex(expr: MatrixExpr, scope: Scope | None = None) -> str:
    """`expr` as LaTeX, variables written as in `scope`.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
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


_GROWING = (
    ("({})", r"\!\left({}\right)"),
    (r"\lvert {} \rvert", r"\left|{}\right|"),
    (r"\lVert {} \rVert", r"\left\|{}\right\|"),
)
"""Brackets of a line, and those that grow."""


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
            return [(True, self.write(expr, ENTRYWISE))]
        return [(False, self.write(expr, ENTRYWISE))]

    def write(self, expr: MatrixExpr, least: int) -> str:
        """The text of `expr`, bracketed if it binds less than `least`."""
        return placed(self._written(expr), least, self._bracketed)

    def _bracketed(self, text: str) -> str:
        return bracketed(text) if self.notation is LATEX else f"({text})"

    def _filled(self, pattern: str, text: str) -> str:
        """A function with its argument, in brackets of their size."""
        written = pattern.format(text)
        if self.notation is LATEX and is_tall(text):
            for plain, tall in _GROWING:
                if plain in pattern:
                    left, right = (sign.format(text) for sign in (plain, tall))
                    return written.replace(left, right)
        return written

    def _beside(self, factors: Sequence[str]) -> str:
        return beside(factors) if self.notation is LATEX else " ".join(factors)

    def _written(self, expr: MatrixExpr) -> Piece:
        n = self.notation
        match expr:
            case Leaf(var):
                return self.name(var), ATOM
            case Sum():
                return sum_text(self.terms(expr)), SUM
            case Number(value):
                return self._number(value)
            case Scale():
                return self._scaled(expr)
            case Product(items):
                return self._beside([self.write(item, POSTFIX) for item in items]), PRODUCT
            case Entrywise(items):
                return self._by_entry(items), ENTRYWISE
            case Function(name, of):
                pattern = n.functions.get(name) or pattern_of(name, n)
                return self._filled(pattern, self.write(of, SUM)), POSTFIX if "^" in pattern else ATOM
            case Power(_, Number(exponent), False) if self._is_below(expr) and is_number(expr):
                return n.fraction.format("1", self.write(_inverted(expr), SUM)), PRODUCT
            case Power(_, Number(exponent), False) if exponent == MINUS_ONE and not is_number(expr):
                return self._of_a_matrix(expr)
            case Power(Function(), Number()) if n is LATEX:
                return self._power_of_function(expr)
            case Power(base, exponent, by_entry):
                return self._power(base, self._exponent(exponent), by_entry), POSTFIX
            case Value(function, args):
                return self._filled(
                    quoted(self._head(function)) + "({})", ", ".join(self.write(a, SUM) for a in args)
                ), ATOM
            case Item(item, of):
                return n.item.format(self.write(of, ATOM), item + 1), POSTFIX
            case Conjugate(of):
                return n.conjugate.format(self.write(of, n.conjugate_binds)), ATOM if n is TEXT else POSTFIX
            case _:
                return self._of_a_matrix(expr)

    def _power(self, base: MatrixExpr, exponent: str, by_entry: bool) -> str:
        pattern = self.notation.entrywise_power if by_entry else self.notation.power
        return pattern.format(self.write(base, ATOM), exponent)

    def _power_of_function(self, power: Power) -> Piece:
        """A root or the square of a modulus to a power: x^{3/2}, |z|^4."""
        match power:
            case Power(Function("sqrt", of), Number(k), by_entry) if k.is_integer and k.real.numerator % 2:
                return self._power(of, str(k.real / 2), by_entry), POSTFIX
            case Power(Function("abs2", of), Number(k), by_entry) if k.is_integer:
                return self._power(Function("abs", of), str(2 * k.real), by_entry), POSTFIX
            case Power(base, exponent, by_entry):
                return self._power(base, self._exponent(exponent), by_entry), POSTFIX

    def _function_of_a_matrix(self, pattern: str, of: MatrixExpr) -> Piece:
        if pattern.startswith("{}^"):
            return pattern.format(self.write(of, ATOM)), POSTFIX
        return self._filled(pattern, self.write(of, SUM)), ATOM

    def _of_a_matrix(self, expr: MatrixExpr) -> Piece:
        n = self.notation
        match expr:
            case Power(of, Number(exponent), False) if exponent == MINUS_ONE:
                return n.inverse.format(self.write(of, ATOM)), POSTFIX
            case Transpose(Power(of, Number(exponent), False)) if exponent == MINUS_ONE:
                return n.transposed_inverse.format(self.write(of, ATOM)), POSTFIX
            case Adjoint(Power(of, Number(exponent), False)) if exponent == MINUS_ONE:
                return n.adjoint_inverse.format(self.write(of, ATOM)), POSTFIX
            case OfMatrix(name, of):
                return self._function_of_a_matrix(n.of_matrices[name], of)
            case Transpose(of):
                return n.transpose.format(self.write(of, ATOM)), POSTFIX
            case Adjoint(of):
                return n.adjoint.format(self.write(of, ATOM)), POSTFIX
            case Diag(of):
                return self._filled(n.diag, self.write(of, SUM)), ATOM
            case Diagonal(of):
                return self._filled(n.diagonal, self.write(of, SUM)), ATOM
            case Trace(of):
                return self._filled(n.trace, self.write(of, SUM)), ATOM
            case Norm(of):
                norm = n.norm if is_column(of) else n.frobenius
                return self._filled(norm, self.write(of, SUM)), ATOM
            case AtMost(left, right):
                return self._compared(left, right), ATOM
            case Reciprocal(of):
                return n.reciprocal.format(self.write(of, ATOM)), POSTFIX
            case Vec(of):
                return self._filled(n.vec, self.write(of, SUM)), ATOM
            case Kronecker(left, right):
                return n.kronecker.format(self.write(left, POSTFIX), self.write(right, POSTFIX)), ENTRYWISE
            case KhatriRao(left, right):
                return n.khatri_rao.format(self.write(left, POSTFIX), self.write(right, POSTFIX)), ENTRYWISE
            case Contraction(tensor, of, slots):
                sign = n.contracted[slots]
                return f"{self.write(tensor, POSTFIX)}{sign}{self.write(of, PRODUCT)}", ENTRYWISE
            case _:
                return self._constant(expr)

    def _compared(self, left: MatrixExpr, right: MatrixExpr) -> str:
        """[a ≤ b], or [b < a] for what is 1 where a ≤ b does not hold."""
        match left, right:
            case AtMost(low, high), Number(zero) if zero == ZERO:
                return self.notation.less.format(self.write(high, SUM), self.write(low, SUM))
            case _:
                return self.notation.at_most.format(self.write(left, SUM), self.write(right, SUM))

    def _constant(self, expr: MatrixExpr) -> Piece:
        n = self.notation
        match expr:
            case Tensor(var, order) if order == tuple(range(1, len(order) + 1)):
                return self.name(var), ATOM
            case Tensor(var, order):
                return n.order.format(self.name(var), "".join(map(str, order))), POSTFIX
            case Unfolding(var, mode):
                return n.unfolding.format(self._stem(var), mode), ATOM
            case Named(var):
                return self.name(var), ATOM
            case Size(domain):
                known = self.scope.sizes.get(domain)
                return known or (latex_name(domain.name) if n is LATEX else domain.name), ATOM
            case Ones():
                return n.ones, ATOM
            case Identity():
                return n.identity, ATOM
            case Pi():
                return n.pi, ATOM
            case _:
                raise AssertionError(f"unknown node {type(expr).__name__}")

    def _stem(self, var: Var) -> str:
        name = self.name(var)
        return subscripted(name) if self.notation is LATEX else name

    def _by_entry(self, items: Iterable[MatrixExpr]) -> str:
        """a ∘ b ⊘ (c ∘ d): negative powers are divided by, unless nothing else is there."""
        above: list[MatrixExpr] = []
        below: list[MatrixExpr] = []
        for item in items:
            match item:
                case Power(_, Number(exponent), True) if exponent.is_integer and exponent.real < 0:
                    below.append(_inverted(item))
                case _:
                    above.append(item)
        if not above:
            above, below = list(items), []
        text = self.notation.entrywise.join(self.write(item, POSTFIX) for item in above)
        if not below:
            return text
        bottom = self.notation.entrywise.join(self.write(item, POSTFIX) for item in below)
        return self.notation.divided.format(text, bottom if len(below) == 1 else f"({bottom})")

    def _scaled(self, expr: Scale) -> Piece:
        coefficient, of = expr.coefficient, expr.of
        minus = coefficient.real < 0 and not coefficient.imag
        if minus:
            flipped = mul(MINUS_ONE, coefficient)
            assert isinstance(flipped, Const), "minus a number"
            coefficient = flipped
        numbers = [*expr.scalars, *([of] if is_number(of) else [])]
        below = [_inverted(s) for s in numbers if self._is_below(s)]
        if below and self.notation is LATEX:
            text = self._fraction(coefficient, [s for s in numbers if not self._is_below(s)], below)
            last, binds = ("", PRODUCT) if is_number(of) else self._in_scale(of)
        elif below:
            rest = [self.write(s, POSTFIX) for s in expr.scalars if not self._is_below(s)]
            text = self._beside([self._fraction(coefficient, [], below), *rest])
            last, binds = ("", PRODUCT) if self._is_below(of) else self._in_scale(of)
        else:
            front = [] if coefficient == ONE else [self._coefficient(coefficient)]
            text = self._beside([*front, *(self.write(scalar, POSTFIX) for scalar in expr.scalars)])
            last, binds = self._in_scale(of)
        text = self._beside([part for part in (text, last) if part])
        return ("-" + text, SUM) if minus else (text, binds)

    def _is_below(self, expr: MatrixExpr) -> bool:
        """Whether a fraction shows a power in its denominator: any number in LaTeX, only sizes in text."""
        return _inverted(expr) is not expr and (
            self.notation is LATEX or (isinstance(expr, Power) and isinstance(expr.base, Size))
        )

    def _in_scale(self, of: MatrixExpr) -> Piece:
        found = self._written(of)
        return placed(found, ENTRYWISE, self._bracketed), PRODUCT if found[1] < ENTRYWISE else min(found[1], PRODUCT)

    def _coefficient(self, value: Const) -> str:
        return placed(self._number(value), ENTRYWISE)

    def _fraction(self, coefficient: Const, above: list[MatrixExpr], below: list[MatrixExpr]) -> str:
        joined = not coefficient.imag
        over, under = (coefficient.real.numerator, coefficient.real.denominator) if joined else (1, 1)
        top, bottom = ([str(n)] if n != 1 else [] for n in (over, under))
        top += [self.write(s, POSTFIX if len(above) > 1 else PRODUCT if top else SUM) for s in above]
        bottom += [self.write(s, POSTFIX if len(below) > 1 else PRODUCT if bottom else SUM) for s in below]
        under_all = self._beside(bottom)
        if self.notation is not LATEX and len(bottom) > 1:
            under_all = f"({under_all})"
        text = self.notation.fraction.format(self._beside(top) or "1", under_all)
        return text if joined else f"{self._coefficient(coefficient)} {text}"

    def _exponent(self, exponent: MatrixExpr) -> str:
        if isinstance(exponent, Number) and not exponent.value.imag:
            text = str(exponent.value.real)
            return text if self.notation is LATEX or text.isdigit() else f"({text})"
        return self.write(exponent, SUM if self.notation is LATEX else ATOM)

    def _head(self, function: Term) -> str:
        match function:
            case Var():
                return self.name(function)
            case Diff(kind, of):
                return self.notation.made_of(kind, self._head(of))
            case Lam(_, Call(name, _)):
                # without its arguments, the braces of its pattern are those of the text
                return self.notation.functions.get(name, name + "({})").removesuffix("({})").format()
            case _:
                raise AssertionError("only unknown maps have values here")

    def _number(self, value: Const) -> Piece:
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


def _inverted(expr: MatrixExpr) -> MatrixExpr:
    """b where `expr` is b to a negative real power, taken to the positive one; otherwise `expr` itself."""
    match expr:
        case Power(base, Number(exponent), entry) if exponent.real < 0 and not exponent.imag:
            positive = number(-exponent.real)
            return base if positive == ONE else Power(base, Number(positive), entry)
        case _:
            return expr
