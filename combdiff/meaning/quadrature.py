"""Quadrature rules for integrals over intervals: nodes and weights, given when the code runs.

>>> import combdiff as cd
>>> f = cd.grad(
...     "@domain Line begin base = R; lower = 0; upper = 1 end; (a::R) -> sum(x::Line, exp(a * x))"
... ).compile(value=True)
>>> value, slope = f(a=1.0, Line=cd.quadrature.gauss(20))
>>> print(round(value, 12), round(slope, 12))
1.718281828459 1.0

A rule of a class is placed on the interval of the domain that it is given for; `points` takes nodes and weights from
elsewhere. An array of two rows, nodes and weights, is a rule, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from combdiff.errors import ArrayError
from combdiff.records import dataclass
from combdiff.terms.terms import Term, end_named
from combdiff.terms.types import Interval

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[np.float64]

__all__ = ["Rule", "chebyshev", "differentiation", "gauss", "hermite", "laguerre", "points", "tanh_sinh", "trapezoid"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A quadrature rule before it is placed on an interval.

    >>> print(trapezoid(3).on(Interval("Line", 0, 2)))
    [[0.  1.  2. ]
     [0.5 1.  0.5]]

    `on(interval)` is a real array (2, n) of nodes and weights. It raises ArrayError where the rule is not for such an
    interval: bounds are missing, or are not those of the class.
    """

    name: str
    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.count, int) or self.count < 1:
            raise ArrayError(f"{self.name} has {self.count!r} nodes", remedy="give a whole number of nodes, at least 1")

    def on(self, interval: Interval) -> Array:
        """Nodes and weights on an interval."""
        return _placed(self, interval)


@lru_cache(maxsize=64)
def _placed(rule: Rule, interval: Interval) -> Array:
    import numpy as np

    lower = -np.inf if interval.lower is None else float(interval.lower)
    upper = np.inf if interval.upper is None else float(interval.upper)
    infinite = (interval.lower is None, interval.upper is None)
    if rule.name not in _FOR[infinite]:
        raise ArrayError(
            f"the rule {rule.name} is not for {interval.name}, which runs from {lower:g} to {upper:g}",
            remedy=f"use {' or '.join(f'{name}(n)' for name in _FOR[infinite])}",
        )
    with np.errstate(all="ignore"):
        found = np.stack(_MADE[rule.name](rule.count, lower, upper))
    if not np.isfinite(found).all() or (found[1] <= 0).any():
        raise ArrayError(
            f"the weights of {rule.name}({rule.count}) are beyond double precision",
            remedy="use fewer nodes, or tanh_sinh(n)",
        )
    found.setflags(write=False)  # other calls have it, too
    return found


_FOR = {
    (False, False): ("gauss", "chebyshev", "trapezoid", "tanh_sinh"),
    (False, True): ("laguerre", "tanh_sinh"),
    (True, False): ("laguerre", "tanh_sinh"),
    (True, True): ("hermite", "tanh_sinh"),
}
"""The rules for intervals without a lower and without an upper end."""


def gauss(n: int) -> Rule:
    """Gauss–Legendre: n nodes integrate polynomials of degree 2n − 1 exactly.

    >>> gauss(2).on(Interval("Line", 0, 1))[1]
    array([0.5, 0.5])
    """
    return Rule("gauss", n)


def chebyshev(n: int) -> Rule:
    """Clenshaw–Curtis: the n extrema of a Chebyshev polynomial, with both ends.

    >>> print(chebyshev(3).on(Interval("Line", -1, 1))[1] * 3)
    [1. 4. 1.]
    """
    return Rule("chebyshev", n)


def trapezoid(n: int) -> Rule:
    """Equidistant nodes with both ends, of half the weight there.

    >>> trapezoid(2).on(Interval("Line", 0, 1))[1]
    array([0.5, 0.5])
    """
    return Rule("trapezoid", n)


def hermite(n: int) -> Rule:
    """Gauss–Hermite on the whole line, for what falls off as exp(−x²); its weights hold the factor exp(x²).

    >>> import numpy as np
    >>> x, w = hermite(10).on(Interval("Line"))
    >>> bool(abs((w * np.exp(-(x**2))).sum() - np.sqrt(np.pi)) < 1e-12)
    True
    """
    return Rule("hermite", n)


def laguerre(n: int) -> Rule:
    """Gauss–Laguerre on a half line, for what falls off as exp(−|x|); its weights hold the factor exp(|x|).

    >>> import numpy as np
    >>> x, w = laguerre(10).on(Interval("Line", 0, None))
    >>> bool(abs((w * np.exp(-x)).sum() - 1) < 1e-12)
    True
    """
    return Rule("laguerre", n)


def tanh_sinh(n: int) -> Rule:
    """Double exponential: for integrands that are infinite at an end, and for half lines and the whole line.

    >>> import numpy as np
    >>> x, w = tanh_sinh(60).on(Interval("Line", 0, 1))
    >>> bool(abs((w / np.sqrt(x)).sum() - 2) < 1e-6)
    True
    """
    return Rule("tanh_sinh", n)


