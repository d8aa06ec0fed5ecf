"""Each law of products of matrices by itself: what it makes of which factors, and where it does nothing."""

from __future__ import annotations

from tests.law_examples import Law, does_nothing, equal, examples, exceptions, fires, rewriting
from tests.notation.matrix_law_vocabulary import (
    A,
    Adjoint,
    Around,
    B,
    Conjugate,
    Diag,
    Diagonal,
    Entrywise,
    Factor,
    Hermitian,
    Identity,
    Loop,
    Ones,
    Outer,
    Product,
    Real,
    Span,
    Symmetric,
    Trace,
    Transpose,
    X,
    Y,
    both,
    c,
    d,
    e,
    end,
    p,
    q,
    r,
    span,
)

# --- factors, and products of two -----------------------------------------------------------------------------------


def chain_of_two(a: int = p, b: int = r, m: int = 1, n: int = 2, touching: int = 3) -> tuple[str, ...]:
    """A(a, q) B(q, b), where these factors touch q."""
    return Around(q, touching, e, d), span(m, a, q, A), span(n, q, b, B)


def ring_of_two(a: int = p, n: int = 2, touching: int = 3, last: int = e) -> tuple[str, ...]:
    """A(a, q) B(q, a), where these factors touch both indices, in products with the ends e and `last`."""
    return Around(q, touching, e, d), Around(a, touching, last, c), span(1, a, q, A), span(n, q, a, B)


def rows(a: int = r, m: int = 1, n: int = 2, last: int = e) -> tuple[str, ...]:
    """x(q) A(q, a)."""
    return Around(q, 3, last, d), span(m, q, e, X), span(n, q, a, A)


def columns(a: int = r, m: int = 1, n: int = 2, last: int = e) -> tuple[str, ...]:
    """x(q) A(a, q)."""
    return Around(q, 3, last, d), span(m, q, e, X), span(n, a, q, A)


def entries(known: int, a: int = p, b: int = q, m: int = 1, n: int = 2) -> tuple[str, ...]:
    """A(a, b) B(a, b), where the factors are known that touch one of the indices."""
    return Around(known, 3, e, d), span(m, a, b, A), span(n, a, b, B)


