"""The scalar functions of the language: one row each, read by every stage that must know them.

A new function is one row here. The holomorphic ones carry their complex derivative f'; their pullback is then
(z, k) ↦ conj(f'(z))·k by Eq. 44 (`calculus/primitives.py`). The others carry the pullback itself. A function of several
numbers has a derivative by each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from combdiff.terms.functions import SCALAR_FUNCTIONS, ScalarFunction
from combdiff.terms.terms import (
    IMAGINARY,
    MINUS_ONE,
    ONE,
    PI,
    TWO,
    ZERO,
    Add,
    Call,
    Const,
    Pow,
    Term,
    add,
    call,
    conj,
    factors_of,
    indicator,
    mul,
    neg,
    number,
    power,
    sub,
)
from combdiff.terms.types import is_complex

HALF = number(Fraction(1, 2))


def _abs_pullback(z: Term, k: Term) -> Term:
    """k ↦ (z/|z|) k, and 0 at 0."""
    return mul(call("sign", z), k)


def _phase_pullback(z: Term, k: Term) -> Term:
    """sign(z) = z/|z| turns only: k ↦ (k − sign(z)² k')/(2|z|); the sign of a real number is constant, at 0 too."""
    if not is_complex(z.type):
        return ZERO
    scale = mul(HALF, power(call("abs", z), MINUS_ONE))
    return add(mul(scale, k), neg(mul(scale, power(call("sign", z), TWO), conj(k))))


def _exp(z: Term) -> Term:
    return Call("exp", (z,))


def _gaussian(z: Term) -> Term:
    """2/√π exp(−z²), the derivative of erf."""
    return mul(TWO, power(call("sqrt", PI), MINUS_ONE), call("exp", neg(power(z, TWO))))


def _over_tail(x: Term) -> Term:
    """φ(x)/Φ(x), the derivative of log Φ: the density and the tail underflow, their quotient does not."""
    exponent = sub(mul(neg(HALF), power(x, TWO)), call("lognormcdf", x))
    return mul(power(call("sqrt", mul(TWO, PI)), MINUS_ONE), call("exp", exponent))


def _turning(z: Term, k: Term) -> Term:
    """k ↦ i k/z*: the angle grows where z turns; that of a real number is constant."""
    if not is_complex(z.type):
        return ZERO
    # not i z k/|z|², whose square may underflow
    turned = mul(IMAGINARY, power(conj(z), MINUS_ONE), k)
    factors = _unknown_factors(z)
    return _where_not_zero(factors, turned) if len(factors) > 1 else turned


def _of_direction(y: Term, x: Term) -> tuple[Term, Term]:
    """The derivatives of atan2(y, x) by y and by x."""
    square = power(add(power(x, TWO), power(y, TWO)), MINUS_ONE)
    common = [f for f in _unknown_factors(y) if f in factors_of(x)]
    by_y, by_x = (mul(u, square) for u in (x, neg(y)))
    return (_where_not_zero(common, by_y), _where_not_zero(common, by_x)) if common else (by_y, by_x)


def _of_length(x: Term, y: Term) -> tuple[Term, Term]:
    """The derivatives of hypot(x, y), and 0 at the origin, as for a norm; hypot(x, 1/10) is 0 nowhere."""
    length = call("hypot", x, y)
    if any(isinstance(u, Const) and u != ZERO for u in (x, y)):
        return mul(x, power(length, MINUS_ONE)), mul(y, power(length, MINUS_ONE))
    inverse = indicator(indicator(length, ZERO, ONE), ZERO, power(length, MINUS_ONE))
    return mul(x, inverse), mul(y, inverse)


def _unknown_factors(t: Term) -> list[Term]:
    return [f for f in factors_of(t) if not isinstance(f, Const)]


def _where_not_zero(factors: Sequence[Term], t: Term) -> Term:
    """`t`, which divides by these factors, and 0 where one of them is 0: the slope of another takes them out.

    angle(r x) is 0 for all x where r is 0, and r times i/(r x)* is i/x*.
    """
    return indicator(indicator(call("abs", mul(*factors)), ZERO, ONE), ZERO, t)


def _above(a: Term, b: Term) -> Term:
    """1 where a > b, ½ where a = b, else 0."""
    return mul(HALF, add(ONE, call("sign", sub(a, b))))


def _below(a: Term, b: Term) -> Term:
    """1 where a < b, ½ where a = b, else 0."""
    return _above(b, a)


def _from(a: Term, b: Term) -> Term:
    """1 where a ≤ b, else 0."""
    return indicator(a, b, ONE)


def _beside_the_cut(z: Term, outer: str, inner: str) -> Term:
    """1/√(1 − z²) as 1/cos(asin(z)), which is that of the side of the cut on which asin(z) is; of a real z as it is."""
    root = call(outer, call(inner, z)) if is_complex(z.type) else call("sqrt", sub(ONE, power(z, TWO)))
    return power(root, MINUS_ONE)


def _root(z: Term, exponent: Term) -> Term:
    """√z to an integer power, on NumPy's branch."""
    return power(call("sqrt", z), exponent)


_ROWS = (
    ScalarFunction("exp", "exp", r"\exp", lambda z: call("exp", z), commutes=True, least=0),
    ScalarFunction("log", "log", r"\log", lambda z: power(z, MINUS_ONE), cut="below zero"),
    ScalarFunction("sin", "sin", r"\sin", lambda z: call("cos", z), commutes=True, finite="numbers", parity=-1),
    ScalarFunction("cos", "cos", r"\cos", lambda z: neg(call("sin", z)), commutes=True, finite="numbers", parity=1),
    ScalarFunction("tan", "tan", r"\tan", lambda z: add(ONE, power(call("tan", z), TWO)), commutes=True, parity=-1),
    ScalarFunction(
        "sinh",
        "sinh",
        r"\sinh",
        lambda z: call("cosh", z),
        commutes=True,
        parity=-1,
        made_of=lambda z: mul(HALF, Add((_exp(z), neg(_exp(neg(z)))))),
    ),
    ScalarFunction(
        "cosh",
        "cosh",
        r"\cosh",
        lambda z: call("sinh", z),
        commutes=True,
        least=1,
        parity=1,
        made_of=lambda z: mul(HALF, Add((_exp(z), _exp(neg(z))))),
    ),
    ScalarFunction(
        "tanh",
        "tanh",
        r"\tanh",
        lambda z: add(ONE, neg(power(call("tanh", z), TWO))),
        commutes=True,
        finite="reals",
        parity=-1,
        made_of=lambda z: mul(Add((_exp(z), neg(_exp(neg(z))))), Pow(Add((_exp(z), _exp(neg(z)))), MINUS_ONE)),
    ),
    ScalarFunction(
        "atan", "arctan", r"\arctan", lambda z: power(add(ONE, power(z, TWO)), MINUS_ONE), finite="reals", parity=-1
    ),
    ScalarFunction(
        "sqrt", "sqrt", r"\sqrt", lambda z: mul(HALF, power(call("sqrt", z), MINUS_ONE)), cut="below zero", least=0
    ),
    ScalarFunction(
        "conj",
        "conj",
        r"\overline",
        pullback=lambda z, k: conj(k),
        pushforward=lambda z, k: conj(k),
        commutes=True,
        finite="numbers",
        parity=-1,
        sympy="conjugate",
    ),
    ScalarFunction(
        "real",
        "real",
        r"\operatorname{Re}",
        pullback=lambda z, k: k,
        pushforward=lambda z, k: call("real", k),
        commutes=True,
        real_valued=True,
        finite="numbers",
        parity=-1,
        sympy="re",
    ),
    ScalarFunction(
        "imag",
        "imag",
        r"\operatorname{Im}",
        pullback=lambda z, k: mul(IMAGINARY, k),
        pushforward=lambda z, k: call("imag", k),
        real_valued=True,
        finite="numbers",
        parity=-1,
        sympy="im",
    ),
    ScalarFunction(
        "abs2",
        "",
        r"\left|\cdot\right|^2",
        pullback=lambda z, k: mul(TWO, z, k),
        pushforward=lambda z, k: mul(TWO, call("real", mul(conj(z), k))),
        real_valued=True,
        finite="numbers",
        least=0,
        parity=1,
        made_of=lambda z: Pow(Call("abs", (z,)), TWO),
    ),
    ScalarFunction(
        "abs",
        "abs",
        r"\left|\cdot\right|",
        pullback=_abs_pullback,
        pushforward=lambda z, k: call("real", mul(conj(call("sign", z)), k)),
        real_valued=True,
        finite="reals",
        least=0,
        parity=1,
        sympy="Abs",
    ),
    ScalarFunction(
        "sign",
        "sign",
        r"\operatorname{sign}",
        pullback=_phase_pullback,
        pushforward=_phase_pullback,  # its own adjoint
        commutes=True,
        finite="reals",
        parity=-1,
    ),
    ScalarFunction(
        "complex",
        "",
        r"\operatorname{complex}",
        pullback=lambda z, k: k if is_complex(z.type) else call("real", k),
        pushforward=lambda z, k: call("complex", k),
        commutes=True,
        complex_valued=True,
        finite="numbers",
        parity=-1,
        made_of=lambda z: z,
    ),
    ScalarFunction(
        "log1p",
        "log1p",
        r"\operatorname{log1p}",
        lambda z: power(add(ONE, z), MINUS_ONE),
        cut="below zero",
        made_of=lambda z: Call("log", (add(ONE, z),)),
    ),
    ScalarFunction(
        "expm1",
        "expm1",
        r"\operatorname{expm1}",
        lambda z: call("exp", z),
        commutes=True,
        made_of=lambda z: add(_exp(z), MINUS_ONE),
    ),
    ScalarFunction(
        "log2",
        "log2",
        r"\log_{2}",
        lambda z: power(mul(z, call("log", TWO)), MINUS_ONE),
        cut="below zero",
        made_of=lambda z: mul(Call("log", (z,)), Pow(Call("log", (TWO,)), MINUS_ONE)),
    ),
    ScalarFunction(
        "log10",
        "log10",
        r"\log_{10}",
        lambda z: power(mul(z, call("log", number(10))), MINUS_ONE),
        cut="below zero",
        made_of=lambda z: mul(Call("log", (z,)), Pow(Call("log", (number(10),)), MINUS_ONE)),
    ),
    ScalarFunction(
        "asin",
        "arcsin",
        r"\arcsin",
        lambda z: _beside_the_cut(z, "cos", "asin"),
        cut="others",
        parity=-1,
        safe=0,
    ),
    ScalarFunction(
        "acos", "arccos", r"\arccos", lambda z: neg(_beside_the_cut(z, "sin", "acos")), cut="others", safe=0
    ),
    ScalarFunction(
        "asinh",
        "arcsinh",
        r"\operatorname{arsinh}",
        lambda z: _root(add(ONE, power(z, TWO)), MINUS_ONE),
        finite="reals",
        parity=-1,
    ),
    ScalarFunction(
        "acosh",
        "arccosh",
        r"\operatorname{arcosh}",
        lambda z: mul(_root(sub(z, ONE), MINUS_ONE), _root(add(z, ONE), MINUS_ONE)),
        cut="others",
        least=0,
        safe=2,
    ),
    ScalarFunction(
        "atanh",
        "arctanh",
        r"\operatorname{artanh}",
        lambda z: power(sub(ONE, power(z, TWO)), MINUS_ONE),
        cut="others",
        parity=-1,
        safe=0,
    ),
    ScalarFunction("erf", "", r"\operatorname{erf}", _gaussian, commutes=True, finite="reals", parity=-1, scipy="erf"),
    ScalarFunction(
        "erfc",
        "",
        r"\operatorname{erfc}",
        lambda z: neg(_gaussian(z)),
        commutes=True,
        finite="reals",
        least=0,
        scipy="erfc",
        made_of=lambda z: sub(ONE, Call("erf", (z,))),
    ),
    ScalarFunction(
        "erfcx",
        "",
        r"\operatorname{erfcx}",
        lambda x: sub(mul(TWO, x, call("erfcx", x)), mul(TWO, power(call("sqrt", PI), MINUS_ONE))),
        of_reals=True,
        least=0,
        scipy="erfcx",
        made_of=lambda x: mul(_exp(power(x, TWO)), Call("erfc", (x,))),
    ),
    ScalarFunction(
        "erfinv",
        "",
        r"\operatorname{erf}^{-1}",
        lambda x: mul(HALF, call("sqrt", PI), _exp(power(call("erfinv", x), TWO))),
        of_reals=True,
        parity=-1,
        safe=0,
        scipy="erfinv",
    ),
    ScalarFunction(
        "norminv",
        "",
        r"\Phi^{-1}",
        lambda p: mul(call("sqrt", mul(TWO, PI)), _exp(mul(HALF, power(call("norminv", p), TWO)))),
        of_reals=True,
        safe=HALF.real,
        scipy="ndtri",
        made_of=lambda p: mul(call("sqrt", TWO), Call("erfinv", (sub(mul(TWO, p), ONE),))),
    ),
    ScalarFunction(
        "lognormcdf",
        "",
        r"\log\Phi",
        _over_tail,
        of_reals=True,
        scipy="log_ndtr",
        made_of=lambda x: Call("log", (mul(HALF, Call("erfc", (neg(mul(x, power(call("sqrt", TWO), MINUS_ONE))),))),)),
    ),
    ScalarFunction(
        "lgamma", "", r"\log\Gamma", lambda x: call("digamma", x), of_reals=True, scipy="gammaln", sympy="loggamma"
    ),
    ScalarFunction(
        "gamma",
        "",
        r"\Gamma",
        lambda x: mul(call("gamma", x), call("digamma", x)),
        of_reals=True,
        scipy="gamma",
    ),
    ScalarFunction("digamma", "", r"\psi", lambda x: call("polygamma", ONE, x), of_reals=True, scipy="digamma"),
    ScalarFunction(
        "polygamma",
        "",
        r"\psi^{{({0})}}\left({1}\right)",
        lambda n, x: call("polygamma", add(n, ONE), x),
        of_reals=True,
        arity=2,
        orders=1,
        scipy="polygamma",
    ),
    ScalarFunction(
        "sigmoid",
        "",
        r"\sigma",
        lambda x: mul(call("sigmoid", x), sub(ONE, call("sigmoid", x))),
        of_reals=True,
        finite="reals",
        least=0,
        scipy="expit",
        made_of=lambda x: Pow(Add((ONE, _exp(neg(x)))), MINUS_ONE),
    ),
    ScalarFunction(
        "softplus",
        "logaddexp",
        r"\log\left(1 + e^{{{0}}}\right)",
        lambda x: call("sigmoid", x),
        of_reals=True,
        finite="reals",
        least=0,
        after=(0,),
        made_of=lambda x: Call("log", (Add((ONE, _exp(x))),)),
    ),
    ScalarFunction(
        "relu",
        "maximum",
        r"\operatorname{relu}",
        lambda x: call("sign", call("relu", x)),
        of_reals=True,
        finite="reals",
        least=0,
        after=(0,),
        live=lambda x: (indicator(indicator(x, ZERO, ONE), ZERO, ONE),),
        made_of=lambda x: Call("max", (x, ZERO)),
    ),
    ScalarFunction(
        "floor",
        "floor",
        r"\left\lfloor {0} \right\rfloor",
        lambda x: ZERO,
        of_reals=True,
        finite="reals",
        steps=True,
    ),
    ScalarFunction(
        "ceil",
        "ceil",
        r"\left\lceil {0} \right\rceil",
        lambda x: ZERO,
        of_reals=True,
        finite="reals",
        steps=True,
        sympy="ceiling",
    ),
    ScalarFunction(
        "round",
        "rint",
        r"\operatorname{round}",
        lambda x: ZERO,
        of_reals=True,
        finite="reals",
        parity=-1,
        steps=True,
    ),
    ScalarFunction(
        "angle",
        "angle",
        r"\arg",
        pullback=_turning,
        real_valued=True,
        sympy="arg",
        made_of=lambda z: Call("atan2", (call("imag", z), call("real", z))),
    ),
    ScalarFunction(
        "atan2",
        "arctan2",
        r"\operatorname{atan2}",
        _of_direction,
        of_reals=True,
        arity=2,
    ),
    ScalarFunction(
        "hypot",
        "hypot",
        r"\operatorname{hypot}",
        _of_length,
        of_reals=True,
        least=0,
        arity=2,
        made_of=lambda x, y: Call("sqrt", (add(power(x, TWO), power(y, TWO)),)),
    ),
    ScalarFunction(
        "max",
        "maximum",
        r"\max",
        lambda a, b: (_above(a, b), _below(a, b)),
        of_reals=True,
        finite="reals",
        arity=2,
        live=lambda a, b: (_from(b, a), _from(a, b)),
        folds=True,
        sympy="Max",
    ),
    ScalarFunction(
        "min",
        "minimum",
        r"\min",
        lambda a, b: (_below(a, b), _above(a, b)),
        of_reals=True,
        finite="reals",
        arity=2,
        live=lambda a, b: (_from(a, b), _from(b, a)),
        folds=True,
        sympy="Min",
    ),
    ScalarFunction(
        "clip",
        "clip",
        r"\operatorname{clip}",
        # min(max(x, a), b), as NumPy clips where a > b
        lambda x, a, b: (
            mul(_above(x, a), _below(x, b)),
            mul(_below(x, a), _below(a, b)),
            _above(call("max", x, a), b),
        ),
        of_reals=True,
        finite="reals",
        arity=3,
        live=lambda x, a, b: (
            indicator(a, x, _from(x, b)),
            indicator(x, a, _from(a, b)),
            _from(b, call("max", x, a)),
        ),
        made_of=lambda x, a, b: Call("min", (Call("max", (x, a)), b)),
    ),
)

SCALAR_FUNCTIONS |= {row.name: row for row in _ROWS}
