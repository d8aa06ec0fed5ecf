"""The problems that `python -m benchmarks` times: a program each, its sizes, and arrays with the symmetries declared.

Arrays are drawn from a fixed seed, so that contenders in processes of their own work on the same numbers. Their axes
are those of the program; how they lie in memory is what an expert would choose, the same for all contenders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.generic]
Arrays: TypeAlias = dict[str, Array]
Sizes: TypeAlias = Mapping[str, int]

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

RESTRICTED = """@space V begin
  type = (N, N, N, N) -> R
  symmetries = (((2, 1, 3, 4), :id), ((1, 2, 4, 3), :id), ((3, 4, 1, 2), :id))
end
(h::Sym, V::V) -> (C::RM) -> begin
  P = (p, q) -> sum(i, C(p, i) * C(q, i))
  sum((p, q), P(p, q) * (2 * h(p, q) + sum((r, s), P(r, s) * (2 * V(p, q, r, s) - V(p, r, q, s)))))
end"""
POLYADIC = """@space T begin type = (N, N, N) -> R end
(T::T) -> (A::RM, B::RM, C::RM) ->
  sum((i, j, k), (T(i, j, k) - sum(r, A(i, r) * B(j, r) * C(k, r)))^2)"""
CUBIC = """@space T begin
  type = (N, N, N) -> R
  symmetries = (((2, 1, 3), :id), ((2, 3, 1), :id))
end
(T::T) -> (x::RV) -> sum((i, j, k), T(i, j, k) * x(i) * x(j) * x(k))"""
PERCEPTRON = """(X::RM, Y::RM) -> (U::RM, W::RM) -> begin
  H = (s, j) -> tanh(sum(i, X(s, i) * U(i, j)))
  sum((s, k), (sum(j, H(s, j) * W(j, k)) - Y(s, k))^2)
end"""


@dataclass(frozen=True)
class Problem:
    """A row of the table: `program` is a text or the name of a file in examples/, `mode` the derivative that is taken.

    `key` is what contenders call it; `draw` makes arrays, by argument name, from a seed and sizes; `pack` names the
    arguments that code may take packed.
    """

    name: str
    key: str
    program: str
    draw: Callable[[np.random.Generator, Sizes], Arrays]
    sizes: Sizes
    quick: Sizes
    mode: str = "grad"
    pack: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The program's text."""
        if not self.program.endswith(".cd"):
            return self.program
        return (EXAMPLES / self.program).read_text(encoding="utf-8")

    @property
    def available(self) -> bool:
        """Whether the program is there."""
        return not self.program.endswith(".cd") or (EXAMPLES / self.program).exists()

    def arrays(self, quick: bool = False) -> Arrays:
        """The arrays of this problem, the same ones at every call."""
        return self.draw(np.random.default_rng(2024), self.quick if quick else self.sizes)


def gaussian(rng: np.random.Generator, *shape: int) -> Array:
    """Complex numbers of variance one."""
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)


