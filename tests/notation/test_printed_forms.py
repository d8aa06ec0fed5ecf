"""What is printed is read by a person: all printed formulas are read here, and evaluated against the term.

The readers (`latex_reader.py`, `matrix_reader.py`, `page_reader.py`, `clause_reader.py`) share nothing with printers.
"""

from __future__ import annotations

import contextlib
from functools import cache

import numpy as np
import pytest

import combdiff as cd
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.sizes import default_sizes
from combdiff.notation.matrix.expr import Named, Size
from combdiff.notation.matrix.forms import forms_within
from combdiff.notation.matrix.parts import nodes
from combdiff.notation.matrix.text import matrix_text
from combdiff.terms.nodes import PLACES, SPECTRAL
from combdiff.terms.terms import Delta, Loop, Reduce, Sum, Term, Var, bound_by, subterms
from combdiff.terms.types import Domain, Map, Number, Type
from tests.notation.clause_reader import holds, says_rows
from tests.notation.latex_reader import UnreadableError
from tests.notation.matrix_reader import Reader, given
from tests.notation.page_reader import Page, Values, values_for
from tests.programs import PRODUCTS, PROGRAMS, derived, product
from tests.thinned import thinned

FORMS = ["index", "matrix"]


def small(term: Term) -> dict[Domain, int]:
    """Sizes for loops: unequal ones, and a period that tells b from −b."""
    sizes = default_sizes(term)
    shorter = {4: 2, 5: 3, 7: 3 if any(domain.name.endswith(".2") for domain in sizes if domain.periodic) else 5}
    found = {d: n if d.count is not None or hasattr(n, "rows") else shorter.get(n, n) for d, n in sizes.items()}
    return default_sizes(term, found)  # with room for constant indices


def names_interval(kind: Type) -> bool:
    """Whether a type is that of a point of an interval, or of a function on one."""
    if isinstance(kind, Map):
        return any(map(names_interval, (*kind.params, kind.result)))
    return isinstance(kind, Number) and kind.interval is not None


def has_numbers(term: Term) -> bool:
    """Whether arrays and numbers make a value: no ∫ is left, no function on an interval, no δ or linear map of such."""
    integral = any(isinstance(t, Sum) and any(isinstance(v.kind, Number) for v in t.indices) for t in subterms(term))
    linear = [v.kind for v in subterms(term) if isinstance(v, Var) and isinstance(v.kind, Map) and v.kind.linear]
    if any(isinstance(v, Var) and names_interval(v.kind) for t in subterms(term) for v in (t, *bound_by(t))):
        return False
    if any(isinstance(t, Delta) and isinstance(t.left.type, Map) for t in subterms(term)):
        return False
    return not integral and all(isinstance(k, Number) or k.is_tensor for kind in linear for k in kind.params)


def is_read(term: Term) -> bool:
    """Whether the reader knows all signs: in subscripts it reads indices, sums and entries, no place of an extremum.

    It reads no recursions (`test_recursions.py` holds them) and no functions of eigenvectors and of Cholesky's factors.
    """
    unread = PLACES | SPECTRAL | {"cholesky", "cholesky_along", "cholback"}
    return not any(isinstance(t, Loop) or (isinstance(t, Reduce) and t.kind in unread) for t in subterms(term))


@cache
def numbers_of(term: Term) -> tuple[dict[Domain, int], Values, list[np.ndarray]]:
    """Sizes, values of the parameters, and what the term then is: once for all forms of it."""
    sizes = small(term)
    return sizes, *values_for(term, sizes)


def assert_reads_as(term: Term, text: str, form: str) -> None:
    sizes, values, expected = numbers_of(term)
    page = Page(term, values, sizes)
    with np.errstate(all="ignore"):
        found = page.latex(text, form)
    for a, b in zip(found, expected, strict=True):
        # integers of the text that are beyond 64 bits make arrays of objects
        a = np.asarray(a, np.complex128) if np.asarray(a).dtype == object else a
        np.testing.assert_allclose(a, b.reshape(a.shape), rtol=1e-8, atol=1e-10 * max(1.0, np.abs(b).max(initial=0)))
    for clause in page.clauses:
        assert holds(clause, latex=True), clause


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_latex_of_a_derivative_says_what_it_is(name: str, form: str) -> None:
    d = derived(name)
    if has_numbers(d.term) and is_read(d.term):
        assert_reads_as(d.term, d.latex(form=form), form)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", thinned(PRODUCTS, 2))
def test_the_latex_of_a_hessian_product_says_what_it_is(name: str, form: str) -> None:
    d = product(name)
    if has_numbers(d.term) and is_read(d.term):
        assert_reads_as(d.term, d.latex(form=form), form)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROGRAMS if "examples" in name or "golden" in name])
def test_lines_may_be_broken_anywhere(name: str) -> None:
    d = derived(name)
    if has_numbers(d.term):
        for form in FORMS:
            assert_reads_as(d.term, d.latex(form=form, width=30), form)


