"""How types are written in a program: names of spaces, aliases such as `CM`, and the declarations that they need.

An anonymous range is written `N`, one of a named size `N{M}`. One that the text alone would not tell (`anchors.py`)
gets a name for its size; if it is in no slot of an argument, or runs from −M, it becomes a declared domain.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator
from functools import cache

from combdiff.language.inference.declarations import Kinds
from combdiff.language.inference.domains import Ranges
from combdiff.language.parsing.syntax import MapType, TypeExpr, TypeName
from combdiff.language.printing.anchors import domains_of, unanchored
from combdiff.language.printing.names import names_in
from combdiff.terms.terms import Lam, Reduce, Term, Var, bound_by, subterms
from combdiff.terms.types import Domain, Index, Map, Number, Product, Symmetry, Type


class Spelling:
    """What the types in one term are called.

    >>> from combdiff.terms.types import COMPLEX
    >>> n, m = Index(Domain("C.1")), Index(Domain("C.2"))
    >>> Spelling().kind(Map((n, m), COMPLEX)), Spelling().kind(Map((n, m, m), COMPLEX))
    ('CM', '(N, N, N) -> C')
    """

    def __init__(self, term: Term | None = None) -> None:
        self.domains: dict[Domain, str] = {}
        self.sizes: dict[Domain, str] = {}
        self.lost: dict[Domain, set[Var]] = {}
        self.spaces: dict[Hashable, tuple[str, Map]] = {}
        self.functions: set[str] = set()
        self.taken = {"N", "I", "R", "C", *(name for name in _aliases().values())}
        if term is not None:
            self._declare(term)

    def _declare(self, term: Term) -> None:
        bound = [var for u in subterms(term) for var in bound_by(u)]
        self.lost = unanchored(term)
        self.functions = {u.kind for u in subterms(term) if isinstance(u, Reduce)}
        shown = {d for var in (*_parameters(term), *term.free) for d in _slots(var.kind)}
        found = dict.fromkeys(d for var in (*bound, *term.free) for d in domains_of(var.kind))
        taken = names_in(term) | {d.name for d in found if d.declared}
        taken |= {kind.space for var in _parameters(term) for kind in _maps(var.kind)}
        for domain in found:
            if domain in shown and domain.sized:
                self.sizes[domain] = domain.name
            elif domain in shown and domain in self.lost and not (domain.declared or domain.symmetric):
                self.sizes[domain] = _free_size(taken)
            elif domain.declared:
                self.domains[domain] = self._unique(domain.name)
            elif domain.sized or domain in self.lost:
                self.domains[domain] = self._unique(re.sub(r"\W", "", domain.name) or "D", taken)
        for var in _parameters(term):
            for kind in _maps(var.kind):
                if kind.symmetries or kind.space or kind.linear or kind.positive:
                    self._note(kind)

    def _note(self, kind: Map) -> None:
        builtin = kind.space in _aliases().values()
        plain = not kind.symmetries and not kind.linear and not kind.positive
        if (self._alias(kind) and (builtin or not kind.space)) or (plain and builtin):
            return
        signature = self._signature(kind)
        if signature not in self.spaces:
            self.spaces[signature] = self._unique(kind.space or "T"), kind

    def _signature(self, kind: Type) -> Hashable:
        """What types have in common that are written alike, whatever the spaces in them are called."""
        match kind:
            case Map(params, result):
                return kind.space, kind.symmetries, kind.linear, kind.positive, *map(self._signature, (*params, result))
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
            case Number():
                return "C" if kind.complex else "R"
            case Product(items):
                return f"({', '.join(map(self.kind, items))})"
            case Map():
                name, _ = self.spaces.get(self._signature(kind), ("", kind))
                return name or self._alias(kind) or self._inline(kind)

    def _alias(self, kind: Map) -> str:
        if not _is_flat(kind) or kind.linear or kind.positive:
            return ""
        sizes = [self.size(param) for param in kind.params]
        params = ["N" if size else self.kind(p) for p, size in zip(kind.params, sizes, strict=True)]
        name = _aliases().get((f"({', '.join(params)}) -> {self.kind(kind.result)}", kind.symmetries), "")
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
        for name, kind in self.spaces.values():
            lines = [f"@space {name} begin", f"  type = {self._inline(kind)}", *["  linear = true"] * kind.linear]
            lines += ["  positive = true"] * kind.positive
            if kind.symmetries:
                clauses = ", ".join(map(str, kind.symmetries))
                lines.append(f"  symmetries = ({clauses}{',' if len(kind.symmetries) == 1 else ''})")
            yield "\n".join([*lines, "end"])


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
    found += [] if domain.count is None else [f"lower = {domain.lower}", f"upper = {domain.upper}"]
    found += ["periodic = true"] * domain.periodic + ["list = true"] * domain.listed
    found += ["symmetric = true"] * domain.symmetric
    return "; ".join(found + ["contractable = false"] * (not domain.contractable))


def _is_flat(kind: Map) -> bool:
    return not any(isinstance(p, Map | Product) for p in (*kind.params, kind.result))


def _parameters(term: Term) -> Iterable[Var]:
    return [p for u in subterms(term) if isinstance(u, Lam) for p in u.params]


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
def _aliases() -> dict[tuple[str, tuple[Symmetry, ...]], str]:
    """The names that the language itself gives to map types, by what they stand for."""
    kinds = Kinds((), Ranges())
    return {(_written(space.kind), kinds.symmetries[name]): name for name, space in kinds.spaces.items()}


def _written(kind: TypeExpr) -> str:
    match kind:
        case TypeName(text):
            return text
        case MapType(params, result):
            return f"({', '.join(map(_written, params))}) -> {_written(result)}"
