"""Pushforwards of λ-terms in forward mode, from the pushforward rules.

    pushforward_of(f)   (x…, k…) -> ℱ(f)(x, k), the derivative of f at x along k          (Eq. 10)

The body of f is a list of values (lets) followed by an expression. Each value that the unknowns reach has a tangent
beside it, computed once: the sum over all variables that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field

from combdiff.calculus.combinators import eliminate
from combdiff.calculus.definitions.floating import Binding, float_lets
from combdiff.calculus.definitions.naming import name_arguments
from combdiff.calculus.demands import as_used, demanded, guarded_definitions
from combdiff.calculus.implicit import is_implicit, multiplier, residual
from combdiff.calculus.jumps.conditions import moves, numbers_among, written_out
from combdiff.calculus.jumps.peaks import without_moving_peaks
from combdiff.calculus.loops.recurrences import LoopBody
from combdiff.calculus.primitives import zero_of_type
from combdiff.calculus.pushforward import push_forward, sum_of
from combdiff.calculus.reverse import check_differentiable, cotangent_names, cotangent_type, met_integrals, reached
from combdiff.errors import UnsupportedError
from combdiff.language.printing.names import names_in
from combdiff.records import dataclass
from combdiff.terms.conditions.guards import Guard, partial_values, under, unguarded
from combdiff.terms.conditions.kinks import without_needless_conditions
from combdiff.terms.terms import (
    Add,
    Delta,
    Lam,
    Loop,
    Sum,
    Term,
    Tuple,
    Var,
    apply,
    body_of,
    fresh,
    is_zero,
    items_of,
    let,
    refreshed,
    substitute,
    subterms,
    tuple_of,
)
from combdiff.terms.types import Number


@dataclass(slots=True)
class Forward:
    """The tangents that are known so far, of the unknowns and of the values that they reach.

    `values` are the definitions of those variables that are values of the program. `partial` are the values that may be
    infinite, None where nothing is guarded; `guards` what guards their uses. `ask` is called often, and may raise to
    stop.
    """

    tangents: dict[Var, Term]
    values: dict[Var, Term] = field(default_factory=dict)
    partial: set[Var] | None = None
    guards: dict[Var, Guard] = field(default_factory=dict)
    ask: Callable[[], None] = lambda: None

    def tangent(self, value: Term) -> Term:
        """The tangent of what is made of variables whose tangents are known: a sum over its terms and variables."""
        if isinstance(value, Tuple):
            return Tuple(tuple(map(self.tangent, value.items)))
        parts: list[Term] = []
        for term in self._terms(value):
            self.ask()
            for x in self.tangents:
                if x in term.free:
                    parts += push_forward(eliminate(x, term), self.tangents[x], self.partial)
        return sum_of(parts, value.type) if parts else zero_of_type(value.type)

    def _terms(self, value: Term) -> Iterator[Term]:
        """The terms that are differentiated one by one, δ and conditions of numbers settled."""
        value = without_moving_peaks(written_out(value, self.values), self.tangents)
        if isinstance(value, Lam):
            _refuse_peaks(value, self.tangents)
        yield from value.terms if isinstance(value, Add) and isinstance(value.type, Number) else (value,)

    def through(self, bindings: Sequence[Binding], *, share: bool = True) -> list[Binding]:
        """Tangents of values, first value first; returns the bindings that they make, each after what it needs."""
        found: list[Binding] = []
        for var, value in bindings:
            if self.tangents.keys().isdisjoint(value.free):
                continue
            if is_implicit(value):
                inner, step = self.solved(var, value)
                found += inner
            elif isinstance(value, Loop):
                step = self.looped(value)
                if is_zero(step):
                    continue
            else:
                step = self.tangent(as_used(value, self.guards.get(var, ()), self.partial or ()))
            if share and not _adds_guarded_terms(step):
                found.append((fresh(f"{var.name}_dot", cotangent_type(var.kind)), step))
                step = _under_its_guard(found[-1][0], step)
            self.tangents[var] = step
        return found

    def solved(self, y: Var, value: Term) -> tuple[list[Binding], Term]:
        """Of a value y that solves g(y) = 0: ẏ = −H⁻¹(ġ), with H = ℱ(y ↦ g)(y, ·) and ġ what the equation captures."""
        inside, core = name_arguments((y, *self.tangents), *float_lets(residual(value, y)), self.ask)
        outer = Forward(dict(self.tangents), {**self.values, **dict(inside)}, self.partial, dict(self.guards), self.ask)
        if outer.partial is not None:
            outer.partial.update(partial_values(inside, outer.partial))
            outer.guards.update(demanded(inside, [core], slopes=True))
        moved = outer.through(inside)
        return [*inside, *moved], multiplier(_solver(y, inside, core), outer.tangent(core))

    def looped(self, loop: Loop) -> Term:
        """The tangent of a state: of the loop of states and tangents, ṡ(t + 1) = ℱ(f)(s(t), ṡ(t)).

        Tangents that begin as 0 and stay 0 are no states.
        """
        step = LoopBody.of(loop)
        inside, core = name_arguments((*step.states, *self.tangents), step.bindings, Tuple(step.items), self.ask)
        assert isinstance(core, Tuple), "a tuple stays one"
        items = list(core.items)
        known = guarded_definitions(inside, items)
        if known is not None:
            inside, items = known.bindings, known.results
        partial, guards = (known.partial, known.guards) if known is not None else (None, {})
        first = [self.tangent(e) for e in items_of(loop.start)]
        moving = {n for n, e in enumerate(first) if not is_zero(e)}
        while True:
            dots = {n: fresh(f"{step.states[n].name}_dot", cotangent_type(step.states[n].kind)) for n in sorted(moving)}
            tangents = {**self.tangents, **{step.states[n]: dot for n, dot in dots.items()}}
            values = {**self.values, **dict(inside)}
            inner = Forward(tangents, values, None if partial is None else {*partial}, dict(guards), self.ask)
            moved = inner.through(inside)
            following = [inner.tangent(e) for e in items]
            more = {n for n, e in enumerate(following) if not is_zero(e)} - moving
            if not more:
                break
            moving |= more
        if loop.item not in dots:
            return zero_of_type(loop.type)
        body = let([*inside, *moved], Tuple((*items, *(following[n] for n in dots))))
        start = Tuple((*items_of(loop.start), *(first[n] for n in dots)))
        made = refreshed(Lam((*step.states, *dots.values(), step.time), body))
        return Loop(loop.kind, len(items) + [*dots].index(loop.item), loop.backward, made, start)


def pushforward_of(f: Lam, around: Collection[str] = (), ask: Callable[[], None] = lambda: None) -> Lam:
    """(x…, k…) -> the tangent of the value of f, for tangents of its parameters.

    The names `around` f, such as those of captured arguments, are not given to tangents.
    """
    for x in f.params:
        check_differentiable(x, by_maps=True)
    names = cotangent_names({*names_in(f), *around}, len(f.params))
    tangents = tuple(fresh(name, cotangent_type(x.kind)) for name, x in zip(names, f.params, strict=True))
    bindings, steps, pushed = forward_pass(f, dict(zip(f.params, tangents, strict=True)), ask)
    return Lam((*f.params, *tangents), without_needless_conditions(let([*bindings, *steps], tuple_of(pushed))))


def forward_pass(
    f: Lam, tangents: Mapping[Var, Term], ask: Callable[[], None] = lambda: None
) -> tuple[list[Binding], list[Binding], list[Term]]:
    """The values of f, the tangents of its values, and those of what it returns."""
    bindings, core = name_arguments(f.params, *float_lets(met_integrals(f)), ask)
    outputs = list(core.items) if isinstance(core, Tuple) else [core]
    known = guarded_definitions(bindings, outputs)
    if known is not None:
        bindings, outputs = known.bindings, known.results
    reached(f.params, bindings)  # refuses maps that are kept unknown
    partial, guards = (known.partial, known.guards) if known is not None else (None, {})
    forward = Forward(dict(tangents), dict(bindings), partial, guards, ask)
    steps = forward.through(bindings)
    return bindings, steps, [forward.tangent(e) for e in outputs]


def _under_its_guard(name: Var, tangent: Term) -> Term:
    """The name of a tangent, under the conditions outside of which this is 0: what it meets may be infinite there."""
    guard, _ = unguarded(body_of(tangent))
    if not guard:
        return name
    if not isinstance(tangent, Lam):
        return under(guard, name)
    own = {s: fresh(s.name, s.kind) for s in tangent.params}
    return Lam(tuple(own.values()), substitute(under(guard, apply(name, *tangent.params)), dict(own)))


def _adds_guarded_terms(tangent: Term) -> bool:
    """Whether it is Σ_i [c] e, which gets no name: beside 1/√0 each term counts where its c holds."""
    return isinstance(tangent, Sum) and bool(unguarded(tangent.body)[0])


def _solver(y: Var, inside: Sequence[Binding], core: Term) -> Lam:
    """H = v ↦ ℱ(y ↦ core)(y, v), where `core` uses the values `inside`."""
    v = fresh("v", cotangent_type(y.kind))
    forward = Forward({y: v}, dict(inside))
    left = forward.through(inside, share=False)
    body = forward.tangent(core)
    for var, value in reversed(left):
        body = substitute(body, {var: value})
    return Lam((v,), body)


def _refuse_peaks(value: Lam, targets: Collection[Var]) -> None:
    """A map of numbers that is a δ itself has no tangent but the derivative of that δ."""
    own, entry = numbers_among(value.params), value.body
    if own and any(moves(u, own, targets) for u in subterms(entry, Delta)):
        raise UnsupportedError(
            "the tangent of a map of numbers that is a δ, whose place moves, is the derivative of that δ",
            remedy="integrate over its variable, or use pullback",
        )
