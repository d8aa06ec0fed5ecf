"""JAX's own functions: loops are traced, and what raises an error elsewhere is nan."""

import jax.numpy as jnp


def newton(equation, x, steps=60):
    """The x at which the residual is 0; equation(x) is the residual and its Jacobian matrix."""
    from jax.lax import while_loop

    n = jnp.size(x)

    def improved(state):
        x, _, count = state
        residual, slopes = equation(x)
        step = jnp.linalg.solve(jnp.reshape(slopes, (n, n)), jnp.ravel(residual)).reshape(jnp.shape(x))

        def worse(share):
            return (share > 1e-6) & (jnp.linalg.norm(equation(x - share * step)[0]) > jnp.linalg.norm(residual))

        share = while_loop(worse, lambda share: share / 2, 1.0)
        x = x - share * step
        return x, jnp.linalg.norm(step) < 1e-12 * jnp.maximum(1.0, jnp.linalg.norm(x)), count + 1

    x = jnp.asarray(x, jnp.result_type(x, *equation(x)))
    x, found, _ = while_loop(lambda state: ~state[1] & (state[2] < steps), improved, (x, False, 0))
    return jnp.where(found, x, jnp.nan)


def newton_of_entries(equation, x, steps=60):
    """The x at which the residual is 0; equation(x) is the residual and its slope, of each entry by its own x."""
    from jax.lax import while_loop

    def improved(state):
        x, _, count = state
        residual, slopes = equation(x)
        step = residual / slopes
        moves = ~(abs(step) <= 1e-12 * (1 + abs(x)))
        share = 0 * abs(step) + 1

        def worse(share):
            return moves & (share > 1e-6) & (abs(equation(x - share * step)[0]) > abs(residual))

        share = while_loop(lambda s: worse(s).any(), lambda s: jnp.where(worse(s), s / 2, s), share)
        return x - share * step, ~moves.any(), count + 1

    x = jnp.asarray(x, jnp.result_type(x, *equation(x)))
    x, found, _ = while_loop(lambda state: ~state[1] & (state[2] < steps), improved, (x, False, 0))
    return jnp.where(found, x, jnp.nan)


def matrix_of_parts(of_one, of_i, n):
    """The real matrix of a map that is linear over the reals, with these values on units and on i times units."""
    columns = [jnp.reshape(part, (n, n)) for part in (of_one, of_i)]
    return jnp.block([[part.real for part in columns], [part.imag for part in columns]])


def newton_of_parts(equation, x, steps=60):
    """The complex x at which the residual is 0; equation(x) is it, and its pullback of units and of i times units."""
    from jax.lax import while_loop

    n = jnp.size(x)

    def improved(state):
        x, _, count = state
        residual, of_one, of_i = equation(x)
        slopes = matrix_of_parts(of_one, of_i, n).T
        step = jnp.linalg.solve(slopes, jnp.concatenate([jnp.ravel(residual).real, jnp.ravel(residual).imag]))
        step = (step[:n] + 1j * step[n:]).reshape(jnp.shape(x))

        def worse(share):
            return (share > 1e-6) & (jnp.linalg.norm(equation(x - share * step)[0]) > jnp.linalg.norm(residual))

        share = while_loop(worse, lambda share: share / 2, 1.0)
        x = x - share * step
        return x, jnp.linalg.norm(step) < 1e-12 * jnp.maximum(1.0, jnp.linalg.norm(x)), count + 1

    x = jnp.asarray(x, jnp.result_type(x, *equation(x)))
    x, found, _ = while_loop(lambda state: ~state[1] & (state[2] < steps), improved, (x, False, 0))
    return jnp.where(found, x, jnp.nan)


def lu_factors(matrix):
    """The LU factors of a matrix, which several systems are solved with."""
    from jax.scipy.linalg import lu_factor

    return lu_factor(matrix)


def scan(step, states, sequences, stored, length, reverse=False):
    """The states after all steps of a loop, and what each step stores, of these shapes and types."""
    from jax import ShapeDtypeStruct, eval_shape, lax

    count = len(states)
    rows = [ShapeDtypeStruct(x.shape[1:], x.dtype) for x in sequences]
    for _ in states:
        found = eval_shape(step, *states, *rows)
        kinds = [jnp.result_type(s, x, float) for s, x in zip(states, found)]
        states = [jnp.asarray(s, kind) for s, kind in zip(states, kinds)]

    def iterate(states, entries):
        found = step(*states, *entries)
        return [jnp.asarray(s, kind) for s, kind in zip(found, kinds)], found[count:]

    states, stored = lax.scan(iterate, states, sequences, length, reverse)
    return (*states, *stored)


def report_states(labels, flags, where=""):
    """Raise an error for the first step in which a state becomes nan (2) or infinite (1), as the flags say."""
    from jax import tree_util

    if not any(jnp.any(flag) for flag in tree_util.tree_leaves(flags)):
        return
    (names, reverse, inside), (first, wrong, within) = labels, flags
    for name, flag in zip(names, first):
        if flag:
            raise FloatingPointError(f"the state {name} is nan before the first step{where}")
    own = f" of its loop{', which runs backwards' if reverse else ''}{where}"
    for t in sorted(range(len(wrong[0])), reverse=reverse):
        for label, part in zip(inside, within):
            outer = f", inside step {t} of the loop of {' and '.join(names)}{where}"
            report_states(label, tree_util.tree_map(lambda flag: flag[t], part), outer)
        for name, flag in zip(names, wrong):
            if flag[t]:
                found = "nan" if flag[t] == 2 else "infinite"
                raise FloatingPointError(f"the state {name} becomes {found} in step {t}{own}")


def watched_scan(names, step, states, sequences, stored, length, reverse=False):
    """`scan`, and an error if an entry of a state becomes nan or infinite; loops inside of others tell those."""
    from functools import partial
    from threading import get_ident

    from jax import core, debug, tree_util

    inside, around = [], watched_scan.__dict__.setdefault(get_ident(), [])
    first = [jnp.isnan(state).any() for state in states]

    def watched(*given):
        around.append([])
        try:
            found = step(*given)
        finally:
            inside[:] = around.pop()
        wrong = []
        for old, new in zip(given, found[: len(states)]):
            nan, infinite = ((f(new) & ~f(old)).any() for f in (jnp.isnan, jnp.isinf))
            wrong.append(jnp.where(nan, 2, jnp.where(infinite, 1, 0)))
        return (*found, (wrong, [flags for _, flags in inside]))

    *results, (wrong, within) = scan(watched, states, sequences, stored, length, reverse)
    labels, flags = (names, reverse, [label for label, _ in inside]), (first, wrong, within)
    if around:
        around[-1].append((labels, flags))
    elif any(isinstance(flag, core.Tracer) for flag in tree_util.tree_leaves(flags)):
        debug.callback(partial(report_states, labels), flags)
    else:
        report_states(labels, flags)
    return results


def cumulative_logsumexp(x, axis):
    """log Σ exp(x) up to each entry along an axis."""
    from jax.lax import cumlogsumexp

    return cumlogsumexp(x, axis)


def maximum_at(shape, places, values):
    """The largest of the values at each of some places, −∞ where there is none; nan if a place is out of range."""
    wrong = [((p < 0) | (p >= n)).any() for p, n in zip(places, shape, strict=False)]
    found = jnp.full(shape, -jnp.inf, values.dtype).at[places].max(values)
    return jnp.where(jnp.stack(wrong).any(), jnp.nan, found)
