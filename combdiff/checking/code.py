"""Compares a derivative with what its emitted code computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from combdiff.arrays.lower.argument_names import ArgumentNames
from combdiff.arrays.lower.signature import result_of
from combdiff.checking.points import add_derivatives
from combdiff.checking.rounding import distance
from combdiff.errors import UnsupportedError
from combdiff.language.vocabulary import DERIVATIVES
from combdiff.meaning.differences import items_of
from combdiff.meaning.points import listed
from combdiff.meaning.quadrature import standard_rule
from combdiff.meaning.sizes import Sizes
from combdiff.meaning.values import Value, entry_by_entry
from combdiff.terms.terms import Diff, Term, Var, diff, holds
from combdiff.terms.types import Index, Map, interval_of_rule

if TYPE_CHECKING:
    from combdiff.arrays.plan import Argument
    from combdiff.derivation import Derivation
    from combdiff.run.compiled import Compiled


def emitted(d: Derivation) -> tuple[Compiled[Any] | None, tuple[str, ...]]:
    """The emitted code, or a note that says why there is none."""
    try:
        return d.compile("numpy", check=False), ()
    except UnsupportedError as refusal:
        if not _unrunnable(d.term):
            raise
        return None, (f"emitted NumPy code: not compared, {refusal.message}",)


def _unrunnable(t: Term) -> bool:
    """Whether `t` may have no array code: it holds an unknown map, which code cannot call in a loop over indices."""
    return holds(t, Diff)


def off_code(t: Term, code: Compiled[Any], result: Value, values: dict[Term, Value], sizes: Sizes) -> float:
    """The emitted function on the same arrays."""
    names = ArgumentNames(t)
    params = result_of(t).params
    values = _with_slopes_of_equations(code, params, values, sizes)
    given = {v: value for v, value in values.items() if v in params or isinstance(v, Diff)}
    named = {names.of(v): _elementwise(v, value) for v, value in given.items()}
    found = code(**{a.name: _given(a, named, sizes) for a in code.arguments if not a.optional})
    return max((distance(a, b) for a, b in zip(items_of(found), items_of(result), strict=True)), default=0.0)


def _with_slopes_of_equations(
    code: Compiled[Any], params: Sequence[Var], values: dict[Term, Value], sizes: Sizes
) -> dict[Term, Value]:
    """The values, with derivatives that the code solves equations by, and that the result does not hold."""
    found = dict(values)
    heads: dict[str, Term] = {v.name: v for v in params}
    made = [a for a in code.arguments if a.made and a.made[0] in DERIVATIVES]
    for a in sorted(made, key=lambda a: len(a.name)):
        kind, of = a.made or ("", "")
        if of in heads:
            heads[a.name] = diff(kind, heads[of])
            add_derivatives(found, heads[a.name], sizes)
    return found


def _given(a: Argument, named: dict[str, object], sizes: Sizes) -> object:
    """The value of an argument, a list of offsets, or the size that emitted code asks for where no array shows it."""
    if a.offsets is not None:
        return listed(a.offsets, sizes).rows
    if a.name not in named and isinstance(a.kind, Index) and a.kind.domain is not None:
        return sizes[a.kind.domain]
    interval = interval_of_rule(a.kind)
    return named[a.name] if interval is None else standard_rule(interval)


def _elementwise(v: Term, value: Value) -> object:
    """A map of numbers is called with whole arrays by emitted code, one of tuples of numbers with tuples of arrays."""
    kind = v.type
    if not callable(value) or not isinstance(kind, Map) or any(isinstance(p, Map) for p in (*kind.params, kind.result)):
        return value
    return entry_by_entry(value)
