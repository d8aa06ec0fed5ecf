"""What loops mean: one step after another, each state on whole arrays like every other value.

A loop that stops early goes on where it does: where copies, or values of the indices around it, have stopped, they keep
their states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import tangents as T
from .kinds import Index, Items, Number, Range, Tensor, Type, over_complex
from .meaning import Held, Points, Scope, evaluate, held, lifted, values_of
from .syntax import Loop, Var, copied


def looped(e: Loop, scope: Scope) -> Any:
    """The states after the last step, or those at all times."""
    kinds = [s.kind for s in e.states]
    states = [_state(evaluate(start, scope), k, scope) for start, k in zip(e.starts, kinds, strict=True)]
    found = [states]
    going: Any = True
    for point in _points(e.time, scope):
        inner = scope.with_((*e.states, e.time), (*states, point))
        if e.stop is not None:
            from .truth import truth

            holds, known = truth(e.stop, inner)
            # what has stopped is not asked again
            unsure = going & ~known
            going = going & holds
            new = [_chosen(going, a, b, scope) for a, b in zip(_stepped(e, inner), states, strict=True)]
            states = [_unless(unsure, s, scope) for s in new]
        else:
            states = _stepped(e, inner)
        found.append(states)
    if e.name == "iterate":
        results = [_result(s) for s in states]
    else:
        count = len(found)
        results = [_stacked([row[n] for row in found], Range("", "plain", (count,)), scope) for n in range(len(kinds))]
        results = [_of_range(r, e, n) for n, r in enumerate(results)]
    return results[0] if len(results) == 1 else tuple(results)


def _points(time: Var, scope: Scope) -> list[Points]:
    """The values of time, each without an axis of its own."""
    assert isinstance(time.kind, Index), "time is an index"
    r = time.kind.range
    return [Points(r, (np.full((1,) * (1 + scope.depth), int(t)),), scope.depth) for (t,) in values_of(r)]


def _stepped(e: Loop, scope: Scope) -> list[Held]:
    value = evaluate(e.step, scope)
    values = value if isinstance(e.step.kind, Items) else (value,)
    return [_state(v, s.kind, scope) for v, s in zip(values, e.states, strict=True)]


def _state(value: Any, kind: Type, scope: Scope) -> Held:
    found = held(value, kind, scope.depth)
    assert isinstance(found, Held), "states are numbers and tensors"
    return found


def _chosen(going: Any, new: Held, old: Held, scope: Scope) -> Held:
    """The next state where the loop goes on, else that before."""
    mask = _over_slots(going, len(new.slots))
    a, b = _deep(new, scope), _deep(old, scope)
    return Held(T.add(T.where(mask, a), T.where(~mask, b)), scope.depth, new.slots)


def _unless(unsure: Any, state: Held, scope: Scope) -> Held:
    """No number where it is not known whether the loop goes on."""
    return Held(T.where(~_over_slots(unsure, len(state.slots)), state.value, float("nan")), scope.depth, state.slots)


def _over_slots(mask: Any, slots: int) -> Any:
    return np.reshape(mask, (*np.shape(mask), *(1,) * slots)) if np.ndim(mask) else np.asarray(mask)


def _deep(state: Held, scope: Scope) -> T.Value:
    """A state with an axis for each index of the scope, before those of its slots."""
    if not state.slots:
        return lifted(state, scope.depth)
    more = (1,) * (scope.depth - state.depth)
    at = 1 + state.depth
    return T.each(state.value, lambda x: x.reshape(x.shape[:at] + more + x.shape[at:]))


def _result(state: Held) -> Any:
    return state if state.slots else state.value


def _stacked(states: Sequence[Held], time: Range, scope: Scope) -> Held:
    """States one after another along a first slot: each times its own unit vector."""
    slots = len(states[0].slots)
    total: Any = None
    for n, s in enumerate(states):
        mask = np.zeros(len(states), bool)
        mask[n] = True
        mask = mask.reshape(len(states), *(1,) * slots)

        def placed(x: Any) -> Any:
            if not x.ndim:
                x = x.reshape((1,) * (1 + scope.depth))
            at = x.ndim - slots
            return x.reshape(*x.shape[:at], 1, *x.shape[at:])

        part = T.where(mask, T.each(_deep(s, scope), placed))
        total = part if total is None else T.add(total, part)
    counts = (len(states), *(r.count for r in states[0].slots))

    def full(x: Any) -> Any:
        return T.xp_of(x).broadcast_to(x, x.shape[: 1 + scope.depth] + counts)

    return Held(T.each(total, full), scope.depth, (time, *states[0].slots))


def _of_range(found: Held, e: Loop, n: int) -> Held:
    kind = e.kind.of[n] if isinstance(e.kind, Items) else e.kind
    assert isinstance(kind, Tensor), "all states are a tensor"
    return Held(found.value, found.depth, kind.slots)


# --- types ----------------------------------------------------------------------------------------------------------


def is_settled(e: Loop) -> bool:
    """Whether the states have the types that a step gives them, widened from those of the first states."""
    kinds = tuple(s.kind for s in e.starts)
    if len(kinds) != len(e.states):
        return False
    for _ in range(len(kinds) + 1):
        found = _kinds_of_step(e, kinds)
        if found is None or len(found) != len(kinds):
            return False
        wider = tuple(_wider(a, b) for a, b in zip(kinds, found, strict=True))
        if None in wider:
            return False
        if wider == kinds:
            break
        kinds = wider  # type: ignore[assignment]
    return all(s.kind == _plain(k) for s, k in zip(e.states, kinds, strict=True))


def _kinds_of_step(e: Loop, kinds: Sequence[Type]) -> tuple[Type, ...] | None:
    others = {s: Var(_plain(k), s.hint) for s, k in zip(e.states, kinds, strict=True)}
    try:
        kind = copied(e.step, dict(others)).kind
    except (AssertionError, AttributeError):
        return None
    return kind.of if isinstance(kind, Items) else (kind,)


def _plain(kind: Type) -> Type:
    return Tensor(kind.slots, kind.complex) if isinstance(kind, Tensor) else kind


def _wider(a: Type, b: Type) -> Type | None:
    c = over_complex(a) or over_complex(b)
    match a, b:
        case Number(), Number():
            return Number(c)
        case Tensor(slots), Tensor(others) if slots == others:
            return Tensor(slots, c)
    return None
