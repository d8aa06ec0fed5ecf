"""Laws of linear maps: D(u) + D(v) is D(u + v), and the inverse of a map of numbers is a quotient.

    adjoint(D)(a)(t) + 2 * adjoint(D)(b)(t)   becomes   adjoint(D)(t -> a(t) + 2 * b(t))(t)
    inverse(v -> (1 + 3 * y^2) * v)(k)        becomes   k / (1 + 3 * y^2)

A number in front of an argument is drawn out where an application is made (`language/traversal.apply`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from fractions import Fraction

from combdiff.records import dataclass
from combdiff.terms.terms import (
    IMAGINARY,
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Conj,
    Const,
    Diff,
    Lam,
    Mul,
    Sum,
    Term,
    Traverser,
    Var,
    add,
    apply,
    call,
    conj,
    factors_of,
    fresh,
    lam,
    mul,
    neg,
    number,
    power,
    slots_of,
    split_coefficient,
    sub,
    substitute,
    subterms,
    terms_of,
    total,
)
from combdiff.terms.types import Index, Map, Number, is_complex

HALF = number(Fraction(1, 2))


@dataclass(frozen=True, slots=True)
class _Image:
    """coefficient · D(argument)(slots), where D(argument) may be a number, and then has no slots."""

    coefficient: Const
    linear: Term
    argument: Term
    slots: tuple[Term, ...]


def linear_laws(t: Term) -> Term:
    """`t` with images under one linear map gathered, and inverses of maps of numbers written out."""
    if not any(isinstance(u.function.type, Map) and u.function.type.linear for u in subterms(t, App)):
        return t
    return gathered(written_out(t))


def real_parts_by_term(t: Term) -> Term:
    """`t` with real parts of single terms, outside of sums: Σ real(a + b) = real(Σ a) + real(Σ b).

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import COMPLEX
    >>> a, b = fresh("a", COMPLEX), fresh("b", COMPLEX)
    >>> real_parts_by_term(call("real", add(a, b))) == add(call("real", a), call("real", b))
    True
    """

    def visit(u: Term) -> Term:
        match u:
            case Call("real", (Add(terms),)):
                return add(*(call("real", term) for term in terms))
            case Sum(indices, Add(terms)):
                return add(*(mul(c, visit(total(indices, u))) for c, u in map(split_coefficient, terms)))
            case Sum(indices, Call("real", (inner,))):
                return call("real", total(indices, inner))
            case _:
                return u

    return Traverser(visit, Call, Sum)(t)


def with_plain_parts(t: Term) -> Term:
    """`t` with −Im z for Re(i z), with Re z for Im(i z), −Im z for Im z', and with real factors in front of both.

    Those that are summed over stay, so that the product is one of matrices.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import COMPLEX, REAL
    >>> a, z = fresh("a", REAL), fresh("z", COMPLEX)
    >>> with_plain_parts(call("real", mul(a, IMAGINARY, z))) == mul(MINUS_ONE, a, call("imag", z))
    True
    """

    summed = {v for u in subterms(t) if isinstance(u, Sum) for v in u.indices}

    def visit(u: Term) -> Term:
        match u:
            case Call("real" | "imag" as part, (Mul() as product,)):
                return _plain_part(part, *split_coefficient(product), summed)
            case Call("imag", (Conj(z),)):
                return neg(call("imag", z))
            case _:
                return u

    return Traverser(visit)(t)


def _plain_part(part: str, c: Const, product: Term, summed: Collection[Var]) -> Term:
    factors = [*factors_of(product)]
    for z in factors_of(product):
        if conj(z) in factors and is_complex(z.type) and z.free.isdisjoint(summed):
            factors = [f for f in factors if f not in (z, conj(z))] + [call("abs2", z)]
    outer = [f for f in factors if not is_complex(f.type) and f.free.isdisjoint(summed)]
    inner = mul(*(f for f in factors if f not in outer))
    if part == "imag" and not c.imag and isinstance(inner, Conj):
        return mul(MINUS_ONE, c, *outer, call(part, inner.term))
    if c.real or not c.imag:
        return mul(*outer, call(part, mul(c, inner)))
    if part == "real":
        return mul(number(-c.imag), *outer, call("imag", inner))
    return mul(number(c.imag), *outer, call("real", inner))


def written_out(t: Term) -> Term:
    """`t` with a quotient for the inverse of a linear map of numbers.

    >>> from combdiff.terms.terms import Diff, fresh, number
    >>> from combdiff.terms.types import REAL
    >>> v, k = fresh("v", REAL), fresh("k", REAL)
    >>> written_out(App(Diff("inverse", Lam((v,), mul(number(2), v))), (k,))) == mul(HALF, k)
    True
    """

    def visit(u: Term) -> Term:
        match u:
            case App(Diff("inverse", Lam((Var(kind=Number()) as v,), body)), (k,)):
                return _quotient(v, body, k)
            case App(App(Diff("inverse", Lam((v,), Lam(rows, body))), (k,)), slots):
                return _entry_by_entry(v, rows, body, k, slots) or u
            case _:
                return u

    return Traverser(visit)(t)


def _entry_by_entry(v: Var, rows: tuple[Var, ...], body: Term, k: Term, slots: tuple[Term, ...]) -> Term | None:
    """The entry of the inverse of v ↦ rows ↦ body, where the body holds v at `rows` only."""
    kind = v.kind.result if isinstance(v.kind, Map) else v.kind
    one = fresh(v.name, kind)
    own = Traverser(lambda t: one if t == App(v, rows) else t)(body)
    if v in own.free:
        return None
    return _quotient(one, substitute(own, dict(zip(rows, slots, strict=True))), apply(k, *slots))


def _quotient(v: Var, body: Term, k: Term) -> Term:
    """The v with body(v) = k, where body(v) = a v + b v' over the complex numbers."""
    if not is_complex(v.kind):
        return mul(k, power(substitute(body, {v: ONE}), MINUS_ONE))
    a, b = _coefficients(v, body)
    if b == ZERO:
        return mul(k, power(a, MINUS_ONE))
    size = sub(call("abs2", a), call("abs2", b))
    return mul(sub(mul(conj(a), k), mul(b, conj(k))), power(size, MINUS_ONE))


