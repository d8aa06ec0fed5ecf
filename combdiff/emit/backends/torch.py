"""PyTorch's spelling: products of real with complex tensors are cast, new tensors are made where the arguments are."""

from __future__ import annotations

from combdiff.emit.backends.numpy import functions_of, not_complex
from combdiff.emit.backends.spelling import Spelling
from combdiff.terms.functions import SCALAR_FUNCTIONS

_OWN = {
    "sign": "torch.sgn({0})",
    "abs": "torch.abs({0})",
    "round": "torch.round({0})",
    "relu": "torch.relu({0})",
    "clip": "torch.clamp({0}, {1}, {2})",
    # above the threshold it is x, which differs from log(1 + e^x) by less than rounding
    "softplus": "torch.nn.functional.softplus({0}, threshold=40)",
    # torch has |Γ| only: it is negative between −1 and 0, −3 and −2, …
    "gamma": "torch.exp(torch.lgamma({0})) * torch.where(({0} < 0) & (torch.floor({0}) % 2 != 0), -1.0, 1.0)",
}
_SPECIAL = {name: row.template("torch.special") for name, row in SCALAR_FUNCTIONS.items() if row.scipy}

SPELLING = Spelling(
    name="torch",
    imports="import torch",
    reserved=frozenset({"torch", "device"}),
    functions=functions_of("torch") | _SPECIAL | _OWN,
    branched=not_complex("erf", "erfc"),
    of_real={"imag": "torch.zeros_like({0})"},
    arange="torch.arange({0}, device=device)",
    arange_float="torch.arange({0}, dtype=torch.float64, device=device)",
    zeros="torch.zeros({0}, dtype=torch.float64, device=device)",
    zeros_complex="torch.zeros({0}, dtype=torch.complex128, device=device)",
    empty="torch.empty({0}, dtype={1}, device=device)",
    zeros_of="torch.zeros({0}, dtype={1}, device=device)",
    float_type="torch.float64",
    complex_type="torch.complex128",
    integer_type="torch.int64",
    number="torch.tensor({0}, dtype=torch.float64, device=device)",
    choice="torch.tensor({0}, dtype=torch.float64, device=device)",
    number_complex="torch.tensor({0}, dtype=torch.complex128, device=device)",
    device="device = {0}.device",
    scalar_conj="torch.conj({0})",
    largest="{0}.amax({1})",
    least="{0}.amin({1})",
    where="torch.where({0}, {1}, {2})",
    power="torch.pow({0}, {1})",
    power_complex="torch.pow({0}, {1})",
    power_of_zero="torch.where({1} == 0, 1, torch.pow({0}, {1}))",
    copy="{0}.clone()",
    eager=False,
    laid="{0}.contiguous()",
    roll="torch.roll({0}, {1}, dims={2})",
    broadcast="torch.broadcast_to({0}, {1})",
    transpose="{0}.permute({1})",
    reverse="",
    flip="torch.flip({0}, ({1},))",
    add_at="{0}.index_put_({1}, {2}, accumulate=True)",
    place="torch.tensor({0}, device=device)",
    fourier="torch.fft.{0}({1}{2})",
    fourier_axis=", dim={0}",
    tensordot="torch.tensordot({0}, {1}, dims={2})",
    vdot="torch.vdot({0}, {1})",
    inner="torch.vdot({0}.ravel(), {1}.ravel())",
    einsum='torch.einsum("{0}", {1}, {2})',
    cross="torch.linalg.cross({0}, {1})",
    to_complex="{0} + 0j",
    to_real="{0}.to(torch.float64)",
    as_float="{0}.to(torch.float64)",
    concatenate="torch.cat([{0}])",
    stack="torch.stack([{0}])",
    from_numpy="torch.as_tensor({0}, device={1}.device)",
    contiguous="{0}.contiguous()",
    solve="torch.linalg.solve({0}, {1})",
    linear_algebra="torch.linalg.",
    solvers=("torch", "portable", "numpy"),
    solver_words={
        "np.size(x)": "x.numel()",
        "np.size(k)": "k.numel()",
        "np.shape(x)": "x.shape",
        "np.shape(k)": "k.shape",
        "np.eye(n, dtype=matrix.dtype)": "torch.eye(n, dtype=matrix.dtype, device=matrix.device)",
        "np.eye(n, dtype=values.dtype)": "torch.eye(n, dtype=values.dtype, device=values.device)",
        "np.empty(shape, dtype=kind)": "torch.empty(shape, dtype=kind, device=states[0].device)",
        ".astype(vectors.dtype)": ".to(vectors.dtype)",
        "sizes.max(-1, keepdims=True)": "sizes.amax(-1, keepdim=True)",
        "np.": "torch.",
    },
)
