"""Arrays of integers, whose entries are indices: meaning, derivatives, text, code, messages, data out of range."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays.text import read
from combdiff.arrays.verify import PlanError, verify
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import program_text
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.types import Index
from tests.emit.array_libraries import Numbers, library
from tests.promises import arguments_of, assert_holds, assert_libraries_agree, gradient_by
from tests.reading_back import assert_reads_back
from tests.thinned import thinned

__all__ = ["library"]

Oracle = Callable[..., float]

RING = "@domain Z begin base = I; periodic = true end\n"
MIRROR = "@domain X begin symmetric = true end\n"


def _sums(J: Any, values: Any, n: int) -> Any:
    """The values of each group, by a loop."""
    found = np.zeros((n, *np.shape(values)[1:]))
    for j, v in zip(J, values, strict=True):
        found[j] += v
    return found


PROGRAMS: dict[str, tuple[str, Oracle]] = {
    "embedding": (
        "(J::(N{e}) -> N{n}, Y::RM{e, m}) -> (x::RM{n, m}) -> sum((e, d), (x(J(e), d) - Y(e, d))^2)",
        lambda J, Y, x: sum(((x[j] - Y[e]) ** 2).sum() for e, j in enumerate(J)),
    ),
    "edges": (
        "(J::(N{e}) -> N, K::(N{e}) -> N, w::RV{e}) -> (x::RV{n}) -> sum(e, w(e) * (x(J(e)) - x(K(e)))^2)",
        lambda J, K, w, x: sum(w[e] * (x[j] - x[k]) ** 2 for e, (j, k) in enumerate(zip(J, K, strict=True))),
    ),
    "segment sums": (
        "(J::(N{e}) -> N{n}, Y::RV{n}) -> (x::RV{e}) -> sum(j, tanh(sum(e, delta(J(e), j, x(e)^2))) * Y(j))",
        lambda J, Y, x: np.tanh(_sums(J, x**2, len(Y))) @ Y,
    ),
    "entries of entries": (
        "(J::(N{n}) -> N{n}, K::(N{e}) -> N{n}) -> (x::RV{n}) -> sum(e, x(J(K(e)))^3 * (1 + K(e)))",
        lambda J, K, x: sum(x[J[k]] ** 3 * (1 + k) for k in K),
    ),
    "neighbours that exist": (
        "(J::(N) -> N{n}) -> (x::RV{n}) -> sum(e, where(J(e) + 1 < n, x(J(e) + 1)^2 * x(J(e))))",
        lambda J, x: sum(x[j + 1] ** 2 * x[j] for j in J if j + 1 < len(x)),
    ),
    "equal entries": (
        "(J::(N{e}) -> N{n}, K::(N{f}) -> N{n}, w::RV{e}, y::RV{n}) -> (x::RV{f}) -> "
        "y(0) * sum((e, f), delta(J(e), K(f), w(e) * x(f)^2))",
        lambda J, K, w, y, x: y[0] * sum(w[e] * x[f] ** 2 for e, j in enumerate(J) for f, k in enumerate(K) if j == k),
    ),
    "comparisons": (
        "(J::(N) -> N{n}) -> (x::RV{n}) -> sum((e, j), where(J(e) < j and J(e) != 2, x(j)^3 / (j - J(e))))",
        lambda J, x: sum(x[k] ** 3 / (k - j) for j in J for k in range(len(x)) if j < k and j != 2),
    ),
    "numbers": (
        "(J::(N) -> N{n}) -> (x::RV{n}) -> sum(e, exp(J(e) / 9) * x(J(e))^J(e) / (J(e) + 1))",
        lambda J, x: sum(np.exp(j / 9) * x[j] ** int(j) / (j + 1) for j in J),
    ),
    "norms": (
        "(J::(N{e}, N{e}) -> N{n}, y::RV{n}) -> (x::RV{e}) -> sum(e, x(e)^2 * norm(f -> J(e, f)) + x(e) * norm(J))",
        lambda J, y, x: x**2 @ np.linalg.norm(J, axis=1) + x.sum() * np.sqrt((J.astype(float) ** 2).sum()),
    ),
    "edges both ways": (
        "(J::(N{e}) -> N{n}, K::(N{e}) -> N{n}, y::RV{n}) -> (x::RV{e}) -> "
        "y(0) * sum((e, f), delta(J(e), K(f), delta(K(e), J(f), x(e) * x(f)^2)))",
        lambda J, K, y, x: y[0] * ((J[:, None] == K) * (K[:, None] == J) * x[:, None] * x**2).sum(),
    ),
    "two conditions in a ring": (
        RING + "(J::(N{e}) -> Z, K::(N{e}) -> Z, y::(Z) -> R) -> (x::RV{e}) -> "
        "y(0) * sum(e, where(J(e) == 1 and K(e) == 2, x(e)^2))",
        lambda J, K, y, x: y[0] * ((J - 1) % len(y) + (K - 2) % len(y) == 0) @ x**2,
    ),
    "two slots": (
        "(J::(N{e}, N{e}) -> N{n}, w::RM{e, e}) -> (x::RM{n, m}) -> "
        "sum((e, f, d), w(e, f) * sin(x(J(e, f), d)) * x(J(f, e), d))",
        lambda J, w, x: sum(
            w[e, f] * (np.sin(x[J[e, f]]) * x[J[f, e]]).sum() for e in range(len(J)) for f in range(len(J))
        ),
    ),
    "a ring": (
        RING + "(J::(N) -> Z) -> (x::(Z) -> R) -> sum(e, x(J(e) + 1) * x(J(e))^2)",
        lambda J, x: sum(x[(j + 1) % len(x)] * x[j] ** 2 for j in J),
    ),
    "a symmetric range": (
        MIRROR + "(J::(N) -> X) -> (x::(X) -> R) -> sum(e, x(-J(e)) * x(J(e))^2)",
        lambda J, x: sum(x[len(x) // 2 - j] * x[len(x) // 2 + j] ** 2 for j in J),
    ),
    "another range": (
        "(J::(N{e}) -> N{n}, y::RV{m}) -> (x::RV{m}) -> sum((e, i), J(e) == i, y(i) * x(i)^3)",
        lambda J, y, x: sum(y[j] * x[j] ** 3 for j in J if j < len(x)),
    ),
    "maxima": (
        "(J::(N) -> N) -> (x::RV) -> sum(e, maximum(f, J(f) != J(e), x(J(f)))^2)",
        lambda J, x: sum(max((x[k] for k in J if k != j), default=-np.inf) ** 2 for j in J),
    ),
}
SIZES = {"n": 5, "e": 7, "f": 3, "m": 2, "Z": 5, "X": 5}


def arguments(name: str, seed: int = 0, n: int = 5) -> list[Any]:
    """Random data, in which an index occurs more than once."""
    rng = np.random.default_rng(seed)
    found = []
    for argument in arguments_of(PROGRAMS[name][0]):
        if isinstance(argument.kind, Index):
            continue  # a size, given by name
        result, params = argument.kind.result, argument.kind.params
        sizes = {**SIZES, "n": n, "Z": n, "X": n}
        shape = [sizes.get(p.domain.name, SIZES["e"] if argument.of_integers else n) for p in params]
        if argument.of_integers:
            first = -(n // 2) if result.domain.symmetric else 0
            found.append(first + rng.integers(0, n, shape))
        else:
            found.append(rng.uniform(0.5, 2, shape))
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_gradient_are_those_of_loops(name: str) -> None:
    program, oracle = PROGRAMS[name]
    given = arguments(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, gradient = cd.grad(program).compile(value=True)(*given)
    assert np.isclose(value, oracle(*given))
    np.testing.assert_allclose(gradient, gradient_by(-1, oracle, given), rtol=1e-8, atol=1e-8)


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_checked_and_read_back(name: str) -> None:
    assert_holds(cd.grad(PROGRAMS[name][0]))
    term = infer(parse(PROGRAMS[name][0]))
    assert program_text(infer(parse(program_text(term)))) == program_text(term)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hvp", "jvp", "jacobian", "hessian", "pullback", "simplified"])
@pytest.mark.parametrize("name", thinned(PROGRAMS, 2))
def test_all_modes(name: str, mode: str) -> None:
    d = getattr(cd, mode)(PROGRAMS[name][0])
    assert d.check()
    assert_reads_back(d.term)


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["embedding", "segment sums", "a ring"])
def test_sizes(name: str) -> None:
    f = cd.grad(PROGRAMS[name][0]).compile(value=True)
    for size in (1, 2, 3, 7):
        given = arguments(name, n=size)
        assert np.isclose(f(*given)[0], PROGRAMS[name][1](*given))


# --- what is found --------------------------------------------------------------------------------------------------


def test_a_sum_over_equal_indices_is_an_entry() -> None:
    d = cd.simplified("(J::(N) -> N{n}) -> (x::RV{n}) -> sum((e, j), delta(J(e), j, x(j)^2))")
    assert str(d).endswith("-> sum(e, x(J(e))^2)")


def test_entries_that_are_equal_are_not_equal_indices() -> None:
    """J(e) = J(f) does not say that e = f."""
    d = cd.simplified("(J::(N) -> N{n}) -> (x::RV) -> sum((e, f), delta(J(e), J(f), x(e) * x(f)))")
    assert np.isclose(d.compile()([0, 0, 1], [1.0, 2.0, 4.0], n=2), (1 + 2) ** 2 + 4**2)


def test_an_index_may_be_compared_with_an_entry_at_itself() -> None:
    f = cd.grad("(J::(N{n}) -> N{n}) -> (x::RV{n}) -> sum(j, delta(J(j), j, x(j)^2))").compile(value=True)
    value, gradient = f([0, 2, 2, 1], [1.0, 2.0, 3.0, 4.0])
    assert np.isclose(value, 1 + 9)
    np.testing.assert_allclose(gradient, [2, 0, 6, 0])


def test_two_entries_at_one_index_are_compared() -> None:
    text = "(J::(N) -> N{n}, K::(N) -> N{n}) -> (x::RV) -> sum((e, f), delta(J(e), K(e), x(e)^2 * x(f)))"
    f = cd.grad(text).compile(value=True)
    value, gradient = f([0, 1, 1], [0, 0, 1], [1.0, 2.0, 3.0])
    assert np.isclose(value, (1 + 9) * 6)
    np.testing.assert_allclose(gradient, [10 + 12, 10, 10 + 36])


def test_entries_are_compared_in_their_own_range() -> None:
    """J(k) is no number modulo the size of k's domain."""
    text = RING + "(J::(Z) -> N{n}) -> (x::RV{n}) -> sum(k, where(J(k) == 2, x(J(k))^2)) + sum(j, delta(J(0), j, x(j)))"
    d = cd.grad(text)
    value, gradient = d.compile(value=True)([4, 2], [1.0, 2.0, 3.0, 4.0, 5.0])
    assert np.isclose(value, 9 + 5) and d.check()
    np.testing.assert_allclose(gradient, [0, 0, 6, 0, 1])
    term = infer(parse(text))
    J, x = term.params[0], term.body.params[0]  # type: ignore[attr-defined]
    given = {J: np.array([4, 2]), x: np.arange(1.0, 6.0)}
    assert np.isclose(evaluate(term.body.body, given), 14)  # type: ignore[attr-defined, arg-type]