def differentiation(nodes: Any) -> Array:
    """The matrix that differentiates the polynomial through values at nodes, `D @ y`.

    >>> import numpy as np
    >>> x = chebyshev(5).on(Interval("Line", 0, 1))[0]
    >>> D = differentiation(x)
    >>> bool(np.allclose(D @ x**3, 3 * x**2))
    True

    A real array (n, n) for a vector of n different nodes; its square differentiates twice. Nodes of `gauss` and
    `chebyshev` are good for many nodes, equidistant ones for few.

    Raises:
        ArrayError: nodes are no vector, or two of them are equal.

    Source: Berrut & Trefethen, Barycentric Lagrange Interpolation, SIAM Review 46 (2004), eqs. 9.4 and 9.5.
    """
    import numpy as np

    x = np.asarray(nodes, float)
    if x.ndim != 1 or len({*x.tolist()}) != x.size:
        raise ArrayError(
            f"{x.size} nodes of the shape {x.shape} are no vector of different numbers", remedy="give different nodes"
        )
    apart = x[:, None] - x + np.eye(x.size)
    # the weights 1 / Π (x_j − x_k) leave the range of floating point, their ratios do not
    sizes, signs = np.log(np.abs(apart)).sum(axis=1), np.sign(apart).prod(axis=1)
    found = np.exp(sizes[:, None] - sizes) * signs[:, None] * signs / apart
    np.fill_diagonal(found, 0.0)
    np.fill_diagonal(found, -found.sum(axis=1))
    return np.asarray(found)


def _gauss(n: int, lower: float, upper: float) -> tuple[Array, Array]:
    import numpy as np

    x, w = np.polynomial.legendre.leggauss(n)
    return _moved(x, w, lower, upper)


def _chebyshev(n: int, lower: float, upper: float) -> tuple[Array, Array]:
    import numpy as np

    if n == 1:
        return _moved(np.zeros(1), np.full(1, 2.0), lower, upper)
    angles = np.pi * np.arange(n) / (n - 1)
    # the moments ∫ T_k are 2/(1 − k²) of even k and 0 of odd ones
    moments = np.zeros(n)
    moments[::2] = 2 / (1 - np.arange(0.0, n, 2) ** 2)
    w = np.linalg.solve(np.cos(np.outer(np.arange(n), np.pi - angles)), moments)
    return _moved(-np.cos(angles), w, lower, upper)


def _trapezoid(n: int, lower: float, upper: float) -> tuple[Array, Array]:
    import numpy as np

    if n == 1:
        return np.array([(lower + upper) / 2]), np.array([upper - lower])
    w = np.full(n, (upper - lower) / (n - 1))
    w[[0, -1]] /= 2
    return np.linspace(lower, upper, n), w


def _hermite(n: int, lower: float, upper: float) -> tuple[Array, Array]:
    import numpy as np

    x, w = np.polynomial.hermite.hermgauss(n)
    return x, w * np.exp(x * x)


def _laguerre(n: int, lower: float, upper: float) -> tuple[Array, Array]:
    import numpy as np

    x, w = np.polynomial.laguerre.laggauss(n)
    return _on_half_line(x, w * np.exp(x), lower, upper)


def _tanh_sinh(n: int, lower: float, upper: float) -> tuple[Array, Array]:
    import numpy as np

    bounded = np.isfinite(lower) and np.isfinite(upper)
    # as far as the nodes differ from the ends, or do not overflow
    most = 3.0 if bounded else 3.6
    t = np.linspace(-most, most, n) if n > 1 else np.zeros(1)
    h = t[1] - t[0] if n > 1 else 2.0
    s, c = np.pi / 2 * np.sinh(t), np.pi / 2 * np.cosh(t)
    if bounded:
        half = (upper - lower) / 2
        # from the nearer end: 1 − tanh has no digits left where tanh is almost 1
        near = 2 * half / (1 + np.exp(2 * np.abs(s)))
        return np.where(s < 0, lower + near, upper - near), half * h * c / np.cosh(s) ** 2
    if np.isinf(lower) and np.isinf(upper):
        return np.sinh(s), h * c * np.cosh(s)
    return _on_half_line(np.exp(s), h * c * np.exp(s), lower, upper)


_MADE: dict[str, Callable[[int, float, float], tuple[Array, Array]]] = {
    "gauss": _gauss,
    "chebyshev": _chebyshev,
    "trapezoid": _trapezoid,
    "hermite": _hermite,
    "laguerre": _laguerre,
    "tanh_sinh": _tanh_sinh,
}


def _on_half_line(x: Array, w: Array, lower: float, upper: float) -> tuple[Array, Array]:
    """Nodes from the one end on."""
    return (lower + x, w) if lower > float("-inf") else ((upper - x)[::-1], w[::-1])


