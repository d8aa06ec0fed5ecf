"""log Σ exp and exp/Σ exp: what the laws find in naive texts, and that it is right at ±1000 in every library."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from tests.emit.array_libraries import Numbers, library
from tests.promises import differences

__all__ = ["library"]

mpmath = pytest.importorskip("mpmath")

LAWS = {
    "(x::RV) -> log(sum(i, exp(x(i))))": "(x::RV) -> logsumexp(x)",
    "(x::RV) -> log(sum(i, 1 <= i, exp(x(i))))": "(x::RV) -> logsumexp(i, 1 <= i, x(i))",
    "(x::RV) -> log(sum(i, exp(x(i))^2))": "(x::RV) -> logsumexp(i, 2 * x(i))",
    "(x::RV) -> k -> log(softmax(i, x(i))(k))": "(x::RV) -> k -> x(k) - logsumexp(x)",
    "(A::RM) -> log(sum((i, j), exp(A(i, j))))": "(A::RM) -> logsumexp(A)",
    "(x::RV, t::R) -> log(t * sum(i, exp(x(i))))": "(x::RV, t::R) -> logsumexp(x) + log(t)",
    "(x::RV{n}) -> log(sum(i, exp(x(i))) / n)": "(x::RV{n}) -> logsumexp(x) - log(n)",
    "(x::RV) -> log(mean(i, exp(x(i))))": "(x::RV{n}) -> logsumexp(x) - log(n)",
    "(x::RV) -> log(1 + sum(i, exp(x(i))))": "(x::RV) -> softplus(logsumexp(x))",
    "(x::RV) -> k -> exp(x(k)) / sum(i, exp(x(i)))": "(x::RV) -> k -> softmax(x)(k)",
    "(x::RV) -> k -> exp(x(k) - log(sum(i, exp(x(i)))))": "(x::RV) -> k -> softmax(x)(k)",
    "(x::RV) -> k -> log(exp(x(k)) / sum(i, exp(x(i))))": "(x::RV) -> k -> x(k) - logsumexp(x)",
    "(x::RV, m::R) -> k -> exp(x(k) - m) / sum(i, exp(x(i) - m))": "(x::RV, m::R) -> k -> softmax(x)(k)",
    "(x::RV, O::RV) -> sum(k, O(k) * exp(x(k))) / sum(i, exp(x(i)))": (
        "(x::RV, O::RV) -> sum(k, O(k) * softmax(x)(k))"
    ),
    "(x::RV) -> k -> exp(2 * x(k)) / sum(i, exp(x(i)))^2": "(x::RV) -> k -> exp(2 * x(k) - 2 * logsumexp(x))",
    "(w::RV, x::RV) -> log(sum(i, w(i) * exp(x(i))))": "(w::RV, x::RV) -> logsumexp(i, w(i), x(i))",
    "(w::RV, x::RV) -> log(sum(i, 1 <= i, w(i)^2 * exp(x(i))))": (
        "(w::RV, x::RV) -> logsumexp(i, where(1 <= i, w(i)^2), x(i))"
    ),
    "(w::RV, x::RV, t::R) -> log(sum(i, t * w(i) * exp(x(i) - t)))": (
        "(w::RV, x::RV, t::R) -> logsumexp(i, t * w(i), x(i)) - t"  # t and w may both be negative
    ),
    "(w::RV, x::RV, t::R) -> log(sum(i, t * w(i)^2 * exp(x(i) - t)))": (
        "(w::RV, x::RV, t::R) -> logsumexp(i, w(i)^2, x(i)) + log(t) - t"
    ),
    "(x::RV{n}) -> exp(sum(i, x(i))) / sum(i::N{n}, exp(sum(j, x(j))))": (
        "(x::RV{n}) -> exp(sum(i, x(i))) / exp(sum(j, x(j))) / n"
    ),
    "(x::RV{n}) -> log(sum(i::N{n}, exp(1)))": "(x::RV{n}) -> log(n) + 1",
    "(x::RV{n}) -> logsumexp((i::N{n}, j::N{n}), x(0))": "(x::RV{n}) -> x(0) + log(n^2)",
    "(x::RV{n}) -> (k::N{n}) -> softmax(i, x(0))(k)": "(x::RV{n}) -> (k::N{n}) -> 1 / n",
    "(w::RV, x::RV) -> k -> w(k) * exp(x(k)) / sum(i, w(i) * exp(x(i)))": (
        "(w::RV, x::RV) -> k -> softmax(i, w(i), x(i))(k)"
    ),
    "(w::RV, x::RV) -> sum(k, k * w(k) * exp(x(k))) / sum(i, w(i) * exp(x(i)))": (
        "(w::RV, x::RV) -> sum(k, k * softmax(i, w(i), x(i))(k))"
    ),
    # without its weight in front no share is told, and a sum with weights may be below 0
    "(w::RV, x::RV) -> k -> exp(x(k)) / sum(i, w(i) * exp(x(i)))": (
        "(w::RV, x::RV) -> k -> exp(x(k)) / sum(i, w(i) * exp(x(i)))"
    ),
    "(x::RV, y::RV) -> k -> exp(y(k)) / sum(i, exp(x(i)))": "(x::RV, y::RV) -> k -> exp(y(k) - logsumexp(x))",
    # complex numbers stay as they are
    "(x::RV) -> sum(k, x(k) * log(sum(i, i <= k, exp(x(i)))))": (
        "(x::RV) -> sum(k, x(k) * logsumexp(i, i <= k, x(i)))"
    ),
    "(x::CV) -> log(sum(i, exp(x(i))))": "(x::CV) -> log(sum(i, exp(x(i))))",
    # exp(x(0)) is not among those that are added
    "(x::RV) -> k -> exp(x(k)) / sum(i, 1 <= i, exp(x(i)))": ("(x::RV) -> k -> exp(x(k) - logsumexp(i, 1 <= i, x(i)))"),
    "(x::RV) -> k -> where(1 <= k, exp(x(k))) / sum(i, 1 <= i, exp(x(i)))": (
        "(x::RV) -> k -> softmax(i, 1 <= i, x(i))(k)"
    ),
    # the sum of the weights may be below 0, as what it divides may be
    "(w::RV, x::RV) -> log(sum(i, w(i) * exp(x(i))) / sum(i, w(i)))": (
        "(w::RV, x::RV) -> logsumexp(i, w(i) / sum(i1, w(i1)), x(i))"
    ),
    "(w::RV, x::RV) -> k -> softmax(i, 2 * w(i) / sum(j, w(j)), x(i))(k)": (
        "(w::RV, x::RV) -> k -> softmax(i, w(i), x(i))(k)"
    ),
    "(w::RV, x::RV) -> sum(k, k * w(k) * exp(x(k))) / sum(i, 2 * w(i) * exp(x(i)))": (
        "(w::RV, x::RV) -> 1/2 * sum(k, k * softmax(i, w(i), x(i))(k))"
    ),
    "(x::RV, t::R) -> sum(i, log(exp(-x(i)^2) / t))": "(x::RV, t::R) -> -sum(i, x(i)^2 + log(t))",
    "(x::RV) -> log(prod(i, 1 <= i, exp(-x(i)^2) / (1 + x(i)^2)))": (
        "(x::RV) -> sum(i, where(1 <= i, -x(i)^2 - log(1 + x(i)^2)))"
    ),
    "(x::RV, t::R) -> log(prod(i, t * exp(x(i))))": "(x::RV{n}, t::R) -> sum(i, x(i)) + log(prod(i::N{n}, t))",
    "(A::RM{n, n}) -> log(det(A)^2)": "(A::RM{n, n}) -> 2 * logabsdet(A)",
    "(A::RM{n, n}) -> log(exp(-A(0, 0)) / sqrt(det(A' * A)))": (
        "(A::RM{n, n}) -> -A(0, 0) - 1/2 * logdet((j, k) -> sum(i, A(i, j) * A(i, k)))"
    ),
    "(A::RM{n, n}, B::RM{n, n}) -> log(abs2(det(A)) / det(B)^3)": (
        "(A::RM{n, n}, B::RM{n, n}) -> 2 * logabsdet(A) - 3 * logdet(B)"
    ),
    "(A::RM{n, n}) -> begin d = det(A); log(d^2) + d end": (
        "(A::RM{n, n}) -> begin\n  d = det(A)\n  2 * logabsdet(A) + d\nend"
    ),
    # the sign of the product is not known
    "(A::RM{n, n}, B::RM{n, n}) -> log(det(A) * det(B))": "(A::RM{n, n}, B::RM{n, n}) -> log(det(A) * det(B))",
    "(x::RV) -> begin e = k -> exp(x(k)); Z = sum(k, e(k)); k -> log(e(k) / Z) end": (
        "(x::RV) -> k -> x(k) - logsumexp(x)"
    ),
}


@pytest.mark.parametrize("text", LAWS)
def test_a_naive_text_is_read_in_a_stable_form(text: str) -> None:
    assert str(cd.simplified(text)) == LAWS[text]


@pytest.mark.sampled
@pytest.mark.parametrize("text", LAWS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
@pytest.mark.filterwarnings("ignore")
def test_a_stable_form_has_the_value_of_the_text(text: str, n: int) -> None:
    rng = np.random.default_rng(n)
    given, found = infer(parse(text)), infer(parse(str(cd.simplified(text))))
    shape = (n, n) if "A::" in text else (n,)
    of = {"t": np.exp(rng.normal()), "m": rng.normal()}
    arrays = [of.get(p.name, rng.normal(size=shape)) for p in given.params]  # type: ignore[attr-defined]
    values = [_everywhere(t, arrays, n) for t in (given, found)]
    # the sum of nothing divides nothing, which is 0 under the condition
    np.testing.assert_allclose(*map(np.nan_to_num, values), rtol=1e-12)


def _everywhere(term: Any, arrays: list[Any], n: int) -> Any:
    value = evaluate(term.body, dict(zip(term.params, arrays, strict=True)))
    return np.array([value(k) for k in range(n)]) if callable(value) else value


# --- derivatives ----------------------------------------------------------------------------------------------------

OBJECTIVES = {
    "logsumexp(i, x(i)^2 - x(i))": lambda jnp, x: _logsumexp(jnp, x**2 - x),
    "sum(k, softmax(j, x(j) * x(j))(k) * x(k)^3)": lambda jnp, x: (_softmax(jnp, x * x) * x**3).sum(),
    "norm(x)^3 + norm(k -> x(k)^2 + 1)": lambda jnp, x: _norm(jnp, x) ** 3 + _norm(jnp, x**2 + 1),
    "sum(k, cumsum(j, x(j)^2)(k) * sin(x(k)))": lambda jnp, x: (jnp.cumsum(x**2) * jnp.sin(x)).sum(),
    "sum(i, logsumexp(j, j <= i, x(j) * x(i)))": lambda jnp, x: sum(
        _logsumexp(jnp, x[: i + 1] * x[i]) for i in range(len(x))
    ),
    "sum(i, sum(j, j <= i, softmax(k, k <= i, x(i) * x(k))(j) * x(j)))": lambda jnp, x: sum(
        (_softmax(jnp, x[: i + 1] * x[i]) * x[: i + 1]).sum() for i in range(len(x))
    ),
    "logsumexp(i, x(i)^2, x(i)^3) + sum(i, logsumexp(j, j <= i, x(j)) * x(i))": lambda jnp, x: (
        jnp.log((x**2 * jnp.exp(x**3)).sum()) + sum(_logsumexp(jnp, x[: i + 1]) * x[i] for i in range(len(x)))
    ),
    "sum(k, x(k)^2 * softmax(j, x(j)^2, sin(x(j)))(k))": lambda jnp, x: (
        (x**4 * jnp.exp(jnp.sin(x))).sum() / (x**2 * jnp.exp(jnp.sin(x))).sum()
    ),
    "logsumexp((i, j), i != j, x(i) * x(j)^2)": lambda jnp, x: jnp.log(
        sum(jnp.exp(a * b * b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j)
    ),
}


def _logsumexp(jnp: Any, x: Any) -> Any:
    return jnp.log(jnp.exp(x).sum())


def _softmax(jnp: Any, x: Any) -> Any:
    return jnp.exp(x) / jnp.exp(x).sum()


def _norm(jnp: Any, x: Any) -> Any:
    return jnp.sqrt((x * x).sum())


@pytest.mark.long
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_value_gradient_and_hessian_product_are_those_of_jax(objective: str) -> None:
    jax = pytest.importorskip("jax")
    f: Callable[[Any], Any] = lambda x: OBJECTIVES[objective](jax.numpy, x)  # noqa: E731
    d, second = cd.grad(f"(x::RV) -> {objective}"), cd.hvp(f"(x::RV) -> {objective}")
    assert str(cd.grad(f"(x::RV) -> {objective}")) == str(d)
    gradient, product = d.compile("numpy", value=True), second.compile("numpy")
    jax.config.update("jax_enable_x64", True)
    for n in (1, 2, 3, 5, 7)[1 if "i != j" in objective else 0 :]:
        x, v = np.random.default_rng(n).normal(size=(2, n))
        value, found = gradient(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-11)
        np.testing.assert_allclose(found, jax.grad(f)(x), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(product(x, v), jax.jvp(jax.grad(f), (x,), (v,))[1], rtol=1e-9, atol=1e-10)
    assert d.check()
    assert second.check()


@pytest.mark.sampled
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradients_read_back(objective: str) -> None:
    d = cd.grad(f"(x::RV) -> {objective}")
    assert str(cd.simplified(str(d))) == str(d)


@pytest.mark.slow
def test_of_nothing_and_at_zero_derivatives_are_zero() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, gradient = cd.grad("(x::RV) -> logsumexp(i, i >= 2, x(i))").compile("numpy", value=True)(np.ones(2))
        assert value == -np.inf
        assert not gradient.any()
        for text in ("(x::RV) -> norm(x)", "(z::CV) -> norm(z)"):
            value, gradient = cd.grad(text).compile("numpy", value=True)(np.zeros(3))
            assert value == 0
            assert not gradient.any()
            assert not cd.hvp(text).compile("numpy")(np.zeros(3), np.ones(3)).any()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(z::CV) -> logsumexp(i, z(i))", "complex numbers have no order"),
        ("(w::CV, x::RV) -> logsumexp(i, w(i), x(i))", "the weights of logsumexp are real"),
        ("(A::RM) -> (k -> cumsum((i, j), A(i, j))(k))", "cumsum runs over one index"),
        ("(x::R) -> norm(x)", "norm takes a tensor"),
    ],
)
def test_what_has_no_meaning_is_refused(text: str, said: str) -> None:
    with pytest.raises(cd.LanguageError, match=said):
        cd.grad(text)


def test_sympy_and_matrix_form_know_them() -> None:
    sympy = pytest.importorskip("sympy")
    equation = cd.simplified("(x::RV) -> logsumexp(i, x(i)) + norm(x)").sympy().expression
    assert all(equation.has(f) for f in (sympy.log, sympy.exp, sympy.Sum))
    d = cd.grad("(X::RM) -> (W::RM) -> sum(n, log(sum(c, exp(sum(k, X(n, k) * W(k, c))))))")
    assert r"\operatorname{softmax}(X W)" in d.latex(form="matrix")


# --- at ±1000 -------------------------------------------------------------------------------------------------------

CROSS_ENTROPY = "(y::RV) -> (x::RV) -> -sum(k, y(k) * log(exp(x(k)) / sum(j, exp(x(j)))))"
WITH_DEFINITIONS = """(y::RV) -> (x::RV) -> begin
  e = k -> exp(x(k))
  Z = sum(k, e(k))
  p = k -> e(k) / Z
  -sum(k, y(k) * log(p(k)))
