"""Numbers to hold a derivation against: random arrays in the declared symmetries, differences of the objective, JAX.

A `Trial` is a derivation with a value for each of its arguments. What the result says is found twice, by the meaning of
the language and by the emitted NumPy code; what is right comes from differences of the objective, from a formula in
NumPy that is written by hand next to each test, and from JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from combdiff.derivation import Derivation
from combdiff.language.printing.anchors import domains_of
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.points import offsets_of
from combdiff.meaning.samples import random_value
from combdiff.meaning.values import axes
from combdiff.terms.terms import Add, Delta, Diff, Lam, Let, Sum, Term, Tuple, Var, split_coefficient, subterms
from combdiff.terms.types import Index, Map

SEEDS = (0, 1)
EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    """The text of a program of `examples/`."""
    return (EXAMPLES / f"{name}.cd").read_text(encoding="utf-8")


def squeezed(text):
    """A text without its layout."""
    return "".join(str(text).split())


# --- the shape of a result ------------------------------------------------------------------------------------------


def opened(d):
    """(parameters, shared values, what they are shared in) of a result."""
    params, t = [], d.term
    while isinstance(t, Lam) and not all(isinstance(p.kind, Index) for p in t.params):
        params += t.params
        t = t.body
    shared = {}
    if isinstance(t, Let):
        shared = {var.name: value for var, value in t.bindings}
        t = t.body
    return params, shared, t


def outputs(d):
    """The expressions that a result consists of, their slots left off."""
    _, _, core = opened(d)
    items = core.items if isinstance(core, Tuple) else (core,)
    return [item.body if isinstance(item, Lam) else item for item in items]


def outputs_over_reals(d):
    """The expression below all maps of a result whose slots are real numbers."""
    t = d.term
    while isinstance(t, Lam):
        t = t.body
    return [t]


def slot_names(d):
    """The names of the indices of each output."""
    _, _, core = opened(d)
    items = core.items if isinstance(core, Tuple) else (core,)
    return [tuple(p.name for p in item.params) if isinstance(item, Lam) else () for item in items]


def terms_of(t):
    """The terms of a sum."""
    return t.terms if isinstance(t, Add) else (t,)


def factors_in_front(t):
    """The numbers in front of the terms of a sum."""
    return [split_coefficient(u)[0].real for u in terms_of(t)]


def count_of(kind, t):
    """How many different subterms of this kind there are."""
    return sum(isinstance(u, kind) for u in subterms(t))


def has_delta(d):
    return count_of(Delta, d.term) > 0


def sums_in(t):
    return count_of(Sum, t)


# --- numbers --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A derivation with values for its arguments, by name as `t["C"]`."""

    derivation: Derivation
    values: Mapping[Term, object]
    sizes: Mapping[object, int]
    rng: np.random.Generator
    lists: Mapping[str, object]

    def __getitem__(self, name):
        return next(value for term, value in self.values.items() if called(term) == name)

    def result(self):
        """What the result means."""
        body = self.derivation.term
        while isinstance(body, Lam) and not all(isinstance(p.kind, Index) for p in body.params):
            body = body.body
        return evaluate(body, self.values, self.sizes)

    def run(self, **options):
        """What the emitted NumPy code gives."""
        return self.derivation.compile("numpy", check="full", **options)(
            **{called(term): value for term, value in self.values.items()}, **self.lists
        )

    def objective(self, **moved):
        """The value of what was differentiated, with some arguments replaced."""
        f = self.derivation.objective
        values = {term: moved.get(called(term), value) for term, value in self.values.items()}
        return evaluate(f.body, values, self.sizes)

    def unknowns(self):
        return [x.name for x in self.derivation.objective.params]

    def cotangents(self):
        """The last arguments, or 1 for a gradient."""
        known = [called(term) for term in self.values if isinstance(term, Var)]
        own = [name for name in known if name not in self.unknowns()]
        params = [p.name for p in opened(self.derivation)[0]]
        after = params[params.index(self.unknowns()[-1]) + 1 :]
        return [self[name] for name in own if name in after] or [1.0]


def called(term):
    match term:
        case Var(name):
            return name
        case Diff(kind, of):
            return f"{kind}_{called(of)}"
    raise AssertionError("values are given to variables and to derivatives of unknown maps")


