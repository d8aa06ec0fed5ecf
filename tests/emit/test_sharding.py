"""JAX code on arrays that lie on several devices: contractions join no axes, and no array is gathered for that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import combdiff as cd

PROGRAMS = {
    "exchange": "(J::(N, N, N, N) -> R) -> (P::(N, N) -> R) -> sum((i, j, k, l), J(i, j, k, l) * P(i, j) * P(k, l))",
    "crossed": "(J::(N, N, N, N) -> R) -> (P::(N, N) -> R) -> sum((i, j, k, l), J(i, k, j, l) * P(i, j) * P(k, l))",
    "in the middle": "(J::(N, N, N, N) -> R) -> (P::(N, N) -> R) ->"
    " sum((i, j, k, l), J(i, j, k, l) * P(j, k) * P(i, l))",
    "complex": "(J::(N, N, N, N) -> C) -> (P::(N, N) -> C) ->"
    " sum((i, j, k, l), real(J(i, j, k, l) * P(i, j) * conj(P(k, l))))",
    "a norm": "(J::(N, N, N, N) -> R) -> (P::(N, N) -> R) -> sum((i, j), (P(i, j) + sum(k, J(i, j, k, k)))^2)",
    "a complex norm": "(J::(N, N, N, N) -> C) -> (P::(N, N) -> C) -> sum((i, j), abs2(P(i, j) + J(i, j, i, i)))",
}
IN_PROCESS = """
import sys

import jax

jax.config.update("jax_enable_x64", True)
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import combdiff as cd
from combdiff.terms.types import is_complex

assert len(jax.devices()) == 4
rng = np.random.default_rng(0)
d = cd.grad(sys.argv[1])
f, g = d.compile("jax", value=True), d.compile(value=True)
arrays = []
for argument in f.arguments:
    shape = (8,) * len(argument.kind.params)
    array = rng.normal(size=shape)
    arrays.append(array + 1j * rng.normal(size=shape) if is_complex(argument.kind) else array)
wanted = g(*arrays)
for kind in (AxisType.Explicit, AxisType.Auto) if sys.argv[2] == "explicit" else (AxisType.Auto,):
    mesh = jax.make_mesh((4,), ("d",), axis_types=(kind,))
    for axis in range(4):
        spec = PartitionSpec(*("d" if n == axis else None for n in range(4)))
        J = jax.device_put(arrays[0], NamedSharding(mesh, spec))
        P = jax.device_put(arrays[1], NamedSharding(mesh, PartitionSpec(None, None)))
        for one, other in zip(f(J, P), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        text = jax.jit(f).lower(J, P).compile().as_text()
        gathered = [line for line in text.splitlines() if "all-gather(" in line and "[8,8,8,8]" in line]
        assert not gathered, (kind, axis, gathered)
"""


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_jax_code_takes_sharded_arrays_and_gathers_none(name: str) -> None:
    """On four virtual devices; a mesh of explicit axes refuses reshapes, and entries (i, i) of what is sharded."""
    pytest.importorskip("jax")
    flags = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    flags["PYTHONPATH"] = str(Path(cd.__file__).resolve().parent.parent)
    mesh = "auto" if "norm" in name else "explicit"
    done = subprocess.run(
        [sys.executable, "-c", IN_PROCESS, PROGRAMS[name], mesh], env=flags, capture_output=True, text=True, timeout=120
    )
    assert not done.returncode, done.stderr[-2000:]


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("options", [{"value": True}, {"hvp": True}], ids=str)
def test_jax_contractions_join_no_axes(name: str, options: dict[str, bool]) -> None:
    text = cd.grad(PROGRAMS[name]).source("jax", **options)
    assert "reshape" not in text and "ravel" not in text and "vdot" not in text
