"""Array libraries in tests: numbers to and from each; CuPy's place is taken by NumPy where there is no GPU."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from tests.emit.elementwise_kernels import ElementwiseKernel

LIBRARIES = ("cupy", "jax", "torch", "dask")
_ARRAYS_ONLY = ("broadcast_to", "vdot", "roll", "einsum", "tensordot")


def _arrays_only(name: str) -> object:
    """NumPy's function, which refuses numbers of Python as CuPy's does."""
    function = getattr(np, name)

    def strict(*args: object, **named: object) -> object:
        arrays = args[:1] if name in ("broadcast_to", "roll") else [a for a in args if not isinstance(a, str)]
        assert all(isinstance(a, np.ndarray | np.generic) for a in arrays), f"cupy.{name} takes arrays only"
        return function(*args, **named)

    return strict


def stand_in() -> types.ModuleType:
    """A module `cupy` that computes with NumPy."""
    module = types.ModuleType("cupy")
    module.__dict__.update({k: v for k, v in vars(np).items() if not k.startswith("__")})
    module.__dict__.update({name: _arrays_only(name) for name in _ARRAYS_ONLY})
    module.__dict__["ElementwiseKernel"] = ElementwiseKernel
    return module


def has_gpu() -> bool:
    try:
        import cupy
    except ImportError:
        return False
    return bool(cupy.cuda.runtime.getDeviceCount())


class Numbers:
    """Arrays of one library made of NumPy's, and back."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module = pytest.importorskip({"jax": "jax.numpy", "dask": "dask.array"}.get(name, name))

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
    if request.param == "cupy" and not has_gpu():
        monkeypatch.setitem(sys.modules, "cupy", stand_in())
    if request.param == "jax":
        jax = pytest.importorskip("jax")
        monkeypatch.setenv("JAX_PLATFORMS", "cpu")
        jax.config.update("jax_enable_x64", True)
    return Numbers(request.param)
