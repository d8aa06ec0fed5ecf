"""Sums of exponentials, maxima and shares over groups that an array of integers tells, against NumPy's loops."""

from collections.abc import Callable

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.lower.lower import lower
from combdiff.arrays.text import read, text
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.types import Domain
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

Objective = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


def _logsumexp(x: np.ndarray) -> float:
    most = x.max(initial=-np.inf)
    return float(most + np.log(np.exp(x - most).sum())) if np.isfinite(most) else most


def _at_entries(of: Callable[[np.ndarray, np.ndarray, int], float]) -> Objective:
    """Σ_e w(e) of what is made of the entries in the group of e, and of e."""
    return lambda c, w, u: sum(w[e] * of(u, c == c[e], e) for e in range(len(c)))


_HEAD = "(c::(N{n}) -> N{G}, w::RV{n}) -> (u::RV{n}) -> "

OVER_ENTRIES: dict[str, tuple[str, Objective]] = {
    "shares": (
        "sum(e, w(e) * exp(u(e)) / sum(j, c(j) == c(e), exp(u(j))))",
        _at_entries(lambda u, own, e: np.exp(u[e] - _logsumexp(u[own]))),
    ),
    "softmax": (
        "sum(e, w(e) * u(e) * softmax(j, c(j) == c(e), u(j))(e))",
        _at_entries(lambda u, own, e: u[e] * np.exp(u[e] - _logsumexp(u[own]))),
    ),
    "logarithm of sum": (
        "sum(e, w(e) * log(sum(j, c(j) == c(e), exp(u(j)))))",
        _at_entries(lambda u, own, e: _logsumexp(u[own])),
    ),
    "logarithm of share": (
        "sum(e, w(e) * log(softmax(j, c(j) == c(e), u(j))(e)))",
        _at_entries(lambda u, own, e: u[e] - _logsumexp(u[own])),
    ),
    "further condition": (
        "sum(e, w(e) * logsumexp(j, c(j) == c(e) and j <= e, u(j)))",
        _at_entries(lambda u, own, e: _logsumexp(u[: e + 1][own[: e + 1]])),
    ),
    "condition on entries": (
        "sum(e, w(e) * softmax(j, c(j) == c(e) and w(j) <= 1 / 2, u(j))(e))",
        lambda c, w, u: sum(
            w[e] * np.exp(u[e] - _logsumexp(u[(c == c[e]) & (w <= 0.5)])) for e in range(len(c)) if w[e] <= 0.5
        ),
    ),
    "maximum": ("sum(e, w(e) * maximum(j, c(j) == c(e), u(j)))", _at_entries(lambda u, own, e: u[own].max())),
    "minimum": ("sum(e, w(e) * minimum(j, c(j) == c(e), u(j)))", _at_entries(lambda u, own, e: u[own].min())),
}


def _weighted(c: np.ndarray, w: np.ndarray, u: np.ndarray) -> float:
    found = 0.0
    for e in range(len(c)):
        own = c == c[e]
        sizes = w[own] ** 2 * np.exp(u[own] - u[own].max())
        found += u[e] * w[e] ** 2 * np.exp(u[e] - u[own].max()) / sizes.sum() if sizes.any() else 0
    return found


WEIGHTED = "sum(e, u(e) * (w(e)^2 * exp(u(e)) / sum(j, c(j) == c(e), w(j)^2 * exp(u(j)))))"


@pytest.mark.parametrize("name", OVER_ENTRIES)
@pytest.mark.parametrize("scale", [1, 1000])
def test_value_gradient_and_hessian_product(name: str, scale: int) -> None:
    program, objective = OVER_ENTRIES[name]
    _check(_HEAD + program, objective, scale)


@pytest.mark.parametrize("scale", [1, 1000])
def test_weights(scale: int) -> None:
    _check(_HEAD + WEIGHTED, _weighted, scale)


def test_entries_of_weight_0_have_no_share() -> None:
    value = cd.grad(_HEAD + WEIGHTED).compile(value=True)
    c, w, u = np.array([0, 0, 1]), np.array([0.0, 2.0, 0.0]), np.array([3.0, 1.0, 2.0])
    found, gradient = value(c, w, u, G=2)
    np.testing.assert_allclose(found, 1)
    np.testing.assert_allclose(gradient, [0, 1, 0])


