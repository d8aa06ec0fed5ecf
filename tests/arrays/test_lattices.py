"""Code over lattices, lists of offsets and bounds: it stands alone, takes X=, and refuses lists that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import ArrayError, LanguageError
from combdiff.meaning import points
from combdiff.run.executing import compile_source
from tests.promises import assert_holds, gradient_by

LINE = """@domain Z begin base = I; periodic = true end
@domain X begin base = I; list = true; symmetric = true end
"""
SPACE = """@domain BZ begin base = (I, I, I); periodic = true end
@domain X begin base = (I, I, I); list = true; symmetric = true end
"""
WALK = SPACE + "(w::(X) -> R) -> (u::(BZ) -> C) -> sum((k::BZ, b::X), w(b) * u(k)' * u(k + b))"
HOP = LINE + "(w::(X) -> R) -> (u::(Z) -> C) -> sum((k::Z, b::X), w(b) * u(k)' * u(k + b))"
ROWS = np.array([[1, 0, 0], [0, 0, 2], [-1, 0, 0], [0, 0, -2]])


def drawn(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def walked(w: np.ndarray, u: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The gradient by hand: what is ahead with weight w(b), what is behind too."""
    axes = tuple(range(u.ndim))
    ahead = [w[b] * (np.roll(u, -row, axes) + np.roll(u, row, axes)) for b, row in enumerate(rows)]
    return np.sum(ahead, axis=0) if len(rows) else np.zeros_like(u)


@pytest.mark.parametrize("zone", [(3, 2, 4), (1, 1, 1), (1, 5, 2), (0, 2, 2)])
def test_steps_on_a_lattice_as_an_expert_rolls(zone: tuple[int, ...]) -> None:
    w, u = np.arange(4.0), drawn(zone)
    assert np.allclose(cd.grad(WALK).compile("numpy")(w, u, X=ROWS), walked(w, u, ROWS))


@pytest.mark.parametrize("rows", [[1, -1], [[3], [-3], [0]], [], np.array([2, -2], np.int32)])
def test_a_list_of_one_direction_is_an_array_of_one_axis_or_a_column(rows: object) -> None:
    column = np.asarray(rows, int).reshape(-1, 1)
    w, u = np.arange(float(len(column))), drawn((7,))
    assert np.allclose(cd.grad(HOP).compile("numpy")(w, u, X=rows), walked(w, u, column))


def test_the_source_stands_alone_and_takes_the_list_by_name() -> None:
    d = cd.grad(WALK)
    text = d.source()
    assert "def gradient(w, u, X):" in text and "combdiff" not in text
    assert "X: integer array (n_X, 3), one row an offset" in text
    assert "u: complex array (n_BZ_1, n_BZ_2, n_BZ_3)" in text
    assert max(map(len, text.splitlines())) <= 120
    w, u = np.arange(4.0), drawn((3, 2, 4))
    assert np.allclose(compile_source(text)(w, u, X=ROWS), walked(w, u, ROWS))


def test_a_negative_of_an_offset_is_found_in_the_list() -> None:
    d = cd.grad(SPACE + "(w::(X) -> R) -> sum(b::X, w(b)^2 * w(-b))")
    assert "opposite" in d.source()
    w, back = np.array([1.0, 2.0, 3.0, 5.0]), [2, 3, 0, 1]
    assert np.allclose(d.compile("numpy")(w, X=ROWS), 2 * w * w[back] + w[back] ** 2)
    assert d.compile("numpy")(np.zeros(0), X=np.zeros((0, 3), int)).shape == (0,)


def test_a_number_of_steps_is_the_length_of_the_list() -> None:
    d = cd.grad(SPACE + "(x::R) -> sum(b::X, x^2)")
    assert d.compile("numpy")(1.5, X=ROWS) == 12.0
    assert d.check()


def test_the_points_of_a_lattice_are_counted_in_every_direction() -> None:
    d = cd.grad(SPACE + "(u::(BZ) -> R) -> sum((k::BZ, q::BZ), u(k)^2)")
    u = np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(d.compile("numpy")(u), 48 * u)


