"""Abstraction elimination: the B/C form means what the λ-term means, and captures stand where the paper has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from combdiff.calculus.combinators import B, C, Comb, Fork, I, K, combinator_text, eliminate
from combdiff.calculus.definitions.floating import unfold
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.meaning.sizes import default_sizes
from combdiff.terms.terms import Lam, Term, apply, fresh, mul, number, tuple_of
from combdiff.terms.types import COMPLEX, REAL
from tests.strategies import programs


def _rebuilt(comb: Comb) -> Term:
    """What a form means, from the definitions of B, C, K and I alone: no value that a node remembers is asked."""
    match comb:
        case I(variable):
            return variable
        case K(constant):
            return constant
        case C(params, inner):
            return Lam(params, _rebuilt(inner))
        case B(outer, inner, _):
            return outer.value(_rebuilt(inner))
        case Fork(items):
            return tuple_of([_rebuilt(item) for item in items])
    raise AssertionError("no combinator")


@pytest.mark.slow
@given(programs(depth=2))
@settings(max_examples=60)
def test_the_combinator_form_has_the_value_of_the_lambda_term(program: Lam) -> None:
    captured, f = (program.params, program.body) if isinstance(program.body, Lam) else ((), program)
    assert isinstance(f, Lam)
    body = unfold(f.body)
    sizes = default_sizes(program)
    rng = np.random.default_rng(0)
    values = {v: random_value(v.kind, sizes, rng) for v in (*captured, *f.params)}
    expected = evaluate(body, values, sizes)
    for x in f.params:
        comb = eliminate(x, body)
        assert np.allclose(evaluate(comb.value, values, sizes), expected)
        assert np.allclose(evaluate(_rebuilt(comb), values, sizes), expected)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("(z::C) -> z", "I"),
        ("(z::C) -> exp(sin(z))", "B exp (B sin I)"),
        ("(z::C) -> 3 * z", "B (mul 3) I"),
        ("(z::C) -> z^3", "B (pow 3) I"),
        ("(x::RV) -> sum(i, x(i))", "B Σ (C (i ↦ B x (K i)))"),
        ("(z::C) -> 2", "K 2"),
    ],
)
def test_a_combinator_form_prints_in_the_notation_of_the_paper(text: str, form: str) -> None:
    f = infer(parse(text))
    assert isinstance(f, Lam)
    assert combinator_text(eliminate(f.params[0], f.body)) == form


def _forms(comb: Comb) -> list[B]:
    """All B nodes of a form, captures included."""
    match comb:
        case B(_, inner, capture):
            return [comb, *_forms(inner), *(_forms(capture) if capture else [])]
        case C(_, inner):
            return _forms(inner)
        case Fork(items):
            return [b for item in items for b in _forms(item)]
        case _:
            return []


def test_a_product_of_two_varying_factors_captures_one_of_them() -> None:
    z, c = fresh("z", COMPLEX), fresh("c", COMPLEX)
    assert [b.capture is not None for b in _forms(eliminate(z, mul(c, z)))] == [False]
    varying = eliminate(z, infer_body("(z::C) -> sin(z) * z", z))
    assert isinstance(varying, B) and varying.capture is not None


def infer_body(text: str, variable: Term) -> Term:
    """The body of a map of one number, with `variable` for its parameter."""
    return apply(infer(parse(text)), variable)


@pytest.mark.slow
@given(programs(depth=2, lets=False))
@settings(max_examples=40)
def test_a_capture_exists_only_where_the_outer_map_mentions_the_variable(program: Lam) -> None:
    f = program.body if isinstance(program.body, Lam) else program
    assert isinstance(f, Lam)
    for x in f.params:
        for b in _forms(eliminate(x, f.body)):
            mentions = b.outer.captured is not None and x in b.outer.captured.free
            conditional = b.outer.name in ("δ", "indicator")
            assert conditional or (b.capture is not None) == mentions


def test_what_does_not_mention_the_variable_is_a_constant() -> None:
    x, y = fresh("x", REAL), fresh("y", REAL)
    for e in (y, number(2), mul(y, y)):
        assert isinstance(eliminate(x, e), K)
