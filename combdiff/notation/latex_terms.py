"""Turns one term into LaTeX in index form: `4 \\sum_{j,q,r,s} J_{p,q,r,s}\\, C_{q,i}` (paper, Eq. 52–58).

How lines are laid out, and the matrix form, are in `latex`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from combdiff.language.printing.comparisons import condition_text
from combdiff.language.printing.document import ATOM, MAP, POSTFIX, PRODUCT, SUM, Piece, placed, sum_text
from combdiff.language.printing.vectors import row_of, vectors_of, without_index
from combdiff.notation.brackets import bracketed, called, magnitude, subscripted
from combdiff.notation.latex_names import Scope, latex_name, size_of, sizes_of
from combdiff.notation.widths import WIDTH, columns
from combdiff.terms.conditions.choices import Choice, choice_of, choices_whole, with_choices
from combdiff.terms.conditions.comparing import (
    Part,
    conditions_and_body,
    conditions_of_reduction,
    is_weighted,
    weighted_share,
    weighted_sum,
)
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.laws.matrices import MATRIX_FUNCTIONS, arguments_of
from combdiff.terms.listings import rows_of
from combdiff.terms.network import Network, is_never_drawn, network
from combdiff.terms.numerals import decimal
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    SHARES,
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Let,
    Loop,
    Mul,
    Pow,
    Proj,
    Reduce,
    Sum,
    Term,
    Tuple,
    Var,
    along,
    compares_indices,
    ends_of,
    fresh,
    lam,
    mul,
    neg,
    power,
    subterms,
    terms_of,
    times,
)
from combdiff.terms.types import Index, Map, Type


def params_latex(params: tuple[Var, ...], scope: Scope) -> str:
    """A parameter list: one stands bare.

    >>> params_latex((), Scope())
    '()'
    """
    names = ", ".join(scope[p] for p in params)
    return names if len(params) == 1 else f"({names})"


def signed_terms(term: Term, scope: Scope) -> list[tuple[bool, str]]:
    """The terms of a sum, each with whether it is subtracted.

    >>> from combdiff.terms.terms import add, fresh, number
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> signed_terms(add(x, number(-2)), Scope().bind([x]))
    [(False, 'x'), (True, '2')]
    """
    result: list[tuple[bool, str]] = []
    terms = with_choices(terms_of(term), flat=True)
    for n, part in enumerate(terms):
        if isinstance(part, Choice):
            # what follows is no part of the last case
            result.append((False, _cases(part, scope) if n + 1 == len(terms) else bracketed(_cases(part, scope))))
            continue
        found = _product_of(part)
        minus = is_subtracted(found.coefficient)
        if minus:
            found = replace(found, coefficient=times(MINUS_ONE, found.coefficient))
            result.append((True, placed(_product(found, scope), PRODUCT, bracketed)))
        else:
            result.append((False, term_latex(part, scope, PRODUCT)))
    return result


_MOST_PRIMES = 3


def primes(times: int) -> str:
    """What stands behind the name of a function that is differentiated so many times.

    >>> primes(0), primes(2), primes(4)
    ('', "''", '^{(4)}')
    """
    return "'" * times if times <= _MOST_PRIMES else f"^{{({times})}}"


def term_latex(term: Term, scope: Scope, least: int = MAP) -> str:
    """`term` as LaTeX, in brackets if it binds less than `least`.

    >>> from combdiff.terms.terms import add, fresh, power, number
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> print(term_latex(power(add(x, ONE), number(2)), Scope().bind([x])))
    (x + 1)^{2}
    """
    return placed(_written(term, scope), least, bracketed)


def is_subtracted(coefficient: Const) -> bool:
    """Whether a term with this number in front is written behind a minus."""
    return coefficient.real < 0 or (not coefficient.real and coefficient.imag < 0)


def _written(term: Term, scope: Scope) -> Piece:
    match term:
        case Var():
            return scope[term], ATOM
        case Add() | Indicator() if choice := choice_of(term, flat=True):
            return _cases(choice, scope), PRODUCT
        case Add():
            return sum_text(signed_terms(term, scope)), SUM
        case Delta(left, right, body) if isinstance(left.type, Map):
            parts = ", ".join(term_latex(t, scope, SUM) for t in (left, right, body))
            return called(r"\delta", parts), ATOM
        case Sum(indices, body) if body == ONE and (size := _size(indices, scope)):
            return size, ATOM if len(indices) == 1 else PRODUCT
        case Const() | Mul() | Sum() | Delta() | Indicator():
            return _product(_product_of(term), scope)
        case Pow(_, Const(n, _)) if n < 0:
            return _product(_product_of(term), scope)
        case Pow(Call("sqrt", (base,)), Const(n, imag)) if not imag and n.denominator == 1 and n.numerator % 2:
            return f"{term_latex(base, scope, ATOM)}^{{{n / 2}}}", POSTFIX
        case Pow(Call("abs2", (inner,)), Const(n, imag)) if not imag and n.denominator == 1:
            return f"{magnitude(term_latex(inner, scope))}^{{{2 * n}}}", POSTFIX
        case Pow(base, exponent):
            above = _exponent(exponent, scope)
            return f"{term_latex(base, scope, ATOM)}^{{{above}}}", POSTFIX
        case Conj(inner):
            return f"{term_latex(inner, scope, ATOM)}^{{*}}", POSTFIX
        case App(function, args):
            return _applied(function, args, scope)
        case Call(name, args):
            return _called(name, args, scope)
        case _:
            return _structure(term, scope)


def listed(term: Term, scope: Scope) -> str:
    """A tensor that lists its entries as a matrix or a column; empty if it is none, or too wide for a line.

    >>> from combdiff.terms.arithmetic import number
    >>> from combdiff.terms.listings import entries_listed
    >>> from combdiff.terms.types import range_of
    >>> i = fresh("i", Index(range_of(2)))
    >>> print(listed(Lam((i,), entries_listed([i], [[ONE, number(2)]])), Scope()))
    \\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}
    """
    rows = rows_of(term) if isinstance(term, Lam) else None
    if rows is None or not isinstance(term, Lam):
        return ""
    rows = [[entry] for entry in rows[0]] if len(term.params) == 1 else rows
    lines = [" & ".join([term_latex(entry, scope) for entry in row]) for row in rows]
    text = rf"\begin{{pmatrix}} {NEXT_CASE.join(lines)} \end{{pmatrix}}"
    return text if columns(text) <= WIDTH - _BESIDE else ""


_BESIDE = 12
"""Signs that stand beside a matrix in its line."""


def _structure(term: Term, scope: Scope) -> Piece:
    match term:
        case Lam() if matrix := listed(term, scope):
            return matrix, ATOM
        case Lam() if (vector := without_index(term)) is not term:
            return _written(vector, scope)
        case Lam(params, body):
            inner = scope.bind(params)
            return rf"{params_latex(params, inner)} \mapsto {term_latex(body, inner)}", MAP
        case Tuple(items):
            return bracketed(", ".join(term_latex(t, scope) for t in items)), ATOM
        case Reduce():
            return _reduced(term, scope)
        case Proj(item, App(Diff("grad", of), args)):
            return called(rf"\nabla_{{{item + 1}}} {term_latex(of, scope, POSTFIX)}", _arguments(args, scope)), ATOM
        case Proj(item, App(Diff("pullback", of), args)):
            sign = rf"\mathcal{{P}}_{{{item + 1}}}"
            return called(called(sign, term_latex(of, scope)), _arguments(args, scope)), ATOM
        case Proj(item, of):
            return rf"{{{term_latex(of, scope, ATOM)}}}_{{({item + 1})}}", ATOM
        case Diff("grad", _) if (times := along(term)[1]) > 0:
            return f"{term_latex(along(term)[0], scope, ATOM)}{primes(times)}", POSTFIX
        case Diff("grad", of):
            return rf"\nabla {term_latex(of, scope, POSTFIX)}", POSTFIX
        case Diff("adjoint" | "inverse" as kind, of):
            mark = r"\dagger" if kind == "adjoint" else "-1"
            return rf"{term_latex(of, scope, ATOM)}^{{{mark}}}", POSTFIX
        case Loop():
            return _loop(term, scope), ATOM
        case Diff("root", of):
            return called(r"\operatorname{root}", term_latex(of, scope)), ATOM
        case Diff(kind, of):
            return called(r"\mathcal{F}" if kind == "jvp" else r"\mathcal{P}", term_latex(of, scope)), ATOM
        case Let(bindings, body):
            inner = scope.bind(var for var, _ in bindings)
            lines = r";\ ".join(f"{inner[var]} = {term_latex(value, inner)}" for var, value in bindings)
            return rf"\mathbf{{let}}\ {lines}\ \mathbf{{in}}\ {term_latex(body, inner)}", MAP
        case _:
            raise AssertionError(f"unknown node {type(term).__name__}")


def _loop(term: Loop, scope: Scope) -> str:
    """`iterate` or `scan` of a step and the first states."""
    word = "iterate" if term.kind == "last" else "scan"
    number = f"_{{{term.item + 1}}}" if len(term.states) > 1 else ""
    given = f"{term_latex(term.step, scope)},\\ {term_latex(term.start, scope)}"
    return called(rf"\operatorname{{{word}}}{number}", given)


def _reduced(term: Reduce, scope: Scope) -> Piece:
    """A product, a maximum, a minimum: below it what it runs over, or the condition if that names all of it.

    The indices of a map of several, as of `softmax`, are listed: a condition may name them in another order.
    """
    if term.kind == "norm":
        return rf"\left\lVert {term_latex(lam(term.indices, term.body), scope)} \right\rVert", ATOM
    if is_weighted(term) and term.kind == "logsumexp":
        return term_latex(weighted_sum(term), scope), ATOM
    if is_weighted(term):
        own = tuple(fresh(v.name, v.kind) for v in term.indices)
        return term_latex(Lam(own, weighted_share(term, own)), scope), MAP
    if term.kind in MATRIX_FUNCTIONS:
        return _of_matrix(term, scope)
    if term.kind == "cross":
        return r" \times ".join(_vector(v, scope) for v in vectors_of(term)), PRODUCT
    inner = scope.bind(term.indices)
    parts, body = conditions_of_reduction(term)
    told = condition_text(parts, lambda side: _subscript(side, inner), _RELATIONS) if parts else ""
    over = inner.subscripts(inner[v] for v in term.indices)
    listed = (term.kind in SHARES and len(term.indices) > 1) or not term.mark.free.issuperset(term.indices)
    below = r",\ ".join(filter(None, [over, told])) if listed or not told else told
    if term.kind in SHARES:
        return rf"\operatorname{{{term.kind}}}_{{{below}}}{bracketed(term_latex(body, inner))}", ATOM
    if term.kind == "logsumexp":
        exponential = called(r"\exp", term_latex(body, inner))
        return rf"\log \sum_{{{below}}} {exponential}", PRODUCT
    sign = {"prod": r"\prod", "maximum": r"\max", "minimum": r"\min"}.get(term.kind, rf"\operatorname{{{term.kind}}}")
    return rf"{sign}_{{{below}}} {term_latex(body, inner, PRODUCT)}", PRODUCT


def _vector(term: Term, scope: Scope) -> str:
    """A vector of a product: a row has a dot in its open slot."""
    row = row_of(term)
    return (
        term_latex(term, scope, POSTFIX) if row is None else term_latex(row[1], scope.open(row[0], r"\cdot"), POSTFIX)
    )


def _of_matrix(term: Reduce, scope: Scope) -> Piece:
    """det A, A^{-1}; a derivative along a matrix is written as a function of both."""
    sign = MATRIX_FUNCTIONS[term.kind].latex
    given = arguments_of(term)
    if sign.startswith("{}^"):
        return sign.format(term_latex(given[0], scope, ATOM)), POSTFIX
    return sign.format(bracketed(_arguments(given, scope))), ATOM


def _exponent(exponent: Term, scope: Scope) -> str:
    if isinstance(exponent, Const) and not exponent.imag:
        return str(exponent.real)
    return term_latex(exponent, scope)


# --- entries, values, functions -------------------------------------------------------------------------------------


def _applied(function: Term, args: tuple[Term, ...], scope: Scope) -> Piece:
    kind = function.type
    if isinstance(function, Reduce) and is_weighted(function):
        return term_latex(weighted_share(function, args), scope), PRODUCT
    if isinstance(function, Reduce) and not args:
        return _reduced(function, scope)
    head = term_latex(function, scope, POSTFIX)
    if isinstance(function, Reduce) and function.kind == "inv":
        # the exponent is in the place of a conjugate's star
        head = f"({head})"
    if isinstance(kind, Map) and args and all(isinstance(p, Index) for p in kind.params):
        return f"{subscripted(head)}_{{{scope.subscripts(_subscript(a, scope) for a in args)}}}", ATOM
    return called(head, _arguments(args, scope)), ATOM


def _arguments(args: tuple[Term, ...], scope: Scope) -> str:
    return ", ".join(term_latex(a, scope, MAP if len(args) == 1 else SUM) for a in args)


def _subscript(index: Term, scope: Scope) -> str:
    return term_latex(index, scope).replace(" + ", "+").replace(" - ", "-")


_ROUND = {
    "sqrt": (r"\sqrt{", "}", ATOM),
    "complex": ("", r" + 0 \mathrm{i}", SUM),
}


def _called(name: str, args: tuple[Term, ...], scope: Scope) -> Piece:
    if not args:
        return f"\\{name}", ATOM
    inner = ", ".join(term_latex(a, scope) for a in args)
    if name in ("abs", "abs2"):
        return (magnitude(inner), ATOM) if name == "abs" else (magnitude(inner) + "^{2}", POSTFIX)
    if name in _ROUND:
        left, right, binds = _ROUND[name]
        return left + inner + right, binds
    written = row.latex if (row := SCALAR_FUNCTIONS.get(name)) else rf"\operatorname{{{name}}}"
    if "{0}" in written:
        return written.format(*(term_latex(a, scope) for a in args)), POSTFIX
    return called(written, inner), POSTFIX


# --- conditions and products ------------------------------------------------------------------------------------------


def _product_of(term: Term) -> Network:
    """Its number, drawn out of a Σ that stands alone too, and its factors, conditions among them."""
    found = network(term, choices_whole, is_never_drawn)
    match found.factors:
        case (Sum(indices, body),) if (inner := _product_of(body)).coefficient != ONE:
            return Network(times(found.coefficient, inner.coefficient), (), (Sum(indices, inner.bare()),))
        case _:
            return found


def _cases(t: Choice, scope: Scope) -> str:
    """A value for each condition, in lines behind a brace."""
    *branches, last = t.rows
    rows = [rf"{term_latex(row.value, scope)} & \text{{if}}\ {_told(row.parts, scope)}" for row in branches]
    rows.append(rf"{term_latex(last.value, scope)} & \text{{otherwise}}")
    return rf"\begin{{cases}} {NEXT_CASE.join(rows)} \end{{cases}}"


NEXT_CASE = r" \\ "
"""Cases stand in one line of LaTeX, whose ends are those of equations."""


def _told(parts: Sequence[Part], scope: Scope) -> str:
    return condition_text(parts, lambda side: term_latex(side, scope, SUM), _RELATIONS)


def _condition(condition: Delta | Indicator, scope: Scope) -> str:
    left, right = condition.left, condition.right
    if isinstance(condition, Indicator):
        parts, _ = conditions_and_body(condition)
        return f"[{_told(parts, scope)}]"
    if compares_indices(left, right):
        return rf"\delta_{{{scope.subscripts(_subscript(side, scope) for side in (left, right))}}}"
    return called(r"\delta", sum_text(signed_terms(left, scope) + _opposite(signed_terms(right, scope))))


_RELATIONS = {
    "<": " < ",
    "<=": r" \le ",
    "==": " = ",
    "!=": r" \ne ",
    "and": r" \land ",
    "or": r" \lor ",
    "not": r"\lnot ",
}


def _opposite(terms: list[tuple[bool, str]]) -> list[tuple[bool, str]]:
    return [(not minus, text) for minus, text in terms]


def _product(product: Network, scope: Scope) -> Piece:
    above: list[Term] = []
    below: list[Term] = []
    sums: list[Sum] = []
    for factor in product.factors:
        match factor:
            case Pow(base, Const(n, _) as exponent) if n < 0:
                below.append(power(base, neg(exponent)))
            case Sum(indices, body) if body != ONE or not _size(indices, scope):
                sums.append(factor)
            case _:
                above.append(factor)
    pieces = [_factor(f, scope, POSTFIX) for f in above]
    if below and len(above) == 1 and product.coefficient.real.numerator in (1, -1):
        bare = _factor(above[0], scope, SUM)
        pieces = pieces if r"\frac" in bare and bare != pieces[0] else [bare]
    front, binds = _front(product.coefficient, pieces, [term_latex(f, scope, _in_denominator(below)) for f in below])
    inside = [_sum(s, scope) for s in sums]
    inside = [bracketed(text) for text in inside[:-1]] + inside[-1:]
    minus = front[:1] == ["-"]
    text = _spaced([*(front[1:] if minus else front), *inside])
    if not text:
        return "-1" if minus else "1", SUM if minus else ATOM
    if minus:
        return f"-{text}", SUM
    return text, binds if len(front) + len(inside) == 1 and not inside else PRODUCT


def _in_denominator(below: list[Term]) -> int:
    return SUM if len(below) == 1 else POSTFIX


def _factor(factor: Term, scope: Scope, least: int) -> str:
    match factor:
        case Delta(left) | Indicator(left) if not (isinstance(left.type, Map) or choice_of(factor, flat=True)):
            return _condition(factor, scope)
        case _:
            return term_latex(factor, scope, least)


def _front(coefficient: Const, pieces: list[str], below: list[str]) -> tuple[list[str], int]:
    """What stands before the sums, a "-" apart, and how tightly a single piece binds."""
    minus = not coefficient.imag and coefficient.real < 0
    value = neg(coefficient) if minus else coefficient
    assert isinstance(value, Const), "minus a number"
    sign = ["-"] if minus else []
    if below:
        denominator = value.real.denominator if not value.imag and decimal(value.real) is None else 1
        number = number_latex(mul(value, Const(Fraction(denominator))), alone=False)
        # what is higher than a line is small and hard to read above the line of a fraction
        behind = [p for p in pieces if p.startswith(r"\left(")]
        top = _spaced([*([number] if number else []), *(p for p in pieces if p not in behind)]) or "1"
        bottom = _spaced([*([str(denominator)] if denominator != 1 else []), *below])
        return [*sign, rf"\frac{{{top}}}{{{bottom}}}", *behind], PRODUCT
    number = number_latex(value, alone=False)
    if number and not pieces:
        return [*sign, number], ATOM if number.isalnum() else PRODUCT
    return [*sign, *([number] if number else []), *pieces], POSTFIX


def number_latex(value: Term, *, alone: bool = True) -> str:
    """A number; one is left out where it is a factor (not `alone`).

    >>> print(number_latex(Const(Fraction(1, 2))), number_latex(Const(Fraction(0), Fraction(2))))
    \\frac{1}{2} 2 \\mathrm{i}
    """
    assert isinstance(value, Const), "a number"
    real, imag = fraction_latex(value.real), fraction_latex(abs(value.imag))
    if not value.imag:
        return "" if value == ONE and not alone else real
    unit = r"\mathrm{i}" if imag == "1" else rf"{imag} \mathrm{{i}}"
    if not value.real:
        return unit if value.imag > 0 else f"-{unit}"
    return bracketed(f"{real} {'+' if value.imag > 0 else '-'} {unit}")


def fraction_latex(value: Fraction) -> str:
    """A real number.

    >>> print(fraction_latex(Fraction(-1, 3)))
    -\\frac{1}{3}
    """
    sign = "-" if value < 0 else ""
    if (found := decimal(abs(value))) is not None:
        digits, power = found
        ten = f"10^{{{power}}}"
        return sign + (digits if not power else ten if digits == "1" else rf"{digits} \cdot {ten}")
    if value.denominator == 1:
        return str(value)
    return rf"{sign}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def _spaced(pieces: list[str]) -> str:
    """Factors side by side, with a thin space where letters would run together."""
    text = ""
    for piece in pieces:
        tight = _ENDS_APART.search(text) or _STARTS_APART.match(piece)
        text += piece if not text else (" " if tight else r"\, ") + piece
    return text


_ENDS_APART = re.compile(r"(\^\{\*\}|\d|\\right[)|]|^\\frac\{\d+\}\{\d+\})$")
_OPERATORS = [re.escape(row.latex) for row in SCALAR_FUNCTIONS.values() if "|" not in row.latex]
_STARTS_APART = re.compile(r"\(|\\left[(|]|(?:\\sum|\\int|\\operatorname|" + "|".join(_OPERATORS) + ")(?![a-z])")


def _sum(term: Sum, scope: Scope) -> str:
    inner = scope.bind(term.indices)
    over = [v for v in term.indices if isinstance(v.kind, Index)]
    dense = [v for v in term.indices if not isinstance(v.kind, Index)]
    body = term_latex(term.body, inner, PRODUCT)
    signs = rf"\sum_{{{inner.subscripts(_ranging(v, term.body, inner) for v in over)}}} " if over else ""
    signs += "".join(rf"\int{_limits(v, scope)} " for v in dense)
    return signs + body + "".join(rf"\, \mathrm{{d}}{inner[v]}" for v in dense)


def _limits(v: Var, scope: Scope) -> str:
    """The bounds of an integral over an interval; those of one over all real numbers are left out."""
    ends = ends_of(v.kind)
    if not any(ends):
        return ""
    lower, upper = (
        far if e is None else end_latex(e, scope) for e, far in zip(ends, (r"-\infty", r"\infty"), strict=True)
    )
    return rf"_{{{lower}}}^{{{upper}}}"


def end_latex(end: Term, scope: Scope) -> str:
    """The end of an interval, a number or a number of the program.

    >>> from combdiff.terms.terms import end_named
    >>> end_latex(end_named("beta"), Scope())
    '\\\\beta'
    """
    if isinstance(end, Const):
        return fraction_latex(end.real)
    assert isinstance(end, Var), "a number of the program"
    return scope.names.get(end) or latex_name(end.name)


def _size(indices: tuple[Var, ...], scope: Scope) -> str:
    """What Σ 1 over these indices is, if names of sizes or domains say it: n m, |Z|."""
    return _spaced(sizes_of(indices, scope, latex_name, magnitude))


def _ranging(index: Var, body: Term, scope: Scope) -> str:
    """An index under Σ, and its range where no slot in `body` shows it: `i<n` for a size, `b \\in B` for a domain."""
    domain = index.kind.domain if isinstance(index.kind, Index) else None
    name = scope[index]
    if domain is None or shows_range(body, index):
        return name
    if domain.declared:
        of = latex_name(domain.name)
        return name if of in scope.names.values() else rf"{name} \in {of}"
    size = size_of(domain, scope, latex_name)
    return f"{name}<{size}" if size else name


def shows_range(body: Term, index: Var) -> bool:
    """Whether `index` stands in a slot that it ranges over, and alone in no other one.

    Without a period, i − 1 in a slot leaves open whether i begins with 0 or with 1.
    """
    domain = index.kind.domain if isinstance(index.kind, Index) else None
    turns = domain is not None and (domain.periodic or domain.symmetric)
    entries = [t for t in subterms(body, App) if index in t.free]
    slots = [pair for t in entries for pair in zip(t.args, _slots(t.function), strict=True) if index in pair[0].free]
    own = [kind == index.kind for _, kind in slots]
    alone = [is_own for (at, _), is_own in zip(slots, own, strict=True) if at == index]
    return all(alone) and any(own if turns else alone)


def _slots(function: Term) -> tuple[Type, ...]:
    assert isinstance(function.type, Map), "only maps are applied"
    return function.type.params
