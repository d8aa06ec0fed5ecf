"""Sparse results: a δ in a Jacobian is a pattern of the entries that are not zero, and an array contains these entries.

(i, j) -> A(i, j) * x(i) + delta(i, j, cos(x(i)))     is   A(i, j) * x(i) on (i, j)   and   cos(x(i)) on (i, i)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from combdiff.arrays.lower.indexing import affine
from combdiff.arrays.lower.signature import result_of
from combdiff.errors import ArrayError, UnsupportedError
from combdiff.language.printing.printer import expression_text
from combdiff.optional import optional
from combdiff.records import dataclass
from combdiff.run.compiled import DEFAULTS, CodeOptions, Compiled
from combdiff.run.libraries import whole
from combdiff.simplify.contraction.diagonals import Part, parts_by_pattern
from combdiff.terms.alpha import alpha_equal, alpha_hash
from combdiff.terms.terms import App, Lam, Term, Tuple, Var, apply, let, refreshed, size, slots_of
from combdiff.terms.types import Domain, Index, Map

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # type: ignore[import-untyped,unused-ignore]  # without stubs

Numbers = npt.NDArray[Any]
Form = tuple[tuple[tuple[int, int], ...], int]
"""(((axis, coefficient), …), constant): where an axis of the whole is, in the axes of a block."""
Whole = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Positions:
    """Where an axis of the whole is by the entries of an array of integers, over some axes of a block."""

    array: Any
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The entries on one pattern: `array` has an axis for each free index, `pattern` gives their positions.

    `pattern` is text such as "(i, j, i)" or "(e, J(e))"; `at` gives it as forms of the array's axes, or as entries of
    integers over them, one for each axis of the tensor.
    """

    pattern: str
    array: Any
    at: tuple[Form | Positions, ...]

    @property
    def positions(self) -> list[Positions]:
        """The axes that are at entries of integers."""
        return [at for at in self.at if isinstance(at, Positions)]

    def without_arrays(self) -> Block:
        at = tuple(replace(at, array=None) if isinstance(at, Positions) else at for at in self.at)
        return replace(self, array=None, at=at)

    def with_arrays(self, arrays: Iterator[Any]) -> Block:
        """This block with the array of its entries, then those of its positions."""
        array = next(arrays)
        at = tuple(replace(at, array=next(arrays)) if isinstance(at, Positions) else at for at in self.at)
        return replace(self, array=array, at=at)

    def places(self, shape: Sequence[int]) -> tuple[npt.NDArray[np.intp], ...]:
        """The positions of the entries in an array of this `shape`, as index arrays to broadcast."""
        grid = np.ogrid[tuple(slice(n) for n in np.shape(self.array))]
        found = []
        for at, length in zip(self.at, shape, strict=True):
            if isinstance(at, Positions):
                found.append(
                    np.asarray(at.array)
                    .transpose(np.argsort(at.axes))
                    .reshape([n if axis in at.axes else 1 for axis, n in enumerate(np.shape(self.array))])
                )
                continue
            form, constant = at
            place = sum((c * grid[axis] for axis, c in form), np.asarray(constant, np.intp))
            # forms other than an axis itself are those of periodic domains
            found.append(np.asarray(place % length, np.intp))
        return tuple(found)


class Structured:
    """A sparse tensor: the sum of its blocks. Zeros are not stored.

    >>> import combdiff as cd
    >>> J = cd.jacobian("(x::RV) -> (i::N) -> x(i)^2").compile(structured=True)([1.0, 2.0])
    >>> J.shape, J.entries, J.dense()
    ((2, 2), 2, array([[2., 0.],
           [0., 4.]]))

    `shape` is the shape of the whole tensor, `blocks` are patterns with their arrays. The first `rows` axes are the
    rows of a matrix; in a Jacobian these are the axes of the result.
    """

    def __init__(self, blocks: Sequence[Block], shape: tuple[int, ...], rows: int) -> None:
        self.blocks = tuple(blocks)
        self.shape = shape
        self.rows = rows

    @property
    def entries(self) -> int:
        """The number of stored entries."""
        return sum(prod(np.shape(block.array)) for block in self.blocks)

    def dense(self) -> Numbers:
        """The whole array, including zeros."""
        arrays = [np.asarray(block.array) for block in self.blocks]
        whole = np.zeros(self.shape, np.result_type(float, *arrays))
        for block, array in zip(self.blocks, arrays, strict=True):
            whole[block.places(self.shape)] += array
        return whole

    def scipy(self, rows: int | None = None) -> csr_array:
        """A SciPy sparse matrix. Its rows are the first `rows` axes, flattened; its columns are the others.

        Raises UnsupportedError if there is no such number of axes.
        """
        sparse = optional("scipy.sparse", "scipy", "a sparse matrix")
        rows = self.rows if rows is None else rows
        if not 0 <= rows <= len(self.shape):
            raise UnsupportedError(
                f"a tensor of {len(self.shape)} axes has no {rows} axes of rows", remedy="give fewer, or leave rows out"
            )
        height, width = prod(self.shape[:rows]), prod(self.shape[rows:])
        found = sparse.csr_array((height, width))
        for block in self.blocks:
            array = np.asarray(block.array)
            places = [np.broadcast_to(p, array.shape).ravel() for p in block.places(self.shape)]
            at = tuple(self._flat(places[part], self.shape[part]) for part in (slice(rows), slice(rows, None)))
            at = tuple(np.broadcast_to(a, array.size) for a in at)
            found = found + sparse.coo_array((array.ravel(), at), (height, width)).tocsr()
        return found

    @staticmethod
    def _flat(places: Sequence[npt.NDArray[np.intp]], shape: tuple[int, ...]) -> npt.NDArray[np.intp]:
        return np.asarray(np.ravel_multi_index(tuple(places), shape) if places else 0, np.intp)

    def leaves(self) -> list[Any]:
        """The arrays of all blocks, each before those of its positions."""
        return [a for block in self.blocks for a in (block.array, *(at.array for at in block.positions))]

    def __repr__(self) -> str:
        patterns = ", ".join(block.pattern for block in self.blocks)
        return f"<{' × '.join(map(str, self.shape))} on {patterns or 'nothing'}>"


