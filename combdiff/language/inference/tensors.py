"""Whole tensors: `x' * A * x`, `A \\ b`, `exp.(X) .+ 1`, read as what they mean by index.

A vector is a column; x' is a row, which is known within a product only; I is the unit matrix, of the size that its
neighbours have. An operator with a dot, and f.(x), work entry by entry: a tensor is repeated along the axes that others
have behind its own, as in Julia, so that each entry of a vector is beside a row of a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count, islice
from typing import TYPE_CHECKING

from combdiff.errors import LanguageError, Span
from combdiff.language import habits
from combdiff.language.inference import conditions
from combdiff.language.inference.fit import fit
from combdiff.language.inference.scope import Ready, Scope
from combdiff.language.parsing.syntax import (
    Apply,
    Arithmetic,
    Caret,
    Comparison,
    Dotted,
    Each,
    Expr,
    Junction,
    LeftDivision,
    Name,
    Negation,
    Numeral,
    Plus,
    Prime,
    Size,
    Times,
    TypeName,
)
from combdiff.language.vocabulary import counted, in_words
from combdiff.records import dataclass
from combdiff.terms import terms
from combdiff.terms.laws.inclusion import as_complex_as
from combdiff.terms.laws.matrices import applied
from combdiff.terms.terms import MINUS_ONE, ONE, PI, ZERO, Const, Lam, Term, Var
from combdiff.terms.types import Index, Map, Number, Type, slot_types

if TYPE_CHECKING:
    from combdiff.language.inference.infer import Elaborator

HIGHEST_POWER = 64
"""A matrix is raised to at most this power: its product is written out."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row, with the entries of a map of one index."""

    of: Lam


@dataclass(frozen=True, slots=True)
class Unit:
    """A number times the unit matrix, whose size is that of what it meets."""

    times: Term


Operand = Term | Row | Unit


def arithmetic(el: Elaborator, e: Arithmetic | Comparison, scope: Scope) -> Term:
    """The term of an operation on numbers or on whole tensors.

    Raises LanguageError where it is a row, or a unit matrix whose size nothing tells.
    """
    return _standing_alone(operation(el, e, scope), e.span)


def _standing_alone(found: Operand, span: Span) -> Term:
    match found:
        case Unit():
            raise _sizeless(span)
        case Row():
            raise LanguageError(
                "a row has a meaning only within a product",
                span=span,
                remedy="multiply it at once, x' * y, or write the vector of conjugates: i -> x(i)'",
            )
        case _:
            return found


def _sizeless(span: Span) -> LanguageError:
    return LanguageError("nothing tells the size of the unit matrix I", span=span, remedy=habits.UNIT_MATRIX)


def operand(el: Elaborator, e: Expr, scope: Scope) -> Operand:
    """What an operation takes: a number, a tensor, a row or a unit matrix."""
    match e:
        case Name("I") if scope.find("I") is None and not el.kinds.names_size("I"):
            return Unit(ONE)
        case Plus() | Times() | Caret() | Prime() | LeftDivision() | Dotted() | Each() | Comparison(dotted=True):
            return operation(el, e, scope)
        case Apply(Name("transpose"), (arg,), span) if scope.find("transpose") is None:
            return _transposed(el, operand(el, arg, scope), arg.span, scope, span)
        case _:
            term = el.expr(e, scope)
            return term if _is_tensor(term) else el.number(Ready(term, e.span) if not isinstance(e, Name) else e, scope)


def _transposed(el: Elaborator, of: Operand, place: Span, scope: Scope, span: Span) -> Operand:
    """`transpose(x)`: a row of a vector, without conjugates, and the vector of a row."""
    if isinstance(of, Row):
        return of.of
    if isinstance(of, Unit):
        return of
    if not (_is_tensor(of) and len(_slots(of)) == 1):
        return named(el, "transpose", (Ready(of, place),), scope, span)
    own = _indices(el, of, place)
    return Row(Lam(own, terms.apply(of, *own)))


