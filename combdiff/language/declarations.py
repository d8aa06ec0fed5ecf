"""Type expressions and `@space`, `@domain` declarations become types (design, section 3, "Types").

Reading a map type makes a new range for each of its slots; a declared symmetry joins the ranges of the slots that it
permutes, and is checked: that it permutes the slots, that it does not make every such tensor zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from combdiff.errors import LanguageError, Span
from combdiff.language.domains import Ranges
from combdiff.language.syntax import DomainClause, MapType, Space, SymmetryClause, TypeExpr, TypeName
from combdiff.language.types import COMPLEX, REAL, Domain, Index, Map, Symmetry, Type, is_complex
from combdiff.language.vocabulary import did_you_mean

_NOWHERE = Span(0, 0)
_SWAPPED = (2, 1)
_ELEMENTS = 200


def _builtin(name: str, params: str, result: str, action: str = "") -> Space:
    kind = MapType(tuple(TypeName(p, _NOWHERE) for p in params), TypeName(result, _NOWHERE), _NOWHERE)
    clauses = (SymmetryClause(_SWAPPED, action, _NOWHERE),) if action else ()
    return Space(name, kind, clauses, _NOWHERE)


_BUILTIN = (
    _builtin("RV", "N", "R"),
    _builtin("CV", "N", "C"),
    _builtin("RM", "NN", "R"),
    _builtin("CM", "NN", "C"),
    _builtin("Sym", "NN", "R", "id"),
    _builtin("Her", "NN", "C", "conj"),
    _builtin("RF", "R", "R"),
    _builtin("CF", "R", "C"),
    _builtin("RO", "RR", "R"),
)
_SYMMETRIES = {
    space.name: tuple(Symmetry.permutation(c.slots, c.action) for c in space.symmetries) for space in _BUILTIN
}
INDEX_TYPES = frozenset({"N", "I"})


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whose type is read: a parameter's name, its place, whether its slots may give ranges their names."""

    name: str
    span: Span
    anchored: bool

    def slot(self, number: int) -> _Owner:
        return _Owner(f"{self.name}.{number}", self.span, self.anchored)


