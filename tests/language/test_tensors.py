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
    "transpose(z) * w": lambda a: a["z"] @ a["w"],
    "z * transpose(w)": lambda a: np.outer(a["z"], a["w"]),
    "transpose(z) * Z * w": lambda a: a["z"] @ a["Z"] @ a["w"],
    "transpose(transpose(2 * z) * Z)": lambda a: 2 * a["Z"].T @ a["z"],
    "S + transpose(2 * I)": lambda a: a["S"] + 2 * np.eye(len(a["S"])),
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
    "A .< x": lambda a: a["A"] < a["x"][:, None],
    "A .>= v'": lambda a: a["A"] >= a["v"],
    "2.<x": lambda a: a["x"] > 2,
    "(0 .≤ x .< 1) .* y": lambda a: (a["x"] >= 0) * (a["x"] < 1) * a["y"],
    "where.(A .!= 0, A, x)": lambda a: a["A"],
    "where.(x .< y, exp.(x), A)": lambda a: np.where((a["x"] < a["y"])[:, None], np.exp(a["x"])[:, None], a["A"]),
    "where.(not A .< 0 and A .< x, log.(1 .+ A), v')": lambda a: np.where(
        (a["A"] >= 0) & (a["A"] < a["x"][:, None]), np.log(np.maximum(a["A"], 0) + 1), a["v"]
    ),
    "where.(x .> 0 or y .== 0, x)": lambda a: np.where(a["x"] > 0, a["x"], 0),
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


@pytest.mark.sampled
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
    "(X::RM) -> mean(X .^ 2)": "(X::RM) -> mean((i, j), X(i, j)^2)",
    "(y::RV) -> (x::RV) -> y' * softmax(x)": "(y::RV) -> (x::RV) -> sum(k, y(k) * softmax(i, x(i))(k))",
    "(A::RM, x::RV) -> logsumexp(A * x)": "(A::RM, x::RV) -> logsumexp(i, sum(j, A(i, j) * x(j)))",
    "(X::RM) -> maximum(X) + minimum(abs.(X))": "(X::RM) -> maximum((i, j), X(i, j)) + minimum((i, j), abs(X(i, j)))",
    "(x::CV) -> abs2(prod(x))": "(x::CV) -> abs2(prod(i, x(i)))",
    "(x::RV) -> sum(cumsum(x .^ 2))": "(x::RV) -> sum(k, cumsum(i, x(i)^2)(k))",
    "(x::RV) -> x(argmax(x))^2": "(x::RV) -> x(argmax(i, x(i)))^2",
}


@pytest.mark.sampled
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


@pytest.mark.sampled
@pytest.mark.parametrize("text", MATRIX_FORMS)
def test_matrix_form_is_what_one_writes(text: str) -> None:
    assert cd.grad(text).matrix_text() == MATRIX_FORMS[text]


