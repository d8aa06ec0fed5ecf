"""Constructors of terms in normal form, so that no pass has to restore it.

Those of sums, products and powers are in `arithmetic.py`. Nothing here knows of differentiation.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import inf

from combdiff.terms.arithmetic import add, content, mul, neg, number, power, split_coefficient
from combdiff.terms.branches import above_zero, at_least_zero, is_scale, leaves_them_at
from combdiff.terms.laws.exponentials import logarithm, sigmoid
from combdiff.terms.laws.powers import HALF, is_real_number
from combdiff.terms.nodes import (
    MINUS_ONE,
    ONE,
    SHARES,
    TWO,
    ZERO,
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
    Reduce,
    Sum,
    Term,
    Tuple,
    Var,
    can_fill_slot,
    end_named,
    fresh,
    is_curve,
    terms_of,
)
from combdiff.terms.types import Domain, Index, Map, Type, interval_of, is_complex


def conj(t: Term) -> Term:
    """t'; real terms are their own conjugates."""
    match t:
        case Const(real, imag):
            return Const(real, -imag) if imag else t
        case Conj(inner):
            return inner
        case Call("complex"):
            return t
        case _:
            return Conj(t) if is_complex(t.type) else t


def call(primitive: str, *args: Term) -> Term:
    """A scalar function of the language, by name."""
    match primitive, args:
        case "conj", (u,):
            return conj(u)
        case (("real" | "imag"), (u,)) if not is_complex(u.type):
            return u if primitive == "real" else ZERO
        case "complex", (u,) if is_complex(u.type):
            return u
        case (("real" | "imag" | "abs" | "abs2" | "sign"), (Call("complex", (u,)),)):
            return call(primitive, u)
        case _, (Call("complex", (u,)),) if at_least_zero(u) and not leaves_them_at(Call(primitive, args), u):
            # a real value: what it, or a sum with it, is an argument of is meant to be complex where that is below 0
            value = call(primitive, u)
            return value if is_complex(value.type) else Call("complex", (value,))
        case (("real" | "imag"), (Const(real, imag),)):
            return Const(real if primitive == "real" else imag)
        case (("real" | "imag"), (Mul((Const(_, imag) as c, *rest)),)) if not imag:
            return mul(c, call(primitive, mul(*rest)))
        case "abs2", (Const(real, imag),):
            return Const(real * real + imag * imag)
        case "abs2", (u,) if not is_complex(u.type):
            return power(u, TWO)
        case (("abs" | "sign"), (Const(real, imag),)) if not imag:
            return Const(abs(real) if primitive == "abs" else Fraction((real > 0) - (real < 0)))
        case (("abs" | "abs2" | "sign" | "relu" | "max" | "min"), _) if found := _of_known_sign(primitive, *args):
            return found
        case "exp", (u,) if (made := _exponential(u)) is not None:
            return made
        case "real", (Reduce("logdet", of),):
            return Reduce("logabsdet", of)
        case "log", (u,) if (made := _logarithm(u)) is not None:
            return made
        case "log1p", (u,) if (stable := logarithm(add(ONE, u))) is not None:
            return stable
        case "sqrt", (Pow(base, Const(m, imag)) as u,) if not imag and is_real_number(base):
            return power(Call("sqrt", (base,)), number(m)) if m.denominator == 1 and m % 2 else power(u, HALF)
        case _:
            return Call(primitive, args)


def _is_negated(u: Term) -> bool:
    """Whether every term of `u` has a minus sign: |−x − y| is |x + y|, and sign(−x) is −sign(x)."""
    return all(split_coefficient(v)[0].real < 0 for v in terms_of(u))


def _of_known_sign(primitive: str, u: Term, *others: Term) -> Term | None:
    """|u|, |u|², sign u, relu u, max(u, 0) where u is positive, not negative by what it is made of, or has a sign.

    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> _of_known_sign("sign", mul(number(-2), x)) == mul(number(-1), call("sign", x))
    True
    """
    match primitive, u:
        case (("max" | "min"), _):
            known = ZERO in (u, *others) and all(map(at_least_zero, (u, *others)))
            return None if not known else ZERO if primitive == "min" else add(u, *others)
        case (("abs" | "abs2" | "sign"), _) if _is_negated(u):
            turned = call(primitive, add(*(mul(number(-1), v) for v in terms_of(u))))
            return mul(number(-1), turned) if primitive == "sign" else turned
        case (("abs" | "sign"), Mul((Const(real, imag) as c, *rest))) if real > 0 and not imag:
            size = call(primitive, mul(*rest))
            return mul(c, size) if primitive == "abs" else size
        case (("abs" | "relu"), _):
            return u if at_least_zero(u) else None
        case "sign", _:
            return ONE if above_zero(u) else None
        case _:
            return None