end"""
LOGSUMEXP = "(y::RV) -> (x::RV) -> log(sum(k, exp(x(k)))) + 0 * y(0)"
WEIGHTED = "(y::RV) -> (x::RV) -> log(sum(k, y(k) * exp(x(k))))"
AVERAGE = "(y::RV) -> (x::RV) -> sum(k, y(k) * exp(x(k))) / sum(k, exp(x(k)))"


def exactly(text: str, y: Any, x: Any, v: Any) -> tuple[Any, Any, Any]:
    """Value, gradient and Hessian product, in 1,000 digits."""
    with mpmath.workdps(1000):
        y, x, v = ([mpmath.mpf(float(a)) for a in array] for array in (y, x, v))
        e = [mpmath.exp(a) for a in x]
        total = sum(e)
        if text == WEIGHTED:
            e = [a * b for a, b in zip(y, e, strict=True)]
            total = sum(e)
        p = [a / total for a in e]
        mean = sum(a * b for a, b in zip(p, v, strict=True))
        dp = [a * (b - mean) for a, b in zip(p, v, strict=True)]
        if text == AVERAGE:
            value = sum(a * b for a, b in zip(y, p, strict=True))
            change = sum(a * b for a, b in zip(y, dp, strict=True))
            gradient = [a * (b - value) for a, b in zip(p, y, strict=True)]
            product = [a * (b - value) - c * change for a, b, c in zip(dp, y, p, strict=True)]
        else:
            weight = 1 if text in (LOGSUMEXP, WEIGHTED) else sum(y)
            shift = 0 if text in (LOGSUMEXP, WEIGHTED) else 1
            value = weight * mpmath.log(total) - shift * sum(a * b for a, b in zip(y, x, strict=True))
            gradient = [weight * a - shift * b for a, b in zip(p, y, strict=True)]
            product = [weight * a for a in dp]
        return float(value), np.array([float(a) for a in gradient]), np.array([float(a) for a in product])


OF_SOFTMAX = "(y::RV) -> (x::RV) -> begin p = i -> softmax(j, x(j))(i) ; -sum(i, y(i) * log(p(i))) end"
TEXTS = [CROSS_ENTROPY, OF_SOFTMAX, WITH_DEFINITIONS, LOGSUMEXP, AVERAGE, WEIGHTED]
LOGITS = {
    "apart": [1000.0, -1000.0, 3.0],
    "near": [1000.0, 999.5, 998.0],
    "low": [-1000.0, -1000.25, -999.0, -1002.0],
    "alone": [-1000.0],
}


@pytest.mark.slow
@pytest.mark.parametrize("logits", LOGITS)
@pytest.mark.parametrize("text", TEXTS)
def test_the_naive_text_is_right_at_a_thousand(text: str, logits: str, library: Numbers) -> None:
    holds_at_a_thousand(text, logits, library)


@pytest.mark.sampled
@pytest.mark.parametrize("logits", LOGITS)
@pytest.mark.parametrize("text", TEXTS)
def test_it_is_right_in_numpy_without_a_warning(text: str, logits: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        holds_at_a_thousand(text, logits, Numbers("numpy"))


def holds_at_a_thousand(text: str, logits: str, library: Numbers) -> None:
    x = np.array(LOGITS[logits])
    y, v = np.random.default_rng(len(x)).uniform(0.2, 1, size=(2, len(x)))
    value, gradient, product = exactly(text, y, x, v)
    found, slope = cd.grad(text).compile(library.name, value=True)(library.to(y), library.to(x))
    curved = cd.hvp(text).compile(library.name)(library.to(y), library.to(x), library.to(v))
    np.testing.assert_allclose(library.back(found), value, rtol=1e-12)
    np.testing.assert_allclose(library.back(slope), gradient, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(library.back(curved), product, rtol=1e-12, atol=1e-13)


def test_what_has_the_weight_zero_takes_no_part() -> None:
    f = cd.grad("(w::RV) -> (x::RV) -> log(sum(i, w(i) * exp(x(i))))").compile(value=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, gradient = f(np.array([0.0, 2.0, 1.0]), np.array([1000.0, -1000.0, -1001.0]))
    assert value == pytest.approx(-1000 + np.log(2 + np.exp(-1)), rel=1e-14)
    np.testing.assert_allclose(gradient, [0, 2 / (2 + np.exp(-1)), 1 / (2 * np.e + 1)], rtol=1e-14)


SIGNED = {
    "sum(i, w(i) * exp(x(i)) * x(i)) / sum(i, w(i) * exp(x(i)))": lambda w, x: (w * np.exp(x) * x).sum() / total(w, x),
    "softmax(i, w(i), x(i))(0)": lambda w, x: w[0] * np.exp(x[0]) / total(w, x),
    "log(sum(i, w(i) * exp(x(i)))^2)": lambda w, x: 2 * np.log(np.abs(total(w, x))),
    "log(sum(i, w(i) * exp(x(i)))^-2)": lambda w, x: -2 * np.log(np.abs(total(w, x))),
    "log(99 + sum(i, w(i) * exp(x(i))))": lambda w, x: np.log(99 + total(w, x)),
    "log(-2 * sum(i, w(i) * exp(x(i))))": lambda w, x: np.log(-2 * total(w, x)),
    "log(w(0) * sum(i, w(i) * exp(x(i))))": lambda w, x: np.log(w[0] * total(w, x)),
    "log(sum(i, w(0) * w(i) * exp(x(i))))": lambda w, x: np.log(w[0] * total(w, x)),
    "log(sum(i, w(i) * exp(x(i))) * sum(i, w(i) * exp(2 * x(i))))": lambda w, x: np.log(total(w, x) * total(w, 2 * x)),
}


def total(w: np.ndarray, x: np.ndarray) -> float:
    return (w * np.exp(x)).sum()


DIFFERENCES = {
    "log(sum(i, w(i) * (exp(x(i)) - exp(2 * x(i)))))": lambda w, x: np.log((w * (np.exp(x) - np.exp(2 * x))).sum()),
    "log(sum(i, w(i) * (sigmoid(x(i)) - sigmoid(2 * x(i)))))": lambda w, x: np.log(
        (w * (sigma(x) - sigma(2 * x))).sum()
    ),
    "log(prod(i, exp(x(i)) - exp(2 * x(i))))": lambda w, x: np.log((np.exp(x) - np.exp(2 * x)).prod()),
    "log((exp(x(0)) - exp(3 * x(0))) * (exp(x(1)) - exp(2 * x(1))))": (
        lambda w, x: np.log((np.exp(x[0]) - np.exp(3 * x[0])) * (np.exp(x[1]) - np.exp(2 * x[1])))
    ),
    "log(sum(i, w(0) * exp(x(i))) / w(1))": lambda w, x: np.log(w[0] * np.exp(x).sum() / w[1]),
    "log(mean(i, w(0) * exp(-x(i))) / sinh(w(1)))": lambda w, x: np.log(w[0] * np.exp(-x).mean() / np.sinh(w[1])),
    "log(softmax(i, w(i), x(i))(0) * softmax(i, w(i), 2 * x(i))(0))": (
        lambda w, x: np.log(w[0] ** 2 * np.exp(3 * x[0]) / total(w, x) / total(w, 2 * x))
    ),
}


def sigma(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.sampled
@pytest.mark.parametrize("objective", DIFFERENCES)
def test_factors_and_terms_may_be_negative_where_the_whole_is_not(objective: str) -> None:
    f, value = cd.grad(f"(w::RV) -> (x::RV) -> {objective}").compile(value=True), DIFFERENCES[objective]
    last = -0.4 if "prod" in objective else 0.0  # where a difference is 0
    for w, x in (([-1.0, -2.0], [0.3, 0.7]), ([-1.0, -2.0, 0.1, -3.0], [0.3, 0.6, -0.2, last])):
        found, gradient = f(np.array(w), np.array(x))
        assert found == pytest.approx(value(np.array(w), np.array(x)), rel=1e-12)
        steps = [value(np.array(w), np.array(x) + 1e-20j * e).imag / 1e-20 for e in np.eye(len(x))]
        np.testing.assert_allclose(gradient, steps, rtol=1e-10, atol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("objective", SIGNED)
def test_weights_may_make_a_sum_negative(objective: str, library: Numbers) -> None:
    d, value = cd.grad(f"(w::RV, x::RV) -> {objective}"), SIGNED[objective]
    for each in (Numbers("numpy"), library):
        f = d.compile(each.name, value=True)
        for n in (1, 2, 3, 7):
            w, x = -np.linspace(0.5, 1.5, n), np.linspace(-1, 0.5, n)
            w[n // 2] *= -0.01 if n > 1 else 1
            found, *gradients = f(each.to(w), each.to(x))
            assert each.back(found) == pytest.approx(value(w, x), rel=1e-12)
            for gradient, expected in zip(gradients, differences(value, [w, x], 1e-5), strict=True):
                np.testing.assert_allclose(each.back(gradient), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["w(i)", "0 < w(i)", "0 < w(i) and w(i) < 0", "1 < 0"])
def test_where_nothing_takes_part_each_share_is_zero(mark: str, library: Numbers) -> None:
    text = f"(w::RV{{n}}, x::RV{{n}}) -> (k::N{{n}}) -> softmax(i, {mark}, x(i))(k)"
    shares, slopes = cd.simplified(text), cd.pullback(text.replace("(w::RV{n}, x", "(w::RV{n}) -> (x"))
    for each in (Numbers("numpy"), library):
        share, slope = shares.compile(each.name), slopes.compile(each.name)
        for n in (1, 2, 3, 7):
            w, x = np.zeros(n), np.linspace(-3, 3, n)
            assert not np.any(_everywhere(infer(parse(text)), [w, x], n))
            np.testing.assert_array_equal(each.back(share(each.to(w), each.to(x))), np.zeros(n))
            np.testing.assert_array_equal(each.back(slope(each.to(w), each.to(x), each.to(x))), np.zeros(n))


@pytest.mark.slow
def test_a_mixture_is_right_far_from_its_means() -> None:
    text = """(x::RV, a::RV) -> (m::RV, s::RV) -> begin
    p = (n, k) -> a(k) / s(k) * exp(-(x(n) - m(k))^2 / (2 * s(k)^2))
    -sum(n, log(sum(k, p(n, k))))
