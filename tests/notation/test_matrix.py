"""Matrix form: what it prints, what has none, and that it means what the term means."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.notation.matrix.expr import Leaf, MatrixExpr, Number, Power
from combdiff.notation.matrix.forms import matrix_form
from combdiff.notation.matrix.parts import parts
from combdiff.notation.matrix.printer import algebra_latex, algebra_text
from combdiff.notation.matrix.text import matrix_text
from combdiff.terms.terms import (
    MINUS_ONE,
    ONE,
    TWO,
    App,
    Const,
    Diff,
    Lam,
    Let,
    Term,
    Tuple,
    Var,
    add,
    call,
    conj,
    delta,
    fresh,
    indicator,
    mul,
    neg,
    number,
    power,
    sub,
    total,
)
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, SYMMETRIC, Domain, Index, Map
from tests.notation.matrix_meaning import meaning

N = Index(Domain("A.1"))
SIZES = {Domain("A.1"): 3}


def vector(name: str, kind=REAL) -> Var:
    return fresh(name, Map((N,), kind))


def matrix(name: str, kind=REAL, *symmetries) -> Var:
    return fresh(name, Map((N, N), kind, symmetries))


def at(tensor: Term, *indices: Term) -> Term:
    return App(tensor, indices)


i, j, k, l = (fresh(name, N) for name in "ijkl")  # noqa: E741
x, y, r, p, b = (vector(name) for name in "xyrpb")
z = vector("z", COMPLEX)
A, B, W = (matrix(name) for name in "ABW")
C, G = matrix("C", COMPLEX), matrix("G", COMPLEX)
S = matrix("S", REAL, SYMMETRIC)
H = matrix("H", COMPLEX, HERMITIAN)
Z = matrix("Z", COMPLEX, SYMMETRIC)
a, beta = fresh("a", REAL), fresh("beta", REAL)
c = fresh("c", COMPLEX)
R = fresh("R", Map((Map((N,), REAL),), REAL))
f = fresh("f", Map((REAL,), REAL))
step = Lam((j,), add(at(x, j), mul(a, add(at(r, j), mul(beta, at(p, j))))))
slope = App(Diff("grad", R), (step,))

KNOWN: list[tuple[Term, str]] = [
    (Lam((i,), total((j,), mul(TWO, at(A, i, j), at(x, j)))), "2 A x"),
    (Lam((j,), total((i,), mul(at(A, i, j), at(x, i)))), "Aᵀ x"),
    (Lam((j,), total((i,), mul(at(S, i, j), at(x, i)))), "S x"),
    (Lam((j,), total((i,), mul(conj(at(C, i, j)), at(z, i)))), "C† z"),
    (Lam((j,), total((i,), mul(conj(at(H, i, j)), at(z, i)))), "H z"),
    (Lam((j,), total((i,), mul(at(H, i, j), at(z, i)))), "Hᵀ z"),
    (Lam((j,), total((i,), mul(conj(at(Z, i, j)), at(z, i)))), "Z† z"),
    (total((i, j), mul(at(x, i), at(A, i, j), at(x, j))), "xᵀ A x"),
    (total((i, j), mul(conj(at(z, i)), at(C, i, j), at(z, j))), "z† C z"),
    (Lam((i, j), mul(TWO, conj(at(C, j, i)))), "2 C†"),
    (total((i, j), mul(at(A, i, j), at(B, j, i))), "tr(A B)"),
    (total((i, j), mul(at(A, i, j), at(B, i, j))), "tr(Aᵀ B)"),
    (total((i, j, k), mul(at(A, i, j), at(B, j, k), at(W, k, i))), "tr(A B W)"),
    (total((i,), at(A, i, i)), "tr(A)"),
    (a, "a"),
    (total((i,), mul(at(slope, i), add(at(r, i), mul(beta, at(p, i))))), "∇R(x + a (r + beta p))ᵀ (r + beta p)"),
    (total((i,), mul(a, at(slope, i), at(p, i))), "a ∇R(x + a (r + beta p))ᵀ p"),
    (
        Lam((i, j), add(mul(TWO, at(C, i, j)), mul(number(-4), total((k,), mul(at(H, i, k), at(C, k, j), at(r, j)))))),
        "2 C - 4 H C diag(r)",
    ),
    (Lam((i,), total((j, k), mul(conj(at(C, j, i)), at(H, j, k), at(C, k, i)))), "diagonal(C† H C)"),
    (Lam((i, j), mul(at(x, i), at(y, j))), "x yᵀ"),
    (
        total((i, j), mul(add(at(r, i), mul(beta, at(p, i))), at(S, i, j), add(at(x, j), mul(a, at(r, j))))),
        "(r + beta p)ᵀ S (x + a r)",
    ),
    (Lam((i, j), delta(i, j, at(x, i))), "diag(x)"),
    (total((i,), call("abs2", at(z, i))), "‖z‖^2"),
    (Lam((i,), add(ONE, at(x, i))), "𝟏 + x"),
    (Lam((i,), power(at(x, i), number(3))), "x^∘3"),
    (Lam((i,), mul(call("exp", at(x, i)), at(y, i))), "exp(x) ∘ y"),
    (Lam((i,), App(f, (at(x, i),))), "f(x)"),
    (total((i,), power(sub(at(x, i), at(y, i)), TWO)), "‖x - y‖^2"),
    (power(total((i,), mul(at(x, i), at(y, i))), number(-1)), "(xᵀ y)^(-1)"),
    (Lam((i,), neg(mul(number(Fraction(1, 2)), a, at(x, i)))), "-1/2 a x"),
    (Lam((i,), mul(total((j,), mul(at(x, j), at(y, j))), at(x, i))), "(xᵀ y) x"),
    (conj(total((i,), mul(at(z, i), at(x, i)))), "z† x"),
    (total((i, j), at(A, i, j)), "𝟏ᵀ A 𝟏"),
    (total((i,), mul(at(x, i), at(b, i))), "xᵀ b"),
    (total((i, j), mul(conj(at(C, i, j)), at(C, i, j))), "‖C‖^2"),
    (conj(c), "conj(c)"),
]


@pytest.mark.parametrize(("term", "text"), KNOWN, ids=[text for _, text in KNOWN])
def test_contractions_of_two_indices_read_as_linear_algebra(term: Term, text: str) -> None:
    found = matrix_form(term)
    assert found is not None
    assert algebra_text(found) == text


NONE = {
    "a tensor of five indices": total((i, j, k), App(fresh("T", Map((N,) * 5, REAL)), (i, j, k, i, j))),
    "index arithmetic": total((i,), at(x, add(i, ONE))),
    "a fixed entry": at(x, ONE),
    "an index read as a number": total((i,), mul(i, at(x, i))),
    "an order of indices": total((i, j), indicator(i, j, mul(at(x, i), at(y, j)))),
    "an integral": total((fresh("t", REAL),), a),
    "a free index that is no parameter": at(x, i),
    "a sum over nothing that bears the index": total((i,), a),
    "such a sum beside a free index": Lam((i,), total((j,), at(x, i))),
    "eight vectors at one index": total((i,), mul(*(at(vector(f"v{n}"), i) for n in range(8)))),
}


@pytest.mark.parametrize("name", NONE)
def test_what_is_not_linear_algebra_has_no_matrix_form(name: str) -> None:
    assert matrix_form(NONE[name]) is None


def test_latex_writes_transposes_traces_and_greek_names() -> None:
    quadratic = matrix_form(mul(beta, total((i, j), mul(at(x, i), at(A, i, j), at(x, j)))))
    assert quadratic is not None
    assert algebra_latex(quadratic) == r"\beta x^{\mathsf{T}} A x"
    cyclic = matrix_form(total((i, j), mul(at(C, i, j), conj(at(G, i, j)))))
    assert cyclic is not None
    assert algebra_latex(cyclic) in (r"\operatorname{tr}(C G^{\dagger})", r"\operatorname{tr}(G^{\dagger} C)")


def test_a_result_is_written_value_by_value_and_the_rest_in_the_language() -> None:
    shared = fresh("v", Map((N,), REAL))
    product = Lam((i,), total((j,), mul(at(A, i, j), at(x, j))))
    other = total((i,), at(x, add(i, ONE)))
    text = matrix_text(
        Lam((A, x), Let(((shared, product),), Tuple((total((i,), mul(at(shared, i), at(x, i))), other))))
    )
    assert text.split("\n")[0] == "v = A x"
    assert "ᵀ" in text.split("\n")[1]
    assert "i + 1" in text


def test_names_in_sight_are_kept_apart() -> None:
    found = matrix_form(Lam((i,), add(at(x, i), at(vector("x"), i))))
    assert found is not None
    assert len(set(algebra_text(found).split(" + "))) == 2


# --- what it means ----------------------------------------------------------------------------------------------------


TENSORS = (x, y, r, p, b, z, A, B, W, C, G, S, H, Z, a, beta, c)
_rng = np.random.default_rng(7)
VALUES: dict[Term, object] = {t: random_value(t.kind, SIZES, _rng) for t in TENSORS}
VALUES[Diff("grad", R)] = lambda v: np.sin(np.asarray(v)) + 0.5
VALUES[f] = lambda v: v * v + 1.0


def assert_means_the_same(term: Term, found: MatrixExpr) -> None:
    expected = np.asarray(evaluate(term, VALUES, SIZES))
    np.testing.assert_allclose(meaning(found, VALUES, SIZES).reshape(expected.shape), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("term", "text"), KNOWN, ids=[text for _, text in KNOWN])
def test_the_known_forms_mean_what_the_terms_mean(term: Term, text: str) -> None:
    found = matrix_form(term)
    assert found is not None
    assert_means_the_same(term, found)


@st.composite
def networks(draw: st.DrawFn) -> Term:
    """Random products of vectors and matrices, conjugated or not, under Σ over some of four indices."""
    pool = (i, j, k, l)
    factors: list[Term] = []
    for _ in range(draw(st.integers(1, 5))):
        tensor = draw(st.sampled_from((x, z, A, C, S, H, Z, "sum", "exp", "δ")))
        s, t = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        match tensor:
            case "sum":
                factor = add(at(x, s), mul(c, at(C, s, t)), at(y, t))
            case "exp":
                factor = call("exp", mul(at(x, s), at(y, t)))
            case "δ":
                factor = delta(s, t, at(z, s))
            case Var():
                factor = at(tensor, s, t) if tensor.kind.params[1:] else at(tensor, s)
        factors.append(conj(factor) if draw(st.booleans()) else factor)
    body = mul(Const(Fraction(draw(st.integers(-3, 3)) or 2, 2)), *factors)
    used = [v for v in pool if v in body.free]
    legs = used[: draw(st.integers(0, min(2, len(used))))]
    summed = total([v for v in used if v not in legs], body)
    return Lam(tuple(reversed(legs)), summed) if legs else summed


@pytest.mark.slow
@settings(max_examples=300)
@given(networks())
def test_a_matrix_form_means_what_the_term_means(term: Term) -> None:
    found = matrix_form(term)
    if found is not None:
        assert_means_the_same(term, found)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from((A, C, S, H, Z)), st.booleans(), st.booleans()), min_size=1, max_size=6))
def test_every_chain_of_matrices_has_a_form_without_diagonals(links: list[tuple[Var, bool, bool]]) -> None:
    between = [fresh(f"i{n}", N) for n in range(len(links) + 1)]
    factors = []
    for (tensor, turned, conjugated), s, t in zip(links, between, between[1:], strict=False):
        factor = at(tensor, t, s) if turned else at(tensor, s, t)
        factors.append(conj(factor) if conjugated else factor)
    term = Lam((between[0], between[-1]), total(between[1:-1], mul(*factors)))
    found = matrix_form(term)
    assert found is not None
    assert_means_the_same(term, found)
    text = algebra_text(found)
    assert "diag" not in text and "∘" not in text and "‖" not in text
    assert _matrices(found) == len(links)


def _matrices(expr: MatrixExpr) -> int:
    """How many matrices are multiplied: A^2 is two."""
    match expr:
        case Power(base, Number(exponent), False):
            return int(exponent.real) * _matrices(base)
        case Leaf():
            return 1
        case _:
            return sum(_matrices(part) for part in parts(expr))


@pytest.mark.slow
def test_the_form_does_not_depend_on_the_order_of_hashing() -> None:
    program = (
        "from tests.notation.test_matrix import KNOWN, matrix_form, algebra_text;"
        "print([algebra_text(matrix_form(t)) for t, _ in KNOWN])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join((".", *sys.path))},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_minus_one_is_a_sign() -> None:
    found = matrix_form(Lam((i,), add(at(x, i), mul(MINUS_ONE, at(y, i)))))
    assert found is not None
    assert algebra_text(found) == "x - y"


@pytest.mark.parametrize(
    ("exponent", "text"), [((-1, 1), r"\frac{1}{x}"), ((-2, 1), r"\frac{1}{x^{2}}"), ((-3, 4), r"\frac{1}{x^{3/4}}")]
)
def test_a_negative_power_of_a_number_is_a_fraction(exponent: tuple[int, int], text: str) -> None:
    x = fresh("x", REAL)
    assert algebra_latex(Power(Leaf(x), Number(number(Fraction(*exponent))), False)) == text


@pytest.mark.parametrize("function", ["floor", "ceil", "round", "lgamma", "sigmoid"])
def test_a_function_of_real_numbers_of_an_array_that_is_complex_by_its_dtype(function: str) -> None:
    d = cd.grad(f"(x::CV) -> (a::R) -> {function}(sum(i, sqrt(abs2(x(i))))) * a")
    assert d.matrix_text() == f"{function}(𝟏ᵀ sqrt(conj(x) ∘ x))"