@pytest.mark.parametrize("groups", ["i -> ", "(i::N) -> ", "(i::N{n}) -> "])
def test_a_parameter_that_is_compared_has_the_range_of_the_entries(groups: str) -> None:
    program = f"(J::(N{{m}}) -> N{{n}}) -> (x::RV{{m}}) -> begin; D = {groups}sum(e, delta(J(e), i, x(e)))"
    value, gradient = cd.grad(program + "\nsum(i, D(i)^2); end").compile(value=True)([1, 0, 1], [1.0, 2.0, 3.0], n=3)
    assert value == 20
    np.testing.assert_allclose(gradient, [8, 4, 8])


def test_the_group_of_an_entry_is_not_empty() -> None:
    """Attention over the edges of a graph: a share is read where its node has an edge, as that of an edge has."""
    d = cd.grad("""
(t::(N{e}) -> N{v}, y::RV{v}, H::RM) -> (z::RV{e}) -> begin
  u = q -> exp(z(q))
  D = i -> sum(q, delta(t(q), i, u(q)))
  O = (i, k) -> sum(q, delta(t(q), i, u(q) / D(i) * H(q, k)))
  sum((i, k), y(i) * O(i, k)^2)
end""")
    assert "where" not in str(d) and d.check()


def test_the_sum_of_each_group_is_made_once() -> None:
    program = "(J::(N) -> N{n}, w::RV) -> (x::RV) -> sum(j::N{n}, sum(e, delta(J(e), j, w(e) * x(e)))^2)"
    d = cd.grad(program)
    source = d.source(value=True)
    assert "2 * w(e) * v(J(e))" in str(d)
    assert source.count("np.add.at") == 1 and "where" not in source