def operation(el: Elaborator, e: Arithmetic | Comparison, scope: Scope) -> Operand:
    """The value of an operation."""
    match e:
        case Plus(parts):
            return _sum(el, [(minus, operand(el, part, scope), part.span) for minus, part in parts])
        case Times(parts):
            return _product(el, [(below, operand(el, part, scope), part.span) for below, part in parts])
        case Caret(base, exponent):
            _refuse_transpose(el, base, exponent, scope)
            return _power(el, operand(el, base, scope), exponent, scope, e.span)
        case Prime(of):
            return _adjoint(operand(el, of, scope), of.span)
        case LeftDivision(matrix, of):
            return _solution(el, operand(el, matrix, scope), operand(el, of, scope), e)
        case Dotted(sign, left, right):
            sides = [(operand(el, side, scope), side.span) for side in (left, right)]
            return _entrywise(el, lambda entries: _combined(el, sign, entries, e.span), sides)
        case Comparison():
            return _chosen(el, e, (Numeral(ONE.real, e.span),), scope, e.span)
        case Each(Name("where"), (condition, *branches)) if 1 <= len(branches) <= 2:
            return _chosen(el, condition, branches, scope, e.span)
        case Each(function, args):
            given = [(operand(el, arg, scope), arg.span) for arg in args]
            return _entrywise(el, lambda entries: _called(el, function, entries, scope, e.span), given)


# --- sums -----------------------------------------------------------------------------------------------------------


def _sum(el: Elaborator, parts: Sequence[tuple[bool, Operand, Span]]) -> Operand:
    signed = [(_scaled(MINUS_ONE, x) if minus else x, span) for minus, x, span in parts]
    numbers = [x for x, _ in signed if isinstance(x, Term) and not _is_tensor(x)]
    if len(numbers) == len(signed):
        return as_complex_as(numbers, terms.add(*numbers))
    if numbers:
        span = next(span for x, span in signed if isinstance(x, Term) and not _is_tensor(x))
        raise LanguageError(
            "a number is added to a tensor",
            span=span,
            remedy="write .+ or .- to add it to every entry, or c * I to add it to the diagonal of a matrix",
        )
    rows = [(x.of, span) for x, span in signed if isinstance(x, Row)]
    if rows:
        if len(rows) < len(signed):
            raise LanguageError(
                "a row is added to something that is not a row",
                span=signed[0][1],
                remedy="take the adjoint of one: x' or (…)'",
            )
        return Row(_added(el, rows, []))
    units = [x.times for x, _ in signed if isinstance(x, Unit)]
    if len(units) == len(signed):
        return Unit(terms.add(*units))
    return _added(el, [(x, span) for x, span in signed if isinstance(x, Term)], units)


def _added(el: Elaborator, tensors: Sequence[tuple[Term, Span]], units: Sequence[Term]) -> Lam:
    """Entry by entry, of tensors of one rank, and numbers times the unit matrix."""
    first, span = tensors[0]
    own = _indices(el, first, span)
    for other, place in tensors[1:]:
        if len(_slots(other)) != len(own):
            raise LanguageError(
                f"{in_words(first.type)} and {in_words(other.type)} are added",
                span=place,
                also=("the other is here", span),
                remedy="write .+ to add along the axes that both have",
            )
        _fitted(el, other, first, place)
    if units and len(own) != 2:
        raise LanguageError(f"I is added to {in_words(first.type)}", span=span, remedy="add it to a matrix")
    if units:
        fit(own[1].kind, own[0].kind, el.ranges, span)
    entries = [terms.apply(t, *own) for t, _ in tensors] + [terms.delta(own[0], own[1], c) for c in units]
    return Lam(own, as_complex_as(entries, terms.add(*entries)))


# --- products -------------------------------------------------------------------------------------------------------


def _product(el: Elaborator, parts: Sequence[tuple[bool, Operand, Span]]) -> Operand:
    factors: list[tuple[Operand, Span]] = []
    for below, x, span in parts:
        if not below:
            factors.append((x, span))
            continue
        if not isinstance(x, Term) or _is_tensor(x):
            raise LanguageError(
                "a product is divided by something that is not a number",
                span=span,
                remedy="multiply by an inverse, A * inv(B), or divide entry by entry, A ./ B",
            )
        if x == ZERO and not el.is_guarded:
            raise LanguageError("division by zero", span=span, remedy="remove the factor")
        factors.append((terms.power(x, MINUS_ONE), span))
    numbers = [x for x, _ in factors if isinstance(x, Term) and not _is_tensor(x)]
    if len(numbers) == len(factors):
        return as_complex_as(numbers, terms.mul(*numbers))
    whole = [(x, span) for x, span in factors if not isinstance(x, Term) or _is_tensor(x)]
    found, place = whole[0]
    for x, span in whole[1:]:
        if isinstance(found, Term) and not _is_tensor(found):
            found = _scaled(found, x)  # x' * y * A: the first two are a number
        else:
            found = _times(el, found, x, place, span)
        place = span
    return _scaled(as_complex_as(numbers, terms.mul(*numbers)), found) if numbers else found


