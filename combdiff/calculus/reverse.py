"""Pullbacks and gradients of λ-terms in reverse mode, from the pullback rules.

    pullback_of(f)   (x…, k…) -> 𝒫(f)(x, k)
    gradient_of(f)   x… -> 𝒫(f)(x, 1)                 (Eq. 42–43)

The body of f is a list of values (lets) followed by an expression. A let is `B (v ↦ body) (x ↦ value)` whose second
term, Σ_v … δ(value, v, k) over all v, is a substitution at once; so the B rule reads: the cotangent of each value is
collected once from everything that uses it, and handed on. Forward values once, cotangents once (section 5.2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field

from combdiff.calculus.combinators import eliminate
from combdiff.calculus.definitions.floating import Binding, float_lets
from combdiff.calculus.definitions.naming import name_arguments
from combdiff.calculus.demands import Guarded, as_used, demanded, guarded_definitions
from combdiff.calculus.implicit import is_implicit, multiplier, residual
from combdiff.calculus.jumps.peaks import with_conditions_settled, without_moving_peaks
from combdiff.calculus.loops.adjoints import Pulled, adjoint_of
from combdiff.calculus.loops.recurrences import LoopBody
from combdiff.calculus.pullback import pull_back
from combdiff.calculus.pushforward import sum_of
from combdiff.errors import Mention, UnsupportedError
from combdiff.language.printing.names import names_in
from combdiff.records import dataclass
from combdiff.terms.conditions.guards import FiniteValues, Guard, infinite_values, partial_values
from combdiff.terms.conditions.kinks import without_needless_conditions
from combdiff.terms.laws.inclusion import included
from combdiff.terms.terms import (
    ONE,
    Add,
    App,
    Lam,
    Let,
    Loop,
    Term,
    Tuple,
    Var,
    add,
    apply,
    body_of,
    fresh,
    items_of,
    lam,
    let,
    same_recurrence,
    substitute,
    subterms,
    tuple_of,
)
from combdiff.terms.types import REAL, Index, Map, Number, Product, Type, is_value, slot_types


@dataclass(frozen=True, slots=True)
class Reverse:
    """The cotangents that have been collected so far, a list of summands for each variable at its own slots.

    `values` are the definitions of those variables that are values of the program. `partial` are the values that may be
    infinite, None where nothing is guarded; `guards` what guards their cotangents. `ask` is called often, and may raise
    to stop.
    """

    slots: dict[Var, tuple[Var, ...]]
    summands: dict[Var, list[Term]]
    values: dict[Var, Term]
    partial: set[Var] | None = None
    guards: dict[Var, Guard] = field(default_factory=dict)
    ask: Callable[[], None] = lambda: None

    @classmethod
    def start(
        cls,
        slots: dict[Var, tuple[Var, ...]],
        bindings: Sequence[Binding],
        known: Guarded | None = None,
        ask: Callable[[], None] = lambda: None,
    ) -> Reverse:
        if known is None:
            return cls(slots, defaultdict(list), dict(bindings), ask=ask)
        return cls(slots, defaultdict(list), dict(bindings), known.partial, known.guards, ask)

    def through(self, body: Term, k: Term, targets: Mapping[Var, int]) -> None:
        """Add what `body` with cotangent `k` contributes to each of `targets`, which are numbered in order.

        A sum hands its cotangent to each of its terms, so that the work is that of the unknowns that each term has.
        """
        for term, cotangent in settled_terms(body, k, self.values, targets):
            self.ask()
            for x in sorted((v for v in term.free if v in targets), key=targets.__getitem__):
                self.summands[x] += pull_back(eliminate(x, term), cotangent, self.slots[x], partial=self.partial)

    def down(self, bindings: Sequence[Binding], targets: Mapping[Var, int], *, share: bool = True) -> list[Binding]:
        """Hand the cotangents of values on, last value first; returns those that get a name, all if they `share`."""
        found: list[Binding] = []
        infinite = set() if self.partial is None else infinite_values(self.values.items())
        finite = FiniteValues(infinite)  # of what stands for the cotangents so far, too
        for var, value in reversed(bindings):
            if isinstance(value, Loop) and var in targets:
                found += self.looped(_together(var, value, bindings, targets), targets, share)
                continue
            if var not in targets or not self.summands[var]:
                continue
            k = self.cotangent(var)
            if share:
                found.append((fresh(f"{var.name}_bar", cotangent_type(var.kind)), k))
                if self.partial is not None and not finite(body_of(k)):
                    # 1/√ρ(i) is infinite where ρ(i) is 0
                    infinite.add(found[-1][0])
                    self.partial.add(found[-1][0])
                k = found[-1][0]
            if is_implicit(value):
                found += self.solved(var, value, k, targets, share)
            else:
                self.through(as_used(value, self.guards.get(var, ()), self.partial or ()), k, targets)
        return found

    def solved(self, y: Var, value: Term, k: Term, targets: Mapping[Var, int], share: bool) -> list[Binding]:
        """Eq. 30 for a value y that solves an equation: what the equation captures has the cotangent λ = −H⁻¹(k)."""
        inside, core = name_arguments((y, *targets), *float_lets(residual(value, y)), self.ask)
        own = {v: n for v, n in targets.items() if v is not y}
        for var, e in inside:
            if not own.keys().isdisjoint(e.free):
                own[var] = len(targets) + len(own)
        self.slots.update(_slots([var for var, _ in inside], [e for _, e in inside] + [core]))
        self.values.update(inside)
        if self.partial is not None:
            self.partial.update(partial_values(inside, self.partial))
            self.guards.update(demanded(inside, [core], slopes=True))
        found = list(inside)
        step = multiplier(self.solver(y, inside, core), k)
        if share:
            found.append((fresh("λ", step.type), step))
            step = found[-1][0]
        self.through(core, step, own)
        return found + self.down(inside, own, share=share)

    def solver(self, y: Var, inside: Sequence[Binding], core: Term) -> Lam:
        """H = k ↦ 𝒫(y ↦ core)(y, k) of Eq. 29, where `core` uses the values `inside`."""
        slots = _slots([y, *(var for var, _ in inside)], [*(e for _, e in inside), core])
        reverse = Reverse(slots, defaultdict(list), dict(inside), self.partial, self.guards, self.ask)
        targets = reached((y,), inside)
        k = fresh("v", core.type)
        reverse.through(core, k, targets)
        left = reverse.down(inside, targets, share=False)
        body = reverse.cotangent(y)
        for var, value in reversed(left):
            body = substitute(body, {var: value})
        return Lam((k,), body)

    def looped(self, loops: Mapping[Var, Loop], targets: Mapping[Var, int], share: bool) -> list[Binding]:
        """The adjoint of the loops of one recurrence (`loops.py`)."""
        if not any(self.summands[var] for var in loops):
            return []
        if not share:
            raise UnsupportedError(
                "an equation that is solved holds a loop",
                remedy="write the loop outside of root(…) or inverse(…), or solve the equation in the loop",
            )
        loop = next(iter(loops.values()))
        pulled = self.pulled_step(LoopBody.of(loop), targets)
        adjoint = adjoint_of(loop, pulled, self.collected(loops), self.values)
        self.slots.update(_slots([v for v, _ in adjoint.values], [*(e for _, e in adjoint.values), *adjoint.items]))
        self.values.update(adjoint.values)
        if self.partial is not None:
            self.partial.update(partial_values(adjoint.values, self.partial))
            self.guards.update(demanded(adjoint.values, adjoint.items, slopes=True))
        first = {v: n for v, n in targets.items() if v not in loops}
        own = dict(first)
        for var, e in adjoint.values:
            if not own.keys().isdisjoint(e.free):
                own[var] = len(targets) + len(own)
        for item, k in zip(adjoint.items, adjoint.cotangents, strict=True):
            self.through(item, k, own)
        for start, k in zip(adjoint.starts, adjoint.firsts, strict=True):
            self.through(start, k, first)
        return [*adjoint.bindings, *self.down(adjoint.values, own)]

    def collected(self, loops: Mapping[Var, Loop]) -> dict[tuple[str, int], Term]:
        """The cotangents of the states of one recurrence; a program may have written it twice."""
        found: dict[tuple[str, int], list[Term]] = {}
        for var, e in loops.items():
            if self.summands[var]:
                found.setdefault((e.kind, e.item), []).append(self.cotangent(var))
        return {key: sum_of(terms, terms[0].type) for key, terms in found.items()}

    def pulled_step(self, step: LoopBody, targets: Collection[Var]) -> Pulled:
        """The pullback of a step by its states."""
        inside, core = name_arguments((*step.states, *targets), step.bindings, Tuple(step.items), self.ask)
        assert isinstance(core, Tuple), "a tuple stays one"
        items = list(core.items)
        known = guarded_definitions(inside, items)
        if known is not None:
            inside, items = known.bindings, known.results
        names = _slots([*step.states, *(v for v, _ in inside)], [*(e for _, e in inside), *items])
        inner = Reverse.start(names, inside, known, self.ask)
        within = reached(step.states, inside)
        bars = [fresh(f"{s.name}_bar", cotangent_type(s.kind)) for s in step.states]
        for item, bar in zip(items, bars, strict=True):
            inner.through(item, bar, within)
        backwards = inner.down(inside, within)
        return Pulled(step, inside, items, bars, backwards, [inner.cotangent(s) for s in step.states])

    def cotangent(self, x: Var) -> Term:
        """What has been collected for `x`, a map where `x` is one."""
        total = _added(self.summands[x], x.kind.result if isinstance(x.kind, Map) else x.kind)
        slots = self.slots[x]
        return Lam(slots, total) if slots else total


def _added(summands: Sequence[Term], kind: Type) -> Term:
    """A sum, entry by entry where the summands are maps: those of a map whose values are maps."""
    if not isinstance(kind, Map):
        return add(*summands)
    slots = [fresh(f"d{n + 1}", param) for n, param in enumerate(kind.params)]
    return lam(slots, add(*(apply(t, *slots) for t in summands)))


def _together(var: Var, loop: Loop, bindings: Sequence[Binding], targets: Collection[Var]) -> dict[Var, Loop]:
    """The loops of one recurrence at the first of them, when the cotangents of all are known; none at the others."""
    found = {v: e for v, e in bindings if isinstance(e, Loop) and v in targets and same_recurrence(e, loop)}
    return found if next(iter(found)) is var else {}


def pullback_of(
    f: Lam, kinds: Sequence[Type] = (), around: Collection[str] = (), ask: Callable[[], None] = lambda: None
) -> Lam:
    """(x…, k…) -> the cotangents of the parameters, one bare, several as a tuple.

    `kinds` says that f is a gradient, and of what types: its slots are those of the parameters, and keep their names.
    The names `around` f, such as those of captured arguments, are not given to cotangents.
    """
    for x in f.params:
        check_differentiable(x, by_maps=True)
    bindings, core = name_arguments(f.params, *float_lets(met_integrals(f)), ask)
    outputs = items_of(core)
    wider = bool(kinds)
    kinds = kinds or [t.type for t in outputs]
    names = cotangent_names({*names_in(f), *around}, len(outputs))
    cotangents = [fresh(name, cotangent_type(kind)) for name, kind in zip(names, kinds, strict=True)]
    known = {x: _params_of(t) for x, t in zip(f.params, outputs, strict=False)} if len(outputs) == len(f.params) else {}
    named = {x: names for x, names in known.items() if wider and names}
    body = reverse_pass(f.params, bindings, list(zip(outputs, cotangents, strict=True)), named, ask)
    return Lam((*f.params, *cotangents), body)


def met_integrals(f: Lam) -> Term:
    """The value of f where a δ that moves with its parameters has met its integral: what it is of can then be named."""
    moving = set(f.params)
    for t in subterms(f.body):
        if isinstance(t, Let):
            moving.update(var for var, value in t.bindings if not moving.isdisjoint(value.free))
    return without_moving_peaks(f.body, moving)


def _params_of(t: Term) -> list[str]:
    """The names of the indices of a tensor-valued expression."""
    return [p.name for p in t.params] if isinstance(t, Lam) else []


def settled_terms(
    body: Term, k: Term, values: Mapping[Var, Term], targets: Collection[Var]
) -> Iterator[tuple[Term, Term]]:
    """The terms that are differentiated one by one, δ and conditions of numbers settled, each with its cotangent."""
    k = included(k, body.type)  # of what is real and only declared to be complex
    body, k = with_conditions_settled(body, k, values, targets)
    if not isinstance(body, Add):
        yield body, k
        return
    for term in body.terms:
        yield from settled_terms(term, k, values, targets)


def gradient_of(f: Lam, ask: Callable[[], None] = lambda: None) -> Lam:
    """x -> ∇f(x), where f's value is a number; of a complex one the gradient of its real part (Eq. 42)."""
    for x in f.params:
        check_differentiable(x, by_maps=True)
    bindings, core = name_arguments(f.params, *float_lets(met_integrals(f)), ask)
    if not isinstance(core.type, Number | Index):
        what = "a tuple" if isinstance(core.type, Product) else "a tensor or a function"
        raise UnsupportedError(
            f"a gradient is that of a number, and the value here is {what}",
            about=Mention(""),
            remedy="use pullback, which takes a cotangent of the value, or jacobian; or make a number of it, as sum(x)",
        )
    return Lam(f.params, reverse_pass(f.params, bindings, [(core, ONE)], ask=ask))


