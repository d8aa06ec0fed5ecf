"""Turns type expressions and `@space`, `@domain` declarations into types.

Reading a map type makes a new range for each of its slots; a declared symmetry joins the ranges of the slots that it
permutes, and is checked: that it permutes the slots, that it does not make every such tensor zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from combdiff.errors import LanguageError, Span
from combdiff.language.habits import remedy_of_type
from combdiff.language.inference.domains import VALUES, Ranges
from combdiff.language.inference.symmetries import check_group, join, symmetry_of
from combdiff.language.parsing.syntax import (
    DomainClause,
    MapType,
    Param,
    Size,
    Space,
    SymmetryClause,
    TypeExpr,
    TypeName,
)
from combdiff.language.vocabulary import counted, did_you_mean
from combdiff.records import dataclass
from combdiff.terms.numerals import read_number
from combdiff.terms.types import (
    COMPLEX,
    HERMITIAN,
    REAL,
    SYMMETRIC,
    Domain,
    Index,
    Interval,
    Map,
    Number,
    Symmetry,
    Type,
    is_complex,
    range_of,
)

_NOWHERE = Span(0, 0)
_LARGEST = 2**31
_SWAPPED = (2, 1)


def _builtin(name: str, params: str, result: str, action: str = "", definite: bool = False) -> Space:
    kind = MapType(tuple(TypeName(p, _NOWHERE) for p in params), TypeName(result, _NOWHERE), _NOWHERE)
    clauses = (SymmetryClause(_SWAPPED, action, _NOWHERE),) if action else ()
    return Space(name, kind, clauses, _NOWHERE, definite=definite)


_BUILTIN = (
    _builtin("RV", "N", "R"),
    _builtin("CV", "N", "C"),
    _builtin("RM", "NN", "R"),
    _builtin("CM", "NN", "C"),
    _builtin("Sym", "NN", "R", "id"),
    _builtin("Her", "NN", "C", "conj"),
    _builtin("SPD", "NN", "R", "id", definite=True),
    _builtin("HPD", "NN", "C", "conj", definite=True),
    _builtin("RF", "R", "R"),
    _builtin("CF", "R", "C"),
    _builtin("RO", "RR", "R"),
)
_SYMMETRIES: dict[str, tuple[Symmetry, ...]] = {
    "Sym": (SYMMETRIC,),
    "Her": (HERMITIAN,),
    "SPD": (SYMMETRIC,),
    "HPD": (HERMITIAN,),
}
INDEX_TYPES = frozenset({"N", "I"})
_SIZES = {"N": 1, "RV": 1, "CV": 1, "RM": 2, "CM": 2, "Sym": 1, "Her": 1, "SPD": 1, "HPD": 1}


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
        self._sizes_of_slots: set[str] = set()
        self._sizes_of_indices: list[Size] = []
        clauses = [d for d in declarations if isinstance(d, DomainClause)]
        self.domains = {d.name: _domain(d) for d in clauses if not _is_real(d)}
        self.intervals = {d.name: _interval(d) for d in clauses if _is_real(d)}
        self.spaces = {space.name: space for space in _BUILTIN}
        self.symmetries = {name: _SYMMETRIES.get(name, ()) for name in self.spaces}
        for declaration in declarations:
            if isinstance(declaration, Space):
                self._declare(declaration)

    def _declare(self, space: Space) -> None:
        kind = self._map(space.kind, _Owner(space.name, space.span, False))
        symmetries = tuple(symmetry_of(clause, space, kind) for clause in space.symmetries)
        for symmetry, clause in zip(symmetries, space.symmetries, strict=True):
            join(symmetry, kind, self.ranges, clause.span)
            self.ranges.check_reflected()
        if space.linear and isinstance(kind.params[0], Index):
            raise LanguageError(
                f"the space {space.name} is linear, and its argument is an index",
                span=space.kind.params[0].span,
                remedy="a linear map takes a number, a tensor or a function: type = (RV) -> RV",
            )
        if space.adjoint and not _are_alike(kind.params[0], kind.result):
            raise LanguageError(
                f"the adjoint of {space.name} is {_ADJOINTS[space.adjoint]}, and its values have another type than its "
                "argument",
                span=space.span,
                remedy="give both one type: type = (CV) -> CV",
            )
        if symmetries and isinstance(kind.result, Index):
            raise LanguageError(
                f"the entries of {space.name} are indices, and symmetries are declared of numbers",
                span=space.symmetries[0].span,
                remedy="remove `symmetries`, or write R or C for the entries",
            )
        if space.definite and not {*symmetries} & {SYMMETRIC, HERMITIAN}:
            raise LanguageError(
                f"the space {space.name} is definite, and not declared to be symmetric or Hermitian",
                span=space.span,
                remedy="add symmetries = (((2, 1), :id),), or with :conj for complex matrices; or take SPD or HPD",
            )
        if symmetries:
            check_group(symmetries, space, is_complex(kind))
        self.spaces[space.name] = space
        self.symmetries[space.name] = symmetries

    def is_index(self, kind: TypeExpr | None) -> bool:
        """Whether a parameter with this annotation (None: unannotated) is an index."""
        return kind is None or (isinstance(kind, TypeName) and (kind.text in INDEX_TYPES or kind.text in self.domains))

    def read(self, kind: TypeExpr, name: str, span: Span, *, anchored: bool = True) -> Type:
        """The type of the parameter `name`; `anchored` if its slots tell how far indices range."""
        return self._read(kind, _Owner(name, span, anchored), "")

    def index(self, kind: TypeExpr | None, label: str, span: Span) -> Index:
        """The type of an index, written `i`, `i::N`, `i::N{M}`, `i::I` or `i::BZ`."""
        if isinstance(kind, TypeName):
            self._sizes_of_indices += _sizes(kind)
        return self._index(kind, label, span, "")

    def _index(self, kind: TypeExpr | None, label: str, span: Span, slot: str) -> Index:
        text = kind.text if isinstance(kind, TypeName) else "I"
        if isinstance(kind, TypeName) and kind.sizes:
            (size,) = _sizes(kind)
            sized = range_of(int(size.text)) if size.is_number else Domain(size.text, sized=True).shortened(-size.more)
            return Index(self.ranges.new(label, size.span, slot=slot, domain=sized))
        domain = self.domains.get(text)
        return Index(self.ranges.new(label, span, slot=slot, anonymous=text == "N", domain=domain))

    def _read(self, kind: TypeExpr, owner: _Owner, slot: str) -> Type:
        if isinstance(kind, MapType):
            return self._map(kind, owner)
        place = owner.span if kind.span == _NOWHERE else kind.span
        sizes = _sizes(kind)
        if owner.anchored and (slot or kind.text not in INDEX_TYPES):
            self._sizes_of_slots.update(size.text for size in sizes)
        match kind.text:
            case "R":
                return REAL
            case "C":
                return COMPLEX
            case text if text in self.intervals:
                return Number(complex=False, interval=self.intervals[text])
            case text if text in INDEX_TYPES or text in self.domains:
                name, _, number = owner.name.rpartition(".")
                label = f"slot {number} of {name}" if slot else f"parameter {owner.name}"
                return self._index(kind, label, place, slot if owner.anchored else "")
            case text if text in self.spaces:
                return self._space(_of_sizes(self.spaces[text], sizes), owner)
        known = [*self.spaces, *self.domains, *self.intervals, "N", "I", "R", "C"]
        declared = f"write N{{{kind.text}}}, an index of a size {kind.text}" if slot else _DECLARE.format(kind.text)
        raise LanguageError(
            f"unknown type {kind.text}",
            span=kind.span,
            remedy=remedy_of_type(kind.text) or did_you_mean(kind.text, known, declared),
        )

    @property
    def has_lattice(self) -> bool:
        """Whether a domain has several directions."""
        return any(d.directions > 1 for d in self.domains.values())

    def names_size(self, name: str) -> bool:
        """Whether a slot that was read has a size of this name."""
        return name in self._sizes_of_slots

    def note_size(self, name: str) -> None:
        """A size of this name is given at the call."""
        self._sizes_of_slots.add(name)

    def check_sizes(self) -> None:
        """An index of a named size has a parameter whose array tells that size."""
        for size in self._sizes_of_indices:
            if not size.is_number and size.text not in self._sizes_of_slots:
                raise LanguageError(
                    f"no parameter has a slot of the size {size.text}",
                    span=size.span,
                    remedy=did_you_mean(size.text, self._sizes_of_slots, f"name it there: (x::RV{{{size.text}}}) -> …"),
                )

    def _space(self, space: Space, owner: _Owner) -> Map:
        plain = self._map(space.kind, owner)
        symmetries = self.symmetries[space.name]
        for symmetry, clause in zip(symmetries, space.symmetries, strict=True):
            join(symmetry, plain, self.ranges, owner.span if clause.span == _NOWHERE else clause.span)
        declared = space.linear, space.positive, space.definite, space.fixed, space.adjoint, space.increasing
        if space.adjoint:
            self._join_sides(plain.params[0], plain.result, owner.span)
        return Map(plain.params, plain.result, symmetries, space.name, *declared)

    def _join_sides(self, argument: Type, value: Type, span: Span) -> None:
        """A map whose adjoint is the map has one range for a slot of its argument, and of its value."""
        if isinstance(argument, Map) and isinstance(value, Map):
            for a, b in zip(argument.params, value.params, strict=True):
                if isinstance(a, Index) and isinstance(b, Index) and a.domain is not None and b.domain is not None:
                    self.ranges.unite(b.domain, a.domain, span)

    def _map(self, kind: MapType, owner: _Owner) -> Map:
        params = []
        for number, param in enumerate(kind.params, start=1):
            inner = owner.slot(number)
            params.append(self._read(param, inner, inner.name))
        if self.is_index(kind.result):
            return self._of_integers(kind.result, tuple(params), owner)
        return Map(tuple(params), self._read(kind.result, owner.slot(0), ""))

    def _of_integers(self, entry: TypeExpr, params: tuple[Type, ...], owner: _Owner) -> Map:
        """A map whose values are indices, `J::(N) -> N{m}`: an array of integers."""
        assert isinstance(entry, TypeName), "an index has a named type"
        if not all(isinstance(p, Index) for p in params):
            raise LanguageError(
                "a map of numbers has numbers or maps for values, not indices", span=entry.span, remedy="write R or C"
            )
        domain = self.domains.get(entry.text)
        if domain is not None and (domain.listed or domain.directions > 1):
            what = "a list of offsets" if domain.listed else "a lattice"
            raise LanguageError(
                f"the entries of an array of integers are single numbers, and {domain.name} is {what}",
                span=entry.span,
                remedy="write N{m}, or a domain of one direction without `list = true`",
            )
        if owner.anchored:
            self._sizes_of_slots.update(size.text for size in _sizes(entry))
        place = entry.span if entry.span != _NOWHERE else owner.span
        return Map(params, self._index(entry, f"{VALUES}{owner.name}", place, ""))


_DECLARE = "declare it: `@space {} begin type = (N,) -> R end`"


_ADJOINTS = {"self": "the map itself", "neg": "its negative"}


def _are_alike(a: Type, b: Type) -> bool:
    """Whether two types are the same, whatever indices range over."""
    match a, b:
        case Index(), Index():
            return True
        case Map(), Map():
            pairs = zip((*a.params, a.result), (*b.params, b.result), strict=False)
            return len(a.params) == len(b.params) and all(_are_alike(x, y) for x, y in pairs)
        case _:
            return a == b


def _sizes(kind: TypeName) -> tuple[Size, ...]:
    """The sizes that a type names, as many as it has."""
    wanted = _SIZES.get(kind.text, 0)
    if not kind.sizes or len(kind.sizes) == wanted:
        return kind.sizes
    if wanted:
        message = f"{counted(len(kind.sizes), 'size')} for {kind.text}, which has {wanted}"
        remedy = _with_as_many(kind.text, [size.text for size in kind.sizes], wanted)
    else:
        message = f"{kind.text} takes no sizes"
        vector = f"write {kind.text}V{{{kind.sizes[0].text}}}" if kind.text in ("R", "C") else None
        remedy = (
            vector
            or remedy_of_type(kind.text, [size.text for size in kind.sizes])
            or (
                "sizes are named in N{M}, RV{M}, CV{M}, RM{M, K}, CM{M, K}, Sym{M}, Her{M}, and in the type of a @space"
            )
        )
    raise LanguageError(message, span=kind.span, remedy=remedy)


def _with_as_many(name: str, sizes: Sequence[str], wanted: int) -> str:
    """What to write for a type with too many sizes or too few."""
    if len(sizes) < wanted:
        other = next(n for n in "mk" if n not in sizes)
        square, others = ", ".join([*sizes] * wanted), ", ".join([*sizes, other])
        return f"write {name}{{{square}}} for a square matrix, {name}{{{others}}} for another one"
    written = f"write {name}{{{', '.join(sizes[:wanted])}}}"
    return f"{written}, or {name[0]}M{{{', '.join(sizes)}}} for a matrix" if name in ("RV", "CV") else written


def _of_sizes(space: Space, sizes: tuple[Size, ...]) -> Space:
    """`RM` for `RM{M, K}`: its slots with their sizes, both slots of `Sym{M}` with the one."""
    if not sizes:
        return space
    each = sizes * len(space.kind.params) if len(sizes) == 1 else sizes
    params = tuple(TypeName("N", size.span, (size,)) for size in each)
    return replace(space, kind=MapType(params, space.kind.result, space.kind.span))


def _is_real(clause: DomainClause) -> bool:
    return dict(clause.settings).get("base") == "R"


_Refusal = Callable[[str, str, str], LanguageError]
"""(problem, setting, remedy) of a domain ↦ the error that tells it."""


def _refusal(clause: DomainClause) -> _Refusal:
    places = dict(clause.places)

    def refuse(problem: str, setting: str, remedy: str) -> LanguageError:
        span = places.get(setting, clause.span)
        return LanguageError(f"the domain {clause.name} {problem}", span=span, remedy=remedy)

    return refuse


def _interval(clause: DomainClause) -> Interval:
    """The interval that a declaration with the base R describes."""
    settings, refuse = dict(clause.settings), _refusal(clause)
    for name in settings:
        if name not in ("base", "lower", "upper"):
            raise refuse(f"holds real numbers, and is set {name}", name, "keep base, lower and upper")
    bounds: dict[str, Fraction | None] = {}
    names = {name: settings[name] for name in ("lower", "upper") if _is_name(settings.get(name, ""))}
    for name, open_end in (("lower", "-inf"), ("upper", "inf")):
        text = settings.get(name, open_end)
        bounds[name] = None if text == open_end or name in names else _bound(text)
        if bounds[name] is None and text != open_end and name not in names:
            raise refuse(f"has the bound {name} = {text[:20]}", name, f"write a number, or {open_end}")
    lower, upper = bounds["lower"], bounds["upper"]
    found = Interval(clause.name, lower, upper, names.get("lower", ""), names.get("upper", ""))
    if found.bounded and (
        found.ends[0] == found.ends[1] or (lower is not None and upper is not None and lower > upper)
    ):
        raise refuse(f"runs from {found.ends[0]} to {found.ends[1]}", "upper", "give an `upper` that is above `lower`")
    return found


def _is_name(text: str) -> bool:
    """Whether the text of a bound is the name of a number of the program."""
    return text.isidentifier() and text != "inf"


def bounds_of(declarations: Sequence[Space | DomainClause], leading: Sequence[Param]) -> frozenset[str]:
    """The names of leading parameters that are ends of intervals.

    >>> clause = DomainClause("Line", (("base", "R"), ("lower", "0"), ("upper", "b")), Span(1, 1))
    >>> list(bounds_of([clause], [Param("b", TypeName("R", Span(1, 9)), Span(1, 9))]))
    ['b']
    """
    numbers = {p.name for p in leading if isinstance(p.kind, TypeName) and p.kind.text == "R"}
    found: set[str] = set()
    for clause in declarations:
        if not isinstance(clause, DomainClause) or not _is_real(clause):
            continue
        settings, refuse = dict(clause.settings), _refusal(clause)
        for name in ("lower", "upper"):
            text = settings.get(name, "")
            if _is_name(text) and text not in numbers:
                problem = f"has the bound {name} = {text}, which is no real parameter of the program"
                raise refuse(problem, name, f"write a number, or make it one: ({text}::R) -> …")
            found |= {text} if _is_name(text) else set()
    return frozenset(found)


def _bound(text: str) -> Fraction | None:
    """A bound; None where the text is no number, or one that would fill the memory."""
    try:
        return read_number(text)
    except ValueError:
        return None


def _domain(clause: DomainClause) -> Domain:
    """The domain that a declaration describes, once its settings agree with each other."""
    settings, refuse = dict(clause.settings), _refusal(clause)
    base = settings.get("base", "I").split(", ")
    if set(base) != {"I"}:
        remedy = "write `base = I`, `base = (I, I, I)` for a lattice, or `base = R` for an interval"
        raise refuse(f"has the base {base[0]}", "base", remedy)
    periodic, symmetric, listed = (settings.get(name) == "true" for name in ("periodic", "symmetric", "list"))
    if periodic and symmetric:
        remedy = "keep one: a periodic index already has its negative, modulo the size"
        raise refuse("is both periodic and symmetric", "symmetric", remedy)
    for name in ("lower", "upper"):
        if not settings.get(name, "0").removeprefix("-").isdecimal():
            raise refuse(f"has the bound {name} = {settings[name]}", name, "write an integer, or `base = R` as well")
    bounds = {name: int(settings[name]) for name in ("lower", "upper") if name in settings}
    lower, upper = bounds.get("lower"), bounds.get("upper")
    if listed and (periodic or bounds):
        name = "periodic" if periodic else next(iter(bounds))
        remedy = f"remove `{name}`: the values of a list are given when the program runs"
        raise refuse(f"is a list and has the setting {name}", name, remedy)
    if len(bounds) == 1:
        (name,) = bounds
        raise refuse(
            f"has the bound {name} alone", name, "give both, as in `lower = 0; upper = 4` (4 is the last value)"
        )
    if lower is not None and upper is not None:
        _check_bounds(lower, upper, periodic, symmetric, refuse)
    contractable = settings.get("contractable") != "false"
    return Domain(
        clause.name,
        declared=True,
        periodic=periodic,
        symmetric=symmetric,
        contractable=contractable,
        lower=lower,
        upper=upper,
        directions=len(base),
        listed=listed,
    )


def _check_bounds(lower: int, upper: int, periodic: bool, symmetric: bool, refuse: _Refusal) -> None:
    span = f"runs from {lower} to {upper}"
    if upper < lower:
        raise refuse(f"{span}, which holds no value", "upper", "give an `upper` that is not below `lower`")
    if max(abs(lower), abs(upper)) >= _LARGEST:
        raise refuse(f"{span}, beyond the size of any array", "upper", "use smaller bounds")
    if symmetric and lower != -upper:
        raise refuse(f"is symmetric and {span}", "lower", f"write `lower = {-abs(upper)}; upper = {abs(upper)}`")
    if periodic and lower:
        raise refuse(f"is periodic and {span}", "lower", f"count from 0: `lower = 0; upper = {upper - lower}`")
