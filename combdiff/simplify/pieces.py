"""What is compared when a stage is checked: not the whole result, but each value and each item that the stage changed.

A value which has a name before and after the stage is compared for itself, with random numbers in the place of the
other values that have a name on both sides. If all of these agree, so do the results: the values before solve the
equations after, and these have one solution. Values of one form, such as the layers of a network, are compared once.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass

from combdiff.language.terms import Lam, Let, Term, Tuple, Var, let
from combdiff.simplify.numeric import is_tensor
from combdiff.simplify.repeats import form

Piece = tuple[str, Term, Term]
"""The name of a value (empty for an item of the result), the value before, and after."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A result taken apart: its values by name, its items, and the parameters of maps around them."""

    values: Mapping[Var, Term]
    items: tuple[Term, ...]
    params: tuple[Var, ...]


def parts_of(t: Term) -> Parts:
    """The values and items of a result.

    >>> from combdiff.language.terms import fresh, mul
    >>> from combdiff.language.types import REAL
    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> parts_of(Let(((y, mul(x, x)),), y)).items == (y,)
    True
    """
    values: dict[Var, Term] = {}
    params: list[Var] = []
    while isinstance(t, Let | Lam) and not is_tensor(t):
        if isinstance(t, Let):
            values.update(t.bindings)
        else:
            params.extend(t.params)
        t = t.body
    return Parts(values, t.items if isinstance(t, Tuple) else (t,), tuple(params))


def pieces(before: Term, after: Term) -> Iterator[Piece]:
    """The values and items that differ, one of each form; the whole results where they cannot be taken apart."""
    b, a = parts_of(before), parts_of(after)
    # a name that is used before its value, or without one, is free after and not before
    if b.params or a.params or len(b.items) != len(a.items) or not after.free <= before.free:
        yield "", before, after
        return
    shared = b.values.keys() & a.values.keys()
    pairs = [(v.name, b.values[v], a.values[v]) for v in b.values if v in shared and not _is_function(b.values[v])]
    pairs += [("", x, y) for x, y in zip(b.items, a.items, strict=True)]
    seen: set[Hashable] = set()
    alone = [_Alone(b.values, shared), _Alone(a.values, shared)]
    for name, x, y in pairs:
        x, y = alone[0].closed(x), alone[1].closed(y)
        if x == y:
            continue
        shape, _ = form(Tuple((x, y)))
        if shape not in seen:
            seen.add(shape)
            yield name, x, y


def _is_function(value: Term) -> bool:
    """Whether it is a definition that was kept unknown, which is not evaluated."""
    return isinstance(value, Lam) and not is_tensor(value)


class _Alone:
    """The values of one side that have no name on the other."""

    def __init__(self, values: Mapping[Var, Term], shared: Collection[Var]) -> None:
        self.values = {v: e for v, e in values.items() if v not in shared}
        self.place = {v: n for n, v in enumerate(self.values)}

    def closed(self, value: Term) -> Term:
        """`value` below those of them that it is made of."""
        needed: set[Var] = set()
        stack = [value] if self.values else []
        while stack:
            for v in stack.pop().free:
                if v in self.values and v not in needed:
                    needed.add(v)
                    stack.append(self.values[v])
        return let([(v, self.values[v]) for v in sorted(needed, key=self.place.__getitem__)], value)
