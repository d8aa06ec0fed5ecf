"""The adjoint of a loop, a loop that runs backwards over the states that the loop went through.

    s(t + 1) = f(s(t), t)           a(t) = 𝒫(s ↦ f(s, t))(s(t), a(t + 1)) + k(t)

Here k(t) is the cotangent of s(t) from outside of the loop, and a(T) = k(T). What the step captures has the cotangent
Σ_t of that of x ↦ f(s(t), t), for a(t + 1), and the first state has a(0). Both are terms as all others, so that a
second derivative needs no rule of its own. The values of a step are computed for all times at once, outside of loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from combdiff.calculus.floating import Binding, over
from combdiff.calculus.loops.recurrences import LoopBody, entry_at, entry_of
from combdiff.calculus.primitives import zero_of_type
from combdiff.calculus.pushforward import sum_of
from combdiff.records import dataclass
from combdiff.terms.terms import (
    Lam,
    Let,
    Loop,
    Term,
    Tuple,
    Var,
    apply,
    fresh,
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
    start = Tuple(
        tuple(
            _as_named(*given["last", n]) if ("last", n) in given else zero_of_type(s.kind)
            for n, s in enumerate(step.states)
        )
    )
    total = [
        sum_of([m, entry_at(given["states", n][0], time, m.type)], m.type) if ("states", n) in given else m
        for n, m in enumerate(moved)
    ]
    used = moving([n for _, n in given], pulled.bars, total, backwards)
    adjoint = _without(pulled.bars, used, Lam((*pulled.bars, time), let(backwards, Tuple(tuple(total)))))
    start = Tuple(tuple(start.items[n] for n in used))
    after, first = (_loops(kind, loop, adjoint, start, [pulled.bars[n] for n in used]) for kind in ("states", "last"))
    return Adjoint(
        [*found, *values, *given.values(), *after, *first],
        values,
        [_over_time(items[n], time) for n in used],
        [v for v, _ in after],
        [items_of(loop.start)[n] for n in used],
        [v for v, _ in first],
    )


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


def _without(states: Sequence[Var], used: Sequence[int], step: Lam) -> Lam:
    """A step without the states that are always 0."""
    zero = {s: zero_of_type(s.kind) for n, s in enumerate(states) if n not in used}
    if not zero:
        return _copied(step)
    body = substitute(step.body, zero)
    bindings, core = (body.bindings, body.body) if isinstance(body, Let) else ((), body)
    assert isinstance(core, Tuple), "a step makes a tuple"
    kept = tuple(p for p in step.params if p not in zero)
    return _copied(Lam(kept, let(bindings, Tuple(tuple(core.items[n] for n in used)))))


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