def _check(program: str, objective: Objective, scale: int) -> None:
    compiled = cd.grad(program).compile(value=True)
    product = cd.hvp(program).compile()
    random = np.random.default_rng(3)
    for n in (1, 2, 3, 5, 7):
        c, w, v = random.integers(0, 4, n), random.normal(size=n), random.normal(size=n)
        u = scale * random.normal(size=n)
        value, gradient = _called(compiled, c, w, u)
        np.testing.assert_allclose(value, objective(c, w, u), rtol=1e-11, atol=1e-300)
        assert np.isfinite(gradient).all()
        if scale > 1:
            assert np.isfinite(_called(product, c, w, u, v)).all()
            continue
        step = 1e-6 * np.eye(n)
        slopes = [(objective(c, w, u + s) - objective(c, w, u - s)) / 2e-6 for s in step]
        np.testing.assert_allclose(gradient, slopes, atol=1e-7)
        ahead, behind = (_called(compiled, c, w, u + s * 1e-6 * v)[1] for s in (1, -1))
        np.testing.assert_allclose(_called(product, c, w, u, v), (ahead - behind) / 2e-6, atol=1e-7)


def _called(function: Callable[..., object], *arrays: np.ndarray) -> object:
    """The function of arrays, with the number of groups where it is asked for."""
    try:
        return function(*arrays, G=4)
    except cd.ArrayError:
        return function(*arrays)


def test_an_entry_has_no_share_in_another_group() -> None:
    compiled = cd.grad(
        "(c::(N{n}) -> N{G}, w::RM{G, n}) -> (u::RV{n}) -> sum((g, k), w(g, k) * softmax(j, c(j) == g, u(j))(k))"
    ).compile(value=True)
    random = np.random.default_rng(11)
    c, w, u = random.integers(0, 3, 6), random.normal(size=(3, 6)), random.normal(size=6)
    shares = np.array([np.exp(u[k] - _logsumexp(u[c == c[k]])) for k in range(6)])
    own = w[c, np.arange(6)]
    means = np.array([(own * shares)[c == c[k]].sum() for k in range(6)])
    value, gradient = compiled(c, w, u)
    np.testing.assert_allclose(value, own @ shares)
    np.testing.assert_allclose(gradient, shares * (own - means), atol=1e-15)


NESTS = "(c::(N{n}) -> N{G}) -> (u::RV{n}, s::RV{G}) -> sum(g, s(g) * log(sum(j, c(j) == g, exp(u(j) / s(g)))))"


def test_inclusive_values_of_nests() -> None:
    """A nested logit's log Σ exp over the alternatives of each nest, scaled by the nest's own number."""
    compiled = cd.grad(NESTS).compile(value=True)
    c, s = np.array([2, 0, 1, 1, 2, 2]), np.array([0.5, 1.5, 1e-3])
    u = np.array([1.0, -2, 3, 3, 2, -1])
    value, by_u, by_s = compiled(c, u, s)
    parts = [_logsumexp(u[c == g] / s[g]) for g in range(3)]
    shares = np.exp(u / s[c] - np.array(parts)[c])
    np.testing.assert_allclose(value, s @ parts)
    np.testing.assert_allclose(by_u, shares)
    np.testing.assert_allclose(by_s, parts - np.bincount(c, shares * u) / s)
    product, s = cd.hvp(NESTS).compile(), np.array([0.5, 1.5, 0.8])
    k = np.array([0.3, -1, 2, 1, 0.5, -0.2]), np.array([1.0, 0.4, -0.7])
    ahead, behind = (compiled(c, u + h * k[0], s + h * k[1])[1:] for h in (1e-6, -1e-6))
    for found, more, less in zip(product(c, u, s, *k), ahead, behind, strict=True):
        np.testing.assert_allclose(found, (more - less) / 2e-6, atol=1e-7)


