"""Refuses masked arrays: a formula has no meaning for an entry without a value."""

from __future__ import annotations

import numpy as np

from combdiff.errors import ArrayError


def refuse_masked(value: object, name: str) -> None:
    """Raise ArrayError for an array of `numpy.ma`, whose entries NumPy would read through their mask.

    >>> refuse_masked(np.ma.masked_equal([1.0, 2.0], 2.0), "x")
    Traceback (most recent call last):
    ...
    combdiff.errors.ArrayError: x is a masked array, and its masked entries have no value
    remedy: give x.filled(0), or another array with a number for each entry
    """
    # a plain array need not import numpy.ma
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):
        raise ArrayError(
            f"{name} is a masked array, and its masked entries have no value",
            remedy=f"give {name}.filled(0), or another array with a number for each entry",
        )
