"""Functions that are made of others mean what they mean in NumPy, SciPy and JAX, and can be hidden by a program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import combdiff as cd
from combdiff.errors import LanguageError
from combdiff.language.vocabulary import MADE

X = np.array([-2.3, -0.7, 0.4, 1.6, 3.1])
Y = np.array([0.9, 1.4, -0.6, 2.5, 0.3])
POSITIVE = np.array([0.1, 0.35, 0.5, 0.62, 0.93])

OF_NUMBERS = {
    "sec": (lambda x: 1 / np.cos(x), X),
    "csc": (lambda x: 1 / np.sin(x), X),
    "cot": (lambda x: 1 / np.tan(x), X),
    "sech": (lambda x: 1 / np.cosh(x), X),
    "csch": (lambda x: 1 / np.sinh(x), X),
    "coth": (lambda x: 1 / np.tanh(x), X),
    "exp2": (np.exp2, X),
    "exp10": (lambda x: 10.0**x, X),
    "square": (np.square, X),
    "reciprocal": (np.reciprocal, X),
    "deg2rad": (np.deg2rad, X),
    "rad2deg": (np.rad2deg, X),
    "logcosh": (lambda x: np.log(np.cosh(x)), X),
    "hardtanh": (lambda x: np.clip(x, -1, 1), X),
    "trunc": (np.trunc, X),
    "factorial": (lambda x: special.gamma(x + 1), X),
    "trigamma": (lambda x: special.polygamma(1, x), X),
    "cbrt": (np.cbrt, X),
    "mod": (np.mod, X, Y),
    "logit": (special.logit, POSITIVE),
    "logaddexp": (np.logaddexp, X, Y),
    "logsigmoid": (special.log_expit, X),
    "normpdf": (stats.norm.pdf, X),
    "normcdf": (special.ndtr, X),
    "silu": (lambda x: x * special.expit(x), X),
    "swish": (lambda x: x * special.expit(x), X),
    "gelu": (lambda x: x * special.ndtr(x), X),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), X),
    "softsign": (lambda x: x / (1 + np.abs(x)), X),
    "mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), X),
    "lbeta": (special.betaln, POSITIVE, 1 + POSITIVE[::-1]),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_function_of_numbers_has_its_value_and_slope(name: str) -> None:
    of, *given = OF_NUMBERS[name]
    params = ("x::RV{n}", "y::RV{n}")[: len(given)]
    entries = ("x(i)", "y(i)")[: len(given)]
    d = cd.grad(f"({', '.join(params)}) -> sum(i, {name}({', '.join(entries)}))")
    value, *slopes = d.compile(value=True)(*given)
    assert np.isclose(value, of(*given).sum(), rtol=1e-13)
    for n, slope in enumerate(slopes):
        moved = [[g + sign * 1e-6 * (m == n) for m, g in enumerate(given)] for sign in (1, -1)]
        assert np.allclose(slope, (of(*moved[0]) - of(*moved[1])) / 2e-6, rtol=2e-8, atol=1e-9)


def test_a_function_takes_entries_with_a_dot() -> None:
    f = cd.grad("(x::RV, y::RV) -> sum(logaddexp.(x, y) .* silu.(x))").compile(value=True)
    assert np.isclose(f(X, Y)[0], (np.logaddexp(X, Y) * X * special.expit(X)).sum())


@pytest.mark.parametrize(
    "program, of",
    [
        ("sum((i, j), B(i, j) * triu(A)(i, j))", lambda A, B: (B * np.triu(A)).sum()),
        ("sum(B .* tril(A))", lambda A, B: (B * np.tril(A)).sum()),
        ("tr(outer(i -> A(i, 0), i -> B(i, 1)) * A')", lambda A, B: A[:, 0] @ A @ B[:, 1]),
        ("cor(i -> A(i, 0), i -> B(1, i))", lambda A, B: np.corrcoef(A[:, 0], B[1])[0, 1]),
        ("length(j -> A(0, j)) * A(0, 0)", lambda A, B: 3 * A[0, 0]),
        (
            "real(sum(abs2.(fft(j -> A(1, j))) .* ifft(j -> B(0, j))))",
            lambda A, B: (np.abs(np.fft.fft(A[1])) ** 2 * np.fft.ifft(B[0])).sum().real,
        ),
    ],
)
def test_a_function_of_tensors_has_its_value_and_slope(program: str, of) -> None:
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=(2, 3, 3))
    d = cd.grad(f"(A::RM, B::RM) -> {program}")
    assert d.check()
    assert np.isclose(d.compile(value=True)(A=A, B=B)[0], of(A, B), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_transforms_are_those_of_numpy(n: int) -> None:
    rng = np.random.default_rng(n)
    z = rng.normal(size=n) + 1j * rng.normal(size=n)
    for name in ("fft", "ifft"):
        found = cd.simplified(f"(z::CV) -> k -> {name}(z)(k)").compile()(z=z)
        assert np.allclose(found, getattr(np.fft, name)(z), rtol=1e-13, atol=1e-13)


def test_every_function_has_been_compared() -> None:
    assert MADE.keys() == {*OF_NUMBERS, "cis", "triu", "tril", "outer", "cor"}


def test_a_function_takes_complex_numbers_where_it_is_defined_there() -> None:
    z = np.array([0.3 - 0.7j, -1.1 + 0.2j])
    of = {"sec": np.cos, "csc": np.sin, "cot": np.tan, "sech": np.cosh, "csch": np.sinh, "coth": np.tanh}
    for name, under in of.items():
        d = cd.grad(f"(z::CV) -> sum(i, abs2({name}(z(i))))")
        assert d.check()
        assert np.isclose(d.compile(value=True)(z)[0], (abs(1 / under(z)) ** 2).sum())
    assert str(cd.grad("(t::R, z::C) -> abs2(z - cis(t))")).endswith(
        "(-2 * imag(z * exp(-im * t)), 2 * (z - exp(im * t)))"
    )


def test_large_arguments_keep_their_digits() -> None:
    f = cd.grad("(x::R, y::R) -> logaddexp(x, y) + logsigmoid(x) + softsign(x)").compile(value=True)
    value, by_x, by_y = f(-1000.0, -1001.0)
    assert np.isclose(value, np.logaddexp(-1000, -1001) - 1000 - 1000 / 1001, rtol=1e-14)
    assert np.isclose(by_y, special.expit(-1.0), rtol=1e-13) and np.isfinite(by_x)


def test_a_program_may_define_a_function_of_the_same_name() -> None:
    assert str(cd.grad("(x::RV) -> begin; gelu = i -> x(i)^2; sum(gelu); end")) == "(x::RV) -> i -> 2 * x(i)"
    assert str(cd.grad("(silu::R) -> silu^2")) == "(silu::R) -> 2 * silu"


@pytest.mark.parametrize(
    "program, column, message",
    [
        ("(x::RV) -> sum(i, mod(x(i)))", 19, "mod takes 2 arguments, and 1 is given"),
        ("(x::RV) -> silu(x)(0)", 17, "x is a real tensor with 1 index, not a number"),
        ("(x::RV) -> triu(x)(0, 0)", 12, "triu is A -> (i, j) -> where(i <= j, A(i, j)), where A takes 1 index"),
        ("(x::R) -> triu(x)(0, 0)", 16, "triu takes a vector or a matrix, found a real number"),
        ("(A::RM) -> sum(fft(A))", 20, "fft takes a vector"),
        ("(z::C) -> gelu(z)", 16, "a real value is needed here"),
    ],
)
def test_messages_point_at_the_call(program: str, column: int, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        cd.grad(program)
    assert message in caught.value.message
    assert caught.value.span is not None and caught.value.span.column == column
    assert caught.value.remedy
