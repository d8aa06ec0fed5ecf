"""Groups of moves of slots: closed, listed, their images, and what is left out of one that is too large."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combdiff.canon.moves import Image, Move, MoveGroup, at, identity, inverse, moved, orbit, symmetry_of
from combdiff.canon.slotgroup import SlotGroup
from combdiff.terms.types import COMPLEX, HERMITIAN, REAL, SYMMETRIC, Index, Map, Number, Symmetry

RANK = 3
signed = st.tuples(
    st.permutations(range(1, RANK + 1)), st.lists(st.sampled_from([1, -1]), min_size=RANK, max_size=RANK)
)
moves = st.builds(
    lambda slots, sign, conj: Move(tuple(s * t for s, t in zip(*slots, strict=True)), sign, conj),
    signed,
    st.sampled_from([1, -1]),
    st.booleans(),
)


def closure(generators: list[Move]) -> set[Move]:
    """The group with nothing clever: all products, until there are no more."""
    members = {Move(identity(RANK))}
    while True:
        larger = members | {m.after(g) for m, g in product(members, generators)}
        if larger == members:
            return members
        members = larger


@pytest.mark.slow
@given(st.lists(moves, max_size=4))
def test_a_group_has_all_products_of_its_generators(generators: list[Move]) -> None:
    members, group = closure(generators), MoveGroup.generated(RANK, generators)
    assert group.real == (Move(identity(RANK), 1, True) in members)
    assert group.zero == (Move(identity(RANK), -1) in members)
    expected = {Move(m.slots, m.sign, m.conj and not group.real) for m in members}
    assert (group.moves[0], {*group.moves}) == (Move(identity(RANK)), expected)
    assert MoveGroup.generated(RANK, group.generators, real=group.real) == group


@pytest.mark.slow
@given(st.lists(moves, max_size=3), moves)
def test_images_are_those_of_any_image(generators: list[Move], other: Move) -> None:
    """An entry and each of its images have the same images, up to the sign, and so the same least one."""
    group, labels = MoveGroup.generated(RANK, generators), at((5, 6, 7), other.slots)
    found = group.images(labels)
    assert found[0] == Image(False, labels)
    least = group.least_image(labels)
    assert least == min(found)
    for conj, row, sign in found:
        there = {Image(c, again, s * sign) for c, again, s in group.images(row, conj)}
        assert there == set(found)


@pytest.mark.slow
@given(moves, moves)
def test_moves_compose_as_symmetries_do(one: Move, other: Move) -> None:
    assert moved(symmetry_of(one).after(symmetry_of(other))) == one.after(other)
    assert at(one.slots, inverse(one.slots)) == identity(RANK)


@given(st.lists(st.tuples(st.permutations(range(1, 5)), st.sampled_from(["id", "conj", "neg"])), max_size=3))
def test_the_group_in_blocks_lists_the_same_moves(spelled: list[tuple[list[int], str]]) -> None:
    symmetries = tuple(Symmetry.permutation(tuple(p), action) for p, action in spelled)
    blocks = SlotGroup.generated(4, symmetries, real=False)
    if not blocks.zero:
        group = MoveGroup.exchanging(Map((Index(),) * 4, COMPLEX, symmetries))
        assert blocks.moves(1000) == group


def test_arithmetic_with_indices_is_no_move() -> None:
    shifted = Symmetry((((0, 1), (1, 1)), ((1, -1),)))
    assert moved(shifted) is None
    assert SlotGroup.generated(2, (shifted,), real=False).moves(1000) is None


def test_a_generator_that_makes_the_group_too_large_is_left_out() -> None:
    exchanges = [Move((2, 1, 3, 4)), Move((1, 3, 2, 4)), Move((1, 2, 4, 3))]
    group = MoveGroup.generated(4, exchanges, most=10)
    assert (group.order, group.generators) == (6, tuple(exchanges[:2]))
    assert MoveGroup.generated(4, exchanges, most=24).order == 24


@pytest.mark.parametrize("number", [REAL, COMPLEX])
def test_values_of_real_tensors_are_not_conjugated(number: Number) -> None:
    group = MoveGroup.exchanging(Map((Index(), Index()), number, (HERMITIAN,)))
    assert group.order == 2
    assert any(m.conj for m in group.moves) == number.complex
    both = MoveGroup.exchanging(Map((Index(), Index()), number, (HERMITIAN, SYMMETRIC)))
    assert both.real
    assert both == MoveGroup.generated(2, [Move((2, 1))], real=True)


def test_an_orbit_ends() -> None:
    assert sorted(orbit(0, (3, 4), lambda x, step: (x + step) % 6)) == [0, 1, 2, 3, 4, 5]
