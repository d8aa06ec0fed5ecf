"""Whole tensors mean what NumPy makes of them, in values and in derivatives, and print as the index notation does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import combdiff as cd
from combdiff.terms.terms import alpha_equal

Arrays = Mapping[str, np.ndarray]

KINDS = {
    "A": "RM{n, m}", "B": "RM{m, n}", "S": "RM{n, n}", "x": "RV{n}", "y": "RV{n}", "v": "RV{m}",
    "Z": "CM{n, n}", "z": "CV{n}", "w": "CV{n}", "T": "(N{n}, N{m}, N{n}) -> R",
}  # fmt: skip
SHAPES = {"A": "nm", "B": "mn", "S": "nn", "x": "n", "y": "n", "v": "m", "Z": "nn", "z": "n", "w": "n", "T": "nmn"}

VALUES: dict[str, Callable[[Arrays], object]] = {
    "A * v": lambda a: a["A"] @ a["v"],
    "A * B": lambda a: a["A"] @ a["B"],
    "A * B * x": lambda a: a["A"] @ a["B"] @ a["x"],
    "x' * A * v": lambda a: a["x"] @ a["A"] @ a["v"],
    "(x' * A)'": lambda a: a["A"].T @ a["x"],
    "z' * Z * w": lambda a: a["z"].conj() @ a["Z"] @ a["w"],
    "(Z * z)'  * w": lambda a: (a["Z"] @ a["z"]).conj() @ a["w"],
    "Z'": lambda a: a["Z"].conj().T,
    "transpose(Z)": lambda a: a["Z"].T,
    "(Z')'": lambda a: a["Z"],
    "(z')'": lambda a: a["z"],
    "x * y'": lambda a: np.outer(a["x"], a["y"]),
    "z * w'": lambda a: np.outer(a["z"], a["w"].conj()),
    "dot(z, w)": lambda a: np.vdot(a["z"], a["w"]),
    "tr(Z)": lambda a: np.trace(a["Z"]),
    "tr(A * B)": lambda a: np.trace(a["A"] @ a["B"]),
    "diag(S)": lambda a: np.diag(a["S"]),
    "Diagonal(x) * A": lambda a: np.diag(a["x"]) @ a["A"],
    "S + 2 * I": lambda a: a["S"] + 2 * np.eye(len(a["S"])),
    "I - S": lambda a: np.eye(len(a["S"])) - a["S"],
    "(2 * I) * A": lambda a: 2 * a["A"],
    "-A / 2 + 3 * B'": lambda a: -a["A"] / 2 + 3 * a["B"].T,
    "S^3": lambda a: a["S"] @ a["S"] @ a["S"],
    "S \\ x": lambda a: np.linalg.solve(a["S"], a["x"]),
    "S \\ A": lambda a: np.linalg.solve(a["S"], a["A"]),
    "inv(S) * x": lambda a: np.linalg.solve(a["S"], a["x"]),
    "sum(A)": lambda a: a["A"].sum(),
    "sum(T)": lambda a: a["T"].sum(),
    "sum(x')": lambda a: a["x"].sum(),
    "A .+ 1": lambda a: a["A"] + 1,
    "1 .- A": lambda a: 1 - a["A"],
    "2 .* x": lambda a: 2 * a["x"],
    "2.*x": lambda a: 2 * a["x"],
    "x .* A": lambda a: a["x"][:, None] * a["A"],
    "A .* v'": lambda a: a["A"] * a["v"],
    "x .+ v'": lambda a: a["x"][:, None] + a["v"],
    "(x' .* y')'": lambda a: a["x"] * a["y"],
    "A ./ (2 .+ A .^ 2)": lambda a: a["A"] / (2 + a["A"] ** 2),
    "x .* T": lambda a: a["x"][:, None, None] * a["T"],
    "exp.(A)": lambda a: np.exp(a["A"]),
    "max.(x, y)": lambda a: np.maximum(a["x"], a["y"]),
    "atan2.(x, 3)": lambda a: np.arctan2(a["x"], 3),
    "((t::R) -> t^2 + 1).(A)": lambda a: a["A"] ** 2 + 1,
    "begin; f = (t::R) -> t^3; f.(x) end": lambda a: a["x"] ** 3,
    "norm(S * x - y)": lambda a: np.linalg.norm(a["S"] @ a["x"] - a["y"]),
    "(exp.(A))(0, 0) + A'(0, 0)": lambda a: np.exp(a["A"][0, 0]) + a["A"][0, 0],
    "x(0) * A": lambda a: a["x"][0] * a["A"],
    "begin; I = 3; I * x end": lambda a: 3 * a["x"],
    "det(S + I)": lambda a: np.linalg.det(a["S"] + np.eye(len(a["S"]))),
}


def used(text: str) -> list[str]:
    import re

    words = re.findall(r"\w+", text)
    return [name for name in KINDS if name in words]


def program(text: str) -> str:
    return f"({', '.join(f'{name}::{KINDS[name]}' for name in used(text))}) -> {text}"


def arrays(names: list[str], n: int, m: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng((n, m))
    found = {}
    for name, letters in SHAPES.items():
        shape = [n if letter == "n" else m for letter in letters]
        x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if KINDS[name].startswith("C") else 0)
        found[name] = x + 3 * np.eye(n) if name == "S" else x
    return {name: found[name] for name in names}


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (3, 2), (5, 7)])
@pytest.mark.parametrize("text", VALUES)
def test_the_value_is_that_of_numpy(text: str, n: int, m: int) -> None:
    given = arrays(used(text), n, m)
    found = cd.simplified(program(text)).compile()(*given.values())
    wanted = np.asarray(VALUES[text](given))
    assert np.shape(found) == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("text", VALUES)
def test_derivatives_pass_their_check(text: str) -> None:
    assert cd.pullback(program(text)).check()


PAIRS = {
    "(A::RM) -> (x::RV) -> x' * A * x": "(A::RM) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))",
    "(A::Her) -> (z::CV) -> z' * A * z": "(A::Her) -> (z::CV) -> sum((i, j), z(i)' * A(i, j) * z(j))",
    "(X::RM, y::RV) -> (w::RV) -> norm(X * w - y)^2": "(X::RM, y::RV) -> (w::RV) -> "
    "sum(i, (sum(j, X(i, j) * w(j)) - y(i))^2)",
    "(X::RM) -> tr(X' * X)": "(X::RM) -> sum((i, j), X(i, j)^2)",
    "(x::RV) -> sum(exp.(x) .* x)": "(x::RV) -> sum(i, exp(x(i)) * x(i))",
}


@pytest.mark.parametrize("text", PAIRS)
def test_a_gradient_is_that_of_the_index_notation(text: str) -> None:
    assert alpha_equal(cd.grad(text).term, cd.grad(PAIRS[text]).term) or str(cd.grad(text)) == str(cd.grad(PAIRS[text]))


MATRIX_FORMS = {
    "(X::RM, y::RV) -> (w::RV) -> norm(X * w - y)^2 / 2": "Xᵀ (X w - y)",
    "(A::Sym) -> (x::RV) -> x' * A * x": "2 A x",
    "(a::RV, b::RV) -> (X::RM) -> a' * (X \\ b)": "-X⁻ᵀ a bᵀ X⁻ᵀ",
    "(A::RM, B::RM) -> (X::RM) -> tr(A * X' * B)": "B A",
    "(A::RM) -> (X::RM) -> tr(X' * A * X)": "(A + Aᵀ) X",
    "(y::RV, X::RM) -> (w::RV) -> sum(log.(1 .+ exp.(-y .* (X * w))))": "-Xᵀ (y ∘ sigmoid(-y ∘ (X w)))",
}


@pytest.mark.parametrize("text", MATRIX_FORMS)
def test_matrix_form_is_what_one_writes(text: str) -> None:
    assert cd.grad(text).matrix_text() == MATRIX_FORMS[text]
