"""Paths of large networks: valid and the same each time, no worse with cotengra than without, and the same numbers."""

from __future__ import annotations

import importlib.util
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays.passes.contractions import large_networks
from combdiff.arrays.passes.contractions.large_networks import operations, path_of_large

cotengra = pytest.mark.skipif(importlib.util.find_spec("cotengra") is None, reason="cotengra is not installed")


def lattice(length: int, size: int) -> tuple[list[frozenset[str]], dict[str, int]]:
    """A square lattice of tensors, an index for each bond."""
    bonds: dict[tuple[tuple[int, int], tuple[int, int]], str] = {}
    rows: dict[tuple[int, int], set[str]] = {(x, y): set() for x in range(length) for y in range(length)}
    for x, y in rows:
        for other in ((x + 1, y), (x, y + 1)):
            if other in rows:
                bonds[(x, y), other] = name = chr(0x100 + len(bonds))
                rows[x, y].add(name)
                rows[other].add(name)
    return [frozenset(row) for row in rows.values()], dict.fromkeys(bonds.values(), size)


def without_cotengra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_networks, "find_spec", lambda name: None)


@cotengra
def test_cotengra_finds_cheaper_paths_for_lattices(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, sizes = lattice(6, 4)
    with_it = operations(path_of_large(rows, frozenset(), sizes), rows, frozenset(), sizes)
    without_cotengra(monkeypatch)
    assert 2 * with_it < operations(path_of_large(rows, frozenset(), sizes), rows, frozenset(), sizes)


@cotengra
def test_a_path_is_the_same_every_time() -> None:
    rows, sizes = lattice(5, 3)
    assert len({str(path_of_large(rows, frozenset(), sizes)) for _ in range(3)}) == 1


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**9))
def test_a_path_contracts_all_that_there_is(seed: int) -> None:
    """Of any network, also with numbers, parts that are not joined, and indices that several tensors share."""
    rng = random.Random(seed)
    letters = [chr(0x100 + n) for n in range(rng.randint(1, 14))]
    rows = [frozenset(rng.sample(letters, rng.randint(0, min(3, len(letters))))) for _ in range(rng.randint(11, 16))]
    shared = Counter(x for row in rows for x in row)
    output = frozenset(x for x in shared if shared[x] == 1 or rng.random() < 0.2)
    left = len(rows)
    for group in path_of_large(rows, output, {x: rng.randint(1, 5) for x in letters}):
        assert all(0 <= place < left for place in group) and len(set(group)) == len(group) >= 1
        left -= len(group) - 1
    assert left == 1


@pytest.mark.slow
@pytest.mark.parametrize("installed", [pytest.param(True, marks=cotengra), False])
def test_a_gradient_of_a_large_network_is_that_of_its_differences(
    monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    """A closed ladder of twelve tensors, in which one is varied."""
    if not installed:
        without_cotengra(monkeypatch)
    legs = ["ab", "acd", "cef", "egh", "gij", "ik", "bl", "ldm", "mfn", "nho", "ojp", "pk"]
    names = "ABCDEFGHUVWX"
    spaces = "\n".join(f"@space S{n} begin type = ({', '.join(['N'] * n)}) -> R end" for n in (2, 3))
    given_ = ", ".join(f"{name}::S{len(row)}" for name, row in zip(names[1:], legs[1:], strict=True))
    product = " * ".join(f"{name}({', '.join(row)})" for name, row in zip(names, legs, strict=True))
    bound = ", ".join(sorted(set("".join(legs))))
    d = cd.grad(f"{spaces}\n({given_}) -> (A::S2) -> sum(({bound}), {product})^2")
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=(2,) * len(row)) for name, row in zip(names, legs, strict=True)}
    value = np.einsum(",".join(legs) + "->", *arrays.values())
    rest = np.einsum(",".join(legs[1:]) + "->ab", *list(arrays.values())[1:])
    np.testing.assert_allclose(d.compile()(**arrays), 2 * value * rest, rtol=1e-10)