def test_groups_of_rows_and_of_two_numbers() -> None:
    random = np.random.default_rng(5)
    b, c, u = random.integers(0, 2, 9), random.integers(0, 3, 9), random.normal(size=(9, 4))
    rows = cd.grad(
        "(c::(N{n}) -> N{G}, w::RM{n, d}) -> (u::RM{n, d}) ->"
        " sum((e, a), w(e, a) * softmax(j, c(j) == c(e), u(j, a))(e))"
    ).compile(value=True)
    w = random.normal(size=u.shape)
    shares = np.array([[np.exp(u[e, a] - _logsumexp(u[c == c[e], a])) for a in range(4)] for e in range(9)])
    means = np.array([(w * shares)[c == c[e]].sum(0) for e in range(9)])
    value, gradient = rows(c, w, u, G=3)
    np.testing.assert_allclose(value, (w * shares).sum())
    np.testing.assert_allclose(gradient, shares * (w - means))
    both = cd.grad(
        "(b::(N{n}) -> N{B}, c::(N{n}) -> N{G}, w::RM{B, G}) -> (u::RV{n}) ->"
        " sum((g, h), w(g, h) * max(0, logsumexp(j, b(j) == g and c(j) == h, u(j))))"
    ).compile(value=True)
    w = random.normal(size=(2, 3))
    parts = [[_logsumexp(u[(b == g) & (c == h), 0]) for h in range(3)] for g in range(2)]
    np.testing.assert_allclose(both(b, c, w, u[:, 0].copy())[0], (w * np.maximum(0, parts)).sum())


_BOTH = "(b::(N{n}) -> N{B}, c::(N{n}) -> N{G}, w::RV{n}) -> (u::RV{n}) -> "
PAIRS_OF_GROUPS = {
    "means": _BOTH + "sum((g::N{B}, h::N{G}), (sum(i, where(b(i) == g and c(i) == h, u(i)))"
    " / (1 + sum(i, where(b(i) == g and c(i) == h, 1))))^2)",
    "deviations": _BOTH + "sum(i, (u(i) - sum(j, where(b(i) == b(j) and c(i) == c(j), u(j)))"
    " / sum(j, where(b(i) == b(j) and c(i) == c(j), w(j)^2)))^2)",
    "pairs": _BOTH + "sum((i, j), where(b(i) == b(j) and c(i) == c(j), u(i) * w(j) * u(j)))",
    "another": "(b::(N{n}) -> N{G}, c::(N{n}) -> N{G}, w::RV{n}) -> (u::RV{n}) ->"
    " sum(g, sum(i, where(b(i) == g and c(i) != g, w(i) * u(i)))^2) + sum(i, u(i)^3)",
}


@pytest.mark.parametrize("name", PAIRS_OF_GROUPS)
def test_no_table_of_entries_is_made_for_two_conditions(name: str) -> None:
    plan = cd.grad(PAIRS_OF_GROUPS[name]).plan(value=True, b=(500,), c=(500,), w=(500,), u=(500,))
    # neither of pairs of entries, nor of entries and groups
    assert all(plan.entries(step) <= 60**2 for step in plan.steps)


@pytest.mark.parametrize("name", PAIRS_OF_GROUPS)
@pytest.mark.parametrize("n", [1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 5, 7))])
def test_two_conditions_select_what_they_say(name: str, n: int) -> None:
    random = np.random.default_rng(n)
    b, c = random.integers(0, 3, (2, n))
    w, u = random.normal(size=n), random.normal(size=n)
    d = cd.grad(PAIRS_OF_GROUPS[name])
    sizes = {Domain(name, sized=True): 3 for name in "BG"}
    expected = evaluate(d.term, {}, sizes)(b, c, w)(u)  # type: ignore[operator]  # a function of all of them
    compiled = d.compile()
    given = {a.name: 3 for a in compiled.arguments if a.name in "BG"}
    np.testing.assert_allclose(compiled(b, c, w, u, **given), expected, rtol=1e-11, atol=1e-11)


