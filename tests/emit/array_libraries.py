"""Array libraries in tests: numbers to and from each; NumPy takes the place of those that are like it, if need be."""

from __future__ import annotations

import sys
import types
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

from combdiff.emit.backends import BACKENDS
from tests.emit.elementwise_kernels import ElementwiseKernel

LIBRARIES = tuple(name for name in BACKENDS if name != "numpy")
NUMPY_STANDS_IN = ("cupy",)
"""Libraries that call their functions as NumPy does: where one cannot run, a module of its name computes with NumPy."""

_ARRAYS_ONLY = ("broadcast_to", "vdot", "roll", "einsum", "tensordot")


def _arrays_only(name: str) -> object:
    """NumPy's function, which refuses numbers of Python as CuPy's does."""
    function = getattr(np, name)

    def strict(*args: object, **named: object) -> object:
        arrays = args[:1] if name in ("broadcast_to", "roll") else [a for a in args if not isinstance(a, str)]
        assert all(isinstance(a, np.ndarray | np.generic) for a in arrays), f"{name} takes arrays only"
        return function(*args, **named)

    return strict


def stand_in(name: str) -> types.ModuleType:
    """A module of this name that computes with NumPy."""
    module = types.ModuleType(name)
    module.__dict__.update({k: v for k, v in vars(np).items() if not k.startswith("__")})
    module.__dict__.update({name: _arrays_only(name) for name in _ARRAYS_ONLY})
    module.__dict__["ElementwiseKernel"] = ElementwiseKernel
    return module


def stand_ins(name: str) -> dict[str, types.ModuleType]:
    """A library that NumPy stands in for, with what CuPy has of SciPy."""
    import scipy.linalg
    import scipy.special

    of_scipy = {"cupyx.scipy": scipy, "cupyx.scipy.linalg": scipy.linalg, "cupyx.scipy.special": scipy.special}
    of_cupy = types.ModuleType("cupyx")
    of_cupy.scatter_max = np.maximum.at
    more = {"cupyx": of_cupy, **of_scipy}
    return {name: stand_in(name), **(more if name == "cupy" else {})}


def can_run(name: str) -> bool:
    """Whether a library is installed, and has the GPU that it needs."""
    if find_spec(name) is None:
        return False
    return name != "cupy" or bool(import_module(name).cuda.runtime.getDeviceCount())


class Numbers:
    """Arrays of one library made of NumPy's, and back."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module = pytest.importorskip({"jax": "jax.numpy", "dask": "dask.array"}.get(name, name))
        if name == "jax":
            import_module("jax").config.update("jax_enable_x64", True)

    def to(self, value: object, chunks: int = 2) -> object:
        array = np.asarray(value)
        match self.name:
            case "torch":
                return self.module.tensor(array)
            case "dask":
                return self.module.from_array(array, chunks=chunks)
            case _:
                return self.module.asarray(array)

    def back(self, value: object) -> np.ndarray:
        if hasattr(value, "detach"):
            value = value.detach().cpu().numpy()
        if self.name == "cupy" and hasattr(value, "get"):
            value = value.get()
        return np.asarray(value)


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Numbers:
    if request.param in NUMPY_STANDS_IN and not can_run(request.param):
        for name, module in stand_ins(request.param).items():
            monkeypatch.setitem(sys.modules, name, module)
    if request.param == "jax":
        monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    return Numbers(request.param)
