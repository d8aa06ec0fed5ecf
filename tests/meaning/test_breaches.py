"""Symmetries of arrays are checked entry by entry: one large entry hides nothing, and rounding is no breach."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from combdiff.errors import ArrayError
from combdiff.meaning.breaches import Breach, Entries, breaks_symmetry
from combdiff.meaning.comparing import difference, magnitude
from combdiff.meaning.masks import refuse_masked
from combdiff.meaning.samples import images_of, random_value
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, SYMMETRIC, Domain, Index, Map, Symmetry

Array = npt.NDArray[np.generic]

N = Domain("A.1")
Z = Domain("Z", declared=True, periodic=True)
X = Domain("X", declared=True, symmetric=True)
n, z, x = Index(N), Index(Z), Index(X)
SKEW = Symmetry.permutation((2, 1), "neg")
KINDS = {
    "symmetric": Map((n, n), REAL, (SYMMETRIC,)),
    "Hermitian": Map((n, n), COMPLEX, (HERMITIAN,)),
    "skew": Map((n, n), REAL, (SKEW,)),
    "integrals": Map(
        (n, n, n, n), COMPLEX, (Symmetry.permutation((2, 1, 4, 3), "conj"), Symmetry.permutation((3, 4, 1, 2), "id"))
    ),
    "free": Map((n, n, n), REAL, (Symmetry.permutation((2, 1, 3), "id"), Symmetry.permutation((1, 3, 2), "id"))),
    "even": Map((x,), REAL, (Symmetry.reflection((1,), 1, "ineg"),)),
    "even in one": Map((x, n), COMPLEX, (Symmetry.reflection((1,), 2, "inegc"),)),
    "neighbours": Map(
        (n, n, z, x), COMPLEX, (Symmetry((((1, 1),), ((0, 1),), ((2, 1), (3, 1)), ((3, -1),)), 1, True),)
    ),
}
MATRIX = KINDS["symmetric"]


def sizes_of(size: int) -> dict[Domain, int]:
    return {N: size, Z: 5, X: 2 * size + 1}


def broken(rows: object, kind: Map = MATRIX, sample: int | None = None) -> Breach | None:
    array = np.asarray(rows)
    return breaks_symmetry(array, kind, {N: len(array)}, sample)


def orbit(kind: Map, sizes: dict[Domain, int], place: tuple[int, ...]) -> set[tuple[int, ...]]:
    """A place and its images."""
    found, todo = {place}, [place]
    for at in todo:
        for law in kind.symmetries:
            image = tuple(int(p) for p in images_of(kind, sizes, law, [np.asarray(c) for c in at]))
            if image not in found:
                found.add(image)
                todo.append(image)
    return found


# --- what is a breach -----------------------------------------------------------------------------------------------


def test_a_large_entry_hides_nothing() -> None:
    rows = np.array([[1e12, 1, 0], [500, 1, 0], [0, 7, 1]])
    assert broken(rows) is not None
    rows[1, 0] = rows[0, 1]
    breach = broken(rows)
    assert breach is not None and {breach.found, breach.expected} == {0.0, 7.0}
    assert broken(np.array([[1e12, 1], [500, 1]])) is not None
    rows[2, 1] = 0
    assert broken(rows) is None


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(KINDS)), st.integers(2, 4), st.integers(0, 10**9), st.integers(3, 12), st.booleans())
def test_an_entry_in_a_row_without_the_large_one_is_found(
    name: str, size: int, seed: int, digits: int, sampled: bool
) -> None:
    """One entry and its images are large, another one is off by 1 % or more."""
    kind, sizes, rng = KINDS[name], sizes_of(size), np.random.default_rng(seed)
    array = np.array(random_value(kind, sizes, rng))
    large, place = (tuple(int(rng.integers(k)) for k in array.shape) for _ in range(2))
    images = orbit(kind, sizes, large)
    assume(any(all(p[slot] != at for p in images) for slot, at in enumerate(place)))
    for p in images:
        array[p] *= 10.0**digits
    off = 1 if digits > 9 else 0.01
    array[place] = array[place] * (1 + off) + off * (1 + (1j if kind.result == COMPLEX else 0))
    assume(orbit(kind, sizes, place) != {place} or "skew" in name or kind.result == COMPLEX)
    assert np.abs(array[place]) < 1e3
    breach = breaks_symmetry(array, kind, sizes, 4096 if sampled else None)
    assert breach is not None and breach.place in orbit(kind, sizes, place)
    assert breach.found == array[breach.place]


@pytest.mark.parametrize("digits", [15, 20, 100, 300])
def test_an_entry_far_from_the_large_one_is_found_however_large_that_is(digits: int) -> None:
    rng = np.random.default_rng(digits)
    rows = rng.normal(size=(6, 6))
    rows += rows.T
    rows[1, 4] = rows[4, 1] = 10.0**digits
    assert broken(rows) is None
    rows[2, 3] += 0.01
    breach = broken(rows)
    assert breach is not None and breach.place in ((2, 3), (3, 2))


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(KINDS)), st.integers(1, 5), st.integers(0, 10**9), st.sampled_from((1e-30, 1.0, 1e30)))
def test_rounding_is_no_breach(name: str, size: int, seed: int, unit: float) -> None:
    """Entries are off by the rounding of numbers as large as the largest, entries that should be zero among them."""
    kind, sizes, rng = KINDS[name], sizes_of(size), np.random.default_rng(seed)
    array = np.array(random_value(kind, sizes, rng))
    zero = rng.random(array.shape) < 0.5
    for p in np.argwhere(zero):
        for q in orbit(kind, sizes, tuple(map(int, p))):
            array[q] = 0
    images = orbit(kind, sizes, tuple(map(int, np.unravel_index(np.abs(array).argmax(), array.shape))))
    # that many entries are zero shows where more than one orbit is not
    others = (tuple(map(int, p)) for p in np.argwhere(np.abs(array) > 0.1))
    assume(any(all(p[slot] != at for p in images) for q in others for slot, at in enumerate(q)))
    noise = rng.normal(size=array.shape) + (1j * rng.normal(size=array.shape) if kind.result == COMPLEX else 0)
    array = unit * (array + 3e-16 * noise)
    assert breaks_symmetry(array, kind, sizes, None) is None


def test_rounding_near_zero_is_no_breach() -> None:
    assert broken([[1.0, 1e-17], [3e-17, 1e-33]]) is None
    assert broken(np.diag([1.0, 1, 0, 0]) + 1e-17 * np.random.default_rng(0).normal(size=(4, 4))) is None
    assert broken([[2.0, 1e-10], [1e-10 + 1e-16, 3.0]]) is None
    # but all rows can be small, and units too
    assert broken([[0.0, 1e-17], [3e-17, 0.0]]) is not None
    assert broken(1e-34 * np.array([[1.0, 2.0], [3.0, 4.0]])) is not None


def test_a_rotated_projector_is_symmetric_up_to_rounding() -> None:
    """All that is left of most rows is rounding, and is not symmetric."""
    rng = np.random.default_rng(1)
    q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    rotated = q.T @ ((q * (np.arange(40) < 7)) @ q.T) @ q
    assert not np.array_equal(rotated, rotated.T)
    assert broken(rotated) is None and broken(rotated, sample=100) is None


@pytest.mark.parametrize("sample", [None, 20])
def test_rows_decide_where_a_sample_shows_rounding_only(sample: int | None) -> None:
    """Few entries are not rounding, and a sample may show none of them."""
    rows = 1e-17 * np.random.default_rng(0).normal(size=(200, 200))
    rows[np.arange(200), (np.arange(200) + 100) % 200] = 1
    assert broken(rows, sample=sample) is None


# --- what is no number ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "word"), [(np.nan, "nan"), (np.inf, "infinity"), (-np.inf, "infinity"), (complex(0, np.inf), "infinity")]
)
@pytest.mark.parametrize("name", KINDS)
def test_what_is_no_finite_number_is_named(name: str, bad: complex, word: str) -> None:
    """Wherever it stands, alone or with its images; other entries are not looked at by its measure."""
    kind, sizes = KINDS[name], sizes_of(2)
    good = np.array(random_value(kind, sizes, np.random.default_rng(0)))
    if not isinstance(bad, float) and kind.result == REAL:
        return
    for place in np.ndindex(good.shape):
        for places in ([place], orbit(kind, sizes, place)):
            array = good.copy()
            for p in places:
                array[p] = bad
            breach = breaks_symmetry(array, kind, sizes, None)
            assert breach is not None and f" is {word}" in breach.message("T")
            assert breach.place in places
            assert f"T[{', '.join(map(str, breach.place))}]" in breach.message("T")


def test_what_is_no_number_beside_a_doubtful_entry_is_named_from_a_sample() -> None:
    rows = np.ones((300, 300))
    rows[7, 9] = np.nan
    rows[np.tril_indices(300, -1)] = 2
    breach = broken(rows, sample=50)
    assert breach is not None and "T[7, 9] is nan" in breach.message("T")


def test_numbers_near_the_largest_do_not_overflow() -> None:
    most = 1.5e308
    kind = KINDS["Hermitian"]
    rows = np.array([[1, most + 1j * most], [most - 1j * most, 2]])
    assert broken(rows, kind) is None
    rows[1, 0] = -most + 1j * most
    assert broken(rows, kind) is not None
    assert magnitude(rows).max() == most


# --- dtypes, strides, samples ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128])
def test_half_the_digits_of_the_dtype_count(dtype: type) -> None:
    eps = float(np.finfo(dtype).eps)
    rows = np.array([[1, 2], [2, 3]], dtype)
    assert broken(rows) is None
    rows[0, 1] *= dtype(1) + dtype(4 * eps)
    assert rows[0, 1] != rows[1, 0] and broken(rows) is None
    rows[0, 1] *= dtype(1 + 8 * eps**0.5)
    assert broken(rows) is not None


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int64, np.uint64])
def test_integers_must_agree(dtype: type) -> None:
    rows = np.array([[0, 1], [1, 1]], dtype)
    assert broken(rows) is None
    rows[1, 0] = 0
    breach = broken(rows)
    assert breach is not None and {breach.found, breach.expected} == {0.0, 1.0}
    if dtype is not np.bool_:
        assert broken(np.array([[0, 1], [2, 127]], dtype)) is not None
        assert broken(np.array([[0, 127], [126, 0]], dtype)) is not None
    assert broken(np.array([[0, 5], [-5, 0]]), KINDS["skew"]) is None


def test_strides_and_blocks_make_no_difference() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1300, 1300))
    rows += rows.T
    assert broken(rows[::-1, ::-1]) is None and broken(np.asfortranarray(rows)) is None
    rows[1299, 3] += 1
    breach = broken(rows)
    assert breach is not None and breach.place in ((1299, 3), (3, 1299))
    assert broken(rows[::2, ::2]) is None and broken(rows[1::2, 1::2]) is not None


def test_the_worst_entry_is_told() -> None:
    breach = broken([[1.0, 2.0, 3.0], [2.5, 1.0, 9.0], [3.0, 1.0, 1.0]])
    assert breach is not None
    assert breach.message("A") == "A does not have its declared symmetry ((2, 1), :id): A[1, 2] is 9, not 1"
    near = broken([[1.0, 2.0], [2.0000001, 1.0]])
    assert near is not None and near.message("A").endswith("A[0, 1] is 2, not 2.0000001")


def test_empty_arrays_have_every_symmetry() -> None:
    assert broken(np.zeros((0, 0))) is None
    with pytest.raises(ArrayError, match="shape"):
        broken(np.zeros((2, 3)))


def test_places_are_those_of_the_array_and_not_of_the_slots() -> None:
    """A lattice has an axis for each direction."""
    zone = Domain("K", declared=True, periodic=True, directions=2)
    kind = Map((Index(zone),), REAL, (Symmetry.reflection((1,), 1, "ineg"),))
    sizes = dict.fromkeys(zone.axes, 3)
    array = np.array(random_value(kind, sizes, np.random.default_rng(0)))
    assert breaks_symmetry(array, kind, sizes) is None
    array[1, 2] += 1
    breach = breaks_symmetry(array, kind, sizes)
    assert breach is not None and breach.place in ((1, 2), (2, 1)) and breach.found == array[breach.place]


def test_slices_are_read_in_blocks() -> None:
    rng = np.random.default_rng(0)
    array = rng.normal(size=(70, 80, 90))
    entries = Entries(array)
    for kept in ((0,), (1,), (2,), (0, 2), (1, 2)):
        over = tuple(axis for axis in range(3) if axis not in kept)
        np.testing.assert_array_equal(entries.largest(kept), np.abs(array).max(axis=over))
    array[3, 4, 5] = np.nan
    assert np.isnan(entries.largest((0,))[3]) and np.isnan(entries.largest((1,))[4])


# --- masks ----------------------------------------------------------------------------------------------------------


def test_masked_arrays_are_refused_and_others_are_not() -> None:
    for masked in (np.ma.masked_equal([1.0, 2.0], 2.0), np.ma.array([1.0]), np.ma.masked):
        with pytest.raises(ArrayError, match="x is a masked array"):
            refuse_masked(masked, "x")
    for plain in (np.zeros(3), np.zeros(2).view(np.recarray), 3.0, [1.0], None, Fraction(1, 2)):
        refuse_masked(plain, "x")


# --- how far two arrays differ --------------------------------------------------------------------------------------


def test_a_difference_is_relative_to_the_entry() -> None:
    one = np.array([1e9, 1.0, 1e-3])
    assert difference(one, np.array([1e9, 2.0, 1e-3]), share=0) == 0.5
    assert difference(one, np.array([1e9, 2.0, 1e-3])) == 1e-4
    assert difference(one, np.array([1e9, 1.0, 2e-3]), floor=1.0, share=0) == 1e-3
    assert difference(one, one * (1 + 1e-14)) < 1e-13
    rows = np.array([[1e6, 1.0], [1.0, 1e-9]])
    assert difference(rows, np.array([[1e6, 1.0], [1.0, 2e-9]]), share=0) == pytest.approx(1e-9)
    assert difference(np.zeros((0, 2)), np.zeros((0, 2))) == difference(np.array(2.0), np.array(2.0)) == 0


def test_a_difference_beside_what_is_not_finite_counts() -> None:
    one = np.array([np.inf, np.nan, 1.0, 1e300])
    other = np.array([np.inf, 1.0, 2.0, 1e300])
    assert difference(one, one) == 0
    assert difference(one[:3], other[:3]) == pytest.approx(0.5)