def _scaled(c: Term, x: Operand) -> Operand:
    match x:
        case Unit(times):
            return Unit(terms.mul(c, times))
        case Row(of):
            scaled = _scaled(c, of)
            assert isinstance(scaled, Lam), "a tensor stays one"
            return Row(scaled)
        case _ if _is_tensor(x):
            own = tuple(terms.fresh(name, kind) for name, kind in zip(_names(x), _slots(x), strict=True))
            return Lam(own, _times_number(c, terms.apply(x, *own)))
        case _:
            return _times_number(c, x)


def _times_number(c: Term, x: Term) -> Term:
    return terms.neg(x) if c == MINUS_ONE else as_complex_as((c, x), terms.mul(c, x))


def _times(el: Elaborator, a: Operand, b: Operand, at: Span, span: Span) -> Operand:
    """The product of two tensors, rows or unit matrices, over the last slot of one and the first of the other."""
    match a, b:
        case Unit(c), _:
            return _scaled(c, b)
        case _, Unit(c):
            return _scaled(c, a)
        case Row(row), Row():
            raise _no_product("two rows", span, "write x .* y for the product entry by entry", at)
        case Row(row), Term():
            _refuse_tensor(b, span)
            return _contracted(el, row, b, span, of_a_row=True)
        case Term(), Row(row):
            if len(_slots(a)) != 1:
                raise _no_product(f"{in_words(a.type)} and a row", span, "write the row first: x' * A", at)
            i, j = _indices(el, a, at)[0], _indices(el, row, span)[0]
            j = terms.fresh("j" if j.name == i.name else j.name, j.kind)
            el.places[j] = span
            entries = terms.apply(a, i), terms.apply(row, j)
            return Lam((i, j), as_complex_as(entries, terms.mul(*entries)))
        case Term(), Term():
            _refuse_tensor(a, at)
            _refuse_tensor(b, span)
            if len(_slots(a)) == 1:
                words = "a vector and a matrix" if len(_slots(b)) == 2 else "two vectors"
                remedy = "write x' * y for the inner, x * y' for the outer product, or x .* y for that of the entries"
                raise _no_product(words, span, remedy, at)
            return _contracted(el, a, b, span)
    raise AssertionError("an operand is a term, a row or a unit matrix")


def _contracted(el: Elaborator, a: Term, b: Term, span: Span, of_a_row: bool = False) -> Operand:
    """Σ over the last slot of `a` and the first of `b`."""
    *left, over = _indices(el, a, span)
    inner, *right = _slots(b)
    fit(inner, over.kind, el.ranges, span)
    free = [terms.fresh(_apart(name, [*left, over]), kind) for name, kind in zip(_names(b)[1:], right, strict=True)]
    el.places.update(dict.fromkeys(free, span))
    entries = terms.apply(a, *left, over), terms.apply(b, over, *free)
    body = terms.total((over,), as_complex_as(entries, terms.mul(*entries)))
    own = (*left, *free)
    if not own:
        return body
    made = Lam(own, body)
    return Row(made) if of_a_row else made


def _power(el: Elaborator, base: Operand, exponent: Expr, scope: Scope, span: Span) -> Operand:
    if isinstance(base, Term) and not _is_tensor(base):
        above = el.number(exponent, scope)
        if base == ZERO and isinstance(above, Const) and above.real < 0 and not el.is_guarded:
            raise LanguageError("division by zero", span=span, remedy="remove the factor")
        # z^0 is the real number 1 for every z
        return as_complex_as((base,) if above != ZERO else (), terms.power(base, above))
    if isinstance(base, Unit):
        return Unit(terms.power(base.times, el.number(exponent, scope)))
    n = el.expr(exponent, scope)
    if isinstance(base, Row) or len(_slots(base)) != 2:
        raise LanguageError("only numbers and matrices have powers", span=span, remedy="write x .^ n for every entry")
    if not (isinstance(n, Const) and n.is_integer and 1 <= n.real <= HIGHEST_POWER):
        raise LanguageError(
            f"a matrix is raised to a whole number from 1 to {HIGHEST_POWER}",
            span=exponent.span,
            remedy="write inv(A) for A^(-1), sqrtm(A) for A^(1/2), invsqrtm(A) for A^(-1/2), A .^ n for every entry",
        )
    found: Operand = base
    for _ in range(int(n.real) - 1):
        found = _times(el, found, base, span, span)
    return found