end"""
    x, a, m, s = np.array([0.0, 100.0]), np.array([0.3, 0.7]), np.array([-1.0, 2.0]), np.array([0.5, 1.5])
    value, of_m, of_s = cd.grad(text).compile(value=True)(x, a, m, s)
    with mpmath.workdps(5000):
        weights = [
            [mpmath.mpf(a[k]) / s[k] * mpmath.exp(-(mpmath.mpf(x[n] - m[k]) ** 2) / 2 / s[k] ** 2) for k in (0, 1)]
            for n in (0, 1)
        ]
        shares = [[w / sum(row) for w in row] for row in weights]
        expected = -sum(mpmath.log(sum(row)) for row in weights)
        slopes = [-sum(shares[n][k] * (x[n] - m[k]) / s[k] ** 2 for n in (0, 1)) for k in (0, 1)]
        widths = [sum(shares[n][k] * (1 / s[k] - (x[n] - m[k]) ** 2 / s[k] ** 3) for n in (0, 1)) for k in (0, 1)]
    np.testing.assert_allclose(value, float(expected), rtol=1e-13)
    np.testing.assert_allclose(of_m, [float(v) for v in slopes], rtol=1e-12)
    np.testing.assert_allclose(of_s, [float(v) for v in widths], rtol=1e-12)


WHOLE: dict[str, Callable[[np.ndarray], Any]] = {
    "maximum(i::N{n}, where(i <= 1, 1))": lambda i: np.where(i <= 1, 1, 0).max(),
    "minimum(i::N{n}, where(i <= 1, 1, 3) - 2)": lambda i: (np.where(i <= 1, 1, 3) - 2).min(),
    "logsumexp(i, indicator(i, 0, x(i)) / x(i))": lambda i: np.log(np.exp(np.where(i <= 0, 1, 0)).sum()),
    "softmax(i::N{n}, where(i <= 1, 1, 2))(0)": lambda i: np.exp(1) / np.exp(np.where(i <= 1, 1, 2)).sum(),
    "minimum(i::N{n}, 7)": lambda i: 7,
    "maximum((i::N{n}, j::N{n}), where(i <= 1, 7))": lambda i: 7,
    "logsumexp(i::N{n}, 0 <= i, 2)": lambda i: 2 + np.log(len(i)),
    "ties(i::N{n}, where(i <= 1, 2, 1))(0)": lambda i: 1 / min(len(i), 2),
}


@pytest.mark.sampled
@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("reduction", WHOLE)
def test_numbers_that_code_computes_as_integers_are_compared_with_infinity(reduction: str, n: int) -> None:
    f = cd.grad(f"(x::RV{{n}}) -> (a::R) -> a * {reduction}").compile(value=True)
    value, slope = f(np.ones(n), 2.0)
    assert slope == pytest.approx(WHOLE[reduction](np.arange(n))) and value == pytest.approx(2 * slope)


@pytest.mark.slow
@pytest.mark.parametrize("a", [2.0, -1.0])
def test_a_number_that_is_an_integer_in_one_case_is_compared_with_infinity(a: float) -> None:
    x = np.ones(3)
    weighted = cd.grad("(x::RV{n}) -> (a::R) -> logsumexp(i::N{n}, a^2, 1)").compile(value=True)
    np.testing.assert_allclose(weighted(x, a), (1 + np.log(3 * a * a), 2 / a))
    chosen = cd.grad("(x::RV{n}) -> (a::R) -> maximum(i::N{n}, 2 * where(a > 0, a) - 1)").compile(value=True)
    np.testing.assert_allclose(chosen(x, a), (2 * a - 1, 2) if a > 0 else (-1, 0))
    either = cd.grad("(x::RV{n}) -> (a::R) -> maximum(i::N{n}, where(a > 0, 3, a))").compile(value=True)
    np.testing.assert_allclose(either(x, a), (3, 0) if a > 0 else (a, 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "value"),
    [
        ("sum(i, softmax(j, S(i, j) * x(j))(i))", lambda S, x: np.trace(_shares(S * x, 1))),
        (
            "sum(k, x(k) * softmax((i, j), S(i, j) * x(i))(k, k))",
            lambda S, x: x @ np.diag(_shares(S * x[:, None], None)),
        ),
        ("prod(i, softmax(j, S(i, j) * x(j))(i))", lambda S, x: np.prod(np.diag(_shares(S * x, 1)))),
    ],
)
def test_shares_on_a_diagonal(objective: str, value: Callable[..., float]) -> None:
    d = cd.grad(f"(S::RM{{n, n}}) -> (x::RV{{n}}) -> {objective}")
    assert d.check()
    f = d.compile(value=True)
    for n in (1, 2, 3, 5, 7):
        S, x = np.random.default_rng(n).normal(size=(n, n)), np.linspace(-1, 1, n)
        step = 1e-6 * np.eye(n)
        slopes = [(value(S, x + h) - value(S, x - h)) / 2e-6 for h in step]
        found, gradient = f(S, x)
        np.testing.assert_allclose(found, value(S, x), rtol=1e-12)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)


def _shares(z: Any, axis: int | None) -> Any:
    e = np.exp(z - z.max())
    return e / e.sum(axis=axis, keepdims=True)


BELOW_ONE = {
    "a number in front": ("(x::RV) -> sum(i, log(1 - exp(-x(i))))", lambda x: np.log(1 - np.exp(-x)).sum()),
    "a free energy": (
        "(T::R) -> (x::RV) -> sum(i, x(i) / 2 + T * log(1 - exp(-x(i) / T)))",
        lambda T, x: (x / 2 + T * np.log(1 - np.exp(-x / T))).sum(),
    ),
    "a factor of either sign": (
        "(a::R) -> (x::RV) -> sum(i, log(1 + a * exp(-x(i))))",
        lambda a, x: np.log(1 + a * np.exp(-x)).sum(),
    ),
    "in front of a sum": (
        "(a::R) -> (x::RV) -> log(1 + a * sum(i, exp(-x(i) - 2)))",
        lambda a, x: np.log(1 + a * np.exp(-x - 2).sum()),
    ),
    "in a product": (
        "(a::R) -> (x::RV) -> log(1 + prod(i, a * exp(-x(i))))",
        lambda a, x: np.log(1 + np.prod(a * np.exp(-x))),
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", BELOW_ONE)
def test_the_logarithm_of_one_less_an_exponential_is_finite(name: str) -> None:
    program, value = BELOW_ONE[name]
    d = cd.grad(program)
    assert d.check()
    f = d.compile(value=True)
    for n in (1, 2, 3, 5):
        x = np.random.default_rng(n).uniform(0.5, 2, size=n)
        given = (0.7,) if "T::R" in program else (-0.6,) if "a::R" in program else ()
        found, gradient = f(*given, x)
        np.testing.assert_allclose(found, value(*given, x), rtol=1e-12)
        steps = [(value(*given, x + e) - value(*given, x - e)) / 2e-6 for e in 1e-6 * np.eye(n)]
        np.testing.assert_allclose(gradient, steps, rtol=1e-6, atol=1e-8)


def test_copies_of_a_written_out_definition_cancel_each_other() -> None:
    """The update of a Kalman filter: copies of S in S K K' have bound indices of their own."""
    text = "(P::RM{k, k}, r::R) -> (h::RV{k}) -> begin S = h' * P * h + exp(r); K = P * h / S; RESULT end"
    d = cd.grad(text.replace("RESULT", "sum((P - S * K * K').^2)"))
    printed = str(d)
    assert "S = " in printed and "K = " in printed and "exp(-r)" not in printed, printed
    assert d.check()