@pytest.mark.parametrize(
    "program",
    [
        "(J::(N) -> N{n}) -> (x::RV) -> sum((e, f), delta(J(e), J(f), x(e) * x(f)))",
        "(J::(N{e}) -> N{n}, K::(N{f}) -> N{n}, w::RV{e}) -> (x::RV{f}) -> sum((e, f), delta(J(e), K(f), w(e) * x(f)))",
        "(J::(N) -> N{n}) -> (x::RV{n}) -> sum(e, where(J(e) + 1 < n, x(J(e) + 1)^2))",
    ],
)
def test_no_array_of_pairs_is_made(program: str) -> None:
    d = cd.grad(program)
    assert "[:, None] ==" not in d.source(value=True) and "== " not in d.source(value=True).split('"""')[2]


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("J(e) < n", lambda J, n: n > J),
        ("1 <= J(e) < n - 1", lambda J, n: (J >= 1) & (n - 1 > J)),
        ("J(e) + 1 != n", lambda J, n: n != J + 1),
        ("J(e) <= 2", lambda J, n: J <= 2),
        ("J(e) < e", lambda J, n: np.arange(n) > J),
    ],
)
def test_entries_that_are_only_compared_need_no_range(
    condition: str, taken: Callable[[np.ndarray, int], np.ndarray], library: Numbers
) -> None:
    d = cd.grad(f"(J::(N{{n}}) -> N) -> (x::RV{{n}}) -> sum(e, {condition}, x(e)^2)")
    assert "J::(N{n}) -> N)" in str(d) and str(cd.simplified(str(d))) == str(d) and d.check()
    J, x = np.array([3, 9, 0, 1, 4]), np.arange(1.0, 6.0)
    for numbers in (Numbers("numpy"), library):
        found = d.compile(numbers.name)(numbers.to(J), numbers.to(x))
        np.testing.assert_allclose(numbers.back(found), np.where(taken(J, 5), 2 * x, 0))
    with pytest.raises(cd.CombDiffError, match=r"J\[1\] is -1"):
        d.compile()(np.array([0, -1, 2, 3, 4]), x)


