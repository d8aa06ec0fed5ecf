"""The variables of expressions, and how large programs are."""

from __future__ import annotations

from collections.abc import Iterator

from .syntax import Affine, Expr, Program, Ref, Var, bound_by, walk


def mentioned(e: Expr) -> Iterator[Var]:
    """The variables that stand in `e` itself, not below it."""
    match e:
        case Ref(var):
            yield var
        case Affine(terms):
            yield from (v for _, v in terms)


def used(e: Expr) -> set[Var]:
    """All variables that stand in `e`, bound ones too: each variable is bound once."""
    return {v for u in walk(e) for v in mentioned(u)}


def free(e: Expr) -> set[Var]:
    """The free variables of `e`."""
    return used(e) - {v for u in walk(e) for v in bound_by(u)}


def nodes(program: Program) -> int:
    """How many expressions a program has."""
    return sum(1 for _ in walk(program.body))
