"""Writes the steps of loops with the values that have a name and are the same in all steps.

    u = scan((u, t) -> i -> sum(k, u(k) * inv((j, l) -> A(j, l) + delta(j, l, 1))(i, k)), u0, T)
    Z = (i, k) -> A(i, k) + delta(i, k, 1)

becomes Z = (i, k) -> A(i, k) + delta(i, k, 1);  u = scan((u, t) -> i -> sum(k, u(k) * inv(Z)(i, k)), u0, T).
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.canon.canonical import canonical
from combdiff.terms.laws.opening import closed
from combdiff.terms.terms import Add, Lam, Let, Loop, Reduce, Term, Var, body_of, split_coefficient, subterms

Binding = tuple[Var, Term]


def with_names_in_loops(bindings: Sequence[Binding]) -> list[Binding]:
    """`bindings` with names in the steps of loops, and the values that have these names in front of the loops."""
    if not any(isinstance(value, Loop) for _, value in bindings):
        return [*bindings]
    moving: set[Var] = set()
    fixed: dict[Var, Term] = {}
    for var, value in bindings:
        if isinstance(value, Loop) or not value.free.isdisjoint(moving):
            moving.add(var)
        elif _is_of_a_matrix(value):
            fixed[var] = value
    written = [(var, _in_step(value, fixed) if isinstance(value, Loop) else value) for var, value in bindings]
    return _in_order(written)


def _is_of_a_matrix(value: Term) -> bool:
    """Whether it is a matrix, or what is made of one by a function of matrices."""
    body = body_of(value)
    if any(isinstance(u, Reduce) for u in subterms(body)):
        return True
    return isinstance(value, Lam) and len(value.params) == 2 and isinstance(body, Add)


def _in_step(loop: Loop, fixed: dict[Var, Term]) -> Term:
    step = closed(loop.step, fixed, _are_equal)
    return loop if step is loop.step else Loop(loop.kind, loop.item, loop.backward, step, loop.start)


def _are_equal(a: Term, b: Term) -> bool:
    """Whether two numbers are one, in whatever order their terms, factors and indices stand."""
    if a.free != b.free or any(isinstance(u, Let | Loop) for t in (a, b) for u in subterms(t)):
        return False
    return split_coefficient(a)[0] == split_coefficient(b)[0] and canonical(a) == canonical(b)


def _in_order(bindings: Sequence[Binding]) -> list[Binding]:
    """Each value behind those that it is made of, and else as they stand."""
    own = dict(bindings)
    ordered: dict[Var, Term] = {}

    def put(var: Var) -> None:
        if var not in ordered:
            for v in sorted((v for v in own[var].free if v in own), key=lambda v: v.uid):
                put(v)
            ordered[var] = own[var]

    for var, _ in bindings:
        put(var)
    return [*ordered.items()]
