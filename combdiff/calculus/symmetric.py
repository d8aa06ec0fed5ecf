"""A gradient projected orthogonally on the declared symmetry of its unknown: the average over the group.

    T(p, q) = T(q, p)'     makes of a gradient g     (g(p, q) + g(q, p)') / 2

Each element of the group is an isometry of the real inner product, so that the average is the orthogonal projection.
It is the direction of steepest ascent among those that keep the symmetry, not a derivative by independent entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from combdiff.errors import UnsupportedError
from combdiff.terms.arithmetic import combination
from combdiff.terms.terms import (
    Lam,
    Let,
    Term,
    Tuple,
    Var,
    add,
    apply,
    conj,
    fresh,
    let,
    mul,
    number,
    terms_of,
    tuple_of,
)
from combdiff.terms.types import Map, Symmetry

LARGEST = 1152
"""Elements of a group that is written out."""


def symmetrised(derivative: Lam, unknowns: Sequence[Var]) -> Lam:
    """A map to the cotangents of `unknowns`, each projected on the symmetry of its unknown.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> f = infer(parse("(x::Sym, a::RV) -> (i, j) -> a(i) * a(j)^2"))
    >>> expression_text(symmetrised(f, f.params[:1]).body)
    '(i, j) -> 1/2 * a(i) * a(j)^2 + 1/2 * a(j) * a(i)^2'
    """
    bindings, core = (
        (derivative.body.bindings, derivative.body.body) if isinstance(derivative.body, Let) else ((), derivative.body)
    )
    items = core.items if len(unknowns) > 1 and isinstance(core, Tuple) else (core,)
    projected = [_average(x, e) for x, e in zip(unknowns, items, strict=True)]
    return Lam(derivative.params, let(bindings, tuple_of(projected)))


def _average(x: Var, gradient: Term) -> Term:
    kind = x.kind
    if not isinstance(kind, Map) or not kind.symmetries:
        return gradient
    group = _group(kind, x.name)
    names = (
        [p.name for p in gradient.params]
        if isinstance(gradient, Lam)
        else [f"d{n + 1}" for n in range(len(kind.params))]
    )
    slots = tuple(fresh(name, p) for name, p in zip(names, kind.params, strict=True))
    places: tuple[Term, ...] = slots
    share = number(Fraction(1, len(group)))
    terms: list[Term] = []
    for element in group:
        image = apply(gradient, *element.image(places, combination))
        terms += [mul(number(element.sign), share, conj(t) if element.conj else t) for t in terms_of(image)]
    return Lam(slots, add(*terms))


def _group(kind: Map, name: str) -> list[Symmetry]:
    """All elements of the group that the declared symmetries generate."""
    found = {Symmetry.identity(len(kind.params)): None}
    waiting = [*found]
    while waiting:
        element = waiting.pop()
        for law in kind.symmetries:
            other = law.after(element)
            if other not in found:
                found[other] = None
                waiting.append(other)
        if len(found) > LARGEST:
            raise UnsupportedError(
                f"the symmetries of {name} are more than {LARGEST}, and a gradient is not averaged over so many",
                remedy="leave symmetric out, and average the array",
            )
    return [*found]
