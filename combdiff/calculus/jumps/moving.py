"""The derivative of an integral whose integrand jumps at a place that moves (Reynolds' transport theorem).

    d/da ∫ F(x, a) dx = ∫ ∂F/∂a dx + ∫ δ(w) ∂w/∂a (F₊ − F₋) dx

where a condition on w, as in `indicator(0, w, …)` or `sign(w)`, makes F jump from F₋ to F₊ when w becomes positive.
The first term is what the rows of Table 1 give, for which conditions are constant; of the others each is a `Jump` here,
one for each condition that compares a variable of the integral. Maps of real numbers have them too: their pullback is
an integral (Eq. 23).

Conditions that change at one place are crossed one after the other, so that what they change together is counted once:
indicator(x, a, 1)² jumps by 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from combdiff.calculus.affine import Zero
from combdiff.calculus.jumps.conditions import moves, numbers_among
from combdiff.calculus.jumps.crossing import Crossing, text
from combdiff.calculus.jumps.marks import with_plain_conditions
from combdiff.calculus.jumps.switches import Switch, opened, switches
from combdiff.errors import UnsupportedError
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import (
    ZERO,
    Call,
    Const,
    Delta,
    Indicator,
    Reduce,
    Term,
    Var,
    bound_by,
    children,
    factors_of,
    fresh,
    refreshed,
    substitute,
    subterms,
)
from combdiff.terms.types import COMPLEX


@dataclass(frozen=True, slots=True)
class Jump:
    """What an integrand does at `zero`, where `w` is zero: with w becoming positive it grows by `height`.

    `over` are the indices of the sums inside the integrand that the condition stands in, one place for each value.
    """

    w: Term
    zero: Zero
    height: Term
    over: tuple[Var, ...]


def jumps(x: Var, params: Collection[Var], body: Term) -> tuple[Jump, ...]:
    """The jumps of `body`, an integrand over `params`, whose place depends on x.

    >>> from combdiff.terms.terms import Indicator, mul
    >>> from combdiff.terms.types import REAL
    >>> x, a = fresh("x", REAL), fresh("a", REAL)
    >>> (jump,) = jumps(a, [x], Indicator(x, a, mul(a, x)))
    >>> jump.zero.at == a, jump.height == mul(a, x)
    (True, True)

    Raises:
        UnsupportedError: the place is not known, or the integrand is not finite there.
    """
    own = numbers_among(params)
    _refuse_steps(x, own, body)
    _refuse_cuts(x, own, body)
    body = with_plain_conditions(body)
    if not own or not any(moves(u, own, (x,)) for u in subterms(body)):
        return ()
    body = refreshed(body)
    _refuse_peaks(x, own, body)
    found = switches(body, own)
    moving = (_jump(n, found, body, own) for n, switch in enumerate(found) if x in switch.w.free)
    return tuple(jump for jump in moving if jump is not None)


def may_jump(u: Term) -> bool:
    """Whether the outermost operation of a term jumps somewhere: a condition, a step, a cut, the place of a maximum.

    >>> from combdiff.terms.terms import call
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> may_jump(call("sign", x)), may_jump(call("floor", x)), may_jump(call("abs", x))
    (True, True, False)
    """
    if isinstance(u, Call) and u.args != () and (u.primitive == "sign" or SCALAR_FUNCTIONS[u.primitive].steps):
        return True
    return isinstance(u, Indicator | Delta) or _crossing(u) != ZERO


def _crossing(u: Term) -> Term:
    """What crosses a branch cut, or changes which value is the largest, where u jumps; 0 if there is none."""
    match u:
        case Call("atan2", (over, of)):
            return ZERO if isinstance(of, Const) and of.real > 0 else over
        case Call("sqrt", (Call("complex", _),)):
            return ZERO
        case Call(name, (of,)) if of.type == COMPLEX and SCALAR_FUNCTIONS[name].has_cut:
            return of
        case Reduce("ties" | "argmax" | "argmin", of):
            return of
        case _:
            return ZERO


def _refuse_steps(x: Var, own: Collection[Var], body: Term) -> None:
    """What floor and its like do under an integral is not known: they jump at many places."""
    for u, moving in _parts(body, own):
        steps = isinstance(u, Call) and u.args != () and SCALAR_FUNCTIONS[u.primitive].steps
        if steps and x in u.free and not u.free.isdisjoint(moving):
            raise UnsupportedError(
                f"{text(u)} jumps at places that move with {x.name}, under an integral over what it is of",
                remedy="write each step as a condition, where(a <= x, 1)",
            )


def _refuse_cuts(x: Var, own: Collection[Var], body: Term) -> None:
    """Where an argument crosses a branch cut, and where another value becomes the largest, is not known."""
    for u, moving in _parts(body, own):
        crosses = _crossing(u)
        if x in crosses.free and not crosses.free.isdisjoint(moving):
            raise UnsupportedError(
                f"{text(u)} may jump at places that move with {x.name}, under an integral over what it is of",
                remedy="write each jump as a condition, where(a <= x, 1), or take a function without a branch cut: "
                "for a positive x atan(y / x) is atan2(y, x)",
            )


def _parts(body: Term, own: Collection[Var]) -> Iterator[tuple[Term, frozenset[Var]]]:
    """The parts of an integrand, each with the variables in `own` that no δ around it fixes."""
    seen = set()
    waiting = [(body, frozenset(own))]
    while waiting:
        t, moving = waiting.pop()
        if (t, moving) in seen:
            continue
        seen.add((t, moving))
        yield t, moving
        for u in factors_of(t):
            if isinstance(u, Delta) and len(fixed := moving & (u.left.free | u.right.free)) == 1:
                moving -= fixed
        waiting += [(u, moving) for u in children(t)]


def _refuse_peaks(x: Var, own: Collection[Var], body: Term) -> None:
    """Every δ whose place moves has met its integral before (`peaks.py`), but for those that cannot."""
    bound = {v for u in subterms(body) for v in bound_by(u)}
    for u in subterms(body):
        if isinstance(u, Delta) and moves(u, own, (x,)) and not numbers_among(u.free & bound):
            raise UnsupportedError(
                f"{text(u)} depends on {x.name}, and no integral removes this δ",
                remedy="let the δ compare a variable of the integral as in delta(a * x + b, 0, …), "
                "and stand as a factor of the integrand",
            )


def _jump(number: int, found: Sequence[Switch], body: Term, own: Sequence[Var]) -> Jump | None:
    """The jump of `body` at one of the switches found; None if the integrand is continuous there."""
    switch = found[number]
    names = {v: fresh(v.name, v.kind) for v in switch.inner}
    place = switch.opened(names)
    crossing = Crossing(switch, names, place)
    height = crossing.vanishing(substitute(crossing.height(body), names))
    if height == ZERO:
        return None
    numbers = {k: n for n, s in enumerate(found) for key in s.ratios for k in (key, opened(key, names))}
    height = crossing.vanishing(crossing.beside(height, numbers, own))
    if height == ZERO:
        return None
    if place.zero is None:
        raise UnsupportedError(
            f"the place where {text(place.w)} changes its sign moves with what is differentiated, and is not known",
            remedy="write the condition so that a variable of the integral stands in it as in a * x + b, "
            "or make the integrand continuous there, as in where(0 <= u, u)",
        )
    return Jump(place.w, place.zero, height, tuple(names.values()))