def _exponential(u: Term) -> Term | None:
    """exp(0) is 1, and exp(−n softplus(v)) is σ(−v)^n."""
    match u:
        case Const():
            return ONE if u == ZERO else None
        case Mul((Const() as c, Call("softplus", (v,)))) if c.real < 0 and not c.imag:
            return power(sigmoid(neg(v)), neg(c))
        case _:
            return None


def _logarithm(u: Term) -> Term | None:
    """log u in another form: of products and powers of what is declared to be positive, of determinants, stable forms.

    log det A and log |det A| do not overflow where det A does.
    """
    match u:
        case Mul(factors) if all(map(above_zero, factors)):
            return add(*(call("log", f) for f in factors))
        case Call("sqrt", (base,)) if is_scale(base):
            return mul(number(HALF.real), call("log", base))
        case Pow(base, exponent) if is_scale(base) and not is_complex(exponent.type):
            return mul(exponent, call("log", base))
        case Reduce("det", of) if not is_complex(u.type):
            return Reduce("logdet", of)
        case Call("abs", (Reduce("det", of),)):
            return Reduce("logabsdet", of)
        case Pow(base, Const(m, imag)) if not imag and m.denominator > 1 and is_real_number(base):
            return mul(number(m), Call("log", (base,)))
        case _:
            return logarithm(u)


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
    if rest == ONE and len(indices) == 1 and (known := _measure(indices[0])) is not None:
        return mul(c, known)
    if body == ONE and len(indices) == 1 and isinstance(indices[0].kind, Index) and indices[0].kind.domain is not None:
        return size(indices[0].kind.domain)
    if isinstance(body, Sum):
        # an index that the inner sum binds anew does not occur in it: Σ_i Σ_i e is n Σ_i e
        outer = (fresh(i.name, i.kind) if i in body.indices else i for i in indices)
        return Sum((*outer, *body.indices), body.body)
    return Sum(tuple(indices), body)


def _measure(x: Var) -> Term | None:
    """How many values an index has, or the length of the interval of a real variable, where the program says it."""
    if isinstance(x.kind, Index) and x.kind.domain is not None:
        domain = x.kind.domain
        return number(domain.count) if domain.count is not None and domain.directions == 1 else None
    lower, upper = ends_of(x.kind)
    return None if lower is None or upper is None else add(upper, neg(lower))


def ends_of(kind: Type) -> tuple[Term | None, Term | None]:
    """The lower and the upper end of the interval of which values of a type are points; None where there is none.

    >>> from combdiff.terms.types import Interval, Number
    >>> [end.name for end in ends_of(Number(complex=False, interval=Interval("Line", None, None, "a", "b")))]
    ['a', 'b']
    """
    interval = interval_of(kind)
    if interval is None:
        return None, None
    lower, upper = (
        end_named(end) if isinstance(end, str) else None if end is None else Const(end) for end in interval.ends
    )
    return lower, upper


@lru_cache(maxsize=4096)
def size(domain: Domain) -> Sum:
    """How many values an index of the domain has."""
    return Sum((fresh("i", Index(domain)),), ONE)


def delta(left: Term, right: Term, body: Term) -> Term:
    """`body` where left = right, 0 at different constants. For indices δ(i, i, e) = e; that of equal reals stays.

    >>> from combdiff.terms.types import Domain
    >>> i, j = (fresh(name, Index(Domain("n"))) for name in "ij")
    >>> delta(i, j, delta(j, i, ONE)) == delta(j, i, ONE)
    True
    """
    if body == ZERO or (isinstance(left, Const) and isinstance(right, Const) and left != right):
        return ZERO
    if left == ZERO or right == ZERO:
        left, right = _unsigned(left), _unsigned(right)
    if (left == right and can_fill_slot(left)) or _is_under(left, right, body):
        return body
    return Delta(left, right, body)


