"""The scalar functions of the language: one row each, read by every stage that must know them.

A new function is one row here. The holomorphic ones carry their complex derivative f'; their pullback is then
(z, k) ↦ conj(f'(z))·k by Eq. 44 (`calculus/primitives.py`). The others carry the pullback itself. A function of several
numbers has a derivative by each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from importlib import import_module
from typing import Any, Literal

from combdiff.records import dataclass
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


Derivative = Term | tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A row: `derivative` (holomorphic) or `pullback` (not), and how the world spells the function.

    A function of several numbers has `arity` of them, and the derivative by each in a tuple; the first `orders` of them
    are integers that are written out, and nothing is differentiated by them.
    A pullback that is a sum has the cotangent k in each term, for it is taken term by term. The `pushforward` beside a
    pullback is (z, k) ↦ f'(z) k, linear over the reals; without one it is made of the pullback.
    `numpy` is NumPy's name, or else `scipy` that in scipy.special; `after` are numbers that follow the arguments there.
    `commutes`: f(z') = f(z)' for all z, branch cuts included. `real_valued`: the value is real for complex z too;
    `complex_valued`: it is complex for real z too; `of_reals`: only real numbers have a value.
    `cut`: as a complex function it is not real at some real numbers: at those "below zero" only, or at "others".
    `finite`: it is finite with all its derivatives wherever its argument is, on the "reals" or on all "numbers".
    `least`: 0 where its real values are never negative, 1 where they are positive, else −1.
    `parity`: 1 where f(−z) = f(z), −1 where f(−z) = −f(z), else 0. `steps`: it jumps, and is constant in between.
    `folds`: f(a, b, c) is f(f(a, b), c).
    `safe`: a number where it is finite with its derivatives, for what stands under a condition that does not hold.
    `live` are marks, 1 where the derivative by each argument may not be 0, of a function with kinks.
    `made_of`: an equal term of other functions: what the gate computes, and SymPy where it does not know the name
    `sympy`, which is ours if it is left out. `codes` are the templates of a function of the user's own, by library.
    """

    name: str
    numpy: str
    latex: str
    derivative: Callable[..., Derivative] | None = None
    pullback: Callable[[Term, Term], Term] | None = None
    pushforward: Callable[[Term, Term], Term] | None = None
    commutes: bool = False
    cut: Literal["", "below zero", "others"] = ""
    real_valued: bool = False
    complex_valued: bool = False
    of_reals: bool = False
    finite: Literal["", "reals", "numbers"] = ""
    least: Literal[-1, 0, 1] = -1
    parity: int = 0
    steps: bool = False
    folds: bool = False
    arity: int = 1
    orders: int = 0
    scipy: str = ""
    after: tuple[int, ...] = ()
    safe: int = 1
    sympy: str = ""
    live: Callable[..., tuple[Term, ...]] | None = None
    made_of: Callable[..., Term] | None = None
    codes: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_cut(self) -> bool:
        """Whether it jumps somewhere in the complex plane, below 0 or beyond 1 or −1 on the real axis."""
        return bool(self.cut) or self.name == "angle"

    def parity_of(self, *, complex_: bool) -> int:
        """Its parity, 0 where a cut breaks it: asin has its value from above at 2 and −2, and above 2 is below −2."""
        return 0 if complex_ and self.has_cut else self.parity

    def derivatives(self, *args: Term) -> tuple[Term, ...]:
        """The derivative by each argument but the orders."""
        assert self.derivative is not None, "a holomorphic function"
        found = self.derivative(*args)
        return found if isinstance(found, tuple) else (found,)

    def template(self, module: str) -> str:
        """A call in a module that has it under NumPy's or SciPy's name, `{0}`, `{1}` … for the arguments.

        >>> SCALAR_FUNCTIONS["softplus"].template("np")
        'np.logaddexp({0}, 0)'
        """
        given = ", ".join([*(f"{{{n}}}" for n in range(self.arity)), *map(str, self.after)])
        return f"{module}.{self.numpy or self.scipy}({given})"

    def at(self, *numbers: Any) -> Any:  # numbers or arrays of NumPy's
        """The value at numbers, or entry by entry at arrays, in floating point.

        >>> print(SCALAR_FUNCTIONS["max"].at(2.0, 3.0))
        3.0
        """
        if self.codes:
            text = self.codes["numpy"].format("x")
            names = {"np": import_module("numpy"), "x": numbers[0]}
            if "special" in text:
                names["special"] = import_module("scipy.special")
            return eval(text, names)  # the user's own text
        module = import_module("numpy" if self.numpy else "scipy.special")
        return getattr(module, self.numpy or self.scipy)(*numbers, *self.after)


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

SCALAR_FUNCTIONS = {row.name: row for row in _ROWS}