def _refuse_transpose(el: Elaborator, base: Expr, exponent: Expr, scope: Scope) -> None:
    """x^T and A^H, where T and H are no names of the program."""
    if not (isinstance(exponent, Name) and habits.is_transpose(exponent)):
        return
    if scope.find(exponent.text) is None and not el.kinds.names_size(exponent.text):
        name = base.text if isinstance(base, Name) else "(…)"
        raise LanguageError(
            f"{exponent.text} is not a number",
            span=exponent.span,
            remedy=f"write {name}' for the adjoint, transpose({name}) for the transpose",
        )


def _adjoint(x: Operand, span: Span) -> Operand:
    match x:
        case Unit(times):
            return Unit(terms.conj(times))
        case Row(of):
            return _conjugated(of)
        case _ if not _is_tensor(x):
            return terms.conj(x)
    match _slots(x):
        case [_]:
            return Row(_conjugated(x))
        case [rows, columns]:
            first, second = _names(x)
            i, j = terms.fresh(second, columns), terms.fresh(first, rows)
            return Lam((i, j), terms.conj(terms.apply(x, j, i)))
        case slots:
            raise LanguageError(
                f"a tensor with {counted(len(slots), 'index')} has no adjoint",
                span=span,
                remedy="write its entries with the indices in another order, conjugated with '",
            )


def _conjugated(x: Term) -> Lam:
    own = tuple(terms.fresh(name, kind) for name, kind in zip(_names(x), _slots(x), strict=True))
    return Lam(own, terms.conj(terms.apply(x, *own)))


def _solution(el: Elaborator, matrix: Operand, of: Operand, e: LeftDivision) -> Operand:
    """A \\ b is A⁻¹ b, which is computed as the solution of a system."""
    if isinstance(matrix, Unit):
        return _scaled(terms.power(matrix.times, MINUS_ONE), of)
    if isinstance(matrix, Term) and not _is_tensor(matrix):
        return _scaled(terms.power(matrix, MINUS_ONE), of)
    if isinstance(matrix, Row) or len(_slots(matrix)) != 2:
        raise LanguageError("a system has a matrix", span=e.matrix.span, remedy="write A \\ b, for A::RM or A::CM")
    fit(_slots(matrix)[1], _slots(matrix)[0], el.ranges, e.matrix.span)
    i, j = _indices(el, matrix, e.matrix.span)
    whole = applied("inv", Lam((i, j), terms.apply(matrix, i, j)))
    own = terms.fresh(i.name, j.kind), terms.fresh(j.name, i.kind)
    return _times(el, Lam(own, terms.apply(whole, *own)), of, e.matrix.span, e.of.span)


# --- entry by entry -------------------------------------------------------------------------------------------------

Axes = tuple[Type | None, ...]


def _entrywise(
    el: Elaborator, function: Callable[[Sequence[Term]], Term], given: Sequence[tuple[Operand, Span]]
) -> Operand:
    """A function of the entries, along all axes; one that an operand does not have, or of size 1, is that of others."""
    axes = [_axes(x, span) for x, span in given]
    rank = max(map(len, axes))
    own: list[Var | None] = []
    for n in range(rank):
        having = [(a[n], x, span) for a, (x, span) in zip(axes, given, strict=True) if n < len(a) and a[n] is not None]
        having = [each for each in having if not _is_single(el, each[0])] or having
        if not having:
            own.append(None)
            continue
        (kind, first, span), *others = having
        assert kind is not None, "an axis that is there"
        names = _names(first.of) if isinstance(first, Row) else _names(first) if isinstance(first, Term) else []
        name = names[0 if isinstance(first, Row) else n]
        var = terms.fresh(_apart(name, [v for v in own if v is not None]), kind)
        el.places[var] = span
        own.append(var)
        for other, _, place in others:
            assert other is not None, "an axis that is there"
            fit(other, kind, el.ranges, place)
    body = function([_entry(el, x, own) for x, _ in given])
    kept = tuple(v for v in own if v is not None)
    if not kept:
        return body
    made = Lam(kept, body)
    return Row(made) if own[0] is None else made


