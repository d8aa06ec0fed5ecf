"""Names of a program and names of options: the program's come first, and an option of that name gets an underscore."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import combdiff as cd
from combdiff.command.cli import main
from combdiff.errors import ArrayError, UnsupportedError

OUT = "(out::RV) -> (x::RV) -> sum(i, out(i) * x(i)^2)"
A, X = np.array([1.0, 2.0]), np.array([3.0, 5.0])
WORDS = (
    "value",
    "hvp",
    "pack",
    "memory",
    "check",
    "backend",
    "out",
    "self",
    "wrt",
    "expand",
    "args",
    "named",
    "shapes",
)


def test_a_parameter_called_out_is_given_by_that_name() -> None:
    f = cd.grad(OUT).compile()
    assert np.allclose(f(out=A, x=X), 2 * A * X) and np.allclose(f(A, X), 2 * A * X)
    assert np.allclose(f(x=X, out=A), 2 * A * X)


def test_results_are_then_written_with_an_underscore() -> None:
    f, room = cd.grad(OUT).compile(), np.empty(2)
    for _ in range(2):  # the second call finds the function made
        assert f(out=A, x=X, out_=room) is room and np.allclose(room, 2 * A * X)
        room[:] = 0
        assert f(A, X, out_=room) is room and np.allclose(room, 2 * A * X)


def test_the_hessian_has_the_same_rule() -> None:
    f, room = cd.grad(OUT).compile(value=True, hvp=True), (np.empty(()), np.empty(2))
    value, gradient, hvp = f(out=A, x=X, out_=room)
    assert value is room[0] and gradient is room[1]
    assert np.allclose(value, A @ X**2) and np.allclose(gradient, 2 * A * X)
    assert np.allclose(hvp(X), 2 * A * X)


def test_the_underscore_is_taken_too() -> None:
    f, room = cd.grad("(out::R, out_::R) -> (x::RV) -> sum(i, out * out_ * x(i)^2)").compile(), np.empty(2)
    assert f(out=2.0, out_=3.0, x=X, out__=room) is room
    assert np.allclose(room, 12 * X)


def test_an_array_that_is_given_twice_is_told_what_fills_results() -> None:
    with pytest.raises(ArrayError, match="the argument out is given twice") as caught:
        cd.grad(OUT).compile()(A, X, out=np.empty(2))
    assert "out_= are the arrays to fill" in str(caught.value)


def test_another_library_has_the_same_rule() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    f = cd.grad(OUT).compile("jax")
    assert np.allclose(f(out=A, x=X), 2 * A * X)
    with pytest.raises(ArrayError, match="out= works with NumPy only"):
        f(out=A, x=X, out_=np.empty(2))


@pytest.mark.slow
@pytest.mark.parametrize("word", WORDS)
def test_any_word_names_an_array_wherever_arrays_are_named(word: str) -> None:
    d = cd.grad(f"({word}::RM) -> (x::RV) -> sum((i, j), {word}(i, j) * x(i)^2 * x(j))")
    M = np.arange(4.0).reshape(2, 2)
    expected = d.compile()(M, X)
    assert np.allclose(d.compile()(**{word: M, "x": X}), expected)
    assert str(d.plan(**{word: (40, 40), "x": (40,)})) == str(d.plan(x=(40,)))
    assert d.source(**{word: (40, 40)}) == d.source(x=(40,))
    assert "torch" in d.source("torch", **{word: (40, 40)})
    p = d.problem(**{word: M, "x": X})
    assert np.allclose(p.jac(p.x0), expected)


def test_an_unknown_may_have_such_a_name_too() -> None:
    p = cd.grad("(pack::RV) -> (check::RV) -> sum(i, pack(i) * check(i)^4)").problem(pack=A, check=X)
    assert np.allclose(p.jac(p.x0), 4 * A * X**3) and np.allclose(p.hessp(p.x0, X), 12 * A * X**3)


@pytest.mark.slow
def test_options_are_called_with_an_underscore_next_to_such_names() -> None:
    quadratic = "sum((i, j), value(i) * pack(i, j) * memory * x(i) * x(j))"
    d = cd.grad(f"(value::RV, pack::Sym, memory::R) -> (x::RV) -> {quadratic}")
    assert "def value_and_gradient" in d.source(value_=True)
    assert "def value_and_gradient" in d.source(value=(3,), value_=True, pack_="pack")
    assert "def pack_pack(pack)" in d.source(pack_="pack")
    assert str(d.plan(value_=True, memory_="1 MB", value=(9,))) == str(d.plan(value_=True, value=(9,)))
    data = {"value": A, "pack": np.eye(2), "memory": 2.0, "x": X}
    p = d.problem(**data, pack_="pack", check="full")
    assert np.allclose(p.jac(p.x0), d.compile()(**data))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.plan(value=True), "value= gives its value"),
        (lambda d: d.source(value=True), "value_=True"),
        (lambda d: d.plan(memory="2 GB"), "memory_='2 GB'"),
        (lambda d: d.plan(memory=100), "memory_=100"),
        (lambda d: d.source(pack="value"), "pack_='value'"),
        (lambda d: d.source(pack=("value",)), "pack_="),
        (lambda d: d.problem(check="full", x=X), "check_='full'"),
        (lambda d: d.problem(check=False, x=X), "check_=False"),
    ],
)
def test_what_can_only_be_an_option_is_told_its_name(call: object, message: str) -> None:
    product = "sum(i, value(i) * pack(i) * memory(i) * check(i) * x(i))"
    d = cd.grad(f"(value::RV, pack::RV, memory::RV, check::RV) -> (x::RV) -> {product}")
    with pytest.raises(UnsupportedError) as caught:
        call(d)  # type: ignore[operator]  # a call that is wrong
    assert message in str(caught.value)


def test_names_that_python_has_no_keyword_for_have_one() -> None:
    d = cd.grad("(lambda::RV, None::R) -> (x::RV) -> sum(i, lambda(i) * None * x(i)^2)")
    f = d.compile()
    assert np.allclose(f(lambda_=A, None_=2.0, x=X), 4 * A * X)
    assert np.allclose(f(**{"lambda": A, "None": 2.0}, x=X), 4 * A * X)
    assert str(d.plan(lambda_=(9,))) == str(d.plan(x=(9,)))
    p = d.problem(lambda_=A, None_=2.0, x=X)
    assert np.allclose(p.jac(p.x0), 4 * A * X)
    with pytest.raises(ArrayError, match=r"lambda \(as a keyword, lambda_=\)"):
        f(x=X)


def test_two_names_that_python_reads_as_one() -> None:
    f = cd.grad("(f::R, 𝐟::R) -> (x::RV) -> sum(i, (f + 2 * 𝐟) * x(i))").compile()
    assert np.allclose(f(1.0, 10.0, X), 21) and np.allclose(f(f=1.0, f2=10.0, x=X), 21)
    with pytest.raises(ArrayError, match=r"is not given 𝐟") as caught:
        f(f=1.0, x=X)
    assert "𝐟 (as a keyword, f2=)" in str(caught.value)


def test_the_command_line_takes_shapes_of_any_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "words.cd"
    program.write_text("(value::RM, memory::RV) -> (x::RV) -> sum((i, j), value(i, j) * memory(j) * x(i)^2)")
    assert main(["plan", str(program), "--shape", "value=30,20", "--memory", "1 MB"]) == 0
    assert "30" in capsys.readouterr().out
    assert main(["grad", str(program), "--format", "python", "--value", "--shape", "value=30,20"]) == 0
    assert "def value_and_gradient" in capsys.readouterr().out
    assert main(["plan", str(program), "--shape", "backend=3"]) == 2
    assert "there is no array called backend" in capsys.readouterr().err
