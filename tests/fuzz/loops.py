"""Loops: of numbers, tensors, tuples, that stop early or not, in sums and maps, in each other, around derivatives."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from .kinds import Function, Index, Number, Range, Tensor, Type, longer, over_complex
from .sight import LARGEST_LOOP, Sight, bare, is_complex
from .structures import Structures
from .syntax import (
    Add,
    Affine,
    App,
    Block,
    Call,
    Compared,
    Constant,
    Definition,
    Derived,
    Div,
    Expr,
    Lam,
    Literal,
    Loop,
    Mul,
    Neg,
    Norm,
    Power,
    Ref,
    Sum,
    Tuple,
    Var,
    copied,
    walk,
)
from .walks import free

STEPS = (0, 1, 2, 2, 3, 3, 4, 5)
LARGEST_STATE = 60
WAYS = ("plain", "sum", "sum", "sum", "map", "map", "map", "states", "states", "parts")


class Loops(Structures):
    """Draws loops, too."""

    weights: ClassVar[dict[str, float]] = Structures.weights

    def loops(self, sight: Sight) -> list[Expr]:
        """Two or three terms with loops."""
        found = [self.loop_term(sight, self.draw.one((4, 6, 8, 10))) for _ in range(self.draw.one((1, 2, 2, 2)))]
        return [e for e in found if e is not None]

    def loop_term(self, sight: Sight, budget: int) -> Expr | None:
        """A number made of a loop: alone, in a sum, in a map, of all its states, of several ones taken apart."""
        match self.draw.one(WAYS):
            case "sum":
                i = self._new_index(sight)
                inner = sight.within([i]) if i is not None else sight
                e = self.loop_number(inner, budget, (i,) if i is not None else ())
                return self._in_sum(i, e, inner) if i is not None and e is not None else e
            case "map":
                return self._in_map(sight, budget) or self.loop_number(sight, budget)
            case "states":
                return self._with_name(sight, budget, "scan")
            case "parts":
                return self._with_name(sight, budget, "iterate")
        return self.loop_number(sight, budget)

    def loop_number(self, sight: Sight, budget: int, needed: tuple[Var, ...] = ()) -> Expr | None:
        """A loop of one state as a number, or an entry of it."""
        e = self.loop(sight, budget, needed, 1)
        return None if e is None else self.entry_of(e, sight)

    def _in_sum(self, i: Var, e: Expr, inner: Sight) -> Expr | None:
        if i not in free(e):
            e = Mul((e, self.leaf(inner, (i,))))
        return self.summed((i,), e)

    def _in_map(self, sight: Sight, budget: int) -> Expr | None:
        """i -> iterate(…) under a name."""
        i = self._new_index(sight)
        if i is None:
            return None
        inner = sight.within([i])
        e = self.loop_number(inner, budget, (i,))
        if e is None:
            return None
        if i not in free(e):
            e = Mul((e, self.leaf(inner, (i,))))
        if self.summed((i,), e) is None:
            return None
        value = Lam((i,), e)
        name = Var(value.kind, "definition")
        return Block((Definition((name,), value),), self.use_of(name, sight.and_(name)))

    def _with_name(self, sight: Sight, budget: int, name: str) -> Expr | None:
        """(a, b) = iterate(…), or h = scan(…), and what is made of it."""
        count = self.draw.one((1, 1, 2, 2, 3)) if name == "scan" else self.draw.one((2, 2, 3))
        e = self.loop(sight, budget, (), count, name)
        if e is None:
            return None
        kinds = e.kind.of if count > 1 else (e.kind,)  # type: ignore[union-attr]
        names = tuple(Var(k, "definition") for k in kinds)
        inner = sight.and_(*names)
        parts: list[Expr] = []
        for v in names:
            for _ in range(self.draw.one((0, 1, 1, 1, 2))):
                parts.append(self._of_states(v, e.time, inner) if name == "scan" else self.use_of(v, inner))
        if not parts:
            parts = [self.use_of(names[0], inner)]
        body = parts[0] if len(parts) == 1 else self.draw.one((Add, Mul))(tuple(parts))
        return Block((Definition(names, e),), body)

    def _of_states(self, h: Var, time: Var, sight: Sight) -> Expr:
        """A sum over time of the states, or of what is between one and the next."""
        assert isinstance(h.kind, Tensor) and isinstance(time.kind, Index), "all states"
        r = time.kind.range
        if not r.named or self.draw.odds(0.3):
            return self.use_of(h, sight)
        t = Var(Index(r))
        others = tuple(Var(Index(slot)) for slot in h.kind.slots[1:])
        rest = tuple(map(bare, others))
        now, later = App(Ref(h), (bare(t), *rest)), App(Ref(h), (Affine(((1, t),), 1), *rest))
        e: Expr = later if self.draw.odds(0.4) else Add((later, Neg(now)))
        e = Power(e, Literal(Fraction(2))) if self.draw.odds(0.6) else e
        if self.draw.odds(0.4):
            e = Mul((e, self.leaf(sight.within((t, *others)), (t,))))
        return Sum((t, *others), e)

    # --- a loop -------------------------------------------------------------------------------------------------------

    def loop(
        self, sight: Sight, budget: int, needed: tuple[Var, ...] = (), count: int = 0, name: str = ""
    ) -> Loop | None:
        """A loop of so many states."""
        time = Var(Index(self._number_of_steps(sight)))
        assert isinstance(time.kind, Index), "time is an index"
        steps = max(1, time.kind.range.count)
        if sight.loop * steps * 4 > LARGEST_LOOP:
            return None
        states = tuple(self._loop_state(sight) for _ in range(count or self.draw.one((1, 1, 2))))
        parts = self.draw.split(budget, 1 + len(states))
        drawn = [self._first_state(s.kind, sight, 2) for s in states]
        starts = tuple(e for e in drawn if e is not None)
        if len(starts) < len(states):
            return None
        inner = replace(sight.and_(*states, *states), indices=(*sight.indices, time), loop=sight.loop * steps)
        inner = replace(inner, depth=inner.depth + 1)
        step = self._loop_step(states, inner, parts, needed)
        stop = self._stop(states, inner) if self.draw.odds(0.3) else None
        return Loop(name or self.draw.one(("iterate", "iterate", "scan")), states, time, starts, step, stop)

    def _number_of_steps(self, sight: Sight) -> Range:
        """How far time goes: a literal, an Int, a size, or a size less a number."""
        named = [r for r in sight.ranges() if r.named and r.sort == "plain"]
        ways = [
            "literal",
            *(["Int", "Int"] if sight.counts else []),
            *(["size", "size", "less", "less"] if named else []),
        ]
        match self.draw.one(ways):
            case "Int":
                return self.draw.one(sight.counts).kind.range  # type: ignore[union-attr]
            case "size":
                return self.draw.one(named)
            case "less":
                r = self.draw.one(named)
                return longer(r, -1 if r.count < 3 or self.draw.odds(0.8) else -2)
        steps = self.draw.one(STEPS)
        return Range(f"steps{steps}", "plain", (steps,))

    def _loop_state(self, sight: Sight) -> Var:
        c = any(over_complex(v.kind) for v in (*sight.numbers, *sight.tensors)) and self.draw.odds(0.4)
        ranges = [r for r in sight.ranges() if r.count * sight.loop <= LARGEST_STATE]
        if not ranges or self.draw.odds(0.5):
            return Var(Number(c))
        slots = [self.draw.one(ranges)]
        if self.draw.odds(0.2):
            other = self.draw.one(ranges)
            slots += [other] if other.count * slots[0].count * sight.loop <= LARGEST_STATE else []
        return Var(Tensor(tuple(slots), c))

    def _first_state(self, kind: Type, sight: Sight, budget: int) -> Expr | None:
        """A first state; of a complex state it may be real, because the step is complex."""
        c = over_complex(kind)
        if not isinstance(kind, Tensor):
            return self.number(sight, budget) if c else self.real(sight, budget)
        indices = [Var(Index(r)) for r in kind.slots]
        if self.draw.odds(0.4) and (found := self.map_over(indices, sight.within(indices), budget, c)) is not None:
            return found
        ready = [t for t in sight.tensors if t.kind == Tensor(kind.slots, c)]
        if ready and self.draw.odds(0.6):
            return Ref(self.draw.one(ready))
        plain = Lam(tuple(indices), Literal(Fraction(self.draw.one((0, 0, 1)))))
        if all(r.named or r.declared for r in kind.slots):
            return plain
        return self.map_over(indices, sight.within(indices), budget, c)

    def _loop_step(self, states: tuple[Var, ...], sight: Sight, parts: list[int], needed: tuple[Var, ...]) -> Expr:
        """The next states, with a definition before them now and then."""
        definition: Definition | None = None
        if self.draw.odds(0.2):
            e = self._special(states[0], sight, parts[0]) or self.number(sight, parts[0])
            definition = Definition((Var(e.kind, "definition"),), e)
            sight = sight.and_(*definition.names)
        items = tuple(self._next(s, sight, b, needed) for s, b in zip(states, parts[1:], strict=True))
        step = items[0] if len(items) == 1 else Tuple(items)
        return step if definition is None else Block((definition,), step)

    def _next(self, s: Var, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr:
        c = over_complex(s.kind)
        if not isinstance(s.kind, Tensor):
            return self._next_number(Ref(s), c, s, sight, budget, needed)
        indices = tuple(Var(Index(r)) for r in s.kind.slots)
        inner = sight.within(indices)
        entry = App(Ref(s), tuple(map(bare, indices)))
        return Lam(indices, self._next_number(entry, c, s, inner, budget, (*indices, *needed)))

    def _next_number(self, old: Expr, c: bool, s: Var, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr:
        """What follows a number, or an entry; complex whatever the state is, if it is to be so."""
        special = self._special(s, sight, budget) if self.draw.odds(0.35) else None
        e = special or (self.number if c else self.real)(sight, max(2, budget - 1), needed)
        if special is not None and is_complex(e) and not c:
            e = Call(self.draw.one(("real", "imag", "abs2")), e)
        if s not in free(e) and self.draw.odds(0.9):
            scaled = Mul((Literal(Fraction(self.draw.one((1, 1, 2)), 2)), copied(old)))
            e = Add((scaled, e)) if self.draw.odds(0.7) else Mul((copied(old), e))
        if self.draw.odds(0.65):
            e = self._tamed(e)
        if self.draw.odds(0.15):
            e = self._with_indices(e, needed, sight)
        if c:
            e = Add((e, Mul((Constant("im"), self.leaf(sight.real(), needed)))))
        return e

    def _tamed(self, e: Expr) -> Expr:
        """A number that does not grow from step to step."""
        one = Literal(Fraction(1))
        large = sum(1 for _ in walk(e)) > 8
        if large or (not is_complex(e) and self.draw.odds(0.6)):
            e = Call("real", e) if is_complex(e) else e
            return Call(self.draw.one(("sin", "tanh", "atan", "sigmoid")), e)
        return Div(e, Add((one, Call("abs2", copied(e)))))

    def _with_indices(self, e: Expr, needed: tuple[Var, ...], sight: Sight) -> Expr:
        missing = tuple(i for i in needed if i not in free(e))
        return Mul((e, self.leaf(sight.real(), missing))) if missing else e

    def _special(self, s: Var, sight: Sight, budget: int) -> Expr | None:
        """A loop in the step, or a derivative in it."""
        if sight.depth > 4:
            return None
        if self.draw.odds(0.5):
            return self.loop_number(sight, min(budget, 4))
        return self._descent(s, sight, budget) if self.draw.odds(0.7) else self._nested(sight, max(6, budget), ())

    def _descent(self, s: Var, sight: Sight, budget: int) -> Expr | None:
        """The derivative of a function at the state."""
        directions = s.kind.count if isinstance(s.kind, Tensor) else 1
        if sight.loop * directions > LARGEST_STATE:
            return None
        p = Var(s.kind)
        inner = replace(sight.and_(p, p), loop=sight.loop * directions)
        body = self.real(inner, min(budget, 6))
        if p not in free(body):
            indices = tuple(Var(Index(r)) for r in s.kind.slots) if isinstance(s.kind, Tensor) else ()
            entry: Expr = App(Ref(p), tuple(map(bare, indices))) if indices else Ref(p)
            square = Call("abs2", entry)
            body = Add((body, Sum(indices, square) if indices else square))
        f = Derived("grad", Lam((p,), body))
        assert isinstance(f.kind, Function), "a function"
        return self.entry_of(App(f, (Ref(s),)), sight)

    def _stop(self, states: tuple[Var, ...], sight: Sight) -> Expr:
        """A condition on the states: their size, or anything real."""
        s = self.draw.one(states)
        number = isinstance(s.kind, Number)
        size: Expr = Call("abs", Ref(s)) if number else Norm(Ref(s))
        if number and not over_complex(s.kind) and self.draw.odds(0.4):
            size = Ref(s)
        bound = Literal(Fraction(self.draw.one((1, 1, 2, 3)), self.draw.one((1, 2, 5))))
        without_time = replace(sight, indices=sight.indices[:-1])
        other = bound if self.draw.odds(0.8) else self.real(without_time, 2)
        sides = (size, other) if self.draw.odds(0.7) else (other, size)
        return Compared(sides, (self.draw.one(("<", "<=")),))
