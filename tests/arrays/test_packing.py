"""Packed copies of symmetric tensors: the same numbers from the rows alone, checked in full, made once."""

from __future__ import annotations

import gc
import pickle
import re
from collections.abc import Callable
from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays.packing.layout import Addend, merged, orbits
from combdiff.arrays.packing.packed_plan import packed
from combdiff.canon.moves import Move, MoveGroup
from combdiff.command.cli import main
from combdiff.errors import ArrayError, UnsupportedError
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.run.compiled import CodeOptions, Compiled
from combdiff.run.executing import compile_source
from combdiff.terms.terms import (
    App,
    Lam,
    Term,
    Tuple,
    Var,
    add,
    conj,
    fresh,
    let,
    mul,
    number,
    power,
    sub,
    substitute,
    total,
)
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Map, Symmetry
from tests import random_terms as rt
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

Array = npt.NDArray[np.generic]
N, M = Domain("A.1"), Domain("c.2")

HF = """@space T begin
  type = (N, N, N, N) -> C
  symmetries = (((2, 1, 4, 3), :conj), ((3, 4, 1, 2), :id))
end
(J::T) -> (C::CM) -> sum((i, j, p, q, r, s), C(p, i)' * C(q, i) * C(r, j)' * C(s, j) * J(p, q, r, s))"""
RHF = """@space V begin
  type = (N, N, N, N) -> R
  symmetries = (((2, 1, 3, 4), :id), ((1, 2, 4, 3), :id), ((3, 4, 1, 2), :id))
end
(h::Sym, V::V) -> (C::RM) -> begin
  P = (p, q) -> sum(i, C(p, i) * C(q, i))
  sum((p, q), P(p, q) * (2 * h(p, q) + sum((r, s), P(r, s) * (2 * V(p, q, r, s) - V(p, r, q, s)))))
end"""
CUBIC = """@space T begin type = (N, N, N) -> R; symmetries = (((2, 1, 3), :id), ((2, 3, 1), :id)) end
(T::T) -> (x::RV) -> sum((i, j, k), T(i, j, k) * x(i) * x(j) * x(k))"""
PLAIN = "(T::(N, N, N) -> R) -> (x::RV, y::RV) -> sum((i, j, k), T(i, j, k) * x(i) * y(j) * x(k))"


def symmetric(n: int, *laws: tuple[tuple[int, ...], str], complex: bool = True, seed: int = 0) -> Array:
    """Random entries with these symmetries."""
    kind = Map(
        (Index(N),) * len(laws[0][0]), COMPLEX if complex else REAL, tuple(Symmetry.permutation(*x) for x in laws)
    )
    value = random_value(kind, {N: n}, np.random.default_rng(seed))
    assert isinstance(value, np.ndarray)
    return value


def integrals(n: int, seed: int = 0) -> Array:
    return symmetric(n, ((2, 1, 4, 3), "conj"), ((3, 4, 1, 2), "id"), seed=seed)


def orbitals(n: int, m: int, seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)) + 1j * rng.normal(size=(n, m))


def kept(f: Compiled) -> list[object]:
    """What is packed at present, a tuple for each array."""
    return [made for _, made in f._packed._kept.values()]


def same(found: object, expected: object) -> None:
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]  # type: ignore[call-overload]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, atol=1e-10)


# --- numbers --------------------------------------------------------------------------------------------------------


@st.composite
def contractions(draw: st.DrawFn) -> tuple[Term, tuple[Var, ...], tuple[Term, ...]]:
    """Contractions of a tensor of two to four slots, with any symmetries, and partners that may have some too."""
    rank = draw(st.integers(2, 4))
    orders = st.permutations(range(1, rank + 1)).map(tuple)
    actions = st.sampled_from(["id", "id", "neg", "conj"])
    laws = draw(st.lists(st.tuples(orders, actions), min_size=1, max_size=3))
    number_type = draw(st.sampled_from([REAL, COMPLEX]))
    symmetries = tuple(Symmetry.permutation(*law) for law in laws)
    A = fresh("A", Map((Index(N),) * rank, number_type, symmetries))
    c = rt.tensor("c", N, M, complex=draw(st.booleans()))
    B = rt.tensor("B", *(N,) * 4, complex=draw(st.booleans()))
    results = tuple(draw(results_of(A, B, c, rank)) for _ in range(draw(st.integers(1, 3))))
    body = Tuple(results) if len(results) > 1 else results[0]
    return Lam((A, B), Lam((c,), body)), (A, B, c), results