def _coefficients(v: Var, body: Term) -> tuple[Term, Term]:
    """a and b: by taking v and v' for two variables, or from the values at 1 and i where a real part is taken."""
    if not any(v in u.free for u in subterms(body, Call)):
        primed = fresh(v.name, v.kind)
        apart = Traverser(lambda t: primed if t == Conj(v) else t)(body)
        return substitute(apart, {v: ONE, primed: ZERO}), substitute(apart, {v: ZERO, primed: ONE})
    at_one = substitute(body, {v: ONE})
    turned = _times_i(substitute(body, {v: IMAGINARY}))
    return mul(HALF, sub(at_one, turned)), mul(HALF, add(at_one, turned))


def _times_i(t: Term) -> Term:
    return add(*(mul(IMAGINARY, u) for u in terms_of(t)))


def gathered(t: Term) -> Term:
    """`t` with the terms of every sum that are images under one linear map, at the same slots, made one.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL, Map
    >>> D, x, y = fresh("D", Map((REAL,), REAL, linear=True)), fresh("x", REAL), fresh("y", REAL)
    >>> gathered(add(App(D, (x,)), App(D, (y,)))) == App(D, (add(x, y),))
    True
    """
    return Traverser(_visited)(t)


def _visited(t: Term) -> Term:
    if not isinstance(t, Add) or isinstance(t.type, Index):
        return t
    groups: dict[Hashable, list[_Image]] = {}
    others: list[Term] = []
    for u in t.terms:
        image = _image(u)
        if image is None:
            others.append(u)
        else:
            groups.setdefault((image.linear, image.slots), []).append(image)
    if all(len(group) == 1 for group in groups.values()):
        return t
    return add(*others, *map(_together, groups.values()))


def _image(u: Term) -> _Image | None:
    c, rest = split_coefficient(u)
    if not isinstance(rest, App):
        return None
    inner, slots = (rest.function, rest.args) if isinstance(rest.function, App) else (rest, ())
    assert isinstance(inner, App), "an application"
    kind = inner.function.type
    if not (isinstance(kind, Map) and kind.linear) or c.imag:
        return None
    return _Image(c, inner.function, inner.args[0], slots)


def _together(group: list[_Image]) -> Term:
    """One image of Σ coefficient · argument, taken slot by slot where the arguments are maps."""
    first = group[0]
    slots = slots_of(first.argument)
    if len(group) == 1:
        coefficient, argument = first.coefficient, first.argument
    else:
        parts = [mul(i.coefficient, apply(i.argument, *slots) if slots else i.argument) for i in group]
        coefficient, argument = ONE, lam(slots, add(*parts)) if slots else add(*parts)
    image = apply(first.linear, argument)
    return mul(coefficient, apply(image, *first.slots) if first.slots else image)
