"""A derivation as a minimisation problem of real vectors, for `scipy.optimize.minimize`.

One vector contains all unknowns, a complex entry a + ib as the two floats a, b. For z = a + ib the gradient is
∂f/∂a + i ∂f/∂b, so the packed gradient is the gradient by the packed unknowns; the same holds for Hessian products.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from combdiff.boundary import boundaries
from combdiff.errors import ArrayError, UnsupportedError
from combdiff.meaning.masks import refuse_masked
from combdiff.minimizing.manifolds import MANIFOLDS, Chart, Flat, Stiefel
from combdiff.records import dataclass
from combdiff.terms.terms import Var
from combdiff.terms.types import Map, Number, is_complex

if TYPE_CHECKING:
    from combdiff.derivation import Derivation
    from combdiff.run.compiled import Check, Compiled

Vector = npt.NDArray[np.float64]
Unknown = npt.NDArray[np.float64] | npt.NDArray[np.complex128]


@dataclass(frozen=True, slots=True)
class Code:
    """The compiled objective with its gradient, and products with its Hessian if they are asked for."""

    function: Compiled[tuple[object, ...]]
    has_products: bool


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What was computed at a point; a chart for each unknown."""

    code: Code
    point: Vector
    charts: tuple[Chart, ...]
    found: tuple[object, ...]


@boundaries("fun", "jac", "hessp", "pack", "unpack")
class Problem:
    """The objective of a derivation as a function of one real vector. `Derivation.problem` returns it.

    >>> import combdiff as cd
    >>> p = cd.grad("(a::R) -> (z::CV) -> sum(i, abs2(z(i) - a))").problem(a=2.0, z=np.array([1j]))
    >>> p.x0, p.fun(p.x0), p.jac(p.x0), p.hessp(p.x0, np.array([1.0, 3.0]))
    (array([0., 1.]), 5.0, array([-4.,  2.]), array([2., 6.]))
    >>> p.unpack(p.x0)
    array([0.+1.j])

    `fun`, `jac`, `hessp` and `x0`, the starting point, are the arguments of `scipy.optimize.minimize` with these names.
    `unpack` converts a vector to the unknowns (several are a tuple), and `pack` converts the unknowns to a vector. The
    problem keeps the results at one point until it gets another point. The first call of `hessp` makes its code. Any
    number of threads may use a problem.

    With `manifold="stiefel"` all unknowns are matrices with orthonormal columns; with {"C": "stiefel"} only C is. The
    vector then contains a matrix of full rank, and the unknown is its polar factor.
    """

    def __init__(
        self,
        derivation: Derivation,
        given: Mapping[str, object],
        check: Check = "sample",
        pack: str | Sequence[str] = (),
        manifold: str | Mapping[str, str] = "",
    ) -> None:
        if derivation.mode != "grad":
            raise UnsupportedError(
                f"a minimiser takes a gradient, and this is a derivation of cd.{derivation.mode}",
                remedy="use cd.grad(text).problem(…), which gives Hessian-vector products as well",
            )
        self._derivation = derivation
        self._check: Check = check
        self._pack = pack
        self._unknowns = derivation.objective.params
        missing = [v.name for v in self._unknowns if v.name not in given]
        if missing:
            raise ArrayError(
                f"the problem is not given {', '.join(missing)}, where to start", remedy=f"give {missing[0]}=array"
            )
        start = [_start(v, given[v.name]) for v in self._unknowns]
        names = {v.name for v in self._unknowns}
        self._captured = {name: value for name, value in given.items() if name not in names}
        self._shapes = [a.shape for a in start]
        self._charts = [_chart(v.name, manifold, names) for v in self._unknowns]
        self._code = Code(derivation.compile(value=True, check=check, pack=pack), has_products=False)
        self._known: Known | None = None
        self.x0 = self.pack(*start)
        self._at(self.x0)

    def __repr__(self) -> str:
        unknowns = ", ".join(v.name for v in self._unknowns)
        return f"<minimisation over {unknowns}, {len(self.x0)} real numbers>"

    def fun(self, x: npt.ArrayLike) -> float:
        """The real part of the objective."""
        return float(np.real(cast(complex, self._at(x).found[0])))

    def jac(self, x: npt.ArrayLike) -> Vector:
        """The gradient as a vector."""
        known = self._at(x)
        gradients = cast(tuple[Unknown, ...], known.found[1 : 1 + len(self._unknowns)])
        return self.pack(*(chart.pulled(g) for chart, g in zip(known.charts, gradients, strict=True)))

    def hessp(self, x: npt.ArrayLike, p: npt.ArrayLike) -> Vector:
        """The Hessian at x times the vector p."""
        if not self._code.has_products:
            function = self._derivation.compile(value=True, hvp=True, check=self._check, pack=self._pack)
            self._code = Code(function, has_products=True)
        known = self._at(x)
        *gradients, hvp = known.found[1:]
        assert callable(hvp), "the products stand last"
        directions = self._arrays(self._vector(p))
        found = hvp(*(chart.moved(k) for chart, k in zip(known.charts, directions, strict=True)))
        products = found if isinstance(found, tuple) else (found,)
        each = zip(known.charts, directions, cast(list[Unknown], gradients), products, strict=True)
        return self.pack(*(chart.turned(k, g, dg) for chart, k, g, dg in each))

    def pack(self, *unknowns: object) -> Vector:
        """One real vector from arrays of the unknowns, in their order."""
        if len(unknowns) != len(self._unknowns):
            raise ArrayError(
                f"there are {len(self._unknowns)} unknowns, and {len(unknowns)} arrays are given",
                remedy=f"give {', '.join(v.name for v in self._unknowns)}",
            )
        parts = []
        for var, value, shape in zip(self._unknowns, unknowns, self._shapes, strict=True):
            array = _start(var, value)
            if array.shape != shape:
                raise ArrayError(
                    f"{var.name} has the shape {shape} in this problem, and the array {array.shape}",
                    remedy="give an array of that shape, or make another problem",
                )
            parts.append(array.reshape(-1).view(np.float64))
        return np.concatenate(parts)

    def unpack(self, x: npt.ArrayLike) -> Unknown | tuple[Unknown, ...]:
        """The unknowns in a vector, as new arrays; several as a tuple."""
        arrays = [chart.value for chart in self._at_charts(self._vector(x))]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def _arrays(self, x: Vector) -> list[Unknown]:
        found: list[Unknown] = []
        place = 0
        for var, shape in zip(self._unknowns, self._shapes, strict=True):
            size = prod(shape) * (2 if is_complex(var.kind) else 1)
            part = x[place : place + size].copy()
            found.append((part.view(np.complex128) if is_complex(var.kind) else part).reshape(shape))
            place += size
        return found

    def _vector(self, x: npt.ArrayLike) -> Vector:
        refuse_masked(x, "the point")
        vector = np.asarray(x)
        if vector.shape != self.x0.shape or vector.dtype.kind not in "biuf":
            raise ArrayError(
                f"a point of this problem is a vector of {len(self.x0)} real numbers, and this is an array of shape "
                f"{vector.shape} of {vector.dtype}",
                remedy="start at x0; pack(…) makes a vector of the unknowns",
            )
        return vector.astype(np.float64, copy=False)

    def _at_charts(self, x: Vector) -> tuple[Chart, ...]:
        each = zip(self._charts, self._arrays(x), self._unknowns, strict=True)
        return tuple(chart(array, v.name) for chart, array, v in each)

    def _at(self, x: npt.ArrayLike) -> Known:
        """What the compiled function returns at x: the value, the gradients, and the products if they are asked for."""
        vector = self._vector(x)
        code, known = self._code, self._known
        if known is None or known.code is not code or not np.array_equal(known.point, vector):
            charts = self._at_charts(vector)
            unknowns = {v.name: chart.value for v, chart in zip(self._unknowns, charts, strict=True)}
            found = code.function(**self._taken(code), **unknowns)
            # point and values are one object: another thread may ask for another point meanwhile
            known = self._known = Known(code, vector.copy(), charts, found)
        return known

    def _taken(self, code: Code) -> dict[str, object]:
        """What is given once; second derivatives of the caller's functions are for the products only."""
        if code.has_products:
            return self._captured
        names = {a.name for a in code.function.arguments}
        return {name: value for name, value in self._captured.items() if name in names or not callable(value)}


