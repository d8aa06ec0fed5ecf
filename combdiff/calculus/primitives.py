"""Table 1 of the paper, one row a primitive: its pullback, derived with Eq. 44 (complex-aware), and its pushforward.

A primitive is a univariate map v ↦ f(v); what it captures (the factor of a multiplication, …) may mention the variable
that is being differentiated, which is the business of the B rule, not of the row.
"""

from __future__ import annotations

from collections.abc import Callable

from combdiff.errors import UnsupportedError
from combdiff.language.printing.printer import expression_text
from combdiff.records import dataclass
from combdiff.terms.branches import at_least_zero
from combdiff.terms.conditions.comparing import compared, different, is_weighted
from combdiff.terms.conditions.guards import Condition, Finite, condition_of, held, inside, under, unguarded
from combdiff.terms.conditions.kinks import counting
from combdiff.terms.conditions.ordering import nonzero
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.laws.inclusion import included
from combdiff.terms.laws.matrices import MATRIX_FUNCTIONS, Matrix, MatrixFunction
from combdiff.terms.nodes import ALONG
from combdiff.terms.terms import (
    IMAGINARY,
    MINUS_ONE,
    ONE,
    ZERO,
    Delta,
    Diff,
    Indicator,
    Lam,
    Reduce,
    Term,
    Tuple,
    Var,
    add,
    along,
    apply,
    call,
    conj,
    delta,
    diff,
    exchanged,
    fresh,
    indicator,
    is_curve,
    items_of,
    lam,
    mul,
    neg,
    power,
    proj,
    reduction,
    sub,
    substitute,
    total,
    tuple_of,
)
from combdiff.terms.types import REAL, Index, Map, Number, Product, Type, is_complex


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """A row: `value` is v ↦ f(v), `pullback` is (v, k) ↦ 𝒫(f)(v, k), `pushforward` is (v, k) ↦ ℱ(f)(v, k) (Eq. 10).

    `name` and what is `captured` are what a printed B/C form shows.
    """

    name: str
    value: Callable[[Term], Term]
    pullback: Callable[[Term, Term], Term]
    pushforward: Callable[[Term, Term], Term]
    captured: Term | None = None


CONJUGATE = Primitive("conj", conj, lambda v, k: conj(k), lambda v, k: conj(k))

# R → C, entry by entry of tensors, inserted where a real value meets a complex one: the cotangent of a real one is real
INCLUSION = Primitive("ι", lambda v: v, lambda v, k: included(k, v.type), lambda v, k: k)


def multiply(by: Term) -> Primitive:
    """v ↦ by·v, with pullback k ↦ conj(by)·k and pushforward k ↦ by·k."""
    return Primitive("mul", lambda v: mul(by, v), lambda v, k: mul(conj(by), k), lambda v, k: mul(by, k), by)


def add_to(other: Term) -> Primitive:
    """v ↦ other + v, with pullback and pushforward k ↦ k."""
    return Primitive("add", lambda v: add(other, v), lambda v, k: k, lambda v, k: k, other)


def plus(count: int) -> Primitive:
    """(u, v, …) ↦ u + v + …, with pullback k ↦ (k, k, …); it is its own pushforward."""

    def value(v: Term) -> Term:
        return add(*(proj(n, v) for n in range(count)))

    return Primitive("plus", value, lambda v, k: Tuple((k,) * count), lambda v, k: value(k))


def contract(indices: tuple[Var, ...]) -> Primitive:
    """Σ over `indices` of a map of them, with pullback k ↦ (i ↦ k); it is its own pushforward."""

    def value(v: Term) -> Term:
        if isinstance(v, Lam):
            return total(v.params, v.body)
        own = tuple(fresh(i.name, i.kind) for i in indices)
        return total(own, apply(v, *own))

    return Primitive("Σ", value, lambda v, k: lam(indices, k), lambda v, k: value(k))


def raise_to(exponent: Term) -> Primitive:
    """v ↦ v^a, with pullback k ↦ conj(a v^(a−1))·k and pushforward k ↦ a v^(a−1)·k.

    v^0 is 1 at v = 0, too, and its slope 0: an index in a is kept from where a is 0, for 0 · 0^(−1) is no number.
    """
    guard = nonzero(exponent)

    def lowered(v: Term) -> Term:
        return under(guard, power(v, add(exponent, neg(ONE))))

    def pull(v: Term, k: Term) -> Term:
        return mul(conj(exponent), conj(lowered(v)), k)

    return Primitive("pow", lambda v: power(v, exponent), pull, lambda v, k: mul(exponent, lowered(v), k), exponent)


