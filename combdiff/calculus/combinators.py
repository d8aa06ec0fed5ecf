"""Abstraction elimination: x ↦ e becomes B, C, I, constants and the univariate primitives of Table 1 (section 5.1).

    I            x ↦ x
    K e          x ↦ e, where e does not mention x
    B f g        x ↦ f(g(x)), where f may capture x                      (Eq. 20)
    C g          x ↦ (b ↦ g(b)(x)): a map that returns a map             (Eq. 21)
    Fork g h     x ↦ (g(x), h(x)): the arguments of a map of several

A product of two parts that both mention x is `B (mul u) v` with the captured factor u = u(x): that capture is what the
second term of the B rule differentiates. Every node knows its `value`, the body e that it stands for, computed from its
parts by the definitions above.
"""

from __future__ import annotations

from dataclasses import field

from combdiff.calculus import primitives as row
from combdiff.calculus.jumps.moving import Jump, jumps
from combdiff.calculus.primitives import Primitive
from combdiff.errors import UnsupportedError
from combdiff.language.printing.printer import expression_text
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.laws.inclusion import needs_inclusion
from combdiff.terms.terms import (
    ZERO,
    Add,
    App,
    Call,
    Conj,
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
    add,
    fresh,
    lam,
    mul,
    refreshed,
    substitute,
    tuple_of,
)
from combdiff.terms.types import Index, Map, Product, Type, is_real

_set = object.__setattr__