def reverse_pass(
    params: Sequence[Var],
    bindings: Sequence[Binding],
    outputs: Sequence[tuple[Term, Term]],
    named: Mapping[Var, list[str]] | None = None,
    ask: Callable[[], None] = lambda: None,
) -> Term:
    """Values forwards, then the cotangent of each value, last one first, then those of the parameters.

    `named` gives names to the slots of parameters, which else have those that the program puts there first.
    """
    known = guarded_definitions(bindings, [e for e, _ in outputs])
    if known is not None:
        bindings, outputs = known.bindings, [(e, k) for e, (_, k) in zip(known.results, outputs, strict=True)]
    values = [var for var, _ in bindings]
    bodies = [*(e for _, e in bindings), *(e for e, _ in outputs)]
    names = _slot_names((*params, *values), bodies) | dict(named or {})
    reverse = Reverse.start(_of_names(names), bindings, known, ask)
    targets = reached(params, bindings)
    for output, k in outputs:
        reverse.through(output, k, targets)
    backwards = reverse.down(bindings, targets)
    return without_needless_conditions(let([*bindings, *backwards], tuple_of([reverse.cotangent(x) for x in params])))


def _slots(variables: Sequence[Var], bodies: Sequence[Term]) -> dict[Var, tuple[Var, ...]]:
    return _of_names(_slot_names(variables, bodies))


