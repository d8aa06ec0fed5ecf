"""An objective and its derivative in plain signs, `C ↦ Σ_pqij …` above `(p,i) ↦ 4 Σ_qrsj J(p,q,r,s) C(q,i) …`.

It is to be read; what the language reads again is written by `language/printing`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction

from combdiff.language.printing.document import ATOM, MAP, POSTFIX, PRODUCT, SUM, Piece, placed, sum_text
from combdiff.notation.latex_names import GREEK, Scope
from combdiff.notation.letters import names_in, with_letters
from combdiff.notation.matrix.forms import is_unit
from combdiff.terms.network import conditions_apart
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
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
    Mul,
    Pow,
    Sum,
    Term,
    Tuple,
    Var,
    factors_of,
    mul,
    power,
    split_coefficient,
    terms_of,
)
from combdiff.terms.types import Index

_RAISED = str.maketrans("0123456789-/", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᐟ")
_AROUND = {"abs": ("|", "|"), "abs2": ("|", "|²"), "real": ("Re(", ")"), "imag": ("Im(", ")")}


def plain_text(objective: Lam, result: Term) -> str:
    """The two lines, and one for each value that has a name.

    >>> from combdiff.terms.terms import fresh, number, total
    >>> from combdiff.terms.types import REAL, Domain, Map
    >>> i = fresh("i", Index(Domain("x.1")))
    >>> x = fresh("x", Map((i.kind,), REAL))
    >>> energy = Lam((x,), total([i], power(App(x, (i,)), number(2))))
    >>> print(plain_text(energy, Lam((x,), Lam((i,), mul(number(2), App(x, (i,)))))))
    in    x ↦ Σ_i x(i)²
    out   i ↦ 2 x(i)
    """
    above = _lines(objective, heads=True)
    below = _lines(with_letters(result, names_in(objective)), heads=False)
    rows = [("in", above), ("out", below)]
    return "\n".join(f"{'' if n else word:6}{line}" for word, lines in rows for n, line in enumerate(lines))


def _lines(term: Term, heads: bool) -> list[str]:
    """A map: with its parameters or without them, then where-clauses."""
    scope = Scope(spell=_spelled, commas=False).bind(sorted(term.free, key=lambda v: v.uid))
    front = ""
    while isinstance(term, Lam) and (not is_unit(term) or isinstance(term.body, Let)):
        scope = scope.bind(term.params)
        front = f"{_params(term.params, scope)} ↦ " if heads else ""
        term = term.body
    clauses = []
    if isinstance(term, Let):
        for var, value in term.bindings:
            inner, scope = scope.seeing(value), scope.bind([var])
            clauses.append(f"where {_defined(scope[var], value, inner)}")
        term = term.body
    items = term.items if isinstance(term, Tuple) else (term,)
    return [*(front + _text(item, scope) for item in items), *clauses]


def _defined(name: str, value: Term, scope: Scope) -> str:
    if isinstance(value, Lam) and is_unit(value):
        inner = scope.bind(value.params)
        return f"{name}({','.join(inner[p] for p in value.params)}) = {_text(value.body, inner)}"
    return f"{name} = {_text(value, scope)}"


def _spelled(name: str) -> str:
    """The letters of a name; the English name of a Greek letter is that letter.

    >>> _spelled("rho"), _spelled("Omega1"), _spelled("row")
    ('ρ', 'Ω1', 'row')
    """
    word = re.match(r"[A-Za-z]*", name)
    stem = word[0] if word else ""
    if stem.lower() not in GREEK or stem not in (stem.lower(), stem.capitalize()):
        return name
    size = "SMALL" if stem.islower() else "CAPITAL"
    letter = unicodedata.lookup(f"GREEK {size} LETTER {stem.upper().replace('LAMBDA', 'LAMDA')}")
    return letter + name[len(stem) :]


def _params(params: Sequence[Var], scope: Scope) -> str:
    names = ",".join(scope[p] for p in params)
    return names if len(params) == 1 else f"({names})"


def _text(term: Term, scope: Scope, least: int = MAP) -> str:
    return placed(_written(term, scope), least)


def _written(term: Term, scope: Scope) -> Piece:
    match term:
        case Var():
            return scope[term], ATOM
        case Const():
            return _number(term)
        case Add():
            return sum_text(_signed(t, scope) for t in terms_of(term)), SUM
        case Mul() | Sum() | Delta() | Indicator():
            return _product(term, scope)
        case Pow(base, Const(n)) if n == Fraction(1, 2):
            return f"√{_text(base, scope, POSTFIX)}", POSTFIX
        case Pow(_, Const(n, _)) if n < 0:
            return _product(term, scope)
        case Pow(base, Const(n, imag)) if not imag:
            return _text(base, scope, ATOM) + str(n).translate(_RAISED), POSTFIX
        case Pow(base, exponent):
            return f"{_text(base, scope, ATOM)}^{_text(exponent, scope, ATOM)}", POSTFIX
        case Conj(inner):
            return f"{_text(inner, scope, ATOM)}*", POSTFIX
        case _:
            return _structure(term, scope)


def _structure(term: Term, scope: Scope) -> Piece:
    match term:
        case Lam(params, body):
            inner = scope.bind(params)
            return f"{_params(params, inner)} ↦ {_text(body, inner)}", MAP
        case Let(bindings, body):
            inner = scope.bind(var for var, _ in bindings)
            values = ", ".join(f"{inner[var]} = {_text(value, inner)}" for var, value in bindings)
            return f"{_text(body, inner)} where {values}", MAP
        case App(function, args):
            return f"{_text(function, scope, POSTFIX)}({','.join(_text(a, scope) for a in args)})", ATOM
        case Call(name, ()):
            return {"pi": "π"}[name], ATOM
        case Call("sqrt", (u,)):
            return f"√{_text(u, scope, POSTFIX)}", POSTFIX
        case Call("complex", (u,)):
            return _written(u, scope)
        case Call(name, (u,)):
            left, right = _AROUND.get(name, (f"{name}(", ")"))
            return f"{left}{_text(u, scope)}{right}", ATOM
        case Diff(kind, of):
            sign = {"grad": "∇", "pullback": "𝒫"}.get(kind, f"{kind} ")
            return f"{sign}{_text(of, scope, ATOM)}", POSTFIX
        case Tuple(items):
            return f"({', '.join(_text(t, scope) for t in items)})", ATOM
        case _:
            # an item of a tuple
            return f"{_text(term.of, scope, ATOM)}[{term.item + 1}]", ATOM  # type: ignore[attr-defined]


def _signed(term: Term, scope: Scope) -> tuple[bool, str]:
    c, rest = split_coefficient(term)
    if c.real < 0 and not c.imag:
        return True, _text(mul(mul(MINUS_ONE, c), rest), scope, PRODUCT)
    return False, _text(term, scope, PRODUCT)


def _product(term: Term, scope: Scope) -> Piece:
    """A number, a sum or a condition, factors above and below the line of a fraction."""
    c, rest = split_coefficient(term)
    number = (
        "" if c == ONE else "-" if c == MINUS_ONE else f"{c.real} " if not c.imag else placed(_number(c), PRODUCT) + " "
    )
    if isinstance(rest, Sum):
        inner = scope.bind(rest.indices)
        over = [v for v in rest.indices if isinstance(v.kind, Index)]
        along = "".join(f" d{inner[v]}" for v in rest.indices if v not in over)
        signs = f"Σ_{inner.subscripts(inner[v] for v in over)} " if over else ""
        return f"{number}{signs}{'∫ ' if along else ''}{_text(rest.body, inner, PRODUCT)}{along}", PRODUCT
    above: list[str] = []
    below: list[str] = []
    for factor in [f for part in conditions_apart(rest) for f in factors_of(part)]:
        match factor:
            case Delta(left, right, body) if body == ONE:
                above.append(f"δ({_text(left, scope)},{_text(right, scope)})")
            case Indicator(left, right, body) if body == ONE:
                above.append(f"[{_text(left, scope)} ≤ {_text(right, scope)}]")
            case Pow(base, Const(n, imag)) if n < 0 and not imag:
                below.append(_text(power(base, Const(-n)), scope, POSTFIX))
            case _:
                above.append(_text(factor, scope, POSTFIX if not isinstance(factor, Sum) else PRODUCT))
    line = " ".join(above) or "1"
    if below:
        line = f"{line} / {below[0]}" if len(below) == 1 else f"{line} / ({' '.join(below)})"
    return number + line, PRODUCT


def _number(c: Const) -> Piece:
    if not c.imag:
        return str(c.real), ATOM if c.real >= 0 else SUM
    imaginary = "i" if c.imag == 1 else "-i" if c.imag == -1 else f"{c.imag} i"
    return (imaginary, PRODUCT) if not c.real else (f"{c.real} + {imaginary}", SUM)
