"""The derivative with respect to a function that occurs under d/dx: integration by parts.

    ∫ (k₀ v + k₁ v′ + k₂ v″) dx = ∫ (k₀ − k₁′ + k₂″) v dx + [(k₁ − k₂′) v + k₂ v′] at the upper end − at the lower one

y, y′, y″ are differentiated as if they were unknown functions of their own (`IntegrationByParts.objective`), which
gives k₀, k₁ and k₂; then y′ is d/dx y again. Where the interval has ends, the derivative is a tuple: what stands under
the integral, then for each end the coefficient of v there, or the tuple of those of v, v′, … (free ends: the natural
boundary conditions say that they are 0). Ends at which the values of a function are `fixed` have none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction

from combdiff.calculus.reverse import cotangent_names
from combdiff.errors import UnsupportedError
from combdiff.language.printing.names import names_in
from combdiff.records import dataclass
from combdiff.terms.terms import (
    ONE,
    ZERO,
    App,
    Delta,
    Diff,
    Lam,
    Let,
    Mul,
    Term,
    Traverser,
    Tuple,
    Var,
    add,
    along,
    apply,
    diff,
    ends_of,
    fresh,
    is_curve,
    let,
    mul,
    neg,
    number,
    split_coefficient,
    substitute,
    subterms,
    terms_of,
    tuple_of,
)
from combdiff.terms.traversal import jumps_along
from combdiff.terms.types import Map, is_complex


@dataclass(frozen=True, slots=True)
class IntegrationByParts:
    """An objective whose unknown functions occur under d/dx.

    `jets` are for each parameter the functions y, y′, y″, … that take its place in `objective`, in order; of one
    that is not under d/dx just the parameter.
    """

    objective: Lam
    jets: tuple[tuple[Var, ...], ...]

    @classmethod
    def of(cls, f: Lam) -> IntegrationByParts | None:
        """None where no parameter of f is a function under d/dx, or has a value at an end of its interval."""
        found = [_jet(y, f.body) for y in f.params]
        if all(len(jet) == 1 and not _has_value_at_an_end(jet[0], f.body) for jet in found):
            return None
        put = {_derivative(jet[0], n): y for jet in found for n, y in enumerate(jet) if n}
        # y″ before y′, which occurs in it
        body = f.body
        for each in sorted(put, key=lambda e: along(e)[1], reverse=True):
            body = _put(body, each, put[each])
        return cls(Lam(tuple(y for jet in found for y in jet), body), tuple(map(tuple, found)))

    def derivative(self, taken: Lam) -> Lam:
        """The derivative with respect to the parameters of f, of that with respect to all jets.

        It holds markers of derivatives with respect to numbers, which are still to be taken. Parameters of `taken`
        behind the jets, cotangents, stay.
        """
        own = taken.params[: len(self.objective.params)]
        bindings, items = _opened(taken.body)
        back: dict[Var, Term] = {}
        results: list[Term] = []
        at = 0
        for jet in self.jets:
            y, parts = own[at], items[at : at + len(jet)]
            back |= {own[at + n]: _derivative(y, n) for n in range(1, len(jet))}
            met = max((n for n, v in enumerate(jet) if v in self.objective.body.free), default=0)
            results.append(_varied(y, parts, parts[met]) if _is_function(y) else parts[0])
            at += len(jet)
        firsts = [own[sum(map(len, self.jets[:n]))] for n in range(len(self.jets))]
        body = let(bindings, tuple_of(results))
        for v, e in back.items():
            body = substitute(body, {v: e})
        return Lam((*firsts, *taken.params[len(own) :]), body)

    def tangent(self, taken: Lam, around: Collection[str]) -> Lam:
        """The derivative of f along tangents, of that of the objective along tangents of all jets.

        The tangent of y′ is d/dx of the tangent of y. The names `around` f are not given to tangents.
        """
        count = len(self.objective.params)
        firsts = [jet[0] for jet in self.jets]
        names = cotangent_names({*names_in(self.objective), *around}, len(firsts))
        tangents = [fresh(name, y.kind) for name, y in zip(names, firsts, strict=True)]
        back: dict[Var, Term] = {}
        for of_all, functions in ((taken.params[:count], firsts), (taken.params[count:], tangents)):
            at = 0
            for jet, y in zip(self.jets, functions, strict=True):
                back |= {v: _derivative(y, n) for n, v in enumerate(of_all[at : at + len(jet)])}
                at += len(jet)
        return Lam((*firsts, *tangents), substitute(taken.body, back))


def _varied(y: Var, parts: Sequence[Term], named: Term) -> Term:
    """What the variation of y is multiplied with: under the integral, and at the ends that are free.

    The point is called as in the cotangent `named`.
    """
    assert isinstance(y.kind, Map), "a function"
    (x,) = named.params if isinstance(named, Lam) else (fresh("x", y.kind.params[0]),)
    split = [_Cotangent.of(apply(part, x), x, n) for n, part in enumerate(parts)]
    if any(jumps_along(x, e) for each in split[2:] for e in each.smooth):
        raise UnsupportedError(
            f"the factor of a second or higher derivative of {y.name} jumps inside its domain, which leaves δ′ there",
            remedy="let the factor be continuous, or its jump stand at an end of the domain",
        )
    k = [Lam((x,), add(*each.smooth)) for each in split]
    bulk = Lam((x,), add(*(_signed(n, apply(_along(each, n), x)) for n, each in enumerate(k))))
    peaks = [n + 1 for n, each in enumerate(split) if each.peaks]
    count = max([1, len(k) - 1, *peaks])
    ends = [
        [add(_height(split, end, j), mul(number(sign), _natural(k, j, end))) for j in range(count)]
        for sign, end in zip((-1, 1), ends_of(x.kind), strict=True)
        if end is not None
    ]
    free = [[e for j, e in enumerate(found) if j not in y.kind.fixed] for found in ends]
    if not any(free) or (len(parts) == 1 and all(e == ZERO for found in free for e in found)):
        return bulk
    return Tuple((bulk, *(found[0] if len(found) == 1 else Tuple(tuple(found)) for found in free if found)))


def _natural(k: Sequence[Lam], j: int, end: Term) -> Term:
    """The coefficient of the j-th derivative of the variation at the upper end: k_{j+1} − k_{j+2}′ + …"""
    return add(*(_signed(m - 1 - j, apply(_along(k[m], m - 1 - j), end)) for m in range(j + 1, len(k))))


def _along(k: Lam, times: int) -> Lam:
    """The derivative of a function of a real number, so many times; a marker of it, which is still to be taken."""
    for _ in range(times):
        (x,) = (fresh(p.name, p.kind) for p in k.params)
        # the gradient of a complex function is that of its real part, its tangent the derivative along its argument
        holds_complex = is_complex(k.type) or any(is_curve(v.kind) and is_complex(v.kind) for v in k.free)
        k = Lam((x,), App(diff("jvp", k), (x, ONE)) if holds_complex else App(diff("grad", k), (x,)))
    return k


def _signed(times: int, e: Term) -> Term:
    return neg(e) if times % 2 else e


@dataclass(frozen=True, slots=True)
class _Cotangent:
    """A cotangent as a function of x: what is `smooth`, and the heights of what is a δ at an end."""

    smooth: list[Term]
    peaks: list[tuple[Term, Term]]

    @classmethod
    def of(cls, e: Term, x: Var, order: int) -> _Cotangent:
        found = cls([], [])
        for term in terms_of(e):
            peak = _peak(term, x)
            if peak is not None and peak[0] in ends_of(x.kind):
                found.peaks.append(peak)
            elif order and any(x in u.left.free | u.right.free for u in subterms(term, Delta)):
                raise UnsupportedError(
                    "the derivative of an unknown function stands at a single place, where its variation is δ′",
                    remedy="put the place at an end of its domain, or integrate over the places",
                )
            else:
                found.smooth.append(term)
        return found


def _height(parts: Sequence[_Cotangent], end: Term, order: int) -> Term:
    """The height of what is a δ at an end, in the cotangent of that derivative of y."""
    if order >= len(parts):
        return ZERO
    return add(*(height for place, height in parts[order].peaks if place == end))


def _peak(term: Term, x: Var) -> tuple[Term, Term] | None:
    """Where a δ of x is, and its height: of δ(a x, c, e), which may have factors."""
    factors = term.factors if isinstance(term, Mul) else (term,)
    for factor in factors:
        if isinstance(factor, Delta) and (place := _place(factor, x)) is not None:
            others = [f for f in factors if f is not factor]
            return place, substitute(mul(*others, factor.body), {x: place})
    return None


def _place(d: Delta, x: Var) -> Term | None:
    """What x is where δ(x, c, ·) or δ(−x, c, ·) is not 0."""
    slope: Fraction | int = 0
    rest: list[Term] = []
    for side, sign in ((d.left, 1), (d.right, -1)):
        for t in terms_of(side):
            coefficient, of = split_coefficient(t)
            if coefficient.imag or (of is not x and x in of.free):
                return None
            if of is x:
                slope += sign * coefficient.real
            else:
                rest.append(mul(number(sign), t))
    return mul(number(-int(slope)), add(*rest)) if abs(slope) == 1 else None


def _is_function(y: Var) -> bool:
    """Whether it is a function of a real number with numbers for values."""
    return is_curve(y.kind)


def _jet(y: Var, body: Term) -> list[Var]:
    """y, and a name for each derivative that occurs, up to the highest one."""
    if not _is_function(y):
        return [y]
    order = max((along(u)[1] for u in subterms(body, Diff) if along(u)[0] is y), default=0)
    assert isinstance(y.kind, Map), "a function"
    return [y, *(fresh(f"{y.name}{n}", Map(y.kind.params, y.kind.result)) for n in range(1, order + 1))]


def _derivative(y: Var, times: int) -> Term:
    """d/dx y, so many times."""
    e: Term = y
    for _ in range(times):
        e = diff("grad", e)
    return e


def _has_value_at_an_end(y: Var, body: Term) -> bool:
    """Whether the objective holds the value of a function at an end of its interval."""
    if not _is_function(y):
        return False
    assert isinstance(y.kind, Map), "a function"
    ends = [e for e in ends_of(y.kind.params[0]) if e is not None]
    return any(isinstance(u, App) and u.function is y and add(u.args[0]) in ends for u in subterms(body))


def _put(body: Term, old: Term, new: Term) -> Term:
    return Traverser(lambda u: new if u == old else u)(body)


def _opened(body: Term) -> tuple[list[tuple[Var, Term]], tuple[Term, ...]]:
    """Definitions of numbers and tensors, and the items of a result; functions that have names are written out."""
    if not isinstance(body, Let):
        return [], body.items if isinstance(body, Tuple) else (body,)
    inner = body.body
    kept: list[tuple[Var, Term]] = []
    functions: dict[Var, Term] = {}
    for var, value in body.bindings:
        value = substitute(value, functions)
        if isinstance(var.kind, Map) and not var.kind.is_array:
            functions[var] = value
        else:
            kept.append((var, value))
    rest, items = _opened(substitute(inner, functions))
    return [*kept, *rest], items