def test_an_array_and_a_list_of_one_name_are_told_apart() -> None:
    f = cd.grad(LINE + "(X::(Z) -> C) -> sum((k::Z, b::X), X(k)' * X(k + b))").compile("numpy")
    u = drawn((5,))
    assert [a.name for a in f.arguments] == ["X", "X_offsets"]
    assert np.allclose(f(u, X_offsets=[1, -1]), walked(np.ones(2), u, np.array([[1], [-1]])))


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "gradient is not given X"),
        ({"X": ROWS[:, :2]}, r"X has the shape \(4, 2\), but an offset of the domain X is a row of 3 columns"),
        ({"X": ROWS[0]}, r"X has the shape \(3,\)"),
        ({"X": ROWS / 2}, "X must hold integers, and holds float64"),
        ({"X": ROWS[:3]}, r"holds the offset \(0, 0, 2\), but not \(0, 0, -2\)"),
        ({"X": np.vstack([ROWS, ROWS[:1]])}, r"holds the offset \(1, 0, 0\) twice"),
        ({"X": ROWS[[0, 2]]}, "sizes disagree: X has 2, but slot 1 of w has 4"),
    ],
)
def test_a_list_that_does_not_fit_is_refused(given: dict[str, object], said: str) -> None:
    f = cd.grad(WALK).compile("numpy")
    with pytest.raises(ArrayError, match=said) as caught:
        f(np.zeros(4), drawn((3, 2, 4)), **given)
    assert caught.value.remedy


def test_a_missing_list_is_told_what_it_is() -> None:
    with pytest.raises(ArrayError) as caught:
        cd.grad(WALK).compile("numpy")(np.zeros(4), drawn((3, 2, 4)))
    assert "X= takes the offsets of the domain X, an integer array with 3 columns, one row an offset" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((24,), "u has 1 index on 3 axes, but the array has 1 axis"),
        ((3, 8), "u has 1 index on 3 axes, but the array has 2 axes"),
    ],
)
def test_an_array_without_an_axis_for_each_direction_is_refused(shape: tuple[int, ...], said: str) -> None:
    with pytest.raises(ArrayError, match=said):
        cd.grad(WALK).compile("numpy")(np.zeros(4), drawn(shape), X=ROWS)


def test_zones_of_other_sizes_are_told_with_their_direction() -> None:
    d = cd.grad(SPACE + "(v::(BZ) -> R) -> (u::(BZ) -> R) -> sum(k::BZ, v(k) * u(k)^2)")
    with pytest.raises(ArrayError, match="direction 2 of slot 1 of u has 5, but direction 2 of slot 1 of v has 2"):
        d.compile("numpy")(np.zeros((3, 2, 4)), np.zeros((3, 5, 4)))


def test_a_list_that_only_a_symmetry_needs_is_asked_for() -> None:
    space = "@space S begin type = (X,) -> R; symmetries = (((1,), :ineg),) end\n"
    f = cd.grad(SPACE + space + "(w::S) -> sum(b::X, w(b)^2)").compile("numpy")
    w = np.array([1.0, 2.0, 1.0, 2.0])
    assert np.array_equal(f(w, X=ROWS), 2 * w)
    with pytest.raises(ArrayError, match="the offsets of the domain X are not known"):
        f(w.copy())
    with pytest.raises(ArrayError, match="does not have its declared symmetry"):
        f(np.arange(4.0), X=ROWS)


def test_a_list_that_was_seen_is_not_checked_again_until_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    f = cd.grad(WALK).compile("numpy")
    w, u, rows = np.arange(4.0), drawn((3, 2, 4)), ROWS.copy()
    f(w, u, X=rows)
    looked: list[object] = []
    check = points._check_list
    monkeypatch.setattr(points, "_check_list", lambda *given: (looked.append(given), check(*given)))
    for _ in range(3):
        assert np.allclose(f(w, u, rows.copy()), walked(w, u, ROWS))
    assert not looked
    rows[[0, 2]] *= 2
    assert np.allclose(f(w, u, rows), walked(w, u, rows))
    assert len(looked) == 1
    rows[0] = 0
    with pytest.raises(ArrayError, match="but not"):
        f(w, u, rows)
    assert np.allclose(f(w, u, X=ROWS), walked(w, u, ROWS))