def _axes(x: Operand, span: Span) -> Axes:
    match x:
        case Unit():
            raise LanguageError(
                "I takes part entry by entry", span=span, remedy="write (i, j) -> delta(i, j, 1), or add it with +"
            )
        case Row(of):
            return (None, *_slots(of))
        case _:
            return _slots(x)


def _is_single(el: Elaborator, slot: Type | None) -> bool:
    """Whether a slot has one value, as the second one of RM{n, 1}: its axis is repeated along those of others."""
    domain = el.ranges.domain_of(slot.domain) if isinstance(slot, Index) and slot.domain is not None else None
    return domain is not None and domain.count == 1


def _entry(el: Elaborator, x: Operand, own: Sequence[Var | None]) -> Term:
    """The entry at these indices; along an axis of one value it is the sum."""
    of, at = (x.of, own[1:]) if isinstance(x, Row) else (x, own)
    assert isinstance(of, Term), "a unit matrix is refused before"
    if not _is_tensor(of):
        return of
    singles: list[Var] = []
    places: list[Var] = []
    for slot, v in zip(_slots(of), at, strict=False):
        assert v is not None, "an axis that is there"
        repeated = _is_single(el, slot) and not _is_single(el, v.kind)
        places.append(terms.fresh(v.name, slot) if repeated else v)
        singles += places[-1:] * repeated
    return terms.total(singles, terms.apply(of, *places))


def _combined(el: Elaborator, sign: str, entries: Sequence[Term], span: Span) -> Term:
    a, b = entries
    if (b == ZERO and sign == "/") or (a == ZERO and sign == "^" and isinstance(b, Const) and b.real < 0):
        raise LanguageError("division by zero", span=span, remedy="remove the factor")
    match sign:
        case "+":
            return as_complex_as(entries, terms.add(a, b))
        case "-":
            return as_complex_as(entries, terms.sub(a, b))
        case "*":
            return as_complex_as(entries, terms.mul(a, b))
        case "/":
            return as_complex_as(entries, terms.mul(a, terms.power(b, MINUS_ONE)))
        case _:
            return as_complex_as((a,) if b != ZERO else (), terms.power(a, b))


def _chosen(el: Elaborator, condition: Expr, branches: Sequence[Expr], scope: Scope, span: Span) -> Operand:
    """`where.(x .< y, a, b)`, entry by entry; `x .< y` alone is 1 where it holds, and 0 elsewhere."""
    compared = _compared(condition)
    given = [(operand(el, side, scope), side.span) for side in (*(side for side, _ in compared), *branches)]
    for (side, place), (_, whole) in zip(given, compared, strict=False):
        if not whole.dotted and not (isinstance(side, Term) and not _is_tensor(side)):
            raise LanguageError("tensors are compared", span=place, remedy="write .< for < to compare every entry")

    def entry(entries: Sequence[Term]) -> Term:
        names = {f"entry {n}": x for n, x in enumerate(entries)}
        asked = [Name(name, place) for name, (_, place) in zip(names, given, strict=True)]
        of_entries = _of_names(condition, iter(asked))
        return conditions.where(el, of_entries, tuple(asked[len(compared) :]), scope.child(dict(names)))

    return _entrywise(el, entry, given)


def _compared(condition: Expr) -> list[tuple[Expr, Comparison]]:
    """What a condition compares, from left to right, each with its comparison."""
    match condition:
        case Comparison(operands):
            return [(side, condition) for side in operands]
        case Junction(items):
            return [pair for item in items for pair in _compared(item)]
        case Negation(of):
            return _compared(of)
        case _:
            raise LanguageError(
                "a condition is expected here",
                span=condition.span,
                remedy="write the comparison in its place, where.(x .< y, a, b); a mask m of 0 and 1 is m .== 1",
            )


def _of_names(condition: Expr, names: Iterator[Name]) -> Expr:
    """The condition with names for what it compares."""
    match condition:
        case Comparison(operands, relations, span):
            return Comparison(tuple(next(names) for _ in operands), relations, span)
        case Junction(items, every, span):
            return Junction(tuple(_of_names(item, names) for item in items), every, span)
        case Negation(of, span):
            return Negation(_of_names(of, names), span)
        case _:
            return condition


