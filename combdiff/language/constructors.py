"""Constructors of terms in normal form, so that no pass has to see to it.

Sums and products stay flat, numbers are folded, zeros and ones dropped, equal terms and factors merged; affine forms of
indices have one shape. Nothing here knows of differentiation.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from combdiff.language.nodes import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Let,
    Mul,
    Pow,
    Proj,
    Sum,
    Term,
    Tuple,
    Var,
)
from combdiff.language.numerals import is_held, is_modest, order
from combdiff.language.types import Index, Map, is_complex


def number(value: int | Fraction | complex | tuple[Fraction, Fraction]) -> Const:
    """An exact number; a float or complex is taken at its exact binary value."""
    match value:
        case complex():
            return Const(Fraction(value.real), Fraction(value.imag))
        case (real, imag):
            return Const(real, imag)
        case _:
            return Const(Fraction(value))


def _times(a: Const, b: Const) -> Const:
    if not a.imag and not b.imag:
        return Const(a.real * b.real)
    return Const(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _plus(a: Const, b: Const) -> Const:
    return Const(a.real + b.real, a.imag + b.imag)


def reciprocal(c: Const) -> Const:
    """1/c for c ≠ 0."""
    norm = c.real * c.real + c.imag * c.imag
    return Const(c.real / norm, -c.imag / norm)


def split_coefficient(t: Term) -> tuple[Const, Term]:
    """(c, u) with t = c·u, where u carries no number in front.

    >>> from combdiff.language.nodes import fresh
    >>> from combdiff.language.types import REAL
    >>> c, u = split_coefficient(mul(number(3), fresh("x", REAL)))
    >>> str(c.real)
    '3'
    """
    match t:
        case Const():
            return t, ONE
        case Mul((Const() as c, *rest)):
            return c, rest[0] if len(rest) == 1 else Mul(tuple(rest))
        case _:
            return ONE, t


def add(*terms: Term) -> Term:
    """The sum: flat, equal terms merged, zeros dropped; affine forms of indices are sorted."""
    merged: dict[Term, tuple[Const, Term]] = {}
    flat: list[Term] = []
    for t in terms:
        flat.extend(t.terms if isinstance(t, Add) else (t,))
    for t in flat:
        c, u = split_coefficient(t)
        if u in merged:
            c = _plus(merged[u][0], c)
            t = mul(c, u)
        merged[u] = c, t
    kept = [t for c, t in merged.values() if c.real or c.imag]
    if not kept:
        return ZERO
    if len(kept) == 1:
        return kept[0]
    if all(isinstance(t.type, Index) or isinstance(t, Const) for t in kept):
        kept.sort(key=_affine_order)
    return Add(tuple(kept))


def _affine_order(t: Term) -> tuple[bool, bool, bool, list[int]]:
    """k + b for a step b from a point k of a periodic domain; what is subtracted, then constants, at the end."""
    coefficient, rest = split_coefficient(t)
    domains = [v.kind.domain for v in rest.free if isinstance(v.kind, Index)]
    steps = not any(d.periodic for d in domains if d)
    return isinstance(t, Const), coefficient.real < 0, steps, sorted(v.uid for v in t.free)


def mul(*factors: Term) -> Term:
    """The product: flat, numbers folded in front, equal factors gathered into integer powers."""
    coefficient = ONE
    powers: dict[Term, int] = {}
    flat: list[Term] = []
    raised = False  # whether a factor is a power of a number
    for f in factors:
        flat.extend(f.factors if isinstance(f, Mul) else (f,))
    for f in flat:
        if isinstance(f, Const):
            coefficient = f if coefficient is ONE else _times(coefficient, f)
            continue
        base, n = _integer_power(f)
        powers[base] = powers.get(base, 0) + n
        raised = raised or type(base) is Const
    if raised:
        coefficient = _spread(coefficient, powers)
    if coefficient == ZERO:
        return ZERO
    kept = [b if n == 1 else Pow(b, number(n)) for b, n in powers.items() if n]
    if not kept:
        return coefficient
    if coefficient != ONE:
        if len(kept) == 1 and isinstance(kept[0].type, Index) and isinstance(kept[0], Add):
            return add(*(mul(coefficient, t) for t in kept[0].terms))
        kept.insert(0, coefficient)
    return kept[0] if len(kept) == 1 else Mul(tuple(kept))


def _integer_power(f: Term) -> tuple[Term, int]:
    match f:
        case Pow(base, Const() as n) if n.is_integer:
            return base, int(n.real)
        case _:
            return f, 1


def _spread(coefficient: Const, powers: dict[Term, int]) -> Const:
    """The coefficient, with the powers of numbers that are worked out by now, which are taken out.

    If floating point does not hold cⁿ, or what it makes of the coefficient, it goes into a power of about as many
    factors: (c x)ⁿ may be held.
    """
    for c, n in [(base, n) for base, n in powers.items() if isinstance(base, Const)]:
        size, first = order(c.real, c.imag), order(coefficient.real, coefficient.imag)
        if not is_held(n * size) or not is_held(n * size + first):
            for partner, m in powers.items():
                joint = min(n, m, key=abs)
                if m * n > 0 and abs(m) > 1 and not isinstance(partner, Const) and is_held((n - joint) * size + first):
                    scaled, n = mul(c, partner), n - joint
                    powers[c], powers[partner], powers[scaled] = n, m - joint, powers.get(scaled, 0) + joint
                    break
        result = power(c, number(n))
        if isinstance(result, Const):
            coefficient = _times(coefficient, result)
            del powers[c]
    return coefficient


def neg(t: Term) -> Term:
    """−t."""
    return mul(MINUS_ONE, t)


def sub(a: Term, b: Term) -> Term:
    """a − b."""
    return add(a, neg(b))


def power(base: Term, exponent: Term) -> Term:
    """base ^ exponent; integer powers of numbers, unless they are very large, and of integer powers are folded."""
    match base, exponent:
        case _, Const() as n if n == ZERO:
            return ONE
        case _, Const() as n if n == ONE:
            return base
        case Const() as c, Const() as n if c == ZERO and n.is_integer and n.real > 0:
            return ZERO
        case Const() as c, Const() as n if n.is_integer and c != ZERO and _is_modest(c, n):
            step = c if n.real > 0 else reciprocal(c)
            result = ONE
            count = abs(int(n.real))
            for _ in range(count if count <= 64 else count % 4):  # beyond, of units
                result = _times(result, step)
            return result
        case Pow(inner, Const() as m), Const() as n if n.is_integer and m.is_integer:
            return power(inner, _times(m, n))
        case _:
            return Pow(base, exponent)


def _is_modest(c: Const, n: Const) -> bool:
    return is_modest(c.real, c.imag, int(n.real))


def conj(t: Term) -> Term:
    """t'; real terms are their own conjugates."""
    match t:
        case Const(real, imag):
            return Const(real, -imag) if imag else t
        case Conj(inner):
            return inner
        case _:
            return Conj(t) if is_complex(t.type) else t