def test_a_logarithm_that_a_share_reads_keeps_its_name() -> None:
    """The inclusive values of a nested logit model."""
    text = (
        "(c::(N{J}) -> N{M}, V::RM{n, J}) -> (s::RV{M}) -> begin "
        "IV = (i, m) -> log(sum(j, c(j) == m, exp(V(i, j) / s(m)))); "
        "P = (i, m) -> exp(s(m) * IV(i, m)) / sum(l, exp(s(l) * IV(i, l))); "
        "sum((i, m), P(i, m) * s(m)) end"
    )
    d = cd.grad(text)
    printed = str(d)
    assert printed.count("logsumexp(") == 1 and "IV(i, l)" in printed, printed
    assert d.check()


def test_a_name_within_another_definition_is_not_read_outside() -> None:
    text = (
        "(x::RV) -> begin P = begin u = log(sum(j, exp(x(j)))); k -> exp(2 * u - x(k)) end; "
        "k -> P(k) / sum(i, P(i)) + exp(log(sum(j, exp(x(j)))) - x(k)) end"
    )
    assert cd.pullback(text).check()


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("y(argmax(i, exp(x(i))))", "argmax(x)"),
        ("y(argmin(i, i < 2, sigmoid(-x(i))))", "argmin(i, i < 2, -x(i))"),
        ("begin g = exp.(x); y(argmax(i, g(i) / sum(j, g(j)))) end", "argmax(x)"),
        ("begin p = softmax(x); y(argmax(p)) end", "argmax(x)"),
        ("y(argmax(i, 2 * exp(x(i))))", "argmax(x)"),
        ("y(argmax(i, -exp(x(i))))", "argmax(i, -exp(x(i)))"),
        ("y(argmax(i, y(i) * exp(x(i))))", "argmax(i, y(i) * exp(x(i)))"),
    ],
)
def test_the_place_of_the_largest_share_is_that_of_the_largest_score(text: str, made: str) -> None:
    d = cd.simplified(f"(x::RV, y::RV) -> {text}")
    assert str(d) == f"(x::RV, y::RV) -> y({made})"


def test_the_largest_of_exponentials_that_overflow_is_found() -> None:
    place = cd.simplified("(x::RV, y::RV) -> y(argmax(i, exp(x(i))))").compile()
    assert place(np.array([800.0, 1000.0, 900.0]), np.array([1.0, 2.0, 3.0])) == 2
