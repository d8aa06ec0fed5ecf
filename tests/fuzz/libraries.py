"""The same code for other array libraries, and JAX's own derivative of the interpreter as a second opinion."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from . import oracle
from .arguments import extra_arguments
from .case import Case, Failure, Skipped
from .data import EXTREMES, SUPPLIED, scope_of
from .kinds import Function, Tensor
from .meaning import Held, evaluate
from .syntax import Derived, walk


def _jax() -> Any:
    """JAX with double precision, on the processor."""
    if find_spec("jax") is None:
        raise Skipped("JAX is not installed")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def _arrays_only(case: Case) -> None:
    if any(isinstance(x, SUPPLIED) for x in case.arrays.values()):
        raise Skipped("functions of the user are NumPy's")


def _held_against(case: Case, backend: str, to: Callable[[Any], Any], back: Callable[[Any], Any]) -> None:
    _arrays_only(case)
    value = case.rng.random() < 0.4 and case.program.mode == "grad"
    f = case.derivation.compile(backend, value=value)
    extra = {k: to(x) for k, x in extra_arguments(case, f).items()}
    found = case.run(f, lambda name, x: to(x), extra)
    items = found if isinstance(found, tuple) else (found,)
    arrays = tuple(back(x) for x in items[-len(case.program.unknowns) :])
    case.compare(arrays, f"gradient by {backend}")


def cupy(case: Case) -> None:
    """CuPy's code with NumPy in its place."""
    from tests.emit.array_libraries import stand_ins

    if "cupy" not in sys.modules:
        if find_spec("cupy") is not None:
            raise Skipped("CuPy is installed: it has tests of its own")
        sys.modules.update(stand_ins("cupy"))
    _held_against(case, "cupy", np.asarray, np.asarray)


def torch(case: Case) -> None:
    """PyTorch's code."""
    if find_spec("torch") is None:
        raise Skipped("PyTorch is not installed")
    import torch as library

    library.set_num_threads(1)
    _held_against(case, "torch", lambda x: library.tensor(np.asarray(x)), lambda x: x.detach().resolve_conj().numpy())


def dask(case: Case) -> None:
    """Dask's code, in chunks."""
    if find_spec("dask") is None:
        raise Skipped("Dask is not installed")
    import dask.array as library

    chunks = case.rng.choice((1, 2, 3))
    _held_against(case, "dask", lambda x: library.from_array(np.asarray(x), chunks=chunks), np.asarray)


def jax(case: Case) -> None:
    """JAX's code, one operation at a time."""
    library = _jax()
    _held_against(case, "jax", library.numpy.asarray, np.asarray)


def jit(case: Case) -> None:
    """JAX's code, compiled as a whole."""
    library = _jax()
    _arrays_only(case)
    if any(r.sort == "list" for r in case.titles):
        raise Skipped("lists are looked at before the code runs")
    f = case.derivation.compile("jax", check=False)
    if any(type(a.kind).__name__ == "Index" for a in f.arguments):
        raise Skipped("sizes are static")
    given = {**case.arrays, **extra_arguments(case, f)}
    args = [library.numpy.asarray(given[a.name]) for a in f.arguments if not a.optional]
    found = library.jit(f)(*args)
    items = found if isinstance(found, tuple) else (found,)
    case.compare(tuple(map(np.asarray, items)), "gradient by jax.jit")


def second_opinion(case: Case) -> None:
    """The oracle itself against JAX's derivative of the same meaning."""
    library = _jax()
    _arrays_only(case)
    if case.weather in EXTREMES or any(isinstance(e, Derived) for e in walk(case.program.body)):
        raise Skipped("not for JAX")
    jnp = library.numpy
    scope = scope_of(case.data, np.float64)

    def objective(unknowns: list[Any]) -> Any:
        held = [
            Held(x[None], 0, u.kind.slots if isinstance(u.kind, Tensor) else ())
            for u, x in zip(case.program.unknowns, unknowns, strict=True)
        ]
        inner = scope.with_(case.program.unknowns, held)
        # a power of what JAX does not trace is NumPy's
        with np.errstate(all="ignore"):
            value = evaluate(case.program.body, inner)
        return jnp.real(oracle.paired(case.program, value, case.cotangents, np.float64)).sum()

    at = [jnp.asarray(case.data[u]) for u in case.program.unknowns]
    gradients = [np.conj(np.asarray(g)) for g in library.grad(objective)(at)]
    if not all(np.isfinite(g).all() for g in gradients):
        raise Skipped("JAX is not finite where a branch is not taken")
    try:
        case.compare(
            tuple(
                g.reshape(case.arrays[case.writer.names.of[u]].shape)
                for u, g in zip(case.program.unknowns, gradients, strict=True)
            ),
            "JAX",
        )
    except Failure as failure:
        raise Failure("oracle", f"the interpreter and JAX disagree: {failure.message}") from failure


__all__ = ["Function", "cupy", "dask", "jax", "jit", "second_opinion", "torch"]