def exponential(base: Term) -> Primitive:
    """v ↦ a^v, with pullback k ↦ conj(a^v log a)·k and pushforward k ↦ a^v log a·k.

    Of a complex v, log a is the complex one of a real a, too.
    """

    def slope(v: Term) -> Term:
        return mul(power(base, v), _complex_log(base) if is_complex(v.type) else call("log", base))

    def pull(v: Term, k: Term) -> Term:
        return mul(conj(slope(v)), k)

    return Primitive("exp_a", lambda v: power(base, v), pull, lambda v, k: mul(slope(v), k), base)


def _complex_log(a: Term) -> Term:
    """log a as a complex number: log|a| + iπ of a negative number."""
    if is_complex(a.type) or Finite().least(a) >= 0:
        return call("log", a)
    return add(call("log", call("abs", a)), indicator(a, ZERO, mul(IMAGINARY, call("pi"))))


def scalar(name: str, *orders: Term) -> Primitive:
    """A scalar function of the language, by its row in `scalars.py`; of several numbers, as a tuple."""
    row = SCALAR_FUNCTIONS[name]

    def arguments(v: Term) -> tuple[Term, ...]:
        return (*orders, *((v,) if row.arity - row.orders == 1 else (proj(n, v) for n in range(row.arity))))

    def value(v: Term) -> Term:
        return call(name, *arguments(v))

    if row.pullback is not None:
        known = row.pullback
        push = row.pushforward or (lambda v, k: transposed(lambda w: known(v, w), k, value(v).type))
        return Primitive(name, value, known, push)

    def pull(v: Term, k: Term) -> Term:
        slopes = row.derivatives(*arguments(v))
        parts = [k] * len(slopes) if row.live is None else [counting(mark, k) for mark in row.live(*arguments(v))]
        return tuple_of([mul(conj(slope), part) for slope, part in zip(slopes, parts, strict=True)])

    def forward(v: Term, k: Term) -> Term:
        slopes = row.derivatives(*arguments(v))
        tangents = [k] if len(slopes) == 1 else [proj(n, k) for n in range(len(slopes))]
        if row.live is not None:
            tangents = list(map(counting, row.live(*arguments(v)), tangents))
        return add(*map(mul, slopes, tangents))

    return Primitive(name, value, pull, forward)


def transposed(pulled: Callable[[Term], Term], tangent: Term, kind: Type) -> Term:
    """ℱ(f)(v, k) from w ↦ 𝒫(f)(v, w), where f has numbers for values, by Re⟨w, ℱ(f)(v, k)⟩ = Re⟨𝒫(f)(v, w), k⟩.

    >>> from combdiff.terms.types import COMPLEX
    >>> z, k = fresh("z", COMPLEX), fresh("k", COMPLEX)
    >>> transposed(lambda w: mul(conj(z), w), k, REAL) == call("real", mul(z, k))
    True
    """
    part = paired(pulled(ONE), tangent)
    if not is_complex(kind):
        return part
    return add(part, mul(IMAGINARY, paired(pulled(IMAGINARY), tangent)))


def paired(w: Term, k: Term) -> Term:
    """Re⟨w, k⟩ of numbers, of tensors, of tuples of these.

    >>> x, y = fresh("x", REAL), fresh("y", REAL)
    >>> paired(Tuple((x, y)), Tuple((y, ONE))) == add(mul(x, y), y)
    True
    """
    match k.type:
        case Map(params, _):
            slots = tuple(fresh(f"d{n + 1}", p) for n, p in enumerate(params))
            return total(slots, paired(apply(w, *slots), apply(k, *slots)))
        case Product(items):
            return add(*(paired(proj(n, w), proj(n, k)) for n in range(len(items))))
        case _:
            return call("real", mul(conj(w), k))


