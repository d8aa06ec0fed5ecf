"""Operators on maps, `grad`, `pullback`, `adjoint`, `inverse`, `root` …: their types are checked on reading.

grad(R)(x)          ∇R at x, of a map to a number
pullback(g)(x, k)   𝒫(g)(x, k), the cotangent of x for a cotangent k of g(x)
jvp(g)(x, k)        ℱ(g)(x, k), the tangent of g(x) for a tangent k of x; so jvp(g)(x, y, k, l)
grad(R, 2)(x, y)    the gradient by the second argument alone; so pullback(g, 2)(x, y, k)
adjoint(D)(k)       of a linear map: Re⟨adjoint(D)(k), x⟩ = Re⟨k, D(x)⟩ for all x
inverse(H)(k)       of a linear map of a space to itself: the y with H(y) = k
root(g)             an x with g(x) = 0 (Eq. 28)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from combdiff.errors import LanguageError, Span
from combdiff.language.inference.fit import fit
from combdiff.language.inference.scope import Ready, Scope
from combdiff.language.parsing.syntax import Expr
from combdiff.language.vocabulary import LINEAR, counted, in_words
from combdiff.terms import terms
from combdiff.terms.terms import ONE, Const, Diff, Lam, Let, Loop, Term, is_curve
from combdiff.terms.types import Index, Map, Number, Product, Type, is_complex

if TYPE_CHECKING:
    from combdiff.language.inference.infer import Elaborator

_EXAMPLES = {
    "grad": "grad((x::R) -> …)",
    "pullback": "pullback((x::R) -> …)",
    "jvp": "jvp((x::R) -> …)",
    "adjoint": "adjoint(D) for a D of a space with `linear = true`",
    "inverse": "inverse((x::RV) -> i -> sum(j, A(i, j) * x(j)))",
    "root": "root((x::R) -> x^3 + x - a)",
}


def of_map(el: Elaborator, kind: str, arg: Expr | Ready, scope: Scope, which: Expr | Ready | None = None) -> Term:
    """`kind(arg)`, the argument being a map of the sort that `kind` takes; `which` of several derivatives is meant."""
    f = along_its_argument(el.expr(arg, scope))
    if not isinstance(f.type, Map):
        raise LanguageError(
            f"{kind} takes a map, found {in_words(f.type)}", span=arg.span, remedy=f"write {_EXAMPLES[kind]}"
        )
    if kind in ("grad", "pullback", "jvp"):
        _check_differentiable(kind, f.type, arg.span)
    else:
        _check_one_argument(kind, f.type, arg.span)
        if kind != "adjoint":
            _check_square(el, kind, f.type, arg.span)
            _check_no_loop(kind, f, arg.span)
        if kind in LINEAR and not f.type.linear and not isinstance(f, Lam | Let):
            raise LanguageError(
                f"{kind} takes a linear map, but this one is not declared linear",
                span=arg.span,
                remedy="declare its space with `linear = true`",
            )
    made = terms.diff(kind, _written_out(f) if kind == "jvp" else f)
    result = made if which is None else _partial(made, el.expr(which, scope), which.span)
    if kind == "pullback":
        el.points[result] = len(f.type.params)
    return result


def along_its_argument(f: Term) -> Term:
    """The derivative dψ/dt of a known complex function of a real number, where it is applied or differentiated again.

    Where it is the result of a program, the gradient of a complex objective is asked for, that of its real part.
    """
    match f:
        case Diff("grad", Lam() | Let() as of) if is_curve(of.type) and is_complex(of.type):
            assert isinstance(of.type, Map), "a function"
            t = terms.fresh("t", of.type.params[0])
            return Lam((t,), terms.apply(terms.diff("jvp", of), t, ONE))
        case _:
            return f


def _written_out(f: Term) -> Term:
    """x ↦ f(x): an unknown map has a gradient or a pullback of its own, and its pushforward is made of this."""
    assert isinstance(f.type, Map), "maps have derivatives"
    params = tuple(terms.fresh(f"x{n + 1}", kind) for n, kind in enumerate(f.type.params))
    return f if isinstance(f, Lam | Let) else Lam(params, terms.apply(f, *params))


def _partial(derivative: Term, which: Term, span: Span) -> Term:
    """One of the derivatives by several arguments, counted from 1."""
    assert isinstance(derivative.type, Map), "a derivative is a map"
    of = derivative.type.result
    count = len(of.items) if isinstance(of, Product) else 1
    if not (isinstance(which, Const) and which.is_integer and 1 <= which.real <= count):
        raise LanguageError(
            f"the map has {counted(count, 'argument')}, so none has this number",
            span=span,
            remedy="write a number from 1 on: grad(R, 2) is the gradient by the second argument",
        )
    params = tuple(terms.fresh(f"x{n + 1}", kind) for n, kind in enumerate(derivative.type.params))
    value = terms.apply(derivative, *params)
    return Lam(params, terms.proj(int(which.real) - 1, value) if count > 1 else value)


def _check_differentiable(kind: str, f: Map, span: Span) -> None:
    for number, param in enumerate(f.params, start=1):
        if isinstance(param, Index):
            raise LanguageError(
                f"{kind} cannot differentiate with respect to argument {number}, which is an integer",
                span=span,
                remedy="differentiate with respect to numbers and tensors: bind the indices outside",
            )
    if kind == "grad" and isinstance(f.result, Map | Product):
        raise LanguageError(
            f"grad takes a map to a number, and the value of this one is {in_words(f.result)}",
            span=span,
            remedy="use pullback, whose last argument is the cotangent of the value",
        )


def _check_one_argument(kind: str, f: Map, span: Span) -> None:
    if len(f.params) != 1:
        raise LanguageError(
            f"{kind} takes a map of one argument, and this one has {counted(len(f.params), 'argument')}",
            span=span,
            remedy="make one tensor of the arguments, or leave all but one outside",
        )
    if isinstance(f.params[0], Index):
        raise LanguageError(
            f"{kind} takes a map of a number or a tensor, and the argument of this one is an index",
            span=span,
            remedy=f"bind the index outside, or give the argument a type: {_EXAMPLES[kind]}",
        )


def _check_square(el: Elaborator, kind: str, f: Map, span: Span) -> None:
    """The values of a map that has a root, or an inverse, are of the type of its argument."""
    (argument,) = f.params
    if not _is_alike(argument, f.result):
        unknowns, equations = in_words(argument), in_words(f.result)
        raise LanguageError(
            f"{kind} takes a map whose values are of its argument's type; this one maps {unknowns} to {equations}",
            span=span,
            remedy="give as many equations as unknowns, real for real ones: the value has the type of the argument",
        )
    fit(f.result, argument, el.ranges, span)


def _check_no_loop(kind: str, f: Term, span: Span) -> None:
    """Values of loops are definitions of the program, and an equation has none of its own."""
    while isinstance(f, Let):
        f = f.body
    if terms.holds(f, Loop):
        raise LanguageError(
            f"the map that {kind} takes holds a loop",
            span=span,
            remedy=f"define a loop that does not read the unknown before {kind}(…); else solve the equation in a loop",
        )


def _is_alike(a: Type, b: Type) -> bool:
    match a, b:
        case Number(), Number():
            return a.complex or not b.complex
        case Map(), Map() if a.is_tensor and b.is_tensor and len(a.params) == len(b.params):
            return _is_alike(a.result, b.result)
        case _:
            return False
