"""Joins a derivative with the value of its objective to one program, so that code computes shared parts once."""

from __future__ import annotations

from combdiff.budget import Budget
from combdiff.calculus.definitions.floating import float_lets
from combdiff.calculus.definitions.naming import name_equations
from combdiff.errors import UnsupportedError
from combdiff.simplify.known import provably_real
from combdiff.terms.terms import Diff, Lam, Let, Term, Var, call, items_of, let, tuple_of
from combdiff.terms.types import COMPLEX, Map, Number

REAL_PART = "its value is not provably real: what follows is the gradient of its real part (Eq. 42)"
PROJECTED = "the gradient is projected on the declared symmetry of what is varied, before it is simplified"


def with_value(result: Term, f: Term, budget: Budget | None = None) -> Term:
    """`result` with the value of f first, taken for a real number where it is found to be one within the budget.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> f = infer(parse("(x::R) -> x^2"))
    >>> expression_text(with_value(Lam(f.params, f.params[0]), f))
    '(x::R) -> (x^2, x)'
    """
    return _with_value(result, _as_real(f, budget))


def _with_value(result: Term, f: Term) -> Term:
    """`result` with the value of f before the derivative: one function that computes both, sharing what it can."""
    match result, f:
        case Lam(params, body), Lam(own_params, own_body) if params[: len(own_params)] == own_params:
            bindings, core = _opened(body)
            own, value = name_equations(*float_lets(own_body))
            if any(isinstance(t.type, Map) and not t.type.is_array for t in items_of(value)):
                raise UnsupportedError(
                    "the objective's value is a function of real numbers, which no array holds",
                    remedy="leave value out",
                )
            named = {var for var, _ in bindings}
            extra = [(var, e) for var, e in own if var not in named]
            return Lam(params, let([*extra, *bindings], tuple_of([*items_of(value), *items_of(core)])))
        case Lam(params, body), _:
            return Lam(params, _with_value(body, f))
    raise UnsupportedError("the objective's value is not known next to this derivative", remedy="leave value out")


def _as_real(f: Term, budget: Budget | None) -> Term:
    """f with its value taken for the real number that it is: Σ x' A x of a Hermitian A has no imaginary part."""
    if not isinstance(f, Lam) or f.body.type != COMPLEX or not provably_real(f, budget):
        return f
    bindings, value = _opened(f.body)
    return Lam(f.params, let(bindings, call("real", value)))


def _opened(body: Term) -> tuple[list[tuple[Var, Term]], Term]:
    bindings: list[tuple[Var, Term]] = []
    while isinstance(body, Let):
        bindings += body.bindings
        body = body.body
    return bindings, body


def note_on_value(program: Term, budget: Budget) -> str:
    """What a reader should know of the objective before its gradient is taken."""
    t = program
    while isinstance(t, Lam | Let | Diff):
        if isinstance(t, Diff):
            known = not isinstance(t.of, Lam) or not isinstance(t.of.body.type, Number) or provably_real(t.of, budget)
            return "" if known else REAL_PART
        t = t.body
    return ""
