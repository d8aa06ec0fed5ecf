"""Implicit values: a root, g(y) = 0 (Eq. 28–30), and the inverse of a linear map, H(y) = k.

Differentiating both sides of g(ρ(g)) = 0 gives 𝒫(ρ)(g, k) = i ↦ δ(i, ρ(g), −H⁻¹(k)) with H(k) = 𝒫(g)(ρ(g), k). What g
captures is reached through that δ, which is a substitution at once: with the multiplier λ = −H⁻¹(ȳ), the cotangent of
a captured p is that of p ↦ g_p(y), at the value y and for the cotangent λ.
"""

from __future__ import annotations

from collections.abc import Callable

from combdiff.calculus.affine import affine, inverse, times
from combdiff.calculus.definitions.floating import unfold
from combdiff.records import dataclass
from combdiff.terms.arithmetic import integer_power
from combdiff.terms.laws.seen_through import with_stable_forms
from combdiff.terms.terms import (
    ZERO,
    App,
    Diff,
    Lam,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    apply,
    diff,
    factors_of,
    fresh,
    fresh_slots,
    lam,
    mul,
    neg,
    number,
    power,
    slots_of,
    split_coefficient,
    sub,
    substitute,
    terms_of,
    total,
)
from combdiff.terms.types import Map, Number, Type


def is_implicit(value: Term) -> bool:
    """Whether `value` is known by an equation that it solves.

    >>> from combdiff.terms.types import REAL
    >>> is_implicit(Diff("root", fresh("g", Map((REAL,), REAL))))
    True
    """
    match value:
        case Diff("root", _) | App(Diff("inverse", _), _):
            return True
        case Lam(params, App(inner, args)):
            return args == params and is_implicit(inner) and inner.free.isdisjoint(params)
        case _:
            return False


def gathered(value: Term, around: tuple[Var, ...]) -> Term:
    """The solutions of an equation for each value of the indices `around`, as the one tensor that solves all of them.

    i ↦ root(x ↦ x^3 + x − a(i)) is the root of X ↦ i ↦ X(i)^3 + X(i) − a(i).
    """
    match value:
        case Diff("root", g):
            return diff("root", _widened(g, around))
        case App(Diff("inverse", H), (k,)):
            slots = fresh_slots(k.type)
            return App(
                diff("inverse", _widened(H, around)), (Lam((*around, *slots), apply(k, *slots) if slots else k),)
            )
    raise AssertionError("only roots and images under inverses solve an equation")


def _widened(g: Term, around: tuple[Var, ...]) -> Lam:
    """X ↦ (i, r) ↦ g_i(X(i, ·))(r), where the indices i are `around`."""
    assert isinstance(g.type, Map), "a map"
    own = fresh_slots(g.type.params[0])
    outer = tuple(fresh(i.name, i.kind) for i in around)
    result = _number(g.type.params[0])
    X = fresh(g.params[0].name if isinstance(g, Lam) else "x", Map(tuple(v.kind for v in (*around, *own)), result))
    entry = App(X, (*outer, *own))
    rows = fresh_slots(g.type.result)
    value = apply(substitute(g, dict(zip(around, outer, strict=True))), Lam(own, entry) if own else entry)
    return Lam((X,), Lam((*outer, *rows), apply(value, *rows) if rows else value))


@dataclass(frozen=True, slots=True)
class Affine:
    """An equation of one number x, a x + c = 0; of a tensor, one for each entry, at the indices `slots`."""

    x: Var
    equation: Term
    slope: Term
    constant: Term
    slots: tuple[Var, ...]

    @classmethod
    def of(cls, g: Term) -> Affine | None:
        """The equation whose root g has; None if it is no such equation."""
        if not isinstance(g, Lam):
            return None
        (unknown,) = g.params
        slots = fresh_slots(unknown.kind)
        x, equation = unknown, unfold(g.body)
        if slots:
            x, entry = fresh(unknown.name, _number(unknown.kind)), App(unknown, slots)
            equation = Traverser(lambda u: x if u == entry else u)(apply(equation, *slots))
        found = affine(equation, x)
        if found is None or found[0] == ZERO or (slots and unknown in equation.free):
            return None
        return cls(x, equation, *found, slots)

    @property
    def form(self) -> Term:
        """a x + c, which the equation equals."""
        return add(mul(self.slope, self.x), self.constant)

    @property
    def root(self) -> Term:
        """−c/a, in a stable form where it is made of exponentials."""
        slope, constant = map(_factors_outside, (self.slope, self.constant))
        shared = _shared_factor(constant)
        rest = times(neg(inverse(shared)), constant)
        solution = with_stable_forms(mul(inverse(slope), shared, rest))
        return Lam(self.slots, solution) if self.slots else solution


def _factors_outside(t: Term) -> Term:
    """`t` with factors that a sum does not run over in front of it, where −c/a may cancel them."""

    def visit(u: Term) -> Term:
        if not isinstance(u, Sum):
            return u
        factors = factors_of(u.body)
        outside = [f for f in factors if f.free.isdisjoint(u.indices)]
        inside = [f for f in factors if not f.free.isdisjoint(u.indices)]
        return mul(*outside, total(u.indices, mul(*inside))) if outside and inside else u

    return Traverser(visit, Sum)(t)


def _shared_factor(t: Term) -> Term:
    """The powers that all terms of a sum have in common."""
    powers = [dict(integer_power(f) for f in factors_of(split_coefficient(u)[1])) for u in terms_of(t)]
    lowest = {base: min(p.get(base, 0) for p in powers) for base in powers[0]}
    return mul(*(power(base, number(n)) for base, n in lowest.items() if n > 0))


def with_solutions(t: Term, seen: Callable[[Affine], None] = lambda _: None) -> Term:
    """`t` with the roots of affine equations solved for, inner ones first (Eq. 50, 51); each is given to `seen`.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> expression_text(with_solutions(infer(parse("root((x::R) -> 2 * x - 3)"))))
    '3/2'
    """

    def visit(u: Term) -> Term:
        found = Affine.of(u.of) if isinstance(u, Diff) and u.kind == "root" else None
        if found is None:
            return u
        seen(found)
        return found.root

    return Traverser(visit, Diff)(t)


def residual(value: Term, y: Term) -> Term:
    """What is zero at y = `value`: g(y) for a root of g, H(y) − k for the image of k under the inverse of H."""
    match value:
        case Lam(_, App(inner, _)):
            return residual(inner, y)
        case Diff("root", g):
            return apply(g, y)
        case App(Diff("inverse", H), (k,)):
            return _minus(apply(H, y), k)
    raise AssertionError("only roots and images under inverses solve an equation")


def multiplier(solver: Lam, cotangent: Term) -> Term:
    """λ = −H⁻¹(ȳ), slot by slot."""
    image = apply(diff("inverse", solver), cotangent)
    slots = fresh_slots(image.type)
    return lam(slots, neg(apply(image, *slots))) if slots else neg(image)


def _minus(a: Term, b: Term) -> Term:
    slots = slots_of(a)
    return lam(slots, sub(apply(a, *slots), apply(b, *slots))) if slots else sub(a, b)


def _number(kind: Type) -> Number:
    """The type of the entries of a tensor, or of a number."""
    entry = kind.result if isinstance(kind, Map) else kind
    assert isinstance(entry, Number), "an unknown is a number or a tensor"
    return entry
