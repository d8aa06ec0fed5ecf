"""The vector product: what it means, its derivatives, how results with it are printed."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.meaning.evaluate import evaluate
from combdiff.terms.terms import App, Reduce, subterms
from tests.reading_back import assert_reads_back

TORSION = """(I::(N) -> N, J::(N) -> N, K::(N) -> N, L::(N) -> N, ph::RV) -> (x::RM{n, 3}) -> begin
  b1 = (t, c) -> x(J(t), c) - x(I(t), c)
  b2 = (t, c) -> x(K(t), c) - x(J(t), c)
  b3 = (t, c) -> x(L(t), c) - x(K(t), c)
  n1 = (t, c) -> cross(c -> b1(t, c), c -> b2(t, c))(c)
  n2 = (t, c) -> cross(c -> b2(t, c), c -> b3(t, c))(c)
  phi = t -> atan2(norm(c -> b2(t, c)) * sum(c, b1(t, c) * n2(t, c)), sum(c, n1(t, c) * n2(t, c)))
  sum(t, cos(3 * phi(t) - ph(t)))
end"""
PROGRAMS = {
    "mixed product": "(a::RV, b::RV, c::RV) -> dot(a, cross(b, c))",
    "complex": "(a::CV, b::CV) -> norm(cross(a, b))^2 + real(sum(i, a(i) * cross(b, i -> a(i)')(i)))",
    "real and complex": "(a::RV, b::CV) -> norm(cross(a, b))^2 + real(cross(a, b)(1))",
    "twice": "(a::RV, b::RV) -> norm(cross(a, cross(a, b)))^2",
    "rows": "(A::RM, B::RM) -> sum(i, norm(cross(c -> A(i, c), c -> B(i, c)))^2)",
    "currents": "(q::RV, R::RM, v::RM) -> (x::RV) -> "
    "norm(k -> sum(s, q(s) * cross(c -> v(s, c), c -> x(c) - R(s, c))(k) / norm(c -> x(c) - R(s, c))^3))^2",
    "precession": "(m::RM{n, 3}, h::RV{3}) -> "
    "sum((i, c), (cross(k -> m(i, k), h)(c) + 0.1 * cross(k -> m(i, k), cross(k -> m(i, k), h))(c))^2)",
    "forces": "(E::RV, B::RV) -> (v::RV) -> sum(i, (E(i) + cross(v, B)(i))^2)",
    "angular momentum": "(m::RV) -> (r::RM{n, 3}, p::RM{n, 3}) -> "
    "norm(c -> sum(i, m(i) * cross(k -> r(i, k), k -> p(i, k))(c)))^2",
    "rigid body": "(J::RM, t::RV) -> (w::RV) -> norm(J * w + cross(w, J * w) - t)^2",
    "component": "(r::RV, p::RV) -> exp(cross(r, p)(2))",
    "lattice": "(m::(N{k}, N{k}, N{3}) -> R) -> sum((i, j), i < k - 1 and j < k - 1, "
    "dot(c -> m(i, j, c), cross(c -> m(i + 1, j, c) - m(i, j, c), c -> m(i, j + 1, c) - m(i, j, c))))",
}
LOOP = "(b::RV{3}) -> (m::RV{3}) -> sum(i, iterate((s, t) -> s + 0.1 * cross(s, b), m, 5)(i)^4)"
HEAVY = ("precession", "currents", "twice", "lattice")


def _marked(names: object) -> list[object]:
    return [pytest.param(n, marks=pytest.mark.slow) if n in HEAVY else n for n in names]  # type: ignore[attr-defined]


@pytest.mark.parametrize("complex_", [False, True])
def test_the_meaning_is_that_of_numpy(complex_: bool) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=(4, 3)) + 1j * rng.normal(size=(4, 3)) * complex_ for _ in range(2))
    a, b = (a, b) if complex_ else (a.real, b.real)
    kind = "CM" if complex_ else "RM"
    rows = infer(parse(f"(A::{kind}, B::{kind}) -> (i, c) -> cross(k -> A(i, k), k -> B(i, k))(c)"))
    A, B = rows.params
    value = evaluate(rows.body, {A: a, B: b}, {})
    np.testing.assert_allclose(value, np.cross(a, b), rtol=1e-14)


@pytest.mark.parametrize("name", _marked(PROGRAMS))
def test_derivatives_are_right_and_read_back(name: str) -> None:
    d = cd.grad(PROGRAMS[name])
    assert d.check()
    assert_reads_back(d.term)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hvp", "jvp", "pullback", "simplified"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_modes_are_right(name: str, mode: str) -> None:
    d = getattr(cd, mode)(PROGRAMS[name])
    assert d.check()
    assert_reads_back(d.term)


@pytest.mark.parametrize("mode", ["grad", "hvp", "jvp"])
def test_products_of_the_states_of_a_loop(mode: str) -> None:
    assert getattr(cd, mode)(LOOP).check()


@pytest.mark.parametrize(
    "text",
    [
        "(w::RV) -> (x::RV) -> cross(w, cross(w, x))",
        "(w::RV) -> (x::RM) -> (i, c) -> cross(w, k -> x(i, k))(c)",
        "(w::CV) -> (x::CV) -> cross(x, i -> w(i)')",
    ],
)
def test_jacobians_of_products(text: str) -> None:
    assert cd.jacobian(text).check()


@pytest.mark.parametrize(
    ("text", "gradient"),
    [
        ("(a::RV, b::RV, c::RV) -> dot(c, cross(a, b))", "(cross(b, c), cross(c, a), cross(a, b))"),
        ("(a::RV, b::RV) -> dot(a, cross(a, b))", "((i::N{3}) -> 0, (c::N{3}) -> 0)"),
        ("(a::RV, b::RV) -> sum(cross(a, b) + cross(b, a))", "((c::N{3}) -> 0, (c::N{3}) -> 0)"),
        ("(b::RV, c::RV) -> (a::RV) -> dot(a, cross(b, c)) + dot(b, cross(c, a))", "i -> 2 * cross(b, c)(i)"),
        ("(a::RV, b::RV) -> (c::RV) -> dot(c, cross(i -> a(i) + 2 * b(i), b))", "cross(a, b)"),
        ("(a::RV, b::RV) -> (c::RV) -> dot(cross(c, a) + cross(b, c), b)", "cross(a, b)"),
        ("(p::RV) -> (r::RV) -> cross(r, p)(2)", "[p(1), -p(0), 0]"),
    ],
)
def test_results_are_short(text: str, gradient: str) -> None:
    d = cd.grad(text)
    assert str(d).endswith(f"-> {gradient}")
    assert d.check()


@pytest.mark.parametrize("text", ["cross(a, a)", "cross(a, 3 * a)", "cross(a, i -> -a(i))"])
def test_vectors_along_one_another_have_no_product(text: str) -> None:
    term = infer(parse(f"(a::RV) -> {text}"))
    assert not [*subterms(term, Reduce)]


def test_numbers_and_conditions_stand_in_front() -> None:
    term = infer(parse("(a::RV, b::RV, s::R) -> (j::N{2}, i) -> cross(k -> where(j < 1, 2 * s * a(k)), b)(i)"))
    (whole,) = subterms(term, Reduce)
    A, B, _ = term.params
    (index,) = whole.indices
    assert (whole.mark, whole.body) == (App(A, (index,)), App(B, (index,)))


def test_a_gradient_of_torsions_is_that_of_jax() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    rng = np.random.default_rng(3)
    x, ph = np.cumsum(rng.normal(size=(9, 3)), 0), rng.normal(size=6)
    lists = [np.arange(6) + n for n in range(4)]

    def energy(x: object) -> object:
        i, j, k, m = (x[n] for n in lists)  # type: ignore[index]
        b1, b2, b3 = j - i, k - j, m - k
        n1, n2 = jnp.cross(b1, b2), jnp.cross(b2, b3)
        phi = jnp.arctan2(jnp.linalg.norm(b2, axis=-1) * (b1 * n2).sum(-1), (n1 * n2).sum(-1))
        return jnp.cos(3 * phi - ph).sum()

    d = cd.grad(TORSION)
    f = d.compile()
    assert "np.cross" in f.source
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        expected = np.asarray(jax.grad(energy)(jnp.asarray(x)))
    np.testing.assert_allclose(f(*lists, ph, x), expected, rtol=1e-9, atol=1e-9)
    assert len(str(d)) < 1700


def test_products_are_printed_with_their_sign() -> None:
    d = cd.grad("(c::RV) -> (a::RV, b::RV) -> dot(c, cross(a, b))")
    assert d.latex().endswith(r"(b \times c, c \times a)")
    assert "b × c" in d.unicode_text()
    assert "(b[1]*c[2] - b[2]*c[1])*KroneckerDelta(0, i)" in str(d.sympy())


def test_a_row_is_written_with_its_slot_open():
    d = cd.grad("(A::RM{n, 3}) -> (B::RM{n, 3}) -> sum((i, k), A(i, k) * cross(j -> B(i, j), j -> A(0, j))(k))")
    assert d.latex().endswith(r"(A_{0,\cdot} \times A_{i,\cdot})_{j}")
    assert "(A(0,·) × A(i,·))(j)" in d.unicode_text()


def test_an_index_that_is_read_as_a_number_is_no_open_slot():
    d = cd.grad("(a::RV{3}) -> (b::RV{3}) -> sum(k, cross(j -> j * a(j), b)(k)^2)")
    assert r"\cdot" not in d.latex()


def test_a_name_of_the_program_hides_the_product() -> None:
    d = cd.grad("(cross::(R, R) -> R) -> (x::R) -> cross(x, x)")
    assert "grad(cross" in str(d)