def _unsigned(index: Term) -> Term:
    """i for −i: on a ring, both are 0 or neither is."""
    match index:
        case Mul((Const() as c, Var() as v)) if c == MINUS_ONE and isinstance(v.kind, Index):
            return v
        case _:
            return index


def _is_under(left: Term, right: Term, body: Term) -> bool:
    """Whether the same δ stands around a value already."""
    while isinstance(body, Delta):
        if {left, right} == {body.left, body.right}:
            return True
        body = body.body
    return False


def indicator(left: Term, right: Term, body: Term) -> Term:
    """`body` where left ≤ right."""
    if body == ZERO:
        return ZERO
    if left == right:
        return body
    if isinstance(left, Const) and isinstance(right, Const):
        return body if left.real <= right.real else ZERO
    if left == ONE and isinstance(right, Sum) and _counts_itself(right):
        return body
    if any(interval_of(v.kind) is not None for v in left.free | right.free):
        if left == ends_of(right.type)[0] or right == ends_of(left.type)[1]:
            return body
        a, b = _bounds(left), _bounds(right)
        if a is not None and b is not None and a[1] <= b[0]:
            return body
        if a is not None and b is not None and a[0] > b[1]:
            return ZERO
    return Indicator(left, right, body)


def _counts_itself(of: Sum) -> bool:
    """Whether one of those that are counted is there for sure: Σ_v δ(J(v), J(w), 1) counts w."""
    match of.indices, of.body:
        case (Var() as v,), Delta(left, right, body) if body == ONE:
            pairs = ((left, right), (right, left))
            return any(_found_at(v, own, other) for own, other in pairs)
        case _:
            return False


def _found_at(v: Var, own: Term, other: Term) -> bool:
    """Whether an entry is another one with a free index in the place of v."""
    match own, other:
        case App(f, (a,)), App(g, (b,)):
            there = isinstance(b, Var) and a == v != b and b.kind == v.kind
            return f == g and v not in f.free and (there or _found_at(v, a, b))
        case _:
            return False


def _bounds(t: Term) -> tuple[Fraction | float, Fraction | float] | None:
    """The least and the largest value of what is affine in points of intervals; None for all else."""
    least: Fraction | float = Fraction(0)
    largest: Fraction | float = Fraction(0)
    for term in terms_of(t):
        coefficient, of = split_coefficient(term)
        interval = interval_of(of.kind) if isinstance(of, Var) else None
        c = coefficient.real
        if coefficient.imag or (of != ONE and interval is None):
            return None
        lower, upper = (Fraction(1), Fraction(1)) if interval is None else (interval.lower, interval.upper)
        low, high = (lower, upper) if c >= 0 else (upper, lower)
        least += -inf if low is None else c * low
        largest += inf if high is None else c * high
    return least, largest


def reduction(kind: str, indices: Sequence[Var], mark: Term, body: Term) -> Term:
    """`prod`, `maximum`, `logsumexp`, `softmax` … of the numbers `body` whose mark is 1.

    >>> from combdiff.terms.types import Domain
    >>> i = fresh("i", Index(Domain("n")))
    >>> reduction("prod", [i], ZERO, i) == ONE
    True
    """
    return reduced(kind, Lam(tuple(indices), Tuple((mark, body))))


