"""Contraction paths of networks too large for an exact search: opt_einsum's, or cotengra's where it is installed.

On products of a few dozen tensors cotengra finds paths with a few times fewer operations (a norm of 6 × 6 sites: 13
times), for some tenths of a second more. Its search is seeded and counted, not timed: a plan is the same every time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from math import prod
from typing import TypeAlias

Rows: TypeAlias = Sequence[frozenset[str]]
Path: TypeAlias = Sequence[Collection[int]]

_TRIALS = 32


def path_of_large(rows: Rows, output: frozenset[str], sizes: dict[str, int]) -> Path:
    """A path in opt_einsum's form for Σ over what is not in `output`; the cheapest of those found.

    >>> path_of_large([frozenset("ab"), frozenset("bc"), frozenset("c")], frozenset("a"), dict.fromkeys("abc", 9))
    [(1, 2), (0, 1)]
    """
    from opt_einsum.paths import auto

    found: list[Path] = [auto(list(rows), output, sizes)]
    if find_spec("cotengra") is not None:
        found += _cotengra_paths(rows, output, sizes)
    return min(found, key=lambda path: operations(path, rows, output, sizes))


def _cotengra_paths(rows: Rows, output: frozenset[str], sizes: dict[str, int]) -> list[Path]:
    """Greedy paths with chance, and the greedy one with parts of its tree contracted optimally."""
    from cotengra import RandomGreedyOptimizer, array_contract_tree

    # sets are ordered by hashes, which differ from run to run
    network = [tuple(sorted(row)) for row in rows], tuple(sorted(output)), sizes
    random = RandomGreedyOptimizer(max_repeats=_TRIALS, seed=0, accel=False, parallel=False)
    trees = [array_contract_tree(*network, optimize=search) for search in (random, "greedy")]
    return [trees[0].get_path(), trees[1].subtree_reconfigure(minimize="flops").get_path()]


def operations(path: Path, rows: Rows, output: frozenset[str], sizes: Mapping[str, int]) -> int:
    """How many products of numbers a path takes.

    >>> operations([(0, 1)], [frozenset("ab"), frozenset("bc")], frozenset("ac"), {"a": 2, "b": 3, "c": 4})
    24
    """
    todo, count = list(rows), 0
    for group in path:
        taken = [todo.pop(place) for place in sorted(group, reverse=True)]
        joint = frozenset[str]().union(*taken)
        count += prod(sizes[index] for index in joint)
        todo.append(joint & output.union(*todo))
    return count
