"""Bounds of domains, lattices of several directions, lists of offsets: what is said of them, what is refused, what
their indices mean. Random programs are held against differences and against the code made of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays.lower.components import by_components
from combdiff.errors import ArrayError, LanguageError, UnsupportedError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.anchors import domains_of
from combdiff.language.printing.printer import program_text
from combdiff.meaning.breaches import breaks_symmetry
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.points import Offsets, offsets_of, positions_of, random_offsets, values_of
from combdiff.meaning.samples import random_arguments, random_value
from combdiff.meaning.sizes import default_sizes
from combdiff.terms.terms import App, Lam, Term, subterms
from combdiff.terms.types import Domain

DECLARED = """@domain BZ begin base = (I, I, I); periodic = true end
@domain X begin base = (I, I, I); list = true; symmetric = true end
@domain P begin base = (I, I); periodic = true end
@domain S begin base = (I, I); list = true; symmetric = true end
@domain Z begin base = I; periodic = true end
@domain L begin base = I; list = true; symmetric = true end
@domain A begin base = (I, I); list = true end
@domain G begin base = (I, I); symmetric = true end
@domain K begin base = I; lower = 0; upper = 4 end
@domain K9 begin base = I; lower = -1; upper = 8 end
"""
HEADER = DECLARED.count("\n")


def read(text: str) -> Term:
    return infer(parse(text))


def domain(settings: str, name: str = "D") -> Domain:
    """The domain that a declaration makes."""
    term = read(f"@domain {name} begin {settings} end\n(x::({name}) -> R) -> sum(d::{name}, x(d))")
    assert isinstance(term, Lam)
    (found,) = domains_of(term.params[0].kind)
    return found


def failure(text: str) -> LanguageError:
    with pytest.raises(LanguageError) as caught:
        read(text)
    assert caught.value.remedy and "^" in str(caught.value)
    return caught.value


# --- declarations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("base = I; lower = 0; upper = 4", Domain("D", True, lower=0, upper=4)),
        ("base = I; lower = −2; upper = 2; symmetric = true", Domain("D", True, symmetric=True, lower=-2, upper=2)),
        ("upper = 0; lower = 0", Domain("D", True, lower=0, upper=0)),
        ("base = I; lower = 0; upper = 6; periodic = true", Domain("D", True, periodic=True, lower=0, upper=6)),
        ("base = (I, I, I); periodic = true", Domain("D", True, periodic=True, directions=3)),
        ("base = (I,)", Domain("D", True)),
        ("base = (I, I); lower = 1; upper = 3", Domain("D", True, lower=1, upper=3, directions=2)),
        ("base = (I, I); list = true", Domain("D", True, directions=2, listed=True)),
        ("list = true; symmetric = true", Domain("D", True, symmetric=True, listed=True)),
    ],
)
def test_declarations_print_back_as_they_are_read(settings: str, expected: Domain) -> None:
    found = domain(settings)
    assert found == expected
    term = read(f"@domain D begin {settings} end\n(x::(D) -> R) -> sum(d::D, x(d))")
    again = program_text(term)
    assert program_text(read(again)) == again and domain(again.split("begin ")[1].split(" end")[0]) == expected


@pytest.mark.parametrize(
    ("settings", "said", "column"),
    [
        ("base = I; lower = 0", "the bound lower alone", 35),
        ("base = I; lower = 3; upper = 1", "runs from 3 to 1, which holds no value", 46),
        ("base = I; lower = 0.5; upper = 1", "has the bound lower = 0.5", 35),
        ("base = I; lower = 0; upper = true", "expected a number for the setting 'upper'", 46),
        ("base = I; lower = 0; upper = 4000000000", "beyond the size of any array", 46),
        ("lower = -1; upper = 2; symmetric = true", "is symmetric and runs from -1 to 2", 25),
        ("lower = 1; upper = 2; periodic = true", "is periodic and runs from 1 to 2", 25),
        ("base = (I, N)", "expected I, or (I, I, I)", 24),
        ("base = ()", "expected I, or (I, I, I)", 24),
        ("base = (R, R, R)", "a domain of 3 real variables is not supported yet", 24),
        ("base = (R, I)", "expected I, or (I, I, I)", 24),
        ("base = N", "has the base N", 24),
        ("base = (I, I, I, I, I, I, I, I, I)", "a lattice of 9 directions", 24),
        ("list = 1", "expected true or false for the setting 'list'", 24),
        ("list = true; periodic = true", "is a list and has the setting periodic", 41),
        ("list = true; lower = 0; upper = 3", "is a list and has the setting lower", 38),
    ],
)
def test_settings_that_do_not_fit_are_refused_at_their_place(settings: str, said: str, column: int) -> None:
    error = failure(f"@domain D begin {settings} end\n(x::(D) -> R) -> sum(d::D, x(d))")
    assert said in error.message
    assert error.span is not None and error.span.column == column


@pytest.mark.parametrize(
    ("text", "said", "column"),
    [
        ("(x::(BZ) -> C) -> sum((k::BZ, b::L), abs2(x(k + b)))", "b has 1 direction, but slot 1 of x has 3", 45),
        ("(x::(BZ) -> C) -> sum((k::BZ, b::A), abs2(x(k + b)))", "b has 2 directions, but slot 1 of x has 3", 45),
        ("(x::(Z) -> C) -> sum((k::Z, b::X), abs2(x(k + b)))", "b has 3 directions, but slot 1 of x has 1", 43),
        ("(x::(BZ) -> C) -> sum(b::L, abs2(x(b)))", "b has 1 direction, but slot 1 of x has 3", 36),
        ("(x::(BZ) -> C) -> sum(k::BZ, abs2(x(k + 1)))", "1 is not a point of a lattice of 3 directions", 37),
        ("(x::(BZ) -> C) -> sum(k::BZ, abs2(x(k)) * k)", "k is a point of a lattice of 3 directions", 23),
        ("(x::(BZ) -> C) -> sum((k::BZ, q::BZ), indicator(k, q, x(k)))", "is a point of a lattice", 24),
        ("(x::(BZ) -> C) -> sum((k::BZ, b::L), delta(k, b, x(k)))", "k has 3 directions and b has 1", 31),
        ("(x::(BZ) -> C) -> sum(k::BZ, delta(k, 1, x(k)))", "the number 1 is not a point", 23),
        ("(x::(BZ) -> C) -> (k::BZ) -> k", "k is a point of a lattice", 20),
        ("(x::(X) -> C) -> sum(b::X, x(2 * b))", "may not be in the list of slot 1 of x", 30),
        ("(x::(X) -> C) -> sum(b::X, x(0) * x(b))", "0 may not be in the list of slot 1 of x", 30),
        ("(x::(A) -> C) -> sum(b::A, x(b) * x(-b))", "may not be in the list of slot 1 of x", 37),
        ("(x::(K9) -> C) -> sum((i::K, j::K), x(i + j + 1))", "(1 to 9, and the slot runs from -1 to 8)", 39),
        ("(x::(K9) -> C) -> sum((i::K), x(-i))", "(-4 to 0, and the slot runs from -1 to 8)", 33),
        ("(x::(K9) -> C) -> sum((i::K), x(i) * x(9))", "9 may leave the range", 40),
        ("(x::(K) -> C, y::RV) -> sum((i::K, j), x(i + j) * y(j))", "i + j may leave the range of slot 1 of x", 42),
        ("(x::RV) -> sum((i::K, j::K, n), x(n) * x(i - j))", "may leave the range of slot 1 of x", 42),
        ("(x::RV) -> sum((i, j), x(i))", "cannot find the range of index j", 20),
        ("(x::(BZ) -> C) -> sum(k, abs2(x(-k)))", "cannot find the range of index k", 23),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(text: str, said: str, column: int) -> None:
    error = failure(DECLARED + text)
    assert said in error.message
    assert error.span is not None and (error.span.line, error.span.column) == (HEADER + 1, column)


def test_an_index_without_a_range_is_told_of_bounds() -> None:
    assert "lower = 0; upper = 4" in failure("(x::RV) -> sum((i, j), x(i))").remedy


@pytest.mark.parametrize("entry", ["x(-k)", "x(k + 1)", "x(k + 1) * x(2 * k)"])
def test_an_index_near_a_domain_is_told_of_it(entry: str) -> None:
    head, tail = DECLARED + "(x::(Z) -> C) -> ", f", {entry})"
    assert failure(f"{head}sum(k{tail}").remedy == "declare the type of index k: `k::Z`"
    assert cd.grad(f"{head}sum(k::Z{tail}").check()


def test_arithmetic_gives_a_parameter_of_a_definition_its_range() -> None:
    text = "(x::(BZ) -> C) -> begin; f := (i, k::BZ) -> abs2(x(i)) * 2; sum(i, f(-i, i)); end"
    assert str(cd.grad(DECLARED + text)) == str(cd.grad(DECLARED + "(x::(BZ) -> C) -> sum(i::BZ, 2 * abs2(x(-i)))"))


@pytest.mark.parametrize(
    ("slots", "law", "said"),
    [
        ("N, N, BZ, L", "M(q, p, k + b, -b)'", "which has 1 direction, in slot 3, which has 3"),
        ("N, N, BZ, A", "M(q, p, k, -b)'", "are a list that need not hold −b with b"),
        ("N, N, Z, X", "M(q, p, k + b, -b)'", "which has 3 directions, in slot 3, which has 1"),
    ],
)
def test_symmetries_do_not_mix_domains_of_other_directions(slots: str, law: str, said: str) -> None:
    text = f"@space Law begin type = ({slots}) -> C; symmetries = (M -> (p, q, k, b) -> {law},) end\n(M::Law) -> 1"
    assert said in failure(DECLARED + text).message


# --- lists ------------------------------------------------------------------------------------------------------------

X2 = Domain("X", True, symmetric=True, directions=2, listed=True)
X1 = Domain("X", True, symmetric=True, listed=True)


@pytest.mark.parametrize(
    ("listed", "value", "said"),
    [
        (X2, [[1, 0, 0]], r"shape \(1, 3\), but an offset of the domain X is a row of 2 columns"),
        (X2, [1, -1], r"shape \(2,\)"),
        (X2, 3, r"shape \(\)"),
        (X1, [[1, 2]], "a row of 1 column"),
        (X1, [0.5, -0.5], "must hold integers, and holds float64"),
        (X1, [1.0, -1.0], "must hold integers"),
        (X1, [True, False], "must hold integers, and holds bool"),
        (X1, [1, 2, -1], r"holds the offset 2, but not -2"),
        (X2, [[1, 0], [0, -1]], r"holds the offset \(1, 0\), but not \(-1, 0\)"),
        (X1, [1, -1, 1], "holds the offset 1 twice"),
        (X2, [[0, 0], [0, 0]], r"holds the offset \(0, 0\) twice"),
        (X1, "steps", "must hold integers"),
        (X1, [[1], [2, 3]], "is not an array"),
    ],
)
def test_a_wrong_list_is_refused_with_a_remedy(listed: Domain, value: object, said: str) -> None:
    with pytest.raises(ArrayError, match=said) as caught:
        offsets_of(listed, value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("listed", "value", "rows"),
    [
        (X1, [], []),
        (X1, [2, -2, 0], [[2], [-2], [0]]),
        (X1, np.array([[1], [-1]], np.int8), [[1], [-1]]),
        (X2, np.zeros((0, 2)), []),
        (X2, [[0, 0]], [[0, 0]]),
        (Domain("A", True, listed=True), [3, 1], [[3], [1]]),
    ],
)
def test_a_list_holds_a_row_for_each_offset(listed: Domain, value: object, rows: list[list[int]]) -> None:
    found = offsets_of(listed, value)
    assert found == len(rows) and found.rows.tolist() == rows


@given(st.integers(1, 3), st.booleans(), st.integers(0, 1000))
def test_random_lists_are_lists(directions: int, symmetric: bool, seed: int) -> None:
    listed = Domain("X", True, symmetric=symmetric, directions=directions, listed=True)
    drawn = random_offsets(listed, np.random.default_rng(seed))
    assert offsets_of(listed, drawn.rows) == drawn == len(drawn.rows)


# --- points -----------------------------------------------------------------------------------------------------------

DOMAINS = st.builds(
    lambda directions, kind: Domain("D", True, directions=directions, **kind),
    st.integers(1, 3),
    st.sampled_from([{}, {"periodic": True}, {"symmetric": True}, {"lower": -1, "upper": 1}, {"listed": True}]),
)


@given(DOMAINS, st.integers(0, 20))
def test_values_and_positions_are_inverse(drawn: Domain, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes: dict[Domain, int] = {axis: 2 * int(rng.integers(0, 3)) + 1 for axis in drawn.axes}
    if drawn.count is not None:
        sizes = dict.fromkeys(drawn.axes, drawn.count)
    if drawn.listed:
        sizes = {drawn.axes[0]: random_offsets(drawn, rng)}
    values = values_of(drawn, sizes)
    assert positions_of(drawn, sizes, values).tolist() == list(range(len(values)))
    far = positions_of(drawn, sizes, values + 100)
    assert (far >= 0).all() if drawn.periodic else (far == -1).all()


def test_tensors_over_points_obey_their_laws_and_others_are_told() -> None:
    text = "@space Law begin type = (N, N, BZ, X) -> C; symmetries = (M -> (p, q, k, b) -> M(q, p, k + b, -b)',) end\n"
    term = read(DECLARED + text + "(M::Law) -> sum((p, k::BZ, b::X), M(p, p, k, b))")
    assert isinstance(term, Lam)
    kind, sizes = term.params[0].kind, default_sizes(term)
    m = random_value(kind, sizes, np.random.default_rng(0))
    rows = sizes[domains_of(kind)[3].axes[0]].rows.tolist()
    for b, row in enumerate(rows):
        opposite = rows.index([-x for x in row])
        ahead = np.roll(m[..., opposite], tuple(-x for x in row), axis=(2, 3, 4))
        assert np.array_equal(m[..., b], ahead.conj().swapaxes(0, 1))
    assert breaks_symmetry(m, kind, sizes, None) is None and breaks_symmetry(m, kind, sizes, 50) is None
    m[0, 0, 1, 0, 0, 0] += 1
    breach = breaks_symmetry(m, kind, sizes, None)
    assert breach is not None and breach.law == kind.symmetries[0] and breach.found == m[breach.place]


# --- meaning ----------------------------------------------------------------------------------------------------------


def test_a_program_over_points_as_a_loop_says() -> None:
    term = read(DECLARED + "(x::(BZ) -> R, w::(X) -> R) -> (k::BZ) -> sum(b::X, w(b) * x(2 * k - b) * w(-b))")
    rng = np.random.default_rng(0)
    rows = np.array([[1, 0, 2], [0, 0, 0], [-1, 0, -2]])
    x, w = rng.normal(size=(3, 2, 4)), rng.normal(size=3)
    assert isinstance(term, Lam)
    offsets = Offsets(rows)
    listed = domains_of(term.params[1].kind)[0]
    found = evaluate(term.body, dict(zip(term.params, (x, w), strict=True)), {listed: offsets})
    expected = np.zeros_like(x)
    for k in np.ndindex(x.shape):
        for b in range(3):
            expected[k] += w[b] * x[tuple((2 * np.array(k) - rows[b]) % x.shape)] * w[2 - b]
    assert np.allclose(found, expected)


def test_an_index_of_a_bounded_domain_needs_no_slot() -> None:
    d = cd.grad(DECLARED + "(x::R) -> sum((i::K9, j::K), i * j^2 * x^2)")
    assert d.compile("numpy")(1.0) == 2 * sum(i * j * j for i in range(-1, 9) for j in range(5))
    assert "n_" not in d.source()


def test_arithmetic_that_fits_its_bounds_is_a_convolution() -> None:
    d = cd.grad(DECLARED + "(z::(K9) -> R, a::(K) -> R) -> (b::(K) -> R) -> sum((i::K, j::K), z(i + j) * a(i) * b(j))")
    rng = np.random.default_rng(0)
    z, a = rng.normal(size=10), rng.normal(size=5)
    expected = [sum(z[i + j + 1] * a[i] for i in range(5)) for j in range(5)]
    assert np.allclose(d.compile("numpy")(z, a, np.zeros(5)), expected)


def test_an_array_of_another_size_than_the_bounds_is_refused() -> None:
    f = cd.grad(DECLARED + "(x::(K) -> R) -> sum(i::K, x(i)^2)").compile("numpy")
    with pytest.raises(ArrayError, match="slot 1 of x has 4 values, but the domain K has 5, from 0 to 4"):
        f(np.zeros(4))
    assert np.array_equal(f(np.arange(5.0)), 2 * np.arange(5.0))


def test_a_term_without_lattices_is_left_as_it_is() -> None:
    term = read("(x::RV) -> sum(i, x(i)^2)")
    assert by_components(term).term is term


def test_components_have_an_axis_in_every_slot() -> None:
    parts = by_components(read(DECLARED + "(x::(BZ, X) -> C) -> sum((k::BZ, b::X), x(k + b, -b))"))
    (entry,) = (u for u in subterms(parts.term) if isinstance(u, App) and len(u.args) == 4)
    assert len(entry.args) == 4 and len(parts.offsets) == len(parts.opposite) == 1


# --- random programs --------------------------------------------------------------------------------------------------

POOLS = {
    "lattice": (
        "(x::(P) -> C, y::(S) -> C)",
        "(k::P, q::P, b::S)",
        ["x(k)", "x(q)", "x(k+b)", "x(q-b)", "x(k-q)", "x(-k)", "x(2*q+b)", "x(b)", "x(0)", "y(b)", "y(-b)", "y(b)'"],
        ["delta(k, q, {})", "delta(k + b, q, {})", "delta(k, b, {})", "delta(2 * k, q - b, {})", "{}"],
    ),
    "line": (
        "(x::(Z) -> C, y::(L) -> C)",
        "(k::Z, b::L, c::L)",
        ["x(k)", "x(k+b)", "x(k-c)", "x(b)", "x(c-b)", "x(2*k)", "y(b)", "y(-b)", "y(c)", "y(-c)'", "b", "c"],
        ["delta(b, c, {})", "delta(b, -c, {})", "delta(k + b, c, {})", "delta(b, 0, {})", "{}", "indicator(b, c, {})"],
    ),
    "bounds": (
        "(x::(K9) -> C, y::(K) -> C)",
        "(i::K, j::K)",
        ["x(i)", "x(i+j)", "x(8-j)", "x(i-1)", "x(-1)", "x(3)", "y(i)", "y(j)", "y(4-i)", "y(2)", "i", "j", "y(j)'"],
        ["delta(i, j, {})", "delta(i + j, 4, {})", "delta(i, 2, {})", "indicator(i, j, {})", "{}"],
    ),
    "symmetric": (
        "(x::(G) -> C, y::(G, A) -> C)",
        "(g::G, h::G, a::A)",
        ["x(g)", "x(-g)", "x(h)", "x(0)", "y(g,a)", "y(-h,a)", "y(h,a)'"],
        ["delta(g, h, {})", "delta(g, -h, {})", "delta(g + h, a, {})", "delta(g, 0, {})", "{}"],
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("pool", POOLS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data())
def test_gradients_of_random_programs_pass_their_check(pool: str, data: st.DataObject) -> None:
    params, indices, entries, frames = POOLS[pool]
    factors = data.draw(st.lists(st.sampled_from(entries), min_size=2, max_size=4))
    frame = data.draw(st.sampled_from(frames))
    text = f"{DECLARED}{params} -> sum({indices}, {frame.format(' * '.join(factors))})"
    assume("x" in "".join(factors) or "y" in "".join(factors))
    d = cd.grad(text)
    assert not [step.note for step in d.steps if "not checked" in step.note]
    report = d.check(seed=data.draw(st.integers(0, 3)))
    assert report, f"{text}\n{report}"
    assert program_text(read(str(d))) == str(d)


@pytest.mark.slow
@given(st.integers(0, 10))
@settings(max_examples=5, deadline=None)
def test_what_a_program_over_points_means_survives_printing(seed: int) -> None:
    term = read(DECLARED + "(x::(BZ, X) -> C) -> sum((k::BZ, b::X), x(k + b, -b) * x(k, b))")
    again = read(program_text(term))
    sizes = default_sizes(term, seed=seed)
    values = random_arguments(term, sizes, np.random.default_rng(seed))
    assert isinstance(term, Lam) and isinstance(again, Lam)
    moved = dict(zip(again.params, values.values(), strict=True))
    assert evaluate(term.body, values, sizes) == evaluate(again.body, moved, default_sizes(again, seed=seed))


@pytest.mark.slow
def test_the_sample_of_a_check_is_a_list_with_its_negatives() -> None:
    d = cd.grad(DECLARED + "(x::(Z) -> C, w::(L) -> R) -> sum((k::Z, b::L), w(b) * x(k)' * x(k + b) * w(-b))")
    assert d.check() and d.check(1)
    with pytest.raises(UnsupportedError):
        d.check(-1)
