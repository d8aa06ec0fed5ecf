"""Matrix forms of the gradients of typical programs: how they read, and that they mean what the index form means.

`matrix_programs.txt` holds the programs, each with its matrix form below a line `--`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.notation.matrix.expr import MatrixExpr, Named
from combdiff.notation.matrix.forms import forms_within, matrix_form
from combdiff.notation.matrix.parts import nodes
from combdiff.terms.terms import App, Lam, Let, Term, Tuple, Var, add, conj, delta, fresh, mul, subterms, total
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, Domain, Index, Map, Symmetry
from tests.notation.matrix_meaning import meaning
from tests.programs import WITH_FORMS, derived


@pytest.mark.sampled
@pytest.mark.parametrize("title", WITH_FORMS)
def test_a_program_reads_as_linear_algebra(title: str) -> None:
    _, form = WITH_FORMS[title]
    assert derived(f"matrix: {title}").matrix_text() == form


def domains(term: Term) -> list[Domain]:
    """The domains of all slots and indices of a result, in a fixed order."""
    found: dict[Domain, None] = {}
    for t in subterms(term):
        for var in t.params if isinstance(t, Lam) else ():
            kinds = var.kind.params if isinstance(var.kind, Map) else (var.kind,)
            found.update((kind.domain, None) for kind in kinds if isinstance(kind, Index) and kind.domain)
    return sorted(found, key=lambda domain: domain.name)


def values_of(term: Term, values: dict[Term, object], sizes: dict[Domain, int]) -> Iterator[tuple[Term, object]]:
    """The numbers and tensors of a result, with their values; shared ones are noted on the way."""
    match term:
        case Let(bindings, body):
            for var, value in bindings:
                yield from values_of(value, values, sizes)
                values[var] = evaluate(value, values, sizes)
            yield from values_of(body, values, sizes)
        case Tuple(items):
            for item in items:
                yield from values_of(item, values, sizes)
        case Lam(params, body) if not all(isinstance(p.kind, Index) for p in params):
            yield from values_of(body, values, sizes)
        case Lam(_, Let()):
            raise AssertionError("a shared value under an index")
        case _:
            yield term, evaluate(term, values, sizes)


@pytest.mark.slow
@pytest.mark.parametrize("title", WITH_FORMS)
@pytest.mark.parametrize("smallest", [1, 2])
def test_a_matrix_form_means_what_the_index_form_means(title: str, smallest: int) -> None:
    term = derived(f"matrix: {title}").term
    rng = np.random.default_rng(len(title))
    sizes = {domain: smallest + n for n, domain in enumerate(domains(term))}
    values: dict[Term, object] = {}
    bound: Term = term
    while isinstance(bound, Lam) and not all(isinstance(p.kind, Index) for p in bound.params):
        values.update({p: positive(random_value(p.kind, sizes, rng)) for p in bound.params})
        bound = bound.body
    forms = forms_within(term)
    compared = 0
    for unit, expected in values_of(term, values, sizes):
        if unit in forms:
            found = meaning(forms[unit], values, sizes)
            np.testing.assert_allclose(found.reshape(np.shape(expected)), expected, rtol=1e-9, atol=1e-11)
            compared += 1
    assert compared


def positive(value: object) -> object:
    """Real numbers that a logarithm and a power can take; complex ones as they are."""
    array = np.asarray(value)
    return array if np.iscomplexobj(array) else np.abs(array) + 0.1


# --- random products with tensors -----------------------------------------------------------------------------------

N = Index(Domain("T.1"))
SIZES = {N.domain: 3}
SWAPPED = Symmetry.permutation((2, 1, 4, 3), "conj")
PAIRS = Symmetry.permutation((3, 4, 1, 2), "id")


def tensor(name: str, rank: int, kind, *symmetries: Symmetry) -> Var:
    return fresh(name, Map((N,) * rank, kind, symmetries))


POOL = (
    tensor("x", 1, REAL),
    tensor("z", 1, COMPLEX),
    tensor("A", 2, REAL),
    tensor("C", 2, COMPLEX),
    tensor("H", 2, COMPLEX, HERMITIAN),
    tensor("T", 3, REAL),
    tensor("G", 3, COMPLEX),
    tensor("V", 4, REAL),
    tensor("J", 4, COMPLEX, SWAPPED, PAIRS),
)
_rng = np.random.default_rng(11)
VALUES: dict[Term, object] = {t: random_value(t.kind, SIZES, _rng) for t in POOL}
INDICES = tuple(fresh(name, N) for name in "ijklmn")
i, j, k = INDICES[:3]
T3, V4 = POOL[5], POOL[7]


def assert_means_the_same(term: Term, found: MatrixExpr) -> None:
    expected = np.asarray(evaluate(term, VALUES, SIZES))
    np.testing.assert_allclose(meaning(found, VALUES, SIZES).reshape(expected.shape), expected, rtol=1e-9, atol=1e-11)


@st.composite
def products(draw: st.DrawFn, anywhere: bool = False) -> Term:
    """Products of tensors in which each index stands twice or so, or `anywhere`, under Σ over those not free."""
    factors: list[Term] = []
    wherever = st.lists(st.sampled_from(INDICES[:3]), min_size=12, max_size=12)
    slots = draw(wherever if anywhere else st.permutations(INDICES * 2))
    for _ in range(draw(st.integers(1, 5))):
        head = draw(st.sampled_from(POOL))
        rank = len(head.kind.params)
        if rank > len(slots):
            break
        factor = App(head, tuple(slots[:rank]))
        slots = slots[rank:]
        factors.append(conj(factor) if draw(st.booleans()) else factor)
    body = mul(*factors)
    used = [v for v in INDICES if v in body.free]
    free = used[: draw(st.sampled_from([0, 1, 2, 4]))]
    summed = total([v for v in used if v not in free], body)
    return Lam(tuple(draw(st.permutations(free))), summed) if free else summed


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(products())
def test_a_product_with_tensors_means_what_the_term_means(term: Term) -> None:
    found = matrix_form(term)
    if found is not None:
        assert_means_the_same(term, found)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(products(anywhere=True))
@example(total((i, j), mul(App(T3, (i, j, j)), App(POOL[0], (j,)))))
@example(Lam((i,), total((j,), mul(App(T3, (j, i, j)), App(POOL[3], (j, j))))))
@example(Lam((i,), total((j,), mul(App(V4, (i, j, j, j)), App(POOL[0], (j,))))))
@example(Lam((i,), total((j, k), mul(App(V4, (i, j, j, k)), App(POOL[3], (j, k))))))
@example(Lam((i,), total((j, k), mul(App(V4, (k, i, k, j)), App(POOL[0], (k,)), App(POOL[1], (j,))))))
def test_an_index_may_stand_in_several_slots_of_a_tensor(term: Term) -> None:
    found = matrix_form(term)
    if found is not None:
        assert_means_the_same(term, found)


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("second", range(4))
@pytest.mark.parametrize("head", [v for v in POOL if len(v.kind.params) == 4], ids=lambda v: v.name)
def test_any_two_slots_may_be_contracted_with_a_matrix(head: Var, first: int, second: int) -> None:
    if first == second:
        return
    p, q, r, s = INDICES[:4]
    slots: list[Term] = [p, q]
    for place, index in sorted(((first, r), (second, s)), key=lambda pair: pair[0]):
        slots.insert(place, index)
    term = Lam((p, q), total((r, s), mul(App(head, tuple(slots)), App(POOL[3], (r, s)))))
    found = matrix_form(term)
    assert found is not None
    assert_means_the_same(term, found)


# --- terms without a form ---------------------------------------------------------------------------------------------

x, z, A = POOL[:3]


def test_a_term_of_a_sum_without_a_form_gets_a_name() -> None:
    odd = mul(i, App(x, (i,)))
    term = Lam((i,), add(total((j,), mul(App(A, (i, j)), App(x, (j,)))), odd))
    found = matrix_form(term)
    assert found is not None
    (named,) = {node for node in nodes(found) if isinstance(node, Named)}
    assert named.value == Lam((i,), odd)
    assert_means_the_same(term, found)


def test_a_sum_of_which_no_term_has_a_form_has_none() -> None:
    assert matrix_form(Lam((i,), add(mul(i, App(x, (i,))), delta(i, mul(i, i), App(z, (i,)))))) is None
