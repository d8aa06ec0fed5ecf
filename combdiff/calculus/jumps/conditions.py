"""Conditions on numbers: what they compare, and which variables move the place where they change.

`delta(u, v, e)`, `indicator(u, v, e)`, `sign(w)` and `abs(w)` do something else where v − u, or w, is zero. Outside of
integrals that is a constant for differentiation; under an integral over a variable that is compared it is not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from combdiff.calculus.affine import depends, flat
from combdiff.calculus.implicit import is_implicit
from combdiff.errors import Mention, UnsupportedError
from combdiff.terms.terms import (
    Call,
    Delta,
    Indicator,
    Let,
    Loop,
    Term,
    Traverser,
    Var,
    bound_by,
    call,
    delta,
    indicator,
    is_integer_valued,
    sub,
    substitute,
    subterms,
)
from combdiff.terms.types import Index, Map, Number

JUMPING = frozenset({"sign", "abs"})
"""Functions of a real number that are not smooth where it is 0."""


def compared(t: Term) -> Term | None:
    """The number of which a condition asks whether it is 0, or which sign it has; None if `t` is no such condition.

    >>> from combdiff.terms.terms import ONE, fresh
    >>> from combdiff.terms.types import REAL
    >>> x, a = fresh("x", REAL), fresh("a", REAL)
    >>> compared(Indicator(x, a, ONE)) == sub(a, x)
    True
    """
    match t:
        case Delta(left, right, _) | Indicator(left, right, _) if are_numbers(left, right):
            return flat(sub(right, left))
        case Call("sign", (Call("relu", (u,)),)):
            return flat(u)
        case Call(name, (u,)) if name in JUMPING and u.type == Number(complex=False):
            return flat(u)
        case _:
            return None


def are_numbers(left: Term, right: Term) -> bool:
    """Whether they are numbers, one of them no integer: indices are compared otherwise."""
    kinds = (left.type, right.type)
    discrete = all(is_integer_valued(u) for u in (left, right))
    return not discrete and all(isinstance(kind, Number | Index) for kind in kinds)


def is_peak(t: Term) -> bool:
    """Whether it is a δ of numbers, or of maps, rather than of indices."""
    return isinstance(t, Delta) and (isinstance(t.left.type, Map) or are_numbers(t.left, t.right))


def check_peaks(program: Term) -> None:
    """Refuse a δ that no integral can meet: of numbers such as entries of tensors, which are no variables.

    >>> from combdiff.terms.terms import App, ONE, fresh
    >>> from combdiff.terms.types import REAL, Domain
    >>> i = fresh("i", Index(Domain("N")))
    >>> check_peaks(Delta(App(fresh("x", Map((i.kind,), REAL)), (i,)), ONE, ONE))
    Traceback (most recent call last):
    combdiff.errors.UnsupportedError: a δ compares numbers, and none of them is a variable that an integral is over
    remedy: for e where a is b, write where(a == b, e)
    """
    values = {var: value for t in subterms(program, Let) for var, value in t.bindings}
    for t in subterms(program):
        if not (isinstance(t, Delta) and are_numbers(t.left, t.right)):
            continue
        compared = t.left.free | t.right.free
        if not _holds_a_number(compared, values):
            raise UnsupportedError(
                "a δ compares numbers, and none of them is a variable that an integral is over",
                about=Mention("delta", called=True, beside=named_in(compared)),
                remedy="for e where a is b, write where(a == b, e)",
            )


def _holds_a_number(variables: Collection[Var], values: Mapping[Var, Term]) -> bool:
    """Whether one of the variables is a number, or a definition in `values` that is made of one."""
    return any(
        _holds_a_number(values[v].free, values) if v in values else isinstance(v.kind, Number) for v in variables
    )


def named_in(variables: Collection[Var]) -> frozenset[str]:
    """The names of those that are no indices, by which what is compared is found in a text."""
    return frozenset(v.name for v in variables if not isinstance(v.kind, Index))


def numbers_among(variables: Collection[Var]) -> list[Var]:
    """Those of the variables of a Σ or a map that it is an integral over: all but the indices."""
    return [v for v in variables if not isinstance(v.kind, Index)]


def moves(condition: Term, own: Collection[Var], targets: Collection[Var]) -> bool:
    """Whether `condition` compares a variable of `own` with what depends on `targets`."""
    if condition.free.isdisjoint(own) or condition.free.isdisjoint(targets):
        return False
    if isinstance(condition, Delta) and isinstance(condition.left.type, Map):
        return any(not side.free.isdisjoint(targets) for side in (condition.left, condition.right))
    w = compared(condition)
    return w is not None and not w.free.isdisjoint(targets) and depends(w, own)


def written_out(t: Term, values: Mapping[Var, Term]) -> Term:
    """`t` with the definitions of values in conditions written out, where there are several conditions on a variable.

    What two conditions compare may be equal by these definitions, and then they change at one place.
    """
    own = numbers_among({v for u in subterms(t) for v in bound_by(u)})
    compares = {w for u in subterms(t) if (w := compared(u)) is not None and not w.free.isdisjoint(own)}
    if len(compares) < 2 or all(w.free.isdisjoint(values) for w in compares):
        return t

    def opened(u: Term) -> Term:
        for var, value in reversed(list(values.items())):
            if var in u.free and not is_implicit(value) and not isinstance(value, Loop):
                u = substitute(u, {var: value})
        return u

    def visit(u: Term) -> Term:
        if compared(u) not in compares:
            return u
        match u:
            case Delta(left, right, body):
                return delta(opened(left), opened(right), body)
            case Indicator(left, right, body):
                return indicator(opened(left), opened(right), body)
            case Call(name, (argument,)):
                return call(name, opened(argument))
        raise AssertionError(f"{type(u).__name__} is no condition")

    return Traverser(visit)(t)