@pytest.mark.slow
def test_few_programs_have_no_numbers() -> None:
    without = [name for name in PROGRAMS if not has_numbers(derived(name).term)]
    assert len(without) == 12 and "tests/golden: convolution" in without


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_of_a_matrix_form_says_what_it_is(name: str) -> None:
    d = derived(name)
    sizes = small(d.term)
    for unit, form in forms_within(d.term).items():
        if any(isinstance(node, Size) and not node.domain.sized for node in nodes(form)):
            continue  # what the page calls a size that has no name is said below the whole page
        named = {node.var: node.value for node in nodes(form) if isinstance(node, Named)}
        values, shown, clauses = read_text(unit, named, sizes)
        expected = np.asarray(evaluate(unit, values, sizes))
        np.testing.assert_allclose(shown, expected, rtol=1e-8, atol=1e-10 * max(1.0, np.abs(expected).max()))
        for clause in clauses:
            assert holds(clause, latex=False), clause


def read_text(unit: Term, named: dict[Var, Term], sizes: dict[Domain, int]) -> tuple[Values, np.ndarray, list[str]]:
    """The value that the text of a matrix form has, with the numbers that it was read for, and its where-clauses."""
    values, (expected,) = values_for(unit, sizes, free=True)
    page = Page(unit, values, sizes)
    for key in sorted((key for key in values if isinstance(key, Var)), key=lambda v: v.uid):
        page.know(key.name, key.kind, values[key], key)
    text, *clauses = matrix_text(unit).split("\nwhere ")
    definitions, signs = clauses[: len(named)], clauses[len(named) :]
    for definition, (var, value) in zip(definitions, named.items(), strict=True):
        # the name that the text gives it; the value is in the language, whose reader is tested for itself
        page.know(definition.split(" = ")[0], var.kind, evaluate(value, values, sizes))
    with np.errstate(all="ignore"):
        known = page.matrices | {d.name: sizes[d] for d in sizes if d.sized}
        return values, Reader(known, False, says_rows(signs)).read(text, expected.shape), signs


# --- names that look like something else ----------------------------------------------------------------------------

ALIKE = {
    "a number and an entry": "(x1::R) -> (x::RV) -> x1 * x(1)^2",
    "a number and the entry at an index": "(w_b::R) -> (w::RV) -> sum(b, w_b * w(b)^2)",
    "a matrix and Kronecker's δ": "(δ::RM) -> (x::RM) -> sum((i, j), δ(i, j) * x(i, j)) + sum(i, x(i, i)^2)",
    "a number and pi": "(π::R) -> (x::RV) -> pi * sum(i, π * x(i)^2)",
    "a function and a diagonal matrix": "(diag::RF, A::RM, y::RV) -> (x::RV) -> "
    "sum(i, diag(x(i))) + sum((i, j, k), x(i) * A(i, j) * y(j) * A(j, k) * x(k))",
    "a function and a trace": "(tr::RF, A::RM) -> (B::RM, s::R) -> sum((i, j), A(i, j) * B(j, i)) * tr(s)",
    "a vector and vec": "(vec::RV, A::RM) -> (K::(N, N, N, N) -> R) -> "
    "sum((i, j, k, l), K(i, j, k, l) * vec(i) * vec(j) * A(k, l))",
    "two of one name": "(A::RM, x::RV) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))",
    "a matrix and softmax": "(softmax::RM) -> (x::RV) -> logsumexp(i, sum(j, softmax(i, j) * x(j)))",
    "a function and softmax": "(softmax::RF, y::RV) -> (x::RV) -> logsumexp(i, x(i)) * sum(i, softmax(y(i)))",
    "a vector and the sigmoid": "(σ::RV, A::RM) -> (x::RV) -> sum(i, σ(i) * softplus(sum(j, A(i, j) * x(j))))",
    "a matrix and the ties of a maximum": "(ties::RM) -> (x::RV) -> sum(i, maximum(j, ties(i, j) * x(j)))",
    "a matrix and a logarithm": "(log::RM) -> (x::RV) -> logsumexp(i, x(i)) * sum((i, j), log(i, j) * x(j))",
    "an index and a number": "(i::R, A::RM) -> (x::RV) -> i * sum((j, k), A(j, k) * x(j) * x(k))",
    "x1 and x₁": "(x1::RV, x₁::RV) -> (x::RV) -> sum(i, x1(i) * x(i)^2 * x₁(i))",
}

OF_MATRICES = (
    "(A::RM, y::RV) -> (x::RV) -> norm(A * x - y)",
    "(A::CM{n, n}, B::CM{n, n}) -> (X::CM{n, n}) -> real(det(A * X * B))",
    "(A::RM) -> (x::RV) -> x' * A * x + norm(x)^3",
    "(A::RM) -> log(det(A' * A)) + tr(inv(A))",
)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", OF_MATRICES)
def test_functions_of_matrices_say_what_they_are(text: str, form: str) -> None:
    d = cd.grad(text)
    assert_reads_as(d.term, d.latex(form=form), form)