def _called(el: Elaborator, function: Expr, entries: Sequence[Term], scope: Scope, span: Span) -> Term:
    args = [Ready(entry, span) for entry in entries]
    value = el.applied(function, args, scope, span)
    if not isinstance(value.type, Number | Index):
        raise LanguageError(
            f"this function of an entry returns {in_words(value.type)}",
            span=span,
            remedy="apply it without the dot: f(x)",
        )
    return value


# --- functions with names of their own ------------------------------------------------------------------------------


def named(el: Elaborator, name: str, args: Sequence[Expr | Ready], scope: Scope, span: Span) -> Term:
    """`tr(A)`, `transpose(A)`, `diag(A)`, `Diagonal(x)`, `dot(x, y)`, `cross(x, y)`, `length(x)`, `fft(x)` …"""
    ranks = RANKS[name]
    if len(args) != len(ranks):
        raise LanguageError(f"{name} takes {counted(len(ranks), 'argument')}", span=span, remedy=f"write {_HOW[name]}")
    if name == "transpose" and not isinstance(args[0], Ready):
        return _standing_alone(_transposed(el, operand(el, args[0], scope), args[0].span, scope, span), span)
    given = []
    for arg, rank in zip(args, ranks, strict=True):
        term = el.expr(arg, scope)
        if not (_is_tensor(term) and len(_slots(term)) == rank):
            wanted = "a vector" if rank == 1 else "a matrix"
            raise LanguageError(
                f"{name} takes {wanted}, found {in_words(term.type)}", span=arg.span, remedy=f"write {_HOW[name]}"
            )
        given.append(term)
    if name in ("fft", "ifft"):
        return _transform(el, given[0], 1 if name == "ifft" else -1, args[0].span)
    if name == "dot":
        found = _contracted(el, _conjugated(given[0]), given[1], args[1].span)
        assert isinstance(found, Term), "a number"
        return found
    if name == "cross":
        return _cross(el, given, [arg.span for arg in args])
    (of,), place = given, args[0].span
    i, *_ = own = _indices(el, of, place)
    match name:
        case "length":
            return terms.total((i,), ONE)
        case "transpose":
            return Lam(own[::-1], terms.apply(of, *own))
        case "Diagonal":
            j = terms.fresh("j" if i.name != "j" else "k", i.kind)
            el.places[j] = place
            return Lam((i, j), terms.delta(i, j, terms.apply(of, i)))
        case _:
            fit(own[1].kind, i.kind, el.ranges, place)
            entry = terms.apply(of, i, i)
            return terms.total((i,), entry) if name == "tr" else Lam((i,), entry)


def _cross(el: Elaborator, vectors: Sequence[Term], places: Sequence[Span]) -> Lam:
    """a × b of vectors of three entries, without conjugates."""
    three = el.kinds.index(TypeName("N", places[0], (Size("3", places[0]),)), "the slot of such a vector", places[0])
    for vector, place in zip(vectors, places, strict=True):
        _has_three_entries(el, _indices(el, vector, place)[0].kind, three, place)
    name = next((p.name for v in vectors if isinstance(v, Lam) for p in v.params), "c")
    i, own = (terms.fresh(name, _slots(vectors[0])[0]) for _ in range(2))
    el.places.update({i: places[0], own: places[0]})
    entries = [terms.apply(v, i) for v in vectors]
    return Lam((own,), terms.apply(terms.reduction("cross", (i,), *entries), own))


def _has_three_entries(el: Elaborator, slot: Type, three: Type, place: Span) -> None:
    """Join the range of a slot with 0, 1, 2, or raise LanguageError."""
    try:
        fit(slot, three, el.ranges, place)
    except LanguageError as problem:
        message = f"cross takes vectors of three entries: {problem.message}"
        raise LanguageError(message, span=place, also=problem.also, remedy=f"write {_HOW['cross']}") from None


def _transform(el: Elaborator, x: Term, sign: int, place: Span) -> Term:
    """Σ_j x(j) exp(∓2πi j k/n), and a share 1/n of it with the sign +."""
    j, k = (terms.fresh(name, _slots(x)[0]) for name in "jk")
    el.places.update({j: place, k: place})
    share = terms.power(terms.total((terms.fresh("j", j.kind),), ONE), MINUS_ONE)
    phase = terms.call("exp", terms.mul(terms.number(2j * sign), PI, j, k, share))
    entry = terms.total((j,), terms.mul(terms.apply(x, j), phase))
    return Lam((k,), terms.mul(entry, share) if sign > 0 else entry)


