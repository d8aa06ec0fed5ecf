"""Wannier90's files are read into M(p, q, k, b): against overlaps of states whose k-points are known."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd
from combdiff.errors import ArrayError, FileFormatError
from combdiff.wannier90 import Overlaps, neighbour_weights, read_mmn, read_nnkp

ROOT = Path(__file__).parent.parent
CUBE = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0), (0, -1, 0), (0, 0, -1)]
HEADER = "overlaps\n 1 2 2\n"
BLOCK = "1 2 0 0 0\n 0.5 0.5\n"


class States:
    """Cell-periodic states at the points of a mesh, on orbitals at `sites`: u(k + G) = exp(−2πi G·site) u(k)."""

    def __init__(self, mesh: tuple[int, int, int], bands: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.mesh, self.bands = np.array(mesh), bands
        self.sites = rng.random((bands + 2, 3))
        drawn = rng.normal(size=(*mesh, bands + 2, bands, 2)) @ [1, 1j]
        self.states = np.linalg.qr(drawn)[0]

    def at(self, point: np.ndarray) -> np.ndarray:
        G, home = point // self.mesh, point % self.mesh
        return np.exp(-2j * np.pi * self.sites @ G)[:, None] * self.states[tuple(home)]

    def overlap(self, k: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self.at(k).conj().T @ self.at(k + b)

    def blocks(self, points: list[tuple[int, int, int]], steps: list[tuple[int, int, int]]) -> Iterator[str]:
        """The blocks of a file whose k-points stand in the order of `points`."""
        number = {point: n for n, point in enumerate(points, 1)}
        for point, b in product(points, steps):
            k = np.array(point)
            matrix = self.overlap(k, np.array(b))
            G, home = (k + b) // self.mesh, (k + b) % self.mesh
            lines = [f"{number[point]:5d}{number[tuple(home.tolist())]:5d}{G[0]:5d}{G[1]:5d}{G[2]:5d}"]
            lines += [f"{matrix[m, n].real:18.12f}{matrix[m, n].imag:18.12f}" for n, m in np.ndindex(matrix.shape)]
            yield "\n".join(lines) + "\n"

    def write(
        self, path: Path, points: list[tuple[int, int, int]], steps: list[tuple[int, int, int]], seed: int = 0
    ) -> None:
        blocks = list(self.blocks(points, steps))
        np.random.default_rng(seed).shuffle(blocks)
        path.write_text(f"shuffled blocks\n{self.bands:12d}{len(points):12d}{len(steps):12d}\n" + "".join(blocks))


def filled(mesh: tuple[int, int, int], axes: tuple[int, ...] = (0, 1, 2)) -> list[tuple[int, int, int]]:
    """The points of a mesh, its directions from the slowest to the fastest given by `axes`."""
    points = product(*(range(mesh[axis]) for axis in axes))
    return [tuple(point[axes.index(axis)] for axis in range(3)) for point in points]


@pytest.mark.slow
@given(
    mesh=st.tuples(*[st.integers(1, 4)] * 3),
    axes=st.permutations(range(3)),
    bands=st.integers(1, 3),
    steps=st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=1, max_size=4, unique=True),
    seed=st.integers(0, 99),
)
def test_overlaps_are_those_of_the_states(
    tmp_path_factory: pytest.TempPathFactory,
    mesh: tuple[int, int, int],
    axes: list[int],
    bands: int,
    steps: list[tuple[int, int, int]],
    seed: int,
) -> None:
    """With the k-points given, in any order; the first of them stands at (0, 0, 0)."""
    path = tmp_path_factory.mktemp("w90") / "a.mmn"
    states, points = States(mesh, bands, seed), filled(mesh)
    np.random.default_rng(seed).shuffle(points)
    states.write(path, points, steps, seed)
    read = read_mmn(path, kpoints=(np.array(points) + 0.5) / mesh)
    assert read.mesh == mesh and sorted(map(tuple, read.X.tolist())) == sorted(steps)
    for (column, b), k in product(enumerate(read.X), points):
        place = (np.array(k) - points[0]) % mesh
        assert np.allclose(read.M[:, :, *place, column], states.overlap(np.array(k), b), atol=1e-11)


@pytest.mark.parametrize("axes", list(permutations(range(3))))
@pytest.mark.parametrize("mesh", [(2, 3, 4), (4, 2, 1), (2, 2, 2), (1, 1, 5), (1, 1, 1), (3, 3, 3)])
def test_the_mesh_and_the_order_of_its_points_are_found(
    tmp_path: Path, mesh: tuple[int, int, int], axes: tuple[int, ...]
) -> None:
    states = States(mesh, 2)
    states.write(tmp_path / "a.mmn", filled(mesh, axes), CUBE)
    read = read_mmn(tmp_path / "a.mmn")
    assert read.mesh == mesh
    k, b = np.array(mesh) - 1, read.X[-1]
    assert b.tolist() == [1, 0, 0]
    assert np.allclose(read.M[:, :, *k, -1], states.overlap(k, b), atol=1e-11)


@pytest.mark.slow
def test_overlaps_have_the_symmetry_that_the_program_declares(tmp_path: Path) -> None:
    """M(p, q, k, b) = M(q, p, k + b, −b)', entry by entry, and as the compiled function checks it."""
    mesh = (3, 2, 4)
    States(mesh, 3).write(tmp_path / "a.mmn", filled(mesh), CUBE)
    read = read_mmn(tmp_path / "a.mmn")
    X = read.X.tolist()
    for (column, b), k in product(enumerate(X), np.ndindex(mesh)):
        ahead = (np.array(k) + b) % mesh
        back = read.M[:, :, *ahead, X.index([-step for step in b])]
        assert np.allclose(read.M[:, :, *k, column], back.conj().T, atol=1e-11)
    d = cd.grad((ROOT / "examples" / "wannier_lattice.cd").read_text(encoding="utf-8"))
    w = neighbour_weights(read.vectors(np.diag([1.0, 2.0, 3.0])))
    gauge = np.broadcast_to(np.eye(3)[..., None, None, None], (3, 3, *mesh)).astype(complex)
    value, _ = d.compile(value=True, check="full")(read.M, w, gauge, X=read.X)
    rho = np.einsum("nnxyzb->nb", read.M)
    assert np.isclose(value, np.sum(w * np.abs(rho) ** 2))


