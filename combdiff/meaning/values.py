"""Numbers, arrays and callables that stand for the variables of a term, fitted to their types; the sizes of domains.

A tensor is held in an array with an axis for each index (paper, section 2); entry 0 of a symmetric axis is −M. The
sizes of domains are read off the arrays, and a message about arrays that do not fit names both places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from combdiff.errors import ArrayError
from combdiff.language.vocabulary import counted
from combdiff.meaning.masks import refuse_masked
from combdiff.meaning.points import Offsets, listed
from combdiff.terms.terms import Diff, Term, Var
from combdiff.terms.types import REAL, Domain, Index, Map, Number, Product, Type, is_complex

Scalar: TypeAlias = int | float | complex
Array: TypeAlias = npt.NDArray[np.float64 | np.complex128]
Point: TypeAlias = tuple[int, ...]
Value: TypeAlias = "Scalar | Array | Callable[..., Value] | tuple[Value, ...]"


def sizes_of(values: Mapping[Term, Value] | Mapping[Var, Value]) -> dict[Domain, int]:
    """How many values each domain has, read off arrays by the types of the variables that they stand for.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL, Map
    >>> n = Domain("x.1")
    >>> sizes_of({fresh("x", Map((Index(n),), REAL)): np.zeros(3)}) == {n: 3}
    True
    """
    extent = Extent()
    for key, value in values.items():
        fitted(key.type, value, called(key), extent)
    return extent.sizes


def span_of(domain: Domain, size: int) -> range:
    """The values of `domain` in the order of the entries of an array.

    >>> list(span_of(Domain("X", symmetric=True), 3))
    [-1, 0, 1]
    """
    return range(domain.first(size), domain.first(size) + size)


def called(term: Term) -> str:
    match term:
        case Var(name):
            return name
        case Diff(kind, of):
            return f"{kind}({called(of)})"
        case _:
            return "a value"


def _of_another_size(domain: Domain, size: int, place: str) -> ArrayError:
    """An axis does not have as many values as the program says."""
    wanted = f"give arrays with {domain.count} entries there"
    if domain.sized:
        return ArrayError(
            f"{place} has {size} values, but the program says {domain.count}",
            remedy=f"{wanted}, or write a name for the size in the program, x::RV{{n}}: then the arrays tell it",
        )
    return ArrayError(
        f"{place} has {size} values, but the domain {domain.name} has {domain.count}, "
        f"from {domain.lower} to {domain.upper}",
        remedy=f"{wanted}, or correct the bounds of the domain",
    )


class Extent:
    """The sizes of domains, and where each was seen first."""

    def __init__(self, known: Extent | None = None) -> None:
        self.sizes: dict[Domain, int] = dict(known.sizes) if known else {}
        self.places: dict[Domain, str] = dict(known.places) if known else {}

    def note(self, domain: Domain, size: int, place: str) -> None:
        """`place` says that `domain`, an axis or a list of offsets, has `size` values."""
        domain = domain.axes[0] if domain.listed else domain
        if domain.count is not None and size != domain.count:
            raise _of_another_size(domain, size, place)
        if domain.symmetric and size % 2 == 0:
            raise ArrayError(
                f"{place}: the symmetric domain {domain.name} cannot have {size} values",
                remedy="it runs from −M to M, so give 2M + 1 entries, entry 0 being −M",
            )
        if domain.of is not None and domain.of.count is None:
            self._note_of(domain, size, place)
        known = self.sizes.setdefault(domain, size)
        first = self.places.setdefault(domain, place)
        if known != size:
            raise ArrayError(
                f"sizes disagree: {place} has {size}, but {first} has {known}, and both have the range {domain.name}",
                remedy="give arrays whose sizes agree",
            )
        if isinstance(size, Offsets):
            self.sizes[domain] = size

    def _note_of(self, domain: Domain, size: int, place: str) -> None:
        """So many values of n + 1, say, tell n."""
        assert domain.of is not None, "a range that is another one with more or fewer values"
        whole = size + domain.less
        if whole < 0:
            raise ArrayError(
                f"{place} has {counted(size, 'value')}, and {domain.name} is at least {-domain.less}",
                remedy="give larger arrays",
            )
        self.note(domain.of, whole, f"{place} ({domain.name} = {size})")

    def of(self, domain: Domain | None) -> int:
        """The size of `domain`, which must be known."""
        if domain is not None and domain.of is not None and domain not in self.sizes:
            return max(0, self.of(domain.of) - domain.less)
        size = None if domain is None else self.sizes.get(domain, domain.count)
        if size is None:
            name = domain.name if domain else "an index without a range"
            raise ArrayError(f"the size of {name} is not known", remedy="give it in `sizes`, or an array that shows it")
        return size

    def points(self, domain: Domain) -> list[Point]:
        """The values of an index in the order of arrays, as vectors; those of a list as they are listed."""
        if domain.listed:
            return [tuple(row) for row in listed(domain, self.sizes).rows.tolist()]
        return list(product(*(span_of(axis, self.of(axis)) for axis in domain.axes)))


def fitted(kind: Type, value: Value, name: str, extent: Extent) -> Value:
    """`value` as a value of type `kind`, its sizes noted."""
    match kind, value:
        case Product(items), tuple():
            if len(items) != len(value):
                raise ArrayError(
                    f"{name} is a tuple of {len(items)} values, but {len(value)} are given",
                    remedy="give one value for each item",
                )
            parts = zip(items, value, strict=True)
            return tuple(fitted(k, v, f"item {n} of {name}", extent) for n, (k, v) in enumerate(parts, 1))
        case Product(items), _:
            raise ArrayError(f"{name} must be a tuple of {len(items)} values", remedy="give a Python tuple")
        case Map(), _ if callable(value):
            return value
        case Map(), _ if kind.is_array:
            return _fitted_array(kind, value, name, extent)
        case Map(), _:
            raise ArrayError(f"{name} must be a Python callable", remedy="it is a map of more than indices")
        case Index(Domain() as domain), tuple() if len(value) == domain.directions:
            return value
        case _:
            return _fitted_number(kind, value, name)


def _fitted_array(kind: Map, value: Value, name: str, extent: Extent) -> Array:
    refuse_masked(value, name)
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise ArrayError(
            f"{name} must be an array of numbers, not of {array.dtype}",
            remedy="convert it to floating-point or complex numbers",
        )
    if kind.is_integers:
        array = whole_numbers(array, name)
    if array.dtype.kind == "c" and not is_complex(kind):
        raise ArrayError(f"{name} is declared real, but the array is complex", remedy="give its real part")
    wanted = places(kind, name)
    if array.ndim != len(wanted):
        raise ArrayError(
            f"{name} has {len(kind.params)} indices, but the array has {array.ndim} axes",
            remedy=AXES,
        )
    for (axis, place), size in zip(wanted, array.shape, strict=True):
        if axis is not None:
            extent.note(axis, size, place)
    return array.astype(np.complex128) if is_complex(kind) else array.astype(np.float64)


def whole_numbers(array: npt.NDArray[np.generic], name: str) -> npt.NDArray[np.intp]:
    """An array of integers as it is given, or an error that says what is wrong with it.

    >>> whole_numbers(np.array([2, 0], np.int8), "J")
    array([2, 0])
    """
    if array.dtype.kind not in "iu" and array.size:
        found = "nan" if array.dtype.kind == "f" and np.isnan(array).any() else str(array.dtype)
        raise ArrayError(
            f"{name} must be an array of integers, and holds {found}",
            remedy=f"its entries are indices, counted from 0: give {name}.astype(int), if they are whole numbers",
        )
    return array.astype(np.intp, copy=False)


def check_range(array: npt.NDArray[np.intp], name: str, domain: Domain, size: int | None) -> None:
    """Every entry of an array of integers is a value of its index; without a size, none is below the first.

    >>> check_range(np.array([0, 3]), "J", Domain("n"), 3)
    Traceback (most recent call last):
    combdiff.errors.ArrayError: J[1] is 3, but the range n runs from 0 to 2
    remedy: correct the entry, or give arrays that have it
    """
    if not array.size:
        return
    first = domain.first(size or 0)
    outside = array < first
    if size is not None:
        outside |= array >= first + size
    if outside.any():
        place = np.unravel_index(int(outside.argmax()), array.shape)
        entry = f"{name}[{', '.join(str(int(n)) for n in place)}]"
        raise out_of_range(entry, int(array[place]), domain, size)


def out_of_range(entry: str, value: int, domain: Domain, size: int | None) -> ArrayError:
    """The error for an entry of an array of integers that is none of the values of its index."""
    first = domain.first(size or 0)
    values = f"starts at {first}" if size is None else f"runs from {first} to {first + size - 1}"
    if size == 0:
        values = "has no value"
    counts = "; indices count from 0, and none from the end" if value < 0 <= first else ""
    return ArrayError(
        f"{entry} is {value}, but the range {domain.name} {values}",
        remedy=f"correct the entry, or give arrays that have it{counts}",
    )


def _fitted_number(kind: Type, value: Value, name: str) -> Scalar:
    refuse_masked(value, name)
    entry = value.item() if isinstance(value, np.ndarray | np.generic) and value.size == 1 else value
    if not isinstance(entry, int | float | complex):
        raise ArrayError(f"{name} must be a number", remedy="give one integer, float or complex number")
    if isinstance(kind, Index) and not isinstance(entry, int):
        raise ArrayError(
            f"{name} is an index, but {entry} is not an integer", remedy="give a whole number in the range of the index"
        )
    if isinstance(entry, complex) and not is_complex(kind):
        raise ArrayError(
            f"{name} is declared real, but {entry} is complex", remedy="give its real part, or declare it complex"
        )
    return entry


AXES = "give an array with an axis for each index, and for each direction of an index of a lattice"


def places(kind: Map, name: str) -> list[tuple[Domain | None, str]]:
    """The axes of an array that holds a tensor, and what messages call them: slot 3 of U, with the direction."""
    found: list[tuple[Domain | None, str]] = []
    for slot, param in enumerate(kind.params, 1):
        own = list(axes(Map((param,), REAL)))
        named = [f"direction {n} of " if len(own) > 1 else "" for n in range(1, len(own) + 1)]
        found += [(axis, f"{direction}slot {slot} of {name}") for axis, direction in zip(own, named, strict=True)]
    return found


def axes(kind: Type) -> Iterator[Domain | None]:
    """The axes of an array that holds a map of indices, None for an index without a range."""
    if isinstance(kind, Map):
        for param in kind.params:
            if isinstance(param, Index) and param.domain:
                yield from param.domain.axes
            else:
                yield None
        yield from axes(kind.result)


def is_array(kind: Type) -> bool:
    """Whether values are held in an array: a map of ranging indices to numbers, or to such maps."""
    if not isinstance(kind, Map) or not all(isinstance(p, Index) and p.domain for p in kind.params):
        return False
    return isinstance(kind.result, Number | Index) or is_array(kind.result)


# --- tuples of values -------------------------------------------------------------------------------------------------


def flattened(values: Iterable[object]) -> list[Value]:
    """What stands in tuples, and what stands in none.

    >>> flattened((1, (2, (3, 4))))
    [1, 2, 3, 4]
    """
    return [x for v in values for x in (flattened(v) if isinstance(v, tuple) else [cast("Value", v)])]


def regrouped(like: Iterable[object], values: Iterator[Value]) -> tuple[Value, ...]:
    """Values in tuples where others stand in tuples.

    >>> regrouped((0, (0, 0)), iter([1, 2, 3]))
    (1, (2, 3))
    """
    return tuple([regrouped(x, values) if isinstance(x, tuple) else next(values) for x in like])


def entry_by_entry(function: Callable[..., Value]) -> Callable[..., object]:
    """A function of numbers, and of tuples of numbers, on arrays in their place.

    >>> entry_by_entry(lambda x, k: (x * k[0], k))(2.0, (np.ones(2), 3.0))
    (array([2., 2.]), (array([1., 1.]), array([3., 3.])))
    """

    def on_arrays(*args: object) -> object:
        like: list[Value] = []

        def on_numbers(*numbers: Value) -> object:
            like[:] = [function(*regrouped(args, iter(numbers)))]
            return tuple(flattened(like)) if isinstance(like[0], tuple) else like[0]

        found = np.vectorize(on_numbers)(*flattened(args))
        return regrouped(like, iter(found))[0] if isinstance(like[0], tuple) else found

    return on_arrays