@dataclass(frozen=True, slots=True)
class Shell:
    """A sparse tensor without its arrays, of which the numbers of axes are known."""

    blocks: tuple[Block, ...]
    shape: tuple[int, ...]
    rows: int
    axes: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Structured) -> Shell:
        axes = tuple(len(a.shape) for a in tensor.leaves())
        return cls(tuple(block.without_arrays() for block in tensor.blocks), tensor.shape, tensor.rows, axes)

    def filled(self, arrays: Sequence[Any]) -> Structured:
        """The tensor of these arrays, or of what stands for arrays."""
        if any(len(getattr(a, "shape", range(n))) != n for a, n in zip(arrays, self.axes, strict=True)):
            raise ArrayError(
                "a transformation of JAX adds axes to the arrays of a sparse tensor",
                remedy="return the arrays of its blocks from the function that is transformed",
            )
        rest = iter(arrays)
        return Structured([block.with_arrays(rest) for block in self.blocks], self.shape, self.rows)


@cache
def _seen_by_jax() -> None:
    """Traced functions may return sparse tensors: to JAX they are trees of arrays."""
    tree = import_module("jax.tree_util")
    tree.register_pytree_node(Structured, lambda s: (s.leaves(), Shell.of(s)), Shell.filled)


@dataclass(frozen=True)
class Sparsity:
    """How an output is made of arrays: its slots, and the pattern of each array; no slots for a number.

    What does not depend on the arrays is found once, not in each call.
    """

    slots: tuple[Var, ...]
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, output: Term) -> Sparsity:
        """The blocks of an output; one of 0 has none."""
        if not isinstance(output.type, Map):
            return cls((), (Part((), output),))
        slots = slots_of(output)
        body = apply(output, *slots)
        return cls(slots, tuple(parts_by_pattern(slots, body, periodic=True)))

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """The pattern of each array as text."""
        return tuple(f"({', '.join(map(expression_text, part.at))})" for part in self.parts)

    @cached_property
    def kept(self) -> tuple[tuple[Domain, ...], ...]:
        """The domains of the axes of each array."""
        return tuple(tuple(a for v in part.kept for a in _axes(v)) for part in self.parts)

    @cached_property
    def axes(self) -> tuple[tuple[Domain, ...], ...]:
        """The axes of each slot."""
        return tuple(map(_axes, self.slots))

    @cached_property
    def entries(self) -> tuple[App, ...]:
        """The entries of arrays of integers that slots are at."""
        return tuple(dict.fromkeys(form for part in self.parts for form in part.at if isinstance(form, App)))

    @cached_property
    def unseen(self) -> tuple[Domain, ...]:
        """The axes whose sizes no block shows."""
        seen = set().union(*self.kept)
        return tuple(dict.fromkeys(a for axes in self.axes for a in axes if a not in seen))

    def arrays(self) -> list[Term]:
        """The array of each block."""
        return [refreshed(Lam(part.kept, part.entry)) if part.kept else part.entry for part in self.parts]

    def positions(self) -> list[Term]:
        """The entries of arrays of integers that say where blocks are, then the sizes that no block shows."""
        return [*(refreshed(Lam(_indices(e), e)) for e in self.entries), *map(size, self.unseen)]

    def gathered(self, given: Sequence[Any], positions: Sequence[Any], rows: int) -> object:
        """The tensor of these arrays; a number as it is."""
        if not self.slots:
            return given[0]
        count = len(self.entries)
        places = dict(zip(self.entries, positions[:count], strict=True))
        sizes = dict(zip(self.unseen, positions[count:], strict=True))
        for kept, array in zip(self.kept, given, strict=True):
            sizes.update(zip(kept, np.shape(array), strict=True))
        firsts = [axes[0].first(sizes[axes[0]]) for axes in self.axes]
        parts = zip(self.parts, self.patterns, given, strict=True)
        blocks = [Block(pattern, array, _at(part, places, firsts)) for part, pattern, array in parts]
        shape = tuple(sizes[a] for axes in self.axes for a in axes)
        return Structured(blocks, shape, sum(map(len, self.axes[:rows])))


