"""Jacobians and Hessians: shapes, pairs of complex variables, structure, and agreement with differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import combdiff as cd
from combdiff.arrays.lower.signature import result_of
from combdiff.calculus.markers import MODES
from combdiff.errors import CombDiffError
from combdiff.terms.terms import Call, Term, Traverser, call
from combdiff.terms.types import Map

SIZES = (1, 2, 3, 5, 7)
Array = npt.NDArray[np.complex128]

MAPS = {
    "linear": ("(A::CM{n, n}) -> (x::CV{n}) -> (i::N) -> sum(j, A(i, j) * x(j))", lambda A, x: A @ x),
    "conjugated": ("(A::CM{n, n}) -> (x::CV{n}) -> (i::N) -> sum(j, A(i, j) * x(j)')", lambda A, x: A @ x.conj()),
    "absolute": ("(A::CM{n, n}) -> (x::CV{n}) -> (i::N) -> abs(sum(j, A(i, j) * x(j)))", lambda A, x: np.abs(A @ x)),
    "phase": ("(A::CM{n, n}) -> (x::CV{n}) -> (i::N) -> sign(x(i)) * A(i, i)", lambda A, x: x / np.abs(x) * np.diag(A)),
    "real part": (
        "(A::CM{n, n}) -> (x::CV{n}) -> (i::N) -> real(sum(j, A(i, j) * x(j))^2)",
        lambda A, x: ((A @ x) ** 2).real,
    ),
    "energy": ("(A::CM{n, n}) -> (x::CV{n}) -> sum((i, j), x(i)' * A(i, j) * x(j))", lambda A, x: x.conj() @ A @ x),
    "shared": (
        """(A::CM{n, n}) -> (x::CV{n}) -> begin
             h = i -> sum(j, A(i, j) * x(j)')
             s = sum(i, abs2(h(i)))
             i -> exp(h(i) / (1 + s)) * x(i)
           end""",
        lambda A, x: np.exp(A @ x.conj() / (1 + np.sum(np.abs(A @ x.conj()) ** 2))) * x,
    ),
    "outer": (
        "(A::CM{n, n}) -> (x::CV{n}) -> (i::N, j::N) -> x(i)' * x(j) * A(i, j)",
        lambda A, x: np.outer(x.conj(), x) * A,
    ),
}


def _along(f: Callable[[Array], Array], x: Array, k: Array) -> Array:
    h = 1e-3
    return np.asarray((8 * (f(x + h * k) - f(x - h * k)) - f(x + 2 * h * k) + f(x - 2 * h * k)) / (12 * h))


@pytest.mark.sampled
@pytest.mark.parametrize("name", MAPS)
def test_the_pair_of_a_complex_variable_gives_every_slope(name: str) -> None:
    text, f = MAPS[name]
    compiled = cd.jacobian(text).compile()
    rng = np.random.default_rng(1)
    for n in SIZES:
        A, x, k = (rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in ((n, n), n, n))
        found = compiled(A, x)
        first, second = found if isinstance(found, tuple) else (found, np.zeros_like(found))
        expected = _along(lambda x, A=A: f(A, x), x, k)
        assert first.shape == (*expected.shape, n)
        assert np.allclose(first @ k + second @ k.conj(), expected, atol=1e-8)


@pytest.mark.slow
def test_the_second_of_the_pair_is_left_out_only_where_it_is_zero() -> None:
    A, x = np.array([[1.0 + 1j, 2.0], [0.5, -1j]]), np.array([0.3 - 1j, 2.0 + 0.5j])
    assert [name for name, (text, _) in MAPS.items() if not isinstance(cd.jacobian(text).compile()(A, x), tuple)] == [
        "linear"
    ]
    assert str(cd.jacobian("(z::C) -> z^2 + exp(z)")) == "(z::C) -> 2 * z + exp(z)"
    assert str(cd.jacobian("(z::C) -> z'")) == "(z::C) -> (0, 1)"


SOME_HOLOMORPHIC = {
    "in the first": "(z::CV{n}, w::CV{n}) -> (i::N) -> z(i)^2 * w(i)'",
    "in the second": "(z::CV{n}, w::CV{n}) -> (i::N) -> z(i)' * w(i)^2",
    "in one result": "(z::CV{n}, w::CV{n}) -> ((i -> z(i) * w(i)), sum(i, abs2(z(i)) * w(i)))",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", SOME_HOLOMORPHIC)
def test_the_places_of_several_pairs_do_not_depend_on_which_of_them_are_zero(name: str) -> None:
    d = cd.jacobian(SOME_HOLOMORPHIC[name])
    f, value = d.compile(), cd.simplified(SOME_HOLOMORPHIC[name]).compile()
    rng = np.random.default_rng(4)
    for n in SIZES:
        z, w, k, h = (rng.standard_normal(n) + 1j * rng.standard_normal(n) for _ in range(4))

        def along(t: Array, number: int, z: Array = z, w: Array = w, k: Array = k, h: Array = h) -> Array:
            found = value(z + t * k, w + t * h)
            return np.asarray(found[number] if isinstance(found, tuple) else found)

        blocks = iter(f(z, w))
        for number, (zz, zc, wz, wc) in enumerate(zip(blocks, blocks, blocks, blocks, strict=True)):
            slope = _along(lambda t, m=number, along=along: along(t, m), np.zeros(()), np.ones(()))
            assert np.allclose(zz @ k + zc @ k.conj() + wz @ h + wc @ h.conj(), slope, atol=1e-7)
    assert d.check()


def test_left_hand_sides_and_rows_are_those_of_the_pair() -> None:
    d = cd.jacobian("(z::CM, w::C) -> (i::N) -> sum(j, z(i, j)) * w'")
    lefts = [line.split("&=")[0] for line in d.latex(style="paper").splitlines() if "frac{" in line]
    assert [left.split("partial ")[-1].strip(" }") for left in lefts] == ["z_{kj", "z_{kj}^{*", "w", "w^{*"]
    blocks = d.compile(structured=True)(np.ones((2, 3)) + 0j, 1j)
    assert [b.scipy().shape for b in blocks] == [(2, 6), (2, 6), (2, 1), (2, 1)]


def test_what_turns_out_to_be_zero_when_it_is_simplified_is_left_out_too() -> None:
    d = cd.jacobian("(x::CV{n}) -> (i::N) -> x(i)^2 + sum((j, k), x(j)' * x(k) - x(k)' * x(j))")
    x = np.array([1.0 + 1j, 2.0, -1j])
    assert np.allclose(d.compile()(x), np.diag(2 * x))


def test_a_real_variable_has_one_jacobian_of_a_complex_value() -> None:
    d = cd.jacobian("(c::CV) -> (t::R) -> (i::N) -> exp(im * t * c(i)) + t")
    c = np.array([1.0 + 1j, -0.5j, 2.0])
    assert np.allclose(d.compile()(c, 0.3), 1j * c * np.exp(0.3j * c) + 1)
    # fewer slots of the value: in reverse
    e = cd.jacobian("(c::CV) -> (t::RV) -> sum(i, exp(im * t(i) * c(i)))")
    t = np.array([0.1, -0.4, 0.2])
    assert np.allclose(e.compile()(c, t), 1j * c * np.exp(1j * c * t))


def test_results_stand_first_and_unknowns_within_them() -> None:
    d = cd.jacobian("(a::RV) -> (x::RV, s::R) -> (s * sum(i, x(i)), (i -> a(i) * x(i)^2 * s))")
    a, x = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])
    found = d.compile()(a, x, 0.7)
    expected = (np.full(3, 0.7), x.sum(), np.diag(2 * a * x * 0.7), a * x**2)
    assert len(found) == 4 and all(np.allclose(f, e) for f, e in zip(found, expected, strict=True))
    assert d.check()


def test_a_map_of_a_matrix_has_its_slots_behind() -> None:
    d = cd.jacobian("(x::RV) -> (A::RM) -> (i::N) -> sum(j, A(i, j) * x(j))")
    x = np.array([1.0, 2.0])
    assert np.allclose(d.compile()(x, np.zeros((3, 2))), np.einsum("ik,j->ikj", np.eye(3), x))


@pytest.mark.slow
def test_a_hessian_is_the_matrix_of_second_derivatives() -> None:
    assert (
        str(cd.hessian("(A::Sym) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))"))
        == "(A::Sym) -> (x::RV) -> (i, j) -> 2 * A(i, j)"
    )
    d = cd.hessian("(x::RV, s::R) -> sum(i, s^2 * x(i)^3)")
    x = np.array([1.0, -2.0])
    (xx, xs, sx, ss) = d.compile()(x, 0.5)
    assert np.allclose(xx, np.diag(6 * x * 0.25)) and np.allclose(xs, 3 * x**2) and np.allclose(sx, xs)
    assert np.allclose(ss, 2 * np.sum(x**3)) and d.check()


def test_a_hessian_by_complex_unknowns_is_refused_with_the_remedy() -> None:
    with pytest.raises(CombDiffError, match="hvp"):
        cd.hessian("(x::CV) -> sum(i, abs2(x(i)))")


def test_a_jacobian_of_a_function_of_numbers_is_refused() -> None:
    with pytest.raises(CombDiffError, match="a row or a column"):
        cd.jacobian("(f::RF) -> (g::RF) -> sum(x::R, g(x)^2 * f(x))")


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["jvp", "jacobian", "hessian", "simplified"])
def test_a_check_sees_a_result_that_is_wrong(mode: str) -> None:
    d = getattr(cd, mode)("(x::RV{n}) -> sum(i, sin(x(i)) * x(i)^2)")

    def off(t: Term) -> Term:
        return call("cos", t.args[0]) if isinstance(t, Call) and t.primitive == "sin" else t

    assert d.check() and not replace(d, term=Traverser(off)(d.term)).check()


def test_vjp_is_another_word_for_pullback() -> None:
    assert cd.vjp is cd.pullback


@pytest.mark.sampled
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_prints_what_parses_back(mode: str) -> None:
    text = "(A::RM{n, n}) -> (x::RV{n}) -> sum((i, j), sin(x(i)) * A(i, j) * x(j))"
    d = getattr(cd, mode)(text)
    read = cd.simplified(str(d))
    arguments = [
        np.ones([3] * len(v.kind.params)) if isinstance(v.kind, Map) else 1.0 for v in result_of(d.term).params
    ]
    assert all(map(np.allclose, _items(read.compile()(*arguments)), _items(d.compile()(*arguments))))
    assert d.check() and d.latex() and d.latex(style="paper")


def _items(found: object) -> tuple[object, ...]:
    return found if isinstance(found, tuple) else (found,)


def test_simplified_takes_no_derivative_but_those_that_the_text_writes() -> None:
    d = cd.simplified("(A::Sym) -> (x::RV) -> (i::N) -> sum(j, A(j, i) * x(j) + x(j) * A(i, j))")
    assert str(d) == "(A::Sym) -> (x::RV) -> i -> 2 * sum(j, A(i, j) * x(j))" and d.check()
    A = np.array([[1.0, 2.0], [2.0, 5.0]])
    assert np.allclose(d.compile()(A, np.ones(2)), 2 * A @ np.ones(2))
    assert str(cd.simplified("grad((x::RV) -> sum(i, x(i)^2))")) == "(x::RV) -> i -> 2 * x(i)"
    inner = cd.simplified("(x::R) -> x * grad((y::R) -> y^3)(x)")
    assert str(inner) == "(x::R) -> 3 * x^3"
    with pytest.raises(CombDiffError, match="takes no derivative"):
        cd.simplified("(x::R) -> x", wrt="x")


SOLVED = "inverse((v::RV) -> i -> sum(j, A(i, j) * v(j)))(b)"
INVERSES = {
    "by b": cd.jacobian(f"(A::RM) -> (b::RV) -> {SOLVED}"),
    "by both": cd.jacobian(f"(A::RM, b::RV) -> {SOLVED}"),
    "root": cd.jacobian("(A::RM) -> (b::RV) -> root((x::RV) -> i -> x(i)^3 + sum(j, A(i, j) * x(j)) - b(i))"),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
def test_a_tensor_that_solves_an_equation_has_a_jacobian(n: int) -> None:
    rng = np.random.default_rng(n)
    A, b = 3 * np.eye(n) + rng.uniform(-1, 1, (n, n)) / n, rng.standard_normal(n)
    by_b = INVERSES["by b"].compile()(A, b)
    assert np.allclose(by_b, np.linalg.inv(A))
    by_A, again = INVERSES["by both"].compile()(A, b)
    y = np.linalg.solve(A, b)
    assert np.allclose(again, by_b)
    assert np.allclose(by_A, -np.einsum("di,j->dij", np.linalg.inv(A), y))
    u = INVERSES["root"].compile(value=True)(A, b)
    assert np.allclose(u[1], np.linalg.inv(A + 3 * np.diag(u[0] ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
def test_roots_entry_by_entry_have_a_jacobian_and_a_hessian(n: int) -> None:
    root = "root((x::RV) -> i -> x(i)^3 + x(i) - b(i))"
    b = np.random.default_rng(n).standard_normal(n)
    value, slope = cd.jacobian(f"(b::RV) -> {root}").compile(value=True)(b)
    assert np.allclose(slope, np.diag(1 / (1 + 3 * value**2)))
    second = cd.hessian(f"(b::RV) -> sum(j, {root}(j))").compile()(b)
    assert np.allclose(second, np.diag(-6 * value / (1 + 3 * value**2) ** 3))


def test_a_result_that_is_a_name_has_its_slots() -> None:
    A, b = np.ones((2, 3)), np.array([1.0, 2.0])
    zero, one = cd.jacobian("(A::RM, b::RV) -> b").compile()(A, b)
    assert zero.shape == (2, 2, 3) and not zero.any() and np.array_equal(one, np.eye(2))
    rows = cd.jacobian("(A::RM) -> begin y = i -> sum(j, A(i, j)); y end").compile()(A)
    assert np.array_equal(rows, np.broadcast_to(np.eye(2)[:, :, None], (2, 2, 3)))


@pytest.mark.parametrize("mode", [cd.hvp, cd.hessian])
@pytest.mark.parametrize("text", ["(z::CV) -> (i -> z(i)^2)", "(x::R) -> (x, x^2)"])
def test_second_derivatives_of_what_is_no_number_are_refused_with_a_remedy_that_works(mode, text: str) -> None:
    with pytest.raises(cd.UnsupportedError, match="use jacobian"):
        mode(text)
    assert cd.jacobian(text).check()


def test_the_derivative_of_one_item_of_a_pullback_along_a_real_number() -> None:
    d = cd.jacobian("(f::(C) -> C) -> (a::R, x::RV) -> pullback(f)(a, im)")
    assert d.check()
    # of f(z) = z², 𝒫(f)(z, k) = 2 z* k: 2 i a here
    of_square = {"pullback_pullback_f": lambda z, k, c: (2 * k * np.conj(c), 2 * z * c)}
    by_a, by_x = d.compile()(0.7, np.ones(2), **of_square)
    assert by_a == pytest.approx(2j) and np.array_equal(by_x, [0, 0])