def named_slots(x: Var, bodies: Sequence[Term]) -> tuple[Var, ...]:
    """An index for each slot of a variable, with the name that the first index there has."""
    return _slots([x], bodies)[x]


def _of_names(names: Mapping[Var, Sequence[str]]) -> dict[Var, tuple[Var, ...]]:
    """An index for each slot of each variable."""
    return {x: tuple(fresh(n, p) for n, p in zip(names[x], slot_types(x.kind), strict=True)) for x in names}


def reached(params: Sequence[Var], bindings: Sequence[Binding]) -> dict[Var, int]:
    """The parameters, and the values that depend on them, numbered in order."""
    reached = {x: n for n, x in enumerate(params)}
    for var, value in bindings:
        if any(v in reached for v in value.free):
            if not is_value(var.kind):
                raise UnsupportedError(
                    f"the map {var.name} in keep depends on an unknown of the derivative",
                    remedy=f"leave {var.name} out of keep, or give it the variable as an argument",
                )
            reached[var] = len(reached)
    return reached


def check_differentiable(x: Var, *, by_maps: bool = False) -> None:
    """Refuse what nothing is differentiated by, and maps of functions and of tensors unless `by_maps` allows them."""
    match x.kind:
        case Number():
            return
        case Map(params, Number()) if all(isinstance(p, Index | Number) for p in params):
            return
        case Map() if by_maps and _is_varied(x.kind):
            return
        case Index():
            raise UnsupportedError(
                f"{x.name} is an index, and nothing can be differentiated with respect to an integer",
                remedy="differentiate with respect to a number, a tensor or a function",
            )
        case _:
            raise UnsupportedError(
                f"differentiating with respect to {x.name}, a map of maps, is not supported",
                remedy="take the pullback or the pushforward by it"
                if not by_maps and _is_varied(x.kind)
                else "differentiate with respect to a number, a tensor, a function of numbers or a map of such",
            )


