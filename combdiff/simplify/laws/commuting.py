"""The derivative of exp(t A) along A, with which it commutes, as a product: tr(A L(K)) is tr(A exp(t A) K).

    sum((i, j), A(j, i) * expm((p, q) -> t * A(p, q), K)(i, j))
    becomes   sum((i, j, k), A(j, k) * expm((p, q) -> t * A(p, q))(k, i) * K(i, j))

L(K) is the derivative of exp along K. It takes the exponential of a matrix of twice the size, and this takes none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from combdiff.canon.canonical import canonical
from combdiff.terms.terms import (
    ONE,
    App,
    Call,
    Conj,
    Lam,
    Mul,
    Reduce,
    Sum,
    Term,
    Traverser,
    Tuple,
    Var,
    apply,
    conj,
    factors_of,
    fresh,
    mul,
    split_coefficient,
    substitute,
    subterms,
    total,
)

Definitions = Mapping[Var, Term]


def with_commuting_matrices(t: Term, definitions: Definitions) -> Term:
    """`t` with such sums, and derivatives along A itself, as products; `definitions` are those of matrices with names.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> f = infer(parse("(A::RM{n, n}, t::R) -> expm(t * A, 2 * A)(0, 1)"))
    >>> print(expression_text(with_commuting_matrices(f, {})))
    (A::RM{n, n}, t::R) -> 2 * sum(k, A(0, k) * expm((i, j) -> t * A(i, j))(k, 1))
    """
    if not any(_is_along(u) for u in subterms(t, Reduce)):
        return t

    def visit(u: Term) -> Term:
        match u:
            case Sum():
                return _as_product(u, definitions)
            case App(Reduce() as whole, (p, q)) if _is_along(whole):
                return _along_itself(whole, p, q, definitions) or u
            case _:
                return u

    return Traverser(visit, Sum, App)(t)


def _is_along(u: Term) -> bool:
    """Whether it is the derivative of an exponential along one matrix."""
    if not (isinstance(u, Reduce) and u.kind == "expm_along"):
        return False
    assert isinstance(u.of, Lam) and isinstance(u.of.body, Tuple), "a map of indices"
    return len(u.of.body.items) == 2


def _along_itself(whole: Reduce, p: Term, q: Term, definitions: Definitions) -> Term | None:
    """L(K)(p, q) as Σ_k K(p, k) exp(M)(k, q) where K is a multiple of M, entry by entry; None if it is not."""
    rows, columns = whole.indices
    own, beside = (_depending(_written_out(t, definitions), (rows, columns)) for t in (whole.body, whole.mark))
    if own is None or beside is None or canonical(own) != canonical(beside):
        return None
    middle = fresh("k", columns.kind)
    return total((middle,), mul(substitute(whole.mark, {rows: p, columns: middle}), _exponential(whole, middle, q)))


def _depending(t: Term, indices: Collection[Var]) -> Term | None:
    """The factors of a product that depend on indices, if there are any."""
    found = [f for f in factors_of(split_coefficient(t)[1]) if not f.free.isdisjoint(indices)]
    return mul(*found) if found else None


def _exponential(whole: Reduce, i: Term, j: Term) -> Term:
    """exp(M)(i, j) of the matrix M at which a derivative is taken."""
    return App(Reduce("expm", Lam(whole.indices, Tuple((ONE, whole.body)))), (i, j))


def _as_product(t: Sum, definitions: Definitions) -> Term:
    """A sum as a product of matrices, if it is the trace of A and a derivative of exp(t A)."""
    match t.body:
        case Call("real" | "imag" as part, (inner,)):
            number, product = split_coefficient(inner)
            around = [part]
        case _:
            number, product = split_coefficient(t.body)
            around = []
    if not isinstance(product, Mul):
        return t
    for f in product.factors:
        turned = isinstance(f, Conj)
        entry = f.term if isinstance(f, Conj) else f
        if not (isinstance(entry, App) and _is_along(entry.function)):
            continue
        others = [g for g in product.factors if g is not f]
        found = _met(entry, [conj(g) for g in others] if turned else others, t.indices, definitions)
        if found is not None:
            middle, made = found
            whole = mul(number, conj(made) if turned else made)
            for part in around:
                whole = Call(part, (whole,))
            return total((*t.indices, middle), whole)
    return t


def _met(entry: App, others: list[Term], indices: tuple[Var, ...], definitions: Definitions) -> tuple[Var, Term] | None:
    """A new index k, and A(q, k) exp(M)(k, p) K(p, q) for L(p, q) and the factor A(q, p) of M(q, p) = t A(q, p)."""
    p, q = entry.args
    whole = entry.function
    assert isinstance(whole, Reduce), "a derivative of an exponential"
    if not (isinstance(p, Var) and isinstance(q, Var)) or p == q or not {p, q} <= {*indices}:
        return None
    if not whole.free.isdisjoint((p, q)):
        return None
    beside = [g for g in others if not g.free.isdisjoint((p, q))]
    rows, columns = whole.indices
    matrix = _written_out(substitute(whole.body, {rows: q, columns: p}), definitions)
    own = _depending(matrix, (p, q))
    if not beside or own is None or canonical(mul(*beside)) != canonical(own):
        return None
    middle = fresh("k", p.kind)
    direction = substitute(whole.mark, {rows: p, columns: q})
    left = substitute(mul(*beside), {p: middle})
    rest = [g for g in others if g not in beside]
    return middle, mul(*rest, left, _exponential(whole, middle, p), direction)


def _written_out(t: Term, definitions: Definitions) -> Term:
    match t:
        case App(Var() as f, args) if f in definitions:
            return apply(definitions[f], *args)
        case _:
            return t
