"""Arithmetic on arrays and on arrays with tangents: forward derivatives of any order, each function by its own rule.

A `Dual` is a value with its derivative along one direction of one differentiation, which its tag names; values of later
differentiations hold those of earlier ones. `None` is a tangent that is zero, so that 0 · ∞ never comes of what does
not depend on the direction. Conventions: |x| and sign(x) have derivative 0 at 0, comparisons none.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

Array = Any
"""An array of NumPy in the oracle's precision, or of JAX."""
Value = Any
"""An array or a Dual."""

_TAGS = itertools.count(1)
LONG, DOUBLE = np.longdouble, np.float64


def fresh_tag() -> int:
    return next(_TAGS)


@dataclass(frozen=True, slots=True)
class Dual:
    """primal + ε · tangent."""

    tag: int
    primal: Value
    tangent: Value


def xp_of(a: Array) -> Any:
    """NumPy, or JAX's NumPy for its arrays."""
    if isinstance(a, np.ndarray | np.generic | int | float | complex):
        return np
    import jax.numpy as jnp

    return jnp


def xp_of_all(*arrays: Array) -> Any:
    """JAX's NumPy if one of the arrays is JAX's."""
    return next((xp for xp in map(xp_of, arrays) if xp is not np), np)


def tag_of(*values: Value) -> int:
    return max((v.tag for v in values if isinstance(v, Dual)), default=0)


def parts(v: Value, tag: int) -> tuple[Value, Value | None]:
    return (v.primal, v.tangent) if isinstance(v, Dual) and v.tag == tag else (v, None)


def tangent_of(v: Value, tag: int) -> Value:
    """The derivative that belongs to `tag`; zero if there is none."""
    return v.tangent if isinstance(v, Dual) and v.tag == tag else np.longdouble(0)


def _plus(a: Value | None, b: Value | None) -> Value | None:
    if a is None or b is None:
        return b if a is None else a
    return add(a, b)


def _dual(tag: int, primal: Value, tangent: Value | None) -> Value:
    return primal if tangent is None else Dual(tag, primal, tangent)


def each(v: Value, f: Callable[[Array], Array]) -> Value:
    """A map that is linear over the real numbers, on the value and on its tangents."""
    if isinstance(v, Dual):
        return Dual(v.tag, each(v.primal, f), each(v.tangent, f))
    return f(v)


def primal(v: Value) -> Array:
    """The value without any tangents."""
    while isinstance(v, Dual):
        v = v.primal
    return v


def with_primal(v: Value, x: Array) -> Value:
    """The value `x` with the tangents of `v`."""
    return Dual(v.tag, with_primal(v.primal, x), v.tangent) if isinstance(v, Dual) else x


def tangents(v: Value) -> Iterator[Array]:
    """All derivatives of a value, of any order."""
    while isinstance(v, Dual):
        yield primal(v.tangent)
        yield from tangents(v.tangent)
        v = v.primal


# --- arithmetic -----------------------------------------------------------------------------------------------------


def add(a: Value, b: Value) -> Value:
    tag = tag_of(a, b)
    if not tag:
        return a + b
    (p, s), (q, t) = parts(a, tag), parts(b, tag)
    return _dual(tag, add(p, q), _plus(s, t))


def neg(a: Value) -> Value:
    return each(a, lambda x: -x)


def mul(a: Value, b: Value) -> Value:
    tag = tag_of(a, b)
    if not tag:
        return a * b
    (p, s), (q, t) = parts(a, tag), parts(b, tag)
    tangent = _plus(None if s is None else mul(s, q), None if t is None else mul(p, t))
    return _dual(tag, mul(p, q), tangent)


def div(a: Value, b: Value) -> Value:
    """a/b, whose tangent is a'/b − (a/b) (b'/b): nothing is squared, so that little under- or overflows."""
    tag = tag_of(a, b)
    if not tag:
        return a / b
    (p, s), (q, t) = parts(a, tag), parts(b, tag)
    ratio = div(p, q)
    tangent = _plus(None if s is None else div(s, q), None if t is None else neg(mul(ratio, div(t, q))))
    return _dual(tag, ratio, tangent)


def where(condition: Array, a: Value, otherwise: float = 0) -> Value:
    """`a` where the condition holds, else 0, whatever `a` is there: also in the tangents."""
    return each(a, lambda x: xp_of_all(x, condition).where(condition, x, otherwise))