def _chart(name: str, manifold: str | Mapping[str, str], names: Collection[str]) -> type[Flat] | type[Stiefel]:
    """How an unknown is varied."""
    given = dict.fromkeys(names, manifold) if isinstance(manifold, str) else manifold
    for unknown, kind in given.items():
        if unknown not in names or kind not in MANIFOLDS:
            raise ArrayError(
                f"manifold is {manifold!r}", remedy=f'give "stiefel", or {{"{min(names)}": "stiefel"}} for one unknown'
            )
    return MANIFOLDS[given.get(name, "")]


def _start(var: Var, value: object) -> Unknown:
    """An array for an unknown, contiguous and of double precision."""
    kind = var.kind
    if not isinstance(kind, Number) and not (isinstance(kind, Map) and kind.is_tensor):
        raise UnsupportedError(
            f"the unknown {var.name} is a function, and a minimiser varies numbers",
            remedy="write it over a domain (@domain), as a tensor",
        )
    if isinstance(kind, Map) and kind.symmetries:
        raise UnsupportedError(
            f"the unknown {var.name} has a declared symmetry, and a minimiser varies all entries",
            remedy="write it in terms of entries that are free, such as X(i, j) + X(j, i), X without a symmetry",
        )
    refuse_masked(value, var.name)
    array = np.asarray(value)
    if array.dtype.kind not in "biufc" or (array.dtype.kind == "c" and not is_complex(kind)):
        raise ArrayError(
            f"{var.name} is {'complex' if is_complex(kind) else 'real'}, and the array holds {array.dtype}",
            remedy="give an array of numbers, real where the unknown is real",
        )
    if is_complex(kind):
        return np.array(array, dtype=np.complex128, order="C")
    return np.array(array, dtype=np.float64, order="C")
