"""Replaces provisional domains in the types of variables by the resolved ones: the last walk of `infer`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from combdiff.terms.terms import Sum, Term, Var, size
from combdiff.terms.types import REAL, Domain, Index, Map, Product, Type


class Resolver(Protocol):
    """What knows the domain that is to stand for another one."""

    def is_real(self, domain: Domain) -> bool:
        """Whether the variable is a real number after all."""
        ...

    def resolve(self, domain: Domain) -> Domain:
        """The domain in its place."""
        ...


def resolved(term: Term, ranges: Resolver) -> Term:
    """`term` with the resolved domains in the types of all variables; a variable keeps its identity.

    >>> from combdiff.errors import Span
    >>> from combdiff.language.inference.domains import Ranges
    >>> from combdiff.terms.terms import fresh
    >>> ranges = Ranges()
    >>> slot = ranges.new("slot 1 of x", Span(1, 1), slot="x.1")
    >>> resolved(fresh("i", Index(slot)), ranges).kind.domain.name
    'x.1'
    """
    walk = _Resolution(ranges)
    return walk.term(term)


class _Resolution:
    """One walk, linear in the distinct nodes: what two parents share stays shared."""

    def __init__(self, ranges: Resolver) -> None:
        self.ranges = ranges
        self._variables: dict[int, Var] = {}
        self._known: dict[int, Term] = {}

    def kind(self, k: Type) -> Type:
        match k:
            case Index(domain) if domain is not None and self.ranges.is_real(domain):
                return REAL
            case Index(domain) if domain is not None:
                return Index(self.ranges.resolve(domain))
            case Map(params, result):
                return replace(k, params=tuple([self.kind(p) for p in params]), result=self.kind(result))
            case Product(items):
                return Product(tuple([self.kind(item) for item in items]))
            case _:
                return k

    def term(self, t: Term) -> Term:
        if isinstance(t, Var):
            if t.uid not in self._variables:
                self._variables[t.uid] = Var(t.name, self.kind(t.kind), t.uid)
            return self._variables[t.uid]
        if id(t) not in self._known:
            make: Callable[..., Term] = type(t)
            names: tuple[str, ...] = type(t).__match_args__
            made = make(*[self._part(getattr(t, name)) for name in names])
            counted = made.counted if isinstance(made, Sum) else None
            self._known[id(t)] = made if counted is None else size(counted)
        return self._known[id(t)]

    def _part(self, x: object) -> object:
        if isinstance(x, Term):
            return self.term(x)
        return tuple([self._part(y) for y in x]) if isinstance(x, tuple) else x