def points(nodes: Any, weights: Any) -> Array:
    """A rule from elsewhere, such as the grid of a program: nodes and weights of the same length.

    >>> points([0.0, 1.0], [0.5, 0.5])
    array([[0. , 1. ],
           [0.5, 0.5]])
    """
    import numpy as np

    x, w = np.asarray(nodes, float), np.asarray(weights, float)
    if x.ndim != 1 or x.shape != w.shape:
        raise ArrayError(
            f"a rule has nodes of the shape {x.shape} and weights of {w.shape}",
            remedy="give two vectors of one length",
        )
    return np.stack([x, w])


def standard(interval: Interval) -> Array:
    """The rule by which a check on numbers integrates what is smooth.

    >>> standard(Interval("Line", 0, 1)).shape
    (2, 24)
    """
    return standard_rule(interval).on(interval)


def standard_rule(interval: Interval) -> Rule:
    """The rule of a check before it is placed.

    >>> standard_rule(Interval("Line")).name
    'tanh_sinh'
    """
    fine = _FINE.get()
    if interval.bounded and not _TO_ENDS.get():
        return gauss(int(24 * fine))
    return tanh_sinh(int(120 * fine) + 1)


_TO_ENDS: ContextVar[bool] = ContextVar("whether integrands may be infinite at ends", default=False)


@contextmanager
def to_ends() -> Iterator[None]:
    """Checks within take rules for integrands that are infinite, or have no slope, at an end of their interval.

    >>> with to_ends():
    ...     standard_rule(Interval("Line", 0, 1)).name
    'tanh_sinh'
    """
    before = _TO_ENDS.set(True)
    try:
        yield
    finally:
        _TO_ENDS.reset(before)


_FINE: ContextVar[Fraction] = ContextVar("how many times as many nodes a check takes", default=Fraction(1))


@contextmanager
def finer(times: Fraction | int) -> Iterator[None]:
    """Checks within take rules with so many times as many nodes.

    >>> with finer(2):
    ...     standard_rule(Interval("Line", 0, 1)).count
    48
    """
    before = _FINE.set(_FINE.get() * times)
    try:
        yield
    finally:
        _FINE.reset(before)


def at_values(interval: Interval, values: Mapping[Term, Any]) -> Interval:
    """The interval, whose ends may be numbers of the program, at the values of these.

    >>> from combdiff.terms.terms import end_named
    >>> at_values(Interval("Line", 0, upper_name="b"), {end_named("b"): 2.0}).upper
    Fraction(2, 1)
    """
    return interval.at({name: values[end_named(name)] for name in interval.names})


def placed(value: object, interval: Interval, numbers: Mapping[str, object] | None = None) -> object:
    """What is given for an interval as an array of nodes and weights; nodes lie in the interval.

    Ends that have names are `numbers` of the call, with which a rule of a class moves.

    >>> placed(gauss(1), Interval("Line", 0, 2))
    array([[1.],
           [2.]])
    """
    import numpy as np

    if interval.names:
        if not {*interval.names} <= (numbers or {}).keys():
            return value  # the call says what is missing
        interval = _at_numbers(interval, numbers or {})
        if not isinstance(value, Rule):
            raise ArrayError(
                f"the ends of {interval.name} are numbers of the program, with which nodes move",
                remedy=f"give a rule of a class, {interval.name}=cd.quadrature.gauss(20)",
            )
    if isinstance(value, Rule):
        return value.on(interval)
    if isinstance(value, tuple | list) and len(value) == 2:
        value = points(*value)
    nodes = np.asarray(value)[0] if isinstance(value, np.ndarray) and value.ndim == 2 and len(value) == 2 else None
    if nodes is not None and nodes.size:
        lower, upper = interval.lower, interval.upper
        beyond = (lower is not None and nodes.min() < lower) or (upper is not None and nodes.max() > upper)
        if beyond:
            raise ArrayError(
                f"the rule of {interval.name} has nodes from {nodes.min():g} to {nodes.max():g}, and the interval runs "
                f"from {'-inf' if lower is None else f'{float(lower):g}'} to "
                f"{'inf' if upper is None else f'{float(upper):g}'}",
                remedy="give nodes that lie in the interval, or correct its bounds",
            )
    return value


def _at_numbers(interval: Interval, numbers: Mapping[str, object]) -> Interval:
    found: dict[str, float] = {}
    for name in interval.names:
        try:
            found[name] = float(numbers[name])  # type: ignore[arg-type]  # what is no number is refused below
        except (TypeError, ValueError):
            raise ArrayError(
                f"{name} must be a number that is known before the code runs: {interval.name} ends there",
                remedy="call the function outside of a transformation such as jax.jit, with one number",
            ) from None
    return interval.at(found)


def _moved(x: Array, w: Array, lower: float, upper: float) -> tuple[Array, Array]:
    """A rule on [−1, 1] on another interval."""
    half = (upper - lower) / 2
    return lower + half * (1 + x), half * w
