"""The jump of an integrand where one of its conditions changes: F₊ − F₋ of `moving.py`.

Where F is linear in the condition, that is what stands under it; else F is written with the condition true and false.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NoReturn

from combdiff.calculus.affine import times
from combdiff.calculus.jumps.conditions import compared
from combdiff.calculus.jumps.meeting import Equations, meeting, tells_apart
from combdiff.calculus.jumps.switches import Key, Switch, key_of, side, steepness
from combdiff.errors import UnsupportedError
from combdiff.language.printing.printer import expression_text
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import (
    MINUS_ONE,
    ZERO,
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Indicator,
    Lam,
    Mul,
    Pow,
    Proj,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    add,
    call,
    children,
    conj,
    delta,
    indicator,
    mul,
    power,
    substitute,
    subterms,
    total,
)
from combdiff.terms.types import REAL, Number


@dataclass(frozen=True, slots=True)
class Crossing:
    """The step over w = 0 of one switch, in the direction in which w grows.

    `names` are those that its indices have outside of the sums that bind them, where it is `place`.
    """

    switch: Switch
    names: dict[Var, Var]
    place: Switch
    known: dict[Term, bool] = field(default_factory=dict)

    # --- the step of a term ---

    def height(self, t: Term) -> Term:
        """t₊ − t₋. Of a sum over an index of the condition, the term whose condition changes is all that is left."""
        if not self.holds(t):
            return ZERO
        match t:
            case Indicator() | Call() if key_of(t) in self.switch.ratios:
                return self.difference(t)
            case Add(terms):
                return add(*map(self.height, terms))
            case Mul(factors) if not any(_is_unbounded(f) and self.holds(f) for f in factors):
                return self.height_of_product(factors)
            case Sum(indices, inner):
                return total([i for i in indices if i not in self.switch.inner], self.height(inner))
            case Conj(u):
                return conj(self.height(u))
            case Call("real" | "imag" as part, (u,)):
                return call(part, self.height(u))
            case Delta(left, right, inner) if not (self.holds(left) or self.holds(right)):
                return delta(left, right, self.height(inner))
            case Indicator(left, right, inner) if not (self.holds(left) or self.holds(right)):
                return indicator(left, right, self.height(inner))
            case _ if _is_smooth(t) and all(map(self.is_continuous, children(t))):
                return ZERO
            case _:
                return self.difference(t)

    def height_of_product(self, factors: Sequence[Term]) -> Term:
        """(u v)₊ − (u v)₋ = (u₊ − u₋) v₊ + u₋ (v₊ − v₋), for one factor after the other."""
        parts = []
        for n, factor in enumerate(factors):
            if self.holds(factor):
                before = (self.at(f, False) for f in factors[:n])
                after = (self.at(f, True) for f in factors[n + 1 :])
                parts.append(mul(*before, self.height(factor), *after))
        return add(*parts)

    def is_continuous(self, t: Term) -> bool:
        """Whether t takes no step where w is zero, as `indicator(0, w, w)` does not."""
        if not self.holds(t):
            return True
        match t:
            case Lam(_, inner):
                return self.is_continuous(inner)
            case Tuple() | App() if not isinstance(t.type, Number):
                return all(map(self.is_continuous, children(t)))
            case _:
                return self.vanishing(substitute(self.height(t), self.names)) == ZERO

    def difference(self, t: Term) -> Term:
        """t₊ − t₋, each written out."""
        return add(self.at(t, True), times(MINUS_ONE, self.at(t, False)))

    def holds(self, t: Term) -> bool:
        """Whether the condition stands in t."""
        found = self.known.get(t)
        if found is None:
            found = self.known[t] = key_of(t) in self.switch.ratios or any(map(self.holds, children(t)))
        return found

    def at(self, t: Term, positive: bool) -> Term:
        """t on one side of w = 0. In sums inside of t over the condition's indices, one term is on that side."""
        closed = [v for v in self.switch.inner if v not in t.free]
        inside = substitute(self.switch.w, {v: new for v, new in self.names.items() if v not in closed})

        def visit(u: Term) -> Term:
            key = key_of(u)
            if key is None or key not in self.switch.ratios:
                return _with_number_outside(u)
            new = side(u, self.switch.ratios[key], positive)
            if not closed:
                return new
            met = meeting(self.place.w, self.place.zero, inside)
            if met is None or met.equations is None or not tells_apart(met.equations, closed):
                _refuse_uncertain(u)
            return _where(met.equations, u, new)

        return Traverser(visit)(t) if self.holds(t) else t

    # --- other conditions ---

    def beside(self, height: Term, numbers: Mapping[Key, int], own: Sequence[Var]) -> Term:
        """`height` with other conditions that change at the same place: earlier ones have changed, later ones not.

        `numbers` is the order of the switches by what their conditions compare.
        """
        number = numbers[next(iter(self.switch.ratios))]

        def visit(u: Term) -> Term:
            w, key = compared(u), key_of(u)
            if w is None or key is None or numbers.get(key) == number:
                return u
            met = meeting(self.place.w, self.place.zero, w)
            if met is None:
                return u
            if key not in numbers or met.equations is None:
                _refuse_uncertain(u)
            return _where(met.equations, u, side(u, steepness(w, own), numbers[key] < number))

        return Traverser(visit)(height)

    # --- values at the place ---

    def vanishing(self, t: Term) -> Term:
        """`t` with 0 for what is zero where w is."""

        def visit(u: Term) -> Term:
            if self.is_comparable(u):
                met = meeting(self.place.w, self.place.zero, u)
                if met is not None and met.equations == ():
                    return ZERO
            if _is_zero(u):
                return ZERO
            if _is_singular(u):
                raise UnsupportedError(
                    f"an integrand is not finite where {text(self.place.w)} is zero, a place that moves with what is "
                    "differentiated",
                    remedy="differentiate an integrand that is finite where its conditions change",
                )
            return u

        return Traverser(visit)(t)

    def is_comparable(self, t: Term) -> bool:
        """Whether t may be a multiple of w."""
        if t.type != REAL:
            return False
        if self.place.zero is None:
            return self.place.w.free <= t.free
        return isinstance(t, Add | Var) and self.place.zero.variable in t.free


