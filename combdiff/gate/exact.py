"""Exact arithmetic for the gate: terms are evaluated in the field of p elements, complex ones in its extension by i.

Sums, products, conjugates and integer powers are what they are over ℚ and ℚ(i), so that two terms which differ in a
single coefficient differ here. Every other function is opaque: a fixed random polynomial in its place, that has the
properties which its row in the table of scalar functions states and no others. Terms that agree here are therefore
equal whatever these functions are; terms that differ may still be equal if one of them holds an opaque function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

from combdiff.errors import UnsupportedError
from combdiff.gate.labelled import Labelled, all_axes
from combdiff.gate.residues import HALF, centred, inverted, raised, residue, times
from combdiff.terms.branches import at_least_zero, leaves_the_real_numbers
from combdiff.terms.functions import SCALAR_FUNCTIONS, ScalarFunction
from combdiff.terms.terms import (
    ZERO,
    Add,
    Call,
    Const,
    Delta,
    Indicator,
    Mul,
    Pow,
    Term,
    is_integer_valued,
    subterms,
)
from combdiff.terms.types import Index

if TYPE_CHECKING:
    import numpy as np

    from combdiff.gate.labelled import Array

HIGHEST = 2**62
"""Powers up to this one are worked out. (In a field of p elements the p-th power is the conjugate.)"""

FIELD_FUNCTIONS = ("abs2", "real", "imag", "complex")


class InexactError(UnsupportedError):
    """A term has no value in the field, because it divides by zero there and no condition excludes that."""


def is_transparent(t: Term) -> bool:
    """Whether `t` is made of operations of the field alone, so that a difference in exact arithmetic is one in fact."""
    return not any(_is_opaque(u) for u in subterms(t))


def _is_opaque(t: Term) -> bool:
    match t:
        case Call(name, _):
            return name not in FIELD_FUNCTIONS and not is_counted(t)
        case Pow(_, exponent):
            return not is_whole(exponent)
        case Indicator():
            return _is_condition_of_numbers(t)
        case _:
            return False


def has_sides(t: Term) -> bool:
    """Whether `t` holds a condition of numbers that are not integers, or a complex function with a cut.

    >>> from combdiff.terms.terms import ONE, fresh, indicator
    >>> from combdiff.terms.types import REAL
    >>> x = fresh("x", REAL)
    >>> has_sides(indicator(x, ZERO, ONE)), has_sides(indicator(Call("abs", (x,)), ZERO, ONE))
    (True, False)
    """
    return any(True for _ in _sided(t))


def has_sides_of_entries(t: Term) -> bool:
    """Whether all of these are of the entries of tensors, each of which is on a side of its own."""
    compared = (u.left.free | u.right.free if isinstance(u, Indicator) else u.free for u in _sided(t))
    return all(any(isinstance(v.kind, Index) for v in free) for free in compared)


def _sided(t: Term) -> Iterator[Term]:
    for u in subterms(t):
        if (_is_condition_of_numbers(u) and not _has_one_side(u)) or leaves_the_real_numbers(u):
            yield u


def _is_condition_of_numbers(t: Term) -> bool:
    return isinstance(t, Indicator) and not (is_counted(t.left) and is_counted(t.right))


def is_counted(t: Term) -> bool:
    """Whether every value of `t` is an integer that is counted: of indices, or 1 where a condition of these holds.

    >>> from combdiff.terms.terms import ONE, delta, fresh
    >>> from combdiff.terms.types import REAL, Domain, Index
    >>> i, j, x = fresh("i", Index(Domain("n"))), fresh("j", Index(Domain("n"))), fresh("x", REAL)
    >>> is_counted(delta(i, j, ONE)), is_counted(delta(i, j, x))
    (True, False)
    """
    match t:
        case Indicator() | Delta():
            return is_counted(t.left) and is_counted(t.right) and is_counted(t.body)
        case Add(parts) | Mul(parts) | Call("abs", parts):
            return all(map(is_counted, parts))
        case _:
            return is_integer_valued(t)


def _has_one_side(t: Term) -> bool:
    """Whether it asks if a norm is 0, which is so in all draws or in none, or if another condition holds."""
    if not isinstance(t, Indicator) or t.right != ZERO:
        return False
    asks = isinstance(t.left, Indicator | Delta) and is_integer_valued(t.left.body)
    return asks or at_least_zero(t.left)


def is_whole(exponent: Term) -> bool:
    """Whether it is an integer that a number may be raised to exactly."""
    return isinstance(exponent, Const) and exponent.is_integer and abs(exponent.real) <= HIGHEST


class Exact:
    """Residues modulo the prime, complex where the term is."""

    unit = 1.0

    def number(self, c: Const) -> Labelled:
        return _constant(c)

    def integer_power(self, base: Labelled, n: int) -> Labelled:
        import numpy as np

        array = base.reduced().array
        array = inverted(array) if n < 0 else array
        return Labelled(raised(array, abs(n)) if n else np.ones_like(array), base.axes, HALF)

    def power(self, base: Labelled, exponent: Labelled) -> Labelled:
        axes = all_axes((base, exponent))
        b, e = base.reduced().over(axes), exponent.reduced().over(axes)
        r, s, *_ = _coefficients("^")
        mixture = centred(times(b, centred(1 + times(s, e))) + times(r, e))
        return Labelled(_off_the_real_numbers(_without_properties("^", mixture)), axes, HALF)

    def call(self, name: str, arguments: Sequence[Labelled]) -> Labelled:
        if len(arguments) > 1:
            return _of_several(name, arguments)
        (argument,) = arguments
        row = SCALAR_FUNCTIONS[name]
        z = argument.reduced().array
        if name == "complex":
            value = z
        elif name == "abs2":
            value = _norm(z)
        elif name in ("real", "imag"):
            value = z.real if name == "real" else z.imag
        elif row.derivative is None:
            value = _function_of_the_norm(row, z)
        else:
            value = _holomorphic(row, z)
            value = _off_the_real_numbers(value) if row.cut else value
        return Labelled(value, argument.axes, HALF)

    def written_out(self, t: Call) -> Term | None:
        made_of = SCALAR_FUNCTIONS[t.primitive].made_of
        return made_of(*t.args) if made_of is not None and t.primitive not in FIELD_FUNCTIONS else None

    def pi(self) -> Labelled:
        return Labelled(_coefficients("pi")[0], (), HALF)

    def at_most(self, left: Labelled, right: Labelled, integers: bool) -> Labelled:
        axes = all_axes((left, right))
        a, b = left.reduced().over(axes), right.reduced().over(axes)
        if integers:
            return Labelled((a <= b).astype(float), axes, 1.0)
        # not 1 or 0, which would hide what stands under the condition
        return Labelled(_without_properties("<=", centred(a - b)).real, axes, HALF)

    def draw(self, shape: tuple[int, ...], over_complex: bool, rng: np.random.Generator) -> Array:
        import numpy as np

        def residues() -> Array:
            return np.asarray(rng.integers(-int(HALF), int(HALF) + 1, shape).astype(float))

        return np.asarray(residues() + 1j * residues()) if over_complex else residues()

    def weights(self, count: int, over_complex: bool, rng: np.random.Generator) -> Array:
        return self.draw((count,), over_complex, rng)

    def mixed(self, total: Array) -> Array:
        return _without_properties("an unknown map", total)

    def settled(self, array: Array) -> Array:
        return centred(array)


@lru_cache(maxsize=4096)
def _constant(c: Const) -> Labelled:
    import numpy as np

    try:
        parts = residue(c.real), residue(c.imag)
    except ZeroDivisionError as problem:
        raise InexactError("a number is divided by the prime of the check") from problem
    return Labelled(np.asarray(complex(*parts) if c.imag else parts[0]), (), max(1.0, *map(abs, parts)))


@cache
def _coefficients(name: str) -> Sequence[Array]:
    """Four residues that belong to a function."""
    import numpy as np

    rng = np.random.default_rng(crc32(name.encode()))
    return [np.asarray(float(x)) for x in rng.integers(2, int(HALF), 4)]


def _polynomial(name: str, z: Array) -> Array:
    *others, last = _coefficients(name)
    value: Array = last
    for c in others:
        value = centred(value * z + c)
    return value


def _norm(z: Array) -> Array:
    """z z'."""
    import numpy as np

    return centred(z.real * z.real + z.imag * z.imag) if np.iscomplexobj(z) else times(z, z)


