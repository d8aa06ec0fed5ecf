"""How types are written in a program: names of spaces, aliases such as `CM`, and the declarations that they need.

An anonymous range is written `N`. One that the text alone would not tell (`anchors.py`) becomes a declared domain, and
the types of the tensors that it stands in are written with that domain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from combdiff.language.anchors import domains_of, unanchored
from combdiff.language.declarations import Kinds
from combdiff.language.domains import Ranges
from combdiff.language.syntax import MapType, TypeExpr, TypeName
from combdiff.language.terms import Lam, Term, Var, bound_by, subterms
from combdiff.language.types import Domain, Index, Map, Number, Product, Symmetry, Type

_Signature = tuple[str, tuple[Symmetry, ...], str]


class Spelling:
    """What the types in one term are called.

    >>> from combdiff.language.types import COMPLEX
    >>> n, m = Index(Domain("C.1")), Index(Domain("C.2"))
    >>> Spelling().kind(Map((n, m), COMPLEX)), Spelling().kind(Map((n, m, m), COMPLEX))
    ('CM', '(N, N, N) -> C')
    """

    def __init__(self, term: Term | None = None) -> None:
        self.domains: dict[Domain, str] = {}
        self.spaces: dict[_Signature, str] = {}
        self.taken = {"N", "I", "R", "C", *(name for name in _aliases().values())}
        if term is not None:
            self._declare(term)

    def _declare(self, term: Term) -> None:
        bound = [var for u in subterms(term) for var in bound_by(u)]
        lost = unanchored(term)
        for var in (*bound, *term.free):
            for domain in domains_of(var.kind):
                if (domain.declared or domain in lost) and domain not in self.domains:
                    self.domains[domain] = self._unique(re.sub(r"\W", "", domain.name) or "D")
        for var in _parameters(term):
            for kind in _maps(var.kind):
                if kind.symmetries or kind.space:
                    self._note(kind)

    def _note(self, kind: Map) -> None:
        builtin = kind.space in _aliases().values()
        if (self._alias(kind) and (builtin or not kind.space)) or (not kind.symmetries and builtin):
            return
        signature = self._signature(kind)
        if signature not in self.spaces:
            self.spaces[signature] = self._unique(kind.space or "T")

    def _signature(self, kind: Map) -> _Signature:
        return kind.space, kind.symmetries, self._inline(kind)

    def _unique(self, name: str) -> str:
        found, n = name, 2
        while found in self.taken:
            found, n = f"{name}_{n}", n + 1
        self.taken.add(found)
        return found

    def domain(self, index: Index) -> str:
        """The declared domain of an index, empty if its range is anonymous."""
        return self.domains.get(index.domain, "") if index.domain else ""

    def kind(self, kind: Type) -> str:
        """A type as a program writes it."""
        match kind:
            case Index(domain):
                return self.domain(kind) or ("I" if domain is None or domain.symmetric else "N")
            case Number():
                return "C" if kind.complex else "R"
            case Product(items):
                return f"({', '.join(map(self.kind, items))})"
            case Map():
                return self.spaces.get(self._signature(kind)) or self._alias(kind) or self._inline(kind)

    def _alias(self, kind: Map) -> str:
        return _aliases().get((self._inline(kind), kind.symmetries), "") if _is_flat(kind) else ""

    def _inline(self, kind: Map) -> str:
        return f"({', '.join(map(self.kind, kind.params))}) -> {self.kind(kind.result)}"

    def declarations(self) -> Iterator[str]:
        """The `@domain` and `@space` declarations, in the order in which the term needs them."""
        for domain, name in self.domains.items():
            yield f"@domain {name} begin {_settings(domain)} end"
        for (_, symmetries, written), name in self.spaces.items():
            lines = [f"@space {name} begin", f"  type = {written}"]
            if symmetries:
                clauses = ", ".join(map(str, symmetries))
                lines.append(f"  symmetries = ({clauses}{',' if len(symmetries) == 1 else ''})")
            yield "\n".join([*lines, "end"])


def _settings(domain: Domain) -> str:
    found = [] if domain.symmetric else ["base = I"]
    found += ["periodic = true"] * domain.periodic + ["symmetric = true"] * domain.symmetric
    return "; ".join(found + ["contractable = false"] * (not domain.contractable))


def _is_flat(kind: Map) -> bool:
    return not any(isinstance(p, Map | Product) for p in (*kind.params, kind.result))


def _parameters(term: Term) -> Iterable[Var]:
    return [p for u in subterms(term) if isinstance(u, Lam) for p in u.params]


def _maps(kind: Type) -> Iterator[Map]:
    match kind:
        case Map(params, result):
            yield kind
            for inner in (*params, result):
                yield from _maps(inner)
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