@pytest.mark.sampled
@pytest.mark.parametrize("what", ALIKE)
def test_no_name_is_written_as_something_else(what: str) -> None:
    d = cd.grad(ALIKE[what])
    for form in FORMS:
        assert_reads_as(d.term, d.latex(form=form), form)


GATHERED = [
    "(x::RM, y::RM) -> logsumexp((k, l), l <= k, x(k, l) * y(l, k))",
    "(x::RM) -> sum(i, maximum((k, l), l != i or k < l, x(k, l) * x(l, i)))",
    "(A::RM) -> (x::RV) -> sum(i, prod(j, not (j < i and A(i, j) <= 0), A(i, j) + x(j)) * minimum(j, x(j) * A(i, j)))",
    "(x::RV) -> (y::RV) -> sum(i, where(x(i) < 0 or 1 <= y(i), y(i)^2, y(i)^3)) + prod(i, y(i))",
    "(A::RM, b::RV) -> (x::RV) -> norm(j -> A(0, j) * x(j)) * sum(j, b(j) * norm(x)) / mean(i, b(i)^2)",
    "(X::RM) -> (w::RV) -> mean(i, sum(j, X(i, j) * w(j))^2)",
    "(T::(N, N, N) -> R) -> (x::RV) -> mean((i, j, k), T(i, j, k) * x(i) * x(j)^2)",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", GATHERED)
def test_what_is_gathered_over_indices_says_what_it_is(text: str) -> None:
    d = cd.grad(text)
    for form in FORMS:
        assert_reads_as(d.term, d.latex(form=form), form)


def test_names_stay_where_nothing_is_written_alike() -> None:
    d = cd.grad("(δ::RM, π::R, x1::RV) -> (x::RV) -> π * sum((i, j), x(i) * δ(i, j) * x1(j))")
    assert d.latex(form="matrix") == r"(\delta, \pi, x_{1}) \mapsto x \mapsto \pi \delta x_{1}"


# --- what the readers notice ------------------------------------------------------------------------------------------

FOCK = "examples: hartree_fock"
LOST = {
    "a conjugate": (r"C_{r,j}^{*}", r"C_{r,j}"),
    "a factor": ("4 ", ""),
    "a sign": (r"\mapsto 4", r"\mapsto -4"),
    "an index": (r"C_{q,i}", r"C_{q,j}"),
    "the order of slots": (r"J_{p,q,r,s}", r"J_{q,p,r,s}"),
    "a tensor": (r"\, C_{q,i}", ""),
    "a sum": (r"\sum_{q,r,s,j}", r"\sum_{q,r,s}"),
}
LOST_IN_MATRICES = {
    "a conjugate": ("C^{*}", "C"),
    "a transpose": (r"^{\mathsf{T}}", ""),
    "a factor": ("4 ", ""),
    "brackets": (r"(J : C^{*} C^{\mathsf{T}}) C", r"J : C^{*} C^{\mathsf{T}} C"),
    "an order": (r"C^{*} C^{\mathsf{T}}) C", r"C^{\mathsf{T}} C^{*}) C"),
}


@pytest.mark.parametrize(
    ("form", "what"), [("index", what) for what in LOST] + [("matrix", what) for what in LOST_IN_MATRICES]
)
def test_what_is_lost_is_noticed(form: str, what: str) -> None:
    d = derived(FOCK)
    right = d.latex(form=form)
    old, new = (LOST if form == "index" else LOST_IN_MATRICES)[what]
    assert right.replace(old, new) != right
    assert_reads_as(d.term, right, form)
    with pytest.raises((AssertionError, UnreadableError)):
        assert_reads_as(d.term, right.replace(old, new), form)


@pytest.mark.parametrize("text", ["A + x", "A ∘ B ⊗ A", "A x x", "tr(x)", "A (x", "f x", "A^(-1/0)", "A ⊘ B ∘ A"])
def test_what_says_nothing_is_refused(text: str) -> None:
    rng = np.random.default_rng(0)
    names = {"A": given(rng.random((2, 3))), "B": given(rng.random((2, 3))), "x": given(rng.random(3)), "f": abs}
    with pytest.raises((UnreadableError, ZeroDivisionError, ValueError)):
        Reader(names, latex=False).read(text, (2, 3))


WRONG_CLAUSES = [
    "(V : X)(i, j) = sum((k, l), V(i, j, l, k) * X(k, l))",
    "(V : X)(i, j) = sum((k, l), V(k, l, i, j) * X(k, l))",
    "V^(231)(i, j, k) = V(k, i, j)",
    "(T_(2))(i, jk) = T(i, j, k)",
    "(X ⊙ Y)(ij, k) = X(j, k) * Y(i, k)",
    "(X ⊗ Y)(ij, kl) = X(i, j) * Y(k, l)",
    "vec(X)(ji) = X(i, j)",
]


@pytest.mark.parametrize("clause", WRONG_CLAUSES)
def test_a_wrong_clause_is_noticed(clause: str) -> None:
    with contextlib.suppress(UnreadableError):  # sizes do not fit
        assert not holds(clause, latex=False)
