"""`prod(i, e)`, `mean((i, j), i < j, e)`, `maximum(k::K, e)`: indices, perhaps a condition, a number; `mean(x)` of all.

A tensor alone is reduced over all of its slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from combdiff.errors import LanguageError, Span
from combdiff.language.inference import conditions
from combdiff.language.inference.fit import fit
from combdiff.language.inference.scope import Entry, Ready, Scope
from combdiff.language.parsing.syntax import (
    Binders,
    Comparison,
    Expr,
    Junction,
    Name,
    Negation,
    Param,
    Parens,
    nodes_of,
)
from combdiff.language.vocabulary import INVERSE_ROOT, in_words
from combdiff.terms import terms
from combdiff.terms.conditions.comparing import compared
from combdiff.terms.conditions.guards import under, unguarded
from combdiff.terms.laws.matrices import applied, kind_of
from combdiff.terms.nodes import OBLONG, SPECTRAL
from combdiff.terms.terms import MINUS_ONE, ONE, PLACES, Lam, Reduce, Term, Var, subterms
from combdiff.terms.types import Index, Map, entry_range, is_complex

if TYPE_CHECKING:
    from combdiff.language.inference.infer import Elaborator


def reduction(el: Elaborator, name: str, args: Sequence[Expr | Ready], scope: Scope, span: Span) -> Term:
    """The term of a reduction, of a number over its indices or of a whole tensor."""
    if len(args) == 1:
        return of_tensor(el, name, args[0], scope)
    _check_count(name, args, span)
    params = _indices(args[0], name)
    refuse_values(name, args[0], args[1:], scope)
    indices = tuple(el.bound(p) for p in params)
    for p, index in zip(params, indices, strict=True):
        if not isinstance(index.kind, Index):
            raise LanguageError(
                f"{name} runs over an index, and {p.name} is {in_words(index.kind)}",
                span=p.span,
                remedy="run over the indices of a tensor",
            )
    entries: dict[str, Entry | None] = {index.name: index for index in indices}
    inner = scope.child(entries)
    mark, body = _mark_and_body(el, name, args[1:], inner)
    return _reduced(name, indices, mark, body, (args[0].span, args[-1].span))


def _reduced(name: str, indices: tuple[Var, ...], mark: Term, body: Term, places: tuple[Span, Span]) -> Term:
    """A mean is a sum divided by the number of its terms; `places` are those of the indices and of the body."""
    if name in PLACES:
        _check_one(indices, places[0])
    if name == "mean":
        count = terms.total(indices, mark)
        return terms.mul(terms.power(count, MINUS_ONE), terms.total(indices, body))
    if name not in ("prod", "cumsum", "norm") and is_complex(body.type):
        raise LanguageError("complex numbers have no order", span=places[1], remedy="take real(…) or abs(…) of them")
    if name == "cumsum":
        return _running(indices, body, places[0])
    made = terms.reduction(name, indices, mark, body)
    if name != "softmax":
        return terms.apply(made) if name in PLACES else made
    own = tuple(terms.fresh(i.name, i.kind) for i in indices)
    return Lam(own, terms.apply(made, *own))


def _mark_and_body(el: Elaborator, name: str, args: Sequence[Expr | Ready], scope: Scope) -> tuple[Term, Term]:
    """What is reduced, and what marks that it takes part: a condition, or the weight of an exponential."""
    if len(args) == 1:
        return ONE, el.number(args[0], scope)
    first, second = args
    if name in ("logsumexp", "softmax") and not isinstance(first, Comparison | Junction | Negation):
        weight = el.number(first, scope)
        if is_complex(weight.type):
            raise LanguageError(
                f"the weights of {name} are real", span=first.span, remedy="write log(sum(i, w(i) * exp(z(i))))"
            )
        return weight, under(unguarded(weight)[0], el.number(second, scope))
    guard = conditions.conditional(el, first, scope, among_indices=True)
    return guard(ONE), guard(el.guarded(second, scope, guard.facts))


def _check_count(name: str, args: Sequence[Expr | Ready], span: Span) -> None:
    if len(args) not in (2, 3):
        raise LanguageError(
            f"{name} takes its indices, perhaps a condition, and a number, or a tensor",
            span=span,
            remedy=f"write {_written(name)}",
        )


def _check_one(indices: Sequence[Var], span: Span) -> None:
    """What has an index for its value runs over one."""
    if len(indices) != 1:
        raise LanguageError(
            "argmax and argmin run over one index, whose value they are",
            span=span,
            remedy="for each i of a matrix write argmax(j, A(i, j)), and argmax(i, maximum(j, A(i, j))) for its row",
        )


def check_ranges(term: Term, places: Mapping[Var, Span]) -> None:
    """The value of argmax is a number of a range, and no point of a lattice or of a list."""
    for t in subterms(term):
        if not (isinstance(t, Reduce) and t.kind in PLACES):
            continue
        domain = entry_range(t.type)
        if domain is not None and (domain.listed or domain.directions > 1):
            raise LanguageError(
                f"{t.kind} runs over the numbers of a range, and {t.indices[0].name} is a point of {domain.name}",
                span=places.get(t.indices[0]),
                remedy="number the points, x::RV, and keep their coordinates in arrays of integers",
            )


def _running(indices: Sequence[Var], body: Term, span: Span) -> Term:
    """`cumsum(i, e)`: the sum up to an index."""
    if len(indices) != 1:
        raise LanguageError(
            "cumsum runs over one index", span=span, remedy="write cumsum(i, x(i))(k), or sums of sums with conditions"
        )
    end = terms.fresh(indices[0].name, indices[0].kind)
    return Lam((end,), terms.total(indices, compared(indices[0], "<=", end, body)))


def of_tensor(el: Elaborator, name: str, arg: Expr | Ready, scope: Scope) -> Term:
    """`norm(x)`, √Σ|x|², or `mean(x)`: over all slots of a tensor or a map of indices, whose values may be indices."""
    f = el.expr(arg, scope)
    kind = f.type
    if not (isinstance(kind, Map) and kind.is_array):
        remedy = "norm(x), norm(k -> W(d, k)), or abs(z) of a number" if name == "norm" else _written(name)
        raise LanguageError(
            f"{name} takes {'' if name == 'norm' else 'its indices and a number, or '}a tensor or a map of indices, "
            f"found {in_words(kind)}",
            span=arg.span,
            remedy=f"write {remedy}",
        )
    names = [p.name for p in f.params] if isinstance(f, Lam) else ["i", "j", "k", "l"]
    own = tuple(terms.fresh(names[n % len(names)], p) for n, p in enumerate(kind.params))
    el.places.update(dict.fromkeys(own, arg.span))
    return _reduced(name, own, ONE, terms.apply(f, *own), (arg.span, arg.span))


def _written(name: str) -> str:
    """How a reduction is written."""
    of_several = f"{name}((i, j), A(i, j)) or {name}((i, j), i < j, A(i, j))"
    return f"{name}(i, x(i)), {f'{name}(i, 0 < i, x(i))' if name in PLACES else of_several}, or {name}(x)"


def of_matrix(el: Elaborator, name: str, args: Sequence[Expr | Ready], scope: Scope, span: Span) -> Term:
    """`det(A)`, `inv(A)`, `invsqrtm(A)`; `adjugate(A, K)` is the derivative of `adjugate` at A along K."""
    if (name != INVERSE_ROOT and kind_of(name, len(args)) is None) or (name == INVERSE_ROOT and len(args) != 1):
        raise _miscounted(name, span)
    matrix, *along = (_matrix(el, name, arg, scope) for arg in args)
    i, j = matrix.params
    for k, arg in zip(along, args[1:], strict=True):
        for own, other in zip(matrix.params, k.params, strict=True):
            fit(other.kind, own.kind, el.ranges, arg.span)
    if along and not isinstance(terms.lam(matrix.params, matrix.body), Lam):
        # all have the indices of the one that is written with some
        named = next((k for k in along if isinstance(terms.lam(k.params, k.body), Lam)), along[0])
        own_ = tuple(terms.fresh(p.name, q.kind) for p, q in zip(named.params, matrix.params, strict=True))
        matrix = Lam(own_, terms.apply(matrix, *own_))
        i, j = own_
    if name == INVERSE_ROOT:
        root = applied("sqrtm", matrix)
        name, matrix = "inv", Lam((i, j), terms.apply(root, i, j))
    made = applied(name, matrix, *along)
    if not isinstance(made.type, Map):
        return made
    names = (j.name,) if len(made.type.params) == 1 else (i.name, j.name)
    slots = tuple(terms.fresh(n, kind) for n, kind in zip(names, made.type.params, strict=True))
    return Lam(slots, terms.apply(made, *slots))


def _miscounted(name: str, span: Span) -> LanguageError:
    if name in SPECTRAL:
        remedy = f"write {name}(A, (i, j) -> k(j)), for numbers k that belong to the columns of A"
        return LanguageError(f"{name} takes a matrix and numbers", span=span, remedy=remedy)
    return LanguageError(f"{name} takes a matrix", span=span, remedy=f"write {name}(A), for A::RM or A::CM")


def _matrix(el: Elaborator, name: str, arg: Expr | Ready, scope: Scope) -> Lam:
    """A square matrix, as a map of indices of its own."""
    f = el.expr(arg, scope)
    kind = f.type
    if not (isinstance(kind, Map) and kind.is_array and len(kind.params) == 2):
        raise LanguageError(
            f"{name} takes a matrix, found {in_words(kind)}",
            span=arg.span,
            remedy=f"write {name}(A), or {name}((i, j) -> A(i, j) + B(i, j))",
        )
    if name not in OBLONG:
        fit(kind.params[1], kind.params[0], el.ranges, arg.span)
    names = [p.name for p in f.params] if isinstance(f, Lam) else ["i", "j"]
    i, j = (terms.fresh(n, p) for n, p in zip(names, kind.params, strict=True))
    el.places.update(dict.fromkeys((i, j), arg.span))
    return Lam((i, j), terms.apply(f, i, j))


def _indices(over: Expr | Ready, name: str) -> tuple[Param, ...]:
    match over:
        case Name(text, span):
            return (Param(text, None, span),)
        case Binders(params):
            return params
        case Parens(items) if all(isinstance(item, Name) for item in items):
            return tuple(Param(item.text, None, item.span) for item in items if isinstance(item, Name))
    raise _no_indices(name, over.span)


def refuse_values(name: str, first: Expr | Ready, others: Sequence[Expr | Ready | None], scope: Scope) -> None:
    """`maximum(x, y)` or `mean(A, 0)` of values, of which the first would be the name of an index that nothing uses."""
    if not (isinstance(first, Name) and isinstance(found := scope.find(first.text), Term)):
        return
    if isinstance(found.type, Index) or any(isinstance(u, Name) and u.text == first.text for u in nodes_of((*others,))):
        return
    if not isinstance(found.type, Map):
        raise _no_indices(name, first.span)
    if found.type.is_array:
        raise LanguageError(
            f"{name} names its indices first, and {first.text} is a tensor",
            span=first.span,
            remedy=_of_entries(name, first.text, len(found.type.params)),
        )


def _of_entries(name: str, text: str, slots: int) -> str:
    """How a tensor is reduced, and along which axis: other languages have the number of an axis in a second place."""
    remedy = f"write {name}({text}) for all of its entries"
    if slots == 2:
        remedy += f", j -> {name}(i, {text}(i, j)) along the first axis, i -> {name}(j, {text}(i, j)) along the second"
    if name in ("maximum", "minimum"):
        remedy += f", {name[:3]}.({text}, a) to compare each of them with a number"
    return remedy


def _no_indices(name: str, span: Span) -> LanguageError:
    """What is wrong where a reduction begins with a number."""
    other = {"maximum": "max", "minimum": "min"}.get(name)
    remedy = f"write {name}(i, x(i)) or {name}((i, j), A(i, j))"
    if other:
        remedy += f"; of two numbers or more write {other}(a, b)"
    return LanguageError(f"{name} names its indices first", span=span, remedy=remedy)