@pytest.mark.parametrize(
    ("objective", "gradient"),
    [
        ("sum(i, y(i) * log(x(i)) - x(i))", lambda y, x: y / x - 1),
        ("norm(x - y)^2", lambda y, x: 2 * (x - y)),
        (
            "sum(i, lgamma(y(i) + 1) * x(i)^2)",
            lambda y, x: [2 * math.lgamma(k + 1) * v for k, v in zip(y, x, strict=True)],
        ),
        ("sum((i, k), delta(y(i), k, x(i) * k))", lambda y, x: y),
        ("sum(i, x(i) + y(i))", lambda y, x: np.ones(len(x))),
    ],
)
def test_counts_need_no_range(objective: str, gradient: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    d = cd.grad(f"(y::(N{{n}}) -> N) -> (x::RV{{n}}) -> {objective}")
    assert str(cd.simplified(str(d))) == str(d) and d.check()
    y, x = np.array([3, 9, 0, 1], dtype=np.uint8), np.array([1.0, 2.0, 0.5, 4.0])
    np.testing.assert_allclose(d.compile()(y, x), gradient(y.astype(float), x))


def test_an_index_that_only_a_count_equals_has_no_range() -> None:
    with pytest.raises(cd.CombDiffError, match="cannot find the range of"):
        cd.grad("(y::(N) -> N) -> (x::R) -> sum(k, x^k) + sum((i, k), where(k <= y(i), x))")


@pytest.mark.slow
def test_a_function_of_the_program_takes_arrays_of_integers() -> None:
    d = cd.grad(
        "(J::(N) -> N{n}, K::(N) -> N{n}) -> (x::RV{n}) -> begin\n"
        "  part = (A::(N) -> N) -> sum(e, x(A(e))^2)\n  part(J) * part(K)\nend"
    )
    assert d.check()


def test_never_differentiated() -> None:
    d = cd.grad("(J::(N) -> N, x::RV) -> sum(e, x(J(e))^2)")
    assert [a.name for a in d.compile().arguments] == ["J", "x"]
    np.testing.assert_allclose(d.compile()([1, 1], [1.0, 2.0, 3.0]), [0, 8, 0])
    with pytest.raises(cd.CombDiffError, match="J holds integers, and nothing is differentiated by integers"):
        cd.grad("(J::(N) -> N, x::RV) -> sum(e, x(J(e))^2)", wrt=("J",))


# --- messages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "message", "remedy"),
    [
        ("(J::(N) -> N, x::RV{n}) -> sum(e, x(J(e) + 1))", "cannot find the range of an entry of J", "J::(N) -> N{n}"),
        (
            "(J::(N) -> N, x::RV) -> sum(e, where(1 <= J(e), x(J(e) - 1)))",
            "cannot find the range of an entry of J",
            "J::(N) -> N{n}",
        ),
        (
            "(J::(N) -> N{m}, x::RV{n}) -> sum(e, x(J(e)))",
            "an entry of J ranges over N{m}, but slot 1 of x over N{n}",
            "give both slots one size",
        ),
        ("(J::RV, x::RV) -> sum(e, x(J(e)))", "found a real number, an entry of J", "J::(N) -> N"),
        ("(J::(N) -> N, x::RV) -> sum(e, x(J))", "J is an array of integers, and one index", "J(i)"),
        ("(J::(N) -> N, x::RV) -> sum(e, x(J(e, e)))", "J takes 1 index, and 2 are given", "give 1 index"),
        ("(J::(N) -> N{n}, x::RV{n}) -> sum(e, x(J(e) + 1))", "J(e) + 1 may leave the range", "where("),
        ("(J::(R) -> N, x::RV) -> x(J(1.5))", "a map of numbers has numbers or maps for values", "write R or C"),
        (
            "@domain L begin list = true end\n(J::(N) -> L, x::(L) -> R) -> sum(e, x(J(e)))",
            "L is a list of offsets",
            "write N{m}",
        ),
        (
            "@space T begin type = (N, N) -> N; symmetries = (((2, 1), :id),) end\n(J::T, x::RV) -> sum(e, x(J(e, e)))",
            "symmetries are declared of numbers",
            "remove `symmetries`",
        ),
    ],
)
def test_messages(program: str, message: str, remedy: str) -> None:
    with pytest.raises(cd.CombDiffError) as caught:
        cd.grad(program)
    assert message in str(caught.value) and remedy in str(caught.value.remedy)
    assert caught.value.span is not None


