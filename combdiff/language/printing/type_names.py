"""How types are written in a program: names of spaces, aliases such as `CM`, and the declarations that they need.

An anonymous range is written `N`, one of a named size `N{M}`. One that the text alone would not tell (`anchors.py`)
gets a name for its size; if it is in no slot of an argument, or runs from −M, it becomes a declared domain.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

from combdiff.language.inference.declarations import Kinds
from combdiff.language.inference.domains import Ranges
from combdiff.language.inference.settings import MOST_DERIVATIVES
from combdiff.language.parsing.syntax import MapType, TypeExpr, TypeName
from combdiff.language.printing.anchors import domains_of, unanchored
from combdiff.language.printing.names import names_in
from combdiff.terms.numerals import MOST_DIGITS
from combdiff.terms.terms import Lam, Loop, Reduce, Term, Var, bound_by, subterms
from combdiff.terms.types import Domain, Index, Interval, Map, Number, Product, Symmetry, Type


class TypeNames:
    """What the types in one term are called.

    >>> from combdiff.terms.types import COMPLEX
    >>> n, m = Index(Domain("C.1")), Index(Domain("C.2"))
    >>> TypeNames().kind(Map((n, m), COMPLEX)), TypeNames().kind(Map((n, m, m), COMPLEX))
    ('CM', '(N, N, N) -> C')
    """

    def __init__(self, term: Term | None = None) -> None:
        self.domains: dict[Domain, str] = {}
        self.intervals: dict[Interval, str] = {}
        self.sizes: dict[Domain, str] = {}
        self.lost: dict[Domain, set[Var]] = {}
        self.spaces: dict[Hashable, tuple[str, Map]] = {}
        self.functions: set[str] = set()
        self.integers: list[Domain] = []
        self.taken = {"N", "I", "R", "C", *(name for name in _aliases().values())}
        if term is not None:
            self._name_ranges(term)
            self._name_intervals(term)
            self._name_spaces(term)

    def _name_ranges(self, term: Term) -> None:
        """Names of ranges, or of their sizes: as the program gave them, and new ones where the text needs some."""
        self.lost = unanchored(term)
        self.functions = {u.kind for u in subterms(term, Reduce)}
        shown = {d for var in (*_parameters(term), *term.free) for d in _slots(var.kind)}
        shown |= {d.of for d in shown if d.of is not None}
        found = _domains(term)
        taken = names_in(term) | {d.name for d in found if d.declared}
        taken |= {kind.space for var in _parameters(term) for kind in _maps(var.kind)}
        # a size that no array has is given at the call
        self.integers = [d for d in found if d.sized and d.count is None and d not in shown]
        for domain in found:
            if domain.sized and (domain in shown or domain.count is not None or domain in self.integers):
                self.sizes[domain] = domain.name
            elif domain.of in self.sizes:
                self.sizes[domain] = f"{self.sizes[domain.of]} {'-' if domain.less > 0 else '+'} {abs(domain.less)}"
            elif domain in shown and domain in self.lost and not (domain.declared or domain.symmetric):
                self.sizes[domain] = _free_size(taken)
            elif domain.declared:
                self.domains[domain] = self._unique(domain.name)
            elif domain.sized or domain in self.lost:
                self.domains[domain] = self._unique(re.sub(r"\W", "", domain.name) or "D", taken)

    def _name_intervals(self, term: Term) -> None:
        for interval in dict.fromkeys(i for var in (*_bound(term), *term.free) for i in _intervals(var.kind)):
            self.intervals[interval] = self._unique(interval.name)

    def _name_spaces(self, term: Term) -> None:
        """Names of the types that have to be declared, those that others are made of first."""
        for var in _parameters(term):
            for kind in _maps(var.kind):
                if kind.symmetries or kind.space or _is_declared(kind):
                    self._note(kind)

    def _note(self, kind: Map) -> None:
        builtin = kind.space in _aliases().values()
        plain = not kind.symmetries and not _is_declared(kind)
        if (self._alias(kind) and (builtin or not kind.space)) or (plain and builtin):
            return
        signature = self._signature(kind)
        if signature not in self.spaces:
            self.spaces[signature] = self._unique(kind.space or "T"), kind

    def _signature(self, kind: Type) -> Hashable:
        """What types have in common that are written alike, whatever the spaces in them are called."""
        match kind:
            case Map(params, result):
                told = (
                    kind.space,
                    kind.symmetries,
                    kind.linear,
                    kind.positive,
                    kind.definite,
                    kind.fixed,
                    kind.adjoint,
                    kind.increasing,
                )
                return *told, *map(self._signature, (*params, result))
            case Product(items):
                return tuple(map(self._signature, items))
            case _:
                return self.kind(kind)

    def _unique(self, name: str, others: Collection[str] = ()) -> str:
        found, n = name, 2
        while found in self.taken or found in others:
            found, n = f"{name}_{n}", n + 1
        self.taken.add(found)
        return found

    def domain(self, index: Index) -> str:
        """The declared domain of an index, empty if its range is anonymous."""
        return self.domains.get(index.domain, "") if index.domain else ""

    def size(self, index: Type) -> str:
        """The name for the size of an index's range, empty if it has none."""
        return self.sizes.get(index.domain, "") if isinstance(index, Index) and index.domain else ""

    def annotates(self, index: Var) -> bool:
        """Whether a bound index has to say what it ranges over."""
        assert isinstance(index.kind, Index)
        domain = index.kind.domain
        return bool(self.domain(index.kind)) or (domain is not None and index in self.lost.get(domain, ()))

    def kind(self, kind: Type) -> str:
        """A type as a program writes it."""
        match kind:
            case Index(domain):
                plain = f"N{{{self.size(kind)}}}" if self.size(kind) else "N"
                return self.domain(kind) or ("I" if domain is None or domain.symmetric else plain)
            case Number(interval=Interval() as interval):
                return self.intervals.get(interval, interval.name)
            case Number():
                return "C" if kind.complex else "R"
            case Product(items):
                return f"({', '.join(map(self.kind, items))})"
            case Map():
                name, _ = self.spaces.get(self._signature(kind), ("", kind))
                return name or self._alias(kind) or self._inline(kind)

    def _alias(self, kind: Map) -> str:
        if not _is_flat(kind) or kind.linear or kind.positive or kind.fixed or kind.increasing:
            return ""
        sizes = [self.size(param) for param in kind.params]
        params = ["N" if size else self.kind(p) for p, size in zip(kind.params, sizes, strict=True)]
        written = f"({', '.join(params)}) -> {self.kind(kind.result)}"
        name = _aliases().get((written, kind.symmetries, kind.definite), "")
        if not name or not any(sizes):
            return name
        named = sizes[:1] if kind.symmetries else sizes
        return f"{name}{{{', '.join(named)}}}" if all(sizes) else ""

    def _inline(self, kind: Map) -> str:
        return f"({', '.join(map(self.kind, kind.params))}) -> {self.kind(kind.result)}"

    def declarations(self) -> Iterator[str]:
        """The `@domain` and `@space` declarations, in the order in which the term needs them."""
        for domain, name in self.domains.items():
            yield f"@domain {name} begin {_settings(domain)} end"
        for interval, name in self.intervals.items():
            yield f"@domain {name} begin base = R{_ends(interval)} end"
        for name, kind in self.spaces.values():
            lines = [f"@space {name} begin", f"  type = {self._inline(kind)}", *["  linear = true"] * kind.linear]
            lines += ["  positive = true"] * kind.positive + ["  definite = true"] * kind.definite
            lines += [f"  fixed = {_fixed(kind)}"] if kind.fixed else []
            lines += ["  increasing = true"] * kind.increasing
            lines += [f"  adjoint = :{kind.adjoint}"] if kind.adjoint else []
            if kind.symmetries:
                clauses = ", ".join(map(str, kind.symmetries))
                lines.append(f"  symmetries = ({clauses}{',' if len(kind.symmetries) == 1 else ''})")
            yield "\n".join([*lines, "end"])


