"""The meaning of the language: a term and numbers for its free variables become a number or a NumPy array.

This is the oracle of all tests: plain loops over index values, one case a node, nothing clever. Section 2 of the
paper says what the nodes mean; branches of functions are NumPy's (a real root of a negative number is nan).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from itertools import product
from math import exp, hypot, inf, isnan, log, nan, prod

import numpy as np

from combdiff.errors import ArrayError, UnsupportedError
from combdiff.language.vocabulary import DERIVATIVES
from combdiff.meaning.dense import Alternative, alternatives
from combdiff.meaning.determinants import value_of
from combdiff.meaning.linear_maps import LinearMap, Space, newton, probed, space_of
from combdiff.meaning.quadrature import at_values, standard
from combdiff.meaning.scalar_values import exact, raised, scalar_value
from combdiff.meaning.spectra import if_definite
from combdiff.meaning.values import (
    Array,
    Extent,
    Point,
    Scalar,
    Value,
    axes,
    called,
    fitted,
    is_array,
    out_of_range,
    sizes_of,
    span_of,
)
from combdiff.records import dataclass
from combdiff.terms.laws.matrices import matrices_of, numbers_of
from combdiff.terms.nodes import OF_MATRICES
from combdiff.terms.terms import (
    SHARES,
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Let,
    Loop,
    Mul,
    Pow,
    Proj,
    Reduce,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    domains_compared,
    subterms,
)
from combdiff.terms.traversal import interval_of_sum
from combdiff.terms.types import Domain, Index, Map, Number, Type, is_complex

__all__ = ["Scalar", "Value", "evaluate", "sizes_of", "span_of"]


def evaluate(
    term: Term, values: Mapping[Term, Value] | Mapping[Var, Value], sizes: Mapping[Domain, int] | None = None
) -> Value:
    """The value of `term`.

    >>> from combdiff.terms.terms import fresh, mul
    >>> from combdiff.terms.types import REAL, Map
    >>> n = Index(Domain("x.1"))
    >>> x, i = fresh("x", Map((n,), REAL)), fresh("i", n)
    >>> evaluate(Lam((i,), mul(App(x, (i,)), i)), {x: np.array([1.0, 2.0, 3.0])})
    array([0., 2., 6.])

    Args:
        term: any term without a derivative still to be taken of a map that is known.
        values: for free variables: numbers, arrays (entry 0 of a symmetric domain is −M), callables for unknown maps,
            and for their derivatives callables under the keys `Diff("grad", R)` and `Diff("pullback", g)`. Adjoints
            and inverses of linear maps are found by probing, a root by Newton's method from 0 (nan if it fails).
        sizes: how many values each domain has; read off the arrays where it is not given.

    Returns:
        A number; an array for a map of indices to numbers; a Python callable for any other map; a tuple for a tuple.

    Raises:
        ArrayError: arrays do not fit the types, a size is not known, or an index leaves its range.
        UnsupportedError: an integral over the real line that no δ makes finite, no derivative, an integer too large.
    """
    extent = Extent()
    for domain, size in (sizes or {}).items():
        extent.note(domain, size, "the sizes given")
    try:
        given = {k: fitted(k.type, value, called(k), extent) for k, value in values.items()}
        return _Scope(given, extent, frozenset(given)).value(term)
    except OverflowError as problem:  # Python's integers are of any size
        raise UnsupportedError(f"an integer is too large ({problem})", remedy="scale the program") from problem


def _is_dense(var: Var) -> bool:
    return isinstance(var.kind, Number)


def _is_dirac(left: Term, right: Term) -> bool:
    """Whether δ(left, right, ·) compares numbers rather than indices."""
    return any(isinstance(t.type, Number) and not (isinstance(t, Const) and t.is_integer) for t in (left, right))


@dataclass(frozen=True, slots=True)
class _Scope:
    """Values of the variables in sight, and the sizes of domains.

    What is `made` of maps of nothing but `inputs` is kept: to make it takes long.
    """

    values: Mapping[Term, Value]
    extent: Extent
    inputs: frozenset[Term]
    made: dict[Hashable, Value] = field(default_factory=dict)

    def with_(self, variables: Sequence[Term], values: Sequence[Value], extent: Extent | None = None) -> _Scope:
        inner = {**self.values, **dict(zip(variables, values, strict=True))}
        return _Scope(inner, extent or self.extent, self.inputs, self.made)

    def value(self, t: Term) -> Value:
        match t:
            case Var():
                return self.given(t)
            case Diff(kind, of):
                return self.given(t) if t in self.values or kind in DERIVATIVES else self.made_of(kind, of)
            case Reduce("ties" | "softmax", _):
                return self.shares(t)
            case Reduce(kind, _) if kind in OF_MATRICES:
                return self.of_matrix(t)
            case Reduce("cross", _):
                return self.cross(t)
            case App(Reduce("argmax" | "argmin", _) as reduction, ()):
                return self.first(reduction)
            case Loop():
                return self.looped(t)
            case Lam(params, _):
                return self.array(t) if is_array(t.type) else self.callable(t, params)
            case App(function, args):
                return self.applied(t, self.value(function), self.arguments(function.type, args), function.type)
            case Tuple(items):
                return tuple(self.value(item) for item in items)
            case Proj(item, of):
                whole = self.value(of)
                assert isinstance(whole, tuple), "only tuples have items"
                return whole[item]
            case Let(bindings, body):
                scope = self
                for var, bound in bindings:
                    scope = scope.with_((var,), (if_definite(var.type, scope.value(bound)),))
                return scope.value(body)
            case _:
                return self.number(t)

    def number(self, t: Term) -> Scalar:
        match t:
            case Const(real, imag):
                return exact(real) if not imag else complex(exact(real), exact(imag))
            case Add(terms):
                return sum((self.number(u) for u in terms[1:]), self.number(terms[0]))
            case Mul(factors):
                result: Scalar = 1
                for factor in factors:
                    result = result * self.number(factor)
                return result
            case Pow(base, exponent):
                return raised(self.number(base), self.number(exponent), is_complex(t.type))
            case Conj(of):
                return self.number(of).conjugate()
            case Call(name, args):
                return scalar_value(name, [self.number(a) for a in args], any(is_complex(a.type) for a in args))
            case Sum(indices, body):
                return self.summed(indices, body)
            case Reduce(kind, _) if kind not in SHARES | OF_MATRICES | {"cross"}:
                return self.reduced(t)
            case Delta(left, right, body):
                return self.number(body) if self.equal(left, right) else 0
            case Indicator(left, right, body):
                return self.number(body) if _part(self.number(left)) <= _part(self.number(right)) else 0
            case _:
                found = self.value(t)
                assert isinstance(found, int | float | complex), f"{type(t).__name__} is no number"
                return found

    def made_of(self, kind: str, of: Term) -> Value:
        """The adjoint or the inverse of a linear map, found by probing it; the root that Newton's method finds."""
        assert isinstance(of.type, Map), "only maps have an adjoint, an inverse or a root"
        source, target = (space_of(k, self.shape) for k in (of.type.params[0], of.type.result))
        if not of.free <= self.inputs:
            return self.newly_made(kind, of, source, target)
        key = kind, of, source, target
        if key not in self.made:
            self.made[key] = self.newly_made(*key)
        return self.made[key]

    def newly_made(self, kind: str, of: Term, source: Space, target: Space) -> Value:
        function = self.value(of)
        assert callable(function), "a map of more than indices"
        if kind == "root":
            return newton(function, source)
        linear = function if isinstance(function, LinearMap) else probed(function, source, target)
        return linear.adjoint if kind == "adjoint" else linear.inverse

    def shape(self, kind: Map) -> tuple[int, ...]:
        return tuple(self.extent.of(domain) for domain in axes(kind))

    def given(self, t: Term) -> Value:
        if t in self.values:
            return self.values[t]
        if isinstance(t, Diff) and isinstance(t.of, Var | Diff):
            raise UnsupportedError(f"{called(t)} has no value", remedy="give a callable for it")
        if isinstance(t, Diff):
            raise UnsupportedError(f"{t.kind} of a known map has still to be taken", remedy="differentiate first")
        raise ArrayError(f"{called(t)} has no value", remedy="give a number or an array for it")

    def applied(self, t: App, function: Value, args: Sequence[Value], kind: Type) -> Value:
        if callable(function):
            return _called(function, args)
        assert isinstance(kind, Map) and isinstance(function, np.ndarray), "only maps are applied"
        name = called(t.function)
        # the array has further axes where the map returns a map of indices
        slots = enumerate(zip(args, kind.params, strict=True), 1)
        entry = function[tuple(x for n, (a, p) in slots for x in self.place(a, p, f"slot {n} of {name}"))]
        if isinstance(entry, np.ndarray):
            return entry
        found: Scalar = entry.item()
        if isinstance(kind.result, Index):
            self.check_entry(kind.result, int(found.real), name, args)
            return int(found.real)
        return found

    def check_entry(self, kind: Index, entry: int, name: str, args: Sequence[Value]) -> None:
        """An entry of an array of integers is one of the values of its index."""
        domain = kind.domain
        size = None if domain is None else self.extent.sizes.get(domain, domain.count)
        if domain is None or size is None:
            return
        if not domain.first(size) <= entry < domain.first(size) + size:
            raise out_of_range(f"{name}[{', '.join(map(str, args))}]", entry, domain, size)

    def arguments(self, kind: Type, args: Sequence[Term]) -> list[Value]:
        """The values of arguments: of an index an integer, of one of a lattice as many as it has directions."""
        assert isinstance(kind, Map), "only maps are applied"
        found: list[Value] = []
        for a, p in zip(args, kind.params, strict=True):
            directions = p.domain.directions if isinstance(p, Index) and p.domain else 1
            if directions == 1:
                found.append(self.value(a))
            else:
                point = self.point(a)
                found.append(point * (directions // len(point)))
        return found

    def point(self, t: Term) -> Point:
        """The value of an index expression as a vector."""
        match t:
            case Add(terms):
                parts = [self.point(u) for u in terms]
                # a number among points is 0, the origin
                width = max(map(len, parts))
                return tuple(sum(p[n] for p in parts if len(p) == width) for n in range(width))
            case Mul((Const(factor), rest)):
                return tuple(int(factor) * x for x in self.point(rest))
            case _:
                found = self.value(t)
                point = found if isinstance(found, tuple) else (found,)
                integers = tuple(x for x in point if isinstance(x, int))
                assert len(integers) == len(point), "indices are integers"
                return integers

    def place(self, value: Value, kind: Type, name: str) -> Point:
        """Where in the axes of a slot the entry for an index value lies."""
        assert isinstance(kind, Index) and kind.domain, "slots of arrays take indices"
        domain = kind.domain
        if isinstance(value, int) and not domain.listed:
            return (self.along(domain, value, name),)
        point = tuple(x for x in (value if isinstance(value, tuple) else (value,)) if isinstance(x, int))
        if domain.listed:
            known = self.extent.points(domain)
            if point not in known:
                raise ArrayError(f"{value} is not in the list of {name}", remedy=f"add it to {domain.name}")
            return (known.index(point),)
        return tuple(self.along(axis, x, name) for axis, x in zip(domain.axes, point, strict=True))

    def along(self, axis: Domain, value: int, name: str) -> int:
        """Where along one axis."""
        size = self.extent.of(axis)
        if axis.periodic:
            return value % size if size else 0
        place = value - axis.first(size)
        if not 0 <= place < size:
            raise ArrayError(
                f"index {value} is outside {name}, which holds {size} values",
                remedy="they run from −M to M" if axis.symmetric else f"indices count from {axis.first(size)}",
            )
        return place

    def array(self, t: Lam) -> Array:
        """A map of indices as an array; maps that return maps of indices have an axis for each."""
        shape = [self.extent.of(domain) for domain in axes(t.type)]
        result: Array = np.zeros(shape, np.complex128 if is_complex(t.type) else np.float64)
        ranges = self.ranges(t.params)
        own = sum(len(p.kind.domain.axes) for p in t.params if isinstance(p.kind, Index) and p.kind.domain)
        for place, point in zip(np.ndindex(*shape[:own]), product(*ranges), strict=True):
            entry = self.with_(t.params, point).value(t.body)
            assert isinstance(entry, int | float | complex | np.ndarray), "entries are numbers or arrays"
            result[place] = entry
        return result

    def ranges(self, indices: Sequence[Var]) -> list[list[Value]]:
        found: list[list[Value]] = []
        for index in indices:
            assert isinstance(index.kind, Index) and index.kind.domain is not None
            points = self.extent.points(index.kind.domain)
            found.append([p if index.kind.domain.directions > 1 else p[0] for p in points])
        return found

    def callable(self, t: Lam, params: Sequence[Var]) -> Callable[..., Value]:
        def function(*args: Value) -> Value:
            if len(args) != len(params):
                raise ArrayError(
                    f"a map of {len(params)} arguments is given {len(args)}",
                    remedy="give as many arguments as the map has parameters",
                )
            extent = Extent(self.extent)
            found = [fitted(p.kind, a, p.name, extent) for p, a in zip(params, args, strict=True)]
            return self.with_(params, found, extent).value(t.body)

        return function

    def looped(self, t: Loop) -> Value:
        """A state of a recurrence: the last, or an array of those before each step."""
        before, state = self.states(t)
        if t.kind == "last":
            return state[t.item]
        assert isinstance(t.type, Map), "the states are a map of time"
        found: Array = np.zeros(self.shape(t.type), np.complex128 if is_complex(t.type) else np.float64)
        for place, states in enumerate(before):
            assert isinstance(states, tuple), "a step makes a tuple"
            found[place] = np.asarray(states[t.item])
        return found

    def states(self, t: Loop) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """All states before each step, and the last: computed once for all that are asked for."""
        assert isinstance(t.step, Lam), "a step is a map"
        given = tuple(self.values.get(v, 0) for v in sorted(t.free, key=lambda v: v.uid))
        key = (Loop, t.backward, t.step, t.start, *map(id, given))
        if key not in self.made:
            (points,) = self.ranges([t.time])
            state = self.value(t.start)
            before: list[Value] = []
            for point in reversed(points) if t.backward else points:
                before.append(state)
                assert isinstance(state, tuple), "a step makes a tuple"
                state = self.with_(t.step.params, (*state, point)).value(t.step.body)
            # what is known by its place in memory stays there
            self.made[key] = tuple(reversed(before) if t.backward else before), state, *given
        kept = self.made[key]
        assert isinstance(kept, tuple), "states, and what they were made of"
        whole, last = kept[:2]
        assert isinstance(whole, tuple) and isinstance(last, tuple), "a step makes a tuple"
        return whole, last

    def summed(self, indices: Sequence[Var], body: Term) -> Scalar:
        if any(isinstance(v.kind, Map) for v in indices):
            raise UnsupportedError(
                "a sum over a space of functions or tensors has no numerical value", remedy="use the formula"
            )
        dense = tuple(v for v in indices if _is_dense(v))
        finite = tuple(v for v in indices if not _is_dense(v))
        if along := tuple(v for v in dense if interval_of_sum(v, body)):
            return self.by_rule(along, tuple(v for v in indices if v not in along), body)
        if (peak := _peak_that_bends(dense, body)) is not None:
            return self.at_root(dense[0], finite, body, peak)
        if dense:
            return sum(self.integral(a, finite) for a in alternatives(dense, body))
        result: Scalar = 0
        for point in product(*self.ranges(finite)):
            result = result + self.with_(finite, point).number(body)
        return result

    def at_root(self, v: Var, others: Sequence[Var], body: Term, peak: Delta) -> Scalar:
        """An integral over a δ of a function that is no affine one: at its root, which is taken to be the only one."""

        def side(x: Value) -> Scalar:
            there = self.with_([v], [x])
            return there.number(peak.left) - there.number(peak.right)

        found = newton(side, Space((), over_complex=False))
        assert isinstance(found, float), "a real number"
        far, near = ((side(found + h) - side(found - h)) / (2 * h) for h in (2e-3, 1e-3))
        slope, root = (4 * near - far) / 3, found
        without = Traverser(lambda u: peak.body if u == peak else u)(body)
        inner = Sum(tuple(others), without) if others else without
        return self.with_([v], [root]).number(inner) / abs(slope)

    def by_rule(self, along: Sequence[Var], others: Sequence[Var], body: Term) -> Scalar:
        """An integral over intervals, by rules that are good for smooth integrands."""
        rules = [standard(at_values(i, self.values)) for v in along if (i := interval_of_sum(v, body))]
        inner = Sum(tuple(others), body) if others else body
        result: Scalar = 0
        for nodes in product(*(zip(*rule, strict=True) for rule in rules)):
            weight = prod(float(w) for _, w in nodes)
            result = result + weight * self.with_(along, [float(x) for x, _ in nodes]).number(inner)
        return result

    def of_matrix(self, t: Reduce) -> Value:
        """A function of matrices: computed once where many of its entries are asked for."""
        given = tuple(self.values.get(v, 0) for v in sorted(t.free, key=lambda v: v.uid))
        key = t, *map(id, given)
        if key not in self.made:
            matrices, numbers = map(self.array, matrices_of(t)), map(self.array, numbers_of(t))
            found = value_of(t.kind, *matrices, numbers=list(numbers))
            # what is known by its place in memory stays there
            self.made[key] = found, *given
        kept = self.made[key]
        assert isinstance(kept, tuple), "a value, and what it was made of"
        return kept[0]

    def cross(self, t: Reduce) -> Array:
        """The vector product, component by component."""
        scopes = [self.with_(t.indices, (n,)) for n in range(3)]
        (a, b, c), (d, e, f) = ([s.number(vector) for s in scopes] for vector in (t.mark, t.body))
        return np.array([b * f - c * e, c * d - a * f, a * e - b * d])

    def reduced(self, t: Reduce) -> Scalar:
        """The product, the maximum or the minimum of what is marked; of nothing 1, −∞, ∞."""
        if t.kind == "norm":
            return hypot(*(abs(v) for v in self.marked(t)))
        if t.kind == "logsumexp":
            scopes = [self.with_(t.indices, point) for point in product(*self.ranges(t.indices))]
            weighed = [(_part(s.number(t.mark)), s) for s in scopes]
            return logsumexp([_part(s.number(t.body)) for w, s in weighed if w], [w for w, _ in weighed if w])
        result: Scalar = {"prod": 1, "maximum": -np.inf, "minimum": np.inf}[t.kind]
        for value in self.marked(t):
            result = result * value if t.kind == "prod" else _better(t.kind, result, _part(value))
        return result

    def first(self, t: Reduce) -> Value:
        """The index at which the extremum of what takes part is first reached; of nothing the first index."""
        (points,) = self.ranges(t.indices)
        found = [(p, self.with_(t.indices, (p,))) for p in points]
        known = [(_part(s.number(t.body)), p) for p, s in found if s.number(t.mark) == 1]
        if not points:
            raise ArrayError(f"{t.kind} runs over an empty range", remedy="give arrays with at least one entry")
        best = max if t.kind == "argmax" else min
        # Python's functions return the first of what is equal
        return best(known, key=lambda pair: pair[0])[1] if known else points[0]

    def marked(self, t: Reduce) -> list[Scalar]:
        """The numbers that take part."""
        scopes = [self.with_(t.indices, point) for point in product(*self.ranges(t.indices))]
        return [s.number(t.body) for s in scopes if s.number(t.mark) == 1]

    def shares(self, t: Reduce) -> Array:
        """1/m for each of the m largest numbers that are marked, 0 for the others; or exp(e)/Σ exp(e)."""
        ranges = self.ranges(t.indices)
        scopes = [self.with_(t.indices, point) for point in product(*ranges)]
        weights = [_part(s.number(t.mark)) for s in scopes]
        values = [_part(s.number(t.body)) if w else None for w, s in zip(weights, scopes, strict=True)]
        known = [v for v in values if v is not None]
        most = max(known, default=None)
        if any(map(isnan, known)):
            found = np.full(len(values), nan)
        elif t.kind == "softmax" and most == -inf:
            found = np.zeros(len(values))
        elif t.kind == "softmax" and most is not None:
            found = np.array([0.0 if v is None else w * exp(v - most) for w, v in zip(weights, values, strict=True)])
        else:
            found = np.array([float(v is not None and v == most) for v in values])
        shape = [self.extent.of(axis) for i in t.indices for axis in _axes_of(i)]
        shares: Array = (found / (found.sum() if found.any() else 1.0)).reshape(shape)
        return shares

    def integral(self, found: Alternative, outer: Sequence[Var]) -> Scalar:
        """One product of δs and a factor, every dense variable solved for; a sum over the finite indices is left."""
        indices = (*outer, *found.indices)
        result: Scalar = 0
        for point in product(*self.ranges(indices)):
            scope = self.with_(indices, point)
            if all(scope.equal(left, right) for left, right in found.conditions):
                result = result + scope.number(found.factor) / scope.jacobian(found)
        return result

    def jacobian(self, found: Alternative) -> float:
        """Dirac's |a| of δ(a t, c), squared for a complex number, which has two directions."""
        result = 1.0
        for coefficient, over_complex in found.coefficients:
            size = abs(self.number(coefficient))
            if not size:
                raise UnsupportedError(
                    "an integral over the real line has no finite value here",
                    remedy="give its variable a domain (@domain) to sum over",
                )
            result *= size * size if over_complex else size
        return result

    def equal(self, left: Term, right: Term) -> bool:
        if isinstance(left.type, Map):
            raise UnsupportedError(
                "the δ of whole tensors or functions has no numerical value",
                remedy="use the formula: Σ_f δ(f, g, e) over all functions f is e at f = g",
            )
        indices = domains_compared(left, right)
        width = max((d.directions for d in indices), default=1)
        if width > 1:
            return self.meet(left, right, width, next((d for d in indices if d.periodic), None))
        a, b = self.number(left), self.number(right)
        if _is_dirac(left, right):
            if a == b:
                raise UnsupportedError(
                    "Dirac's δ of equal numbers has no finite value outside an integral",
                    remedy="integrate over one of its variables",
                )
            return False
        modulus = self.modulus(domains_compared(left, right))
        if modulus:
            return bool((_part(a) - _part(b)) % modulus == 0)
        return a == b

    def meet(self, left: Term, right: Term, directions: int, ring: Domain | None) -> bool:
        """Whether two points of a lattice are one, modulo the sizes of its directions where it is periodic."""
        a, b = (p * (directions // len(p)) for p in (self.point(left), self.point(right)))
        if ring is None:
            return a == b
        return all((x - y) % self.extent.of(axis) == 0 for x, y, axis in zip(a, b, ring.axes, strict=True))

    def modulus(self, domains: Sequence[Domain]) -> int:
        """The size of the periodic one of the domains that are compared, else 0."""
        return next((self.extent.of(domain) for domain in domains if domain.periodic), 0)


def _called(function: Callable[..., Value], args: Sequence[Value]) -> Value:
    """The value of a function that is given; nan where Python says that there is none, which a guard may exclude."""
    try:
        return function(*args)
    except ArithmeticError:
        return float("nan")


def logsumexp(numbers: Sequence[float], weights: Sequence[float]) -> float:
    """log Σ w exp(x); −∞ of nothing, nan where the sum is below 0.

    >>> print(logsumexp([1000.0], [1.0]), logsumexp([], []), logsumexp([0.0], [-1.0]), logsumexp([inf], [1.0]))
    1000.0 -inf nan inf
    """
    most = max(numbers, default=-inf)
    if most == -inf:
        return most
    if most == inf:
        return inf if all(w > 0 for w, x in zip(weights, numbers, strict=True) if x == inf) else nan
    added = sum(w * exp(x - most) for w, x in zip(weights, numbers, strict=True))
    return most + log(added) if added > 0 else -inf if added == 0 else nan


def _better(kind: str, one: Scalar, other: float) -> Scalar:
    if isnan(other) or isnan(_part(one)):
        return nan
    return max(_part(one), other) if kind == "maximum" else min(_part(one), other)


def _axes_of(index: Var) -> Sequence[Domain]:
    assert isinstance(index.kind, Index) and index.kind.domain is not None, "what is reduced over is an index"
    return index.kind.domain.axes


def _part(value: Scalar) -> float:
    return value.real


def _peak_that_bends(dense: Sequence[Var], body: Term) -> Delta | None:
    """The one δ of an integral over one number, if it compares something that is no affine function of it."""
    if len(dense) != 1 or is_complex(dense[0].kind):
        return None
    peaks = {u for u in subterms(body) if isinstance(u, Delta) and dense[0] in u.left.free | u.right.free}
    peak = next(iter(peaks), None)
    if len(peaks) != 1 or peak is None or not isinstance(peak.left.type, Number):
        return None
    sides = (u for e in (peak.left, peak.right) for u in subterms(e) if dense[0] in u.free)
    return peak if any(map(_bends, sides)) else None


def _bends(t: Term) -> bool:
    """Whether it is a power or a function, which is taken to have one root; an unknown one must be declared so."""
    match t:
        case App(function=Var(kind=Map(increasing=increasing))):
            return increasing
        case _:
            return isinstance(t, Pow | Call)
