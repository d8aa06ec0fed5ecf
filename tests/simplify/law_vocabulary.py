"""The terms of `rules/terms.egg`, as the examples of laws write them.

    Sum({i}, Delta([Lin((1, I), (-1, J))], f(I)))     is Σ_i f(i), where i − j = 0

A small letter is the number of a variable, and the capital one the variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from tests.law_examples import constructors, indices, multiset, name, rational

Monomial = tuple[float | Fraction, str]

Var, Fn, Power, Conj, Ordered, Pair, Item = constructors("Var", "Fn", "Power", "Conj", "Ordered", "Pair", "Item")
With, Raise, waits, aperiodic = constructors("With", "Raise", "waits", "aperiodic")
part, addend, slots, within, inside = constructors("part", "addend", "slots", "within", "inside")

i, j, k, s, t = 1, 2, 3, 4, 5
I, J, K, S, T = map(Var, (i, j, k, s, t))  # noqa: E741  # the indices i, j, k
X, Y, Z = map(Var, (11, 12, 13))


def Num(real: float | Fraction, imaginary: float | Fraction = 0) -> str:
    """A complex number."""
    return f"(Num {rational(real)} {rational(imaginary)})"


def Mono(q: float | Fraction, x: str) -> str:
    """A multiple of an index."""
    return f"(Mono {rational(q)} {x})"


def Scale(q: float | Fraction, monomial: str) -> str:
    """A multiple of a monomial."""
    return f"(Scale {rational(q)} {monomial})"


def monomials(*summands: Monomial) -> str:
    """The monomials of an index: (2, I), (−1, J) of 2 i − j."""
    return multiset(*(Mono(q, x) for q, x in summands))


def Lin(*summands: Monomial) -> str:
    """An affine index: (2, I), (−1, J) for 2 i − j."""
    return f"(Lin {monomials(*summands)})"


def Plus(*terms: str) -> str:
    """A sum of terms."""
    return f"(Plus {multiset(*terms)})"


def Times(*factors: str) -> str:
    """A product."""
    return f"(Times {multiset(*factors)})"


def Call(f: str, x: str) -> str:
    """A function of a number: exp(x)."""
    return f"(Call {name(f)} {x})"


def Derivative(operator: str, f: str) -> str:
    """A derivative of an unknown function: grad(f)."""
    return f"(Derivative {name(operator)} {f})"


def Sum(over: Iterable[int], body: str) -> str:
    """A sum over indices."""
    return f"(Sum {indices(*sorted(over))} {body})"


def Over(over: Iterable[int], body: str) -> str:
    """A sum, or its body if there is no index."""
    return f"(Over {indices(*sorted(over))} {body})"


def Delta(conditions: Iterable[str], body: str) -> str:
    """The body where all conditions are 0."""
    return f"(Delta {multiset(*conditions)} {body})"


def Where(conditions: Iterable[str], body: str) -> str:
    """A delta, or its body if there is no condition."""
    return f"(Where {multiset(*conditions)} {body})"


def At(f: str, *arguments: str) -> str:
    """An application."""
    return f"(At {f} {vector(*arguments)})"


def vector(*arguments: str) -> str:
    """Arguments in a row."""
    return f"(vec-of {' '.join(arguments)})"


def values(of: Mapping[int, str]) -> str:
    """Values of variables."""
    written = "(map-empty)"
    for v, a in of.items():
        written = f"(map-insert {written} {v} {a})"
    return written


def Subst(v: int, a: str, e: str) -> str:
    """A term with a value in the place of a variable."""
    return f"(Subst {values({v: a})} {e})"


def SubstMono(v: int, a: str, m: str) -> str:
    """A monomial with a value in the place of a variable."""
    return f"(SubstMono {values({v: a})} {m})"


def Met(over: Iterable[int], used: Iterable[int], conditions: Iterable[str], of: Mapping[int, str], body: str) -> str:
    """A sum that has met conditions: values of its indices, which use others."""
    return f"(Met {indices(*sorted(over))} {indices(*sorted(used))} {multiset(*conditions)} {values(of)} {body})"


def kind(v: int, of: str, domain: int = 0) -> str:
    """A variable is of this kind, and of a domain."""
    return f"(variable {v} {name(of)} {domain})"


def domain(v: int, number: int) -> str:
    """A variable that is not summed is of this domain."""
    return kind(v, "", number)


def linear(f: str) -> str:
    """A function is additive."""
    return f"(linear {name(f)})"


def commutes(f: str) -> str:
    """A function commutes with conjugation."""
    return f"(commutes {name(f)})"
