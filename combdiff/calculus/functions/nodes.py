"""The discrete reading of a functional: functions are vectors of values at nodes, d/dx is a matrix, ∫ a weighted sum.

    ∫ y′(x)² dx      is read as      Σ_i w(i) (Σ_j D(i, j) y(j))²

The derivative by y(j) then holds the adjoint of the matrix, Σ_i D(i, j) w(i) …, exactly: it is that of the discrete
functional. Divided by w(j) it is the value of the functional derivative at node j, up to the error of the rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from combdiff.calculus.functions.by_parts import IntegrationByParts
from combdiff.calculus.functions.points import Points
from combdiff.errors import UnsupportedError
from combdiff.language.printing.names import names_in, unique_name
from combdiff.records import dataclass
from combdiff.terms.terms import (
    App,
    Diff,
    Lam,
    Let,
    Sum,
    Term,
    Traverser,
    Var,
    fresh,
    let,
    mul,
    substitute,
    total,
)
from combdiff.terms.types import REAL, Domain, Index, Interval, Map, Type, interval_of


@dataclass(frozen=True, slots=True)
class _Grid:
    """The nodes and weights of a rule, and the matrix that differentiates values at its nodes."""

    size: Index
    nodes: Var
    weights: Var
    matrix: Var


def at_nodes(program: Term, f: Lam) -> Term:
    """A program that differentiates `f`, as one of the values of its functions at nodes.

    Parameters before its own are `x_Line`, `w_Line` and `D_Line` for an interval `Line`.

    Raises:
        UnsupportedError: a function is read at another place than a variable of an integral, or is on the whole line.
    """
    jets, found = _read(program, f)
    defined = [] if jets is None else list(found.derivatives(jets))
    own = [jet[0] for jet in jets.jets] if jets is not None else list(f.params)
    discrete = Lam(tuple(found.given(p) for p in own), let(defined, found(found.points.map.body)))
    grids = tuple(v for g in found.grids.values() for v in (g.nodes, g.weights, g.matrix))
    free = discrete.free
    return Lam(tuple(v for v in grids if v in free), _with(program, f, discrete, found))


def grids_of(program: Term, f: Lam) -> dict[Interval, tuple[str, str, str]]:
    """What `at_nodes` calls the nodes, the weights and the matrix of each interval, whether it needs them or not."""
    _, found = _read(program, f)
    kinds = {interval_of(kind): found.grids[domain] for domain, kind in found.points.kinds.items()}
    return {i: (g.nodes.name, g.weights.name, g.matrix.name) for i, g in kinds.items() if i is not None}


def _read(program: Term, f: Lam) -> tuple[IntegrationByParts | None, _Discrete]:
    """The functions under d/dx, and the points of integrals as indices of nodes."""
    jets = IntegrationByParts.of(f)
    points = Points.of(f if jets is None else jets.objective)
    if points is None:
        raise UnsupportedError(
            "functions are read at other places than the variables of integrals, or something jumps there",
            remedy="write functions at variables of integrals, y(x) under sum(x::Line, …), and nothing that jumps",
        )
    return jets, _Discrete(points, names_in(program))


def _with(program: Term, f: Lam, discrete: Lam, found: _Discrete) -> Term:
    """The leading maps of a program, and the marker at the discrete functional."""
    match program:
        case Lam(params, _) if params == f.params:
            return discrete
        case Lam(params, body):
            return Lam(tuple(map(found.given, params)), _with(body, f, discrete, found))
        case Diff(kind, of):
            return Diff(kind, _with(of, f, discrete, found))
        case Let(bindings, body):
            return Let(bindings, _with(body, f, discrete, found))
    raise UnsupportedError(
        "the program has no functional below its leading maps", remedy="write the functional as its result"
    )


class _Discrete:
    """Points as indices of nodes, the places of points as entries of the nodes."""

    def __init__(self, points: Points, names: set[str]) -> None:
        self.points = points
        self.names = set(names)
        self.grids = {domain: self._grid(kind) for domain, kind in points.kinds.items()}
        self.arrays: dict[Var, Term] = {}
        self.by_function = {f: array for array, f in points.functions.items()}

    def _grid(self, kind: Type) -> _Grid:
        interval = interval_of(kind)
        if interval is None:
            raise UnsupportedError(
                "a function of any real number has no values at nodes",
                remedy="declare its domain: @domain Line begin base = R; lower = -inf; upper = inf end",
            )
        size = Index(Domain(self._unique("n"), sized=True))
        nodes, weights = (fresh(self._unique(f"{c}_{interval.name}"), Map((size,), REAL)) for c in "xw")
        return _Grid(size, nodes, weights, fresh(self._unique(f"D_{interval.name}"), Map((size, size), REAL)))

    def at(self, point: Type) -> _Grid:
        """The grid of a point."""
        assert isinstance(point, Index) and point.domain is not None, "a point is an index"
        return self.grids[point.domain]

    def of(self, array: Var) -> _Grid:
        """The grid of an array over points of one interval."""
        assert isinstance(array.kind, Map), "an array"
        return self.at(array.kind.params[0])

    def _unique(self, name: str) -> str:
        found = unique_name(name, self.names)
        self.names.add(found)
        return found

    def given(self, function: Var) -> Var:
        """The vector of a function that a call is given; all else stays."""
        array = self.by_function.get(function)
        found = function if array is None else self.array(array)
        assert isinstance(found, Var), "what is given is a variable"
        return found

    def array(self, v: Var) -> Term:
        """An array over points as one over nodes."""
        if v not in self.arrays:
            kind = self._kind(v.kind)
            self.arrays[v] = v if kind == v.kind else fresh(self.points.functions.get(v, v).name, kind)
        return self.arrays[v]

    def _kind(self, kind: Type) -> Type:
        match kind:
            case Index(Domain() as domain) if domain in self.grids:
                return self.grids[domain].size
            case Map(params, result):
                return Map(tuple(map(self._kind, params)), result, kind.symmetries)
            case _:
                return kind

    def derivatives(self, jets: IntegrationByParts) -> Iterator[tuple[Var, Term]]:
        """Definitions of y′ = D y, y″ = D y′ …"""
        for jet in jets.jets:
            arrays = [self.by_function.get(y) for y in jet]
            for before, after in pairwise(arrays):
                assert before is not None and after is not None, "functions at points"
                grid = self.of(before)
                i, j = fresh("i", grid.size), fresh("j", grid.size)
                slope = self.array(after)
                assert isinstance(slope, Var), "an array"
                yield slope, Lam((i,), total([j], mul(App(grid.matrix, (i, j)), App(self.array(before), (j,)))))

    def __call__(self, t: Term) -> Term:
        return Traverser(self._visit)(t)

    def _visit(self, t: Term) -> Term:
        match t:
            case App(Var() as place, (p,)) if place in self.points.places:
                return App(self.of(place).nodes, (p,))
            case App(Var() as v, args):
                return App(self.array(v), args)
            case Let(bindings, body):
                return let([(self._bound(v), e) for v, e in bindings], body)
            case Lam(params, body):
                own = self._own(params)
                return Lam(tuple(own.get(p, p) for p in params), substitute(body, dict(own)))
            case Sum(indices, body):
                own = self._own(indices)
                weights = [App(self.at(v.kind).weights, (k,)) for v, k in own.items()]
                return total([own.get(v, v) for v in indices], mul(*weights, substitute(body, dict(own))))
            case _:
                return t

    def _bound(self, v: Var) -> Var:
        found = self.array(v)
        assert isinstance(found, Var), "an array, or what is no function"
        return found

    def _own(self, variables: tuple[Var, ...]) -> Mapping[Var, Var]:
        """Indices of nodes in the places of points."""
        return {v: fresh(v.name, kind) for v in variables if (kind := self._kind(v.kind)) != v.kind}
