"""Collects the conditions on integration variables in an integrand; those that change at one place are one `Switch`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from combdiff.calculus.affine import Zero, affine, depends, times, zero_of
from combdiff.calculus.jumps.conditions import compared, numbers_among
from combdiff.calculus.jumps.meeting import meeting
from combdiff.records import dataclass
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    Call,
    Const,
    Indicator,
    Term,
    Var,
    add,
    bound_by,
    indicator,
    mul,
    substitute,
    subterms,
)
from combdiff.terms.types import is_real

Key = tuple[str, Term, Term]
"""What a condition compares, and how."""


@dataclass(frozen=True, slots=True)
class Switch:
    """All conditions that change where w is zero; `ratios` says by what multiple of w each is decided.

    `inner` are the indices in w that are bound inside the integrand: there is a place for each of their values.
    """

    w: Term
    zero: Zero | None
    inner: tuple[Var, ...]
    ratios: dict[Key, Term]

    def opened(self, names: dict[Var, Var]) -> Switch:
        """The switch with other names for indices, for use outside of the sums that bind them."""
        ratios = {opened(key, names): ratio for key, ratio in self.ratios.items()}
        zero = self.zero
        if zero is not None:
            zero = Zero(zero.variable, substitute(zero.at, names), substitute(zero.slope, names))
        return Switch(substitute(self.w, names), zero, (), ratios)


def key_of(t: Term) -> Key | None:
    """What a condition compares, without what stands under it; None for what is no condition."""
    match t:
        case Indicator(left, right, _):
            return "≤", left, right
        case Call(name, (u,)):
            return name, u, ONE
        case _:
            return None


def opened(key: Key, names: dict[Var, Var]) -> Key:
    """A key with other names for indices."""
    name, left, right = key
    return name, substitute(left, names), substitute(right, names)


def switches(body: Term, own: Sequence[Var]) -> list[Switch]:
    """The conditions of an integrand on its own variables, in the order in which they are crossed.

    A condition on the variable of an integral inside is a matter of that integral, which smooths it.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, a = fresh("x", REAL), fresh("a", REAL)
    >>> (switch,) = switches(add(Indicator(x, a, ONE), Indicator(mul(Const(2), a), mul(Const(2), x), x)), [x])
    >>> [int(ratio.real) for ratio in switch.ratios.values()]
    [1, -2]
    """
    bound = {v for u in subterms(body) for v in bound_by(u)}
    found: list[Switch] = []
    for u in subterms(body):
        w, key = compared(u), key_of(u)
        if w is None or key is None or not depends(w, own) or numbers_among(w.free.intersection(bound)):
            continue
        inner = tuple(sorted(w.free.intersection(bound), key=lambda v: v.uid))
        alike = ((s, meeting(s.w, s.zero, w)) for s in found if s.inner == inner)
        known = next(((s, m.ratio) for s, m in alike if m is not None and m.equations == ()), None)
        if known is not None:
            switch, ratio = known
            switch.ratios[key] = ratio
            continue
        zero = zero_of(w, [v for v in own if is_real(v.kind) and v in w.free])
        found.append(Switch(w, zero, inner, {key: ONE}))
    return found


def side(t: Term, ratio: Term, positive: bool) -> Term:
    """What a condition gives on one side of w = 0, where what decides it is `ratio` times w."""
    above, below = _sides(t)
    here, there = (above, below) if positive else (below, above)
    if isinstance(ratio, Const):
        return here if ratio.real > 0 else there
    return add(there, indicator(ZERO, ratio, add(here, times(MINUS_ONE, there))))


def _sides(t: Term) -> tuple[Term, Term]:
    """What a condition gives where what decides it is positive, and where it is negative."""
    match t:
        case Indicator(_, _, body):
            return body, ZERO
        case Call("sign", (Call("relu", _),)):
            return ONE, ZERO
        case Call("sign", _):
            return ONE, MINUS_ONE
        case Call("abs", (u,)):
            return u, mul(MINUS_ONE, u)
    raise AssertionError(f"{type(t).__name__} is no condition")


def steepness(w: Term, own: Collection[Var]) -> Term:
    """How w grows with the first variable of which it is an affine function, which is the same for all multiples of w.

    Conditions that change at one place are crossed in the direction in which that variable grows.
    """
    slopes = (parts[0] for v in own if v in w.free and (parts := affine(w, v)) is not None)
    return next((a for a in slopes if a != ZERO), ONE)