BAD = [
    ([0, 3], "J[1] is 3, but the range n runs from 0 to 2"),
    ([0, -1], "J[1] is -1, but the range n runs from 0 to 2"),
    ([0.0, 1.0], "J must be an array of integers, and holds float64"),
    ([0.0, np.nan], "J must be an array of integers, and holds nan"),
    ([True, False], "J must be an array of integers, and holds bool"),
    ([1j, 0], "J must be an array of integers, and holds complex128"),
    ([[0, 1]], "J has 1 ind"),
]


@pytest.mark.parametrize(("data", "message"), BAD)
def test_data_that_are_no_indices(data: object, message: str) -> None:
    d = cd.grad("(J::(N) -> N{n}) -> (x::RV{n}) -> sum(e, x(J(e))^2)")
    x = np.arange(3.0)
    f = d.compile()
    f(np.array([0, 2]), x)
    f(np.array([0, 2]), x)
    with pytest.raises(cd.CombDiffError) as caught:
        f(np.array(data), x)
    assert message in str(caught.value) and caught.value.remedy
    term = infer(parse("(J::(N) -> N{n}, x::RV{n}) -> sum(e, x(J(e))^2)"))
    with pytest.raises(cd.CombDiffError) as caught:
        evaluate(term.body, dict(zip(term.params, (np.array(data), x), strict=True)))  # type: ignore[attr-defined]
    assert message in str(caught.value)


