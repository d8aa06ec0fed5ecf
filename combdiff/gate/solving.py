"""Evaluates adjoints, inverses and roots for the gate.

An inverse is solved for. A root is not, for a random equation need not have one: in its place stands a number that
depends on the values of g at fixed random points, which no change of the meaning of g leaves as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from combdiff.meaning.linear_maps import LinearMap, Space, probed, space_of
from combdiff.meaning.samples import shape_of
from combdiff.terms.terms import Diff, Lam, Term, Var
from combdiff.terms.types import Domain, Map

if TYPE_CHECKING:
    from combdiff.meaning.values import Value

_POINTS = 2


Known = Callable[[Term], object]
"""What computes a map that is not written out."""

Given = Callable[[Mapping[Var, object], Term], object]
"""What computes a term, with values for more variables."""


def made_of(t: Diff, known: Known, given: Given, sizes: Mapping[Domain, int]) -> object:
    """The value of `adjoint(f)`, `inverse(f)` or `root(f)`; nan where there is none."""
    f = t.of.type
    assert isinstance(f, Map), "only maps have an adjoint, an inverse or a root"
    function: Any = _as_function(t.of, given) if isinstance(t.of, Lam) else known(t.of)
    source, target = (space_of(kind, lambda m: shape_of(m, sizes)) for kind in (f.params[0], f.result))
    if t.kind == "root":
        return _instead_of_a_root(function, source)
    linear = function if isinstance(function, LinearMap) else probed(function, source, target)
    return linear.adjoint if t.kind == "adjoint" else linear.inverse


def _as_function(f: Lam, given: Given) -> Callable[..., object]:
    return lambda *args: given(dict(zip(f.params, args, strict=True)), f.body)


def _instead_of_a_root(function: Callable[[Value], Value], space: Space) -> Value:
    import numpy as np

    rng = np.random.default_rng(0)
    count = len(space.coordinates(space.held(np.zeros(space.shape))))
    total = rng.normal(size=count)
    for _ in range(_POINTS):
        value = space.coordinates(function(space.element(rng.normal(size=count))))
        total = total + 0.1 * rng.normal(size=(count, count)) @ value
    return space.element(total)
