"""Dask's own functions: arrays are not written to."""

import dask.array as da
import numpy as np


def added_at(shape, places, values):
    """Zeros, to which values are added at places, index arrays of NumPy: a task for all of them."""
    from dask import delayed

    def added(values):
        whole = np.zeros(shape, values.dtype)
        np.add.at(whole, places, values)
        return whole

    return da.from_delayed(delayed(added)(values), shape, values.dtype)
