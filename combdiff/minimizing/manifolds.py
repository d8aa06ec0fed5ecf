"""Charts: maps from the free variables of a minimiser to the unknowns, with first and second derivatives.

Orthonormal columns (the Stiefel manifold) are the polar factor Q = X P⁻¹ of any matrix X of full rank, P² = X†X. With
the inner product Re tr A†B, the gradient G of a function at Q is pulled back to G P⁻¹ − 2 X Y, where P Y + Y P is the
Hermitian part of Q†G P⁻¹; at P = 1 it is G − X (X†G + G†X)/2, the gradient on the manifold.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from combdiff.errors import ArrayError

Matrix = npt.NDArray[np.float64] | npt.NDArray[np.complex128]


class Chart(Protocol):
    """A point, and derivatives there."""

    value: Matrix

    def moved(self, k: Matrix) -> Matrix:
        """The derivative of the value along k."""
        ...

    def pulled(self, g: Matrix) -> Matrix:
        """The gradient by the free variable, of a function whose gradient by the value is g."""
        ...

    def turned(self, k: Matrix, g: Matrix, dg: Matrix) -> Matrix:
        """The derivative of `pulled` along k, along which g changes by dg."""
        ...


class Flat:
    """An unknown without a constraint: it is the free variable itself."""

    def __init__(self, value: Matrix, name: str = "") -> None:
        self.value = value

    def moved(self, k: Matrix) -> Matrix:
        return k

    def pulled(self, g: Matrix) -> Matrix:
        return g

    def turned(self, k: Matrix, g: Matrix, dg: Matrix) -> Matrix:
        return dg


class Stiefel:
    """A matrix with orthonormal columns: the polar factor of the free variable.

    >>> point = Stiefel(np.array([[3.0], [4.0]]))
    >>> point.value.T, point.pulled(np.array([[1.0], [0.0]])).T.round(3)
    (array([[0.6, 0.8]]), array([[ 0.128, -0.096]]))

    Raises ArrayError if the free variable is not a matrix of full rank with at least as many rows as columns.
    """

    def __init__(self, x: Matrix, name: str = "the unknown") -> None:
        if x.ndim != 2 or x.shape[0] < x.shape[1]:
            raise ArrayError(
                f"{name} of shape {x.shape} cannot have orthonormal columns",
                remedy="give a matrix with at least as many rows as columns",
            )
        squares, self._u = np.linalg.eigh(_adjoint(x) @ x)
        if not squares.size or squares[0] <= 1e-14 * squares[-1]:
            raise ArrayError(f"the columns of {name} are linearly dependent", remedy="start from a matrix of full rank")
        self._x, self._p = x, np.sqrt(squares)
        self.value = self._divided(x)

    def moved(self, k: Matrix) -> Matrix:
        return self._divided(k - self.value @ self._change_of_p(k))

    def pulled(self, g: Matrix) -> Matrix:
        z = self._divided(g)
        return z - 2 * self._x @ self._solved(_hermitian(_adjoint(self.value) @ z))

    def turned(self, k: Matrix, g: Matrix, dg: Matrix) -> Matrix:
        dp, z = self._change_of_p(k), self._divided(g)
        dz = self._divided(dg - z @ dp)
        y = self._solved(_hermitian(_adjoint(self.value) @ z))
        change = _hermitian(_adjoint(self.moved(k)) @ z + _adjoint(self.value) @ dz)
        dy = self._solved(change - dp @ y - y @ dp)
        return dz - 2 * (k @ y + self._x @ dy)

    def _divided(self, a: Matrix) -> Matrix:
        """a P⁻¹."""
        divided: Matrix = ((a @ self._u) / self._p) @ _adjoint(self._u)
        return divided

    def _solved(self, m: Matrix) -> Matrix:
        """The Y with P Y + Y P = m."""
        turned = _adjoint(self._u) @ m @ self._u
        solved: Matrix = self._u @ (turned / (self._p[:, None] + self._p)) @ _adjoint(self._u)
        return solved

    def _change_of_p(self, k: Matrix) -> Matrix:
        return self._solved(2 * _hermitian(_adjoint(k) @ self._x))


MANIFOLDS: dict[str, type[Flat] | type[Stiefel]] = {"": Flat, "stiefel": Stiefel}


def _adjoint(a: Matrix) -> Matrix:
    return np.conj(a.T)


def _hermitian(a: Matrix) -> Matrix:
    return (a + _adjoint(a)) / 2