@st.composite
def results_of(draw: st.DrawFn, A: Var, B: Var, c: Var, rank: int) -> Term:
    """Σ A x over some slots, 2 Σ A x − Σ A(image) x, or A entry by entry."""
    labels = [rt.index(x, N) for x in "pqrs"[:rank]]
    count = draw(st.integers(1, rank))
    free, summed = labels[: rank - count], labels[rank - count :]
    extra = [rt.index("t", M)] if draw(st.booleans()) else []

    def entry() -> Term:
        found: Term = App(A, tuple(labels[n] for n in draw(st.permutations(range(rank)))))
        return conj(found) if conjugated else found

    conjugated = draw(st.booleans())
    if draw(st.integers(0, 9)) == 0:
        return Lam(tuple(labels), power(entry(), number(2)))
    x = draw(partners(B, c, tuple(summed), extra))
    first = total(summed, mul(entry(), x))
    if draw(st.booleans()):
        # with the same partner, or with its slots elsewhere
        moved = dict(zip(summed, draw(st.permutations(summed)), strict=True))
        first = sub(mul(number(2), first), total(summed, mul(entry(), substitute(x, moved))))
    order = draw(st.permutations([*free, *extra]))
    return Lam(tuple(order), first) if order else first


@st.composite
def partners(draw: st.DrawFn, B: Var, c: Var, summed: tuple[Var, ...], extra: list[Var]) -> Term:
    """A factor over `summed`: with no symmetry, symmetric, antisymmetric or Hermitian; times c(s, t) for an extra t."""
    rest = [App(c, (summed[0], extra[0]))] if extra else []
    whole = (summed * 4)[:4]
    if len(summed) < 2 or draw(st.booleans()):
        return mul(App(B, whole), *rest)
    a, b, *others = summed
    e = rt.index("e", M)
    one, other = App(c, (a, e)), App(c, (b, e))
    match draw(st.integers(0, 3)):
        case 0:
            x = total((e,), mul(one, conj(other)))
        case 1:
            x = total((e,), mul(one, other))
        case 2:
            x = sub(App(B, (a, b, a, b)), App(B, (b, a, b, a)))
        case _:
            x = add(App(B, (a, b, a, b)), conj(App(B, (b, a, b, a))))
    vectors = [total((f,), App(c, (v, f))) for v in others if (f := rt.index("f", M))]
    return mul(x, *vectors, *rest)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(contractions(), st.sampled_from((0, 1, 2, 3)), st.sampled_from("CFS"), st.integers(0, 10**6))
def test_rows_give_what_the_tensor_does(
    drawn: tuple[Term, tuple[Var, ...], tuple[Term, ...]], size: int, layout: str, seed: int
) -> None:
    term, variables, results = drawn
    sizes = {N: size, M: 2}
    rng = np.random.default_rng(seed)
    values = {v: random_value(v.kind, sizes, rng) for v in variables}
    A = values[variables[0]]
    assert isinstance(A, np.ndarray)
    given_a = np.asfortranarray(A) if layout == "F" else np.repeat(A, 2, axis=0)[::2] if layout == "S" else A
    f = Compiled(term, CodeOptions(pack=("A",)))
    for _ in range(2):
        found = f(given_a, *list(values.values())[1:])
        for one, result in zip(found if isinstance(found, tuple) else (found,), results, strict=True):
            np.testing.assert_allclose(one, np.asarray(evaluate(result, values, sizes)), atol=1e-9)


