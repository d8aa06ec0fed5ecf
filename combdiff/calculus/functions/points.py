"""Functions under integrals are differentiated as arrays of their values: what is shared stays shared.

    ∫ exp(-f(x)) + tanh(f(x)) dx      is differentiated as      Σ_p exp(-f(p)) + tanh(f(p))

δ/δf at a point and ∂/∂f(p) obey the same rules as long as a function is varied at the points of integrals alone: the B
and C rules, Σ_p δ(p, q, k(p)) = k(q), and everything that chooses names for values of a result. Definitions under an
integral become functions of the point, each with one cotangent, so that the cost is linear in the length of a program.
What jumps is not differentiated so, for the derivative of a jump under an integral is a δ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field

from combdiff.calculus.jumps.moving import may_jump
from combdiff.records import dataclass
from combdiff.terms.terms import (
    App,
    Call,
    Diff,
    Lam,
    Let,
    Loop,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    apply,
    bound_by,
    children,
    fresh,
    let,
    rebuild,
    subterms,
    total,
)
from combdiff.terms.types import REAL, Domain, Index, Map, Number, Type, interval_of, is_complex, is_real


@dataclass(slots=True)
class Points:
    """A map whose functions are varied at the points of integrals alone, as a map of arrays.

    `functions` are the functions by the arrays that take their places, `places` the arrays that hold where the points
    are, and `kinds` what the points of a domain are.
    """

    map: Lam
    functions: Mapping[Var, Var]
    places: Collection[Var]
    kinds: Mapping[Domain, Type]
    _continuous: _Continuous = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._continuous = _Continuous(self)

    @classmethod
    def of(cls, f: Lam) -> Points | None:
        """None where a function is varied elsewhere, or there is none, or where something jumps."""
        if not any(_is_of_points(p.kind) for p in f.params) or any(map(_is_in_the_way, subterms(f.body))):
            return None
        found = _Discrete(f)
        return found.points() if found.fits else None

    def back(self, f: Lam) -> Lam:
        """A map of arrays in functions of the points again; of equal ones equal maps, in their own orders."""
        self._continuous.known.clear()
        found = self._continuous(f)
        assert isinstance(found, Lam), "a map stays one"
        return Lam(found.params, _with_numbers(found.body))


def _is_of_points(kind: Type) -> bool:
    """Whether it is a function of real numbers alone, with numbers for values, that is not declared to be linear."""
    of_numbers = isinstance(kind, Map) and isinstance(kind.result, Number) and all(map(is_real, kind.params))
    return of_numbers and isinstance(kind, Map) and bool(kind.params) and not kind.linear


def _is_in_the_way(t: Term) -> bool:
    """What jumps; and phases, in which integrals over a line meet as sums over points do not."""
    return isinstance(t, Loop) or may_jump(t) or (isinstance(t, Call) and t.primitive == "exp" and is_complex(t.type))


def _has_symmetries(v: Var) -> bool:
    return isinstance(v.kind, Map) and bool(v.kind.symmetries)


class _Discrete:
    """The way there. `fits` says whether every function that is varied stands at points only."""

    def __init__(self, f: Lam) -> None:
        self.f = f
        self.points_of: dict[Var, Var] = {}
        self.arrays: dict[Var, Var] = {}
        self.places: dict[Domain, Var] = {}
        self.kinds: dict[Domain, Type] = {}
        self.known: dict[Term, Term] = {}
        parts = list(subterms(f.body))
        self.own = {v for t in parts if isinstance(t, Lam | Sum) for v in bound_by(t) if is_real(v.kind)}
        varied = {p for p in f.params if isinstance(p.kind, Map) and not p.kind.is_array}
        varied |= {v for t in parts if isinstance(t, Let) for v, _ in t.bindings if _is_of_points(v.kind)}
        elsewhere = {v for t in parts for v in self._elsewhere(t)}
        self.functions = {v for v in (*varied, *f.body.free) if _is_of_points(v.kind) and v not in elsewhere}
        # the laws of a kernel's symmetry want one kind of arguments
        symmetric = any(map(_has_symmetries, elsewhere))
        plain = not any(map(_has_symmetries, varied))
        self.fits = varied <= self.functions and plain and not symmetric

    def _elsewhere(self, t: Term) -> Iterator[Var]:
        """The functions that a term holds in another way than at different points of their own domains."""
        below = children(t)
        if isinstance(t, Diff):
            # the unknown of an equation is no point of an integral
            yield from (v for v in t.of.free if _is_of_points(v.kind))
        if isinstance(t, App) and isinstance(t.function.type, Map):
            at_points = all(isinstance(a, Var) and a in self.own for a in t.args) and len({*t.args}) == len(t.args)
            below = below[1:] if at_points and [a.type for a in t.args] == [*t.function.type.params] else below
        yield from (u for u in below if isinstance(u, Var) and _is_of_points(u.kind))

    def points(self) -> Points:
        body = self(self.f.body)
        params = tuple(self.array(p) if p in self.functions else p for p in self.f.params)
        functions = {array: f for f, array in self.arrays.items()}
        return Points(Lam(params, body), functions, {*self.places.values()}, self.kinds)

    def domain(self, kind: Type) -> Domain:
        """The points of an interval, or all real numbers, as the values of an index."""
        interval = interval_of(kind)
        found = Domain("points" if interval is None else f"points of {interval.name}")
        self.kinds[found] = kind
        return found

    def array(self, f: Var) -> Var:
        """The array of the values of a function."""
        if f not in self.arrays:
            assert isinstance(f.kind, Map), "a function"
            slots = tuple(Index(self.domain(kind)) for kind in f.kind.params)
            self.arrays[f] = fresh(f.name, Map(slots, f.kind.result, f.kind.symmetries))
        return self.arrays[f]

    def point(self, x: Var) -> Var:
        """The index of a point."""
        if x not in self.points_of:
            self.points_of[x] = fresh(x.name, Index(self.domain(x.kind)))
        return self.points_of[x]

    def place(self, x: Var) -> Term:
        """The number that a point is."""
        domain = self.domain(x.kind)
        if domain not in self.places:
            # no name that an index might have
            self.places[domain] = fresh("·", Map((Index(domain),), REAL))
        return App(self.places[domain], (self.point(x),))

    def __call__(self, t: Term) -> Term:
        if t not in self.known:
            self.known[t] = self._step(t)
        return self.known[t]

    def _step(self, t: Term) -> Term:
        match t:
            case Var():
                return self.place(t) if t in self.own else t
            case App(Var() as f, args) if f in self.functions:
                return App(self.array(f), tuple(self.point(x) for x in args if isinstance(x, Var)))
            case Lam(params, body):
                return Lam(tuple(map(self._bound, params)), self(body))
            case Sum(indices, body):
                return total([*map(self._bound, indices)], self(body))
            case Let(bindings, body):
                found = [(self.array(v) if v in self.functions else v, self(e)) for v, e in bindings]
                return let(found, self(body))
            case Tuple(items):
                return Tuple(tuple(map(self, items)))
            case _:
                return rebuild(t, [self(u) for u in children(t)]) if children(t) else t

    def _bound(self, x: Var) -> Var:
        return self.point(x) if x in self.own else x


class _Continuous:
    """The way back: arrays whose slots are points are functions, also those that have been made since."""

    def __init__(self, points: Points) -> None:
        self.points = points
        self.variables: dict[Var, Var] = dict(points.functions)
        self.known: dict[Term, Term] = {}

    def variable(self, v: Var) -> Var:
        """What a variable stands for: an index of a point for a number, an array for a function."""
        if v not in self.variables:
            kind = self._kind(v.kind)
            self.variables[v] = v if kind == v.kind else fresh(v.name, kind)
        return self.variables[v]

    def _kind(self, kind: Type) -> Type:
        match kind:
            case Index(Domain() as domain) if domain in self.points.kinds:
                return self.points.kinds[domain]
            case Map(params, result) if any(self._kind(p) != p for p in params):
                return Map(tuple(map(self._kind, params)), result)
            case _:
                return kind

    def __call__(self, t: Term) -> Term:
        if t not in self.known:
            self.known[t] = self._step(t)
        return self.known[t]

    def _step(self, t: Term) -> Term:
        match t:
            case Var():
                return self.variable(t)
            case App(Var() as f, (p,)) if f in self.points.places:
                return self(p)
            case Lam(params, body):
                return Lam(tuple(map(self.variable, params)), self(body))
            case Sum(indices, body):
                return total([*map(self.variable, indices)], self(body))
            case Let(bindings, body):
                return let([(self.variable(v), self(e)) for v, e in bindings], self(body))
            case Tuple(items):
                return Tuple(tuple(map(self, items)))
            case _:
                return rebuild(t, [self(u) for u in children(t)]) if children(t) else t


def _with_numbers(body: Term) -> Term:
    """A function with the functions that it uses at its own arguments alone as numbers below them.

    `h = s -> exp(-f(s)); x -> h(x)^2` is `x -> begin h = exp(-f(x)); h^2 end`.
    """
    if not isinstance(body, Let) or not isinstance(body.body, Lam):
        return body
    result = body.body
    own = {v for v in result.params if is_real(v.kind)}
    at: dict[Var, tuple[Term, ...]] = {}
    inside: dict[Var, Term] = {}
    core = result.body
    for var, value in reversed(body.bindings):
        calls = [u for t in (core, *inside.values()) for u in subterms(t, App) if u.function is var]
        places = {u.args for u in calls}
        bare = any(var in children(u)[isinstance(u, App) :] for t in (core, *inside.values()) for u in subterms(t))
        if bare or len(places) != 1 or not all(isinstance(a, Var) and a in own for a in next(iter(places))):
            continue
        (at[var],) = places
        inside[var] = apply(value, *at[var])
    kept = [(v, e) for v, e in body.bindings if v not in inside]
    if not inside or any(not e.free.isdisjoint(inside) for _, e in kept):
        return body
    names = {App(v, args): fresh(v.name, inside[v].type) for v, args in at.items()}
    named = Traverser(lambda u: names.get(u, u) if isinstance(u, App) else u)
    numbers = [(names[App(v, at[v])], named(e)) for v, e in reversed(inside.items())]
    return let(kept, Lam(result.params, let(numbers, named(core))))
