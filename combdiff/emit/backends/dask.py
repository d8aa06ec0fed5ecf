"""Dask's spelling: arrays in chunks, computed when asked for. Axes are not joined; index arrays are NumPy's."""

from __future__ import annotations

from combdiff.emit.backends.numpy import branched_as, functions_of
from combdiff.emit.backends.spelling import Spelling

SPELLING = Spelling(
    name="dask",
    imports="import dask.array as da\nimport numpy as np",
    reserved=frozenset({"da", "np", "special"}),
    special="from scipy import special",
    functions=functions_of("da")
    | {"pi": "np.pi", "inf": "np.inf", "nan": "np.nan", "polygamma": "da.map_blocks(special.polygamma, {0}, {1})"},
    branched=branched_as("da.{}({{0}}.astype(complex))"),
    arange="np.arange({0})",
    arange_float="da.arange({0}, dtype=float)",
    zeros="da.zeros({0})",
    zeros_complex="da.zeros({0}, dtype=complex)",
    number="np.float64({0})",
    number_complex="np.complex128({0})",
    scalar_conj="da.conj({0})",
    where="da.where({0}, {1}, {2})",
    power="da.power({0}, {1})",
    power_complex="da.power({0}.astype(complex), {1})",
    copy="{0}",
    eager=False,
    roll="da.roll({0}, {1}, axis={2})",
    broadcast="da.broadcast_to({0}, {1})",
    diagonal="da.diagonal({0})",
    trace="da.diagonal({0}).sum()",
    points="{0}.vindex[{1}]",
    concrete="np.asarray({0})",
    put="",
    join="da.concatenate([{0}], axis={1})",
    add_at="",
    added_at="added_at",
    stack="da.stack([{0}])",
    tensordot="da.tensordot({0}, {1}, axes={2})",
    vdot="({0}.conj() * {1}).sum()",
    einsum='da.einsum("{0}", {1}, {2})',
    joins_axes=False,
    solvers=("dask", "portable", "numpy"),
    solve="",
    scan=False,
    loops=False,
)
