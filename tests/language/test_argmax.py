"""`argmax` and `argmin`, whose value is an index: meaning, derivatives, text, code, messages."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import program_text
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import Lam
from tests.emit.array_libraries import Numbers
from tests.promises import arguments_of, assert_holds, assert_libraries_agree, gradient_by
from tests.reading_back import assert_reads_back
from tests.thinned import thinned

Oracle = Callable[..., float]

RING = "@domain Z begin base = I; periodic = true end\n"
MIRROR = "@domain Y begin symmetric = true end\n"
BOUNDED = "@domain K begin base = I; lower = 1; upper = 3 end\n@domain L begin base = I; lower = 2; upper = 6 end\n"


def _first(numbers: Any, takes_part: Any = None, best: Callable[..., Any] = max) -> int:
    """The first place of the extremum among those that take part, by a loop; 0 of nothing."""
    places = [n for n in range(len(numbers)) if takes_part is None or takes_part[n]]
    return next((n for n in places if numbers[n] == best(numbers[p] for p in places)), 0)


def _ring(S: Any, x: Any) -> float:
    n = len(x)
    return float(sum(x[(_first(S[i]) + i) % n] ** 2 * _first(S[i]) for i in range(n)))


PROGRAMS: dict[str, tuple[str, Oracle]] = {
    "an entry": (
        "(a::RV{n}) -> (x::RV{n}) -> x(argmax(i, a(i)))^2",
        lambda a, x: x[_first(a)] ** 2,
    ),
    "a gather": (
        "(S::RM{n, n}, y::RV{n}) -> (x::RV{n}) -> sum(i, x(argmax(j, S(i, j)))^3 * y(argmin(j, S(i, j))))",
        lambda S, y, x: sum(x[_first(s)] ** 3 * y[_first(s, best=min)] for s in S),
    ),
    "of what is differentiated": (
        "(w::RV{n}) -> (x::RV{n}) -> x(argmax(i, w(i) * x(i)))^2 + sum(i, w(i) * x(i)^2 * argmin(j, x(j)))",
        lambda w, x: x[_first(w * x)] ** 2 + w @ x**2 * _first(x, best=min),
    ),
    "nearest neighbours": (
        "(D::RM{n, n}) -> (x::RV{n}) -> sum(i, (x(i) - x(argmin(j, j != i, D(i, j))))^2)",
        lambda D, x: sum((x[i] - x[_first(D[i], np.arange(len(x)) != i, min)]) ** 2 for i in range(len(x))),
    ),
    "hard assignment": (
        "(X::RM{m, d}) -> (C::RM{n, d}) -> sum((i, c), (X(i, c) - C(argmin(k, norm(c -> X(i, c) - C(k, c))^2), c))^2)",
        lambda X, C: sum(min(((x - c) ** 2).sum() for c in C) for x in X),
    ),
    "the worst class": (
        "(y::(N{m}) -> N{n}, X::RM{m, d}) -> (W::RM{n, d}) -> begin\n"
        "  s = (i, k) -> sum(c, X(i, c) * W(k, c))\n"
        "  sum(i, relu(1 + s(i, argmax(k, k != y(i), s(i, k))) - s(i, y(i))))\nend",
        lambda y, X, W: sum(
            max(0, 1 + s[_first(s, np.arange(len(s)) != k)] - s[k]) for k, s in zip(y, X @ W.T, strict=True)
        ),
    ),
    "one step of Viterbi's algorithm": (
        "(A::RM{n, n}, a::RV{n}) -> (E::RV{n}) -> begin\n"
        "  back := j -> argmax(i, a(i) + A(i, j))\n"
        "  sum(j, (a(back(j)) + A(back(j), j) + E(back(j))) * E(j)^2)\nend",
        lambda A, a, E: sum((a[i] + A[i, j] + E[i]) * E[j] ** 2 for j in range(len(E)) for i in [_first(a + A[:, j])]),
    ),
    "comparisons": (
        "(S::RM{n, n}) -> (x::RV{n}) -> "
        "sum((i, l), where(argmax(j, S(i, j)) == l, x(l)^2) + where(argmax(j, S(i, j)) < l, x(l)^3))",
        lambda S, x: sum(x[_first(s)] ** 2 + (x[_first(s) + 1 :] ** 3).sum() for s in S),
    ),
    "numbers": (
        "(S::RM{n, n}) -> (x::RV{n}) -> sum(i, x(i)^2 * argmax(j, S(i, j)) / 2 + exp(-argmin(j, S(i, j)) * x(i)))",
        lambda S, x: sum(t**2 * _first(s) / 2 + np.exp(-_first(s, best=min) * t) for s, t in zip(S, x, strict=True)),
    ),
    "arithmetic under a condition": (
        "(S::RM{n, n}) -> (x::RV{n}) -> sum(i, where(argmax(j, S(i, j)) + 1 < n, x(argmax(j, S(i, j)) + 1)^2))",
        lambda S, x: sum(x[_first(s) + 1] ** 2 for s in S if _first(s) + 1 < len(x)),
    ),
    "another range": (
        "(S::RM{k, n}, a::RV{n}, b::RV{m}) -> (x::RV{m}) -> sum((k, i), argmax(j, S(k, j)) == i, b(i) * x(i)^2) + "
        "sum(i, argmin(j, a(j)) == i, b(i) * x(i)^2)^2",
        lambda S, a, b, x: (
            sum((b * x**2)[_first(s)] for s in S if _first(s) < len(x))
            + sum((b * x**2)[[i for i in [_first(a, best=min)] if i < len(x)]]) ** 2
        ),
    ),
    "from the end": (
        "(S::RM{n, n}) -> (x::RV{n}) -> sum(i, x(n - 1 - argmax(j, S(i, j)))^2)",
        lambda S, x: sum(x[len(x) - 1 - _first(s)] ** 2 for s in S),
    ),
    "entries of entries": (
        "(J::(N{n}) -> N{n}, S::RM{n, n}) -> (x::RV{n}) -> sum(i, x(J(argmax(j, S(J(i), j))))^2)",
        lambda J, S, x: sum(x[J[_first(S[j])]] ** 2 for j in J),
    ),
    "one in another": (
        "(S::RM{n, n}, T::RM{n, n}) -> (x::RV{n}) -> sum(i, x(argmin(k, T(argmax(j, S(i, j)), k)))^2)",
        lambda S, T, x: sum(x[_first(T[_first(s)], best=min)] ** 2 for s in S),
    ),
    "the row of the largest entry": (
        "(S::RM{m, n}) -> (x::RV{m}) -> x(argmax(i, maximum(j, S(i, j))))^2",
        lambda S, x: x[int(np.unravel_index(S.argmax(), S.shape)[0])] ** 2,
    ),
    "of nothing": (
        "(S::RM{n, n}) -> (x::RV{n}) -> sum(i, x(argmax(j, j < i, S(i, j)))^2)",
        lambda S, x: sum(x[_first(s, np.arange(len(x)) < i)] ** 2 for i, s in enumerate(S)),
    ),
    "a ring": (
        RING + "(S::(Z, Z) -> R) -> (x::(Z) -> R) -> sum(i::Z, x(argmax(j, S(i, j)) + i)^2 * argmax(j::Z, S(i, j)))",
        _ring,
    ),
    "a symmetric range": (
        MIRROR + "(S::(Y, Y) -> R) -> (x::(Y) -> R) -> "
        "sum(i::Y, x(-argmax(j, S(i, j)))^2 * x(argmin(j, S(i, j))) + x(i) * argmax(j, S(i, j)))",
        lambda S, x: sum(
            x[len(x) - 1 - _first(s)] ** 2 * x[_first(s, best=min)] + t * (_first(s) - len(x) // 2)
            for s, t in zip(S, x, strict=True)
        ),
    ),
    "bounds": (
        BOUNDED + "(S::(N, K) -> R) -> (x::(L) -> R) -> "
        "sum(i, x(argmax(j, S(i, j)) + argmin(j, S(i, j)))^2 * argmax(j, S(i, j)))",
        lambda S, x: sum(x[_first(s) + _first(s, best=min)] ** 2 * (1 + _first(s)) for s in S),
    ),
}


def arguments(name: str, n: int = 5) -> list[Any]:
    """Random data."""
    rng = np.random.default_rng(n)
    sizes = {"n": n, "m": 4, "d": 2, "Z": n, "Y": n | 1, "K": 3, "L": 5}
    found = []
    for argument in arguments_of(PROGRAMS[name][0]):
        shape = [sizes.get(p.domain.name, 4) for p in argument.kind.params]
        found.append(rng.integers(0, n, shape) if argument.of_integers else rng.uniform(-1, 2, shape))
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_gradient_are_those_of_loops(name: str) -> None:
    program, oracle = PROGRAMS[name]
    f = cd.grad(program).compile(value=True)
    for size in (1, 2, 3, 5, 7):
        given = arguments(name, size)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value, gradient = f(*given)
        assert np.isclose(value, oracle(*given))
        np.testing.assert_allclose(gradient, gradient_by(-1, oracle, given), rtol=1e-8, atol=1e-8)


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_checked_and_read_back(name: str) -> None:
    d = cd.grad(PROGRAMS[name][0])
    assert_holds(d)
    term = infer(parse(PROGRAMS[name][0]))
    assert program_text(infer(parse(program_text(term)))) == program_text(term)
    assert d.latex()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hvp", "jvp", "jacobian", "hessian", "pullback", "simplified"])
@pytest.mark.parametrize("name", thinned(PROGRAMS, 2))
def test_all_modes(name: str, mode: str) -> None:
    d = getattr(cd, mode)(PROGRAMS[name][0])
    assert d.check()
    assert_reads_back(d.term)


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["jax", "torch", "dask"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_libraries_agree(name: str, backend: str) -> None:
    for size in (1, 5):
        assert_libraries_agree(cd.grad(PROGRAMS[name][0]), backend, arguments(name, size))


# --- what is found --------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["numpy", "jax", "torch", "dask"])
@pytest.mark.parametrize(
    ("word", "a", "expected"),
    [("argmax", [1.0, 3, 2, 3], [0, 1, 0, 10]), ("argmin", [2.0, 1, 1, 3], [0, 1, 10, 0])],
)
def test_the_first_of_equal_numbers_counts(word: str, a: list[float], expected: list[float], backend: str) -> None:
    library, given = Numbers(backend), (np.array(a), np.arange(4.0))
    d = cd.grad(f"(a::RV{{n}}) -> (x::RV{{n}}) -> x({word}(i, a(i))) + 10 * x({word}(i, 1 < i, a(i)))")
    np.testing.assert_array_equal(library.back(d.compile(backend)(*map(library.to, given))), expected)
    assert isinstance(d.term, Lam) and isinstance(d.term.body, Lam)
    values = dict(zip((*d.term.params, *d.term.body.params), given, strict=False))
    np.testing.assert_array_equal(evaluate(d.term.body.body, values), expected)


def test_what_takes_no_part_is_not_found_among_infinite_numbers() -> None:
    f = cd.simplified("(a::RV{n}) -> (i::N{n}) -> argmax(j, i < j, log(a(j)))").compile()
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(f(np.zeros(4)), [1, 2, 3, 0])


def test_the_derivative_of_an_extremum_is_taken_where_it_is_reached() -> None:
    largest, looked_up = (
        cd.grad(f"(w::RV{{n}}) -> (x::RV{{n}}) -> {e}").compile()
        for e in ("maximum(i, w(i) * x(i)^3)", "w(argmax(i, w(i) * x(i)^3)) * x(argmax(i, w(i) * x(i)^3))^3")
    )
    w, x = np.random.default_rng(3).normal(size=(2, 7))
    np.testing.assert_allclose(looked_up(w, x), largest(w, x), rtol=1e-14)


def test_numbers_that_decide_an_index_are_guarded() -> None:
    d = cd.grad("(x::RV) -> sum(i, where(x(i) > 0, x(argmax(j, log(x(i)) * x(j)))^2))")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, gradient = d.compile(value=True)(np.array([1.0, -2.0, 3.0]))
    assert value == 10
    np.testing.assert_array_equal(gradient, [2, 0, 6])


def test_an_argmax_is_computed_once() -> None:
    source = cd.grad(PROGRAMS["hard assignment"][0]).compile(value=True).source
    assert source.count(".argmin(") == 1


def test_a_kernel_of_cupy_takes_an_argmax_as_an_integer() -> None:
    d = cd.grad("(v::RV) -> (X::RM{m, n}) -> sum((i, j), argmax(l, v(l)) < j, X(i, j)^2 * j)")
    assert '"float64 x, float64 X, int64 y, int64 j"' in d.source("cupy")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hard assignment", "the worst class", "one step of Viterbi's algorithm"])
def test_jax_finds_the_same_gradient(name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def clusters(X: Any, C: Any) -> Any:
        nearest = ((X[:, None] - C) ** 2).sum(-1).argmin(1)
        return ((X - C[nearest]) ** 2).sum()

    def margins(y: Any, X: Any, W: Any) -> Any:
        s, rows = X @ W.T, jnp.arange(len(y))
        worst = s.at[rows, y].set(-jnp.inf).argmax(1)
        return jax.nn.relu(1 + s[rows, worst] - s[rows, y]).sum()

    def paths(A: Any, a: Any, E: Any) -> Any:
        back, columns = (a[:, None] + A).argmax(0), jnp.arange(len(a))
        return ((a[back] + A[back, columns] + E[back]) * E**2).sum()

    written = {"hard assignment": clusters, "the worst class": margins, "one step of Viterbi's algorithm": paths}[name]
    given = arguments(name, 7)
    theirs = jax.grad(written, argnums=len(given) - 1)(*map(jnp.asarray, given))
    np.testing.assert_allclose(cd.grad(PROGRAMS[name][0]).compile()(*given), theirs, rtol=1e-12, atol=1e-13)


# --- messages -------------------------------------------------------------------------------------------------------

LATTICE = "@domain BZ begin base = (I, I); periodic = true end\n"
OFFSETS = "@domain X begin list = true end\n"


@pytest.mark.parametrize(
    ("program", "message", "remedy"),
    [
        ("(A::RM, x::RV) -> x(argmax((i, j), A(i, j)))", "run over one index", "argmax(i, maximum(j, A(i, j)))"),
        ("(z::CV, x::RV) -> x(argmax(i, z(i)))", "complex numbers have no order", "abs"),
        ("(x::RV, t::R) -> x(argmax(t))", "a tensor or a map of indices, found a real number", "argmax(i, x(i))"),
        ("(x::RV) -> argmax(i, x(i))", "the value of this map is an index", "maximum(i, x(i))"),
        (LATTICE + "(a::(BZ) -> R, x::(BZ) -> R) -> x(argmax(k, a(k)))", "k is a point of BZ", "number the points"),
        (OFFSETS + "(a::(X) -> R, x::(X) -> R) -> x(argmax(k, a(k)))", "k is a point of X", "number the points"),
        ("(x::RV) -> x(argmax(i, x(i)) + 1)", "argmax(i, …) + 1 may leave the range", "periodic"),
        (
            "(f::RF) -> (x::RV) -> sum(t::R, f(t) * x(argmax(i, x(i) * t)))",
            "may jump at places that move with x",
            "write each jump as a condition",
        ),
    ],
)
def test_messages(program: str, message: str, remedy: str) -> None:
    with pytest.raises(cd.CombDiffError) as caught:
        cd.grad(program)
    assert message in str(caught.value)
    assert remedy in str(caught.value)


@pytest.mark.parametrize("backend", ["numpy", pytest.param("jax", marks=pytest.mark.slow), "torch"])
def test_an_empty_range_has_no_first_index(backend: str) -> None:
    library = Numbers(backend)
    f = cd.simplified("(a::RV{n}) -> (x::RV{n}) -> x(argmax(i, a(i)))").compile(backend)
    with pytest.raises(cd.ArrayError, match="of no numbers have no value"):
        f(*map(library.to, (np.zeros(0), np.zeros(0))))


@pytest.mark.parametrize(
    "objective", ["x(argmax(i::Z, i + 2 > 0, a(i)))", "sum(j::Z, j == argmin(i::Z, i + 2 > 0, a(i)), x(j))"]
)
def test_index_arithmetic_in_the_condition_of_a_ring_is_its_representative(objective: str) -> None:
    text = f"@domain Z begin base = I; periodic = true end\n(a::(Z) -> R) -> (x::(Z) -> R) -> {objective}"
    gradient = cd.grad(text).compile()
    for n in (1, 2, 3, 5, 7):
        a = np.random.default_rng(n).normal(size=n)
        allowed = [i for i in range(n) if (i + 2) % n > 0]
        best = (max if "argmax" in objective else min)(allowed, key=lambda i: a[i], default=0)
        np.testing.assert_array_equal(gradient(a, np.ones(n)), np.eye(n)[best])


@pytest.mark.slow
def test_an_argmax_of_a_definition_meets_an_index() -> None:
    d = cd.grad("(x::RV) -> begin rho = (i::N) -> x(0); sum(i, argmin(j, rho(j)) == i, rho(i) * x(i)) end")
    assert_holds(d)
    value, gradient = d.compile(value=True)(np.array([2.0, 3.0, 5.0]))
    assert value == 4
    np.testing.assert_array_equal(gradient, [4, 0, 0])


@pytest.mark.parametrize("inside", ["0", "2", "i"])
def test_the_range_of_a_place_that_no_slot_tells_is_written(inside):
    """One place is compared, and read: what is read tells the range to one of them only."""
    d = cd.grad(f"(x::RV) -> (1 + x(argmax(i::N, {inside})))^7")
    assert_reads_back(d.term)