def distinct(groups: Sequence[Sequence[Term]]) -> tuple[list[Term], list[list[int]]]:
    """The terms of all groups, of equal ones the first, and for each group where its terms are among them."""
    found: list[Term] = []
    numbers: dict[int, list[int]] = {}

    def number(t: Term) -> int:
        known = numbers.setdefault(alpha_hash(t), [])
        for n in known:
            if alpha_equal(found[n], t):
                return n
        known.append(len(found))
        found.append(t)
        return known[-1]

    at = [[number(t) for t in group] for group in groups]
    return found, at


def _indices(e: App) -> tuple[Var, ...]:
    """The indices that an entry of an array of integers depends on."""
    return tuple(sorted((v for v in e.free if isinstance(v.kind, Index)), key=lambda v: v.uid))


def _at(part: Part, places: Mapping[App, Any], firsts: Sequence[int]) -> tuple[Form | Positions, ...]:
    """Where the axes of the whole are on a pattern; entry 0 of a slot's axis stands for its first value."""
    axes: dict[Var, int] = {}
    for v in part.kept:
        axes[v] = sum(len(_axes(u)) for u in axes)
    at: list[Form | Positions] = []
    for form, first in zip(part.at, firsts, strict=True):
        if isinstance(form, App):
            place = places[form] - first if first else places[form]
            at.append(Positions(place, tuple(axes[v] for v in _indices(form))))
            continue
        if isinstance(form, Var):
            at += [(((axes[form] + n, 1),), 0) for n in range(len(_axes(form)))]
        else:
            known = affine(form)
            at.append((tuple((axes[v], c) for v, c in known.coefficients if isinstance(v, Var)), known.constant))
    return tuple(at)


def _axes(v: Var) -> tuple[Domain, ...]:
    """The axes of arrays that a slot has; those of one domain have one size."""
    assert isinstance(v.kind, Index) and v.kind.domain is not None, "slots of arrays have ranges"
    return v.kind.domain.axes


class CompiledBlocks(Compiled[Any]):
    """A function of arrays that returns tensors as `Structured`; arguments and errors as for `Compiled`.

    The first `values` outputs, before the derivative, are plain arrays; `rows` counts the axes of rows.
    """

    def __init__(self, term: Term, values: int, rows: tuple[int, ...], options: CodeOptions = DEFAULTS) -> None:
        parts = result_of(term)
        self._made_of = term, values, rows
        self._sparsities = [Sparsity.of(e) for e in parts.outputs[values:]]
        # blocks of several outputs have the same positions: code computes them once
        positions, self._positions = distinct([sparsity.positions() for sparsity in self._sparsities])
        pairs = zip(self._sparsities, self._positions, strict=True)
        self._looked_up = {n for sparsity, at in pairs for n in at[: len(sparsity.entries)]}
        arrays = [*parts.outputs[:values], *(e for sparsity in self._sparsities for e in sparsity.arrays())]
        self._before = len(arrays)
        blocks = Lam(parts.params, let(parts.bindings, Tuple((*arrays, *positions))))
        super().__init__(blocks, options)
        self._whole: Whole = whole if self._library is None else self._library.whole
        if options.backend == "jax":
            _seen_by_jax()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (*self._made_of, self._options)

    def _returned(self, result: object) -> object:
        """Positions stay as the code returns them: a size made an array of JAX would be traced, and no number."""
        results = result if isinstance(result, tuple) else (result,)
        return (*map(super()._returned, results[: self._before]), *results[self._before :])

    def _called(self, args: tuple[object, ...], out: object, named: dict[str, object]) -> object:
        out, named = self._call.separated(out, named)
        if out is not None:
            raise ArrayError("out= is for whole arrays", remedy="leave it out, or structured=True")
        results = super()._called(args, None, named)
        results = results if isinstance(results, tuple) else (results,)
        _, values, rows = self._made_of
        rest = iter(results[values:])
        arrays = [[next(rest) for _ in sparsity.parts] for sparsity in self._sparsities]
        positions = [self._whole(p) if n in self._looked_up else int(p) for n, p in enumerate(rest)]
        found = [
            sparsity.gathered(given, [positions[n] for n in at], row)
            for sparsity, given, at, row in zip(self._sparsities, arrays, self._positions, rows, strict=True)
        ]
        every = (*results[:values], *found)
        return every[0] if len(every) == 1 else every
