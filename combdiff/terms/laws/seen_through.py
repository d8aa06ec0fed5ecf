"""Finds stable forms through definitions: log(1 + e) is softplus(-t) with e = exp(-t), and so is log(1 − σ(t)).

A definition is written out where a law of exponentials needs it, and keeps its name everywhere else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from combdiff.terms.laws.opening import opened
from combdiff.terms.laws.softmax import with_softmax
from combdiff.terms.nodes import body_of
from combdiff.terms.terms import (
    Add,
    App,
    Call,
    Const,
    Let,
    Mul,
    Pow,
    Term,
    Traverser,
    Var,
    call,
    mul,
    power,
    subterms,
)


def with_stable_forms(program: Term) -> Term:
    """`program` with the laws of exponentials used across its definitions.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> program = infer(parse("(t::R) -> begin s = 1 / (1 + exp(-t)); log(1 - s) + s^2 end"))
    >>> print(expression_text(with_stable_forms(program)))
    (t::R) -> begin
      s = sigmoid(t)
      -softplus(t) + s^2
    end
    """
    values: dict[Var, Term] = {}
    bindings = [b for t in subterms(program, Let) for b in t.bindings]
    while more := [(v, e) for v, e in bindings if v not in values and _is_exponential(e, values)]:
        values.update(more)
    return with_softmax(Traverser(lambda t: _stable(t, values))(program) if values else program)


def _stable(t: Term, values: Mapping[Var, Term]) -> Term:
    """A logarithm, a power or a product in a stable form, if it has one with definitions written out."""
    match t:
        case Call("log", (u,)):
            made = call("log", opened(u, values))
            return t if isinstance(made, Call) and made.primitive == "log" else made
        case Pow(Add() as base, exponent):
            made = power(opened(base, values), exponent)
            return t if isinstance(made, Pow) and isinstance(made.base, Add) else made
        case Mul(factors) if any(isinstance(f, Call) and f.primitive in ("sigmoid", "cosh") for f in factors):
            made = mul(*(opened(f, values) for f in factors))
            return t if isinstance(made, Mul) and len(made.factors) >= len(factors) else made
        case _:
            return t


def _is_exponential(value: Term, values: Collection[Term]) -> bool:
    """Whether a definition is made of an exponential, σ and numbers."""
    match body_of(value):
        case Call("exp" | "sigmoid" | "sinh" | "cosh", _):
            return True
        case Add(parts) | Mul(parts):
            others = [u for u in parts if not isinstance(u, Const)]
            return len(parts) == 2 and all(_is_exponential(u, values) for u in others)
        case Pow(base, Const()):
            return _is_exponential(base, values)
        case (Var() as v) | App(Var() as v, _):
            return v in values
        case _:
            return False