def test_columns_are_summed_only_where_every_factor_allows() -> None:
    """x(r, s, t) = x(s, r, t), and its image under the symmetry of A, x(r, t, s), has another symmetry."""
    A = fresh("A", Map((Index(N),) * 5, COMPLEX, (Symmetry.permutation((2, 1, 3, 5, 4), "conj"),)))
    c, v = rt.tensor("c", N, M), rt.tensor("v", N)
    p, q, r, s, t, e = (*(rt.index(x, N) for x in "pqrst"), rt.index("e", M))
    x = mul(total((e,), mul(App(c, (r, e)), App(c, (s, e)))), App(v, (t,)))
    result = Lam((p, q), total((r, s, t), mul(App(A, (p, q, r, s, t)), x)))
    values = {w: random_value(w.kind, {N: 3, M: 2}, np.random.default_rng(0)) for w in (A, c, v)}
    # one array of three slots, as a derivation with shared values has
    X = rt.tensor("X", N, N, N)
    shared = Lam((A,), Lam((c, v), let([(X, Lam((r, s, t), x))], _contracted(A, X))))
    found = Compiled(shared, CodeOptions(pack=("A",)))(*values.values())
    np.testing.assert_allclose(found, np.asarray(evaluate(result, values, {N: 3, M: 2})), atol=1e-12)


def _contracted(A: Var, X: Var) -> Term:
    labels = p, q, r, s, t = tuple(rt.index(x, N) for x in "pqrst")
    return Lam((p, q), total((r, s, t), mul(App(A, labels), App(X, (r, s, t)))))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(0, 4))
def test_rows_are_counted(data: st.DataObject, rank: int, size: int) -> None:
    """Burnside's number against the orbits themselves."""
    laws = data.draw(st.lists(st.permutations(range(1, rank + 1)).map(tuple), max_size=2))
    group = MoveGroup.generated(rank, map(Move, laws))
    found = {group.least_image(point).labels for point in np.ndindex((size,) * rank)}
    assert orbits([image.labels for image in group.images(range(rank))], (size,) * rank) == len(found)


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("text", [HF, RHF, CUBIC, PLAIN])
def test_value_gradient_and_products(text: str, n: int) -> None:
    rng = np.random.default_rng(3)
    d = cd.grad(text)
    name = "T" if "(T::" in text else "V" if "V" in text else "J"
    f, g = d.compile(value=True, hvp=True, pack=name), d.compile(value=True, hvp=True)
    eightfold = (((2, 1, 3, 4), "id"), ((1, 2, 4, 3), "id"), ((3, 4, 1, 2), "id"))
    h = rng.normal(size=(n, n))
    given_arrays: tuple[Array, ...] = {
        HF: (integrals(n), orbitals(n, 3)),
        RHF: (h + h.T, symmetric(n, *eightfold, complex=False), rng.normal(size=(n, 2))),
        CUBIC: (symmetric(n, ((2, 1, 3), "id"), ((2, 3, 1), "id"), complex=False), rng.normal(size=n)),
        PLAIN: (rng.normal(size=(n, n + 1, n)), rng.normal(size=n), rng.normal(size=n + 1)),
    }[text]
    *found, products = f(*given_arrays)  # type: ignore[misc]
    *expected, other = g(*given_arrays)  # type: ignore[misc]
    same(tuple(found), expected)
    directions = [np.asarray(x) * (1 + 0.5 * rng.normal(size=x.shape)) for x in found[1:]]
    same(products(*directions), other(*directions))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.complex64, np.complex128])
