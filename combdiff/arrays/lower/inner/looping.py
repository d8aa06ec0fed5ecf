"""Lowers loops over stored states: the step becomes a plan of its own, over the states and over what depends on time.

    s(t + 1, i) = tanh(Σ_j W(i, j) s(t, j) + Σ_k U(i, k) x(t, k))      a step takes s, the row t of U x, and W

What depends on the number of the step, and on no state, is computed for all steps at once, before the loop; where it
has more indices than what it is made of, a step computes it, too. A step knows its number as a number only: conditions
on it are arrays of 0 and 1. It is given the rows f(t, i) of arrays of integers, and reads s(t, f(t, i)) by them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import prod

from combdiff.arrays import ops
from combdiff.arrays.lower.indexing import affine, position
from combdiff.arrays.lower.inner.contracting import distributed, read_twice
from combdiff.arrays.lower.inner.solving import Solving
from combdiff.arrays.lower.signature import Result, slots
from combdiff.arrays.plan import Recurrence, Scan, Step
from combdiff.calculus.definitions.naming import is_worth_a_name
from combdiff.calculus.loops.halting import halting
from combdiff.calculus.loops.joining import definitions_once, with_joined_loops
from combdiff.records import dataclass
from combdiff.terms.conditions.guards import Condition, Guard, condition_of, is_finite
from combdiff.terms.laws.inclusion import widened
from combdiff.terms.schema import reshaped
from combdiff.terms.terms import (
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Const,
    Delta,
    Indicator,
    Lam,
    Let,
    Loop,
    Mul,
    Pow,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    alpha_equal,
    bound_by,
    children,
    compares_indices,
    factors_of,
    fresh,
    indicator,
    let,
    mul,
    rebuild,
    refreshed,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import REAL, Domain, Index, Map, Number, Type, is_complex


class Looping(Solving):
    """The part of a lowering that makes loops; `defined` are the definitions of the program."""

    defined: Sequence[tuple[Var, Term]]
    sizes: dict[Domain, int]

    def looped(self, loop: Loop) -> Step:
        """The state that a loop asks for, one of the results of the loop of its recurrence."""
        form = self.loop_keys.of(loop)
        made = self.recurrences.get(form)
        if made is None:
            loops = [e for _, e in self.defined if isinstance(e, Loop) and self.loop_keys.of(e) == form]
            items = sorted({e.item for e in [*loops, loop] if e.kind == "states"})
            made = self.recurrences[form] = self._scanned(loop, items)
        step, stored = made
        number = loop.item if loop.kind == "last" else len(loop.states) + stored.index(loop.item)
        return self.arrays.builder.step(ops.Item(number), (step,), slots(loop.type), is_complex(loop.type))

    def _scanned(self, loop: Loop, stored: Sequence[int]) -> tuple[Step, Sequence[int]]:
        """The loop, and the states that it stores, in order."""
        step = refreshed(loop.step)
        assert isinstance(step, Lam) and isinstance(loop.start, Tuple), "a step is a map"
        *states, time = step.params
        ahead = Ahead(time, {*states}, self.sizes, read_twice(step.body))
        body = ahead.step(step.body)
        bindings = body.bindings if isinstance(body, Let) else ()
        items = body.body if isinstance(body, Let) else body
        assert isinstance(items, Tuple), "a step makes a tuple"
        following = [widened(e, s.kind) for e, s in zip(items.items, states, strict=True)]
        whole = let(bindings, Tuple((*following, *(states[n] for n in stored))))
        captured = sorted((v for v in whole.free if v in self.known), key=lambda v: v.uid)
        captured = [v for v in captured if v not in states]
        functions = sorted(
            (v for v in whole.free if v not in self.known and isinstance(v.kind, Map) and not v.kind.is_array),
            key=lambda v: v.uid,
        )
        own = self._called([*states, *ahead.found, *ahead.fixed, *captured])
        plan = self.lower(Lam((*own.values(), *functions), substitute(whole, own)), self.unknowns)
        plan = replace(plan, tupled=True)
        body_plan = Recurrence(f"step_{states[0].name}", plan, len(states), len(ahead.found))
        operands = [self.array(widened(e, s.kind)) for e, s in zip(loop.start.items, states, strict=True)]
        for v, e in (*ahead.found.items(), *ahead.fixed.items()):
            operands.append(self._rows(e) if isinstance(v.kind, Map) and v.kind.is_integers else self.array(e))
        operands += [self.known[v] for v in captured]
        assert isinstance(time.kind, Index) and time.kind.domain is not None, "a loop runs over a domain"
        op = Scan(body_plan, time.kind.domain, loop.backward, halting(step))
        return self.arrays.builder.step(op, tuple(operands), ()), stored

    def _rows(self, t: Term) -> Step:
        """An array of integers whose axes are the slots of a map to indices."""
        assert isinstance(t, Lam), "a map of the number of the step"
        return self.arrays.arranged(position(self.arrays, affine(t.body), None), t.params)

    def _called(self, variables: Sequence[Var]) -> dict[Var, Var]:
        """The variables of a step, with names that no two have."""
        own: dict[Var, Var] = {}
        for v in variables:
            name = self.argument_names.within(v.name, {w.name for w in own.values()})
            own[v] = fresh(name, _plain(v.kind))
        return own


def with_definitions_once(result: Result) -> Result:
    """Equal definitions are one, so that what is made of them is one, too: those of a value and of its gradient.

    Loops that go through a common state are one.
    """
    bindings, same = definitions_once(with_joined_loops(result.bindings))
    outputs = tuple(substitute(t, same) for t in result.outputs)
    return replace(result, bindings=tuple(bindings), outputs=outputs)


def _plain(kind: Type) -> Type:
    """The type of an array of which nothing is declared."""
    return Map(kind.params, kind.result) if isinstance(kind, Map) else kind


_MORE = 4  # times: by which what is contracted ahead may have more values than what it is made of


@dataclass(slots=True)
class Ahead:
    """What depends on the number of a step, and on no state: it is computed for all steps before the loop.

    `found` has a variable for each of it, and the map from numbers of steps to it, `fixed` for what is the same in all
    steps; `moving` are the states, and what is made of them. The `sizes` say what takes much memory, and
    sums that are factors more than once stay `whole`.
    """

    time: Var
    moving: set[Var]
    sizes: Mapping[Domain, int]
    whole: Collection[Hashable]
    found: dict[Var, Term] = field(default_factory=dict)
    fixed: dict[Var, Term] = field(default_factory=dict)
    guards: Guard = ()

    def step(self, body: Term) -> Term:
        """What a step does, of the variables in `found` in the place of its number."""
        if not isinstance(body, Let):
            return self(body)
        bindings: list[tuple[Var, Term]] = []
        known: dict[Var, Term] = {}
        for var, value in body.bindings:
            value = substitute(value, known)
            if value.free.isdisjoint(self.moving) and not isinstance(value, Loop):
                # it stands where it is used, so that what is made of it is computed ahead, too
                known[var] = value
            else:
                self.moving.add(var)
                bindings.append((var, self(value)))
        return let(bindings, self(substitute(body.body, known)))

    def __call__(self, t: Term) -> Term:
        if isinstance(t, Loop):
            return Loop(t.kind, t.item, t.backward, self._inner(t), self(t.start))
        if isinstance(t.type, Number | Index) and t.free.isdisjoint(self.moving) and self._is_ahead(t):
            return self._named(t)
        outer = self.guards
        self.guards = (*outer, *(condition_of(u) for u in factors_of(t) if isinstance(u, Delta | Indicator)))
        found = self._within(t)
        self.guards = outer
        return found

    def _within(self, t: Term) -> Term:
        """`t` with what is computed ahead in it."""
        match t:
            case Lam(params, inner):
                return Lam(params, self(inner))
            case Add(parts) | Mul(parts) if not isinstance(t.type, Index):
                make = add if isinstance(t, Add) else mul
                for still in self._together(parts):
                    if self.time in make(*still).free and len(still) > 1 and self._is_ahead(make(*still)):
                        left = [u for u in parts if u not in still]
                        return make(self._named(make(*still)), *([self(make(*left))] if left else []))
                return make(*map(self, parts))
            case Delta(left, right, inner) if self._reads_rows(left, right):
                return Delta(self._with_rows(left), self._with_rows(right), self(inner))
            case Delta(left, right, inner) | Indicator(left, right, inner) if (
                self.time in left.free | right.free and compares_indices(left, right)
            ):
                if (left.free | right.free).isdisjoint(self.moving):
                    return indicator(ONE, self(condition_of(t).over(ONE)), self(inner))
                # an index that a state decides, as of its largest entry, beside the number of the step as a number
                sides = self(left), self(right)
                met = indicator(*sides, self(inner))
                return met if isinstance(t, Indicator) else indicator(*sides[::-1], met)
            case App(f, args) if any(self.time in a.free for a in args):
                return self._entry(self(f), args)
            case Sum(indices, body) if (products := distributed(indices, body, self.time, self.whole)) is not None:
                return self(products)
            case Var() | Const():
                return t
            case _:
                return _kept(t, [self(c) for c in children(t)])

    def _together(self, parts: Sequence[Term]) -> Iterator[list[Term]]:
        """Terms, or factors, that may be computed ahead as one: all that depend on no state, or those of some indices.

        Of h(i) a(t, i) b(t, i) W(i, j) these are a(t, i) b(t, i), for W would give them an index more.
        """
        still = [u for u in parts if u.free.isdisjoint(self.moving)]
        yield still
        for own in dict.fromkeys(_own(u, self.time) for u in still if self.time in u.free):
            yield [u for u in still if set(_own(u, self.time)) <= set(own)]

    def _inner(self, loop: Loop) -> Term:
        """The step of a loop in this one, which is given what depends on the number of this step."""
        assert isinstance(loop.step, Lam), "a step is a map"
        self.moving.update(loop.step.params[:-1])
        step = self.step(loop.step.body)
        return Lam(loop.step.params, step)

    def _entry(self, f: Term, args: tuple[Term, ...]) -> Term:
        """An entry at a place that the number of the step decides: of a row read ahead, or Σ_i δ(i, t, f(i))."""
        assert isinstance(f.type, Map), "only maps are applied"
        if self._reads_rows(*args):
            return App(f, tuple(map(self._with_rows, args)))
        if f.free.isdisjoint(self.moving) and all(a.free == {self.time} for a in args if self.time in a.free):
            others = [None if self.time in a.free else fresh("i", k) for a, k in zip(args, f.type.params, strict=True)]
            row = App(f, tuple(v or a for v, a in zip(others, args, strict=True)))
            # numbers that a step computes do not keep a place in range
            named = self._name(self._guarded(row, [g for g in self.guards if g.over(ONE).free.isdisjoint(self.moving)]))
            assert isinstance(named, App | Var), "an entry of what is read ahead"
            places = {v: self(a) for v, a in zip(others, args, strict=True) if v is not None}
            return substitute(named, places)
        own = [fresh("i", kind) if self.time in a.free else None for a, kind in zip(args, f.type.params, strict=True)]
        entry: Term = App(f, tuple(v or a for v, a in zip(own, args, strict=True)))
        for v, a in zip(own, args, strict=True):
            if v is not None:
                entry = indicator(ONE, self(Delta(v, a, ONE)), entry)
        return total([v for v in own if v is not None], entry)

    def _reads_rows(self, *places: Term) -> bool:
        """Whether indices depend on the number of the step through rows of arrays of integers only, c(t, i)."""
        moves = any(self.time in a.free for a in places)
        return moves and all(self.time not in _outermost(a, self._is_row, lambda _: ZERO).free for a in places)

    def _with_rows(self, place: Term) -> Term:
        """An index expression with the rows that this step reads."""
        return _outermost(place, self._is_row, self._name)

    def _is_row(self, t: Term) -> bool:
        """Whether it is an entry of a row of integers, which the number of the step tells: c(t, i)."""
        match t:
            case App(Var(kind=Map() as kind), args) if kind.is_integers and self.time in args:
                return t.free.isdisjoint(self.moving) and bool(_own(t, self.time))
            case _:
                return False

    def _is_ahead(self, t: Term) -> bool:
        """Whether it is work, takes no more memory than what it is made of, and knows the conditions around it.

        A contraction may take some times as much: for all steps at once it is one product of matrices. What is the same
        in all steps takes as much in each of them; only conditions are slices there, and would be masks here.
        """
        if self.time in t.free:
            if isinstance(t, Delta | Indicator) and t.body == ONE:
                return True
            parts = list(_read_at(t, self.time))
        elif not (is_worth_a_name(t) or _is_computed(t)):
            return False
        else:
            parts = [*subterms(t, App)]
        guarded = self._guarded(t, self.guards)
        if not guarded.free.isdisjoint(self.moving):
            return False
        same = self.time not in t.free and not any(subterms(guarded, Delta)) and not any(subterms(guarded, Indicator))
        return same or self._fits(guarded, parts)

    def _fits(self, t: Term, parts: Sequence[Term]) -> bool:
        """Whether a value has no more indices than what it is made of, or not many more values if it is summed."""
        if len(_own(t, self.time)) <= max((len(_own(u, self.time)) for u in parts), default=0):
            return True
        contracts = any(u.counted is None for u in subterms(t, Sum))
        return contracts and self._entries(t) <= _MORE * max(map(self._entries, parts), default=0)

    def _entries(self, t: Term) -> int:
        """How many values a term has in a step."""
        kinds = (v.kind for v in _own(t, self.time))
        return prod(d.extent(self.sizes) for k in kinds if isinstance(k, Index) and (d := k.domain) is not None)

    def _guarded(self, t: Term, guards: Sequence[Condition]) -> Term:
        """`t` under conditions around it, if it may be infinite where they do not hold."""
        if not is_finite(t):
            for guard in dict.fromkeys(reversed(guards)):
                t = guard.over(t)
        return t

    def _named(self, t: Term) -> Term:
        return self._name(self._guarded(t, self.guards))

    def _name(self, t: Term) -> Term:
        own = _own(t, self.time)
        inside = tuple(fresh(v.name, v.kind) for v in own)
        number = fresh(self.time.name, self.time.kind)
        first, kept = ((number,), self.found) if self.time in t.free else ((), self.fixed)
        value: Term = substitute(t, {self.time: number, **dict(zip(own, inside, strict=True))})
        value = Lam((*first, *inside), value) if first or inside else value
        kind = REAL if isinstance(t.type, Index) and not self._is_row(t) else t.type
        alike = (v for v, e in kept.items() if alpha_equal(e, value) and _kind_of_entries(v) == kind)
        known = next(alike, None)
        if known is None:
            known = fresh(_name_of(t, self.time), Map(tuple(v.kind for v in own), kind) if own else kind)
            kept[known] = value
        return App(known, own) if own else known


def _kind_of_entries(v: Var) -> Type:
    return v.kind.result if isinstance(v.kind, Map) else v.kind


def _outermost(t: Term, which: Callable[[Term], bool], made: Callable[[Term], Term]) -> Term:
    """`t` with other terms for some of its parts: of c(t, c(t, i)) for the whole entry, which tells what is in it."""
    if which(t):
        return made(t)
    return rebuild(t, [_outermost(c, which, made) for c in children(t)]) if children(t) else t


def _own(t: Term, time: Var) -> tuple[Var, ...]:
    """The indices, besides the number of the step, that a term depends on."""
    return tuple(sorted((v for v in t.free if isinstance(v.kind, Index) and v is not time), key=lambda v: v.uid))


def _is_computed(t: Term) -> bool:
    """Whether an array is more than a product: what is quick for a number is not for many of them."""
    arrays = (u for u in subterms(t) if isinstance(u, Add | Call | Pow) and isinstance(u.type, Number))
    return any(isinstance(v.kind, Index) for u in arrays for v in u.free)


def _read_at(t: Term, time: Var) -> Iterator[Term]:
    """The entries that are read where the number of the step says."""
    for u in subterms(t):
        if isinstance(u, App) and any(time in a.free for a in u.args):
            yield u


def _name_of(t: Term, time: Var) -> str:
    """What a value at a step is called: x of x(t, i)."""
    match t:
        case App(Var(name), _):
            return f"{name}_{time.name}"
        case _:
            return time.name


def _kept(t: Term, parts: Sequence[Term]) -> Term:
    """`t` with other children, its own binders untouched."""
    return reshaped(t, parts, bound_by(t)) if bound_by(t) else rebuild(t, parts)
