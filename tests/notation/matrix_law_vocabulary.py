"""The vocabulary of `rules/matrix.egg`, as the examples of laws write it.

`Span(1, p, q)` is what the factors of the bit set 1 make of the legs p and q; `Around(q, 3, e, d)` says that the
factors 1 and 2 touch the index q of the domain d.
"""

from __future__ import annotations

from tests.law_examples import constructors, equal, union

Atom, Identity, Ones, Product, Entrywise = constructors("Atom", "Identity", "Ones", "Product", "Entrywise")
Transpose, Adjoint, Conjugate, Diag, Diagonal = constructors("Transpose", "Adjoint", "Conjugate", "Diag", "Diagonal")
Trace, Applied, Contraction, KhatriRao, Kronecker = constructors(
    "Trace", "Applied", "Contraction", "KhatriRao", "Kronecker"
)
Span, Factor, Loop, Around, Outer = constructors("Span", "Factor", "Loop", "Around", "Outer")
Tensor3, Tensor4, Unfolded = constructors("Tensor3", "Tensor4", "Unfolded")
Real, Symmetric, Hermitian = constructors("Real", "Symmetric", "Hermitian")

# indices, the end of a product, domains, matrices, vectors and tensors
p, q, r, s, v, w = 1, 2, 3, 4, 5, 6
e, end, c, d = 9, 10, 21, 22
A, B, C, X, Y, T, U = map(Atom, range(1, 8))


def span(m: int, a: int, b: int, matrix: str) -> str:
    """The factors m make this matrix of the legs a and b."""
    return union(Span(m, a, b), matrix)


def both(m: int, a: int, b: int, matrix: str) -> tuple[str, str]:
    """These factors make this matrix of the legs a and b, and its transpose of b and a."""
    return equal(Span(m, a, b), matrix), equal(Span(m, b, a), Transpose(matrix))