def _function_of_the_norm(row: ScalarFunction, z: Array) -> Array:
    """|z|, or z/|z|: not holomorphic, with no other property than what is made of z z' has."""
    value = _polynomial(row.name, _norm(z))
    return value if row.real_valued else times(z, value)


def _holomorphic(row: ScalarFunction, z: Array) -> Array:
    """A polynomial with real coefficients, odd or even as the function is; exp(−z) is 1/exp(z), log(1/z) is −log(z)."""
    if row.name == "exp":
        value = times(_polynomial("exp", z), inverted(_polynomial("exp", -z)))
    elif row.name == "log":
        value = centred(_polynomial("log", z) - _polynomial("log", inverted(z)))
    elif row.parity:
        value = _polynomial(row.name, times(z, z))
        value = times(z, value) if row.parity < 0 else value
    else:
        value = _polynomial(row.name, z)
    return value if row.commutes else _twisted(value, z, odd=row.parity < 0)


def _without_properties(name: str, z: Array) -> Array:
    """A function that is real for real z, and has no other property."""
    return _twisted(_polynomial(name, z), z)


def _of_several(name: str, arguments: Sequence[Labelled]) -> Labelled:
    """A function of several numbers, with no property."""
    axes = all_axes(arguments)
    first, *others = (a.reduced().over(axes) for a in arguments)
    mixture = _polynomial(name, first)
    for n, other in enumerate(others):
        mixture = _polynomial(f"{name} {n}", centred(times(mixture, centred(mixture + other)) + other))
    return Labelled(mixture, axes, HALF)


def _off_the_real_numbers(value: Array) -> Array:
    """A complex value that no argument makes real: below zero, a logarithm or a root is none. Nor is it odd."""
    import numpy as np

    return centred(value + 1j) if np.iscomplexobj(value) else value


def _twisted(value: Array, z: Array, odd: bool = False) -> Array:
    """`value`, changed where z is not real, so that conj does not pass through."""
    import numpy as np

    if not np.iscomplexobj(z):
        return value
    square = times(z.imag, z.imag)
    return centred(value + 1j * (times(z, square) if odd else square))
