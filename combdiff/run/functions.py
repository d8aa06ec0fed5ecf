"""Functions of a real number that a call is given with their derivatives: polynomials of NumPy, or tuples."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from combdiff.errors import ArrayError

_PREFIX = "grad_"


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
        if not wanted or not (callable(getattr(value, "deriv", None)) or _is_of_functions(value)):
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


def _is_of_functions(value: object) -> bool:
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