def test_a_symmetry_of_neighbours_is_checked_for_every_list() -> None:
    space = "@space S begin type = (X,) -> R; symmetries = (((1,), :ineg),) end\n"
    f = cd.grad(SPACE + space + "(w::S) -> (u::(BZ) -> C) -> sum((k::BZ, b::X), w(b) * u(k)' * u(k + b))").compile()
    w, u = np.array([1.0, 2.0, 1.0, 2.0]), drawn((3, 2, 4))
    for _ in range(2):
        assert np.allclose(f(w, u, X=ROWS), walked(w, u, ROWS))
        with pytest.raises(ArrayError, match="does not have its declared symmetry"):
            f(w, u, X=ROWS[[0, 2, 1, 3]])


def test_a_plan_takes_shapes_of_arrays_and_of_the_list() -> None:
    d = cd.grad(WALK)
    table = str(d.plan(u=(4, 5, 6), w=(8,)))
    assert "8×4" in table and "8×5" in table and "8×6" in table
    assert str(cd.grad(SPACE + "(x::(BZ) -> R) -> sum((k::BZ, b::X), x(k) * x(k + b)^2)").plan(X=(7, 3)))
    with pytest.raises(ArrayError, match="u has"):
        d.plan(u=(4, 5))


def test_a_lattice_with_bounds_has_its_sizes_in_the_code() -> None:
    text = (
        "@domain B begin base = (I, I); lower = -1; upper = 1 end\n(x::(B) -> R) -> sum((i::B, j::B), x(i) * x(-j)^2)"
    )
    d = cd.grad(text)
    x = np.arange(9.0).reshape(3, 3)
    assert np.allclose(d.compile("numpy")(x), np.sum(x**2) + 2 * x * np.sum(x))
    assert "n_" not in d.source()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [[2, -2, 1, -1, 0], [3, -3]])
def test_a_scatter_that_adds_repeats_what_it_adds(rows: list[int]) -> None:
    text = LINE + "(x::(Z) -> C, y::(X) -> R) -> sum((k::Z, b::X, c::X), delta(b, 0, x(k + b) * x(c - b) * y(-b)))"
    d = cd.grad(text, wrt="x")
    x, y = drawn((7,)), np.arange(1.0, len(rows) + 1)
    expected = np.zeros(7, complex)
    if 0 in rows:
        total, weight = x.conj().sum(), y[rows.index(0)]
        expected += weight * sum(x.conj()[c] for c in rows)
        for c in rows:
            expected[c % 7] += weight * total
    assert np.allclose(d.compile("numpy")(x=x, y=y, X=rows), expected)


@pytest.mark.slow
def test_an_equation_is_given_the_size_of_a_list_that_it_only_sums_over() -> None:
    text = """@domain X begin base = I; list = true end
    (S::(X) -> R, g::((X, X) -> R) -> R) -> (a::R) -> sum(i, S(i)) * root((w::R) -> w^3 + w + g((i::X, m::X) -> a))"""
    d = cd.grad(text)
    f = d.compile()
    assert [a.name for a in f.arguments] == ["S", "a", "g", "grad_g", "start_w", "inverse_w"]
    S, a = np.array([0.3, -1.2, 0.7]), 0.4
    given = {"g": lambda x: float(np.sin(x).sum()), "grad_g": np.cos}
    w = np.roots([1, 0, 1, 9 * np.sin(a)])
    (root,) = w[np.abs(w.imag) < 1e-12].real
    assert np.isclose(f(S, a, **given), -S.sum() * 9 * np.cos(a) / (3 * root**2 + 1))


def test_a_linear_map_is_given_arrays_of_the_shape_that_it_takes() -> None:
    text = """@domain Z begin base = (I, I, I); periodic = true end
    @space T begin type = (((Z) -> C)) -> CV; linear = true end
    (f::T) -> (a::R) -> abs2(sum(i, f((j::Z) -> a)(i)))"""
    M = np.random.default_rng(0).normal(size=(4, 2, 3, 5))
    f = cd.grad(text).compile()
    sizes = {"n_Z_1": 2, "n_Z_2": 3, "n_Z_3": 5, "n_f_0_1": 4}

    def on(x: np.ndarray) -> np.ndarray:
        assert x.shape == (2, 3, 5)
        return np.tensordot(M, x, 3)

    def adjoint(k: np.ndarray) -> np.ndarray:
        assert k.shape == (4,)
        return np.tensordot(k, M, 1)

    assert np.isclose(f(0.3, f=on, adjoint_f=adjoint, **sizes), 2 * 0.3 * M.sum() ** 2)