def whole(el: Elaborator, name: str, arg: Expr | Ready, scope: Scope) -> Term:
    """A tensor that a function takes as a whole."""
    term = el.expr(arg, scope)
    if not _is_tensor(term):
        raise LanguageError(
            f"{name} takes a vector or a matrix, found {in_words(term.type)}",
            span=arg.span,
            remedy=f"give a tensor: {name}(A), or {name}((i, j) -> A(i, j))",
        )
    return term


def of_all_entries(el: Elaborator, e: Expr, scope: Scope) -> Term:
    """`sum(A)`, the sum of all entries."""
    x = operand(el, e, scope)
    if isinstance(x, Unit):
        raise _sizeless(e.span)
    t = x.of if isinstance(x, Row) else x
    if not (isinstance(t, Term) and _is_tensor(t)):
        raise LanguageError(
            "sum of a single thing adds the entries of a tensor",
            span=e.span,
            remedy="name the indices that it runs over: sum(i, x(i))",
        )
    own = _indices(el, t, e.span)
    return terms.total(own, terms.apply(t, *own))


RANKS = {
    "tr": (2,),
    "transpose": (2,),
    "diag": (2,),
    "Diagonal": (1,),
    "dot": (1, 1),
    "cross": (1, 1),
    "length": (1,),
    "fft": (1,),
    "ifft": (1,),
}
"""Functions of whole tensors, by the ranks that they take."""
_HOW = {
    "tr": "tr(A), for A::RM",
    "transpose": "transpose(A), for A::RM; of a vector it is a row, which stands in a product: transpose(x) * y",
    "diag": "diag(A) for the diagonal of a matrix, Diagonal(x) for the matrix with the diagonal x",
    "Diagonal": "Diagonal(x) for the matrix with the diagonal x, diag(A) for the diagonal of a matrix",
    "dot": "dot(x, y), which is x' * y",
    "cross": "cross(a, b) for a::RV{3} and b::RV{3}; of the rows of a matrix it is cross(c -> A(i, c), c -> B(i, c))",
    "length": "length(x) of a vector; name the sizes of a matrix, A::RM{n, m}, and write n or m",
    "fft": "fft(x) of a vector; of the rows of a matrix it is (i, k) -> fft(j -> A(i, j))(k)",
    "ifft": "ifft(x) of a vector; of the rows of a matrix it is (i, k) -> ifft(j -> A(i, j))(k)",
}


# --- what tensors are made of ---------------------------------------------------------------------------------------


def _is_tensor(t: Term) -> bool:
    return isinstance(t.type, Map) and t.type.is_array


def _slots(t: Term) -> tuple[Type, ...]:
    return slot_types(t.type)


def _names(t: Term) -> list[str]:
    """What the indices of a tensor are called: as the user has them, or i, j, k …"""
    if isinstance(t, Lam):
        return [p.name for p in t.params]
    return [*islice(chain("ijklmn", (f"i{n}" for n in count(1))), len(_slots(t)))]


def _apart(name: str, others: Sequence[Var]) -> str:
    taken = {v.name for v in others}
    candidates = chain((name,), "ijklmn", (f"i{n}" for n in count(1)))
    return next(n for n in candidates if n not in taken)


def _indices(el: Elaborator, t: Term, span: Span) -> tuple[Var, ...]:
    """An index for each slot, which stand at `span` in the text."""
    own = tuple(terms.fresh(name, kind) for name, kind in zip(_names(t), _slots(t), strict=True))
    el.places.update(dict.fromkeys(own, span))
    return own


def _fitted(el: Elaborator, t: Term, other: Term, span: Span) -> None:
    for own, wanted in zip(_slots(t), _slots(other), strict=True):
        fit(own, wanted, el.ranges, span)


def _refuse_tensor(t: Term, span: Span) -> None:
    if len(_slots(t)) > 2:
        raise LanguageError(
            f"a tensor with {counted(len(_slots(t)), 'index')} takes part in a product of matrices",
            span=span,
            remedy="write the sum over its index: sum(k, T(i, j, k) * x(k))",
        )


def _no_product(what: str, span: Span, remedy: str, other: Span) -> LanguageError:
    return LanguageError(f"there is no product of {what}", span=span, also=("the other is here", other), remedy=remedy)
