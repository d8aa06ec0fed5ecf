"""The variables of expressions, and how large programs are."""

from __future__ import annotations

from collections.abc import Iterator

from .syntax import Affine, Expr, Looked, Program, Ref, Var, bound_by, walk


def mentioned(e: Expr) -> Iterator[Var]:
    """The variables that stand in `e` itself, not below it."""
    match e:
        case Ref(var):
            yield var
        case Affine(terms):
            for _, v in terms:
                yield from within(v)


def within(v: Var) -> Iterator[Var]:
    """An index, or the variables of J(e)."""
    if isinstance(v, Looked) and v.array is not None:
        yield v.array
        yield from (w for a in v.args for w in mentioned(a))
    else:
        yield v


def used(e: Expr) -> set[Var]:
    """All variables that stand in `e`, bound ones too: each variable is bound once."""
    return {v for u in walk(e) for v in mentioned(u)}


def free(e: Expr) -> set[Var]:
    """The free variables of `e`."""
    return used(e) - {v for u in walk(e) for v in bound_by(u)}


def nodes(program: Program) -> int:
    """How many expressions a program has."""
    return sum(1 for _ in walk(program.body))
