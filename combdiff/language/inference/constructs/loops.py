"""`iterate((s, t) -> e, s0, T)` and `scan(…)`: the state after T steps, and those after each of them.

A loop is a definition of its own: what is made of it here is a `Let`. The result of `scan` has T + 1 entries, the
states before the steps, which are a loop over T values, and the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from combdiff.errors import LanguageError, Span
from combdiff.language.inference import conditions
from combdiff.language.inference.fit import fit
from combdiff.language.inference.scope import Closure, Entry, Ready, Scope
from combdiff.language.parsing.syntax import Expr, Formula, Lambda, Name, Param
from combdiff.language.vocabulary import counted, in_words
from combdiff.records import dataclass
from combdiff.terms import terms, types
from combdiff.terms.conditions.comparing import compared
from combdiff.terms.conditions.guards import Condition
from combdiff.terms.conditions.ordering import form_of
from combdiff.terms.laws.inclusion import needs_inclusion, over_complex, widened
from combdiff.terms.terms import (
    ONE,
    Const,
    Delta,
    Indicator,
    Lam,
    Let,
    Loop,
    Sum,
    Term,
    Tuple,
    Var,
    items_of,
    params_of,
)
from combdiff.terms.types import REAL, Domain, Index, Map, Number, Product, Type, slot_types

if TYPE_CHECKING:
    from combdiff.language.inference.infer import Elaborator

_EXAMPLES = {
    "iterate": "iterate((s, t) -> s / 2 + x(t), 0, n)",
    "scan": "scan((s, t) -> s / 2 + x(t), 0, n)",
}


@dataclass(frozen=True, slots=True)
class WrittenLoop:
    """A loop as it is read: the step in its scope, the first states, how far time ranges; `names` of its results."""

    name: str
    step: Closure
    states: tuple[Param, ...]
    time: Param
    start: tuple[Term, ...]
    domain: Domain
    places: tuple[Span, Span]
    names: tuple[str, ...]
    stop: Closure | None = None


def loop(el: Elaborator, name: str, args: Sequence[Expr | Ready], scope: Scope, span: Span) -> Term:
    """The term of a loop."""
    if len(args) not in (3, 4):
        raise LanguageError(
            f"{name} takes a step, the first state, and the number of steps, and {counted(len(args), 'argument')} "
            f"{'is' if len(args) == 1 else 'are'} given",
            span=span,
            remedy=f"write {_EXAMPLES[name]}, and s -> c behind it to stop where c does not hold",
        )
    called, el.called = el.called, ()
    step = _step(el, name, args[0], scope)
    start = el.expr(args[1], scope)
    around: list[tuple[Var, Term]] = []
    while isinstance(start, Let):
        around += start.bindings
        start = start.body
    items = items_of(start)
    first, time = step.body.params
    states = first.items or (first,)
    if len(states) != len(items):
        raise LanguageError(
            f"the state of this loop is {in_words(start.type)}, and the step names {counted(len(states), 'state')}",
            span=args[1].span,
            also=("they are named here", first.span),
            remedy=f"give the step as many as the first state has: {name}(((a, b), t) -> (b, a + b), (0, 1), n)",
        )
    for item in items:
        _check_state(item, args[1].span)
    domain = _range(el, args[2], scope)
    stop = _stop(el, args[3], states, scope) if len(args) == 4 else None
    spans = args[0].span, args[1].span
    names = called if len(called) == len(states) else tuple(p.name for p in states)
    made = WrittenLoop(name, step, states, time, tuple(map(_entrywise, items)), domain, spans, names, stop)
    return terms.let(around, _read(el, made))


def _step(el: Elaborator, name: str, arg: Expr | Ready, scope: Scope) -> Closure:
    """The step as the program writes it, here or in a definition."""
    found: object = arg
    if isinstance(arg, Name):
        found = scope.find(arg.text)
        found = el.untyped.get(found, found) if isinstance(found, Term) else found
    elif isinstance(arg, Lambda):
        found = Closure(arg, scope)
    if not isinstance(found, Closure) or len(found.body.params) != 2:
        raise LanguageError(
            f"the first argument of {name} is a map of a state and of the number of the step",
            span=arg.span,
            remedy="write (s, t) -> …, where t counts the steps from 0, or ((a, b), t) -> … for a state of two parts",
        )
    found.read = True
    return found


def _check_state(item: Term, span: Span) -> None:
    kind = item.type
    of_numbers = isinstance(kind, Map) and (kind.is_tensor or (kind.is_array and isinstance(kind.result, Index)))
    if not (isinstance(kind, Number | Index) or of_numbers):
        raise LanguageError(
            f"a state of a loop is a number or a tensor, and this one is {in_words(kind)}",
            span=span,
            remedy="write several as a tuple: iterate(((a, b), t) -> (b, a + b), (0, 1), n)",
        )


def _entrywise(item: Term) -> Term:
    """A tensor as a map of its indices."""
    if isinstance(item, Lam) or not isinstance(item.type, Map):
        return item
    own = tuple(terms.fresh(name, kind) for name, kind in zip("ijklmnop", item.type.params, strict=False))
    return Lam(own, terms.apply(item, *own))


def _range(el: Elaborator, arg: Expr | Ready, scope: Scope) -> Domain:
    """What the time ranges over: as many values as there are steps."""
    if isinstance(arg, Lambda):
        raise LanguageError(
            "a loop with a condition has a largest number of steps before it",
            span=arg.span,
            remedy="write it, too: iterate((s, t) -> s / 2, 1, 1000, s -> 1e-6 < s)",
        )
    steps = el.expr(arg, scope)
    offset = sum(int(t.real.real) for t in terms.terms_of(steps) if isinstance(t, Const) and t.is_integer)
    match [t for t in terms.terms_of(steps) if not isinstance(t, Const)]:
        case [] if isinstance(steps, Const) and steps.is_integer and steps.real >= 0:
            count = int(steps.real)
            return types.range_of(count)
        case [Sum() as size] if size.counted is not None:
            domain = el.ranges.domain_of(size.counted)
            if domain is not None and domain.plain:
                return domain.shortened(-offset)
    raise LanguageError(
        "the number of steps is a number, or a size that has a name, or a number more or less",
        span=arg.span,
        remedy="write 10, or n where x::RV{n}, n - 1 or n + 1, or T for a parameter T::Int, which is given at the call",
    )


def _read(el: Elaborator, made: WrittenLoop) -> Term:
    """The loop, complex where a step makes complex states of real ones."""
    kinds = [_wished(el, p, _plain(t.type)) for p, t in zip(made.states, made.start, strict=True)]
    for _ in range(len(kinds) + 1):
        step = _body(el, made, kinds)
        items = _items(step)
        wider = [over_complex(k) if needs_inclusion(k, i.type) else k for k, i in zip(kinds, items, strict=True)]
        if wider == kinds:
            break
        kinds = wider
    for item, kind in zip(items, kinds, strict=True):
        _fit_state(el, item.type, kind, made)
    step = Lam(step.params, _with_items(step.body, [widened(i, k) for i, k in zip(items, kinds, strict=True)]))
    start = Tuple(tuple(widened(t, k) for t, k in zip(made.start, kinds, strict=True)))
    if made.stop is not None:
        step, start = _stopping(el, made.stop, step), Tuple((*start.items, ONE))
    if made.domain.count == 0:
        return _not_begun(el, made, kinds)  # what the condition reads may say how far indices range
    last = [Loop("last", n, False, step, start) for n in range(len(kinds))]
    bindings = [(terms.fresh(name, t.type), t) for name, t in zip(made.names, last, strict=False)]
    if made.name == "iterate":
        return terms.let(bindings, terms.tuple_of([v for v, _ in bindings]))
    found = [Loop("states", n, False, step, start) for n in range(len(kinds))]
    before = [(terms.fresh(name, t.type), t) for name, t in zip(made.names, found, strict=True)]
    whole = [_all_states(el, made, v, w) for (v, _), (w, _) in zip(before, bindings, strict=True)]
    return Let((*before, *bindings), terms.tuple_of(whole))


def _stop(el: Elaborator, arg: Expr | Ready, states: Sequence[Param], scope: Scope) -> Closure:
    """The condition under which a loop goes on."""
    named = arg.params[0].items or arg.params if isinstance(arg, Lambda) else ()
    if not (isinstance(arg, Lambda) and len(named) == len(states) and isinstance(arg.body, Formula)):
        raise LanguageError(
            "the last argument of a loop is a map from the state to a condition",
            span=arg.span,
            remedy="write s -> 1e-6 < norm(s), or (a, b) -> a < b; a loop stops before a step where it is false",
        )
    return Closure(replace(arg, params=tuple(named)), scope)


def _stopping(el: Elaborator, stop: Closure, step: Lam) -> Lam:
    """The step with a mark among its states, 1 as long as the condition holds, and no change where it is 0."""
    *states, time = step.params
    entries: dict[str, Entry | None] = {p.name: s for p, s in zip(stop.body.params, states, strict=True)}
    place = stop.body.body.span
    going, still = terms.fresh("going", REAL), terms.fresh("still", REAL)
    holds = conditions.where(el, stop.body.body, (Ready(going, place),), stop.scope.child(entries))

    def kept(new: Term, old: Var) -> Term:
        if isinstance(new, Lam):
            return Lam(new.params, chosen(new.body, terms.apply(old, *new.params)))
        return chosen(new, old)

    def chosen(new: Term, old: Term) -> Term:
        return terms.add(compared(ONE, "<=", still, new), compared(still, "<", ONE, old))

    items = [kept(new, old) for new, old in zip(_items(step), states, strict=True)]
    body = _with_items(step.body, [*items, still])
    return Lam((*states, going, time), Let(((still, holds),), body))


def _not_begun(el: Elaborator, made: WrittenLoop, kinds: Sequence[Type]) -> Term:
    """The first states, of a loop of no steps; all states are these alone."""
    first = [widened(t, k) for t, k in zip(made.start, kinds, strict=True)]
    if made.name == "iterate":
        return terms.tuple_of(first)
    whole: list[Term] = []
    for t in first:
        own = params_of(t)
        alone = types.range_of(1)
        time = Index(el.ranges.new(f"slot 1 of {made.name}", made.places[0], domain=alone))
        slots = tuple(terms.fresh(p.name, p.kind) for p in own)
        whole.append(Lam((terms.fresh("t", time), *slots), terms.apply(t, *slots) if slots else t))
    return terms.tuple_of(whole)


def _plain(kind: Type) -> Type:
    """The type of a state, of which nothing is declared though the first one be symmetric or positive."""
    if isinstance(kind, Map):
        return Map(kind.params, terms.number_type(kind.result))
    return terms.number_type(kind)


def _wished(el: Elaborator, state: Param, kind: Type) -> Type:
    """The type of a state as it begins: of one that is written `s::C` complex, though the first one be real."""
    wider = state.kind is not None and needs_inclusion(kind, el.bound(state, kind).kind)
    return over_complex(kind) if wider else kind


def _all_states(el: Elaborator, made: WrittenLoop, before: Var, last: Var) -> Term:
    """(u, i) -> the state after u steps."""
    known, whole = made.domain.count, made.domain.of or made.domain
    own = el.ranges.new(f"steps of {made.name}", made.places[0], domain=whole)
    count = terms.add(terms.size(own), terms.number(-made.domain.less)) if known is None else terms.number(known)
    time = Index(el.ranges.new(f"slot 1 of {made.name}", made.places[0], domain=made.domain.shortened(-1)))
    inner = slot_types(last.kind)
    u, *slots = (terms.fresh(name, kind) for name, kind in zip("tijklmnop", (time, *inner), strict=False))
    el.places[u] = made.places[0]
    # read where the numbers are equal: u has one more value
    assert isinstance(before.kind, Map), "states are a map of time"
    same = terms.fresh("t", before.kind.params[0])
    el.places[same] = made.places[0]
    early = terms.total([same], terms.delta(u, same, terms.apply(before, same, *slots)))
    late = terms.apply(last, *slots) if slots else last
    found = Lam((u, *slots), terms.add(compared(u, "<", count, early), compared(u, ">=", count, late)))
    el.unshared.add(found)
    return found


def _body(el: Elaborator, made: WrittenLoop, kinds: Sequence[Type]) -> Lam:
    """The step for states of these types."""
    entries: dict[str, Entry | None] = {}
    params: list[Var] = []
    for p, kind in zip(made.states, kinds, strict=True):
        var = el.bound(p, kind) if p.kind is not None else terms.fresh(p.name, kind)
        if p.kind is not None:
            fit(kind, var.kind, el.ranges, p.span)
            fit(var.kind, kind, el.ranges, p.span)
        params.append(var)
    index = Index(el.ranges.new(f"index {made.time.name}", made.time.span, domain=made.domain))
    params.append(terms.fresh(made.time.name, index))
    for p, var in zip((*made.states, made.time), params, strict=True):
        el.check_free(p.name, p.span)
        el.places[var] = p.span
        entries[p.name] = var
    wanted = Product(tuple(kinds)) if len(kinds) > 1 else kinds[0]
    body = el.inlined(made.step.body.body, made.step.scope.child(entries), wanted)
    _check_count(body.type, kinds, made)
    bindings: list[tuple[Var, Term]] = []
    while isinstance(body, Let):
        bindings += body.bindings
        body = body.body
    items = items_of(body)
    return Lam(tuple(params), terms.let(bindings, Tuple(tuple(map(_entrywise, items)))))


def _check_count(found: Type, kinds: Sequence[Type], made: WrittenLoop) -> None:
    count = len(found.items) if isinstance(found, Product) else 1
    if count != len(kinds):
        raise _other_state(found, Product(tuple(kinds)) if len(kinds) > 1 else kinds[0], made)


def _fit_state(el: Elaborator, found: Type, kind: Type, made: WrittenLoop) -> None:
    """The next state is of the type of the state."""
    of_numbers = isinstance(found, Number | Index) and isinstance(kind, Number)
    of_tensors = isinstance(found, Map) and isinstance(kind, Map) and len(found.params) == len(kind.params)
    if not (of_numbers or of_tensors):
        raise _other_state(found, kind, made)
    fit(found, kind, el.ranges, made.places[0])


def _other_state(found: Type, kind: Type, made: WrittenLoop) -> LanguageError:
    return LanguageError(
        f"a step makes {in_words(found)} of a state that is {in_words(kind)}",
        span=made.places[0],
        also=("the first state is given here", made.places[1]),
        remedy="let the step return what the first state is",
    )


def _items(step: Lam) -> tuple[Term, ...]:
    body = step.body
    while isinstance(body, Let):
        body = body.body
    assert isinstance(body, Tuple), "a step makes a tuple"
    return body.items


def _with_items(body: Term, items: Sequence[Term]) -> Term:
    if isinstance(body, Let):
        return Let(body.bindings, _with_items(body.body, items))
    return Tuple(tuple(items))


def with_last_apart(term: Term) -> Term:
    """`term` with the last state of loops outside of sums over all of them: Σ_{t ≤ n} f(t) = Σ_{t < n} f(t) + f(n).

    So every index of a sum in which states are read ranges over as many values as there are steps.
    """
    values = {v: e for u in terms.subterms(term, Let) for v, e in u.bindings}
    if not any(isinstance(e, Loop) for e in values.values()):
        return term
    return _Parting(_made_of_states(values)).term(term)


def _made_of_states(values: Mapping[Var, Term]) -> set[Var]:
    """The definitions that are made of all the states of loops, and are none of them."""
    states = {v for v, e in values.items() if isinstance(e, Loop) and e.kind == "states"}
    found: set[Var] = set()
    for v, e in values.items():  # what a definition reads stands before it
        if not isinstance(e, Loop) and not e.free.isdisjoint(states | found):
            found.add(v)
    return found


class _Parting:
    """Takes the last states out of sums; definitions in `made` are made of states."""

    def __init__(self, made: set[Var]) -> None:
        self.made = made

    def term(self, term: Term) -> Term:
        return terms.Traverser(self.parted)(term)

    def parted(self, t: Term) -> Term:
        if not isinstance(t, Sum):
            return t
        found = next(((u, d) for u in t.indices if (d := _widened(u)) is not None and self._reads(t.body, u, d)), None)
        return t if found is None else self._apart(*found, [u for u in t.indices if u is not found[0]], t.body)

    def _reads(self, body: Term, u: Var, domain: Domain) -> bool:
        """Whether states are read at an index, which has one value more than there are steps."""
        if not body.free.isdisjoint(self.made):
            return True
        time = Index(domain.shortened(1))
        inside = list(terms.subterms(body))
        places = [{d.left, d.right} for d in inside if isinstance(d, Delta)]
        at_u = any(u in sides and any(isinstance(v, Var) and v.kind == time for v in sides) for sides in places)
        return at_u or any(isinstance(e, Loop) for e in inside)

    def _apart(self, u: Var, domain: Domain, others: Sequence[Var], body: Term) -> Term:
        fewer = domain.shortened(1)
        time = terms.fresh(u.name, Index(fewer))
        early = terms.total([time, *others], _settled(terms.substitute(body, {u: time})))
        late = terms.total(others, _settled(terms.substitute(body, {u: _count(fewer)})))
        return terms.add(self.term(early), self.term(late))


def _widened(u: Var) -> Domain | None:
    """The range of an index that may be one of all states of a loop."""
    domain = u.kind.domain if isinstance(u.kind, Index) else None
    return domain if domain is not None and domain.of is not None and domain.less < 0 else None


def _count(domain: Domain) -> Term:
    """How many values a range has."""
    if domain.count is not None:
        return terms.number(domain.count)
    return terms.add(terms.size(domain.of or domain), terms.number(-domain.less))


def _settled(t: Term) -> Term:
    """`t` without conditions that always hold, or never."""

    def visit(u: Term) -> Term:
        form = form_of(Condition(u.left, u.right)) if isinstance(u, Indicator) else None
        if isinstance(u, Indicator) and form is not None:
            return u.body if form.always else terms.ZERO if form.never else u
        return u

    return terms.Traverser(visit)(t)