def item(number: int, of: Product) -> Primitive:
    """t ↦ t[number]; the cotangents of the other items are zero."""

    def pull(_: Term, k: Term) -> Term:
        return Tuple(tuple(k if n == number else zero_of_type(kind) for n, kind in enumerate(of.items)))

    return Primitive(f"item {number + 1}", lambda v: proj(number, v), pull, lambda v, k: proj(number, k))


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
    """e ↦ δ(i, j, e), linear, its own adjoint and pushforward."""

    def step(v: Term) -> Term:
        return delta(node.left, node.right, v)

    return Primitive("δ", step, lambda v, k: step(k), lambda v, k: step(k))


def where_ordered(node: Indicator) -> Primitive:
    """e ↦ e where i ≤ j: linear, its own adjoint and pushforward; only this third argument is differentiated."""

    def step(v: Term) -> Term:
        return indicator(node.left, node.right, v)

    return Primitive("indicator", step, lambda v, k: inside(condition_of(node), k), lambda v, k: step(k))


def reduced(node: Reduce) -> Primitive:
    """(i ↦ (mark, e)) ↦ Π e, max e, log Σ exp e, √Σ|e|² … of what is marked.

    The pullback of Π at e(i) multiplies by the product of all others, so that zeros do no harm; that of a maximum is
    shared by those that are largest; `ties` is constant.
    """

    if node.kind in MATRIX_FUNCTIONS:
        return of_a_matrix(MATRIX_FUNCTIONS[node.kind])
    if node.kind == "cross":
        return of_two_vectors(*node.indices)

    def places(v: Term) -> tuple[Reduce, tuple[Var, ...]]:
        whole = Reduce(node.kind, v)
        return whole, tuple(fresh(i.name, i.kind) for i in whole.indices)

    def pull(v: Term, k: Term) -> Term:
        whole, own = places(v)
        return Lam(own, Tuple(_pulled(whole, own, k)))

    def push(v: Term, k: Term) -> Term:
        whole, own = places(v)
        moved = apply(k, *own)
        return _pushed(whole, own, k, proj(0, moved), proj(1, moved))

    return Primitive(node.kind, lambda v: Reduce(node.kind, v), pull, push)


def of_two_vectors(index: Var) -> Primitive:
    """(i ↦ (u(i), v(i))) ↦ u × v, with pullback k ↦ (v' × k, k × u') and pushforward (h, k) ↦ h × v + u × k."""

    def entries(whole: Term, item: int, conjugated: bool = False) -> Callable[[Var], Term]:
        return lambda i: conj(proj(item, apply(whole, i))) if conjugated else proj(item, apply(whole, i))

    def times(u: Callable[[Var], Term], v: Callable[[Var], Term]) -> Term:
        i = fresh(index.name, index.kind)
        return reduction("cross", (i,), u(i), v(i))

    def pull(t: Term, k: Term) -> Term:
        i = fresh(index.name, index.kind)
        u, v = (entries(t, item, conjugated=True) for item in range(2))
        first, second = times(v, lambda at: apply(k, at)), times(lambda at: apply(k, at), u)
        # a vector of real numbers may be multiplied by one of complex numbers
        return Lam((i,), Tuple((included(apply(first, i), u(i).type), included(apply(second, i), v(i).type))))

    def push(t: Term, k: Term) -> Term:
        i = fresh(index.name, index.kind)
        changes = times(entries(k, 0), entries(t, 1)), times(entries(t, 0), entries(k, 1))
        return Lam((i,), add(*(apply(change, i) for change in changes)))

    return Primitive("cross", lambda t: Reduce("cross", t), pull, push)


def of_a_matrix(row: MatrixFunction) -> Primitive:
    """((i, j) ↦ (1, A(i, j))) ↦ det A, A⁻¹ …, by its row in `matrices.py`."""

    def pull(v: Term, k: Term) -> Term:
        along, cotangent = row.pulled(Reduce(row.name, v), k)
        i, j = fresh("i", cotangent.rows), fresh("j", cotangent.columns)
        first, *others = (m.entry(i, j) for m in along) if along else (ZERO,)
        return Lam((i, j), Tuple((first, cotangent.entry(i, j), *others)))

    def push(v: Term, k: Term) -> Term:
        tangent = Matrix.of(k)

        def part(n: int) -> Matrix:
            return Matrix(tangent.rows, tangent.columns, lambda i, j: proj(n, tangent.entry(i, j)))

        whole = Reduce(row.name, v)
        numbers = [n for n in range(len(whole.marks) + 1) if n != 1] if whole.kind in ALONG else []
        return row.pushed(whole, [part(n) for n in numbers], part(1))

    return Primitive(row.name, lambda v: Reduce(row.name, v), pull, push)


