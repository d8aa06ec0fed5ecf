"""Read overlaps of Bloch states from Wannier90 files, as arrays for a program over a lattice of k-points.

`read_mmn` turns a list of blocks, one for each pair of neighbours, into the array M(p, q, k, b) and the list X of
offsets b that `examples/wannier_lattice.cd` takes; `neighbour_weights` gives its weights w(b). The formats are those
of the Wannier90 user guide; the weights are those of Marzari and Vanderbilt, Phys. Rev. B 56, 12847 (1997), Appendix B.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, permutations
from pathlib import Path
from typing import NoReturn, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from combdiff.errors import ArrayError, FileFormatError
from combdiff.records import dataclass

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
FilePath = str | os.PathLike[str]
Mesh = tuple[int, int, int]

_FRACTION = 1e-4
"""How far a coordinate of a k-point may be off the mesh, in steps of it: files print eight digits."""

_LARGEST = 2**31
"""Of the integers in a file: more than any of them is, and far less than what an array holds."""


@dataclass(frozen=True)
class Overlaps:
    """Overlaps ⟨u(p, k) | u(q, k + b)⟩ on a regular mesh of k-points, as `read_mmn` returns them.

    Attributes:
        M: complex array (bands, bands, n1, n2, n3, offsets): M[p, q, k1, k2, k3, b].
        X: integer array (offsets, 3): the offsets b in steps of the mesh, in lexicographic order, so that X[::-1] is −X
            if the list holds −b for each b.
    """

    M: NDArray[np.complex128]
    X: Integers

    @property
    def mesh(self) -> Mesh:
        """The numbers of k-points along the three reciprocal lattice vectors."""
        n1, n2, n3 = self.M.shape[2:5]
        return n1, n2, n3

    def vectors(self, lattice: ArrayLike) -> Floats:
        """The vectors b in Cartesian coordinates: real array (offsets, 3), in inverse units of `lattice`.

        Args:
            lattice: real array (3, 3), one lattice vector of the crystal a row, such as `read_nnkp(path).lattice`.
        """
        rows = np.asarray(lattice, float)
        if rows.shape != (3, 3) or not np.linalg.det(rows):
            raise ArrayError(
                f"the lattice has shape {rows.shape}, or its vectors lie in a plane",
                remedy="give three rows, a1, a2, a3",
            )
        reciprocal = 2 * np.pi * np.linalg.inv(rows).T
        return np.asarray(self.X / np.array(self.mesh) @ reciprocal)


@dataclass(frozen=True)
class Crystal:
    """The result of `read_nnkp`: `lattice`, real array (3, 3) with a vector in Å in each row; fractional `kpoints`."""

    lattice: Floats
    kpoints: Floats


def neighbour_weights(vectors: ArrayLike) -> Floats:
    """The weights w(b) of a finite difference over neighbours b, one for all b of one length: Σ_b w(b) b bᵀ = 1.

    >>> neighbour_weights([[0.5], [-0.5]])
    array([2., 2.])

    Args:
        vectors: real array (offsets, dimensions) in Cartesian coordinates, such as `overlaps.vectors(lattice)`.

    Raises ArrayError if no weights have this property: there are too few neighbours, or a shell is not complete.
    """
    b = np.asarray(vectors, float)
    if b.ndim != 2 or not b.size:
        raise ArrayError(
            f"the neighbours have shape {b.shape}", remedy="give one row of Cartesian coordinates for each"
        )
    lengths = np.linalg.norm(b, axis=1)
    order = np.argsort(lengths)
    step = np.diff(lengths[order], prepend=lengths[order[0]]) > 1e-5 * lengths.max()
    shell = np.empty(len(b), int)
    shell[order] = np.cumsum(step)
    completeness = np.stack([(b[shell == s].T @ b[shell == s]).ravel() for s in range(shell.max() + 1)], axis=1)
    identity = np.eye(b.shape[1]).ravel()
    weights = np.linalg.lstsq(completeness, identity, rcond=None)[0]
    if not np.allclose(completeness @ weights, identity, atol=1e-5):
        raise ArrayError(
            f"no weights of {len(b)} neighbours in {shell.max() + 1} shells make Σ w b bᵀ the identity",
            remedy="give all neighbours of the file, and the lattice that it was made with, a vector a row",
        )
    return np.asarray(weights[shell])


def read_mmn(path: FilePath, *, mp_grid: Sequence[int] | None = None, kpoints: ArrayLike | None = None) -> Overlaps:
    """The overlaps in a Wannier90 `.mmn` file.

        overlaps = read_mmn("diamond.mmn", kpoints=read_nnkp("diamond.nnkp").kpoints)
        w = neighbour_weights(overlaps.vectors(lattice))
        value, gradient = spread(overlaps.M, w, U, X=overlaps.X)

    The file numbers the k-points and does not contain their coordinates. `read_mmn` finds these if the k-points fill a
    mesh in order, with any direction fastest (Wannier90's `kmesh.pl` uses the third): on the right mesh, all k-points
    have neighbours at the same steps b. The first k-point is M[:, :, 0, 0, 0].

    Args:
        path: the file. After a comment and the line `num_bands num_kpts nntot` it holds blocks in any order, each a
            line `k1 k2 G1 G2 G3` and, for the neighbour k1 + b = k2 + G, a matrix with its first index running fastest.
        mp_grid: the numbers of k-points in the three directions, if the file allows more than one choice.
        kpoints: real array (num_kpts, 3), their fractional coordinates, for k-points in another order.

    Raises:
        FileFormatError: the file does not have this format (the message gives the line), or its neighbours do not form
            a regular mesh.
        ArrayError: `mp_grid` or `kpoints` do not fit the file.
    """
    name = Path(path).name
    with _opened(path) as file:
        bands, count, neighbours = _sizes(name, file, os.fstat(file.fileno()).st_size)
        links = np.empty((count * neighbours, 5), int)
        matrices = np.empty((count * neighbours, bands, bands), complex)
        for block, (link, matrix) in enumerate(_blocks(name, file, bands, count, count * neighbours)):
            # the first index runs fastest in the file
            links[block], matrices[block] = link, matrix.T
    mesh, points = _placed(name, links, count, mp_grid, kpoints)
    offsets = _offsets(links, mesh, points)
    rows, column = np.unique(offsets, axis=0, return_inverse=True)
    k = points[links[:, 0]] % mesh
    M = np.empty((bands, bands, *mesh, len(rows)), complex)
    M[:, :, k[:, 0], k[:, 1], k[:, 2], column.ravel()] = np.moveaxis(matrices, 0, -1)
    return Overlaps(M, rows)


def read_nnkp(path: FilePath) -> Crystal:
    """The lattice and the k-points in a `.nnkp` file, which `wannier90.x -pp` writes: `read_nnkp("diamond.nnkp")`.

    Raises FileFormatError if the blocks `real_lattice` and `kpoints` are missing or malformed.
    """
    name = Path(path).name
    with _opened(path) as file:
        lines = file.read().splitlines()
    lattice = _block(name, lines, "real_lattice")
    kpoints = _block(name, lines, "kpoints", counted=True)
    if len(lattice) != 3:
        raise FileFormatError(f"{name}: the lattice has {len(lattice)} vectors", remedy="write three lines, a1, a2, a3")
    return Crystal(lattice, kpoints)


def _block(name: str, lines: list[str], block: str, counted: bool = False) -> Floats:
    """The rows of three numbers between `begin block` and `end block`, below their number where they are counted."""
    words = [line.lower().split() for line in lines]
    if ["begin", block] not in words or ["end", block] not in words:
        raise FileFormatError(f"{name}: there is no block {block}", remedy="write the file with wannier90.x -pp")
    first, last = words.index(["begin", block]) + 1, words.index(["end", block])
    if counted:
        (count,) = _integers(name, first + 1, lines[first], "number")
        first += 1
        if count != last - first:
            _malformed(name, first, f"{count} {block} are announced, and {last - first} stand here", "give all of them")
    rows = [_reals(name, n + 1, lines[n]) for n in range(first, last)]
    return np.array(rows).reshape(-1, 3)


def _reals(name: str, line: int, text: str) -> list[float]:
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or not np.isfinite(numbers).all():
        _malformed(name, line, f"{text.strip()!r} stands where three coordinates should", "write three numbers")
    return numbers


def _opened(path: FilePath) -> TextIO:
    try:
        return open(path, encoding="utf-8", errors="replace")
    except OSError as error:
        raise FileFormatError(
            f"{os.fspath(path)} cannot be read: {error.strerror}", remedy="give a file's path"
        ) from None


def _malformed(name: str, line: int, message: str, remedy: str) -> NoReturn:
    raise FileFormatError(f"{name}:{line}: {message}", remedy=remedy)


def _integers(name: str, line: int, text: str, what: str) -> list[int]:
    """The integers of a line that holds what the words of `what` name."""
    try:
        numbers = [int(word) for word in text.split()]
    except ValueError:
        numbers = []
    if len(numbers) != len(what.split()) or max(map(abs, numbers)) > _LARGEST:
        _malformed(
            name, line, f"{text.strip()!r} stands where {what} should", f"write {len(what.split())} integers below 2^31"
        )
    return numbers


def _sizes(name: str, file: TextIO, bytes_in_all: int) -> tuple[int, int, int]:
    """The second line: numbers of bands, k-points and neighbours. The first is a comment."""
    file.readline()
    bands, count, neighbours = _integers(name, 2, file.readline(), "num_bands num_kpts nntot")
    if min(bands, count, neighbours) < 1:
        _malformed(name, 2, "num_bands, num_kpts and nntot must be at least 1", "give the file as it was written")
    # before memory is taken: an entry has two digits, a blank and the end of its line at least
    if 4 * bands**2 * count * neighbours > bytes_in_all:
        _malformed(name, 2, f"the file is too short for {bands} bands", "write it again: it was cut short")
    return bands, count, neighbours


def _blocks(
    name: str, file: TextIO, bands: int, count: int, blocks: int
) -> Iterator[tuple[list[int], NDArray[np.complex128]]]:
    """Each block's k1, k2 (counted from 0) and G, and its matrix as it lies in the file."""
    line = 3
    for block in range(blocks):
        header = file.readline()
        if not header.strip():
            _malformed(
                name, line, f"the file ends after {block} of {blocks} blocks", "write it again: it was cut short"
            )
        k1, k2, *G = _integers(name, line, header, "k1 k2 G1 G2 G3")
        if not (1 <= k1 <= count and 1 <= k2 <= count):
            _malformed(name, line, f"there is no k-point {k2 if 1 <= k1 <= count else k1}", f"count from 1 to {count}")
        yield [k1 - 1, k2 - 1, *G], _matrix(name, line, list(islice(file, bands**2)), bands)
        line += 1 + bands**2
    if file.readline().strip():
        _malformed(name, line, f"the file goes on after {blocks} blocks", "let nntot be the neighbours of each k-point")


def _matrix(name: str, header: int, lines: list[str], bands: int) -> NDArray[np.complex128]:
    """A block's matrix from its lines, the real and the imaginary part of an entry on each."""
    values = np.empty((0, 2))
    with suppress(ValueError):
        # blank lines alone would be worth a warning to NumPy
        values = np.loadtxt(lines, comments=None, ndmin=2) if any(map(str.strip, lines)) else values
    whole = values.shape == (bands**2, 2) and bool(np.isfinite(values).all())
    if not whole:
        bad = next((n for n, line in enumerate(lines) if not _is_entry(line)), len(lines))
        found = repr(lines[bad].strip()) if bad < len(lines) else "the end of the file"
        remedy = f"write {bands**2} lines with a real and an imaginary part below each k1 k2 G1 G2 G3"
        _malformed(name, header + 1 + bad, f"{found} stands where an entry of the matrix should", remedy)
    return values.view(complex).reshape(bands, bands)


def _is_entry(line: str) -> bool:
    try:
        return len(line.split()) == 2 and all(np.isfinite(float(word)) for word in line.split())
    except ValueError:
        return False


def _offsets(links: Integers, mesh: Mesh, points: Integers) -> Integers:
    """The offsets b = k2 + G − k1 of all blocks, in steps of the mesh."""
    return np.asarray(points[links[:, 1]] + links[:, 2:] * np.array(mesh) - points[links[:, 0]])


def _placed(
    name: str, links: Integers, count: int, mp_grid: Sequence[int] | None, kpoints: ArrayLike | None
) -> tuple[Mesh, Integers]:
    """The mesh, and the place of each k-point in it."""
    if mp_grid is not None and (len(mp_grid) != 3 or np.prod(mp_grid) != count):
        raise ArrayError(f"mp_grid is {tuple(mp_grid)}, and the file has {count} k-points", remedy="give its own mesh")
    candidates = _orders(count) if kpoints is None else iter([_mesh_of(np.asarray(kpoints, float), count)])
    meshes = (each for each in candidates if mp_grid is None or each[0] == tuple(mp_grid))
    fitting = [each for each in meshes if _is_regular(links, *each)]
    remedy = 'give the k-points in the order of the file: kpoints=read_nnkp("….nnkp").kpoints'
    if len(fitting) > 1:
        found = ", ".join("×".join(map(str, mesh)) for mesh, _ in fitting)
        raise FileFormatError(f"{name}: the neighbours fit {len(fitting)} orders of k-points: {found}", remedy=remedy)
    if not fitting:
        order = "that is filled direction by direction" if kpoints is None else "of the k-points given"
        raise FileFormatError(
            f"{name}: the neighbours of {count} k-points are not those of a mesh {order}", remedy=remedy
        )
    return fitting[0]


def _is_regular(links: Integers, mesh: Mesh, points: Integers) -> bool:
    """Whether each k-point has each offset once."""
    # most meshes are ruled out by two k-points, before all blocks are looked at
    ends = (_offsets(links[links[:, 0] == k], mesh, points) for k in (0, len(points) - 1))
    first, last = (sorted(map(tuple, offsets.tolist())) for offsets in ends)
    if first != last:
        return False
    rows, column = np.unique(_offsets(links, mesh, points), axis=0, return_inverse=True)
    pairs = np.unique(links[:, 0] * len(rows) + column.ravel())
    return len(rows) * len(points) == len(pairs) == len(links)


def _orders(count: int) -> Iterator[tuple[Mesh, Integers]]:
    """All meshes of `count` points, filled direction by direction, and the points in that order; each list once."""
    for n1 in (n for n in range(1, count + 1) if count % n == 0):
        for n2 in (n for n in range(1, count // n1 + 1) if count // n1 % n == 0):
            mesh = (n1, n2, count // (n1 * n2))
            # from the slowest direction to the fastest; one with a single point has no place among them
            for axes in sorted({tuple(a for a in axes if mesh[a] > 1) for axes in permutations(range(3))}):
                points = np.zeros((count, 3), int)
                points[:, axes] = np.indices([mesh[a] for a in axes]).reshape(len(axes), count).T
                yield mesh, points


def _mesh_of(kpoints: Floats, count: int) -> tuple[Mesh, Integers]:
    """The regular mesh on which k-points of given fractional coordinates lie, shifted or not, and their places."""
    if kpoints.shape != (count, 3):
        raise ArrayError(
            f"kpoints has shape {kpoints.shape}, and the file has {count} k-points",
            remedy=f"give the three fractional coordinates of each: shape ({count}, 3)",
        )
    fractions = kpoints - kpoints[0]
    reduced = np.sort((fractions + _FRACTION) % 1, axis=0)
    n1, n2, n3 = (1 + np.count_nonzero(np.diff(reduced, axis=0) > 2 * _FRACTION, axis=0)).tolist()
    steps = fractions * (n1, n2, n3)
    points = np.rint(steps).astype(int)
    occupied = np.unique(points % (n1, n2, n3), axis=0)
    if n1 * n2 * n3 != count or len(occupied) != count or np.abs(steps - points).max() > n1 * n2 * n3 * _FRACTION:
        raise ArrayError(
            f"the {count} k-points are not those of a regular mesh",
            remedy="use k-points k0 + (i/n1, j/n2, l/n3), each once, in any order",
        )
    return (n1, n2, n3), points
