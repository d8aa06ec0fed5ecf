"""Gives loops through the same states one key, in which their steps are spelled definition by definition.

    y = 2 s; z = y + y     a variable for the key of 2 s stands for y, so that z is spelled as its double

Written out, a step would grow with each definition that is used twice, and a loop in a loop with each level. What is
used once is written out, for other spellings may have no name for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field

from combdiff.calculus.definitions.floating import unfold
from combdiff.canon.canonical import normal_form
from combdiff.records import dataclass
from combdiff.terms.terms import App, Lam, Let, Loop, Term, Tuple, Var, children, fresh, items_of, substitute
from combdiff.terms.types import Type, slot_types


def _uses(t: Term, var: Var) -> int:
    """In how many places a variable stands."""
    known: dict[Term, int] = {}

    def uses(u: Term) -> int:
        if u not in known:
            known[u] = int(u is var) + (sum(map(uses, children(u))) if var in u.free else 0)
        return known[u]

    return uses(t)


@dataclass(slots=True)
class LoopKeys:
    """Keys of loops; `placeholders` are the variables that stand for states, and for what has the same key."""

    found: dict[Loop, Hashable] = field(default_factory=dict)
    placeholders: dict[Hashable, Var] = field(default_factory=dict)

    def of(self, loop: Loop, depth: int = 0) -> Hashable:
        """The same for two loops through the same states, whatever these are called and the order of their terms.

        `depth` counts the loops around this one, whose states are other placeholders.
        """
        key = self.found.get(loop)
        if key is None:
            key = self.found[loop] = self._spelled(loop, depth)
        return key

    def of_value(self, value: Term) -> Hashable:
        """The same for two definitions of one value, whatever their indices are called and the order of their terms."""
        return self._value(value, 0)

    def of_step(self, step: Lam, colours: Sequence[int]) -> Sequence[Hashable]:
        """Keys of the next states, where states of one colour are spelled as one."""
        states = dict(zip(step.params, colours, strict=False))
        own = {s: self._stand_in(("state", n), s.kind) for s, n in states.items()}
        time = step.params[-1]
        return self._step(step.body, own | {time: self._stand_in("time", time.kind)}, 1)

    def _spelled(self, loop: Loop, depth: int) -> Hashable:
        assert isinstance(loop.step, Lam), "a step is a map"
        own = {v: self._stand_in((depth, n), v.kind) for n, v in enumerate(loop.step.params)}
        first = tuple(self._value(e, depth + 1) for e in items_of(loop.start))
        return loop.backward, loop.time.kind, self._step(loop.step.body, own, depth + 1), first

    def _step(self, body: Term, own: Mapping[Var, Term], depth: int) -> tuple[Hashable, ...]:
        """The keys of what a step makes, each of what it is made of: other states may be those of another loop."""
        bindings: list[tuple[Var, Term]] = []
        while isinstance(body, Let):
            bindings += body.bindings
            body = body.body
        assert isinstance(body, Tuple), "a step makes a tuple"
        return tuple(self._item(e, bindings, own, depth) for e in body.items)

    def _item(self, item: Term, bindings: Sequence[tuple[Var, Term]], own: Mapping[Var, Term], depth: int) -> Hashable:
        """The key of one of the values that a step makes."""
        needed: list[tuple[Var, Term]] = []
        for var, value in reversed(bindings):
            if var in item.free or any(var in e.free for _, e in needed):
                needed.append((var, value))
        needed.reverse()
        known = dict(own)
        for n, (var, value) in enumerate(needed):
            value = substitute(value, known)
            later = (*(e for _, e in needed[n + 1 :]), item)
            once = not isinstance(value, Loop) and sum(_uses(e, var) for e in later) < 2
            # another spelling of the loop may have no name for what is used once
            known[var] = value if once else self._stand_in(self._value(value, depth), var.kind)
        return self._value(substitute(item, known), depth)

    def _value(self, value: Term, depth: int) -> Hashable:
        if isinstance(value, Loop):
            return value.kind, value.item, self.of(value, depth)
        value = unfold(value)
        kind = value.type
        slots = slot_types(kind)
        rows = tuple(self._stand_in(("row", n), slot) for n, slot in enumerate(slots))
        form = normal_form(App(value, rows) if rows else value)
        return kind, form.coefficient, form.key, form.sign

    def _stand_in(self, key: Hashable, kind: Type) -> Var:
        return self.placeholders.setdefault((key, kind), fresh("v", kind))
