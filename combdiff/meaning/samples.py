"""Random numbers and arrays of a type, exactly in the subspace that its declared symmetries describe.

A symmetry T(a) = ±T(b)' (or without ') maps index tuples to index tuples. Tuples that are mapped to one another form an
orbit, whose entries follow from the entry of its least tuple; where a tuple is mapped to itself with a sign or a
conjugate, that entry must be zero, real or imaginary. So entries are drawn for orbits, not averaged over a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import cast

import numpy as np
import numpy.typing as npt

from combdiff.errors import ArrayError, UnsupportedError
from combdiff.meaning.linear_maps import as_adjoint, random_linear, space_of
from combdiff.meaning.points import positions_of, slot_sizes, values_of
from combdiff.meaning.values import Array, Value, axes
from combdiff.records import dataclass
from combdiff.terms.terms import Diff, Lam, Let, Reduce, Term, Var, subterms
from combdiff.terms.types import (
    HERMITIAN,
    REAL,
    SYMMETRIC,
    Domain,
    Index,
    Interval,
    Map,
    Number,
    Product,
    Symmetry,
    Type,
    entry_range,
    is_complex,
)

Positions = npt.NDArray[np.intp]


Draw = Callable[[tuple[int, ...], bool, np.random.Generator], Array]
"""Draws numbers of a shape, real or complex."""


def _normal(shape: tuple[int, ...], over_complex: bool, rng: np.random.Generator) -> Array:
    real = rng.standard_normal(shape)
    result: Array = real + 1j * rng.standard_normal(shape) if over_complex else real
    return np.asarray(result)


_OF_DEFINITE = frozenset({"sqrtm", "sqrtm_along", "cholesky", "cholesky_along", "cholback"})
_OF_SPECTRA = frozenset({"det", "logdet", "eigvals", "svdvals"})


def takes_roots(t: Term) -> bool:
    """Whether roots or factors of matrices are in a term, which those with eigenvalues below 0 may not have."""
    return any(_asks_for_definite(u) for u in subterms(t))


def _asks_for_definite(t: Term) -> bool:
    match t:
        case Reduce(kind):
            return kind in _OF_DEFINITE
        case Var(kind=Map(definite=definite)):
            return definite
        case _:
            return False


def takes_spectra(t: Term) -> bool:
    """Whether a term is made of eigenvalues or determinants, of which logarithms may be taken."""
    return any(u.kind in _OF_SPECTRA for u in subterms(t, Reduce))


def definite(kind: Type, value: object) -> object:
    """A square matrix with so much on its diagonal that no eigenvalue lies below 0; other values as they are.

    >>> from combdiff.terms.types import REAL
    >>> n = Index(Domain("n"))
    >>> definite(Map((n, n), REAL), np.full((2, 2), -1.0))
    array([[ 3., -1.],
           [-1.,  3.]])
    """
    if not (isinstance(kind, Map) and isinstance(value, np.ndarray) and value.ndim == 2 and kind.is_tensor):
        return value
    rows, columns = kind.params[:2]
    if rows != columns or not {*kind.symmetries} <= {SYMMETRIC, HERMITIAN}:
        return value
    return value + 2 * len(value) * np.eye(len(value))


def distances(kind: Type, value: object) -> object:
    """Squared distances between points, in the place of a real square matrix: a kernel of them may be definite.

    >>> from combdiff.terms.types import REAL
    >>> n = Index(Domain("n"))
    >>> distances(Map((n, n), REAL), np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[ 0., 25.],
           [25.,  0.]])
    """
    if not (isinstance(kind, Map) and isinstance(value, np.ndarray) and value.ndim == 2 and kind.is_tensor):
        return value
    rows, columns = kind.params[:2]
    if rows != columns or is_complex(kind) or kind.definite or not {*kind.symmetries} <= {SYMMETRIC}:
        return value
    return ((value[:, None] - value) ** 2).sum(-1)


def random_value(kind: Type, sizes: Mapping[Domain, int], rng: np.random.Generator, draw: Draw = _normal) -> Value:
    """A random value: normally distributed numbers, arrays in the declared symmetric subspace, indices in range.

    >>> from combdiff.terms.types import COMPLEX, HERMITIAN
    >>> n = Domain("A.1")
    >>> a = random_value(Map((Index(n), Index(n)), COMPLEX, (HERMITIAN,)), {n: 3}, np.random.default_rng(0))
    >>> bool((a == a.conj().T).all())
    True

    Args:
        draw: where numbers come from, if they are not to be normally distributed.

    Raises:
        UnsupportedError: for a map of anything but numbers and indices, of which there is no natural distribution.
        ArrayError: a symmetry exchanges slots of unequal size.
    """
    match kind:
        case Index(None):
            return int(rng.integers(0, 3))
        case Index(Domain() as domain):
            values = values_of(domain, sizes)
            value = tuple(values[rng.integers(len(values))].tolist()) if len(values) else (0,) * domain.directions
            return value if domain.directions > 1 else value[0]
        case Number():
            return draw((), kind.complex, rng).item()
        case Product(items):
            return tuple(random_value(item, sizes, rng, draw) for item in items)
        case Map() if kind.is_integers:
            return _random_integers(kind, sizes, rng)
        case Map() if kind.is_tensor:
            array = _random_array(kind, sizes, rng, draw)
            return _as_declared(kind, array) if draw is _normal else array
        case Map((source,), target) if kind.linear:
            spaces = [space_of(k, lambda m: shape_of(m, sizes)) for k in (source, target)]
            return as_adjoint(random_linear(spaces[0], spaces[1], rng), kind.adjoint)
        case Map(params, Number()) if all(isinstance(p, Number | Index) for p in params):
            return _random_function(kind, rng)
    raise UnsupportedError(
        "there are no random values of a map of tensors", remedy="give a Python callable for the unknown map"
    )


def _as_declared(kind: Map, array: Array) -> Array:
    """Numbers above 0, or a definite matrix, in the place of any."""
    if kind.definite:
        return cast("Array", array @ array.conj().T + np.eye(len(array)))
    return cast("Array", np.abs(array) + 0.1) if kind.positive else array


def random_arguments(term: Term, sizes: Mapping[Domain, int], rng: np.random.Generator) -> dict[Var, Value]:
    """Random values for the parameters of the leading maps, down to the last that has a parameter which is no index.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> list(random_arguments(Lam((x,), x), {}, np.random.default_rng(0))) == [x]
    True
    """
    found: list[Var] = []
    pending: list[Var] = []
    while isinstance(term, Lam | Let) or (isinstance(term, Diff) and term.is_derivative):
        if isinstance(term, Lam):
            pending.extend(term.params)
            if not all(isinstance(p.kind, Index) for p in term.params):
                found, pending = found + pending, []
        term = term.of if isinstance(term, Diff) else term.body
    return {var: random_value(var.kind, sizes, rng) for var in found}


Ends = tuple[Fraction | str | None, Fraction | str | None]


def random_ends(intervals: Iterable[Interval], rng: np.random.Generator, *, positive: bool = False) -> dict[str, float]:
    """Numbers for the ends of intervals that have names: each interval runs upwards.

    >>> intervals = [Interval("Line", None, None, "a", "b"), Interval("Rest", None, 1, "b")]
    >>> found = random_ends(intervals, np.random.default_rng(0))
    >>> found["a"] < found["b"] < 1
    True

    Raises:
        UnsupportedError: there are none, for each of two ends would be below the other.
    """
    pairs = [interval.ends for interval in intervals if interval.names]
    found: dict[str, float] = {}

    def drawn(end: Fraction | str | None) -> float:
        if not isinstance(end, str):
            return -np.inf if end is None else float(end)
        if end not in found:
            least = max((drawn(lower) for lower, upper in pairs if upper == end), default=-np.inf)
            above = _least_above(end, pairs)
            _check_order(least >= above)
            share = rng.uniform(0.2, 0.6)
            if np.isinf(least) and np.isinf(above):
                found[end] = share if positive or rng.random() < 1 / 2 else share - 1
            elif np.isinf(above):
                found[end] = least + 2 * share
            else:
                found[end] = above - 2 * share if np.isinf(least) else least + share * (above - least)
        return found[end]

    for _, upper in pairs:
        _least_above(upper, pairs)
    for lower, upper in pairs:
        drawn(lower)
        drawn(upper)
    return found


def _least_above(end: Fraction | str | None, pairs: Sequence[Ends], below: frozenset[str] = frozenset()) -> float:
    """What is above an end: its own number, or the least upper end that follows it."""
    if not isinstance(end, str):
        return np.inf if end is None else float(end)
    _check_order(end in below)
    return min((_least_above(upper, pairs, below | {end}) for lower, upper in pairs if lower == end), default=np.inf)


def _check_order(broken: bool) -> None:
    if broken:
        raise UnsupportedError(
            "the ends of the domains follow one another in a circle", remedy="let an upper bound be above a lower one"
        )


def _random_function(kind: Map, rng: np.random.Generator) -> Callable[..., Value]:
    """A smooth function of numbers: c · sin(Σ wₙ xₙ + b), and so steep a line that it increases if it is to."""
    weights = [_normal((), is_complex(p) and is_complex(kind.result), rng).item() for p in kind.params]
    scale, shift = (_normal((), is_complex(kind.result), rng).item() for _ in range(2))
    rise = 0.5 + 1.5 * abs(scale * weights[0]) if kind.increasing else 0.0

    def function(*args: complex) -> Value:
        inner = sum(w * (x if is_complex(kind.result) else x.real) for w, x in zip(weights, args, strict=True))
        result: complex = (scale * np.sin(inner + shift)).item()
        return result + rise * args[0] if rise else result

    return function


def _random_integers(kind: Map, sizes: Mapping[Domain, int], rng: np.random.Generator) -> Array:
    """An array of indices, each in its range; of a range without values, an array of zeros."""
    domain = entry_range(kind)
    values = values_of(domain, sizes)[:, 0] if domain is not None else np.arange(3)
    shape = shape_of(kind, sizes)
    drawn = rng.choice(values, shape) if len(values) else np.zeros(shape, np.intp)
    return cast("Array", drawn)


def with_distinct_entries(
    values: Mapping[Term, Value], sizes: Mapping[Domain, int], rng: np.random.Generator
) -> dict[Term, Value]:
    """The values with arrays of integers that differ at each place, and hold all of their range, if they can.

    >>> from combdiff.terms.terms import fresh
    >>> n, e = Index(Domain("n")), Index(Domain("e"))
    >>> a, b = fresh("a", Map((e,), n)), fresh("b", Map((e,), n))
    >>> drawn = {a: np.array([1, 1, 1]), b: np.array([1, 1, 1])}
    >>> apart = with_distinct_entries(drawn, {n.domain: 3, e.domain: 3}, np.random.default_rng(0))
    >>> sorted(apart[a].tolist()), (apart[a] == apart[b]).any()
    ([0, 1, 2], np.False_)

    A sum over edges e of √|x(a(e)) − x(b(e))|² has no slope where an edge ends at the node where it starts.
    """
    found = dict(values)
    drawn: dict[Domain, tuple[Positions, int]] = {}
    for v, value in values.items():
        domain = entry_range(v.type)
        points = values_of(domain, sizes)[:, 0] if domain is not None else np.zeros(0, np.intp)
        if domain is None or not len(points) or not isinstance(value, np.ndarray):
            continue
        order, count = drawn.get(domain, (rng.permutation(len(points)), 0))
        drawn[domain] = order, count + 1
        places = (np.arange(value.size).reshape(value.shape) + count) % len(points)
        found[v] = cast("Array", points[order[places]])
    return found


def _random_array(kind: Map, sizes: Mapping[Domain, int], rng: np.random.Generator, draw: Draw) -> Array:
    shape = shape_of(kind, sizes)
    drawn = draw(shape, is_complex(kind), rng)
    if not kind.symmetries or not drawn.size:
        return drawn
    orbits = _orbits(kind, sizes)
    flat = drawn.reshape(-1)
    flat = np.where(orbits.real, flat.real, flat) if is_complex(kind) else flat
    flat = np.where(orbits.imaginary, 1j * flat.imag, flat) if is_complex(kind) else flat
    flat = np.where(orbits.zero, 0, flat)[orbits.least]
    flat = np.where(orbits.conj, flat.conj(), flat)
    return np.asarray(np.where(orbits.negative, -flat, flat).reshape(shape))


def shape_of(kind: Map, sizes: Mapping[Domain, int]) -> tuple[int, ...]:
    """The shape of an array that holds a tensor of type `kind`.

    >>> from combdiff.terms.types import REAL
    >>> n = Domain("x.1")
    >>> shape_of(Map((Index(n),), REAL), {n: 4})
    (4,)
    """
    shape = []
    for axis in axes(Map(kind.params, REAL)):
        size = None if axis is None else sizes.get(axis, axis.count)
        if size is None:
            name = axis.name if axis else "an index without a range"
            raise ArrayError(f"the size of {name} is not known", remedy="give it in `sizes`")
        shape.append(size)
    return tuple(shape)


@dataclass(frozen=True, slots=True)
class _Orbits:
    """For every entry: its orbit's least entry, and how it follows from it; for every least entry: what it must be."""

    least: Positions
    negative: npt.NDArray[np.bool_]
    conj: npt.NDArray[np.bool_]
    zero: npt.NDArray[np.bool_]
    real: npt.NDArray[np.bool_]
    imaginary: npt.NDArray[np.bool_]


