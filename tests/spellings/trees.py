"""Walks of surface trees, in which each bound variable has a name of its own, so that nothing is captured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from random import Random
from typing import Any

from combdiff.errors import Span
from combdiff.language.parsing.syntax import (
    Apply,
    Block,
    Definition,
    Expr,
    Lambda,
    Name,
    Param,
    Summation,
    TypeName,
    nodes_of,
)

HERE = Span(1, 1)
"""Where what is made stands."""


def name(text: str) -> Name:
    """A name, wherever it stands."""
    return Name(text, HERE)


def rebuilt(e: Any, change: Callable[[Any], Any]) -> Any:
    """`e` with each expression right below it changed."""
    if isinstance(e, tuple):
        return tuple(change(p) if isinstance(p, Expr) else rebuilt(p, change) for p in e)
    if not is_dataclass(e) or isinstance(e, Span | Param | TypeName | type):
        return e
    return replace(e, **{f.name: _field(getattr(e, f.name), change) for f in fields(e)})


def _field(value: Any, change: Callable[[Any], Any]) -> Any:
    return change(value) if isinstance(value, Expr) else rebuilt(value, change)


def bottom_up(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`change` at each expression, the innermost first; indices in slots are no expressions of their own."""
    return change(rebuilt(e, lambda u: bottom_up(u, change)))


# --- names ------------------------------------------------------------------------------------------------------------


@dataclass
class Names:
    """Gives each bound variable a name that nothing else has; the parameters of the program keep theirs."""

    fixed: frozenset[str]
    numbers: Iterator[int]

    def __call__(self, e: Any, known: Mapping[str, str]) -> Any:
        match e:
            case Name(text):
                return name(known.get(text, text))
            case Lambda(params, body) | Summation(params, body):
                new = {p.name: self._fresh(p.name) for p in params if p.name not in self.fixed}
                inner = {**known, **new}
                own = tuple(Param(inner.get(p.name, p.name), p.kind, HERE) for p in params)
                return type(e)(own, self(body, inner), HERE)
            case Block(definitions, body):
                known = dict(known)
                found = []
                for d in definitions:
                    value = self(d.value, known)
                    known.update({n.text: self._fresh(n.text) for n in d.names})
                    found.append(Definition(tuple(name(known[n.text]) for n in d.names), value, False, HERE))
                return Block(tuple(found), self(body, known), HERE)
            case _:
                return rebuilt(e, lambda u: self(u, known))

    def _fresh(self, old: str) -> str:
        return f"{old.rstrip('0123456789_')}_{next(self.numbers)}"


def parameters(e: Expr) -> list[Param]:
    """The parameters of the program, which are bound outside of everything else."""
    match e:
        case Lambda(params, body):
            return [*params, *parameters(body)]
        case Apply(Name("pullback" | "grad"), (Lambda() as f, *_)):
            return parameters(f)
        case Block(_, body):
            return parameters(body)
        case _:
            return []


def substituted(e: Any, known: Mapping[str, Expr]) -> Any:
    """Values in the place of names; no binder in `e` binds a name of theirs."""
    if isinstance(e, Name):
        return known.get(e.text, e)
    return rebuilt(e, lambda u: substituted(u, known))


def mentioned(e: object) -> set[str]:
    """The names that stand in it."""
    return {n.text for n in nodes_of(e) if isinstance(n, Name)}


def put(e: Any, old: Expr, new: Expr) -> Any:
    """`e` with `new` in the very place of `old`."""
    if e is old:
        return new
    return rebuilt(e, lambda u: put(u, old, new))


def renamed(e: Expr, fixed: frozenset[str], rng: Random) -> Expr:
    """Short names for all that is bound, in an order of chance."""
    taken = mentioned(e) | {p.name for p in nodes_of(e) if isinstance(p, Param)}
    pool = [f"{a}{b}" for b in ("", "1", "2", "3", "4", "5", "6", "7", "8", "9") for a in "ijklmnpqrstuvwabcdfghxyz"]
    free = [text for text in pool if text not in taken]
    rng.shuffle(free)
    known: dict[str, str] = {}

    def go(u: Any) -> Any:
        match u:
            case Name(text):
                return name(known.get(text, text))
            case Lambda(params, body) | Summation(params, body):
                for p in params:
                    if p.name not in fixed:
                        known[p.name] = free.pop()
                return type(u)(tuple(Param(known.get(p.name, p.name), p.kind, HERE) for p in params), go(body), HERE)
            case Block(definitions, body):
                found = []
                for d in definitions:
                    value = go(d.value)
                    known.update({n.text: free.pop() for n in d.names})
                    found.append(Definition(tuple(name(known[n.text]) for n in d.names), value, False, HERE))
                return Block(tuple(found), go(body), HERE)
            case _:
                return rebuilt(u, go)

    return go(e)