WRONG = {
    "(x::RV, y::RV) -> x'y": ("found the name 'y'", "x' * y"),
    "(A::RM) -> tr(A) I": ("found the name 'I'", "a product with *"),
    "(A::RM) -> sum((i, j) A(i, j))": ("found the name 'A'", "write the indices, then the summand"),
    "(x::RV) -> sum(i x(i)^2)": ("found the name 'x'", "write the indices, then the summand"),
    "(A::RM{n, m}) -> sum(A + I)": ("slot 2 of A ranges over", "one size"),
    "(A::RM) -> I": ("unknown name I", "add I to a matrix"),
    "(A::RM) -> tr(I)": ("unknown name I", "add I to a matrix"),
    "(A::RM) -> sum(I)": ("nothing tells the size of the unit matrix I", "add I to a matrix"),
    "(x::RV) -> sum(2 * I)": ("nothing tells the size of the unit matrix I", "I(i, j)"),
    "(A::RM) -> sum(A.')": ("not a character", "transpose(A)"),
    "(x::RV) -> sum(where(x .< 0, x, 0))": ("a condition on every entry", "where.(x .< y, a, b)"),
    "(x::RV) -> sum(where.(x < 0, x, 0))": ("tensors are compared", "write .<"),
    "(x::RV) -> sum(where.(x, x, 0))": ("a condition is expected", "where.(x .< y, a, b)"),
    "(x::RV) -> sum(where.(x .< 0 < 1, x, 0))": ("found '<'", "a comparison stands in"),
    "(x::RV) -> sum(where.(x .< 0, x, 0, 0))": ("4 are given", "where(c, a, b)"),
    "(z::CV) -> sum(z .< 0)": ("a complex value cannot be compared", "real("),
    "(x::RV{n}, y::RV{m}) -> sum(x .< y)": ("slot 1 of y ranges over N{m}", "one size"),
    "(x::RV) -> sum(exp.x)": ("not a character", "exp.(x)"),
    "(x::RV) -> sum(exp. (x))": ("not a character", "exp.(x)"),
    "(tr::RM) -> tr(tr)": ("tr takes 2 indices", "it hides the function tr"),
    "(det::R, A::RM) -> det(A)": ("det is a real number", "it hides another det"),
    "(A::RM) -> begin\n  y = A\n  .* A\n  sum(y)\nend": ("found '.*'", "end the line above"),
    "(A::RM, x::RV) -> begin\n  y = A\n  \\ x\n  sum(y)\nend": ("found", "end the line above"),
    "(x::RV) -> x * x": ("no product of two vectors", "x' * y"),
    "(x::RV) -> x'": ("a row has a meaning only within a product", "x' * y"),
    "(x::RV) -> sum(1 + x)": ("a number is added to a tensor", ".+"),
    "(A::RM) -> sum(exp(A))": ("not a number", "exp.(A)"),
    "(x::R) -> mean(x)": ("a tensor or a map of indices, found a real number", "mean(x)"),
    "(f::RF) -> mean(f)": ("a tensor or a map of indices, found a map", "mean(x)"),
    "(z::CV) -> maximum(z)": ("complex numbers have no order", "abs(…)"),
    "(A::RM) -> sum(cumsum(A))": ("cumsum runs over one index", "cumsum(i, x(i))"),
    "(A::RM) -> argmax(A) * A(0, 0)": ("run over one index", "argmax(j, A(i, j))"),
    "(A::RM) -> tr(A^-1)": ("a whole number from 1", "inv(A)"),
    "(A::RM) -> sum(A / A)": ("divided by something that is not a number", "./"),
    "(T::(N, N, N) -> R) -> sum(T')": ("a tensor with 3 indices has no adjoint", "another order"),
    "(x::RV, A::RM) -> sum(x \\ A)": ("a system has a matrix", "A \\ b"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_with_a_remedy(text: str) -> None:
    with pytest.raises(cd.CombDiffError) as error:
        cd.grad(text)
    message, _, remedy = str(error.value).partition("remedy: ")
    assert WRONG[text][0] in message and WRONG[text][1] in remedy


ODD = {
    "(x::RV) -> x' * x * x' * x": "4 ‖x‖^2 x",
    "(A::RM) -> (x::RV) -> sum(x' * x * A)": "2 (𝟏ᵀ A 𝟏) x",
    "(A::RM, x::RV) -> (y::RV) -> x' * A * y * y' * x": "(xᵀ y) Aᵀ x + (xᵀ A y) x",
    "(A::RM{n, n}) -> sum((i, j), I(i, j) * A(i, j))": "𝐈",
    "(I::RV) -> (x::RV) -> I' * x": "I",
    "(x::RV) -> sum(1.e3.*x)": "1000 𝟏",
    "(x::RV) -> sum(2. .* x.^2.)": "4 x",
    "(x::RV) -> sum(exp .(x))": "exp(x)",
    "(A::RM) -> sum(A'''.^2)": "2 A",
    "(A::RM) -> tr(inv(inv(A)))": "𝐈",
    "(A::RM) -> tr(inv(inv(A)') * A)": "2 A",
    "(A::RM, B::RM) -> (x::RV) -> sum(A \\ (B \\ x))": "B⁻ᵀ A⁻ᵀ 𝟏",
    "(A::RM) -> (x::RV) -> sum(A .+ x)": "m 𝟏\nwhere A ∈ ℝ^(n×m), x ∈ ℝ^n",
    "(A::RM) -> (x::RV) -> sum((A * x .< 0) .* x)": "[A x < 0]\nwhere [X ≤ Y] is 1 where it holds and 0 elsewhere",
    "(x::RV) -> sum(i, x(i) .< 0, x(i))": "[x < 0]\nwhere [X ≤ Y] is 1 where it holds and 0 elsewhere",
    "(A::RM) -> (x::RV) -> begin\n  y = A *\n  x .*\n  x\n  sum(y)\nend": "(Aᵀ + A) x",
}


@pytest.mark.parametrize("text", ODD)
def test_odd_programs_mean_what_they_say(text: str) -> None:
    assert cd.grad(text).matrix_text() == ODD[text]


SINGLE = """@domain One begin base = I; lower = 0; upper = 0 end
@space Column begin type = (N{n}, One) -> R end
@space Line begin type = (One, N{m}) -> R end
(b::Column, c::Line, A::RM{n, m}, x::RV{n}) -> """
WRITTEN_1 = "(b::RM{n, 1}, c::RM{1, m}, A::RM{n, m}, x::RV{n}) -> "
REPEATED: dict[str, Callable[[Arrays], object]] = {
    "A .* b": lambda a: a["A"] * a["b"],
    "exp.(A .+ b .* c)": lambda a: np.exp(a["A"] + a["b"] * a["c"]),
    "b ./ (1 .+ b .^ 2)": lambda a: a["b"] / (1 + a["b"] ** 2),
    "where.(A .< b, A, c)": lambda a: np.where(a["A"] < a["b"], a["A"], a["c"]),
    "x .+ c": lambda a: a["x"][:, None] + a["c"],
    "x' .* b": lambda a: a["x"] * a["b"],
    "A' * (x .* b)": lambda a: a["A"].T @ (a["x"][:, None] * a["b"]),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (3, 1)])
@pytest.mark.parametrize("text", REPEATED)
@pytest.mark.parametrize("parameters", [SINGLE, WRITTEN_1])
def test_an_axis_of_size_1_is_repeated(parameters: str, text: str, n: int, m: int) -> None:
    rng = np.random.default_rng((n, m))
    shapes = {"b": (n, 1), "c": (1, m), "A": (n, m), "x": (n,)}
    given = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    d = cd.simplified(parameters + text)
    wanted = REPEATED[text](given)
    np.testing.assert_allclose(d.compile()(**given), wanted, rtol=1e-12)
    assert np.shape(d.compile()(**given)) == np.shape(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("text", REPEATED)
@pytest.mark.parametrize("parameters", [SINGLE, WRITTEN_1])
def test_what_is_repeated_has_its_derivatives(parameters: str, text: str) -> None:
    assert cd.pullback(parameters + text).check()


def test_a_column_has_the_matrix_form_of_a_vector() -> None:
    d = cd.grad("(A::RM{n, m}, b::RM{n, 1}) -> (x::RM{m, 1}) -> norm(A * x - b)^2")
    assert d.matrix_text() == "2 Aᵀ (A x - b)" and d.check()


def test_a_backslash_is_taken_from_the_left() -> None:
    """As in Julia: A \\ B \\ x is (A \\ B) \\ x."""
    given = arrays(["S", "Z", "x"], 3, 3)
    S, Z, x = given["S"], given["Z"], given["x"]
    found = cd.simplified("(S::RM, Z::CM, x::RV) -> S \\ Z \\ x").compile()(S, Z, x)
    np.testing.assert_allclose(found, np.linalg.solve(np.linalg.solve(S, Z), x), rtol=1e-10)


@pytest.mark.sampled
@pytest.mark.parametrize("text", ["tr(S)", "det(S)", "sum(exp.(S))", "x' * S * x", "norm(S * x)", "sum(S \\ x)"])
def test_nothing_is_a_size_too(text: str) -> None:
    given = [np.zeros((0,) * len(SHAPES[name])) for name in used(text)]
    value, *gradients = cd.grad(program(text)).compile(value=True)(*given)
    assert value == (1 if text == "det(S)" else 0)
    assert [np.shape(g) for g in gradients] == [x.shape for x in given]