LATTICES = {
    "simple": (np.diag([1.0, 2.0, 3.0]), (4, 3, 2), [(1, 0, 0), (0, 1, 0), (0, 0, 1)]),
    "face-centred": (
        np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]]) / 2,
        (4, 4, 4),
        [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)],
    ),
    "hexagonal": (
        np.array([[1, 0, 0], [-0.5, 3**0.5 / 2, 0], [0, 0, 1.6]]),
        (3, 3, 2),
        [(1, 0, 0), (0, 1, 0), (1, -1, 0), (0, 0, 1)],
    ),
    "monoclinic": (
        np.array([[1, 0, 0], [0, 1.3, 0], [0.4, 0, 1.1]]),
        (5, 4, 4),
        [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 0, -1)],
    ),
}


def neighbours(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lattice, mesh, half = LATTICES[name]
    X = np.array(half + [tuple(-i for i in b) for b in half])
    return lattice, X / mesh, Overlaps(np.zeros((1, 1, *mesh, len(X)), complex), X).vectors(lattice)


@pytest.mark.parametrize("name", LATTICES)
def test_neighbours_are_vectors_of_the_reciprocal_lattice(name: str) -> None:
    lattice, fractions, b = neighbours(name)
    assert np.allclose(b @ lattice.T, 2 * np.pi * fractions)


@pytest.mark.parametrize("name", LATTICES)
def test_weights_differentiate_a_linear_function_exactly(name: str) -> None:
    """Σ w b (g·b) = g for every g, which is what the weights are for."""
    _, _, b = neighbours(name)
    w, lengths, g = neighbour_weights(b), np.linalg.norm(b, axis=1), np.array([0.3, -1.0, 2.0])
    assert np.allclose(np.einsum("b,bi,bj,j->i", w, b, b, g), g)
    assert all(np.allclose(w[np.isclose(lengths, length)], w[n]) for n, length in enumerate(lengths))


def test_weights_of_the_cubic_lattices_are_those_in_the_literature() -> None:
    """w = 3 / (Z b²) with Z neighbours at a distance b."""
    _, _, b = neighbours("face-centred")
    assert np.allclose(neighbour_weights(b), 3 / (8 * (b[0] @ b[0])))


def test_neighbours_along_two_directions_have_no_weights_in_three() -> None:
    with pytest.raises(ArrayError, match="no weights of 4 neighbours in 1 shells"):
        neighbour_weights([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
    with pytest.raises(ArrayError, match="the neighbours have shape"):
        neighbour_weights([])


def test_a_lattice_in_a_plane_is_refused() -> None:
    overlaps = Overlaps(np.zeros((1, 1, 2, 2, 2, 1), complex), np.array([[1, 0, 0]]))
    with pytest.raises(ArrayError, match="lie in a plane"):
        overlaps.vectors([[1, 0, 0], [0, 1, 0], [1, 1, 0]])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a.mmn:2: '' stands where num_bands num_kpts nntot should"),
        ("c\n1 2\n", "a.mmn:2: '1 2' stands where num_bands num_kpts nntot should"),
        ("c\n0 1 1\n", "a.mmn:2: num_bands, num_kpts and nntot must be at least 1"),
        ("c\n90000000 1 1\n", "a.mmn:2: the file is too short for 90000000 bands"),
        (HEADER + BLOCK, "a.mmn:5: the file ends after 1 of 4 blocks"),
        (HEADER + "1 2 0 0\n" + 4 * BLOCK, "a.mmn:3: '1 2 0 0' stands where k1 k2 G1 G2 G3 should"),
        (HEADER + BLOCK + "1 3 0 0 0\n 1 1\n" + 2 * BLOCK, "a.mmn:5: there is no k-point 3"),
        (HEADER + BLOCK + "0 2 0 0 0\n 1 1\n" + 2 * BLOCK, "a.mmn:5: there is no k-point 0"),
        (HEADER + "1 2 0 0 0\n 0.5 ****\n" + 3 * BLOCK, r"a.mmn:4: '0.5 \*\*\*\*' stands where an entry of the matrix"),
        (HEADER + "1 2 0 0 0\n 0.5 nan\n" + 3 * BLOCK, "a.mmn:4: '0.5 nan' stands where an entry"),
        (HEADER + "1 2 0 0 0\n 0.5\n" + 3 * BLOCK, "a.mmn:4: '0.5' stands where an entry"),
        (HEADER + "1 2 0 0 0\n\n" + 3 * BLOCK, "a.mmn:4: '' stands where an entry"),
        (HEADER + 3 * BLOCK + "1 2 0 0 0\n", "a.mmn:10: the end of the file stands where an entry"),
        (HEADER + 5 * BLOCK, "a.mmn:11: the file goes on after 4 blocks"),
        (
            HEADER + 4 * BLOCK,
            "the neighbours of 2 k-points are not those of a mesh that is filled direction by direction",
        ),
    ],
)
def test_a_malformed_file_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.mmn").write_text(text)
    with pytest.raises(FileFormatError, match=said) as caught:
        read_mmn(tmp_path / "a.mmn")
    assert caught.value.remedy


def test_a_missing_file_is_an_error_of_combdiff(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"none\.mmn cannot be read: No such file"):
        read_mmn(tmp_path / "none.mmn")


def test_k_points_out_of_order_are_asked_for(tmp_path: Path) -> None:
    mesh = (3, 3, 2)
    points = filled(mesh)
    points[3], points[7] = points[7], points[3]
    States(mesh, 1).write(tmp_path / "a.mmn", points, CUBE)
    with pytest.raises(FileFormatError, match="not those of a mesh that is filled") as caught:
        read_mmn(tmp_path / "a.mmn")
    assert "kpoints=" in caught.value.remedy
    with pytest.raises(FileFormatError, match="not those of a mesh of the k-points given"):
        read_mmn(tmp_path / "a.mmn", kpoints=np.array(filled(mesh)) / mesh)
    assert read_mmn(tmp_path / "a.mmn", kpoints=np.array(points) / mesh).mesh == mesh


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mp_grid": (2, 2, 2)}, r"mp_grid is \(2, 2, 2\), and the file has 6 k-points"),
        ({"mp_grid": (2, 3)}, r"mp_grid is \(2, 3\)"),
        ({"kpoints": np.zeros((6, 2))}, r"kpoints has shape \(6, 2\)"),
        ({"kpoints": np.zeros((6, 3))}, "the 6 k-points are not those of a regular mesh"),
        ({"kpoints": np.arange(18).reshape(6, 3) ** 2 / 7.0}, "the 6 k-points are not those of a regular mesh"),
    ],
)
def test_a_mesh_that_does_not_fit_is_refused(tmp_path: Path, given: dict[str, object], said: str) -> None:
    States((3, 2, 1), 1).write(tmp_path / "a.mmn", filled((3, 2, 1)), CUBE)
    assert read_mmn(tmp_path / "a.mmn", mp_grid=(3, 2, 1)).mesh == (3, 2, 1)
    with pytest.raises(ArrayError, match=said):
        read_mmn(tmp_path / "a.mmn", **given)


