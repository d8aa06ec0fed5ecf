"""Table 1 of the paper, one row a primitive, each pullback derived with Eq. 44 (complex-aware).

A primitive is a univariate map v ↦ f(v); what it captures (the factor of a multiplication, …) may mention the variable
that is being differentiated, which is the business of the B rule, not of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from combdiff.errors import UnsupportedError
from combdiff.terms.conditions.guards import Finite, condition_of, inside, under
from combdiff.terms.conditions.ordering import nonzero
from combdiff.terms.inclusion import included
from combdiff.terms.scalars import SCALAR_FUNCTIONS
from combdiff.terms.terms import (
    IMAGINARY,
    ONE,
    ZERO,
    Delta,
    Diff,
    Indicator,
    Lam,
    Term,
    Tuple,
    Var,
    add,
    apply,
    call,
    conj,
    delta,
    diff,
    fresh,
    indicator,
    lam,
    mul,
    neg,
    power,
    proj,
    total,
)
from combdiff.terms.types import REAL, Index, Map, Number, Product, Type, is_complex


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """A row: `value` is v ↦ f(v), `pullback` is (v, k) ↦ 𝒫(f)(v, k).

    `name` and what is `captured` are what a printed B/C form shows.
    """

    name: str
    value: Callable[[Term], Term]
    pullback: Callable[[Term, Term], Term]
    captured: Term | None = None


CONJUGATE = Primitive("conj", conj, lambda v, k: conj(k))

# R → C, entry by entry of tensors, inserted where a real value meets a complex one: the cotangent of a real one is real
INCLUSION = Primitive("ι", lambda v: v, lambda v, k: included(k, v.type))


def multiply(by: Term) -> Primitive:
    """v ↦ by·v, with pullback k ↦ conj(by)·k."""
    return Primitive("mul", lambda v: mul(by, v), lambda v, k: mul(conj(by), k), by)


def add_to(other: Term) -> Primitive:
    """v ↦ other + v, with pullback k ↦ k."""
    return Primitive("add", lambda v: add(other, v), lambda v, k: k, other)


def plus(count: int) -> Primitive:
    """(u, v, …) ↦ u + v + …, with pullback k ↦ (k, k, …)."""

    def value(v: Term) -> Term:
        return add(*(proj(n, v) for n in range(count)))

    return Primitive("plus", value, lambda v, k: Tuple((k,) * count))


def contract(indices: tuple[Var, ...]) -> Primitive:
    """Σ over `indices` of a map of them, with pullback k ↦ (i ↦ k)."""

    def value(v: Term) -> Term:
        if isinstance(v, Lam):
            return total(v.params, v.body)
        own = tuple(fresh(i.name, i.kind) for i in indices)
        return total(own, apply(v, *own))

    return Primitive("Σ", value, lambda v, k: lam(indices, k))


def raise_to(exponent: Term) -> Primitive:
    """v ↦ v^a, with pullback k ↦ conj(a v^(a−1))·k.

    v^0 is 1 at v = 0, too, and its slope 0: an index in a is kept from where a is 0, for 0 · 0^(−1) is no number.
    """
    guard = nonzero(exponent)

    def pull(v: Term, k: Term) -> Term:
        lowered = under(guard, power(v, add(exponent, neg(ONE))))
        return mul(conj(exponent), conj(lowered), k)

    return Primitive("pow", lambda v: power(v, exponent), pull, exponent)


def exponential(base: Term) -> Primitive:
    """v ↦ a^v, with pullback k ↦ conj(a^v log a)·k; of a complex v, log a is the complex one of a real a, too."""

    def slope(v: Term) -> Term:
        return mul(power(base, v), _complex_log(base) if is_complex(v.type) else call("log", base))

    return Primitive("exp_a", lambda v: power(base, v), lambda v, k: mul(conj(slope(v)), k), base)


def _complex_log(a: Term) -> Term:
    """log a as a complex number: log|a| + iπ of a negative number."""
    if is_complex(a.type) or Finite().least(a) >= 0:
        return call("log", a)
    return add(call("log", call("abs", a)), indicator(a, ZERO, mul(IMAGINARY, call("pi"))))


def scalar(name: str) -> Primitive:
    """A scalar function of the language, by its row in `scalars.py`."""
    row = SCALAR_FUNCTIONS[name]
    if row.pullback is not None:
        return Primitive(name, lambda v: call(name, v), row.pullback)
    derivative = row.derivative
    assert derivative is not None, "a row has a derivative or a pullback"
    return Primitive(name, lambda v: call(name, v), lambda v, k: mul(conj(derivative(v)), k))


def item(number: int, of: Product) -> Primitive:
    """t ↦ t[number]; the cotangents of the other items are zero."""

    def pull(_: Term, k: Term) -> Term:
        return Tuple(tuple(k if n == number else zero_of_type(kind) for n, kind in enumerate(of.items)))

    return Primitive(f"item {number + 1}", lambda v: proj(number, v), pull)


def zero_of_type(kind: Type) -> Term:
    """The zero of a space.

    >>> zero_of_type(Product((REAL, REAL))) == Tuple((ZERO, ZERO))
    True
    """
    match kind:
        case Map(params, result):
            return Lam(tuple(fresh(f"d{n + 1}", p) for n, p in enumerate(params)), zero_of_type(result))
        case Product(items):
            return Tuple(tuple(map(zero_of_type, items)))
        case _:
            return ZERO


def where_equal(node: Delta) -> Primitive:
    """e ↦ δ(i, j, e), linear and its own adjoint."""

    def step(v: Term) -> Term:
        return delta(node.left, node.right, v)

    return Primitive("δ", step, lambda v, k: step(k))


def where_ordered(node: Indicator) -> Primitive:
    """e ↦ e where i ≤ j: linear and its own adjoint; only this third argument is differentiated."""

    def step(v: Term) -> Term:
        return indicator(node.left, node.right, v)

    return Primitive("indicator", step, lambda v, k: inside(condition_of(node), k))


def unknown(function: Term) -> Primitive:
    """A map that nothing is known of: the result holds ∇f, or 𝒫(f) where its value is not real (Eq. 48).

    A map that is known to be linear leaves its adjoint, wherever the derivative is taken.
    """
    kind = function.type
    assert isinstance(kind, Map), "only maps are applied"

    def arguments(v: Term) -> tuple[Term, ...]:
        return v.items if isinstance(v, Tuple) else (v,)

    def pull(v: Term, k: Term) -> Term:
        if kind.linear:
            return apply(diff("adjoint", function), k)
        if any(isinstance(p, Index) for p in kind.params):
            raise UnsupportedError(
                f"the derivative of {_name(function)}, a map of numbers and of indices at once, cannot be written",
                remedy="let it map the indices to a map of the numbers, as L::(N) -> (R) -> R, applied as L(i)(x)",
            )
        if kind.result == REAL:
            gradient = apply(Diff("grad", function), *arguments(v))
            return _scaled(gradient, k)
        return apply(Diff("pullback", function), *arguments(v), k)

    return Primitive("apply", lambda v: apply(function, *arguments(v)), pull, function)


def _name(function: Term) -> str:
    from combdiff.language.printing.printer import expression_text

    return expression_text(function)


def made_of_a_map(kind: str) -> Primitive:
    """g ↦ root(g), H ↦ inverse(H): `reverse.py` gives their values names and differentiates these by Eq. 30."""

    def pull(v: Term, k: Term) -> Term:
        raise UnsupportedError(
            f"{kind}(…) depends on the variable of an integral, and on what is differentiated",
            remedy="give the variable a domain (@domain) to sum over, so that each of its values has an equation",
        )

    return Primitive(kind, lambda v: diff(kind, v), pull)


def _scaled(gradient: Term, k: Term) -> Term:
    """k·∇f, entry by entry where ∇f is a map or a tuple."""
    match gradient.type:
        case Number():
            return mul(gradient, k)
        case Map(params, _):
            slots = tuple(fresh(f"d{n}", p) for n, p in enumerate(params))
            return lam(slots, mul(apply(gradient, *slots), k))
        case Product(items):
            return Tuple(tuple(_scaled(proj(n, gradient), k) for n in range(len(items))))
        case _:
            raise AssertionError("an index has no gradient")