def _bound(term: Term) -> list[Var]:
    return [var for u in subterms(term) for var in bound_by(u)]


def _domains(term: Term) -> list[Domain]:
    """All domains of a term; one whose size is another's, and a number, comes after this one."""
    named = (d for var in (*_bound(term), *term.free) for d in domains_of(var.kind))
    return list(dict.fromkeys(part for d in named for part in ((d,) if d.of is None else (d.of, d))))


def _free_size(taken: set[str]) -> str:
    """A name for a size that is not taken, and is so from now on."""
    name, n = "n", 1
    while name in taken:
        n += 1
        name = "nm"[n - 1] if n <= 2 else f"n_{n}"
    taken.add(name)
    return name


def _slots(kind: Type) -> list[Domain]:
    """The domains of the slots of a parameter; an index has none."""
    return [] if isinstance(kind, Index) else domains_of(kind)


def _settings(domain: Domain) -> str:
    base = f"({', '.join('I' * domain.directions)})" if domain.directions > 1 else "I"
    found = [f"base = {base}"] if domain.directions > 1 or domain.listed or not domain.symmetric else []
    if domain.count is not None:
        lower = domain.lower or 0
        found += [f"lower = {lower}", f"upper = {lower + domain.count - 1}"]
    found += ["periodic = true"] * domain.periodic + ["list = true"] * domain.listed
    found += ["symmetric = true"] * domain.symmetric
    return "; ".join(found + ["contractable = false"] * (not domain.contractable))