class Kinds:
    """The types that a program may name.

    >>> kinds = Kinds((), Ranges())
    >>> kinds.read(TypeName("RV", Span(1, 4)), "x", Span(1, 1)).space
    'RV'
    """

    def __init__(self, declarations: Sequence[Space | DomainClause], ranges: Ranges) -> None:
        self.ranges = ranges
        self.domains = {d.name: _domain(d) for d in declarations if isinstance(d, DomainClause)}
        self.spaces = {space.name: space for space in _BUILTIN}
        self.symmetries = dict(_SYMMETRIES)
        for declaration in declarations:
            if isinstance(declaration, Space):
                self._declare(declaration)

    def _declare(self, space: Space) -> None:
        kind = self._map(space.kind, _Owner(space.name, space.span, True))
        symmetries = tuple(self._symmetry(clause, space, kind) for clause in space.symmetries)
        if symmetries and _always_zero(symmetries, is_complex(kind)):
            raise LanguageError(
                f"a tensor of the space {space.name} is always zero: its symmetries say T = -T",
                span=space.symmetries[-1].span,
                remedy="remove one of the symmetries, or write :id for :neg",
            )
        self.spaces[space.name] = space
        self.symmetries[space.name] = symmetries

    def is_index(self, kind: TypeExpr | None) -> bool:
        """Whether a parameter with this annotation (None: unannotated) is an index."""
        return kind is None or (isinstance(kind, TypeName) and (kind.text in INDEX_TYPES or kind.text in self.domains))

    def read(self, kind: TypeExpr, name: str, span: Span, *, anchored: bool = True) -> Type:
        """The type of the parameter `name`; `anchored` if its slots tell how far indices range."""
        return self._read(kind, _Owner(name, span, anchored), "")

    def index(self, kind: TypeExpr | None, label: str, span: Span, slot: str = "") -> Index:
        """The type of an index, written `i`, `i::N`, `i::I` or `i::BZ`."""
        text = kind.text if isinstance(kind, TypeName) else "I"
        domain = self.domains.get(text)
        return Index(self.ranges.new(label, span, slot=slot, anonymous=text == "N", domain=domain))

    def _read(self, kind: TypeExpr, owner: _Owner, slot: str) -> Type:
        if isinstance(kind, MapType):
            return self._map(kind, owner)
        place = owner.span if kind.span == _NOWHERE else kind.span
        match kind.text:
            case "R":
                return REAL
            case "C":
                return COMPLEX
            case text if text in INDEX_TYPES or text in self.domains:
                name, _, number = owner.name.rpartition(".")
                label = f"slot {number} of {name}" if slot else f"parameter {owner.name}"
                return self.index(kind, label, place, slot if owner.anchored else "")
            case text if text in self.spaces:
                return self._space(self.spaces[text], owner)
        known = [*self.spaces, *self.domains, "N", "I", "R", "C"]
        raise LanguageError(
            f"unknown type {kind.text}",
            span=kind.span,
            remedy=did_you_mean(kind.text, known, f"declare it: `@space {kind.text} begin type = (N,) -> R end`"),
        )

    def _space(self, space: Space, owner: _Owner) -> Map:
        plain = self._map(space.kind, owner)
        symmetries = self.symmetries[space.name]
        for symmetry, clause in zip(symmetries, space.symmetries, strict=True):
            self._join(symmetry, plain, owner.span if clause.span == _NOWHERE else clause.span)
        return Map(plain.params, plain.result, symmetries, space.name)

    def _map(self, kind: MapType, owner: _Owner) -> Map:
        params = []
        for number, param in enumerate(kind.params, start=1):
            inner = owner.slot(number)
            params.append(self._read(param, inner, inner.name))
        result = self._read(kind.result, owner.slot(0), "")
        if isinstance(result, Index):
            raise LanguageError(
                "the values of a map are numbers or maps, not indices", span=kind.result.span, remedy="write R or C"
            )
        return Map(tuple(params), result)

    def _join(self, symmetry: Symmetry, kind: Map, clause: Span) -> None:
        for slot, row in enumerate(symmetry.rows):
            ((origin, coefficient),) = row
            match kind.params[slot], kind.params[origin]:
                case Index(Domain() as a), Index(Domain() as b):
                    if coefficient < 0:
                        self.ranges.reflect(a, clause)
                    self.ranges.unite(a, b, clause)
                case a, b if a != b:
                    raise LanguageError(
                        f"the symmetry {symmetry} puts slot {origin + 1} for slot {slot + 1}, of another type",
                        span=clause,
                        remedy="exchange only slots of one type",
                    )

    def _symmetry(self, clause: SymmetryClause, space: Space, kind: Map) -> Symmetry:
        rank, slots = len(kind.params), clause.slots
        written = f"({', '.join(map(str, slots))}{',' if len(slots) == 1 else ''})"
        match clause.action:
            case "id" | "conj" | "neg":
                if sorted(slots) != list(range(1, rank + 1)):
                    raise LanguageError(
                        f"{written} is no permutation of the slots 1…{rank} of {space.name}",
                        span=clause.span,
                        also=("the type is declared here", space.kind.span),
                        remedy="name every slot once, counted from 1",
                    )
                symmetry = Symmetry.permutation(slots, clause.action)
            case "ineg" | "inegc":
                if not slots or len(set(slots)) < len(slots) or not all(1 <= s <= rank for s in slots):
                    raise LanguageError(
                        f"{written} does not name slots of {space.name}, which has the slots 1…{rank}",
                        span=clause.span,
                        also=("the type is declared here", space.kind.span),
                        remedy="name the slots whose index changes sign, counted from 1",
                    )
                symmetry = Symmetry.reflection(slots, rank, clause.action)
            case unknown:
                raise LanguageError(
                    f"unknown symmetry action :{unknown}",
                    span=clause.span,
                    remedy="the actions are :id, :conj, :neg, :ineg and :inegc",
                )
        self._join(symmetry, kind, clause.span)
        self.ranges.check_reflected()
        return symmetry


def _domain(clause: DomainClause) -> Domain:
    settings = dict(clause.settings)
    if settings.get("base", "I") != "I":
        raise LanguageError(
            f"the base of the domain {clause.name} is {settings['base']}", span=clause.span, remedy="write `base = I`"
        )
    periodic, symmetric = settings.get("periodic") == "true", settings.get("symmetric") == "true"
    if periodic and symmetric:
        raise LanguageError(
            f"the domain {clause.name} is both periodic and symmetric",
            span=clause.span,
            remedy="keep one: a periodic index already has its negative, modulo the size",
        )
    return Domain(clause.name, True, periodic, symmetric, settings.get("contractable") != "false")


def _always_zero(symmetries: Sequence[Symmetry], complex_values: bool) -> bool:
    """Whether products of the symmetries say T = −T (for a real T: also T = −T').

    The products are listed up to a limit; the powers of what is listed find the contradictions of larger groups.
    """
    identity = Symmetry(tuple(((s, 1),) for s in range(len(symmetries[0].rows))))
    elements, todo = {identity}, [identity]
    while todo and len(elements) < _ELEMENTS:
        element = todo.pop(0)
        for generator in symmetries:
            product = element.after(generator)
            if product not in elements:
                elements.add(product)
                todo.append(product)
    for element in elements:
        power = element
        while power.rows != identity.rows:
            power = power.after(element)
        if power.sign < 0 and not (power.conj and complex_values):
            return True
    return False
