"""JAX's spelling: nothing is written in place and no value is asked for, so that `jax.jit` takes the function.

Contractions join no axes: a sharded array cannot always be reshaped, or would be gathered on each device. Precision is
the caller's: `jax.config.update("jax_enable_x64", True)` for double.
"""

from __future__ import annotations

from combdiff.emit.backends.numpy import branched_as, functions_of, not_complex
from combdiff.emit.backends.spelling import Spelling

SPELLING = Spelling(
    name="jax",
    loops=False,
    imports="import jax.numpy as jnp",
    reserved=frozenset({"jnp", "special"}),
    special="from jax.scipy import special",
    functions=functions_of("jnp"),
    branched=branched_as("jnp.{}(jnp.asarray({{0}}, complex))") | not_complex("erf", "erfc"),
    arange="jnp.arange({0})",
    arange_float="jnp.arange({0}, dtype=float)",
    zeros="jnp.zeros({0})",
    zeros_complex="jnp.zeros({0}, dtype=complex)",
    number="jnp.asarray({0}, float)",
    number_complex="jnp.asarray({0}, complex)",
    scalar_conj="jnp.conj({0})",
    largest="{0}.max({1}{2}initial=-jnp.inf)",
    least="{0}.min({1}{2}initial=jnp.inf)",
    where="jnp.where({0}, {1}, {2})",
    power="jnp.power({0}, {1})",
    power_complex="jnp.power(jnp.asarray({0}, complex), {1})",
    copy="{0}",
    eager=False,
    joins_axes=False,
    roll="jnp.roll({0}, {1}, axis={2})",
    broadcast="jnp.broadcast_to({0}, {1})",
    put="{0} = {0}.at[{3}].set({2})",
    increase="{0} = {0}.at[{3}].add({2})",
    decrease="{0} = {0}.at[{3}].add(-({2}))",
    add_at="{0} = {0}.at[{3}].add({2})",
    entries='{0}.at[{1}].get(mode="fill", wrap_negative_indices=False)',
    kept="{0} = jnp.where((({1} >= 0) & ({1} < {2})).all(), {0}, jnp.nan)",
    fourier="jnp.fft.{0}({1}{2})",
    tensordot="jnp.tensordot({0}, {1}, axes={2})",
    vdot="jnp.vdot({0}, {1})",
    inner="jnp.sum(jnp.conj({0}) * {1})",  # jnp.vdot joins axes
    real_inner="jnp.sum({0} * {1})",
    einsum='jnp.einsum("{0}", {1}, {2})',
    cross="jnp.cross({0}, {1})",
    concatenate="jnp.concatenate([{0}])",
    stack="jnp.stack([{0}])",
    from_numpy="jnp.asarray({0})",
    contiguous="jnp.asarray({0})",
    solve="jnp.linalg.solve({0}, {1})",
    linear_algebra="jnp.linalg.",
    solvers=("jax", "portable", "numpy"),
    solver_words={"from scipy": "from jax.scipy", "np.": "jnp."},
)