def _ends(interval: Interval) -> str:
    found = ""
    for name, bound in zip(("lower", "upper"), interval.ends, strict=True):
        if bound is not None:
            found += f"; {name} = {bound if isinstance(bound, str) else _decimal(bound)}"
    return found


def _fixed(kind: Map) -> str:
    every = len(kind.fixed) == MOST_DERIVATIVES
    return "true" if every else f"({', '.join(map(str, kind.fixed))}{',' if len(kind.fixed) == 1 else ''})"


def _decimal(bound: Fraction) -> str:
    """A bound as a declaration takes it, which has been read from such a text.

    >>> _decimal(Fraction(-5, 2))
    '-2.5'
    """
    exact = Context(prec=2 * MOST_DIGITS).divide(Decimal(bound.numerator), Decimal(bound.denominator))
    return f"{exact:f}"


def _intervals(kind: Type) -> Iterator[Interval]:
    """The intervals that a type names."""
    match kind:
        case Number(interval=Interval() as interval):
            yield interval
        case Map(params, result):
            for part in (*params, result):
                yield from _intervals(part)
        case Product(items):
            for item in items:
                yield from _intervals(item)


def _is_declared(kind: Map) -> bool:
    """Whether a space says more of it than its slots and symmetries."""
    return kind.linear or kind.positive or kind.definite or kind.increasing or bool(kind.fixed)


def _is_flat(kind: Map) -> bool:
    return not any(isinstance(p, Map | Product) for p in (*kind.params, kind.result))


def _parameters(term: Term) -> Iterable[Var]:
    """What has a type in the text: not the states of loops."""
    states = {v for u in subterms(term, Loop) for v in u.states}
    return [p for u in subterms(term, Lam) for p in u.params if p not in states]


def _maps(kind: Type) -> Iterator[Map]:
    """The maps in a type, those that others are made of first, as they have to be declared."""
    match kind:
        case Map(params, result):
            for inner in (*params, result):
                yield from _maps(inner)
            yield kind
        case Product(items):
            for inner in items:
                yield from _maps(inner)


@cache
def _aliases() -> dict[tuple[str, tuple[Symmetry, ...], bool], str]:
    """The names that the language itself gives to map types, by what they stand for."""
    kinds = Kinds((), Ranges())
    spaces = kinds.spaces.items()
    return {(_written(space.kind), kinds.symmetries[name], space.definite): name for name, space in spaces}


def _written(kind: TypeExpr) -> str:
    match kind:
        case TypeName(text):
            return text
        case MapType(params, result):
            return f"({', '.join(map(_written, params))}) -> {_written(result)}"
