"""CuPy's spelling: NumPy's under another name, and a kernel for what is computed entry by entry.

Streams and memory are left to CuPy, and no value is waited for. Kernels are `ElementwiseKernel`s, not functions under
`cupy.fuse`, which some releases of CuPy 13 cannot trace with NumPy 2, and which leaves the types to be guessed.
"""

from __future__ import annotations

from combdiff.emit.backends.numpy import branched_as, functions_of, not_complex
from combdiff.emit.backends.spelling import Spelling

SPELLING = Spelling(
    name="cupy",
    imports="import cupy as cp",
    reserved=frozenset({"cp", "special"}),
    special="from cupyx.scipy import special",
    functions=functions_of("cp"),
    branched=branched_as("cp.{}({{0}}.astype(complex))") | not_complex("erf", "erfc"),
    arange="cp.arange({0})",
    arange_float="cp.arange({0}, dtype=float)",
    zeros="cp.zeros({0})",
    zeros_complex="cp.zeros({0}, dtype=complex)",
    empty="cp.empty({0}, dtype={1})",
    zeros_of="cp.zeros({0}, dtype={1})",
    types="cp.result_type({0})",
    number="cp.asarray({0}, dtype=float)",
    number_complex="cp.asarray({0}, dtype=complex)",
    scalar_complex="cp.asarray({0}, dtype=complex)",
    scalar_conj="cp.conj({0})",
    overwrite="cp.{0}({1}, out={2})",
    where="cp.where({0}, {1}, {2})",
    power="cp.power({0}, {1})",
    power_complex="cp.power({0}.astype(complex), {1})",
    eager=False,
    kernel='{0} = cp.ElementwiseKernel(\n    "{1}",\n    "{2}",\n    {3},\n    "{0}",\n)',
    laid="cp.ascontiguousarray({0})",
    roll="cp.roll({0}, {1}, axis={2})",
    broadcast="cp.broadcast_to({0}, {1})",
    add_at="cp.add.at({0}, {1}, {2})",
    fourier="cp.fft.{0}({1}{2})",
    tensordot="cp.tensordot({0}, {1}, axes={2})",
    vdot="cp.vdot({0}, {1})",
    einsum='cp.einsum("{0}", {1}, {2})',
    cross="cp.cross({0}, {1})",
    concatenate="cp.concatenate([{0}])",
    stack="cp.stack([{0}])",
    from_numpy="cp.asarray({0})",
    contiguous="cp.ascontiguousarray({0})",
    solve="cp.linalg.solve({0}, {1})",
    linear_algebra="cp.linalg.",
    solvers=("cupy", "portable", "numpy"),
    solver_words={"from scipy": "from cupyx.scipy", "np.": "cp."},
)
