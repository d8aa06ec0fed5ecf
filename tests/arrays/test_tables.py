"""What depends on an index only through an array of integers is a table of its values where the entries are many."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes.gathers import tables
from combdiff.arrays.passes.gathers.tables import with_tables
from combdiff.arrays.plan import Plan
from combdiff.arrays.text import read, text
from combdiff.arrays.verify import verify
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import Lam
from combdiff.terms.types import Index, Map, is_complex
from tests.arrays.pass_texts import BIGRAM
from tests.arrays.test_gathers import run

PROGRAMS = {
    "the next letter": BIGRAM,
    "shares": "(a::(N{t}) -> N{m}) -> (p::RV{m}) -> sum(t, log(p(a(t))))",
    "weighted": "(a::(N{t}) -> N{m}, w::RV{t}) -> (x::RM{m, k}) -> sum((t, k), w(t) * sin(x(a(t), k))^2)",
    "weights of rows": "(a::(N{t}) -> N{m}, W::RM{t, k}) -> (x::RM{k, m}) -> sum((t, k), W(t, k) * exp(x(k, a(t))))",
    "rows of two indices": "(a::(N{t}, N{s}) -> N{m}, W::RM{s, t}) -> (x::RM{m, k}) -> "
    "sum((t, s), W(s, t) * log(sum(k, exp(x(a(t, s), k)))))",
    "complex": "(a::(N{t}) -> N{m}, w::CV{t}) -> (x::CM{m, k}) -> "
    "sum((t, k), abs2(w(t) * exp(x(a(t), k)) + x(a(t), k)))",
    "norms": "(a::(N{t}) -> N{m}, w::RV{t}) -> (x::RM{m, k}) -> sum(t, (norm(k -> x(a(t), k)) - w(t))^2)",
    "two arrays": "(a::(N{t}) -> N{m}, b::(N{t}) -> N{n}) -> (x::RV{m}, y::RM{k, n}) -> "
    "sum(t, exp(x(a(t))) * maximum(k, y(k, b(t))))",
    "sums up to an index": "(a::(N{t}) -> N{m}, w::RV{k}) -> (x::RM{m, k}) -> "
    "sum((t, k), w(k) * exp(sum(l, l <= k, log(x(a(t), l)))))",
    "entries": "(a::(N{t}) -> N{m}, b::(N{t}) -> N{n}) -> (x::RM{m, n}) -> "
    "sum(t, x(a(t), b(t))) * sum(t, x(a(t), 0)^3)",
    "matrices": "(a::(N{t}) -> N{m}, b::(N{t}) -> N{n}) -> (x::(N{m}, N{k}, N{n}) -> R) -> "
    "sum((t, k), x(a(t), k, b(t))) * sum((t, k), exp(x(a(t), k, 0)) + x(0, k, b(t))^2)",
}
"""Functions of rows that an array of integers takes."""


SIZES = [{"m": m, "n": m + 1, "t": 2 * m + 3, "s": 2, "k": 3} for m in (1, 2, 3, 5, 7)]


def given(program: str, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Random arrays; the last of the values of each array of integers is read by nobody."""
    rng = np.random.default_rng(sum(sizes.values()))
    found = {}
    for argument in cd.grad(program).plan().arguments:
        kind = argument.kind
        assert isinstance(kind, Map)
        shape = [sizes[k.domain.name] for k in kind.params if isinstance(k, Index) and k.domain is not None]
        if isinstance(kind.result, Index):
            assert kind.result.domain is not None
            found[argument.name] = rng.integers(0, max(1, sizes[kind.result.domain.name] - 1), shape)
        else:
            entries = rng.uniform(0.5, 1.5, shape)
            found[argument.name] = entries * np.exp(1j * entries) if is_complex(kind.result) else entries
    return found


def as_lists(found: object) -> list[np.ndarray]:
    return [np.asarray(f) for f in (found if isinstance(found, tuple) else (found,))]


def shapes(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in arrays.items()}