def test_equal_largest_entries_share_the_derivative() -> None:
    gradient = cd.grad(
        "(c::(N{n}) -> N{G}, w::RV{G}) -> (u::RV{n}) -> sum(g, w(g) * maximum(j, c(j) == g, u(j)))"
    ).compile()
    found = gradient(np.array([1, 1, 0, 1]), np.array([2.0, 3.0]), np.array([5.0, 5.0, 7.0, 1.0]))
    np.testing.assert_allclose(found, [1.5, 1.5, 2, 0])


@pytest.mark.parametrize("numbers", ["r - r", "3", "k"])
@pytest.mark.parametrize("name", ["maximum", "minimum", "logsumexp"])
def test_numbers_that_no_array_holds(name: str, numbers: str) -> None:
    program = f"(c::(N{{n}}) -> N{{G}}) -> (r::R) -> sum(i, r * {name}(k::N{{n}}, c(k) == c(i), {numbers}))"
    c = np.array([0, 1, 0, 2, 1])
    of = {"maximum": np.max, "minimum": np.min, "logsumexp": lambda x: _logsumexp(x.astype(float))}[name]
    values = {"r - r": np.zeros(5), "3": np.full(5, 3.0), "k": np.arange(5)}[numbers]
    expected = sum(of(values[c == c[i]]) for i in range(5))
    np.testing.assert_allclose(_called(cd.grad(program).compile(), c, np.float64(0.5)), expected)


def test_no_table_is_made() -> None:
    programs = [_HEAD + OVER_ENTRIES[name][0] for name in OVER_ENTRIES.keys() - {"further condition"}]
    for program in (*programs, NESTS):
        for derive in (cd.grad, cd.hvp):
            derivation = derive(program)
            plan = derivation.plan()
            assert all(step.rank <= 1 for step in plan.steps), program
            assert "[:, None]" not in derivation.source().split('"""')[-1], program
            assert text(read(text(plan))) == text(plan)


def test_terms_with_numbers_of_two_entries_are_summed_apart() -> None:
    program = "(c::(N{n}) -> N{G}, u::RV{n}, v::RV{n}) -> sum((i, j), c(i) == c(j), u(i) * (v(j) + u(j) * v(i)))"
    plan = lower(infer(parse(program)))
    assert all(step.rank <= 1 for step in plan.steps)
    c, u, v = np.array([0, 2, 0, 1]), np.array([1.0, 2, -3, 4]), np.array([0.5, 1, 2, -1])
    expected = sum(u[i] * (v[j] + u[j] * v[i]) for i in range(4) for j in range(4) if c[i] == c[j])
    value, _ = cd.grad(program.replace(", v::RV{n}) ->", ") -> (v::RV{n}) ->")).compile(value=True)(c, u, v, G=3)
    np.testing.assert_allclose(value, expected)


def test_sum_of_rows_of_the_same_group_is_read_from_a_table_of_groups() -> None:
    derivation = cd.grad(
        "(c::(N{n}) -> N{G}, w::RM{n, d}) -> (u::RM{n, d}) -> sum((e, a), w(e, a) * sum(j, c(j) == c(e), u(j, a)^2))"
    )
    plan = derivation.plan(value=True)
    assert sum(isinstance(step.op, ops.Scatter) for step in plan.steps) == 2 and max(s.rank for s in plan.steps) == 2
    random = np.random.default_rng(7)
    c, w, u = random.integers(0, 3, 5), random.normal(size=(5, 2)), random.normal(size=(5, 2))
    expected = 2 * u * np.array([w[c == c[e]].sum(0) for e in range(5)])
    np.testing.assert_allclose(derivation.compile()(c, w, u, G=3), expected)


def test_other_libraries(library: Numbers) -> None:
    random = np.random.default_rng(9)
    c, w, u = random.integers(0, 4, 7), random.normal(size=7), 100 * random.normal(size=7)
    for name, (program, _) in OVER_ENTRIES.items():
        derivation = cd.grad(_HEAD + program)
        value, gradient = _called(derivation.compile(value=True), c, w, u)
        places = c if library.name == "dask" else library.to(c)
        found = _called(derivation.compile(library.name, value=True), places, library.to(w), library.to(u))
        np.testing.assert_allclose(library.back(found[0]), value, rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(library.back(found[1]), gradient, rtol=1e-9, atol=1e-14, err_msg=name)
