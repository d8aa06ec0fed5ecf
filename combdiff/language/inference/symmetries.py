"""Turns declared symmetries into integer maps of the slots, and checks them against the slots' types.

A clause `((2, 1), :conj)` names slots and an action; a map `M -> (p, q, k, b) -> M(q, p, k + b, -b)'` says the same and
more. Either way the slots whose indices take each other's places have one range, index arithmetic stays within a
periodic slot, the powers of a symmetry come back to the identity, and no group of symmetries makes every tensor zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from math import lcm

from combdiff.canon.moves import orbit
from combdiff.errors import LanguageError, Span
from combdiff.language.inference.domains import Ranges
from combdiff.language.parsing.syntax import (
    Apply,
    Expr,
    Name,
    Numeral,
    Plus,
    Prime,
    Space,
    SymmetryClause,
    SymmetryMap,
    Times,
)
from combdiff.language.vocabulary import counted, did_you_mean
from combdiff.terms.types import Domain, Index, Map, Symmetry

_ELEMENTS = 200
_STEEPEST = 64
_FORM = "write a map such as M -> (p, q) -> -M(q, p)': the tensor at integer combinations of the indices"

Affine = dict[str, int]


def symmetry_of(clause: SymmetryClause | SymmetryMap, space: Space, kind: Map) -> Symmetry:
    """What a clause or a map of the declaration of `space`, a tensor type `kind`, says.

    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.terms.types import COMPLEX
    >>> text = "@space K begin type = (N, N) -> C; symmetries = (K -> (p, q) -> -K(q, p)',) end"
    >>> (space,) = parse(f"{text}; 1").declarations
    >>> print(symmetry_of(space.symmetries[0], space, Map((Index(), Index()), COMPLEX)))
    K -> (p, q) -> -K(q, p)'
    """
    if isinstance(clause, SymmetryMap):
        return _from_map(clause, space, len(kind.params))
    rank, slots = len(kind.params), clause.slots
    written = f"({', '.join(map(str, slots))}{',' if len(slots) == 1 else ''})"
    if clause.action in ("ineg", "inegc"):
        if len(set(slots)) < len(slots) or not all(1 <= s <= rank for s in slots):
            raise LanguageError(
                f"{written} does not name slots of {space.name}, which has the slots 1…{rank}",
                span=clause.span,
                also=("the type is declared here", space.kind.span),
                remedy="name the slots whose index changes sign, counted from 1",
            )
        return Symmetry.reflection(slots, rank, clause.action)
    if sorted(slots) != list(range(1, rank + 1)):
        raise LanguageError(
            f"{written} is not a permutation of the slots 1…{rank} of {space.name}",
            span=clause.span,
            also=("the type is declared here", space.kind.span),
            remedy="name every slot once, counted from 1",
        )
    return Symmetry.permutation(slots, clause.action)


# --- maps -----------------------------------------------------------------------------------------------------------


def _from_map(written: SymmetryMap, space: Space, rank: int) -> Symmetry:
    params = written.law.params
    for param in params:
        if param.kind is not None:
            raise LanguageError(
                "the indices of a symmetry have the types of the slots",
                span=param.span,
                remedy=f"write {param.name} without a type",
            )
        if param.name == written.tensor:
            raise LanguageError(
                f"{param.name} is the tensor and one of its indices", span=param.span, remedy="rename one of the two"
            )
    _refuse_count(len(params), space, rank, params[0].span)
    sign, conj, entry = _signs(written.law.body)
    if not (isinstance(entry, Apply) and isinstance(entry.function, Name) and entry.function.text == written.tensor):
        raise LanguageError(f"a symmetry maps {written.tensor} to itself", span=entry.span, remedy=_FORM)
    _refuse_count(len(entry.args), space, rank, entry.span)
    slots = {param.name: slot for slot, param in enumerate(params)}
    rows = tuple(_row(arg, slots) for arg in entry.args)
    return Symmetry(rows, sign, conj, (written.tensor, *slots))


def _refuse_count(found: int, space: Space, rank: int, span: Span) -> None:
    if found != rank:
        raise LanguageError(
            f"{found} {'index' if found == 1 else 'indices'} for the {rank} slots of {space.name}",
            span=span,
            also=("the type is declared here", space.kind.span),
            remedy="name one index for each slot",
        )


def _signs(e: Expr) -> tuple[int, bool, Expr]:
    """The sign and the conjugate that stand around an entry."""
    sign, conj = 1, False
    while True:
        match e:
            case Prime(of):
                conj, e = not conj, of
            case Plus(((minus, of),)):
                sign, e = (-sign if minus else sign), of
            case _:
                return sign, conj, e


def _row(e: Expr, slots: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    """The slots in an argument, with their coefficients."""
    form = _affine(e, slots)
    if form.get("", 0):
        raise LanguageError(
            "a number is added to the index: a symmetry maps indices to sums and differences of indices",
            span=e.span,
            remedy="remove the number",
        )
    return tuple(sorted((slots[name], c) for name, c in form.items() if c))


def _affine(e: Expr, slots: Mapping[str, int]) -> Affine:
    """`k + 2 * b` as coefficients by name; a number stands under the empty name."""
    match e:
        case Name(text, span):
            if text not in slots:
                remedy = did_you_mean(text, slots, f"the indices here are {', '.join(slots)}")
                raise LanguageError(f"{text} is not an index of this symmetry", span=span, remedy=remedy)
            return {text: 1}
        case Numeral(value) if value.denominator == 1:
            return {"": int(value)}
        case Plus(terms):
            total: Affine = {}
            for minus, term in terms:
                for name, c in _affine(term, slots).items():
                    total[name] = total.get(name, 0) + (-c if minus else c)
            return total
        case Times(factors) if not any(below for below, _ in factors):
            product: Affine = {"": 1}
            for _, factor in factors:
                product = _times(product, _affine(factor, slots), e.span)
            return product
        case _:
            raise LanguageError("this is not an integer combination of the indices", span=e.span, remedy=_FORM)


def _times(a: Affine, b: Affine, span: Span) -> Affine:
    if set(a) - {""}:
        a, b = b, a
    if set(a) - {""}:
        raise LanguageError("a product of indices is not an integer combination of them", span=span, remedy=_FORM)
    return {name: c * a.get("", 0) for name, c in b.items()}


# --- slots ----------------------------------------------------------------------------------------------------------


def join(symmetry: Symmetry, kind: Map, ranges: Ranges, clause: Span) -> None:
    """Slots of `kind` whose indices take each other's places have one range; arithmetic stays in periodic slots.

    >>> from combdiff.terms.types import COMPLEX, SYMMETRIC
    >>> ranges, here = Ranges(), Span(1, 1)
    >>> a, b = ranges.new("slot 1", here), ranges.new("slot 2", here)
    >>> join(SYMMETRIC, Map((Index(a), Index(b)), COMPLEX), ranges, here)
    >>> ranges.same(a, b)
    True
    """
    for slot, row in enumerate(symmetry.rows):
        if len(row) != 1 or abs(row[0][1]) != 1:
            _check_arithmetic(symmetry, slot, kind, ranges, clause)
            continue
        ((origin, coefficient),) = row
        match kind.params[slot], kind.params[origin]:
            case Index(Domain() as a), Index(Domain() as b):
                if coefficient < 0:
                    ranges.reflect(a, clause)
                ranges.unite(a, b, clause)
            case a, b if a != b:
                raise LanguageError(
                    f"the symmetry {symmetry} maps slot {origin + 1} to slot {slot + 1}, which has another type",
                    span=clause,
                    remedy="exchange only slots of one type",
                )


def _check_arithmetic(symmetry: Symmetry, slot: int, kind: Map, ranges: Ranges, clause: Span) -> None:
    """A sum of indices is taken modulo the size of its slot, so each is of that domain, or an integer of its own."""
    domain = _domain_of(kind, slot, ranges)
    if domain is None or not domain.periodic:
        raise LanguageError(
            f"the symmetry {symmetry} adds indices in slot {slot + 1}, whose domain is not periodic",
            span=clause,
            remedy="give the slot a domain with `periodic = true`, or write a bare index there",
        )
    for origin, _ in symmetry.rows[slot]:
        param = kind.params[origin]
        other = _domain_of(kind, origin, ranges)
        directions = 1 if other is None else other.directions
        if directions != domain.directions:
            raise LanguageError(
                f"the symmetry {symmetry} adds the index of slot {origin + 1}, which has "
                f"{counted(directions, 'direction')}, in slot {slot + 1}, which has {domain.directions}",
                span=clause,
                remedy="add indices of domains with one `base`, such as `base = (I, I, I)` for all",
            )
        fits = isinstance(param, Index) and param.domain is not None and not ranges.is_open(param.domain)
        if not fits or (other is not None and other.periodic and other != domain):
            raise LanguageError(
                f"the symmetry {symmetry} adds the index of slot {origin + 1} in slot {slot + 1}, "
                f"which is periodic with the domain {domain.name}",
                span=clause,
                remedy=f"give slot {origin + 1} the domain {domain.name}, or one with `symmetric = true`",
            )


def _domain_of(kind: Map, slot: int, ranges: Ranges) -> Domain | None:
    match kind.params[slot]:
        case Index(Domain() as own):
            return ranges.domain_of(own)
        case _:
            return None


# --- groups ---------------------------------------------------------------------------------------------------------


def check_group(symmetries: Sequence[Symmetry], space: Space, complex_values: bool) -> None:
    """Refuse symmetries whose powers do not come back to the identity, and those that say T = −T.

    The products are listed up to a limit; the powers of what is listed find the contradictions of larger groups.
    """
    for symmetry, clause in zip(symmetries, space.symmetries, strict=True):
        if _powers(symmetry) is None:
            raise LanguageError(
                f"no power of the symmetry {symmetry} is the identity",
                span=clause.span,
                remedy="write a map of finite order, such as M -> (p, q, k, b) -> M(q, p, k + b, -b)'",
            )
    for element in _products(symmetries):
        last = _powers(element)
        if last is None:
            raise LanguageError(
                f"together, the symmetries of the space {space.name} imply {element}, "
                "and no power of it is the identity",
                span=space.symmetries[-1].span,
                remedy="remove one of the symmetries",
            )
        if last.sign < 0 and not (last.conj and complex_values):
            raise LanguageError(
                f"a tensor of the space {space.name} is always zero: its symmetries imply T = -T",
                span=space.symmetries[-1].span,
                remedy="remove one of the symmetries, or a sign: :id for :neg, T(q, p) for -T(q, p)",
            )


def _powers(symmetry: Symmetry) -> Symmetry | None:
    """The first power of `symmetry` that leaves every index where it is; None if there is none."""
    identity = Symmetry.identity(len(symmetry.rows)).rows
    if (order := _order(symmetry)) is not None:
        return Symmetry(identity, symmetry.sign**order, symmetry.conj and order % 2 == 1)
    power, seen = symmetry, {symmetry.rows}
    while power.rows != identity:
        power = power.after(symmetry)
        if power.rows in seen or any(abs(c) > _STEEPEST for row in power.rows for _, c in row):
            return None
        seen.add(power.rows)
    return power


def _order(symmetry: Symmetry) -> int | None:
    """How often a permutation of the slots with signs is repeated until it is undone; None for any other map.

    The order of a permutation of many slots is large, but it is read off the lengths of its cycles.
    """
    if any(len(row) != 1 or abs(row[0][1]) != 1 for row in symmetry.rows):
        return None
    images = [row[0] for row in symmetry.rows]
    if len({origin for origin, _ in images}) < len(images):
        return None
    order, seen = 1, set[int]()
    for start in range(len(images)):
        slot, sign, length = start, 1, 0
        while slot not in seen:
            seen.add(slot)
            slot, c = images[slot]
            sign, length = sign * c, length + 1
        order = lcm(order, length if sign > 0 else 2 * length) if length else order
    return order


def _products(symmetries: Sequence[Symmetry]) -> list[Symmetry]:
    """The elements of the group that `symmetries` generate, the shortest products first, up to a limit."""
    return [*islice(orbit(Symmetry.identity(len(symmetries[0].rows)), symmetries, Symmetry.after), _ELEMENTS)]
