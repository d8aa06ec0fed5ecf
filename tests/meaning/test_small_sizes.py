"""The two sets of sizes that checks use: at least 3, all different, and never the same for one domain."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd
from combdiff.meaning.sizes import ENTRIES, FEWEST, default_sizes, evaluation_steps, two_sizes
from combdiff.terms.terms import App, Tuple, Var, fresh, mul, number, total
from combdiff.terms.types import REAL, Domain, Index, Map

ROWS, LONG = Domain("A.1"), Domain("N{8}", lower=0, upper=7)
ZONE, LATTICE = Domain("K", declared=True, periodic=True), Domain("BZ", declared=True, periodic=True, directions=3)
STEPS = Domain("X", declared=True, symmetric=True)
LISTED = Domain("Y", declared=True, symmetric=True, listed=True, directions=2)


def vectors(*domains: Domain) -> Tuple:
    return Tuple(tuple(fresh("x", Map((Index(d),), REAL)) for d in domains))


@given(st.integers(1, 5), st.integers(0, 3), st.integers(0, 3))
def test_sizes_are_different_and_no_domain_has_one_twice(plain: int, periodic: int, symmetric: int) -> None:
    ranges = [Domain(f"A.{n}") for n in range(plain)]
    zones = [Domain(f"K{n}", declared=True, periodic=True) for n in range(periodic)]
    steps = [Domain(f"X{n}", declared=True, symmetric=True) for n in range(symmetric)]
    first, second = two_sizes(vectors(*ranges, *zones, *steps))
    for sizes in (first, second):
        assert len({*sizes.values()}) == len(sizes) == plain + periodic + symmetric
        assert all(sizes[d] >= 3 for d in (*ranges, *steps))
        assert all(sizes[d] % 2 for d in steps)
    assert all(first[d] != second[d] for d in first)
    assert all(first[d] >= 7 and all(first[d] % m for m in range(2, first[d])) for d in zones)
    assert all(second[d] % 2 == 0 for d in zones)
    assert sorted(ranges, key=first.__getitem__) == sorted(ranges, key=second.__getitem__)[::-1]


def test_directions_of_a_lattice_are_told_apart() -> None:
    first, second = two_sizes(vectors(LATTICE, ROWS))
    assert [first[axis] for axis in LATTICE.axes] == [7, 2, 3]
    assert [second[axis] for axis in LATTICE.axes] == [2, 3, 4]
    few = two_sizes(vectors(LATTICE), few=1)
    assert [[sizes[axis] for axis in LATTICE.axes] for sizes in few] == [[7, 1, 1], [2, 3, 2]]


def test_lists_are_of_two_lengths() -> None:
    for seed in range(5):
        first, second = two_sizes(vectors(LISTED), seed=seed)
        (axis,) = LISTED.axes
        assert {int(first[axis]), int(second[axis])} == {4, 5}


def test_bounds_decide_and_constant_indices_have_room() -> None:
    x, y = (fresh("x", Map((Index(d),), REAL)) for d in (ROWS, LONG))
    for sizes in two_sizes(mul(App(x, (number(4),)), App(y, (number(1),)))):
        assert sizes[LONG] == 8
        assert sizes[ROWS] >= 5
    assert default_sizes(App(x, (number(4),)), {ROWS: 3}) == {ROWS: 5}
    assert default_sizes(App(x, (number(4),)), {ROWS: 6}) == {ROWS: 6}


def test_known_sizes_are_kept_and_not_dealt_again() -> None:
    columns = Domain("A.2")
    first, second = two_sizes(vectors(ROWS, columns), ({ROWS: 4}, {ROWS: 5}))
    assert (first, second) == ({ROWS: 4, columns: 3}, {ROWS: 5, columns: 4})


@pytest.mark.parametrize("rank", [7, 9])
def test_large_tensors_have_few_entries_and_no_size_is_two_alone(rank: int) -> None:
    slots = [Domain(f"T.{n}") for n in range(rank)]
    first, second = two_sizes(fresh("T", Map(tuple(map(Index, slots)), REAL)))
    for sizes in (first, second):
        assert {*sizes.values()} == {2, 3}
        assert all(a != b for a, b in pairwise(sizes.values()))
    assert 2 ** (rank // 2) * 3 ** (rank - rank // 2) <= ENTRIES
    assert all(first[d] + second[d] == 5 for d in slots)


def test_steps_of_an_evaluation_are_those_of_its_loops() -> None:
    i, j = (fresh(name, Index(ROWS)) for name in "ij")
    x: Var = fresh("x", Map((Index(ROWS),), REAL))
    once = evaluation_steps(total((i,), App(x, (i,))), {ROWS: 5})
    twice = evaluation_steps(total((i,), total((j,), mul(App(x, (i,)), App(x, (j,))))), {ROWS: 5})
    assert once == 1 + 5 * 3
    assert twice == 1 + 25 * 7


def test_a_check_passes_where_bounds_fix_all_sizes() -> None:
    text = "@domain S begin base = I; lower = 0; upper = 1 end\n(A::(S, S) -> C) -> (x::(S) -> C) -> "
    assert cd.grad(text + "sum((i::S, j::S), x(i)' * A(i, j) * x(j))").check()


def test_few_sizes_become_fewer() -> None:
    found = [two_sizes(vectors(LATTICE, ROWS), few=few) for few in range(1, FEWEST + 1)]
    entries = [[prod(sizes.values()) for sizes in both] for both in found]
    assert entries == sorted(entries, reverse=True)
    for first, second in found:
        assert all(first[axis] != second[axis] for axis in first if first[axis] > 1)
