"""An objective and its derivative in plain signs, `C ↦ Σ_pqij …` above `(p,i) ↦ 4 Σ_qrsj J(p,q,r,s) C(q,i) …`.

It is to be read; what the language reads again is written by `language/printing`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from combdiff.language.printing.comparisons import condition_text
from combdiff.language.printing.document import ATOM, MAP, POSTFIX, PRODUCT, SUM, Piece, placed, sum_text
from combdiff.language.printing.vectors import row_of, vectors_of, without_index
from combdiff.notation.equations import equation, with_equations
from combdiff.notation.extents import extent_text, size_names
from combdiff.notation.latex_names import GREEK, Scope, size_of, sizes_of
from combdiff.notation.latex_terms import is_subtracted, shows_range
from combdiff.notation.matrix.forms import is_unit
from combdiff.notation.page import definitions_outside, entrywise, names_in, names_on_page, without_needless_re
from combdiff.notation.recursions import Recursions
from combdiff.notation.widths import cut
from combdiff.terms.conditions.choices import Choice, choice_of, choices_whole, with_choices
from combdiff.terms.conditions.comparing import (
    conditions_and_body,
    conditions_of_reduction,
    is_weighted,
    weighted_share,
    weighted_sum,
)
from combdiff.terms.laws.matrices import MATRIX_FUNCTIONS, arguments_of, written_name
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
    Reduce,
    Sum,
    Term,
    Tuple,
    Var,
    fresh,
    items_of,
    lam,
    power,
    terms_of,
    times,
)
from combdiff.terms.types import Index, Map

_RAISED = str.maketrans("0123456789-/", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᐟ")
_POWERS = {"inv": "⁻¹", "sqrtm": "¹ᐟ²"}
_AROUND = {"abs": ("|", "|"), "abs2": ("|", "|²"), "real": ("Re(", ")"), "imag": ("Im(", ")")}


def plain_text(objective: Lam, result: Term) -> str:
    """The two lines, and one for each value that has a name.

    >>> from combdiff.terms.terms import fresh, mul, number, total
    >>> from combdiff.terms.types import REAL, Domain, Map
    >>> i = fresh("i", Index(Domain("x.1")))
    >>> x = fresh("x", Map((i.kind,), REAL))
    >>> energy = Lam((x,), total([i], power(App(x, (i,)), number(2))))
    >>> print(plain_text(energy, Lam((x,), Lam((i,), mul(number(2), App(x, (i,)))))))
    in    x ↦ Σ_i x(i)²
    out   i ↦ 2 x(i)
    """
    shown, result = without_needless_re(objective), without_needless_re(result)
    result = with_equations(result, names_in(objective))
    objective_ = with_equations(definitions_outside(shown), names_in(result))
    reserved = frozenset(map(_spelled, names_on_page(objective_, result)))
    sizes = size_names(result, objective_, spell=_spelled)
    scope = Scope(spell=_spelled, commas=False, reserved=reserved, signs=frozenset(sizes.values()), sizes=sizes)
    rows = [("in", _lines(objective_, scope, heads=True)), ("out", _lines(result, scope, heads=False))]
    return "\n".join(f"{'' if n else word:6}{line}" for word, lines in rows for n, line in enumerate(lines))


def _broken(line: str) -> list[str]:
    """A line in lines of the width of a page, broken before + and − outside brackets, or in the outermost ones."""
    lines, parts = [""], [line]
    while parts:
        part = parts.pop()
        longer = f"{lines[-1]} {part}" if lines[-1] else part
        smaller = cut(part) if len(part) > _WIDTH - len(_INDENT) else [part]
        if len(longer) <= _WIDTH:
            lines[-1] = longer
        elif len(smaller) > 1:
            parts += reversed(smaller)
        elif lines[-1].strip():
            lines.append(_INDENT + part)
        else:
            lines[-1] = longer
    return lines


_WIDTH, _INDENT = 94, "    "


def _lines(term: Term, scope: Scope, heads: bool) -> list[str]:
    """A map: with its parameters or without them, then where-clauses."""
    scope = scope.bind(sorted(term.free, key=lambda v: v.uid))
    front, extents = "", list[str]()
    while isinstance(term, Lam) and (not is_unit(term) or isinstance(term.body, Let)):
        scope = scope.bind(term.params)
        extents += filter(None, (extent_text(p, scope[p], scope.sizes) for p in term.params))
        front = f"{_params(term.params, scope)} ↦ " if heads else ""
        term = term.body
    clauses = []
    recursions = Recursions()
    term = recursions.of(term)
    if isinstance(term, Let):
        for var, value in term.bindings:
            inner, scope = scope.seeing(value), scope.bind(recursions.bound(var))
            sides = equation(var, value)
            if var in recursions.equations:
                clauses += [f"where {_recursion(*pair, scope)}" for pair in recursions.equations[var]]
            elif sides is None:
                clauses.append(f"where {_defined(scope[var], value, inner)}")
            else:
                clauses.append(f"where {scope[var]} solves {_sides(*sides, scope)}")
        term = term.body
    items = map(entrywise, items_of(term))
    clauses += [f"where {', '.join(extents)}"] if extents and not heads else []
    lines = [*(front + _text(item, scope) for item in items), *clauses]
    return [part for line in lines for part in _broken(line)]


def _sides(left: Term, right: Term, scope: Scope) -> str:
    """Both sides of an equation, for each index."""
    if isinstance(left, Lam) and isinstance(right, Lam):
        scope = scope.bind(left.params)
        left, right = left.body, right.body
    return f"{_text(left, scope)} = {_text(right, scope)}"


def _recursion(left: Term, right: Term, scope: Scope) -> str:
    """s(t+1,i) = …."""
    scope = scope.bind(sorted((v for v in left.free if isinstance(v.kind, Index)), key=lambda v: v.uid))
    return f"{_text(left, scope)} = {_text(right, scope)}"


def _defined(name: str, value: Term, scope: Scope) -> str:
    if isinstance(value, Lam) and is_unit(value):
        inner = scope.bind(value.params)
        return f"{name}({','.join(inner[p] for p in value.params)}) = {_text(value.body, inner)}"
    return f"{name} = {_text(value, scope)}"


def _spelled(name: str) -> str:
    """The letters of a name; the English name of a Greek letter is that letter.

    >>> _spelled("rho"), _spelled("Omega1"), _spelled("row"), _spelled("x_bar") == "x\u0304"
    ('ρ', 'Ω1', 'row', True)
    """
    if derived := re.fullmatch(r"(.*[^\W\d_])_?(\d*)_(bar|dot)(\d*)", name):
        stem, number, accent, other = derived.groups()
        letter, above = _spelled(stem), "\u0304" if accent == "bar" else "\u0307"
        return f"{letter}{above}{number}{other}" if len(letter) == 1 else name
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
            return _sum(with_choices(terms_of(term), flat=True), scope)
        case Indicator() if choice := choice_of(term, flat=True):
            return _choice(choice, scope), ATOM
        case Sum(indices, body) if body == ONE and (sizes := _sizes(indices, scope)):
            return " ".join(sizes), ATOM if len(sizes) == 1 else PRODUCT
        case Delta(left, right, body) if isinstance(left.type, Map):
            return f"δ({', '.join(_text(t, scope) for t in (left, right, body))})", ATOM
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
        case Lam() if (vector := without_index(term)) is not term:
            return _written(vector, scope)
        case Lam(params, body):
            inner = scope.bind(params)
            return f"{_params(params, inner)} ↦ {_text(body, inner)}", MAP
        case Let(bindings, body):
            inner = scope.bind(var for var, _ in bindings)
            values = ", ".join(f"{inner[var]} = {_text(value, inner)}" for var, value in bindings)
            return f"{_text(body, inner)} where {values}", MAP
        case App(Reduce() as whole, args) if is_weighted(whole):
            return _text(weighted_share(whole, args), scope), PRODUCT
        case App(Reduce() as whole, ()):
            return _reduced(whole, scope)
        case App(function, args):
            return f"{_text(function, scope, POSTFIX)}({','.join(_text(a, scope) for a in args)})", ATOM
        case Call(name, ()):
            return {"pi": "π"}[name], ATOM
        case Call("sqrt", (u,)):
            return f"√{_text(u, scope, POSTFIX)}", POSTFIX
        case Call("complex", (u,)):
            return _written(u, scope)
        case Call(name, args):
            left, right = _AROUND.get(name, (f"{name}(", ")"))
            return f"{left}{', '.join(_text(u, scope) for u in args)}{right}", ATOM
        case Reduce():
            return _reduced(term, scope)
        case Loop(kind, item, _, step, start):
            word = "iterate" if kind == "last" else "scan"
            number = f"[{item + 1}]" if len(term.states) > 1 else ""
            return f"{word}({_text(step, scope)}, {_text(start, scope)}){number}", ATOM
        case Diff(kind, of):
            sign = {"grad": "∇", "pullback": "𝒫", "jvp": "ℱ"}.get(kind, f"{kind} ")
            return f"{sign}{_text(of, scope, ATOM)}", POSTFIX
        case Tuple(items):
            return f"({', '.join(_text(t, scope) for t in items)})", ATOM
        case _:
            # an item of a tuple
            return f"{_text(term.of, scope, ATOM)}[{term.item + 1}]", ATOM  # type: ignore[attr-defined]


def _reduced(term: Reduce, scope: Scope) -> Piece:
    """A product, a maximum, a norm …"""
    if term.kind == "norm":
        return f"‖{_text(lam(term.indices, term.body), scope)}‖", ATOM
    if is_weighted(term) and term.kind == "logsumexp":
        return _text(weighted_sum(term), scope), ATOM
    if is_weighted(term):
        own = tuple(fresh(v.name, v.kind) for v in term.indices)
        return _text(Lam(own, weighted_share(term, own)), scope), MAP
    if term.kind == "cross":
        return " × ".join(_vector(v, scope) for v in vectors_of(term)), PRODUCT
    if term.kind in MATRIX_FUNCTIONS:
        given = arguments_of(term)
        if term.kind in _POWERS:
            return f"{_text(given[0], scope, ATOM)}{_POWERS[term.kind]}", POSTFIX
        return f"{written_name(term)}({', '.join(_text(m, scope) for m in given)})", ATOM
    inner = scope.bind(term.indices)
    parts, body = conditions_of_reduction(term)
    sign = {"prod": "Π", "maximum": "max", "minimum": "min"}.get(term.kind, term.kind)
    condition = condition_text(parts, lambda side: _text(side, inner), _RELATIONS) if parts else ""
    below = ", ".join(filter(None, [inner.subscripts(inner[v] for v in term.indices), condition]))
    if term.kind in SHARES or term.kind == "logsumexp":
        return f"{sign}_{below}({_text(body, inner)})", ATOM
    return f"{sign}_{below} {_text(body, inner, PRODUCT)}", PRODUCT


def _vector(term: Term, scope: Scope) -> str:
    """A vector of a product: a row has a dot in its open slot."""
    row = row_of(term)
    inner = scope if row is None else scope.open(row[0], "·")
    return _text(term if row is None else row[1], inner, POSTFIX)


def _sum(terms: Sequence[Term | Choice], scope: Scope) -> Piece:
    match terms:
        case [Choice() as choice]:
            return _choice(choice, scope), ATOM
        case _:
            return sum_text(_signed(t, scope) for t in terms), SUM


def _choice(t: Choice, scope: Scope) -> str:
    """{a if i < j, b otherwise}."""
    *branches, last = t.rows
    written = [
        f"{_text(row.value, scope)} if {condition_text(row.parts, lambda side: _text(side, scope), _RELATIONS)}"
        for row in branches
    ]
    return f"{{{', '.join([*written, f'{_text(last.value, scope)} otherwise'])}}}"


def _signed(term: Term | Choice, scope: Scope) -> tuple[bool, str]:
    """A term of a sum, and whether it is subtracted."""
    if isinstance(term, Choice):
        return False, _choice(term, scope)
    found = network(term, choices_whole, is_never_drawn)
    if is_subtracted(found.coefficient):
        found = replace(found, coefficient=times(MINUS_ONE, found.coefficient))
        return True, placed(_of_network(found, scope), PRODUCT)
    return False, _text(term, scope, PRODUCT)


def _product(term: Term, scope: Scope) -> Piece:
    """A number, a sum or a condition, factors above and below the line of a fraction."""
    return _of_network(network(term, choices_whole, is_never_drawn), scope)


def _of_network(found: Network, scope: Scope) -> Piece:
    number = _in_front(found.coefficient)
    match found.factors:
        case (Sum(indices, body),) if body != ONE or not _sizes(indices, scope):
            inner = scope.bind(indices)
            over = [v for v in indices if isinstance(v.kind, Index)]
            along = "".join(f" d{inner[v]}" for v in indices if v not in over)
            signs = f"Σ_{inner.subscripts(_ranging(v, body, inner) for v in over)} " if over else ""
            return f"{number}{signs}{'∫ ' if along else ''}{_text(body, inner, PRODUCT)}{along}", PRODUCT
        case ():
            return _number(found.coefficient)
        case _:
            return _quotient(number, found.factors, scope), PRODUCT


def _sizes(indices: Sequence[Var], scope: Scope) -> list[str]:
    """The sizes whose product is Σ 1 over these indices: n, |Z|."""
    return sizes_of(indices, scope, _spelled, "|{}|".format)


def _ranging(index: Var, body: Term, scope: Scope) -> str:
    """An index under Σ, with the size that it runs to, or its domain, where no slot below shows that."""
    domain = index.kind.domain if isinstance(index.kind, Index) else None
    if domain is None or shows_range(body, index):
        return scope[index]
    of = _spelled(domain.name)
    if domain.declared and of not in scope.names.values():
        return f"{scope[index]}∈{of}"
    size = size_of(domain, scope, _spelled)
    return f"{scope[index]}<{size}" if size else scope[index]


def _in_front(c: Const) -> str:
    """A number before its factors."""
    if c in (ONE, MINUS_ONE):
        return "" if c == ONE else "-"
    return f"{placed(_number(c), PRODUCT) if c.imag else _real(c.real)} "


def _quotient(number: str, factors: Sequence[Term], scope: Scope) -> str:
    """A number, and factors above and below the line of a fraction."""
    above: list[str] = []
    below: list[str] = []
    for factor in factors:
        match factor:
            case Delta(left, right, body) if body == ONE:
                above.append(f"δ({_text(left, scope)},{_text(right, scope)})")
            case Indicator() if not choice_of(factor, flat=True):
                parts, _ = conditions_and_body(factor)
                above.append(f"[{condition_text(parts, lambda side: _text(side, scope), _RELATIONS)}]")
            case Pow(base, Const(n, imag)) if n < 0 and not imag:
                below.append(_text(power(base, Const(-n)), scope, POSTFIX))
            case _:
                above.append(_text(factor, scope, POSTFIX if not isinstance(factor, Sum) else PRODUCT))
    line = number + " ".join(above) if above else number.strip() if number.strip(" -") else f"{number}1"
    if not below:
        return line
    return f"{line} / {below[0]}" if len(below) == 1 else f"{line} / ({' '.join(below)})"


_RELATIONS = {"<": " < ", "<=": " ≤ ", "==": " = ", "!=": " ≠ ", "and": " ∧ ", "or": " ∨ ", "not": "¬"}


def _number(c: Const) -> Piece:
    if not c.imag:
        return _real(c.real), ATOM if c.real >= 0 else SUM
    imaginary = "i" if c.imag == 1 else "-i" if c.imag == -1 else f"{_real(c.imag)} i"
    return (imaginary, PRODUCT) if not c.real else (f"{_real(c.real)} + {imaginary}", SUM)


def _real(value: Fraction) -> str:
    """1/2, 10⁻⁹."""
    found = decimal(abs(value))
    if found is None:
        return str(value)
    digits, power = found
    ten = f"10{str(power).translate(_RAISED)}"
    return ("-" if value < 0 else "") + (digits if not power else ten if digits == "1" else f"{digits}·{ten}")
