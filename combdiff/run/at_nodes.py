"""A compiled derivative of a functional whose functions a call gives by their values at the nodes of a rule.

    f(y=values, Line=(x, w), D_Line=D)      is the derivative of the discrete functional, divided by the weights

∫ y′² dx is Σ_i w(i) (Σ_j D(i, j) y(j))² then, and the result W⁻¹ ∂/∂y holds the adjoint W⁻¹ Dᵀ W of the matrix in the
place of integration by parts: ends are free, and what belongs to an end lies in the entries of the nodes there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeVar, cast

import numpy as np

from combdiff.arrays.lower.forms import Forms
from combdiff.arrays.plan import Argument
from combdiff.errors import ArrayError
from combdiff.meaning.quadrature import placed
from combdiff.records import dataclass
from combdiff.run.compiled import DEFAULTS, CodeOptions, Compiled
from combdiff.run.functions import by_entry, is_of_functions
from combdiff.terms.types import Interval, Map, Type, interval_of

R = TypeVar("R", covariant=True)


@dataclass(frozen=True, slots=True)
class Discrete:
    """The function of values at nodes.

    `grids` has the arguments for the nodes, the weights and the matrix of each interval, `names` what the other
    arguments are called in `run`, and `results` the intervals of each result, none of a number.
    """

    run: Compiled[Any]
    grids: Mapping[Interval, tuple[str, str, str]]
    names: Mapping[str, str]
    results: Sequence[tuple[Interval, ...]]


def intervals_of(kind: Type) -> tuple[Interval, ...]:
    """The intervals of which the points of a function are, none of what is no such function.

    >>> from combdiff.terms.types import REAL, Number
    >>> line = Interval("Line", 0, 1)
    >>> intervals_of(Map((Number(False, line),), REAL)) == (line,), intervals_of(Map((REAL,), REAL))
    (True, ())
    """
    if not isinstance(kind, Map):
        return ()
    found = [interval_of(p) for p in kind.params]
    return tuple(i for i in found if i is not None) if None not in found else ()


class CompiledFunctional(Compiled[R]):
    """A compiled derivative of a functional; `discrete` makes the function of values, at the first call with some."""

    def __init__(self, term: Forms, discrete: Callable[[], Discrete], options: CodeOptions = DEFAULTS) -> None:
        super().__init__(term, options)
        self._discrete = discrete
        self._made: Discrete | None = None
        self._points = {name: intervals_of(kind) for name, kind in self._kinds.items() if intervals_of(kind)}

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._forms, self._discrete, self._options)

    def _called(self, args: tuple[object, ...], out: object, named: dict[str, object]) -> object:
        given = dict(zip(self._names, args, strict=False)) | {self._call.spelled(k): v for k, v in named.items()}
        if not any(self._is_of_values(name, value) for name, value in given.items()):
            return super()._called(args, out, named)
        if out is not None:
            raise ArrayError("out= is not for functions that are given by their values", remedy="leave it out")
        return self._at_nodes(given)

    def _is_of_values(self, name: str, value: object) -> bool:
        """Whether a function is given by its values, or a matrix that differentiates these."""
        if name in self._points:
            return not callable(value) and not is_of_functions(value) and bool(np.shape(cast("Any", value)))
        matrices = {f"D_{interval.name}" for found in self._points.values() for interval in found}
        return name not in self._kinds and any(name.startswith(matrix) for matrix in matrices)

    def _at_nodes(self, given: dict[str, object]) -> object:
        if self._made is None:
            self._made = self._discrete()
        found = self._made
        taken = {a.name for a in found.run.arguments}
        rules = {i: self._rule(i, given) for i in found.grids}
        passed = {name: value for name, value in given.items() if name not in {i.name for i in rules}}
        for interval, (x, w, matrix) in found.grids.items():
            nodes, weights = rules[interval]
            slopes = passed.pop(matrix, None)
            of_grid = {x: nodes, w: weights, matrix: slopes(nodes) if callable(slopes) else slopes}
            if slopes is None and matrix in taken:
                self._refuse_without(matrix, interval)
            passed |= {name: self._own(value) for name, value in of_grid.items() if name in taken}
        for name, points in self._points.items():
            if name in passed:
                passed[name] = self._values(name, passed[name], [rules[i][0] for i in points])
        # what only derivatives of functions are needed for; other words are refused below
        spare = {name for name in (*self._names, *self._kinds) if found.names.get(name, name) not in taken}
        results = found.run(**{found.names.get(name, name): v for name, v in passed.items() if name not in spare})
        return self._divided(results, [[rules[i][1] for i in points] for points in found.results])

    def _rule(self, interval: Interval, given: Mapping[str, object]) -> np.ndarray[Any, Any]:
        """The nodes and weights of an interval."""
        if interval.name not in given:
            raise ArrayError(
                f"{self._name} is not given {interval.name}, at whose nodes functions have values",
                remedy=f"give {interval.name}=(x, w), the nodes and their weights",
            )
        value = given[interval.name]
        if self._library is not None and self._library.owns(value):
            value = self._library.numpy(value)  # type: ignore[arg-type]  # an array of the library
        return np.asarray(placed(value, interval, given))

    def _refuse_without(self, matrix: str, interval: Interval) -> None:
        raise ArrayError(
            f"the functional holds derivatives along {interval.name}, and functions are given by their values",
            remedy=f"give {matrix}=cd.quadrature.differentiation, or a matrix that differentiates values at the nodes",
        )

    def _values(self, name: str, value: object, axes: Sequence[Any]) -> object:
        """What a function is at the nodes."""
        value = value[0] if is_of_functions(value) else value  # type: ignore[index]  # a tuple
        if not callable(value):
            return value
        points = [self._own(x) for x in np.meshgrid(*axes, indexing="ij")]
        return by_entry(Argument(name, self._kinds[name], callable=True), value, self._library)(*points)

    def _own(self, value: object) -> object:
        """An array in the library in which the code computes."""
        if self._library is None or self._library.owns(value):
            return value
        return self._library.made(np.asarray(value))

    def _divided(self, results: object, weights: Sequence[Sequence[Any]]) -> object:
        """The derivatives by the values at nodes, divided by the weights of these."""
        found = results if isinstance(results, tuple) else (results,)
        divided = [r / self._own(reduce(np.multiply.outer, w)) if w else r for r, w in zip(found, weights, strict=True)]
        return tuple(divided) if isinstance(results, tuple) else divided[0]