def test_a_packed_copy_keeps_the_precision(kind: type) -> None:
    if np.dtype(kind).kind == "c":
        f, (J, C) = cd.grad(HF).compile(pack="J"), (integrals(4), orbitals(4, 2))
    else:
        eightfold = (((2, 1, 3, 4), "id"), ((1, 2, 4, 3), "id"), ((3, 4, 1, 2), "id"))
        J, C = symmetric(4, *eightfold, complex=False), orbitals(4, 2).real
        h = np.eye(4).astype(kind)
        rhf = cd.grad(RHF).compile(pack="V")
        gradient = rhf(h, J.astype(kind), C.astype(kind))
        assert np.asarray(gradient).dtype == kind
        return
    given_j = J.astype(kind)
    assert np.asarray(f(given_j, C.astype(kind))).dtype == kind
    ((rows, _),) = kept(f)  # type: ignore[misc]
    assert rows.dtype == kind


# --- what is kept ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_half_of_the_integrals_is_kept_and_nothing_else_read() -> None:
    n = 10
    J, C = integrals(n), orbitals(n, 3)
    f = cd.grad(HF).compile(value=True, pack=("J",))
    expected = f(J, C)
    ((rows, place),) = kept(f)  # type: ignore[misc]
    assert rows.shape == (n * (n + 1) // 2, n * n)
    assert rows.flags.c_contiguous
    assert place.shape == (n, n)
    J[...] = np.nan
    same(f(J, C), expected)


@pytest.mark.slow
def test_coulomb_and_exchange_are_one_quarter() -> None:
    """2J − K as one matrix of pairs, n (n + 1) / 2 on either side."""
    n = 6
    f = cd.grad(RHF).compile(value=True, pack=("V",))
    eightfold = (((2, 1, 3, 4), "id"), ((1, 2, 4, 3), "id"), ((3, 4, 1, 2), "id"))
    V = symmetric(n, *eightfold, complex=False)
    f(np.eye(n), V, np.eye(n)[:, :2].copy())
    ((rows, _, _),) = kept(f)  # type: ignore[misc]
    assert rows.shape == (n * (n + 1) // 2,) * 2
    assert "about 1/4 of the memory of V" in f.source


def test_entries_that_an_antisymmetry_makes_zero_share_a_row() -> None:
    A = fresh("A", Map((Index(N),) * 3, REAL, (Symmetry.permutation((2, 1, 3), "neg"),)))
    x = rt.tensor("x", N)
    p, q, r = (rt.index(c, N) for c in "pqr")
    f = Compiled(
        Lam((A,), Lam((x,), Lam((p, q), total((r,), mul(App(A, (p, q, r)), App(x, (r,))))))), CodeOptions(pack=("A",))
    )
    value, y = symmetric(5, ((2, 1, 3), "neg"), complex=False), np.arange(5.0)
    np.testing.assert_allclose(f(value, y), value @ y, atol=1e-12)
    ((rows, _),) = kept(f)  # type: ignore[misc]
    assert len(rows) == 5 * 4 // 2 + 1


def test_entries_that_an_antisymmetry_makes_zero_share_a_column() -> None:
    A = fresh("A", Map((Index(N),) * 3, REAL, (Symmetry.permutation((1, 3, 2), "neg"),)))
    x = fresh("x", Map((Index(N),) * 2, REAL, (Symmetry.permutation((2, 1), "neg"),)))
    p, q, r = (rt.index(c, N) for c in "pqr")
    f = Compiled(
        Lam((A,), Lam((x,), Lam((p,), total((q, r), mul(App(A, (p, q, r)), App(x, (q, r))))))), CodeOptions(pack=("A",))
    )
    value = symmetric(5, ((1, 3, 2), "neg"), complex=False)
    y = symmetric(5, ((2, 1), "neg"), complex=False, seed=1)
    np.testing.assert_allclose(f(value, y), np.einsum("pqr,qr->p", value, y), atol=1e-12)
    ((rows, *_),) = kept(f)  # type: ignore[misc]
    assert rows.shape == (5, 5 * 4 // 2 + 1)


def test_images_of_one_tensor_are_added_with_their_signs() -> None:
    """T(q, p) = −T(p, q): T(p, q) + 2 T(q, p) is −T(p, q)."""
    group = MoveGroup.generated(2, [Move((2, 1), -1)])
    found = merged(group, [Addend(number(1), (0, 1)), Addend(number(2), (1, 0))])
    assert found == (Addend(number(-1), (0, 1)),)
    assert merged(group, [Addend(number(1), (0, 1)), Addend(number(1), (1, 0))]) == ()


LISTED = """@domain Z begin base = I; list = true; symmetric = true; contractable = false end
@space T begin type = (Z, Z) -> R; symmetries = (((1,), :ineg),) end
(A::T) -> (a::R) -> sum((i, j), A(i, j) * a)"""


def test_what_is_packed_is_checked_by_the_offsets_that_are_given() -> None:
    """A(−i, j) = A(i, j): where −i lies, only the list tells."""
    f = cd.grad(LISTED).compile(pack="A")
    A = np.array([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0], [1.0, 2.0, 3.0]])
    assert f(A, 2.0, Z=np.array([-1, 0, 1])) == A.sum()
    with pytest.raises(ArrayError, match=r"declared symmetry"):
        f(A, 2.0, Z=np.array([-1, 1, 0]))
    with pytest.raises(ArrayError, match=r"offsets of the domain Z are not known"):
        f(A.copy(), 2.0)


@pytest.mark.slow
def test_an_array_is_packed_once_and_forgotten_with_it() -> None:
    J, other, C = integrals(4), integrals(4, seed=5), orbitals(4, 2)
    f, plain = cd.grad(HF).compile(pack="J"), cd.grad(HF).compile()
    before = f(J, C)
    first = kept(f)[0]
    f(J, 2 * C)
    f(other, C)
    assert len(kept(f)) == 2
    assert kept(f)[0] is first
    J *= 2
    same(f(J, C), before)
    f.repack()
    same(f(J, C), plain(J, C))
    del other, J
    gc.collect()
    assert kept(f) == []


@pytest.mark.slow
def test_one_layout_serves_gradient_and_products() -> None:
    for text in (HF, RHF):
        name = "J" if text is HF else "V"
        source = cd.grad(text).source(value=True, hvp=True, pack=name)
        assert f"{name}_rows2" not in source
        assert f"about 1/2 of the memory of {name}" in source


@pytest.mark.slow
def test_an_array_without_symmetries_is_laid_out_once() -> None:
    rng = np.random.default_rng(0)
    T, x, y = rng.normal(size=(4, 10, 4))[:, ::2], rng.normal(size=4), rng.normal(size=5)
    f, plain = cd.grad(PLAIN).compile(pack="T"), cd.grad(PLAIN).compile()
    same(f(T, x, y), plain(T, x, y))
    (whole,) = kept(f)
    assert isinstance(whole, np.ndarray)
    assert whole.flags.c_contiguous
    assert whole.size == T.size


def test_the_copy_lies_as_its_contraction_reads_it() -> None:
    """Slots 1 and 3 are contracted: their axes are put last."""
    A, B = rt.tensor("A", N, M, N, M), rt.tensor("B", N, N)
    p, r, q, s = rt.index("p", N), rt.index("r", N), rt.index("q", M), rt.index("s", M)
    term = Lam((A,), Lam((B,), Lam((q, s), total((p, r), mul(App(A, (p, q, r, s)), App(B, (p, r)))))))
    values = {v: random_value(v.kind, {N: 3, M: 2}, np.random.default_rng(0)) for v in (A, B)}
    f = Compiled(term, CodeOptions(pack=("A",)))
    assert "A_packed.reshape" in f.source
    assert "tensordot" not in f.source
    np.testing.assert_allclose(f(*values.values()), np.einsum("pqrs,pr->qs", *values.values()))


def test_slots_of_several_axes_are_laid_out() -> None:
    domain = "@domain BZ begin base = (I, I); periodic = true end\n@space K begin type = (BZ, BZ) -> C; "
    energy = "(K::K) -> (u::(BZ) -> C) -> sum((a::BZ, b::BZ), u(a)' * K(a, b) * u(b))"
    d = cd.grad(f"{domain}symmetries = (((2, 1), :conj),) end\n{energy}")
    rng = np.random.default_rng(0)
    K = rng.normal(size=(6, 6)) + 1j * rng.normal(size=(6, 6))
    K = (K + K.conj().T).reshape(2, 3, 2, 3)
    u = rng.normal(size=(2, 3)) + 0j
    same(d.compile(pack="K")(K, u), d.compile()(K, u))


# --- symmetry is checked --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", ["sample", False])
def test_one_wrong_entry_is_found(check: object) -> None:
    J, C = integrals(20), orbitals(20, 2)
    J[3, 4, 5, 6] += 7
    f = cd.grad(HF).compile(pack="J", check=check)  # type: ignore[arg-type]
    with pytest.raises(ArrayError, match=re.escape("declared symmetry")) as caught:
        f(J, C)
    places = {(3, 4, 5, 6), (4, 3, 6, 5), (5, 6, 3, 4), (6, 5, 4, 3)}
    assert any(f"J[{', '.join(map(str, place))}]" in str(caught.value) for place in places)


def test_the_worst_entry_is_named() -> None:
    T = np.ones((3, 3, 3))
    T[0, 1, 2], T[2, 2, 0] = 1.5, 9.0
    with pytest.raises(ArrayError, match=r"T\[(2, 2, 0|2, 0, 2|0, 2, 2)\] is (9|1), not (1|9)"):
        cd.grad(CUBIC).compile(pack="T")(T, np.ones(3))


# --- source ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_source_stands_alone() -> None:
    text = cd.grad(HF).source(value=True, pack=("J",))
    assert "combdiff" not in text
    J, C = integrals(5), orbitals(5, 2)
    made = compile_source(text, "pack_J")(J)
    same(compile_source(text, "value_and_gradient")(made, C), cd.grad(HF).compile(value=True)(J, C))


@pytest.mark.slow
def test_the_command_line_emits_it(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    file = f"{tmp_path}/hf.cd"
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(HF)
    assert main(["grad", file, "--format", "python", "--pack", "J"]) == 0
    assert "def pack_J(J):" in capsys.readouterr().out
    assert main(["grad", file, "--format", "python", "--pack", "K"]) == 2
    assert "remedy: what can be packed is J" in capsys.readouterr().err
    assert main(["grad", file, "--pack", "J"]) == 2
    assert "--format python" in capsys.readouterr().err


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("pack", "message"),
    [
        ("K", "no argument called K"),
        ("C", "C changes from call to call"),
        (("J", "a"), "a is a number"),
        ("g", "g is a function"),
        (3, "pack is 3"),
    ],
)
def test_what_cannot_be_packed_is_told_before_any_work(pack: object, message: str) -> None:
    d = cd.grad(HF.replace("(J::T)", "(J::T, a::R, g::RF)") + " * a")
    calls: tuple[Callable[..., object], ...] = (d.compile, d.source)
    for call in calls:
        with pytest.raises(UnsupportedError, match=message) as caught:
            call(pack=pack)
        assert caught.value.remedy


def test_directions_and_cotangents_are_not_packed() -> None:
    d = cd.pullback("(A::RM) -> (x::RV) -> i -> sum(j, A(i, j) * x(j))")
    with pytest.raises(UnsupportedError, match="changes from call to call"):
        d.compile(pack=d.term.body.params[-1].name if isinstance(d.term, Lam) and isinstance(d.term.body, Lam) else "k")


def test_an_argument_that_is_not_read_is_not_packed() -> None:
    d = cd.grad("(A::RM, B::RM) -> (x::RV) -> sum((i, j), A(i, j) * x(i) * x(j)) + sum((i, j), B(i, j))")
    B = np.ones((2, 2))
    same(d.compile(pack=("A", "B"))(np.eye(3), B, np.ones(3)), 2 * np.ones(3))


@pytest.mark.slow
def test_a_pickled_function_packs_again() -> None:
    J, C = integrals(4), orbitals(4, 2)
    for hvp in (False, True):
        f = cd.grad(HF).compile(value=True, hvp=hvp, pack="J")
        again = pickle.loads(pickle.dumps(f))
        assert again.source == f.source
        same(again(J, C)[:2], f(J, C)[:2])  # type: ignore[index]
        assert len(kept(again)) == 1


@pytest.mark.slow
def test_a_minimiser_reads_packed_integrals() -> None:
    d = cd.grad(HF)
    J, C = integrals(4), orbitals(4, 2)
    p, plain = d.problem(pack="J", J=J, C=C), d.problem(J=J, C=C)
    np.testing.assert_allclose(p.jac(p.x0), plain.jac(plain.x0))
    np.testing.assert_allclose(p.hessp(p.x0, p.x0), plain.hessp(plain.x0, plain.x0))


# --- other libraries ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("text", [HF, RHF])
def test_other_libraries_pack_too(library: Numbers, text: str) -> None:
    eightfold = (((2, 1, 3, 4), "id"), ((1, 2, 4, 3), "id"), ((3, 4, 1, 2), "id"))
    arrays: tuple[Array, ...] = (integrals(4), orbitals(4, 2))
    if text is RHF:
        arrays = (np.eye(4), symmetric(4, *eightfold, complex=False), orbitals(4, 2).real.copy())
    d, name = cd.grad(text), "J" if text is HF else "V"
    if library.name == "dask":
        with pytest.raises(UnsupportedError, match="in memory"):
            d.compile("dask", value=True, pack=name)
        return
    found = d.compile(library.name, value=True, pack=name)(*map(library.to, arrays))
    expected = d.compile(value=True)(*arrays)
    same(tuple(map(library.back, found)), expected)  # type: ignore[call-overload]


@pytest.mark.slow
def test_a_traced_array_is_packed_where_it_is_traced() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    J, C = integrals(3), orbitals(3, 2)
    f = cd.grad(HF).compile("jax", pack="J")
    np.testing.assert_allclose(jax.jit(f)(J, C), cd.grad(HF).compile()(J, C))
    assert kept(f) == []


def test_chunked_arrays_are_not_packed() -> None:
    with pytest.raises(UnsupportedError, match="dask"):
        cd.grad(HF).source("dask", pack="J")


# --- derived symmetries ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_what_is_derived_of_a_step_holds_for_numbers(seed: int) -> None:
    """Every claim about random plans of contractions, sums and functions."""
    import random

    from combdiff.arrays.derived import Derived
    from combdiff.arrays.lower.lower import lower
    from combdiff.arrays.plan import Plan
    from combdiff.emit.emit import emit, spelling_of

    term = rt.Terms(random.Random(seed)).program()
    sizes = {rt.N: 3, rt.M: 2, rt.BZ: 3, rt.X: 3}
    plan = lower(term, sizes)
    rng = np.random.default_rng(seed)
    derived = Derived({})
    arrays = {a.name: random_value(a.kind, sizes, rng) for a in plan.arguments if a.step is not None}
    sized = {a.name: sizes[a.kind.domain] for a in plan.arguments if isinstance(a.kind, Index) and a.kind.domain}
    for step in [s for s in plan.steps if 2 <= s.rank <= 3]:
        one = tuple(range(step.rank))
        for order in [o for o in permutations(one) if [step.domains[n] for n in o] == list(step.domains)]:
            for conjugated in (False, True):
                sign = derived.sign(step, one, order, conjugated)
                if sign:
                    text = emit(Plan(plan.arguments, (step,), False, sizes, plan.names), spelling_of("numpy"), "f")
                    with np.errstate(all="ignore"):
                        value = np.asarray(compile_source(text, "f")(**arrays, **sized))
                    other = value.transpose(order)
                    np.testing.assert_allclose(value, sign * (other.conj() if conjugated else other), atol=1e-9)


def test_plans_without_packing_are_left_alone() -> None:
    plan = cd.grad(HF).plan()
    assert packed(plan, []) is plan