def reduced(kind: str, of: Term) -> Term:
    """`reduction` of the map from the indices to the mark and the number.

    Of nothing a product is 1, a norm 0, and every share 0. Equal numbers have equal shares,
    and log Σ exp(e) of n numbers e is e + log n.

    >>> i = fresh("i", Index(Domain("n")))
    >>> reduced("softmax", Lam((i,), Tuple((ZERO, i)))) == Lam((i,), ZERO)
    True
    """
    match of:
        case Lam((i, j), Tuple((mark, body))) if kind in ("sqrtm_along", "expm_along"):
            scale = _multiple_of_identity(mark, i, j)
            return Reduce(kind, of) if scale is None else _along_identity(kind, i, j, body, scale)
        case Lam((i, j), Tuple((mark, _))) if kind == "spectral" and mark.free.isdisjoint((i, j)):
            p, q = fresh("i", i.kind), fresh("j", j.kind)
            return Lam((p, q), delta(p, q, call("real", mark)))
        case Lam(params, Tuple((mark, body))):
            if kind == "prod" and (mark == ZERO or body == ONE):
                return ONE
            if kind == "norm" and ZERO in (mark, body):
                return ZERO
            if kind == "inv" and (twice := _inverse_of_inverse(params, body)) is not None:
                return twice
            if kind == "cross":
                return _cross(params, mark, body)
            if kind in SHARES and mark == ZERO:
                return Lam(params, ZERO)
            if kind == "softmax" and (weight := _unscaled(params, mark)) != mark:
                return reduced(kind, Lam(params, Tuple((weight, body))))
            if kind in SHARES and mark == ONE and body.free.isdisjoint(params):
                return Lam(params, power(total(params, ONE), Const(Fraction(-1))))
            if kind == "logsumexp" and mark == ONE and body.free.isdisjoint(params):
                return add(body, call("log", total(params, ONE)))
    return Reduce(kind, of)


def _cross(params: tuple[Var, ...], first: Term, second: Term) -> Term:
    """u × v, with the numbers that multiply the vectors and the conditions around them in front.

    It is 0 for vectors along one another, and (u + 2 v) × v is u × v.
    """
    outside, u = _scale_and_vector(params, first)
    more, v = _scale_and_vector(params, second)
    less = _without_multiples(params, u, v), _without_multiples(params, v, u)
    outside += more
    while less != (u, v):
        (one, u), (two, v) = (_scale_and_vector(params, t) for t in less)
        outside += [*one, *two]
        less = _without_multiples(params, u, v), _without_multiples(params, v, u)
    if ZERO in (u, v):
        return Lam(params, ZERO)
    made = Reduce("cross", Lam(params, Tuple((u, v))))
    if not outside:
        return made
    own = tuple(fresh(p.name, p.kind) for p in params)
    return Lam(own, _under(outside, App(made, own)))


def _scale_and_vector(params: tuple[Var, ...], t: Term) -> tuple[list[Term], Term]:
    """The factors of an entry that do not depend on its index, and the product of the others."""
    outside, inside = list[Term](), list[Term]()
    for f in _factors_under(params, t):
        if f != ONE:
            (outside if f.free.isdisjoint(params) else inside).append(f)
    if ZERO in outside:
        return [], ZERO
    size, vector = content(mul(*inside))
    return [*outside, size] if size != ONE else outside, vector


def _without_multiples(params: tuple[Var, ...], u: Term, v: Term) -> Term:
    """The terms of u that are not along v."""
    return add(*(t for t in terms_of(u) if _scale_and_vector(params, t)[1] != v))


def _factors_under(params: tuple[Var, ...], t: Term) -> list[Term]:
    """The factors of an entry, also those under conditions that do not depend on its index, which have the body 1."""
    found = list[Term]()
    for f in t.factors if isinstance(t, Mul) else (t,):
        if isinstance(f, Delta | Indicator) and (f.left.free | f.right.free).isdisjoint(params):
            found += [type(f)(f.left, f.right, ONE), *_factors_under(params, f.body)]
        else:
            found.append(f)
    return found


def _under(factors: Sequence[Term], t: Term) -> Term:
    """The product of t and the factors, under those of these that are conditions."""
    made = mul(*(f for f in factors if not isinstance(f, Delta | Indicator)), t)
    for f in reversed(factors):
        if isinstance(f, Delta | Indicator):
            around = delta if isinstance(f, Delta) else indicator
            made = around(f.left, f.right, made)
    return made


def _unscaled(params: tuple[Var, ...], weight: Term) -> Term:
    """A weight without the factors that all weights have and that are never 0: shares do not depend on them."""
    factors = weight.factors if isinstance(weight, Mul) else (weight,)
    return mul(*(f for f in factors if not (f.free.isdisjoint(params) and _is_never_zero(f))))


def _is_never_zero(t: Term) -> bool:
    match t:
        case Const():
            return t != ZERO
        case Pow(_, Const() as n):
            return n.real < 0
        case _:
            return False