def test_data_that_were_changed_are_looked_at_again() -> None:
    f = cd.grad("(J::(N) -> N{n}) -> (x::RV{n}) -> sum(e, x(J(e))^2)").compile()
    J, x = np.array([0, 2]), np.arange(3.0)
    np.testing.assert_allclose(f(J, x), f(J, x))
    J[0] = -1
    with pytest.raises(cd.CombDiffError, match=r"J\[0\] is -1"):
        f(J, x)


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.int64])
def test_integers_of_any_length(kind: type) -> None:
    f = cd.grad("(J::(N) -> N{n}) -> (x::RM{n, m}) -> sum((e, c), x(J(e), c)^2)").compile()
    x = np.ones((200, 3))
    expected = np.zeros((200, 3))
    expected[[100, 7]] = [[4.0], [2.0]]
    np.testing.assert_allclose(f(np.array([100, 100, 7], kind), x), expected)


def test_a_size_that_no_array_has_is_given() -> None:
    d = cd.pullback("(J::(N) -> N{m}) -> (x::RV) -> (j::N{m}) -> sum(e, delta(J(e), j, x(e)))")
    np.testing.assert_allclose(d.compile()([1, 1], [1.0, 2.0], [0.0, 5.0, 0.0]), [5, 5])
    value = cd.simplified("(J::(N) -> N{m}) -> (x::RV) -> (j::N{m}) -> sum(e, delta(J(e), j, x(e)))").compile()
    np.testing.assert_allclose(value([1, 1], [1.0, 2.0], m=4), [0, 3, 0, 0])
    with pytest.raises(cd.CombDiffError, match=r"J\[0\] is 1, but the range m runs from 0 to 0"):
        value([1, 1], [1.0, 2.0], m=1)
    # which is never needed here
    unneeded = cd.grad("(J::(N) -> N{m}) -> (x::RV) -> sum(e, J(e) * x(e)^2)").compile()
    np.testing.assert_allclose(unneeded([1, 7], [1.0, 2.0]), [2, 28])


def test_the_verifier_wants_integers_for_places() -> None:
    shown = str(cd.grad("(J::(N) -> N{n}) -> (x::RV{n}) -> sum(e, x(J(e))^2)").plan(ir=True))
    wrong = shown.replace("result=Index(domain=n)", "result=Number(complex=False)", 1)
    with pytest.raises(PlanError, match="a place is no integer"):
        verify(read(wrong))


# --- libraries ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch", "dask"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_libraries_agree(name: str, backend: str) -> None:
    assert_libraries_agree(cd.grad(PROGRAMS[name][0]), backend, arguments(name))


CHAIN = (
    "(y::(N{T}) -> N{K}, E::RM{T, K}) -> (A::RM{K, K}) -> "
    "sum(t, E(t, y(t))) + sum(t, t < T - 1, A(y(t), y(t + 1)) - logsumexp(k, A(y(t), k)))"
)
TRUSS = """(a::(N{m}) -> N{n}, b::(N{m}) -> N{n}, k::RV{m}, L::RV{m}) -> (x::RM{n, D}) -> begin
    l = e -> sqrt(sum(c, (x(a(e), c) - x(b(e), c))^2))
    sum(e, k(e) * (l(e) - L(e))^2 / 2)
end"""

BENT_CHAIN = """(J::(N{t}, N{f}) -> N{n}, p::RV{t}) -> (u::RV{n}, v::RV{n}) -> begin
    ang = (t, s) -> where(s + 1 < f, atan2(v(J(t, s + 1)) - v(J(t, s)), u(J(t, s + 1)) - u(J(t, s))))
    sum((t, s), s < f - 1, 1 - cos(3 * ang(t, s) - p(t)))
end"""
NESTS = "(G::(N{j}) -> N{g}, x::RV{j}) -> (s::RV{g}) -> logsumexp(k, s(k) * logsumexp(j, G(j) == k, x(j)))"


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "jax", "torch", "dask"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_label_and_the_next_one_are_looked_up(backend: str, size: int) -> None:
    library = Numbers(backend)
    rng = np.random.default_rng(size)
    y, E, A = rng.integers(0, 3, size), rng.normal(size=(size, 3)), rng.normal(size=(3, 3))
    f = cd.grad(CHAIN).compile(backend, value=True)
    value, gradient = (library.back(result) for result in f(*map(library.to, (y, E, A))))
    own, expected = E[np.arange(size), y].sum(), np.zeros((3, 3))
    for now, then in pairwise(y):
        share = np.exp(A[now]) / np.exp(A[now]).sum()
        own += np.log(share[then])
        expected[now] -= share
        expected[now, then] += 1
    np.testing.assert_allclose(value, own, rtol=1e-12)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.long
