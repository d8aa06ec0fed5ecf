"""Bundle adjustment: from one camera, point and observation to all of them, and from blocks to one sparse matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from benchmarks.gradbench.tool import Arguments, Json, floats

Numbers = np.ndarray[Any, Any]
WIDTHS = 11, 3, 1
"""The numbers of a camera, of a point and of a weight: a row of the Jacobian of an error has one of each."""
WIDTH = sum(WIDTHS)


def arguments(given: Json) -> Arguments:
    """All cameras, points and observations, each with numbers of its own, although they are equal."""
    n, m, p = (given[name] for name in "nmp")
    observed = np.arange(p)
    return {
        "feats": np.tile(floats(given["feat"]), (p, 1)),
        "cam": observed % n,
        "pt": observed % m,
        "c": np.tile(floats(given["cam"]), (n, 1)),
        "X": np.tile(floats(given["x"]), (m, 1)),
        "w": np.full(p, float(given["w"])),
    }


def stored(given: Json) -> int:
    """The bytes of the sparse matrix, or of what a few observations need."""
    return max(int(given["p"]) * (31 * (8 + 4) + 3 * 4), 1 << 20)


def errors(result: Any) -> Json:
    first, second, weights = map(np.asarray, result)
    return {
        "reproj_error": {"elements": [first[0].item(), second[0].item()], "repeated": len(first)},
        "w_err": {"element": weights[0].item(), "repeated": len(weights)},
    }


@dataclass(frozen=True)
class Sparse:
    """A matrix of compressed rows, as the eval wants it: row n begins at entry rows[n]."""

    rows: Numbers
    cols: Numbers
    vals: Numbers


def sparse(result: Sequence[Any]) -> Sparse:
    """One matrix of the blocks: two rows for each observation, then one for each weight."""
    first, second, weights = (result[n : n + len(WIDTHS)] for n in range(0, len(result), len(WIDTHS)))
    p = len(weights[-1].blocks[0].array)
    vals, cols, rows = np.empty(31 * p), np.empty(31 * p, np.int32), np.empty(3 * p + 1, np.int32)
    top = slice(30 * p), (p, 2, WIDTH)
    for row, of in enumerate((first, second)):
        filled(of, vals[top[0]].reshape(top[1])[:, row], cols[top[0]].reshape(top[1])[:, row])
    filled(weights, vals[30 * p :, None], cols[30 * p :, None])
    rows[: 2 * p] = np.arange(0, 30 * p, WIDTH)
    rows[2 * p :] = np.arange(30 * p, 31 * p + 1)
    return Sparse(rows, cols, vals)


def filled(of: Sequence[Any], vals: Numbers, cols: Numbers) -> None:
    """Write the blocks of one error, side by side, into a row for each observation."""
    begin, at = 0, 0
    for jacobian in of:
        width = prod(jacobian.shape[1:])
        for block in jacobian.blocks:
            array = block.array.reshape(len(vals), -1)
            _, place, *axis = block.places(jacobian.shape)
            own = slice(at, at + array.shape[1])
            vals[:, own] = array
            first = (begin + place * prod(jacobian.shape[2:])).astype(np.int32)
            np.add(first.reshape(-1, 1), np.ravel(axis or 0).astype(np.int32), out=cols[:, own])
            at = own.stop
        begin += width


def sampled(matrix: Sparse) -> Json:
    """What the eval looks at: the first thirty and the last of each array."""
    return {
        name: [*(array := getattr(matrix, name))[:30].tolist(), array[-1].item()] for name in ("rows", "cols", "vals")
    }
