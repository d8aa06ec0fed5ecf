"""Contractions that are shared: found whatever their indices are called, chosen together, and right all the same."""

from __future__ import annotations

import re
import string
from itertools import combinations
from math import inf
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.lower.arrays import Arrays, Value
from combdiff.arrays.lower.lower import lower
from combdiff.arrays.passes.contractions.orders import Factors
from combdiff.arrays.passes.contractions.paths import Contractions
from combdiff.arrays.plan import Plan
from combdiff.run.compiled import Compiled
from combdiff.terms.terms import App, Lam, Term, Tuple, Var, conj, fresh, mul, total
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map, Symmetry

Array = npt.NDArray[np.complex128]
Factor = tuple[int, bool, tuple[int, ...]]

N = Domain("N")
SIZE = 3
EXAMPLES = Path(__file__).parents[2] / "examples"
HERMITIAN_PAIR = Symmetry((((1, 1),), ((0, 1),), ((2, 1),)), 1, True)
ANTISYMMETRIC = Symmetry((((0, 1),), ((2, 1),), ((1, 1),)), -1, False)


def indices(count: int) -> list[Var]:
    return [fresh(f"i{n}", Index(N)) for n in range(count)]


@st.composite
def factors(draw: st.DrawFn) -> list[Factor]:
    """Factors that hang together: which array (n has n + 1 axes), conjugated or not, its indices."""
    rows = []
    for _ in range(draw(st.integers(2, 4))):
        array = draw(st.integers(0, 2))
        rows.append((array, draw(st.booleans()), tuple(draw(st.permutations(range(5)))[: array + 1])))
    used = [set(labels) for _, _, labels in rows]
    while len(used) > 1:
        joined = next(((a, b) for a, b in combinations(range(len(used)), 2) if used[a] & used[b]), None)
        if joined is None:
            return draw(factors())
        used[joined[0]] |= used.pop(joined[1])
    return rows


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[Factor], tuple[int, ...]]:
    """Factors, and the indices that are kept."""
    rows = draw(factors())
    used = sorted({x for _, _, labels in rows for x in labels})
    return rows, tuple(draw(st.lists(st.sampled_from(used), max_size=2, unique=True)))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(networks())
def test_a_contraction_is_found_under_other_names_in_another_order_and_conjugated(
    network: tuple[list[Factor], tuple[int, ...]],
) -> None:
    rows, kept = network
    arrays = Arrays()
    steps = [arrays.builder.step(ops.Input(name), (), (N,) * rank, True) for rank, name in enumerate("xAT", 1)]

    def operands(names: list[Var], flip: bool) -> list[Value]:
        values = [(Value(steps[a], tuple(names[x] for x in labels)), c) for a, c, labels in rows]
        return [arrays.conj(v) if c != flip else v for v, c in values]

    contractions = Contractions(arrays, {N: SIZE})
    names, others = indices(5), indices(5)
    one = contractions.total(operands(names, False), {names[x] for x in kept})
    other = contractions.total(operands(others, True)[::-1], {others[x] for x in kept})
    assert {others.index(x) for x in other.labels} == set(kept)
    assert one.step in (other.step, arrays.conj(other).step)  # x' x is its own conjugate


# --- the numbers ----------------------------------------------------------------------------------------------------


def tensors() -> tuple[list[Var], list[Array]]:
    """A vector, a matrix, and two tensors with symmetries, by their declarations and as arrays."""
    n = Index(N)
    rng = np.random.default_rng(5)
    x, A, T = (rng.standard_normal((SIZE,) * r) + 1j * rng.standard_normal((SIZE,) * r) for r in (1, 2, 3))
    H, W = T + T.transpose(1, 0, 2).conj(), T - T.transpose(0, 2, 1)
    kinds = [Map((n,) * r, COMPLEX, s) for r, s in ((1, ()), (2, ()), (3, (HERMITIAN_PAIR,)), (3, (ANTISYMMETRIC,)))]
    return [fresh(name, kind) for name, kind in zip("xAHW", kinds, strict=True)], [x, A, H, W]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(networks(), min_size=2, max_size=4), st.integers(2, 3))
