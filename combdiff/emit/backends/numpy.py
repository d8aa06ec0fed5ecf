"""NumPy's spelling (2.0 or later, where `np.sign` of a complex number is z/|z|)."""

from __future__ import annotations

from combdiff.emit.backends.spelling import Spelling
from combdiff.terms.functions import SCALAR_FUNCTIONS


def functions_of(module: str) -> dict[str, str]:
    """The scalar functions, in a library that calls them as NumPy and SciPy do."""
    own = {name: f"{module}.{name}" for name in ("pi", "inf", "nan")}
    own |= {"real": "{0}.real", "imag": "{0}.imag", "abs": "abs({0})"}
    rows = {name: row for name, row in SCALAR_FUNCTIONS.items() if row.numpy or row.scipy}
    return {name: row.template(module if row.numpy else "special") for name, row in rows.items()} | own


def not_complex(*names: str) -> dict[str, str]:
    """Functions that a library has of real numbers only."""
    return dict.fromkeys(names, "")


def branched_as(template: str) -> dict[str, str]:
    """The functions that are not real below zero, with an argument that is made complex; `template` takes the name."""
    return {name: template.format(row.numpy) for name, row in SCALAR_FUNCTIONS.items() if row.cut}


SPELLING = Spelling(
    name="numpy",
    imports="import numpy as np",
    reserved=frozenset({"np", "sparse", "special"}),
    special="from scipy import special",
    functions=functions_of("np"),
    # an array of real numbers may stand for complex ones; without the type, NumPy would give nan left of zero
    branched=branched_as("np.{}({{0}}, dtype=complex)"),
    scalar_conj="np.conj({0})",
    whole="np.float64({0})",
    arange="np.arange({0})",
    arange_float="np.arange({0}, dtype=float)",
    zeros="np.zeros({0})",
    zeros_complex="np.zeros({0}, dtype=complex)",
    empty="np.empty({0}, dtype={1})",
    zeros_of="np.zeros({0}, dtype={1})",
    types="np.result_type({0})",
    fuses=True,
    elides=True,
    shares_exponentials=True,
    overwrite="np.{0}({1}, out={2})",
    largest="{0}.max({1}{2}initial=-np.inf)",
    least="{0}.min({1}{2}initial=np.inf)",
    accumulate="np.{0}.accumulate({1}, axis={2})",
    where="np.where({0}, {1}, {2})",
    laid="np.ascontiguousarray({0})",
    roll="np.roll({0}, {1}, axis={2})",
    fourier="np.fft.{0}({1}{2})",
    tensordot="np.tensordot({0}, {1}, axes={2})",
    vdot="np.vdot({0}, {1})",
    einsum='np.einsum("{0}", {1}, {2})',
    cross="np.cross({0}, {1})",
    broadcast="np.broadcast_to({0}, {1})",
    full="np.full({0}, {1})",
    scalar_complex="np.complex128({0})",
    filters=True,
    tables=True,
    windows=True,
    fill_diagonal="np.fill_diagonal({0}, {1})",
    add_at="np.add.at({0}, {1}, {2})",
    sparse="sparse.coo_array(({0}, ({1}, {2})), shape=({3}))",
    ones="np.ones({0})",
    sparse_import="from scipy import sparse",
    add_flat="np.add.at({0}, {1}.ravel(), {2}.ravel())",
    counts="np.bincount({0}, minlength={1})",
    concatenate="np.concatenate([{0}])",
    stack="np.stack([{0}])",
    contiguous="np.ascontiguousarray({0})",
    solve="np.linalg.solve({0}, {1})",
    linear_algebra="np.linalg.",
    solvers=("numpy",),
    power="np.power({0}, {1})",
    power_complex="np.power({0}, {1}, dtype=complex)",
)