def summed(v: Value, axis_size: int, ndim: int) -> Value:
    """The sum over the last of `ndim` axes, which may be missing or of size one where nothing depends on it."""

    def plain(x: Array) -> Array:
        if x.ndim < ndim:
            return x * axis_size
        result = x.sum(axis=-1)
        return result * axis_size if x.shape[-1] != axis_size else result

    return each(v, plain)


def power(base: Value, exponent: Value | Fraction, complex_: bool) -> Value:
    """base^exponent: by a rational number, or by anything."""
    if isinstance(exponent, Fraction):
        return _rational_power(base, exponent, complex_)
    tag = tag_of(base, exponent)
    if not tag:
        base, exponent = _alike(base, exponent)
        return xp_of(base).power(_widened(base, complex_), _widened(exponent, complex_))
    (p, s), (q, t) = parts(base, tag), parts(exponent, tag)
    p, q = _alike(p, q)
    result = power(p, q, complex_)
    one = np.longdouble(1) if xp_of(primal(q)) is np else 1.0
    by_base = None if s is None else mul(mul(q, power(p, add(q, neg(one)), complex_)), s)
    by_exponent = None if t is None else mul(mul(result, call("log", p, complex_)), t)
    return _dual(tag, result, _plus(by_base, by_exponent))


def _alike(a: Value, b: Value) -> tuple[Value, Value]:
    """Both as JAX's arrays if one of them is, for these do not meet NumPy's extended precision."""
    if isinstance(a, Dual) or isinstance(b, Dual) or xp_of(a) is xp_of(b):
        return a, b
    xp = xp_of(a) if xp_of(a) is not np else xp_of(b)

    def taken(x: Value) -> Value:
        return xp.asarray(np.asarray(x, complex if np.iscomplexobj(x) else float)) if xp_of(x) is np else x

    return taken(a), taken(b)


def _rational_power(base: Value, exponent: Fraction, complex_: bool) -> Value:
    if isinstance(base, Dual):
        if not exponent:
            return _rational_power(base.primal, exponent, complex_)
        slope = scaled(_rational_power(base.primal, exponent - 1, complex_), exponent)
        return Dual(base.tag, _rational_power(base.primal, exponent, complex_), mul(slope, base.tangent))
    xp = xp_of(base)
    if exponent.denominator == 1 and abs(exponent) <= 12:
        result = xp.ones_like(base)
        for _ in range(abs(int(exponent))):
            result = result * base
        return 1 / result if exponent < 0 else result
    wide = _widened(base, complex_)
    return xp.power(wide, exact(exponent, wide))


def exact(value: Fraction, like: Array | None = None) -> Array:
    """A rational number in the precision of `like`."""
    if like is not None and (xp_of(like) is not np or np.asarray(like).dtype.type in (DOUBLE, np.complex128)):
        return float(value)
    return np.longdouble(value.numerator) / np.longdouble(value.denominator)


def scaled(v: Value, factor: Fraction) -> Value:
    return each(v, lambda x: x * exact(factor, x))


def _widened(x: Array, complex_: bool) -> Array:
    """A complex array where the type is complex, so that roots and logarithms take the complex branch."""
    if not complex_ or xp_of(x).iscomplexobj(x):
        return x
    return x * (np.clongdouble(1) if xp_of(x) is np and np.asarray(x).dtype == LONG else 1 + 0j)


# --- functions ------------------------------------------------------------------------------------------------------


def conj(v: Value) -> Value:
    return each(v, lambda x: x.conj())


def real(v: Value) -> Value:
    return each(v, lambda x: x.real)


def imag(v: Value) -> Value:
    return each(v, lambda x: x.imag if xp_of(x).iscomplexobj(x) else abs(x) * 0)