PRODUCTS = (
    Law("factor", given=(Factor(1, p, q, A),), then=both(1, p, q, A)),
    Law("loop", given=(Loop(1, p, e, A),), then=both(1, p, e, Diagonal(A))),
    Law(
        "product",
        given=chain_of_two(),
        then=(equal(Span(3, p, r), Product(A, B)),),
        unless={
            "a third factor touches q": chain_of_two(touching=7),
            "one factor would be taken twice": chain_of_two(m=1, n=3),
            "A(q, q) sums over a diagonal": chain_of_two(a=q),
            "B(q, q) sums over a diagonal": chain_of_two(b=q),
            "A(p, q) B(q, p) is a trace or a diagonal": chain_of_two(b=p),
        },
    ),
    Law(
        "inner product",
        given=(Around(q, 3, e, d), span(1, e, q, X), span(2, q, e, Y)),
        then=(equal(Span(3, e, e), Product(X, Y)),),
        unless={
            "a third factor touches q": (Around(q, 7, e, d), span(1, e, q, X), span(2, q, e, Y)),
            "one factor would be taken twice": (Around(q, 3, e, d), span(1, e, q, X), span(3, q, e, Y)),
            "they end elsewhere": (Around(q, 3, e, d), span(1, p, q, X), span(2, q, p, Y)),
        },
    ),
    Law(
        "closed product",
        given=ring_of_two(),
        then=both(3, p, e, Diagonal(Product(A, B))),
        unless={
            "a third factor touches both": ring_of_two(touching=7),
            "one factor would be taken twice": ring_of_two(n=3),
            "A(q, q) B(q, q) is no product": ring_of_two(a=q),
            "the indices are of two products": ring_of_two(last=end),
        },
    ),
    Law(
        "scaled rows",
        given=rows(),
        then=(equal(Span(3, q, r), Product(Diag(X), A)),),
        unless={
            "one factor would be taken twice": rows(m=1, n=3),
            "A is a vector": rows(a=e),
            "A(q, q) is a diagonal": rows(a=q),
            "X is a matrix, for the product ends elsewhere": rows(last=end),
        },
    ),
    Law(
        "scaled columns",
        given=columns(),
        then=(equal(Span(3, r, q), Product(A, Diag(X))),),
        unless={
            "one factor would be taken twice": columns(m=1, n=3),
            "A is a vector": columns(a=e),
            "A(q, q) is a diagonal": columns(a=q),
            "X is a matrix, for the product ends elsewhere": columns(last=end),
        },
    ),
    Law(
        "entrywise",
        given=entries(known=p),
        then=(equal(Span(3, p, q), Entrywise(A, B)),),
        never=(equal(Span(3, p, q), Entrywise(B, A)),),
        unless={
            "one factor would be taken twice": entries(known=p, m=1, n=3),
            "A(p, p) is a diagonal": entries(known=p, b=p),
            "no factor touches p": entries(known=q),
            "the legs are not the same": (Around(p, 3, e, d), span(1, p, q, A), span(2, p, r, B)),
        },
    ),
    Law(
        "entrywise, last leg",
        given=entries(known=q),
        then=(equal(Span(3, p, q), Entrywise(A, B)),),
        never=(equal(Span(3, p, q), Entrywise(B, A)),),
        unless={
            "one factor would be taken twice": entries(known=q, m=1, n=3),
            "A(q, q) is a diagonal": entries(known=q, a=q),
            "no factor touches q": entries(known=p),
            "the legs are not the same": (Around(q, 3, e, d), span(1, p, q, A), span(2, r, q, B)),
        },
    ),
    Law(
        "row sums",
        given=(Around(q, 1, e, d), span(1, p, q, A)),
        then=(equal(Span(1, p, e), Product(A, Ones(d))),),
        unless={
            "another factor touches q": (Around(q, 3, e, d), span(1, p, q, A)),
            "A(q, q) sums over a diagonal": (Around(q, 1, e, d), span(1, q, q, A)),
        },
    ),
    Law(
        "column sums",
        given=(Around(q, 1, e, d), span(1, q, p, A)),
        then=(equal(Span(1, e, p), Product(Transpose(Ones(d)), A)),),
        unless={
            "another factor touches q": (Around(q, 3, e, d), span(1, q, p, A)),
            "A(q, q) sums over a diagonal": (Around(q, 1, e, d), span(1, q, q, A)),
        },
    ),
    Law(
        "outer product",
        given=(Outer(3, p, q, e), span(1, p, e, X), span(2, e, q, Y)),
        then=(equal(Span(3, p, q), Product(X, Y)),),
        unless={
            "one factor would be taken twice": (Outer(3, p, q, e), span(1, p, e, X), span(3, e, q, Y)),
            "a third factor is left": (Outer(7, p, q, e), span(1, p, e, X), span(2, e, q, Y)),
        },
    ),
)

# --- transposes, and what is declared of a matrix -------------------------------------------------------------------

ADJOINTS = (
    rewriting("trace", Product(Transpose(Ones(d)), Diagonal(A)), Trace(A)),
    rewriting("identity from the left", Product(Identity(d), A), A),
    rewriting("identity from the right", Product(A, Identity(d)), A),
    rewriting("transposed identity", Transpose(Identity(d)), Identity(d)),
    rewriting("transpose twice", Transpose(Transpose(A)), A),
    rewriting("conjugate a matrix twice", Conjugate(Conjugate(A)), A),
    rewriting("adjoint", Transpose(Conjugate(A)), Adjoint(A)),
    rewriting("real", Conjugate(A), A, Real(A), unless={"B is real": (Real(B), Conjugate(A))}),
    rewriting("symmetric", Transpose(A), A, Symmetric(A), unless={"A is not": (Transpose(A),)}),
    rewriting("symmetric, conjugated", Adjoint(A), Conjugate(A), Symmetric(A), unless={"A is not": (Adjoint(A),)}),
    rewriting("hermitian", Adjoint(A), A, Hermitian(A), unless={"A is not": (Adjoint(A),)}),
    rewriting("hermitian, transposed", Transpose(A), Conjugate(A), Hermitian(A), unless={"A is not": (Transpose(A),)}),
)

LAWS = {"matrix": (*PRODUCTS, *ADJOINTS)}


@examples(LAWS)
def test_a_law_fires_and_makes_what_is_said(family: str, law: Law) -> None:
    fires(family, law)


@exceptions(LAWS)
def test_a_law_does_nothing_where_it_does_not_hold(family: str, law: Law, reason: str) -> None:
    does_nothing(family, law, reason)