def test_contractions_that_share_parts_have_the_numbers_of_einsum(
    several: list[tuple[list[Factor], tuple[int, ...]]], cube: int
) -> None:
    variables, arrays = tensors()
    outputs: list[Term] = []
    wanted = []
    for rows, kept in several:
        names = indices(5)
        places = [cube if a == 2 else a for a, _, _ in rows]
        parts = [
            App(variables[a], tuple(names[x] for x in labels)) for a, (_, _, labels) in zip(places, rows, strict=True)
        ]
        body = mul(*(conj(e) if c else e for e, (_, c, _) in zip(parts, rows, strict=True)))
        summed = tuple(names[x] for x in sorted({x for _, _, labels in rows for x in labels}.difference(kept)))
        body = total(summed, body) if summed else body
        outputs.append(Lam(tuple(names[x] for x in kept), body) if kept else body)
        text = ",".join("".join(string.ascii_letters[x] for x in labels) for _, _, labels in rows)
        values = [arrays[a].conj() if c else arrays[a] for a, (_, c, _) in zip(places, rows, strict=True)]
        wanted.append(np.einsum(text + "->" + "".join(string.ascii_letters[x] for x in kept), *values))
    f = Compiled(Lam(tuple(variables), Tuple(tuple(outputs))))
    results = f(*arrays)
    assert isinstance(results, tuple)
    for result, expected in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.sampled_from(range(6)), min_size=2, max_size=6), min_size=2, max_size=4))
def test_products_of_what_shares_no_index_are_shared_and_right(several: list[list[int]]) -> None:
    """Σ of products of sums, each of one to three of six vectors over indices of their own."""
    rng = np.random.default_rng(6)
    arrays = [rng.standard_normal(SIZE) for _ in range(6)]
    variables = [fresh(f"v{n}", Map((Index(N),), REAL)) for n in range(6)]
    outputs, wanted = [], []
    for row in several:
        names = indices(len(row))
        # a vector with the one after it, under one index, or alone
        pairs = [(n, (n + 1) % 6) if n % 2 else (n,) for n in row]
        parts = [App(variables[m], (i,)) for i, pair in zip(names, pairs, strict=True) for m in pair]
        outputs.append(total(names, mul(*parts)))
        wanted.append(np.prod([np.prod([arrays[m] for m in pair], axis=0).sum() for pair in pairs]))
    results = Compiled(Lam(tuple(variables), Tuple(tuple(outputs))))(*arrays)
    np.testing.assert_allclose(results, wanted, rtol=1e-10, atol=1e-10)


# --- programs -------------------------------------------------------------------------------------------------------


def readings(plan: Plan, name: str) -> int:
    """How many contractions an argument is a factor of."""
    made = [s for s in plan.steps if isinstance(s.op, ops.Contraction)]
    return sum(any(o.op == ops.Input(name) for o in s.operands) for s in made)


@pytest.mark.slow
@pytest.mark.parametrize("value", [False, True])
def test_the_wannier_gradient_has_one_product_with_the_overlaps(value: bool) -> None:
    source = cd.grad((EXAMPLES / "wannier_lattice.cd").read_text()).source(value=value).split('"""')[2]
    assert len(re.findall(r"\bM(_\w)?\.transpose", source)) == 1  # of all of it, or of a slice in a loop


def test_two_gradients_of_three_share_a_product_with_the_residual() -> None:
    product = "sum((i, j, k), T(i, j, k) * sum(r, A(i, r) * B(j, r) * C(k, r)))"
    plan = cd.grad("(T::(N, N, N) -> R) -> (A::RM, B::RM, C::RM) -> " + product).plan(
        T=(30, 30, 30), A=(30, 5), B=(30, 5), C=(30, 5)
    )
    assert readings(plan, "T") == 2


@pytest.mark.slow
def test_the_image_of_a_contraction_under_a_symmetry_is_read_off() -> None:
    """Σ J(p, q, r, s) C(r, j)' k(s, j) is a Hermitian conjugate of Σ J(p, q, r, s) k(r, j)' C(s, j)."""
    hvp = cd.grad((EXAMPLES / "hartree_fock.cd").read_text()).source(hvp=True).split("def hvp")[1]
    assert hvp.count("J.reshape") == 1