def _is_varied(kind: Type) -> bool:
    """Whether its values are numbers, however many maps lead there."""
    return isinstance(kind, Number) or (
        isinstance(kind, Map)
        and _is_varied(kind.result)
        and all(isinstance(p, Index) or _is_varied(p) for p in kind.params)
    )


def check_value(f: Lam) -> None:
    """Refuse the derivative of an index that the parameters decide, as argmax does."""
    values: list[Term] = [f.body]
    while values:
        value = values.pop()
        match value:
            case Lam(_, body) | Let(_, body):
                values.append(body)
            case Tuple(items):
                values += items
            case _ if isinstance(value.type, Index) and not value.free.isdisjoint(f.params):
                raise UnsupportedError(
                    "the value of this map is an index, which is never differentiated",
                    remedy="write maximum(i, x(i)) for the largest number itself; cd.simplified computes its index",
                )


def cotangent_type(kind: Type) -> Type:
    """A cotangent lives where the value lives, that of an index is real; declared symmetries are not asked of it."""
    if isinstance(kind, Index):
        return REAL
    if not isinstance(kind, Map):
        return kind
    # a space with fewer properties is not the one of that name
    space = "" if kind.symmetries or kind.positive or kind.definite or kind.increasing else kind.space
    return Map(kind.params, cotangent_type(kind.result), (), space, fixed=kind.fixed)


