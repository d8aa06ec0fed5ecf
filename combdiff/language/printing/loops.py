"""Loops as a program writes them: all of them forwards, and the states of n steps are n + 1.

a(t), the states of a loop that begins with the last t, is a(n - 1 - t) of the loop over n - 1 - t
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.language.printing.states import count_of, joined
from combdiff.terms.conditions.comparing import compared
from combdiff.terms.conditions.guards import condition_of, under
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    App,
    Indicator,
    Lam,
    Let,
    Loop,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    add,
    fresh,
    holds,
    let,
    neg,
    same_recurrence,
    substitute,
    total,
)
from combdiff.terms.types import Index, Map, Type, slot_types


def forwards(term: Term) -> Term:
    """`term` without loops that run backwards, and with the states of loops as maps of as many values as `scan` gives.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> program = infer(parse("(x::RV{n}) -> iterate((s, t) -> s * x(t), 1, n)"))
    >>> ((var, loop),) = program.body.bindings
    >>> backward = Let(((var, Loop("last", 0, True, loop.step, loop.start)),), var)
    >>> forwards(backward).bindings[0][1].backward
    False
    """
    if not holds(term, Loop):
        return term

    def visit(t: Term) -> Term:
        match t:
            case Let(bindings, body):
                return _forwards_let(bindings, body)
            case Sum(indices, body) if t.counted is None:
                return total(*_over_whole_ranges(indices, body))
            case Lam(params, body) if all(isinstance(p.kind, Index) for p in params):
                return Lam(*_over_whole_ranges(params, body))
            case _:
                return t

    return Traverser(visit)(term)


def _over_whole_ranges(indices: Sequence[Var], body: Term) -> tuple[tuple[Var, ...], Term]:
    """Indices of n values for those of n - 1, and a condition: types name sizes only."""
    found = []
    for i in indices:
        domain = i.kind.domain if isinstance(i.kind, Index) else None
        if domain is None or domain.of is None or domain.less < 0:
            found.append(i)
            continue
        found.append(fresh(i.name, Index(domain.of)))
        within = compared(found[-1], "<", _count(i), ONE)
        assert isinstance(within, Indicator), "a condition on an index"
        body = under([condition_of(within)], substitute(body, {i: found[-1]}))
    return tuple(found), body


def _forwards_let(bindings: Sequence[tuple[Var, Term]], body: Term) -> Term:
    """Definitions with one loop for each recurrence: the last of the states that are all there is one of them."""
    found: list[tuple[Var, Term]] = []
    uses: dict[Var, Term] = {}
    known: list[tuple[Loop, dict[int, Var]]] = []
    for n, (var, value) in enumerate(bindings):
        value = substitute(value, uses)
        if not isinstance(value, Loop):
            found.append((var, value))
            continue
        names = next((named for loop, named in known if same_recurrence(loop, value)), None)
        if names is None:
            others = [(v, substitute(e, uses)) for v, e in bindings[n + 1 :]]
            loops = [(v, e) for v, e in others if isinstance(e, Loop) and same_recurrence(e, value)]
            names, made = _together([(var, value), *loops])
            known.append((value, names))
            found += made
        uses[var] = _use(names[value.item], value)
    counts = {var: _count(loop.time) for loop, named in known for var in named.values()}
    return joined(let(found, substitute(body, uses)), counts)


def _together(loops: Sequence[tuple[Var, Loop]]) -> tuple[dict[int, Var], list[tuple[Var, Term]]]:
    """A variable for each state that is asked for, and their definitions: of all states, or of the last ones alone."""
    kind = "states" if any(e.kind == "states" for _, e in loops) else "last"
    names: dict[int, Var] = {}
    found: list[tuple[Var, Term]] = []
    for var, loop in loops:
        if loop.item not in names:
            state = loop.states[loop.item].kind
            names[loop.item] = fresh(var.name, state if kind == "last" else _all_states(loop.time, state))
            turned = _turned(loop) if loop.backward else loop
            found.append((names[loop.item], Loop(kind, loop.item, False, turned.step, _first_states(turned))))
    return names, found


def _first_states(loop: Loop) -> Term:
    """The first states, of which some may be all states of another loop, which runs backwards."""
    assert isinstance(loop.start, Tuple), "the first states"
    whole = (Lam(*_over_whole_ranges(s.params, s.body)) if isinstance(s, Lam) else s for s in loop.start.items)
    return Tuple(tuple(whole))


def _use(name: Var, loop: Loop) -> Term:
    """What a loop stands for, of the last state, or of the map from times to all states."""
    state = loop.states[loop.item].kind
    if name.kind == state:
        return name
    own = tuple(fresh(v, k) for v, k in zip("ijklmnop", slot_types(state), strict=False))
    if loop.kind == "last":
        last = App(name, (_count(loop.time), *own))
        return Lam(own, last) if own else last
    time = fresh(loop.time.name, loop.time.kind)
    return Lam((time, *own), App(name, (_from_the_end(time) if loop.backward else time, *own)))


def _turned(loop: Loop) -> Loop:
    """The loop over n - 1 - t instead of t."""
    assert isinstance(loop.step, Lam), "a step is a map"
    time = fresh(loop.time.name, loop.time.kind)
    body = substitute(loop.step.body, {loop.time: _from_the_end(time)})
    return Loop(loop.kind, loop.item, False, Lam((*loop.states, time), body), loop.start)


def _count(time: Var) -> Term:
    """How many steps a loop has."""
    assert isinstance(time.kind, Index) and time.kind.domain is not None, "a loop runs over a domain"
    return count_of(time.kind.domain)


def _from_the_end(time: Var) -> Term:
    """n - 1 - t."""
    return add(_count(time), MINUS_ONE, neg(time))


def _all_states(time: Var, state: Type) -> Map:
    """The type of the states of a loop, that after the last step among them."""
    assert isinstance(time.kind, Index) and time.kind.domain is not None, "a loop runs over a domain"
    own = slot_types(state)
    number_ = state.result if isinstance(state, Map) else state
    return Map((Index(time.kind.domain.shortened(-1)), *own), number_)