def _where(equations: Equations, old: Term, new: Term) -> Term:
    """`new` where the equations between indices hold, else `old`."""
    if not equations:
        return new
    change = add(new, times(MINUS_ONE, old))
    for left, right in equations:
        change = delta(left, right, change)
    return add(old, change)


def _with_number_outside(t: Term) -> Term:
    """(−u)^n as (−1)^n u^n, so that it meets other powers of u."""
    match t:
        case Pow(Mul((Const() as c, *rest)), Const() as n) if n.is_integer:
            return mul(power(c, n), power(mul(*rest), n))
        case _:
            return t


def _is_smooth(t: Term) -> bool:
    """Whether a value does not jump where nothing jumps that it is made of; unknown maps are taken to be smooth."""
    match t:
        case Call(name, _):
            return not _is_rough(name)
        case Pow(_, Const() as n):
            return n.is_integer and n.real > 0
        case App() | Proj():
            return True
        case _:
            return False


def _is_rough(name: str) -> bool:
    """Whether a function is not smooth at 0, or has no value there."""
    row = SCALAR_FUNCTIONS.get(name)
    return row is not None and bool(row.cut or row.steps or not (row.finite or row.commutes))


def _is_unbounded(t: Term) -> bool:
    """Whether a value may be infinite where what it is made of is zero."""
    return any(
        (isinstance(u, Call) and _is_rough(u.primitive)) or (isinstance(u, Pow) and not _is_smooth(u))
        for u in subterms(t)
    )


def _is_zero(t: Term) -> bool:
    """Whether it is a function of 0 that is 0."""
    match t:
        case Pow(base, Const(real, imag)) if base == ZERO:
            return real > 0 and not imag
        case Call(name, (u,)) if u == ZERO:
            return name in ("sqrt", "abs", "abs2") or SCALAR_FUNCTIONS[name].parity < 0
        case _:
            return False


def _is_singular(t: Term) -> bool:
    """Whether it is a function of 0 that is infinite."""
    match t:
        case Pow(base, Const(real, imag)) if base == ZERO:
            return real < 0 or bool(imag)
        case Call("log", (u,)):
            return u == ZERO
        case _:
            return False


def _refuse_uncertain(t: Term) -> NoReturn:
    raise UnsupportedError(
        f"{text(t)} changes where another condition changes, for indices that are not known beforehand",
        remedy="write the conditions of the integrand with one entry of a tensor each, as in where(x <= a(i), …)",
    )


def text(t: Term) -> str:
    """A term as a message shows it."""
    return expression_text(t)