_PLAIN: dict[str, Callable[[Any, Array], Array]] = {
    "exp": lambda xp, x: xp.exp(x),
    "log": lambda xp, x: xp.log(x),
    "sin": lambda xp, x: xp.sin(x),
    "cos": lambda xp, x: xp.cos(x),
    "tan": lambda xp, x: xp.tan(x),
    "sinh": lambda xp, x: xp.sinh(x),
    "cosh": lambda xp, x: xp.cosh(x),
    "tanh": lambda xp, x: xp.tanh(x),
    "atan": lambda xp, x: xp.arctan(x),
    "sqrt": lambda xp, x: xp.sqrt(x),
    "abs": lambda xp, x: xp.abs(x),
    "log1p": lambda xp, x: xp.log1p(x),
    "log2": lambda xp, x: xp.log2(x),
    "log10": lambda xp, x: xp.log10(x),
    "expm1": lambda xp, x: xp.expm1(x),
    "asinh": lambda xp, x: xp.arcsinh(x),
    "softplus": lambda xp, x: xp.logaddexp(x, 0 * x),
    "sigmoid": lambda xp, x: xp.exp(-xp.logaddexp(-x, 0 * x)),
    "relu": lambda xp, x: xp.where(x > 0, x, 0 * x + 0),  # no zero with a sign
    "erf": lambda xp, x: _special("erf", x),
    "erfc": lambda xp, x: _special("erfc", x),
    "asin": lambda xp, x: xp.arcsin(x),
    "acos": lambda xp, x: xp.arccos(x),
    # the slope of JAX's own takes the other root left of 0
    "acosh": lambda xp, x: xp.arccosh(x) if xp is np else xp.log(x + xp.sqrt(x - 1) * xp.sqrt(x + 1)),
    "atanh": lambda xp, x: xp.arctanh(x),
    "angle": lambda xp, x: xp.angle(x + 0.0),  # no zero is negative
    "floor": lambda xp, x: xp.floor(x),
    "ceil": lambda xp, x: xp.ceil(x),
    "round": lambda xp, x: xp.round(x),
    "lgamma": lambda xp, x: _special("gammaln", x),
    "digamma": lambda xp, x: _special("digamma", x),
}


def _special(name: str, x: Array) -> Array:
    """A function that NumPy does not have, in double precision."""
    if xp_of(x) is not np:
        from jax.scipy import special as of_jax

        return getattr(of_jax, name)(x)
    from scipy import special

    return np.asarray(getattr(special, name)(np.asarray(x, DOUBLE)), np.asarray(x).dtype)


def call(name: str, v: Value, complex_: bool) -> Value:
    """A function of the language; `complex_` says which branch is meant."""
    match name:
        case "conj":
            return conj(v)
        case "real":
            return real(v)
        case "imag":
            return imag(v)
        case "abs2":
            return real(mul(v, conj(v)))
        case "complex":
            return each(v, lambda x: _widened(x, True))
    if not isinstance(v, Dual):
        v = _widened(v, complex_)
        return _sign(v) if name == "sign" else _PLAIN[name](xp_of(v), v)
    p, t = v.primal, v.tangent
    result = call(name, p, complex_)
    tangent = _slope(name, p, t, result, complex_)
    return _dual(v.tag, result, tangent)


def _sign(x: Array) -> Array:
    xp = xp_of(x)
    size = xp.abs(x)
    return xp.where(size == 0, 0, x / xp.where(size == 0, 1, size))


def times(v: Value, c: Any) -> Value:
    """v times a number, in the precision of v."""
    return each(v, lambda x: x * (c if xp_of(x) is np and np.asarray(x).dtype in (LONG, np.clongdouble) else float(c)))


def _ones(p: Value) -> Array:
    return each(primal(p), lambda x: x * 0 + 1)


def _slope(name: str, p: Value, t: Value, result: Value, complex_: bool) -> Value | None:
    """The tangent of a function at p along t."""
    match name:
        case "exp":
            return mul(result, t)
        case "log":
            return div(t, p)
        case "sin":
            return mul(call("cos", p, complex_), t)
        case "cos":
            return neg(mul(call("sin", p, complex_), t))
        case "tan":
            cosine = call("cos", p, complex_)
            return div(div(t, cosine), cosine)
        case "sinh":
            return mul(call("cosh", p, complex_), t)
        case "cosh":
            return mul(call("sinh", p, complex_), t)
        case "tanh":
            cosine = call("cosh", p, complex_)
            return div(div(t, cosine), cosine)
        case "atan":
            return div(t, add(mul(p, p), each(primal(p), lambda x: x * 0 + 1)))
        case "sqrt":
            return div(scaled(t, Fraction(1, 2)), result)
        case "abs":
            return real(mul(conj(call("sign", p, complex_)), t))
        case "sign":
            if not complex_:
                return None
            turned = add(t, neg(mul(mul(result, result), conj(t))))
            return div(scaled(turned, Fraction(1, 2)), call("abs", p, complex_))
    return _slope_of_others(name, p, t, result, complex_)


