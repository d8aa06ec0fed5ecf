"""What goes forwards: tangents and Jacobians, held against the oracle along all of its directions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from combdiff.errors import UnsupportedError
from combdiff.terms.types import Index, is_complex

from . import oracle
from .arguments import as_taken
from .case import Case, Failure, Skipped
from .kinds import over_complex

MOST_ENTRIES = 20_000


def jvp(case: Case) -> None:
    """Re⟨k, ℱ(f)(x, v)⟩ for every direction v: what the pullback gives as ⟨𝒫(f)(x, k), v⟩."""
    try:
        f = case.derive("jvp").compile()
    except UnsupportedError as refusal:
        raise Skipped(f"refused: {refusal.message}") from None
    kinds = {a.name: a.kind for a in f.arguments if not a.callable and not a.optional and a.offsets is None}
    names = [n for n, kind in kinds.items() if n not in case.arrays and not isinstance(kind, Index)]
    unknowns = case.program.unknowns
    if len(names) != len(unknowns):
        raise Failure("shape", f"the arguments {names} for {len(unknowns)} tangents")
    slopes = np.zeros(case.along.count, np.longdouble)
    for row in range(case.along.count):
        ends = (case.along.arrays[u][row] for u in unknowns)
        given = {
            n: as_taken(v if is_complex(kinds[n]) else np.real(v), u.kind)
            for n, v, u in zip(names, ends, unknowns, strict=True)
        }
        slopes[row] = _paired(case, _items(case.run(f, extra=given)))
    if not np.isfinite(slopes).all():
        raise Skipped("a tangent is not finite")
    case.compare_slopes(slopes, "cd.jvp")


def jacobian(case: Case) -> None:
    """The Jacobians times every direction; whole, or by their blocks."""
    kinds = oracle.result_kinds(case.program)
    sizes = (
        [int(np.prod(oracle.sizes_of(k))) for k in kinds],
        [int(np.prod(oracle.sizes_of(u.kind))) for u in case.program.unknowns],
    )
    if sum(sizes[0]) * sum(sizes[1]) > MOST_ENTRIES:
        raise Skipped("the Jacobian is large")
    structured = case.rng.random() < 0.5
    try:
        f = case.derive("jacobian").compile(structured=structured)
    except UnsupportedError as refusal:
        raise Skipped(f"refused: {refusal.message}") from None
    found = [x.dense() if hasattr(x, "dense") else np.asarray(x) for x in _items(case.run(f))]
    places = list(product(range(len(kinds)), range(len(case.program.unknowns))))
    pairs = [over_complex(case.program.unknowns[m].kind) for _, m in places]
    if len(found) == len(places):
        pairs = [False] * len(places)
    elif len(found) != len(places) + sum(pairs):
        raise Skipped("some Jacobians by conjugates are left out")
    slopes = _slopes(case, found, sizes, list(zip(places, pairs, strict=True)))
    if not np.isfinite(slopes).all():
        raise Skipped("a Jacobian is not finite")
    case.compare_slopes(slopes, "cd.jacobian")


def _slopes(
    case: Case, found: Sequence[Any], sizes: tuple[list[int], list[int]], places: Sequence[tuple[tuple[int, int], bool]]
) -> Any:
    """Re⟨k, J v⟩ for all directions."""
    rest = iter(found)
    tangents: list[Any] = [np.zeros((case.along.count, size), complex) for size in sizes[0]]
    for (n, m), pair in places:
        v = case.along.arrays[case.program.unknowns[m]].reshape(case.along.count, -1)
        for step in (v, v.conj()) if pair else (v,):
            tangents[n] = tangents[n] + step @ np.asarray(next(rest)).reshape(sizes[0][n], sizes[1][m]).T
    return np.array([_paired(case, [t[row] for t in tangents]) for row in range(case.along.count)], np.longdouble)


def simplified(case: Case) -> None:
    """The program itself, where nothing in it is marked."""
    if case.program.mode != "grad" or case.program.marked:
        raise Skipped("a derivative is marked")
    f = case.derive("simplified").compile()
    case.compare_values(_items(case.run(f)), "cd.simplified")


def _paired(case: Case, values: Sequence[Any]) -> float:
    """Re⟨k, values⟩, k being 1 or the cotangents."""
    cotangents = case.cotangents or [np.ones(())]
    return sum(float(np.real(np.conj(np.ravel(k)) @ np.ravel(v))) for k, v in zip(cotangents, values, strict=True))


def _items(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)