@pytest.mark.parametrize("text", ["(x::RV) -> sum(i, 2 * x(i))", "(x::RV{n}) -> sum(i, x(i)) * sum(i::N{n}, 1)"])
def test_results_are_of_floating_point(text: str) -> None:
    value, gradient = cd.grad(text).compile(value=True)(np.ones(3))
    assert np.asarray(value).dtype == gradient.dtype == np.float64
    gradient *= 0.1


def test_a_division_by_an_imaginary_zero_is_not_finite_and_raises_nothing() -> None:
    with np.errstate(all="ignore"):
        for text in ("(a::R) -> imag(1 / (im * a))", "(a::R) -> abs2(1 / (im * a + 0))", "(a::R) -> abs2(im / a)"):
            value, _ = cd.grad(text).compile(value=True)(0.0)
            assert not np.isfinite(value)


# --- single numbers that are read at points ---------------------------------------------------------------------------

_LATTICE = "@domain L begin base = (I, I); periodic = true end\n"
_STEPS = "@domain B begin base = (I, I); list = true end\n"

READ_AT_POINTS = {
    "entries": (
        _LATTICE + "(J::(L) -> N{n}, S::(L, N{n}) -> R) -> (x::RV{n}) -> sum(p::L, S(p, J(p)) * x(J(p))^2)",
        lambda J, S, x: sum(S[p][J[p]] * x[J[p]] ** 2 for p in np.ndindex(J.shape)),
    ),
    "an entry compared": (
        _LATTICE + "(J::(L) -> N{n}, S::(L, N{n}) -> R) -> (x::RV{n}) -> "
        "sum((p::L, i), where(J(p) == i, S(p, i) * x(i)^2)) + sum(p::L, where(J(p) < J(-p), x(J(p))^3))",
        lambda J, S, x: sum(
            S[p][J[p]] * x[J[p]] ** 2 + (x[J[p]] ** 3 if J[p] < J[-p[0], -p[1]] else 0) for p in np.ndindex(J.shape)
        ),
    ),
    "an argmax": (
        _LATTICE + "(J::(L) -> N{n}, S::(L, N{n}) -> R) -> (x::RV{n}) -> "
        "sum(p::L, x(argmax(m, S(p, m)))^2 + where(argmin(m, S(p, m)) != 0, x(J(0))^3))",
        lambda J, S, x: sum(
            x[S[p].argmax()] ** 2 + (x[J[0, 0]] ** 3 if S[p].argmin() else 0) for p in np.ndindex(J.shape)
        ),
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", READ_AT_POINTS)
def test_entries_and_extrema_are_read_at_points(name: str) -> None:
    text, meant = READ_AT_POINTS[name]
    d = cd.grad(text)
    assert_holds(d)
    f = d.compile(value=True)
    for n, shape in ((1, (1, 1)), (2, (2, 3)), (3, (1, 5)), (5, (7, 2))):
        rng = np.random.default_rng(n)
        given = [rng.integers(0, n, shape), rng.normal(size=(*shape, n)), rng.normal(size=n)]
        value, gradient = f(*given)
        np.testing.assert_allclose(value, meant(*given), rtol=1e-13)
        np.testing.assert_allclose(gradient, gradient_by(-1, meant, given), rtol=1e-8, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [cd.hvp, cd.jvp, cd.jacobian, cd.pullback, cd.simplified])
@pytest.mark.parametrize("name", READ_AT_POINTS)
def test_entries_and_extrema_at_points_have_every_mode(name: str, mode) -> None:
    assert_holds(mode(READ_AT_POINTS[name][0]))


def test_entries_are_read_at_offsets_of_a_list() -> None:
    d = cd.grad(_STEPS + "(J::(B) -> N{n}) -> (x::RV{n}) -> sum(b::B, x(J(b))^2)")
    assert_holds(d)
    np.testing.assert_array_equal(d.compile()(np.array([0, 2, 2]), np.array([1.0, 5, 3])), [2, 0, 12])


def test_a_point_is_not_compared_with_an_entry() -> None:
    with pytest.raises(LanguageError, match=r"p has 2 directions and J\(p\) has 1"):
        cd.grad(_LATTICE + "(J::(L) -> N{n}) -> (x::RV{n}) -> sum(p::L, where(J(p) == p, x(0)))")