def _slope_of_others(name: str, p: Value, t: Value, result: Value, complex_: bool) -> Value | None:
    """The same for what is made of exponentials and logarithms."""
    match name:
        case "log1p" | "log2" | "log10":
            base = {"log1p": 1.0, "log2": np.log(LONG(2)), "log10": np.log(LONG(10))}[name]
            return div(times(t, 1 / base), add(p, _ones(p)) if name == "log1p" else p)
        case "expm1":
            return mul(call("exp", p, complex_), t)
        case "asinh":
            return div(t, call("sqrt", add(mul(p, p), _ones(p)), complex_))
        case "softplus":
            return mul(call("sigmoid", p, complex_), t)
        case "sigmoid":
            return mul(mul(result, call("sigmoid", neg(p), complex_)), t)
        case "relu":
            return mul(each(primal(p), lambda x: xp_of(x).where(x > 0, 0 * x + 1, 0 * x)), t)
        case "erf" | "erfc":
            size = (2 if name == "erf" else -2) / np.sqrt(np.pi * LONG(1))
            return mul(times(call("exp", neg(mul(p, p)), complex_), size), t)
        case "floor" | "ceil" | "round":
            return None
        case "lgamma":
            return mul(call("digamma", p, complex_), t)
        case "digamma":
            return mul(polygamma(1, p), t)
    return _slope_of_arcs(name, p, t, complex_)


def _slope_of_arcs(name: str, p: Value, t: Value, complex_: bool) -> Value | None:
    """The same for angles, and inverses of trigonometric functions."""
    one = _ones(p)
    match name:
        case "asin" | "acos":
            slope = div(t, call("sqrt", add(one, neg(mul(p, p))), complex_))
            return slope if name == "asin" else neg(slope)
        case "acosh":
            # the product of two roots, which is the root of a product on one side of the cut alone
            roots = mul(call("sqrt", add(p, neg(one)), complex_), call("sqrt", add(p, one), complex_))
            return div(t, roots)
        case "atanh":
            return div(t, add(one, neg(mul(p, p))))
        case "angle":
            return imag(div(t, p)) if complex_ else None
    raise AssertionError(f"no rule for {name}")


# --- functions of several numbers -----------------------------------------------------------------------------------


def several(name: str, args: Sequence[Value]) -> Value:
    """A function of several real numbers."""
    match name, args:
        case "max" | "min", _:
            # two by two, as the language says: of three that are equal the last has one half
            return reduce(lambda a, b: extreme((a, b), largest=name == "max"), args)
        case "clip", (x, low, high):
            return extreme((extreme((x, low), True), high), False)
        case "atan2", (y, x):
            return _atan2(y, x)
        case "polygamma", (n, x):
            return polygamma(int(primal(n)), x)
    raise AssertionError(f"no meaning for {name} of {len(args)} numbers")


def extreme(values: tuple[Value, Value], largest: bool) -> Value:
    """The larger or the lesser of two numbers; equal ones share the derivative equally."""
    plain = [primal(v) for v in values]
    xp = xp_of_all(*plain)
    best = reduce(xp.maximum if largest else xp.minimum, plain)
    meets = [p == best for p in plain]
    count = sum(m * 1 for m in meets)
    # a slope that is infinite where another number is larger has no derivative: 0 · ∞, as for the package
    shares = [each(v, lambda x: x * (m / count)) for m, v in zip(meets, values, strict=True)]  # noqa: B023
    return with_primal(reduce(add, shares), best)


def _atan2(y: Value, x: Value) -> Value:
    tag = tag_of(y, x)
    if not tag:
        return xp_of_all(y, x).arctan2(y, x)
    (p, s), (q, t) = parts(y, tag), parts(x, tag)
    square = add(mul(p, p), mul(q, q))
    by_y = None if s is None else mul(div(q, square), s)
    by_x = None if t is None else neg(mul(div(p, square), t))
    return _dual(tag, _atan2(p, q), _plus(by_y, by_x))


def polygamma(n: int, v: Value) -> Value:
    """The derivative of that order of the digamma function."""
    if isinstance(v, Dual):
        return Dual(v.tag, polygamma(n, v.primal), mul(polygamma(n + 1, v.primal), v.tangent))
    if xp_of(v) is not np:
        from jax.scipy.special import polygamma as of_jax

        return of_jax(n, v)
    from scipy import special

    # SciPy goes from far below 0 up to 0 in steps of 1
    near = np.where(np.asarray(v, DOUBLE) > -1e5, v, float("nan"))
    return np.asarray(special.polygamma(n, np.asarray(near, DOUBLE)), np.asarray(v).dtype)
