"""Symmetries written as maps: what they say, what is refused, where; a tensor with one in arrays and in text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combdiff.errors import ArrayError, LanguageError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.printer import program_text
from combdiff.meaning.breaches import breaks_symmetry
from combdiff.meaning.samples import random_value
from combdiff.terms.terms import Lam
from combdiff.terms.types import HERMITIAN, SYMMETRIC, Domain, Map, Symmetry

DOMAINS = """@domain BZ begin base = I; periodic = true end
@domain Z begin periodic = true end
@domain X begin symmetric = true end
"""
NEIGHBOURS = Symmetry((((1, 1),), ((0, 1),), ((2, 1), (3, 1)), ((3, -1),)), 1, True)
LAW = "M -> (p, q, k, b) -> M(q, p, k + b, -b)'"


def program(kind, *laws):
    return f"{DOMAINS}@space T begin\n  type = {kind}\n  symmetries = ({', '.join(laws)},)\nend\n(A::T) -> 1"


def tensor(kind, *laws) -> Map:
    term = infer(parse(program(kind, *laws)))
    assert isinstance(term, Lam) and isinstance(term.params[0].kind, Map)
    return term.params[0].kind


def law(kind, text):
    (found,) = tensor(kind, text).symmetries
    return found


def failure(kind, *laws) -> LanguageError:
    with pytest.raises(LanguageError) as caught:
        infer(parse(program(kind, *laws)))
    assert caught.value.remedy and "^" in str(caught.value)
    return caught.value


# --- what a map says ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        ("(N, N) -> C", "M -> (p, q) -> M(q, p)'", HERMITIAN),
        ("(N, N) -> R", "M -> (p, q) -> M[q, p]", SYMMETRIC),
        ("(N, N) -> C", "K -> (p, q) -> -K(q, p)'", Symmetry(HERMITIAN.rows, -1, True)),
        ("(N, N) -> C", "K -> (p, q) -> (-K(q, p))'", Symmetry(HERMITIAN.rows, -1, True)),
        ("(N, N) -> C", "K -> (p, q) -> -(-K(q, p)')'", SYMMETRIC),
        ("(X,) -> C", "f -> b -> f(-b)", Symmetry.reflection((1,), 1, "ineg")),
        ("(BZ,) -> C", "f -> (k) -> f(-k)'", Symmetry.reflection((1,), 1, "inegc")),
        ("(N, N, BZ, X) -> C", LAW, NEIGHBOURS),
        ("(N, N, BZ, BZ) -> C", LAW, NEIGHBOURS),
        ("(N, N, BZ, X) -> C", "M -> (p, q, k, b) -> M(q, p, b + k, b - 2 * b)'", NEIGHBOURS),
        ("(BZ, BZ) -> C", "f -> (k, l) -> f(k, k - l)", Symmetry((((0, 1),), ((0, 1), (1, -1))))),
        ("(BZ, BZ) -> C", "f -> (k, l) -> f(k, -(l - k))", Symmetry((((0, 1),), ((0, 1), (1, -1))))),
    ],
)
def test_a_map_says_which_entries_are_equal(kind, written, meant):
    assert law(kind, written) == meant


def test_a_clause_and_a_map_stand_side_by_side():
    kind = tensor("(N, N, N, N) -> C", "((2, 1, 4, 3), :conj)", "J -> (p, q, r, s) -> J(r, s, p, q)")
    assert kind.symmetries == (
        Symmetry.permutation((2, 1, 4, 3), "conj"),
        Symmetry.permutation((3, 4, 1, 2), "id"),
    )


def test_slots_that_a_map_exchanges_have_one_range():
    kind = tensor("(N, N, BZ, X) -> C", LAW)
    assert [p.domain for p in kind.params] == [
        Domain("A.1"),
        Domain("A.1"),
        Domain("BZ", True, periodic=True),
        Domain("X", True, symmetric=True),
    ]


# --- text -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("(N, N) -> C", "K -> (p, q) -> -K(q, p)'"),
        ("(N, N, BZ, X) -> C", LAW),
        ("(BZ, BZ, BZ) -> R", "φ -> (k, l, m) -> -φ(k, k - l, k - m)"),
        ("(X, X) -> C", "f -> (a, b) -> f(b, -a)'"),
        ("(X,) -> R", "f -> b -> -f(-b)"),
    ],
)
def test_a_map_is_printed_as_it_was_written(kind, written):
    text = program_text(infer(parse(program(kind, written))))
    assert f"symmetries = ({written},)" in text


def test_what_an_action_says_is_printed_with_the_action():
    text = program_text(infer(parse(program("(N, N) -> C", "M -> (p, q) -> M(q, p)'"))))
    assert "symmetries = (((2, 1), :conj),)" in text


def rows_of(rank):
    """Signed permutations of periodic slots: all have an inverse and come back to the identity."""
    signs = st.lists(st.sampled_from((1, -1)), min_size=rank, max_size=rank)
    return st.builds(
        lambda order, flips: tuple(((slot, c),) for slot, c in zip(order, flips, strict=True)),
        st.permutations(range(rank)),
        signs,
    )


@pytest.mark.slow
@given(st.integers(1, 12).flatmap(rows_of), st.sampled_from((1, -1)), st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_text_of_a_symmetry_reads_back_as_the_same_symmetry(rows, sign, conj):
    symmetry = Symmetry(rows, sign, conj)
    kind = f"({', '.join(['BZ'] * len(rows))},) -> C"
    module = parse(program(kind, str(symmetry)))
    try:
        term = infer(module)
    except LanguageError as error:
        assert "always zero" in error.message
        return
    assert term.params[0].kind.symmetries == (symmetry,)


# --- arrays ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 3, 5])
@pytest.mark.parametrize("points", [1, 2, 3, 7])
@pytest.mark.parametrize("orbitals", [1, 2, 3])
def test_random_overlaps_by_neighbour_have_the_law_and_others_do_not(orbitals, points, steps):
    kind = tensor("(N, N, BZ, X) -> C", LAW)
    sizes = {kind.params[0].domain: orbitals, kind.params[2].domain: points, kind.params[3].domain: steps}
    rng = np.random.default_rng(0)
    m = random_value(kind, sizes, rng)
    half = steps // 2
    for k in range(points):
        for b in range(-half, half + 1):
            there = m[:, :, (k + b) % points, half - b]
            np.testing.assert_array_equal(m[:, :, k, half + b], there.conj().T)
    assert np.abs(m).min() > 0 or np.abs(m.imag).min() == 0
    assert breaks_symmetry(m, kind, sizes, None) is None
    m[0, 0, points - 1, 0] += 1j
    breach = breaks_symmetry(m, kind, sizes, None)
    assert breach is not None and str(breach.law) == LAW and breach.found == m[breach.place]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_random_skew_hermitian_matrices_have_an_imaginary_diagonal(size):
    kind = tensor("(N, N) -> C", "K -> (p, q) -> -K(q, p)'")
    k = random_value(kind, {kind.params[0].domain: size}, np.random.default_rng(1))
    np.testing.assert_array_equal(k, -k.conj().T)
    assert np.diag(k).imag.all() and not np.diag(k).real.any()


def test_emitted_code_refuses_an_array_without_its_law_and_says_it():
    import combdiff as cd

    text = "@space K begin type = (N, N) -> C; symmetries = (K -> (p, q) -> -K(q, p)',) end\n"
    f = cd.grad(text + "(A::K) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").compile("numpy", check="full")
    with pytest.raises(ArrayError, match=r"declared symmetry K -> \(p, q\) -> -K\(q, p\)'"):
        f(np.eye(2), np.ones(2))


# --- what is refused ------------------------------------------------------------------------------------------------

WRONG = {
    "not the tensor": ("(N, N) -> C", "M -> (p, q) -> p", "maps M to itself", 32),
    "another tensor": ("(N, N) -> C", "M -> (p, q) -> T(q, p)", "maps M to itself", 32),
    "a factor": ("(N, N) -> C", "M -> (p, q) -> 2 * M(q, p)", "maps M to itself", 32),
    "a sum": ("(N, N) -> C", "M -> (p, q) -> M(q, p) + M(p, q)", "maps M to itself", 32),
    "too few indices": ("(N, N) -> C", "M -> (p,) -> M(p)", "1 index for the 2 slots of T", 23),
    "too many arguments": ("(N, N) -> C", "M -> (p, q) -> M(q, p, p)", "3 indices for the 2 slots of T", 32),
    "a typed index": ("(N, N) -> C", "M -> (p::N, q) -> M(q, p)", "types of the slots", 23),
    "the tensor as index": ("(N, N) -> C", "p -> (p, q) -> p(q, p)", "the tensor and one of its indices", 23),
    "an unknown index": ("(N, N) -> C", "M -> (p, q) -> M(q, r)", "r is not an index", 37),
    "a number": ("(BZ,) -> C", "f -> k -> f(1 - k)", "a number is added", 29),
    "a fraction": ("(BZ,) -> C", "f -> k -> f(0.5 * k)", "not an integer combination", 29),
    "a quotient": ("(BZ,) -> C", "f -> k -> f(k / 2)", "not an integer combination", 29),
    "a product": ("(BZ, BZ) -> C", "f -> (k, l) -> f(k * l, l)", "product of indices", 34),
    "shear": ("(BZ, X) -> C", "f -> (k, b) -> f(k + b, b)", "no power of", 17),
    "no inverse": ("(N, N) -> C", "f -> (i, j) -> f(i, i)", "no power of", 17),
    "twice": ("(BZ,) -> C", "f -> k -> f(2 * k)", "no power of", 17),
    "nothing": ("(BZ,) -> C", "f -> k -> f(0 * k)", "no power of", 17),
    "arithmetic in N": ("(N, N) -> C", "f -> (i, j) -> f(i, i - j)", "not periodic", 17),
    "arithmetic in X": ("(X, X) -> C", "f -> (i, j) -> f(i, i - j)", "not periodic", 17),
    "arithmetic in I": ("(I, BZ) -> C", "f -> (i, k) -> f(k - i, k)", "not periodic", 17),
    "two zones": ("(BZ, Z) -> C", "f -> (k, l) -> f(k + l, -l)", "adds the index of slot 2 in slot 1", 17),
    "an open step": ("(BZ, I) -> C", "f -> (k, b) -> f(k + b, -b)", "adds the index of slot 2 in slot 1", 17),
    "a number in a slot": ("(BZ, R) -> C", "f -> (k, x) -> f(k + x, -x)", "adds the index of slot 2 in slot 1", 17),
    "negative N": ("(N, N) -> C", "f -> (i, j) -> f(-j, -i)", "changes sign", 17),
    "two domains": ("(BZ, X) -> C", "f -> (k, b) -> f(b, k)", "ranges over the domain", 17),
    "zero": ("(N, N) -> C", "f -> (i, j) -> -f(i, j)", "always zero", 17),
    "zero for real": ("(N,) -> R", "f -> i -> -f(i)'", "always zero", 17),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_map_is_refused_at_its_place(name):
    kind, written, said, column = WRONG[name]
    error = failure(kind, written)
    assert said in error.message
    assert error.span is not None and (error.span.line, error.span.column) == (6, column), error


def test_maps_that_together_never_come_back_are_refused():
    error = failure("(BZ, X) -> C", "f -> (k, b) -> f(k, -b)", "f -> (k, b) -> f(k + b, -b)")
    assert "together" in error.message and "no power of" in error.message


def test_maps_that_together_make_the_tensor_zero_are_refused():
    assert "always zero" in failure("(X,) -> C", "f -> b -> -f(-b)", "((1,), :ineg)").message


def test_a_tensor_that_its_symmetries_make_real_is_accepted():
    assert len(tensor("(N, N) -> C", "f -> (i, j) -> f(j, i)'", "((2, 1), :id)").symmetries) == 2


@pytest.mark.slow
def test_an_interaction_that_keeps_the_momentum_has_a_gradient_of_one_term():
    import combdiff as cd

    laws = "V -> (k, p, q) -> V(k + q, p - q, -q)', V -> (k, p, q) -> V(p, k, -q)"
    text = (
        f"@domain BZ begin periodic = true end\n@space V begin type = (BZ, BZ, BZ) -> C; symmetries = ({laws}) end\n"
        "(V::V) -> (a::(BZ) -> C) -> sum((k, p, q), V(k, p, q) * a(k + q)' * a(p - q)' * a(p) * a(k))"
    )
    d = cd.grad(text)
    assert str(d).count("sum(") == 1 and " 4 * sum(" in str(d)
    assert d.check()
    assert program_text(infer(parse(str(d)))) == str(d)