def _pulled(whole: Reduce, own: tuple[Var, ...], k: Term) -> tuple[Term, Term]:
    """The cotangents of the mark, or of the weight, and of the number at a place of a reduction."""
    match whole.kind:
        case "ties":
            return ZERO, ZERO
        case "softmax":
            moved = _about_the_mean(whole, own, lambda at: apply(k, *at))
            if not is_weighted(whole):
                return ZERO, moved
            return _about_the_mean(whole, own, lambda at: apply(k, *at), _growth(whole, own)), moved
        case "logsumexp" if is_weighted(whole):
            return mul(k, _growth(whole, own)), mul(k, _slope(whole, own))
        case _:
            return ZERO, mul(k, conj(_slope(whole, own)))


def _pushed(whole: Reduce, own: tuple[Var, ...], k: Term, weight: Term, number: Term) -> Term:
    """The tangent of a reduction, for those of the weights and of the numbers, which k maps places to."""
    match whole.kind:
        case "ties":
            return Lam(own, ZERO)
        case "softmax":
            moved = _about_the_mean(whole, own, lambda at: proj(1, apply(k, *at)))
            return Lam(own, add(moved, _by_weights(whole, own, k)) if is_weighted(whole) else moved)
        case "logsumexp" if is_weighted(whole):
            return total(own, add(mul(_growth(whole, own), weight), mul(_slope(whole, own), number)))
        case "norm":
            return total(own, call("real", mul(_slope(whole, own), number)))
        case _:
            return total(own, mul(_slope(whole, own), number))


def _growth(t: Reduce, at: tuple[Var, ...]) -> Term:
    """exp(e) / Σ w exp(e) at a place: the derivative of log Σ w exp(e) by a weight.

    Shares exist where Σ w exp(e) is below 0, too, and its logarithm does not: there it is p / Σ w p, for p the softmax
    without weights.
    """
    guard, weight = unguarded(t.mark)
    if t.kind == "softmax" and not at_least_zero(weight):
        plain = reduction("softmax", t.indices, under(guard, ONE), t.body)
        return mul(apply(plain, *at), power(total(t.indices, mul(t.mark, apply(plain, *t.indices))), MINUS_ONE))
    own = substitute(t.body, dict(zip(t.indices, at, strict=True)))
    return call("exp", sub(own, reduction("logsumexp", t.indices, t.mark, t.body)))


def _by_weights(t: Reduce, at: tuple[Var, ...], k: Term) -> Term:
    """What a share becomes as weights change: g_k v_k − p_k Σ g v, for g the growth."""
    over = tuple(fresh(i.name, i.kind) for i in t.indices)
    whole = total(over, mul(_growth(t, over), proj(0, apply(k, *over))))
    return sub(mul(_growth(t, at), proj(0, apply(k, *at))), mul(apply(t, *at), whole))


def _slope(t: Reduce, at: tuple[Var, ...]) -> Term:
    """The derivative of a reduction by one of the numbers; that of a norm at 0 is 0."""
    match t.kind:
        case "prod":
            others = different(t.indices, at)
            return reduction("prod", t.indices, others(t.mark), others(t.body))
        case "logsumexp":
            return _share(reduction("softmax", t.indices, t.mark, t.body), at)
        case "norm":
            own = substitute(t.body, dict(zip(t.indices, at, strict=True)))
            return mul(conj(own), compared(ZERO, "<", t, power(t, MINUS_ONE)))
        case _:
            largest = t.body if t.kind == "maximum" else neg(t.body)
            return _share(reduction("ties", t.indices, t.mark, largest), at)


def _about_the_mean(
    t: Reduce, at: tuple[Var, ...], value: Callable[[tuple[Var, ...]], Term], front: Term | None = None
) -> Term:
    """p_k (v_k − Σ p v), for p the softmax, or another front: symmetric, and so the pullback and the pushforward."""
    over = tuple(fresh(i.name, i.kind) for i in t.indices)
    mean = total(over, mul(_share(t, over), value(over)))
    return mul(_share(t, at) if front is None else front, sub(value(at), mean))


