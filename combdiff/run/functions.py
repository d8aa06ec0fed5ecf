"""Wraps functions that a caller passes: callables with their derivatives, polynomials, tuples of these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import TYPE_CHECKING

from combdiff.errors import ArrayError
from combdiff.terms.types import Map, Number, Product, Type

if TYPE_CHECKING:
    from combdiff.arrays.plan import Argument
    from combdiff.meaning.values import Array
    from combdiff.run.libraries import Library

_PREFIX = "grad_"

_REMEDY = "return a number for each number, in an array of their shape; np.vectorize makes such a function"


def with_derivatives(named: Mapping[str, object], needed: Collection[str]) -> dict[str, object]:
    """What is given by name, with the derivatives that the code needs and that a function brings along.

    `y` may be a polynomial of NumPy, which has them all, or a tuple of y, y′, y″, …

    >>> import numpy as np
    >>> found = with_derivatives({"y": np.polynomial.Polynomial([0, 0, 1])}, ["y", "grad_y"])
    >>> float(found["grad_y"](3.0))
    6.0

    Raises:
        ArrayError: a tuple has too few functions.
    """
    found = dict(named)
    for name, value in named.items():
        wanted = _orders(name, needed)
        if not wanted or not (callable(getattr(value, "deriv", None)) or is_of_functions(value)):
            continue
        for order, own in wanted.items():
            if own not in named or own == name:
                found[own] = _derivative(name, value, order)
        if name not in wanted.values():
            del found[name]
    return found


def _orders(name: str, needed: Collection[str]) -> dict[int, str]:
    """The derivatives of a function that code calls, by their order; the function itself is the 0th."""
    names = ((own.removesuffix(name), own) for own in needed if own.endswith(name))
    return {len(front) // len(_PREFIX): own for front, own in names if front == _PREFIX * (len(front) // len(_PREFIX))}


def is_of_functions(value: object) -> bool:
    """Whether a function is given with its derivatives, y, y′, …, as a tuple."""
    return isinstance(value, tuple) and bool(value) and all(map(callable, value))


def _derivative(name: str, value: object, order: int) -> object:
    if not isinstance(value, tuple):
        return value.deriv(order) if order else value  # type: ignore[attr-defined]  # a polynomial
    if order >= len(value):
        raise ArrayError(
            f"{name} is given with {len(value) - 1} derivatives, and the code needs {order}",
            remedy=f"give {name}=({name}, {name}1, …) with {order} derivatives",
        )
    return value[order]


def by_entry(
    argument: Argument, function: Callable[..., object], library: Library | None = None
) -> Callable[..., object]:
    """A function of numbers that returns a number for each one that it is given, as code with arrays wants it.

    The arrays are those of a `library`, NumPy's where there is none.

    >>> import numpy as np
    >>> from combdiff.arrays.plan import Argument
    >>> from combdiff.terms.types import REAL
    >>> by_entry(Argument("g", Map((REAL,), REAL), callable=True), lambda x: 2)(np.zeros(3))
    array([2., 2., 2.])
    """
    kind = argument.kind
    if not (isinstance(kind, Map) and all(isinstance(p, Number) for p in kind.params)):
        return function
    kinds = kind.result.items if isinstance(kind.result, Product) else (kind.result,)
    if not all(isinstance(k, Number) for k in kinds):
        return function

    @wraps(function, updated=())
    def called(*args: object) -> object:
        import numpy as np

        shape = np.broadcast_shapes(*map(np.shape, args))  # type: ignore[arg-type]  # arrays, or numbers
        found = function(*args)
        if isinstance(kind.result, Product) and isinstance(found, tuple) and len(found) == len(kinds):
            return tuple([_in_library(argument.name, x, k, shape, library) for x, k in zip(found, kinds, strict=True)])
        return _in_library(argument.name, found, kinds[0], shape, library)

    return called


def _in_library(name: str, found: object, kind: Type, shape: tuple[int, ...], library: Library | None) -> object:
    """What a function has returned, as an array of the library in which the code computes."""
    if library is None:
        return _entries(name, found, kind, shape)
    if not library.owns(found):
        return library.made(_entries(name, found, kind, shape))  # type: ignore[arg-type]  # numbers are arrays, too
    own = tuple(found.shape)  # type: ignore[attr-defined]  # every library's arrays have one
    if own == shape:
        return found
    try:
        return library.namespace.broadcast_to(found, shape)
    except (ValueError, RuntimeError):
        raise _another_shape(name, own, shape) from None


def _another_shape(name: str, own: tuple[int, ...], shape: tuple[int, ...]) -> ArrayError:
    return ArrayError(f"{name} returns an array of the shape {own} for arguments of the shape {shape}", remedy=_REMEDY)


def _entries(name: str, found: object, kind: Type, shape: tuple[int, ...]) -> Array | float | complex:
    """What a function has returned for arguments of this shape: a constant for all of them is one for each."""
    import numpy as np

    try:
        array = np.asarray(found)
    except ValueError:
        array = np.empty((), object)
    if array.dtype.kind not in "biufc":
        raise ArrayError(f"{name} returns a {type(found).__name__}, not numbers", remedy=_REMEDY)
    if array.dtype.kind == "c" and not (isinstance(kind, Number) and kind.complex):
        raise ArrayError(f"{name} is declared real, and returns complex numbers", remedy="return their real part")
    try:
        whole = np.broadcast_to(array, shape)
    except ValueError:
        raise _another_shape(name, array.shape, shape) from None
    return whole.astype(np.float64) if array.dtype.kind in "biu" else whole if shape else whole[()]
