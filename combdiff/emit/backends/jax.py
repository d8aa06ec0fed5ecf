"""JAX's spelling: nothing is written in place and no value is asked for, so that `jax.jit` takes the function.

Contractions join no axes: a sharded array cannot always be reshaped, or would be gathered on each device. Precision is
the caller's: `jax.config.update("jax_enable_x64", True)` for double.
"""

from __future__ import annotations

from combdiff.emit.backends.numpy import branched_as, functions_of, not_complex
from combdiff.emit.backends.spelling import Spelling

# loops that are traced; what raises an error elsewhere is nan
_SOLVER_WORDS = {
    "    n = np.size(x)\n    for _ in range(steps):\n": """    from jax.lax import while_loop

    n = np.size(x)

    def improved(state):
        x, _, count = state
""",
    "        share = 1.0\n        while share > 1e-6 and np": "        worse = lambda share: (share > 1e-6) & (np",
    " > np.linalg.norm(residual):\n            share /= 2\n": """ > np.linalg.norm(residual))
        share = while_loop(worse, lambda share: share / 2, 1.0)
""",
    "        if np.linalg.norm(step) <= 1e-12 * max(1.0, np.linalg.norm(x)):\n            return x\n": """\
        return x, np.linalg.norm(step) < 1e-12 * np.maximum(1.0, np.linalg.norm(x)), count + 1

    x = np.asarray(x, np.result_type(x, *equation(x)))
    x, found, _ = while_loop(lambda state: ~state[1] & (state[2] < steps), improved, (x, False, 0))
""",
    """    for _ in range(steps):
        residual, slopes = equation(x)
        step = residual / slopes
        moves""": """    from jax.lax import while_loop

    def improved(state):
        x, _, count = state
        residual, slopes = equation(x)
        step = residual / slopes
        moves""",
    """        while (worse := moves & (share > 1e-6) & (abs(equation(x - share * step)[0]) > abs(residual))).any():
            share = np.where(worse, share / 2, share)
        x = x - share * step
        if not moves.any():
            return x
""": """
        def worse(share):
            return moves & (share > 1e-6) & (abs(equation(x - share * step)[0]) > abs(residual))

        share = while_loop(lambda s: worse(s).any(), lambda s: np.where(worse(s), s / 2, s), share)
        return x - share * step, ~moves.any(), count + 1

    x = np.asarray(x, np.result_type(x, *equation(x)))
    x, found, _ = while_loop(lambda state: ~state[1] & (state[2] < steps), improved, (x, False, 0))
""",
    'raise ArithmeticError("Newton\'s method finds no root from its start")': "return np.where(found, x, np.nan)",
    "from scipy.linalg.lapack import get_lapack_funcs": "from jax.scipy.linalg import lu_factor",
    """    if not len(matrix):
        # which LAPACK refuses
        return matrix, np.arange(0)
    (factorised,) = get_lapack_funcs(["getrf"], [matrix])
    lu, pivots, zero = factorised(matrix)
    if zero > 0:
        raise np.linalg.LinAlgError("Singular matrix")
    return lu, pivots""": "    return lu_factor(matrix)",
    "from scipy": "from jax.scipy",
    """    stored = [np.empty(shape, dtype=kind) for shape, kind in stored]
    for t in reversed(range(length)) if reverse else range(length):
        found = step(*states, *(x[t] for x in sequences))
        states = found[:count]
        for whole, part in zip(stored, found[count:]):
            whole[t] = part
    return (*states, *stored)""": """    rows = [ShapeDtypeStruct(x.shape[1:], x.dtype) for x in sequences]
    for _ in states:
        found = eval_shape(step, *states, *rows)
        kinds = [np.result_type(s, x, float) for s, x in zip(states, found)]
        states = [np.asarray(s, kind) for s, kind in zip(states, kinds)]

    def turn(states, entries):
        found = step(*states, *entries)
        return [np.asarray(s, kind) for s, kind in zip(found, kinds)], found[count:]

    states, stored = lax.scan(turn, states, sequences, length, reverse)
    return (*states, *stored)""",
    "    count = len(states)\n": "    from jax import ShapeDtypeStruct, eval_shape, lax\n\n    count = len(states)\n",
    "np.": "jnp.",
}

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
    concatenate="jnp.concatenate([{0}])",
    stack="jnp.stack([{0}])",
    from_numpy="jnp.asarray({0})",
    contiguous="jnp.asarray({0})",
    solve="jnp.linalg.solve({0}, {1})",
    linear_algebra="jnp.linalg.",
    solver_words=_SOLVER_WORDS,
)