NNKP = """calc_only_A  :  F

begin real_lattice
   0.0  2.7  2.7
   2.7  0.0  2.7
   2.7  2.7  0.0
end real_lattice

begin kpoints
   2
   0.00000000  0.00000000  0.00000000
   0.00000000  0.00000000  0.50000000
end kpoints
"""


def test_a_crystal_is_read_from_an_nnkp_file(tmp_path: Path) -> None:
    (tmp_path / "a.nnkp").write_text(NNKP)
    crystal = read_nnkp(tmp_path / "a.nnkp")
    assert np.array_equal(crystal.lattice, 2.7 * (1 - np.eye(3)))
    assert np.array_equal(crystal.kpoints, [[0, 0, 0], [0, 0, 0.5]])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("real_lattice", "lattice", "a.nnkp: there is no block real_lattice"),
        ("   2.7  2.7  0.0\n", "", "a.nnkp: the lattice has 2 vectors"),
        ("   2\n", "   3\n", "a.nnkp:10: 3 kpoints are announced, and 2 stand here"),
        ("   2\n", "   two\n", "a.nnkp:10: 'two' stands where number should"),
        ("0.50000000", "half", "a.nnkp:12: '0.00000000  0.00000000  half' stands where three coordinates should"),
    ],
)
def test_a_malformed_nnkp_file_is_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "a.nnkp").write_text(NNKP.replace(old, new))
    with pytest.raises(FileFormatError, match=said) as caught:
        read_nnkp(tmp_path / "a.nnkp")
    assert caught.value.remedy