def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are made wherever they can be."""
    monkeypatch.setattr(tables, "_CLEARLY", np.inf)


@pytest.mark.sampled
@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"m={sizes['m']}")
@pytest.mark.parametrize("name", PROGRAMS)
def test_tables_have_the_value_that_the_program_means(
    name: str, sizes: Mapping[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    forced(monkeypatch)
    program, arrays = PROGRAMS[name], given(PROGRAMS[name], sizes)
    d, value = cd.grad(program), cd.simplified(program)
    f = d.compile(value=True)
    found = as_lists(f(**arrays))
    assert "occurring" in d.source(value=True, **shapes(arrays))
    term = d.term
    assert isinstance(term, Lam) and isinstance(term.body, Lam)
    first, second = ([arrays[v.name] for v in t.params] for t in (term, term.body))
    of_sizes = d.plan(**shapes(arrays)).sizes
    expected = [evaluate(value.term, {}, of_sizes)(*first)(*second)]  # type: ignore[operator]
    expected += as_lists(evaluate(term, {}, of_sizes)(*first)(*second))  # type: ignore[operator]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_plan_is_sound(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forced(monkeypatch)
    plan = cd.grad(PROGRAMS[name]).plan(value=True, backend="dask", **shapes(given(PROGRAMS[name], SIZES[3])))
    made = with_tables(plan)
    verify(made)
    assert any(isinstance(s.op, ops.Occurring) for s in made.steps)
    assert text(read(text(made))) == text(made)


def long_plan(m: int, t: int) -> Plan:
    return cd.grad(BIGRAM).plan(value=True, a=(t,), b=(t,), L=(m, m))


def test_shares_are_computed_for_each_letter_and_not_for_each_place_of_a_long_text() -> None:
    plan = long_plan(60, 200_000)
    verify(plan)
    (places, *_), letters = plan.arguments[0].step.domains, plan.arguments[2].step.domains  # type: ignore[union-attr]
    assert not any(places in s.domains and s.rank > 1 for s in plan.steps)
    assert any(isinstance(s.op, ops.Call) and s.op.function == "exp" and s.domains == letters for s in plan.steps)
    assert not any(isinstance(s.op, ops.Scatter) and s.op.adds for s in plan.steps)


@pytest.mark.parametrize("sizes", [(3000, 100), (10, 15)])
def test_few_rows_are_computed_alone(sizes: tuple[int, int]) -> None:
    assert not any(isinstance(s.op, ops.Occurring) for s in long_plan(*sizes).steps)


def test_a_number_before_rows_that_are_added_stays() -> None:
    program, sizes = PROGRAMS["weighted"], {"t": 3000, "m": 4, "k": 3}
    arrays = given(program, sizes)
    written = text(cd.grad(program).plan(backend="dask", **shapes(arrays)))
    before = "places=((0,), (0, 1), (0, 1)), coefficient=1)"
    assert before in written, written
    one, three = (with_tables(read(written.replace(before, before.replace("=1", f"={n}")))) for n in (1, 3))
    assert any(isinstance(s.op, ops.Occurring) for s in three.steps)
    np.testing.assert_allclose(run(three, arrays), 3 * np.array(run(one, arrays)), rtol=1e-12)


def test_rows_that_nobody_reads_are_not_computed() -> None:
    """A share of 0 that no entry names has no logarithm, and its derivative is 0."""
    p = np.array([0.25, 0.0, 0.5, 0.25])
    a = np.array([0, 2, 3, 2] * 5000)
    f = cd.grad(PROGRAMS["shares"]).compile(value=True)
    assert "occurring" in cd.grad(PROGRAMS["shares"]).source(value=True, a=a.shape, p=p.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, gradient = f(a, p)
    assert np.isclose(value, np.log(p[a]).sum())
    np.testing.assert_allclose(gradient, [20_000, 0, 20_000, 20_000])


def test_a_count_of_places_that_are_out_of_range_is_an_error() -> None:
    source = cd.grad(PROGRAMS["shares"]).source(value=True, a=(20_000,), p=(4,))
    assert "np.bincount(a, minlength=m)" in source
    scope: dict[str, object] = {}
    exec(source, scope)
    for wrong in (4, -1):
        with pytest.raises((ValueError, IndexError)):
            scope["value_and_gradient"](np.full(20_000, wrong), np.ones(4))  # type: ignore[operator]