@pytest.mark.parametrize("text", [CHAIN, TRUSS, BENT_CHAIN, NESTS])
def test_what_is_looked_up_is_checked(text: str) -> None:
    assert cd.grad(text).check()
    assert cd.hvp(text).check()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch", "dask"])
def test_the_libraries_look_at_the_data(backend: str) -> None:
    library = Numbers(backend)
    f = cd.grad("(J::(N) -> N{n}) -> (x::RV{n}) -> sum(e, x(J(e))^2)").compile(backend)
    x = library.to(np.arange(3.0))
    for data, message in BAD:
        if message.endswith("nan"):
            continue
        with pytest.raises(cd.CombDiffError) as caught:
            f(library.to(np.array(data)), x)
        assert message in str(caught.value)


@pytest.mark.slow
def test_traced_code_of_jax_gives_nan_and_never_clamps() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    x = np.arange(1.0, 4.0)
    values = cd.simplified("(J::(N) -> N{n}) -> (x::RV{n}) -> e -> x(J(e))^2").compile("jax")
    np.testing.assert_array_equal(jax.jit(values)(np.array([0, 3, -1, 2]), x), [1, np.nan, np.nan, 9])
    sums = cd.simplified("(J::(N) -> N{n}, y::RV{n}) -> (x::RV) -> j -> y(j) + sum(e, delta(J(e), j, x(e)))")
    traced = jax.jit(sums.compile("jax"))
    np.testing.assert_array_equal(traced(np.array([0, 0, 2]), x, x), [4, 2, 6])
    assert np.isnan(traced(np.array([0, 0, -1]), x, x)).all()


def test_what_is_added_up_along_one_array_is_added_up_once() -> None:
    text = "(p::(N{e}) -> N{n}, y::RV{e}) -> (t::RV{n}) -> sum(r, softplus(t(p(r))) - y(r) * t(p(r)))"
    d = cd.grad(text)
    assert "sum(r, delta(p(r), d, sigmoid(t(p(r))) - y(r)))" in str(d)
    assert d.source().count("add.at") == 1
    stiffness = "(J::(N, N) -> N{n}, K::(N, N, N) -> R) -> (u::RV{n}) -> "
    assert "delta(J(e, a), d, u(J(e, b)) * (K(e, a, b) + K(e, b, a)))" in str(
        cd.grad(stiffness + "sum((e, a, b), u(J(e, a)) * K(e, a, b) * u(J(e, b)))")
    )


IMAGES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "J(m)": lambda J, L, m: J[m],
    "J(m) + 1": lambda J, L, m: J[m] + 1,
    "J(J(m))": lambda J, L, m: J[J[m]],
    "J(J(J(m) + 1) + 1)": lambda J, L, m: J[(J[(J[m] + 1) % len(J)] + 1) % len(J)],
    "L(0, 0, 0, m)": lambda J, L, m: L[0, 0, 0, m],
    "L(0, 0, J(m), 0)": lambda J, L, m: L[0, 0, J[m], 0],
}


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("image", IMAGES)
def test_a_periodic_index_is_not_solved_for_where_an_entry_depends_on_it(image: str, size: int) -> None:
    ring = "@domain Z begin base = I; periodic = true end\n"
    d = cd.grad(f"{ring}(J::(Z) -> Z, L::(Z, Z, Z, Z) -> Z) -> (x::(Z) -> R) -> sum(m, where({image} == m, x(m)^2))")
    rng = np.random.default_rng(size)
    J, L, x = rng.integers(0, size, size), rng.integers(0, size, (size,) * 4), rng.standard_normal(size)
    m = np.arange(size)
    np.testing.assert_allclose(d.compile()(J=J, L=L, x=x), 2 * x * (IMAGES[image](J, L, m) % size == m))
    assert d.check()


def test_an_array_that_holds_nothing_is_not_read_at_an_index_of_another_range() -> None:
    f = cd.grad("(J::(N{e}) -> N{n}) -> (x::RV{m}) -> sum((e, i), J(e) == i, x(i)^2)").compile()
    np.testing.assert_array_equal(f(np.zeros(0, int), np.zeros(0)), [])
    with np.errstate(divide="ignore"), pytest.raises(cd.ArrayError, match="holds nothing is read at an index"):
        f(np.array([0, 1]), np.zeros(0))