def quadratic(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """A Hermitian matrix and a vector."""
    n = sizes["n"]
    A = gaussian(rng, n, n)
    return {"A": (A + A.conj().T) / 2, "x": gaussian(rng, n)}


def coulomb(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """Complex two-electron integrals, J(p,q,r,s) = J(q,p,s,r)* = J(r,s,p,q), and orbitals."""
    n = sizes["Nb"]
    J = gaussian(rng, n, n, n, n)
    J += J.transpose(1, 0, 3, 2).conj()
    J += J.transpose(2, 3, 0, 1).copy()
    return {"J": J / 4, "C": gaussian(rng, n, sizes["Ne"]) / np.sqrt(n)}


def coulomb_and_direction(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """The same and a direction k."""
    arrays = coulomb(rng, sizes)
    return {**arrays, "k": gaussian(rng, *arrays["C"].shape) / np.sqrt(sizes["Nb"])}


def restricted(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """Real integrals with the eight-fold symmetry, one-electron integrals and orbitals."""
    n = sizes["Nb"]
    h, V = rng.standard_normal((n, n)), rng.standard_normal((n, n, n, n))
    V = V + V.transpose(1, 0, 2, 3)
    V = V + V.transpose(0, 1, 3, 2)
    V = V + V.transpose(2, 3, 0, 1)
    return {"h": h + h.T, "V": V / 8, "C": rng.standard_normal((n, sizes["Ne"])) / np.sqrt(n)}


def steps_to_neighbours(count: int) -> Array:
    """The steps to the twelve nearest neighbours of a face-centred lattice, or to the six of a cubic one."""
    length = {12: 2, 6: 1}[count]
    return np.array([b for b in product((-1, 0, 1), repeat=3) if sum(map(abs, b)) == length])


def overlaps(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """Overlaps with M(p,q,k,b) = M(q,p,k+b,−b)*, weights, orbitals; in memory in the order k, b, q, p and k, p, n."""
    steps = steps_to_neighbours(sizes["neighbours"])
    lattice, N = (sizes["L"],) * 3, sizes["N"]
    M = np.empty((*lattice, len(steps), N, N), complex)
    w = np.empty(len(steps))
    for b, step in enumerate(steps):
        back = int(np.flatnonzero((steps == -step).all(axis=1))[0])
        if b < back:
            M[:, :, :, b] = gaussian(rng, *lattice, N, N) / N
            M[:, :, :, back] = np.roll(M[:, :, :, b], tuple(step), axis=(0, 1, 2)).conj().swapaxes(-1, -2)
            w[b] = w[back] = rng.uniform(0.5, 1.5)
    U = gaussian(rng, *lattice, N, N) / np.sqrt(N)
    return {"M": M.transpose(5, 4, 0, 1, 2, 3), "w": w, "U": U.transpose(3, 4, 0, 1, 2), "X": steps}


def polyadic(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """A cube of numbers and three factors."""
    n, rank = sizes["n"], sizes["rank"]
    factors = {name: rng.standard_normal((n, rank)) / np.sqrt(rank) for name in "ABC"}
    return {"T": rng.standard_normal((n, n, n)), **factors}


def cubic(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """A fully symmetric cube of numbers and a vector."""
    n = sizes["n"]
    T = rng.standard_normal((n, n, n))
    T = T + T.transpose(1, 0, 2)
    return {"T": (T + T.transpose(1, 2, 0) + T.transpose(2, 0, 1)) / 6, "x": rng.standard_normal(n)}


def perceptron(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """A batch of inputs and targets, and the weights of two layers."""
    batch, width = sizes["batch"], sizes["width"]
    inputs = {name: rng.standard_normal((batch, width)) for name in "XY"}
    return {**inputs, **{name: rng.standard_normal((width, width)) / np.sqrt(width) for name in "UW"}}


_ORBITALS = {"Nb": 60, "Ne": 10}
_FEW = {"Nb": 5, "Ne": 2}
PROBLEMS = (
    Problem("xᴴAx, n = 2000", "quadratic", "quadratic.cd", quadratic, {"n": 2000}, {"n": 7}),
    Problem(
        "Hartree–Fock, Coulomb, Nb = 60, Ne = 10", "coulomb", "hartree_fock.cd", coulomb, _ORBITALS, _FEW, pack=("J",)
    ),
    Problem(
        "restricted Hartree–Fock, Nb = 60, Ne = 10", "restricted", RESTRICTED, restricted, _ORBITALS, _FEW, pack=("V",)
    ),
    Problem(
        "Hartree–Fock, Hessian-vector product, Nb = 60, Ne = 10",
        "hessian",
        "hartree_fock.cd",
        coulomb_and_direction,
        _ORBITALS,
        _FEW,
        mode="hvp",
        pack=("J",),
    ),
    Problem(
        "Wannier spread, 8×8×8 points, 12 neighbours, N = 16",
        "spread",
        "wannier_lattice.cd",
        overlaps,
        {"L": 8, "neighbours": 12, "N": 16},
        {"L": 3, "neighbours": 6, "N": 2},
    ),
    Problem("CP loss, 100³, rank 20", "polyadic", POLYADIC, polyadic, {"n": 100, "rank": 20}, {"n": 5, "rank": 3}),
    Problem("T x x x, T symmetric, n = 150", "cubic", CUBIC, cubic, {"n": 150}, {"n": 6}, pack=("T",)),
    Problem(
        "perceptron of two layers, 256 × 512, tanh",
        "perceptron",
        PERCEPTRON,
        perceptron,
        {"batch": 256, "width": 512},
        {"batch": 3, "width": 4},
    ),
)