def trial(d, seed=0, functions=None, lists=None, **shapes):
    """Random values for the arguments of `d`, in the subspace that their symmetries describe.

    Args:
        functions: for unknown functions and their derivatives Python callables, by name: g, grad_g.
        lists: the offsets of lists, by the names of their domains.
        shapes: the shapes of arrays by name; those of the others follow.
    """
    rng = np.random.default_rng(seed)
    functions = functions or {}
    params, _, _ = opened(d)
    sizes = {}
    for p in params:
        if p.name in shapes:
            for axis, size in zip(axes(p.kind), shapes[p.name], strict=True):
                assert sizes.setdefault(axis, size) == size, f"{p.name} does not fit"
        sizes |= {d.axes[0]: offsets_of(d, lists[d.name]) for d in domains_of(p.kind) if d.listed}
    values = {}
    for p in params:
        values[p] = functions[p.name] if p.name in functions else random_value(p.kind, sizes, rng)
    for t in subterms(d.term):
        if isinstance(t, Diff) and called(t) in functions:
            values[t] = functions[called(t)]
    return Trial(d, values, sizes, rng, lists or {})


def close(found, expected, tolerance=1e-9):
    """Equal shapes, and numbers that are equal up to `tolerance` of the largest."""
    found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
    assert len(found) == len(expected), f"{len(found)} results, not {len(expected)}"
    for a, b in zip(found, expected, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape, f"shape {a.shape}, not {b.shape}"
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        assert float(np.max(np.abs(a - b), initial=0.0)) <= tolerance * scale, f"{a} is not {b}"


def inner(a, b):
    """Re⟨a, b⟩, over the items of tuples."""
    if isinstance(a, list | tuple):
        return sum(inner(x, y) for x, y in zip(a, b, strict=True))
    return float(np.real(np.sum(np.conj(a) * np.asarray(b))))


def slope(along: Callable[[float], float], h=1e-3):
    """The derivative at 0 by central differences, to fourth order."""
    return (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)


def directions(t):
    """A random direction for each unknown, in the full space: complex where the unknown is."""
    found = {}
    for x in t.derivation.objective.params:
        free = Map(x.kind.params, x.kind.result) if isinstance(x.kind, Map) else x.kind
        found[x.name] = random_value(free, t.sizes, t.rng)
    return found


def moved(t, dz, h):
    return {name: t[name] + h * direction for name, direction in dz.items()}


def agrees_with_differences(t, tolerance=1e-8):
    """Re⟨𝒫(f)(z, k), dz⟩ = Re⟨k, f'(z) dz⟩ (Eq. 44), with k = 1 for a gradient (Eq. 43)."""
    found = t.result()
    found = found if isinstance(found, tuple) else (found,)
    k = t.cotangents()
    for _ in range(3):
        dz = directions(t)

        def along(h, dz=dz):
            value = t.objective(**moved(t, dz, h))
            return inner(k, value if isinstance(value, tuple) else (value,))

        expected = slope(along)
        assert abs(inner(found, [dz[x] for x in t.unknowns()]) - expected) <= tolerance * max(1.0, abs(expected))


def agrees_with_second_differences(t, tolerance=1e-7):
    """Re⟨H v, dz⟩ = ∂²f/∂s∂u of f(z + s v + u dz): the Hessian is symmetric over the real numbers."""
    found = t.result()
    found = found if isinstance(found, tuple) else (found,)
    v = dict(zip(t.unknowns(), t.cotangents(), strict=True))
    for _ in range(3):
        dz = directions(t)

        def along(s, u, dz=dz):
            return np.real(t.objective(**{x: t[x] + s * v[x] + u * dz[x] for x in dz}))

        expected = slope(lambda u, along=along: slope(lambda s: along(s, u), 1e-2), 1e-2)
        assert abs(inner(found, [dz[x] for x in t.unknowns()]) - expected) <= tolerance * max(1.0, abs(expected))


def jax_gradient(f, *unknowns):
    """∇f by JAX in double precision: the conjugate of what `jax.grad` returns (README, the gradient convention)."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    found = jax.grad(f, argnums=tuple(range(len(unknowns))))(*unknowns)
    return tuple(np.conj(np.asarray(g)) for g in found)
