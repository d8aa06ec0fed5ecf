"""The closure of declared symmetries."""

from __future__ import annotations

from itertools import permutations
from math import factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combdiff.canon.slotgroup import SlotGroup, parity
from combdiff.errors import LanguageError
from combdiff.terms.types import HERMITIAN, SYMMETRIC, Symmetry

permutation = Symmetry.permutation


def size(group: SlotGroup) -> int:
    count = len(group.representatives)
    for block in group.blocks:
        count *= factorial(len(block))
    return count


def listed(rank: int, generators: list[Symmetry]) -> set[Symmetry]:
    """The closure with nothing clever."""
    members = {Symmetry(tuple(((s, 1),) for s in range(rank)))}
    while True:
        larger = members | {g.after(m) for g in generators for m in members}
        if larger == members:
            return members
        members = larger


def test_a_fully_symmetric_tensor_of_order_eight_is_one_block() -> None:
    cycle = (*range(2, 9), 1)
    group = SlotGroup.generated(8, (permutation((2, 1, *range(3, 9)), "id"), permutation(cycle, "id")), real=False)
    assert group.blocks == (tuple(range(8)),)
    assert len(group.representatives) == 1


def test_two_pairs_with_an_exchange_of_pairs_have_eight_elements() -> None:
    eightfold = tuple(permutation(p, "id") for p in ((2, 1, 3, 4), (1, 2, 4, 3), (3, 4, 1, 2)))
    group = SlotGroup.generated(4, eightfold, real=True)
    assert group.blocks == ((0, 1), (2, 3))
    assert size(group) == 8


@given(st.lists(st.tuples(st.permutations(range(1, 5)), st.sampled_from(["id", "conj", "neg"])), max_size=3))
def test_the_group_has_as_many_elements_as_a_plain_closure(spelled: list[tuple[list[int], str]]) -> None:
    generators = [permutation(tuple(p), action) for p, action in spelled]
    group = SlotGroup.generated(4, tuple(generators), real=False)
    members = listed(4, generators)
    identity = Symmetry(tuple(((s, 1),) for s in range(4)))
    contradiction = Symmetry(identity.rows, -1, False) in members
    assert group.zero == contradiction
    assert group.real == (Symmetry(identity.rows, 1, True) in members)
    if not contradiction and not group.real:
        assert size(group) == len(members)
        assert all(group.equivalent(m) for m in members)
        every = [permutation(p, a) for p in permutations(range(1, 5)) for a in ("id", "conj", "neg")]
        assert all(group.equivalent(s) == (s in members) for s in every)


def test_symmetric_and_antisymmetric_is_zero() -> None:
    assert SlotGroup.generated(2, (SYMMETRIC, permutation((2, 1), "neg")), real=False).zero


def test_symmetric_and_hermitian_is_real() -> None:
    group = SlotGroup.generated(2, (SYMMETRIC, HERMITIAN), real=False)
    assert group.real
    assert not group.zero


def test_a_map_of_neighbours_comes_back_after_two_steps() -> None:
    by_neighbour = Symmetry((((1, 1),), ((0, 1),), ((2, 1), (3, 1)), ((3, -1),)), 1, True)
    group = SlotGroup.generated(4, (by_neighbour,), real=False)
    assert len(group.representatives) == 2


def test_a_shear_is_refused_because_its_powers_do_not_come_back() -> None:
    shear = Symmetry((((0, 1), (1, 1)), ((1, 1),)))
    with pytest.raises(LanguageError, match="do not come back"):
        SlotGroup.generated(2, (shear,), real=False)


def test_the_parity_of_a_cycle_is_that_of_its_length() -> None:
    assert [parity([*range(1, n), 0]) for n in (1, 2, 3, 4)] == [1, -1, 1, -1]