def _share(t: Term, at: tuple[Var, ...]) -> Term:
    """The share of the entry at a place, in the group that it is in itself: it has none in another one.

    Σ_e [c(j) = c(e)] w(e) p(j), where p(j) is the share in the group c(j), is p(j) Σ_e [c(j) = c(e)] w(e).
    """
    if not isinstance(t, Reduce):
        return apply(t, *at)
    own: dict[Term, Term] = {}
    guard, _ = held(t.mark)
    for c in guard:
        inside, group = (c.left, c.right) if not c.left.free.isdisjoint(t.indices) else (c.right, c.left)
        others = {v for other in guard if other != c for v in other.free if isinstance(v.kind, Index)}
        # a share that depends on the group by another condition, too, depends on it in any case
        if c.equal and group.free and group.free.isdisjoint({*t.indices, *others}):
            own[group] = substitute(inside, dict(zip(t.indices, at, strict=True)))
    share = apply(exchanged(t, own), *at)
    return under([Condition(place, group, equal=True) for group, place in own.items()], share)


def unknown(function: Term) -> Primitive:
    """A map that nothing is known of: the result holds ∇f, or 𝒫(f) where its value is not real (Eq. 48).

    A map that is known to be linear leaves its adjoint, wherever the derivative is taken.
    """
    kind = function.type
    assert isinstance(kind, Map), "only maps are applied"

    def arguments(v: Term) -> tuple[Term, ...]:
        return items_of(v)

    def pull(v: Term, k: Term) -> Term:
        if kind.linear:
            return apply(diff("adjoint", function), k)
        if any(isinstance(p, Index) for p in kind.params):
            raise UnsupportedError(
                f"the derivative of {expression_text(function)}, a map of numbers and of indices at once, cannot be "
                "written",
                remedy="let it map the indices to a map of the numbers, as L::(N) -> (R) -> R, applied as L(i)(x)",
            )
        if kind.result == REAL:
            gradient = apply(Diff("grad", function), *arguments(v))
            return _scaled(gradient, k)
        if is_curve(kind) and along(function)[1]:
            return call("real", mul(conj(apply(Diff("grad", function), v)), k))
        return apply(Diff("pullback", function), *arguments(v), k)

    def push(v: Term, k: Term) -> Term:
        if kind.linear or kind.is_array:
            return apply(function, *arguments(k)) if kind.linear else zero_of_type(kind.result)
        if is_curve(kind):
            return mul(apply(Diff("grad", function), *arguments(v)), k)
        return _transposed_by_item(function, kind.result, lambda w: pull(v, w), k)

    return Primitive("apply", lambda v: apply(function, *arguments(v)), pull, push, function)


def _transposed_by_item(function: Term, kind: Type, pull: Callable[[Term], Term], k: Term) -> Term:
    """The pushforward of a map from its pullback; of tuples, such as those of a derivative of f(x, y), item by item."""
    match kind:
        case Number():
            return transposed(pull, k, kind)
        case Product(items):
            zeros = tuple(map(zero_of_type, items))

            def alone(n: int) -> Callable[[Term], Term]:
                return lambda w: pull(Tuple((*zeros[:n], w, *zeros[n + 1 :])))

            return Tuple(tuple(_transposed_by_item(function, e, alone(n), k) for n, e in enumerate(items)))
        case _:
            raise UnsupportedError(
                f"the pushforward of {expression_text(function)}, an unknown map whose values are no numbers, cannot "
                "be written",
                remedy="define the map, or use pullback",
            )


def made_of_a_map(kind: str) -> Primitive:
    """g ↦ root(g), H ↦ inverse(H): `reverse.py` gives their values names and differentiates these by Eq. 30."""

    def refused(v: Term, k: Term) -> Term:
        raise UnsupportedError(
            f"{kind}(…) depends on the variable of an integral, and on what is differentiated",
            remedy="give the variable a domain (@domain) to sum over, so that each of its values has an equation",
        )

    return Primitive(kind, lambda v: diff(kind, v), refused, refused)


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