@dataclass(frozen=True, slots=True, eq=False)
class Comb:
    """A map of the variable x without mentioning it as a bound variable; `value` is its value at x."""

    value: Term = field(init=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class I(Comb):  # noqa: E742  # the identity combinator's name
    """x ↦ x."""

    variable: Var

    def __post_init__(self) -> None:
        _set(self, "value", self.variable)


@dataclass(frozen=True, slots=True, eq=False)
class K(Comb):
    """x ↦ e for an e that does not mention x."""

    constant: Term

    def __post_init__(self) -> None:
        _set(self, "value", self.constant)


@dataclass(frozen=True, slots=True, eq=False)
class B(Comb):
    """x ↦ f(g(x)). `capture` is x ↦ f, a map that returns a map, where f mentions x; None where it does not."""

    outer: Primitive
    inner: Comb
    capture: Comb | None = None

    def __post_init__(self) -> None:
        _set(self, "value", self.outer.value(self.inner.value))


@dataclass(frozen=True, slots=True, eq=False)
class C(Comb):
    """x ↦ (params ↦ inner(x))."""

    params: tuple[Var, ...]
    inner: Comb

    def __post_init__(self) -> None:
        # renamed, for the value may come to stand under the Σ over these very parameters (Eq. 23)
        _set(self, "value", refreshed(lam(self.params, self.inner.value)))


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A jump of an integrand at the place where w is zero; `place` is x ↦ w."""

    place: Comb
    jump: Jump


@dataclass(frozen=True, slots=True, eq=False)
class Moving(Comb):
    """x ↦ inner(x), an integrand, or the entry of a map of numbers, with jumps at places that move with x."""

    inner: Comb
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        _set(self, "value", self.inner.value)


@dataclass(frozen=True, slots=True, eq=False)
class Fork(Comb):
    """x ↦ (first(x), second(x), …)."""

    items: tuple[Comb, ...]

    def __post_init__(self) -> None:
        _set(self, "value", tuple_of([item.value for item in self.items]))


def eliminate(x: Var, e: Term) -> Comb:
    """The map x ↦ e in combinators.

    >>> from combdiff.terms.types import COMPLEX
    >>> z = fresh("z", COMPLEX)
    >>> print(combinator_text(eliminate(z, mul(Conj(z), z))))
    B (mul z) (B conj I)
    """
    if x not in e.free or isinstance(e.type, Index):
        return K(e)  # an index that x decides, as argmax does, is constant where it is differentiated
    match e:
        case Var():
            return I(e)
        case Lam(params, body):
            return C(params, _eliminate_integrand(x, params, body))
        case Tuple(items):
            return Fork(tuple(eliminate(x, item) for item in items))
        case Sum(indices, body):
            return B(row.contract(indices), C(indices, _eliminate_integrand(x, indices, body)))
        case Delta(_, _, body):
            return B(row.where_equal(e), _included(x, e.type, body))
        case Indicator(_, _, body):
            return B(row.where_ordered(e), _included(x, e.type, body))
        case App(function, args):
            return _eliminate_application(x, function, args)
        case _:
            return _eliminate_arithmetic(x, e)


def _eliminate_integrand(x: Var, over: tuple[Var, ...], e: Term) -> Comb:
    """x ↦ e below the variables `over` of a Σ or a map, with what conditions on them do when they move."""
    match e:
        case Lam(params, body):
            return C(params, _eliminate_integrand(x, (*over, *params), body))
        case Tuple(items):
            return Fork(tuple(_eliminate_integrand(x, over, item) for item in items))
    edges = tuple(Edge(eliminate(x, jump.w), jump) for jump in jumps(x, over, e))
    return Moving(eliminate(x, e), edges) if edges else eliminate(x, e)


def _eliminate_arithmetic(x: Var, e: Term) -> Comb:
    """Numbers made of numbers; and what only stands in the arguments of unknown maps."""
    match e:
        case Conj(u):
            return B(row.CONJUGATE, eliminate(x, u))
        case Add(terms):
            return _eliminate_sum(x, e, terms)
        case Mul(factors):
            return _eliminate_product(x, e, factors)
        case Pow(base, exponent):
            return _eliminate_power(x, e, base, exponent)
        case Call(name, args):
            return _eliminate_call(x, name, args)
        case Proj(item, of):
            assert isinstance(of.type, Product), "only tuples have items"
            return B(row.item(item, of.type), eliminate(x, of))
        case Let(bindings, body):
            return eliminate(x, _unfolded(bindings, body))
        case Reduce(_, of):
            return B(row.reduced(e), eliminate(x, of))
        case Diff(kind, Lam(params, body)) if not e.is_derivative:
            # no integral over the parameters: the equation that is solved is differentiated at its solution
            return B(row.made_of_a_map(kind), C(params, eliminate(x, body)))
        case Diff(kind, _):
            raise UnsupportedError(
                f"{kind}(…) of an unknown map cannot be differentiated with respect to that map",
                remedy=_remedy(e),
            )
    raise AssertionError(f"unknown node {type(e).__name__}")


def _remedy(e: Diff) -> str:
    """What can be done where the derivative of a map is asked for, and that of it by the map."""
    kind = e.of.type
    if e.kind != "grad" or not isinstance(kind, Map) or not all(map(is_real, kind.params)):
        return "differentiate with respect to its argument, or define the map"
    if len(kind.params) > 1:
        return "integration by parts is known for functions of one real number: write a program for each variable"
    return "differentiate by it in the functional that holds the derivative, or define the function"


def _eliminate_call(x: Var, name: str, args: tuple[Term, ...]) -> Comb:
    """f(a, b) ↦ B f (Fork a b); an order is written out, and mentions no variable."""
    orders = SCALAR_FUNCTIONS[name].orders
    items = tuple(eliminate(x, a) for a in args[orders:])
    return B(row.scalar(name, *args[:orders]), items[0] if len(items) == 1 else Fork(items))


def _included(x: Var, outer: Type, inner: Term) -> Comb:
    """x ↦ inner, with the inclusion R → C where `outer` is complex and `inner` is not."""
    comb = eliminate(x, inner)
    if isinstance(comb, K):
        return comb
    return B(row.INCLUSION, comb) if needs_inclusion(inner.type, outer) else comb


def _split(x: Var, parts: tuple[Term, ...]) -> tuple[list[Term], list[Term]]:
    return [p for p in parts if x not in p.free], [p for p in parts if x in p.free]


def _eliminate_product(x: Var, e: Term, factors: tuple[Term, ...]) -> Comb:
    """c·u·v ↦ B (mul c) (B (mul u) v), where u captures x (Eq. 31)."""
    constant, varying = _split(x, factors)
    comb = _included(x, e.type, varying[0])
    for factor in varying[1:]:
        t = fresh("t", comb.value.type)
        capture = C((t,), B(row.multiply(t), _included(x, e.type, factor)))
        comb = B(row.multiply(factor), comb, capture)
    return B(row.multiply(mul(*constant)), comb) if constant else comb


def _eliminate_sum(x: Var, e: Term, terms: tuple[Term, ...]) -> Comb:
    """c + u + v ↦ B (add c) (B plus (Fork u v)).

    The paper would capture u, as a product does: Σ_t 𝒫(u)(x, δ(v, t, k)), where nothing but δ mentions t. That writes v
    once for every term before it, so that the size of a pullback would grow with the square of the number of terms.
    """
    constant, varying = _split(x, terms)
    parts = tuple(_included(x, e.type, t) for t in varying)
    comb = parts[0] if len(parts) == 1 else B(row.plus(len(parts)), Fork(parts))
    return B(row.add_to(add(*constant)), comb) if constant else comb


def _eliminate_power(x: Var, e: Term, base: Term, exponent: Term) -> Comb:
    """u^a, a^u, and u^v, where the base is what captures x."""
    if x not in exponent.free or isinstance(exponent.type, Index):
        return B(row.raise_to(exponent), _included(x, e.type, base))
    inner = _included(x, e.type, exponent)
    if base == ZERO:
        raise UnsupportedError("a power of 0 has no derivative by its exponent", remedy="give it another base")
    if x not in base.free:
        return B(row.exponential(base), inner)
    t = fresh("t", exponent.type)
    capture = C((t,), B(row.raise_to(t), _included(x, e.type, base)))
    return B(row.exponential(base), inner, capture)


def _eliminate_application(x: Var, function: Term, args: tuple[Term, ...]) -> Comb:
    """f(a, b) ↦ B f (Fork a b); the capture is x ↦ f where f mentions x, as in the paper's f ↦ f(i)."""
    assert isinstance(function.type, Map), "only maps are applied"
    items = [_included(x, kind, a) for a, kind in zip(args, function.type.params, strict=True)]
    if all(isinstance(item, K) for item in items):
        inner: Comb = K(tuple_of(args))
    else:
        inner = items[0] if len(items) == 1 else Fork(tuple(items))
    capture = eliminate(x, function) if x in function.free else None
    return B(row.unknown(function), inner, capture)


def _unfolded(bindings: tuple[tuple[Var, Term], ...], body: Term) -> Term:
    """A let that stands inside an expression, multiplied out; `modes` floats all others to the top first."""
    for var, value in reversed(bindings):
        body = substitute(body, {var: value})
    return body


def combinator_text(comb: Comb) -> str:
    """The B/C form as text: application by juxtaposition, captured terms in the language's own notation."""

    def atom(c: Comb) -> str:
        text = show(c)
        return text if isinstance(c, I) or (isinstance(c, K) and " " not in text) else f"({text})"

    def outer(f: Primitive) -> str:
        if f.captured is None:
            return f.name
        text = expression_text(f.captured)
        return text if f.name == "apply" else f"({f.name} {text})"

    def edge(e: Edge) -> str:
        zero = e.jump.zero
        at = f"{zero.variable.name} = {expression_text(zero.at)}"
        return f"({expression_text(e.jump.height)} at {at} by {show(e.place)})"

    def show(c: Comb) -> str:
        match c:
            case I():
                return "I"
            case K(constant):
                return f"K {expression_text(constant)}"
            case B():
                return f"B {outer(c.outer)} {atom(c.inner)}"
            case C(params, inner):
                names = " ".join(p.name for p in params)
                return f"C ({names} ↦ {show(inner)})"
            case Moving(inner, edges):
                return f"Jump {atom(inner)} {' '.join(map(edge, edges))}"
            case Fork(items):
                return "Fork " + " ".join(atom(item) for item in items)
        raise AssertionError(f"unknown combinator {type(c).__name__}")

    return show(comb)