def call(primitive: str, *args: Term) -> Term:
    """A scalar function of the language, by name."""
    match primitive, args:
        case "conj", (u,):
            return conj(u)
        case "real", (u,) if not is_complex(u.type):
            return u
        case "imag", (u,) if not is_complex(u.type):
            return ZERO
        case (("real" | "imag"), (Const(real, imag),)):
            return Const(real if primitive == "real" else imag)
        case (("real" | "imag"), (Mul((Const(_, imag) as c, *rest)),)) if not imag:
            return mul(c, call(primitive, mul(*rest)))
        case "exp", (Const() as c,) if c == ZERO:
            return ONE
        case _:
            return Call(primitive, args)


PI = Call("pi", ())


def total(indices: Sequence[Var], body: Term) -> Term:
    """Σ over `indices`; nested sums become one, a number in front of the body comes in front of the sum."""
    if not indices:
        return body
    if body == ZERO:
        return ZERO
    c, rest = split_coefficient(body)
    if c != ONE and rest != ONE:
        return mul(c, total(indices, rest))
    if isinstance(body, Sum):
        return Sum((*indices, *body.indices), body.body)
    return Sum(tuple(indices), body)


def delta(left: Term, right: Term, body: Term) -> Term:
    """`body` where left = right. For indices δ(i, i, e) = e; for real numbers it stays (Dirac)."""
    if body == ZERO:
        return ZERO
    if left == right and (isinstance(left.type, Index) or isinstance(left, Const)):
        return body
    return Delta(left, right, body)


def indicator(left: Term, right: Term, body: Term) -> Term:
    """`body` where left ≤ right."""
    if body == ZERO:
        return ZERO
    if left == right:
        return body
    if isinstance(left, Const) and isinstance(right, Const):
        return body if left.real <= right.real else ZERO
    return Indicator(left, right, body)


def lam(params: Sequence[Var], body: Term) -> Term:
    """(params) -> body; `i -> f(i)` is f itself."""
    match body:
        case App(Var(type=Map(kinds)) | Diff(type=Map(kinds)) | App(type=Map(kinds)) as f, args) if (
            args == tuple(params) and f.free.isdisjoint(params) and kinds == tuple(p.kind for p in params)
        ):
            # `(t::R) -> f(t)` of a complex f is not f: the types differ
            return f
        case _:
            return Lam(tuple(params), body)


def diff(kind: str, of: Term) -> Term:
    """`kind` of the map `of`; an adjoint of an adjoint, or an inverse of an inverse, is the map itself.

    >>> from combdiff.language.nodes import fresh
    >>> from combdiff.language.types import REAL
    >>> D = fresh("D", Map((REAL,), REAL, linear=True))
    >>> diff("adjoint", diff("adjoint", D)) is D
    True
    """
    match of:
        case Diff(same, inner) if kind == same and kind in ("adjoint", "inverse"):
            return inner
        case _:
            return Diff(kind, of)


def tuple_of(items: Sequence[Term]) -> Term:
    """One item stays bare, several are a tuple."""
    return items[0] if len(items) == 1 else Tuple(tuple(items))


def proj(item: int, of: Term) -> Term:
    """Item `item` (from 0) of `of`."""
    match of:
        case Tuple(items):
            return items[item]
        case Let(bindings, body):
            return let(bindings, proj(item, body))
        case _:
            return Proj(item, of)


def let(bindings: Sequence[tuple[Var, Term]], body: Term) -> Term:
    """Bindings that nothing uses are dropped; nested lets become one."""
    if isinstance(body, Let):
        bindings = (*bindings, *body.bindings)
        body = body.body
    used = set(body.free)
    kept: list[tuple[Var, Term]] = []
    for var, value in reversed(bindings):
        if var in used:
            kept.append((var, value))
            used |= value.free
    return Let(tuple(reversed(kept)), body) if kept else body
