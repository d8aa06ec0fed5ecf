"""Drops multiples of g at a root of g: of a minimum only the explicit part of a derivative remains.

With x = root(x -> ∇f(x)) the cotangent of x in f(x, p) is ∇f(x) = 0, so that nothing has to be solved for (the envelope
theorem). This is the one law that uses the equation itself, not only its derivative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from combdiff.calculus.implicit import is_implicit, residual
from combdiff.canon.canonical import normal_form
from combdiff.records import dataclass
from combdiff.terms.terms import (
    ZERO,
    Diff,
    Lam,
    Term,
    Var,
    apply,
    body_of,
    lam,
    mul,
    number,
    params_of,
    reciprocal,
    substitute,
    subterms,
)

Binding = tuple[Var, Term]

LONGEST = 300
"""Nodes of a value that is compared with an equation."""


@dataclass(frozen=True, slots=True)
class Vanishing:
    """A value, written out, that is zero: it equals `multiple`, a number times what an equation makes zero."""

    var: Var
    value: Term
    multiple: Term

    @property
    def zero(self) -> Term:
        return Lam(self.value.params, ZERO) if isinstance(self.value, Lam) else ZERO


def vanishing(bindings: Sequence[Binding]) -> Iterator[Vanishing]:
    """The values that are multiples of g(y) for some y = root(g) among `bindings`.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, y, z = (fresh(name, REAL) for name in "xyz")
    >>> root = Diff("root", Lam((x,), mul(x, x)))
    >>> [found.var.name for found in vanishing([(y, root), (z, mul(number(2), y, y))])]
    ['z']
    """
    roots = [(y, value) for y, value in bindings if is_implicit(value) and _is_root(value)]
    for y, value in roots:
        for position, (var, candidate) in enumerate(bindings):
            if var is y or candidate.type != y.kind or is_implicit(candidate):
                continue
            candidate = _written_out(candidate, bindings[:position])
            found = _multiple(y, value, candidate) if y in candidate.free else None
            if found is not None:
                yield Vanishing(var, candidate, found)


def _is_root(value: Term) -> bool:
    return any(isinstance(u, Diff) and u.kind == "root" for u in (value, *_below(value)))


def _below(value: Term) -> Iterator[Term]:
    if isinstance(value, Lam):
        yield from (u for u in subterms(value.body, Diff))


def _written_out(value: Term, before: Sequence[Binding]) -> Term:
    """`value` with the values before it put in, but for those that solve equations, while it stays short."""
    for var, e in reversed(before):
        if var in value.free and not is_implicit(e):
            value = substitute(value, {var: e})
            if sum(1 for _ in subterms(value)) > LONGEST:
                break
    return value


def _multiple(y: Var, root: Term, candidate: Term) -> Term | None:
    """c·g(y), if `candidate` is that for a number c."""
    slots = params_of(candidate)
    zero = residual(root, y)
    zero = apply(zero, *slots) if slots else zero
    ours, theirs = normal_form(body_of(candidate)), normal_form(zero)
    if not ours.sign or ours.key != theirs.key:
        return None
    (a, b), (c, d) = ours.coefficient, theirs.coefficient
    ratio = mul(number(ours.sign * theirs.sign), number((a, b)), reciprocal(number((c, d))), zero)
    return lam(slots, ratio) if slots else ratio