def _orbits(kind: Map, sizes: Mapping[Domain, int]) -> _Orbits:
    shape = slot_sizes(kind.params, sizes)
    count = prod(shape)
    grid = np.unravel_index(np.arange(count), shape)
    over_complex = is_complex(kind)
    laws = [
        (np.ravel_multi_index(images_of(kind, sizes, law, grid), shape), law.sign < 0, law.conj and over_complex)
        for law in kind.symmetries
    ]
    least = np.arange(count)
    negative, conj = np.zeros(count, bool), np.zeros(count, bool)
    changed = True
    while changed:
        changed = False
        for image, minus, prime in laws:
            lower = least[image] < least
            if lower.any():
                changed = True
                from_image = image[lower]
                negative[lower], conj[lower] = negative[from_image] ^ minus, conj[from_image] ^ prime
                least[lower] = least[from_image]
    zero, real, imaginary = (np.zeros(count, bool) for _ in range(3))
    for image, minus, prime in laws:
        # the two ways to reach an entry from the least one differ by a law that the least one obeys
        sign, primed = negative ^ negative[image] ^ minus, conj ^ conj[image] ^ prime
        zero[least[sign & ~primed]] = True
        real[least[~sign & primed]] = True
        imaginary[least[sign & primed]] = True
    return _Orbits(least, negative, conj, zero, real, imaginary)


def images_of(
    kind: Map, sizes: Mapping[Domain, int], law: Symmetry, positions: Sequence[Positions]
) -> tuple[Positions, ...]:
    """Where the entries b are that `law` relates to the entries a at `positions`, slot by slot."""
    domains = [p.domain for p in kind.params if isinstance(p, Index) and p.domain is not None]
    values = [values_of(d, sizes)[position] for d, position in zip(domains, positions, strict=True)]
    found = []
    for slot, (row, domain) in enumerate(zip(law.rows, domains, strict=True)):
        at = sum((c * values[s] for s, c in row), np.zeros(domain.directions, np.intp))
        image = positions_of(domain, sizes, at)
        if image.size and image.min() < 0:
            raise ArrayError(
                f"the symmetry {law} leaves the range of slot {slot + 1}, which has "
                f"{slot_sizes(kind.params, sizes)[slot]} values",
                remedy="slots that a symmetry exchanges have one size",
            )
        found.append(image)
    return tuple(found)
