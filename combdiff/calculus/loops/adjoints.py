"""The adjoint of a loop, a loop that runs backwards over the states that the loop went through.

    s(t + 1) = f(s(t), t)           a(t) = 𝒫(s ↦ f(s, t))(s(t), a(t + 1)) + k(t)

Here k(t) is the cotangent of s(t) from outside of the loop, and a(T) = k(T). What the step captures has the cotangent
Σ_t of that of x ↦ f(s(t), t), for a(t + 1), and the first state has a(0). Both are terms as all others, so that a
second derivative needs no rule of its own. A state that only adds up, s(t + 1) = s(t) + g(t), has one cotangent at all
times, which is no state. The values of a step are computed for all times at once, outside of loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from combdiff.calculus.definitions.floating import Binding, over
from combdiff.calculus.loops.recurrences import LoopBody, entry_at, entry_of
from combdiff.calculus.primitives import zero_of_type
from combdiff.calculus.pushforward import sum_of
from combdiff.canon.canonical import merge_like_terms
from combdiff.records import dataclass
from combdiff.terms.terms import (
    Delta,
    Indicator,
    Lam,
    Let,
    Loop,
    Sum,
    Term,
    Tuple,
    Var,
    apply,
    fresh,
    holds,
    items_of,
    let,
    refreshed,
    same_recurrence,
    substitute,
)


@dataclass(frozen=True, slots=True)
class Pulled:
    """The pullback of a step by its states: what it `moved` of the cotangents `bars` of its `items`.

    `inside` are the values of the step, `backwards` their cotangents.
    """

    step: LoopBody
    inside: Sequence[Binding]
    items: Sequence[Term]
    bars: Sequence[Var]
    backwards: Sequence[Binding]
    moved: Sequence[Term]


@dataclass(frozen=True, slots=True)
class Adjoint:
    """The adjoint of a recurrence: what it needs, and what is left to differentiate.

    `bindings` are the states of the loop, the values of its step at all times, and the adjoint loops. Below them the
    cotangents of `items`, maps of time to the next states made of the `values`, are `cotangents`; those of the first
    states, `starts`, are `firsts`.
    """

    bindings: Sequence[Binding]
    values: Sequence[Binding]
    items: Sequence[Term]
    cotangents: Sequence[Term]
    starts: Sequence[Term]
    firsts: Sequence[Term]


def adjoint_of(
    loop: Loop, pulled: Pulled, collected: Mapping[tuple[str, int], Term], known: Mapping[Var, Term]
) -> Adjoint:
    """The adjoint of the recurrence of `loop`, for the cotangents that were `collected` of its loops.

    Of the values that are `known` already some may be the states that it goes through.
    """
    step, time, count = pulled.step, pulled.step.time, len(pulled.bars)
    before, found = _states_before(loop, step, known)
    points = {s: entry_at(v, time, s.kind) for s, v in zip(step.states, before, strict=True)}
    at = [(v, substitute(e, points)) for v, e in pulled.inside]
    parts = (*pulled.items, *pulled.moved, *(e for _, e in pulled.backwards))
    values, whole = over((time,), at, substitute(Tuple(parts), points))
    assert isinstance(whole, Tuple), "a tuple stays one"
    items, moved, rest = whole.items[:count], whole.items[count : 2 * count], whole.items[2 * count :]
    backwards = [(v, e) for (v, _), e in zip(pulled.backwards, rest, strict=True)]
    given = {key: (fresh(f"{step.states[key[1]].name}_bar", k.type), k) for key, k in collected.items()}
    start = _last_cotangents(step.states, given)
    total = [
        sum_of([m, entry_at(given["states", n][0], time, m.type)], m.type) if ("states", n) in given else m
        for n, m in enumerate(moved)
    ]
    used = moving([n for _, n in given], pulled.bars, total, backwards)
    fixed = {s: zero_of_type(s.kind) for n, s in enumerate(pulled.bars) if n not in used}
    fixed |= {pulled.bars[n]: start.items[n] for n in used if _stays(total[n], pulled.bars[n])}
    left = [n for n, s in enumerate(pulled.bars) if s not in fixed]
    adjoint = _without(fixed, left, Lam((*pulled.bars, time), let(backwards, Tuple(tuple(total)))))
    begun, names = Tuple(tuple(start.items[n] for n in left)), [pulled.bars[n] for n in left]
    after, first = (_loops(kind, loop, adjoint, begun, names) for kind in ("states", "last"))
    later = {n: _over_time(start.items[n], time) for n in used} | dict(zip(left, (v for v, _ in after), strict=True))
    earliest = dict(enumerate(start.items)) | dict(zip(left, (v for v, _ in first), strict=True))
    return Adjoint(
        [*found, *values, *given.values(), *after, *first],
        values,
        [_over_time(items[n], time) for n in used],
        [later[n] for n in used],
        [items_of(loop.start)[n] for n in used],
        [earliest[n] for n in used],
    )


def _last_cotangents(states: Sequence[Var], given: Mapping[tuple[str, int], Binding]) -> Tuple:
    """The cotangents of the states after the last step, with which the adjoint begins."""
    named = [given.get(("last", n)) for n in range(len(states))]
    return Tuple(
        tuple(zero_of_type(s.kind) if of is None else _as_named(*of) for s, of in zip(states, named, strict=True))
    )


def _stays(item: Term, state: Var) -> bool:
    """Whether the next state is the state itself: as raw pullbacks have it, i ↦ Σ_j δ(j, i, s(j))."""
    if holds(item, Indicator):  # a loop that stops early: it is kept where the step is taken and where it is not
        item = merge_like_terms(item)
    if not isinstance(item, Lam):
        return item == state
    found: dict[Var, Term] = {}
    indices, body = (item.body.indices, item.body.body) if isinstance(item.body, Sum) else ((), item.body)
    while isinstance(body, Delta) and body.left in indices and body.left.type == body.right.type:
        assert isinstance(body.left, Var), "an index of the sum"
        found[body.left], body = body.right, body.body
    return found.keys() == {*indices} and substitute(body, found) == apply(state, *item.params)


def moving(
    begun: Sequence[int], states: Sequence[Var], items: Sequence[Term], bindings: Sequence[Binding]
) -> list[int]:
    """The states of a linear loop that are not 0 at all times: those `begun`, and what is made of such states."""
    made = [set(e.free) for e in items]
    for var, value in reversed(bindings):
        for free in made:
            if var in free:
                free |= value.free
    found = {*begun}
    while more := {n for n, free in enumerate(made) if any(states[m] in free for m in found)} - found:
        found |= more
    return sorted(found)


def _without(fixed: Mapping[Var, Term], left: Sequence[int], step: Lam) -> Lam:
    """A step without the states that have a `fixed` value at all times; `left` are the others."""
    if not fixed:
        return _copied(step)
    body = substitute(step.body, fixed)
    bindings, core = (body.bindings, body.body) if isinstance(body, Let) else ((), body)
    assert isinstance(core, Tuple), "a step makes a tuple"
    kept = tuple(p for p in step.params if p not in fixed)
    return _copied(Lam(kept, let(bindings, Tuple(tuple(core.items[n] for n in left)))))


def _copied(step: Lam) -> Lam:
    copied = refreshed(step)
    assert isinstance(copied, Lam), "a copy is a map, too"
    return copied


def _loops(kind: str, loop: Loop, step: Term, start: Term, bars: Sequence[Var]) -> list[Binding]:
    """The loops against the direction of another one, an item each."""
    made = [Loop(kind, n, not loop.backward, step, start) for n in range(len(bars))]
    return [(fresh(bar.name, e.type), e) for bar, e in zip(bars, made, strict=True)]


def _states_before(loop: Loop, step: LoopBody, known: Mapping[Var, Term]) -> tuple[list[Var], list[Binding]]:
    """The states before each step, and the definitions of those that have none yet."""
    loops = {v: e for v, e in known.items() if isinstance(e, Loop) and e.kind == "states"}
    named = {e.item: v for v, e in loops.items() if same_recurrence(e, loop)}
    found: list[Binding] = []
    for n, s in enumerate(step.states):
        if n not in named:
            states = Loop("states", n, loop.backward, loop.step, loop.start)
            named[n] = fresh(s.name, states.type)
            found.append((named[n], states))
    return [named[n] for n in range(len(step.states))], found


def _over_time(item: Term, time: Var) -> Lam:
    """A next state as a map of time."""
    own, entry = entry_of(item)
    return _copied(Lam((time, *own), entry))


def _as_named(var: Var, value: Term) -> Term:
    """A tensor by its entries, the indices called as in its definition."""
    if not isinstance(value, Lam):
        return var
    own = tuple(fresh(p.name, p.kind) for p in value.params)
    return Lam(own, apply(var, *own))