def test_no_order_of_two_factors_is_worse_than_another() -> None:
    """The order for four factors costs what the best of all orders costs, found by trying them."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        domains = [Domain(f"d{n}") for n in range(5)]
        names = [fresh("i", Index(d)) for d in domains]
        sizes = {d: int(rng.integers(2, 9)) for d in domains}
        arrays = Arrays()
        rows = [sorted(rng.choice(5, 2, replace=False)) for _ in range(4)]
        values = [
            Value(arrays.builder.step(ops.Input(f"A{n}"), (), [domains[x] for x in row]), tuple(names[x] for x in row))
            for n, row in enumerate(rows)
        ]
        found = Factors(values, (names[0],), sizes)
        if found.cheapest().keys() >= {found.all}:
            assert found.cheapest()[found.all].cost.products == _least(found, [1 << n for n in range(4)])


def _least(factors: Factors, groups: list[int]) -> int:
    """The least number of multiplications over all orders, of sets that share an index as long as there are any."""
    if len(groups) == 1:
        return 0
    pairs = list(combinations(groups, 2))
    tied = [(a, b) for a, b in pairs if factors.labels(a) & factors.labels(b)] or pairs
    return min(
        factors.product(a, b).products + _least(factors, [a | b, *(g for g in groups if g not in (a, b))])
        for a, b in tied
    )


@pytest.mark.slow
def test_a_product_of_sums_that_share_no_index_is_shared() -> None:
    """Of ring sums over one domain, the gradient shares products of two of them."""
    d = cd.pullback(
        """@domain L begin base = I; periodic = true end
        (a::(L) -> R) -> (m::(L) -> R, J::(N) -> R) -> begin
          d = (p::L) -> m(p + p) * m(p)
          sum(l::L, a(l)) * sum(p::L, m(p)) * sum(i::L, d(i)) * sum(l, J(l)) * sum(l::L, a(2 * l) * m(2 * l))
        end""",
        keep=("d",),
    )
    assert d.check()


def test_an_antisymmetric_tensor_is_contracted_once_for_both_signs() -> None:
    variables, arrays = tensors()
    _, A, _, W = variables
    i, j, k = indices(3)
    outputs = [Lam((i,), total((j, k), mul(App(W, slots), App(A, (j, k))))) for slots in ((i, j, k), (i, k, j))]
    term = Lam((W, A), Tuple(tuple(outputs)))
    assert readings(lower(term), "W") == 1
    results = Compiled(term)(arrays[3], arrays[1])
    expected = np.einsum("ijk,jk->i", arrays[3], arrays[1])
    np.testing.assert_allclose(results, [expected, -expected])


@pytest.mark.slow
def test_an_exponential_and_its_conjugate_are_computed_once() -> None:
    """exp(iθ) in the value and exp(−iθ) in the gradient of a structure factor: one call of exp."""
    source = cd.grad(
        "(q::RV, G::RM) -> (x::RM) -> sum(k, abs2(sum(i, q(i) * exp(im * sum(c, G(k, c) * x(i, c))))))"
    ).source(value=True)
    code = source.split('"""')[-1]
    assert code.count("np.exp(") == 1


@settings(max_examples=100, deadline=None)
@given(networks(), st.integers(1, 4))
def test_no_order_multiplies_less_than_the_one_that_is_found(
    network: tuple[list[Factor], tuple[int, ...]], size: int
) -> None:
    """All orders are tried by hand; parts that share no index are multiplied last, as the search does it."""
    rows, kept = network
    arrays = Arrays()
    steps = [arrays.builder.step(ops.Input(name), (), (N,) * rank, False) for rank, name in enumerate("xAT", 1)]
    names = indices(5)
    values = [Value(steps[a], tuple(names[x] for x in labels)) for a, _, labels in rows]
    found = Factors(values, {names[x] for x in kept}, {N: size})

    def least(group: int) -> float:
        if not group & (group - 1):
            return 0
        parts = [(left, group ^ left) for left in range(1, group) if left & group == left]
        joined = [(a, b) for a, b in parts if found.labels(a) & found.labels(b)]
        return min((least(a) + least(b) + found.product(a, b).products for a, b in joined), default=inf)

    whole = least(found.all)
    assert found.cheapest()[found.all].cost.products == whole or whole == inf