def _inverse_of_inverse(params: tuple[Var, ...], body: Term) -> Term | None:
    """A, or Aᵀ, where `body` is an entry of its inverse."""
    match body:
        case App(Reduce("inv", Lam((i, j), Tuple((_, entry)))), args) if set(args) == set(params):
            return Lam((i, j) if args == params else (j, i), entry)
        case _:
            return None


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


def _multiple_of_identity(t: Term, i: Var, j: Var) -> Term | None:
    """The c of c δ(i, j), where it does not depend on i and j."""
    factors = t.factors if isinstance(t, Mul) else (t,)
    bodies = [f.body for f in factors if isinstance(f, Delta) and {f.left, f.right} == {i, j}]
    others = [f for f in factors if not (isinstance(f, Delta) and {f.left, f.right} == {i, j})]
    scale = mul(*others, *bodies)
    return scale if bodies and scale.free.isdisjoint((i, j)) else None


def _along_identity(kind: str, i: Var, j: Var, body: Term, scale: Term) -> Term:
    """The derivative of a function of A along c · 1, which A commutes with: ½ c A^(−1/2), c exp(A)."""
    base = Reduce(kind.removesuffix("_along"), Lam((i, j), Tuple((ONE, body))))
    p, q = fresh("i", j.kind), fresh("j", i.kind)
    if kind == "expm_along":
        return Lam((p, q), mul(scale, App(base, (p, q))))
    inner = fresh("i", j.kind), fresh("j", i.kind)
    inverse = Reduce("inv", Lam(inner, Tuple((ONE, App(base, inner)))))
    return Lam((p, q), mul(HALF, scale, App(inverse, (p, q))))


def diff(kind: str, of: Term) -> Term:
    """`kind` of the map `of`; an adjoint of an adjoint, or an inverse of an inverse, is the map itself.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import REAL
    >>> D = fresh("D", Map((REAL,), REAL, linear=True))
    >>> diff("adjoint", diff("adjoint", D)) is D
    True
    """
    match of:
        case Diff(same, inner) if kind == same and kind in ("adjoint", "inverse"):
            return inner
        case _ if kind == "adjoint" and (known := _declared_adjoint(of)):
            return of if known == "self" else _negative(of)
        case _:
            return Diff(kind, of)


def _declared_adjoint(of: Term) -> str:
    """What the adjoint of a linear map is by declaration; that of an inverse follows."""
    of = of.of if isinstance(of, Diff) and of.kind == "inverse" else of
    return of.type.adjoint if isinstance(of.type, Map) else ""


def _negative(of: Term) -> Lam:
    """k ↦ −D(k)."""
    assert isinstance(of.type, Map), "a linear map"
    (k,) = (fresh("k", kind) for kind in of.type.params)
    value = App(of, (k,))
    slots = tuple(fresh("t", kind) for kind in value.type.params) if isinstance(value.type, Map) else ()
    return Lam((k,), Lam(slots, neg(App(value, slots))) if slots else neg(value))


def along(t: Term) -> tuple[Term, int]:
    """y and n, where t is dⁿy/dxⁿ of a function of one real number; t and 0 for all else.

    >>> from combdiff.terms.nodes import fresh
    >>> from combdiff.terms.types import REAL
    >>> y = fresh("y", Map((REAL,), REAL))
    >>> along(diff("grad", diff("grad", y))) == (y, 2), along(y) == (y, 0)
    (True, True)
    """
    times, of = 0, t
    while isinstance(of, Diff) and of.kind == "grad" and is_curve(of.of.type):
        times, of = times + 1, of.of
    return of, times


def tuple_of(items: Sequence[Term]) -> Term:
    """One item stays bare, several are a tuple."""
    return items[0] if len(items) == 1 else Tuple(tuple(items))


def proj(item: int, of: Term) -> Term:
    """Item `item` (from 0) of `of`."""
    match of:
        case Tuple(items):
            return items[item]
        case Let(bindings, body):
            return bound(bindings, proj(item, body))
        case Delta(left, right, body):
            return delta(left, right, proj(item, body))
        case Indicator(left, right, body):
            return indicator(left, right, proj(item, body))
        case _:
            return Proj(item, of)


def bound(bindings: Sequence[tuple[Var, Term]], body: Term) -> Term:
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