def cotangent_names(taken: Collection[str], count: int) -> list[str]:
    """Names of cotangents, or of tangents: k, or another letter where the program uses it; k1, k2, … for several."""
    for letter in (*"kvuhc", *(f"cotangent{n or ''}" for n in range(len(taken) + 1))):
        names = [letter] if count == 1 else [f"{letter}{n + 1}" for n in range(count)]
        if not any(name in taken for name in (letter, *names)):
            return names
    raise AssertionError("one of more names than are taken is free")


def _slot_names(variables: Sequence[Var], bodies: Sequence[Term]) -> dict[Var, list[str]]:
    """For each slot of each variable, the name of the first index that the user put there."""
    found: dict[Var, list[str | None]] = {x: [None] * len(slot_types(x.kind)) for x in variables}
    for body in bodies:
        for t in subterms(body):
            if isinstance(t, App) and isinstance(t.function, Var) and (names := found.get(t.function)):
                for slot, argument in enumerate(t.args):
                    if names[slot] is None and isinstance(argument, Var) and argument.name not in names:
                        names[slot] = argument.name
    return {x: _completed(names) for x, names in found.items()}


def _completed(names: Sequence[str | None]) -> list[str]:
    unused = (n for n in ("d", *(f"d{m}" for m in range(1, len(names) + 1))) if n not in names)
    return [name or next(unused) for name in names]
