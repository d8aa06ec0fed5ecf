"""Each law of products of tensors by itself: what it makes of which factors, and where it does nothing."""

from __future__ import annotations

from tests.law_examples import Law, does_nothing, equal, examples, exceptions, fires
from tests.notation.matrix_law_vocabulary import (
    A,
    Applied,
    Around,
    B,
    C,
    Contraction,
    Diag,
    Identity,
    KhatriRao,
    Kronecker,
    Ones,
    Product,
    Span,
    T,
    Tensor3,
    Tensor4,
    Transpose,
    U,
    Unfolded,
    X,
    Y,
    both,
    c,
    d,
    e,
    p,
    q,
    r,
    s,
    span,
    v,
    w,
)

# --- tensors of three and four slots --------------------------------------------------------------------------------


def at_vector(a: int = p, b: int = q, n: int = 2, touching: int = 3, known: int = r) -> tuple[str, ...]:
    """T(a, b, r) x(r)."""
    return Tensor3(1, a, b, known, T), Around(known, touching, e, d), span(n, known, e, X)


def over_slot(a: int = p, b: int = q, touching: int = 1) -> tuple[str, ...]:
    """T(a, b, r), summed over r."""
    return Tensor3(1, a, b, r, T), Around(r, touching, e, d)


def at_matrix(a: int = p, n: int = 2, r_in: int = 3, s_in: int = 3) -> tuple[str, ...]:
    """T(a, r, s) A(r, s), where these factors touch r and s."""
    return Tensor3(1, a, r, s, T), Around(r, r_in, e, c), Around(s, s_in, e, d), span(n, r, s, A)


def four_at_matrix(a: int = p, b: int = q, n: int = 2, r_in: int = 3, s_in: int = 3) -> tuple[str, ...]:
    """T(a, b, r, s) A(r, s), where these factors touch r and s."""
    return Tensor4(1, a, b, r, s, T), Around(r, r_in, e, c), Around(s, s_in, e, d), span(n, r, s, A)


def four_at_vectors(
    a: int = p, b: int = q, last: int = s, n: int = 2, o: int = 4, r_in: int = 3, s_in: int = 5
) -> tuple[str, ...]:
    """T(a, b, r, s) x(r) y(s), where these factors touch r and s."""
    return (
        *(Tensor4(1, a, b, r, last, T), Around(r, r_in, e, c), Around(last, s_in, e, d)),
        *(span(n, r, e, X), span(o, e, last, Y)),
    )


def partial(a: int = p, b: int = q, touching: int = 1) -> tuple[str, ...]:
    """T(a, b, r, r), summed over r."""
    return Tensor4(1, a, b, r, r, T), Around(r, touching, e, d)


def weighted(a: int = p, b: int = q, n: int = 2, touching: int = 3) -> tuple[str, ...]:
    """T(a, b, r, r) x(r)."""
    return Tensor4(1, a, b, r, r, T), Around(r, touching, e, d), span(n, r, e, X)


TENSORS = (
    Law(
        "tensor of three slots at a vector",
        given=at_vector(),
        then=(equal(Span(3, p, q), Applied(T, X)),),
        unless={
            "another factor touches r": at_vector(touching=7),
            "one factor would be taken twice": at_vector(n=3),
            "T(p, p, r) is a vector": at_vector(b=p),
            "T(r, q, r) has r twice": at_vector(a=r),
            "T(p, r, r) has r twice": at_vector(b=r),
        },
    ),
    Law(
        "sum over a slot",
        given=over_slot(),
        then=(equal(Span(1, p, q), Applied(T, Ones(d))),),
        unless={
            "another factor touches r": over_slot(touching=3),
            "T(p, p, r) is a vector": over_slot(b=p),
            "T(r, q, r) has r twice": over_slot(a=r),
            "T(p, r, r) has r twice": over_slot(b=r),
        },
    ),
    Law(
        "tensor of three slots at a matrix",
        given=at_matrix(),
        then=both(3, p, e, Contraction(T, A)),
        unless={
            "another factor touches r": at_matrix(r_in=7),
            "another factor touches s": at_matrix(s_in=7),
            "one factor would be taken twice": at_matrix(n=3),
            "T(r, r, s) has r twice": at_matrix(a=r),
            "T(s, r, s) has s twice": at_matrix(a=s),
        },
    ),
    Law(
        "double contraction",
        given=four_at_matrix(),
        then=both(3, p, q, Contraction(T, A)),
        unless={
            "another factor touches r": four_at_matrix(r_in=7),
            "another factor touches s": four_at_matrix(s_in=7),
            "one factor would be taken twice": four_at_matrix(n=3),
            "T(p, p, r, s) is a vector": four_at_matrix(b=p),
            "T(r, q, r, s) has r twice": four_at_matrix(a=r),
            "T(s, q, r, s) has s twice": four_at_matrix(a=s),
            "T(p, r, r, s) has r twice": four_at_matrix(b=r),
            "T(p, s, r, s) has s twice": four_at_matrix(b=s),
        },
    ),
    Law(
        "double contraction with vectors",
        given=four_at_vectors(),
        then=both(7, p, q, Contraction(T, Product(X, Y))),
        unless={
            "another factor touches r": four_at_vectors(r_in=11),
            "another factor touches s": four_at_vectors(s_in=13),
            "x would have T in it": four_at_vectors(n=3),
            "y would have T in it": four_at_vectors(o=5),
            "one factor would be in x and y": four_at_vectors(n=2, o=6, s_in=7),
            "T(p, q, r, r) x(r) y(r) is a weighted trace": four_at_vectors(last=r, r_in=7, s_in=7),
            "T(p, p, r, s) is a vector": four_at_vectors(b=p),
            "T(r, q, r, s) has r twice": four_at_vectors(a=r),
            "T(s, q, r, s) has s twice": four_at_vectors(a=s),
            "T(p, r, r, s) has r twice": four_at_vectors(b=r),
            "T(p, s, r, s) has s twice": four_at_vectors(b=s),
        },
    ),
    Law(
        "partial trace",
        given=partial(),
        then=(equal(Span(1, p, q), Contraction(T, Identity(d))),),
        unless={
            "another factor touches r": partial(touching=3),
            "T(p, p, r, r) is a vector": partial(b=p),
            "T(r, q, r, r) has r three times": partial(a=r),
            "T(p, r, r, r) has r three times": partial(b=r),
        },
    ),
    Law(
        "partial trace with weights",
        given=weighted(),
        then=(equal(Span(3, p, q), Contraction(T, Diag(X))),),
        unless={
            "another factor touches r": weighted(touching=7),
            "one factor would be taken twice": weighted(n=3),
            "T(p, p, r, r) is a vector": weighted(b=p),
            "T(r, q, r, r) has r three times": weighted(a=r),
            "T(p, r, r, r) has r three times": weighted(b=r),
        },
    ),
)

# --- tensors unfolded to matrices -----------------------------------------------------------------------------------


def khatri_rao(
    a: int = p, b: int = q, last: int = s, n: int = 2, o: int = 4, r_in: int = 3, s_in: int = 5
) -> tuple[str, ...]:
    """T(a, r, s) B(r, b) C(s, b), where these factors touch r and s."""
    return (
        *(Unfolded(1, a, r, last, T), Around(r, r_in, e, c), Around(last, s_in, e, d)),
        *(span(n, r, b, B), span(o, last, b, C)),
    )


def unfolded(a: int = p, b: int = q, last: int = s, n: int = 2, r_in: int = 3, s_in: int = 3) -> tuple[str, ...]:
    """T(a, r, s) U(b, r, s), where these factors touch r and s."""
    return (
        *(Unfolded(1, a, r, last, T), Unfolded(n, b, r, last, U)),
        *(Around(r, r_in, e, c), Around(last, s_in, e, d)),
    )


def kronecker(
    legs: tuple[int, int, int, int, int, int] = (p, r, s, q, v, w),
    bits: tuple[int, int, int, int] = (1, 2, 4, 8),
    third: dict[int, int] | None = None,
) -> tuple[str, ...]:
    """T(p, r, s) B(r, v) C(s, w) U(q, v, w), where a third factor touches some of the indices, too."""
    (a, b1, b2, z, z1, z2), (m, n, k, o) = legs, bits
    touching = {b1: m | k, b2: m | o, z1: n | k, z2: n | o}
    for index, factor in (third or {}).items():
        touching[index] |= factor
    return (
        *(Unfolded(m, a, b1, b2, T), Unfolded(n, z, z1, z2, U), span(k, b1, z1, B), span(o, b2, z2, C)),
        *(Around(index, factors, e, 20 + index) for index, factors in touching.items()),
    )


UNFOLDED = (
    Law(
        "Khatri-Rao product",
        given=khatri_rao(),
        then=(equal(Span(7, p, q), Product(T, KhatriRao(B, C))),),
        unless={
            "another factor touches r": khatri_rao(r_in=11),
            "another factor touches s": khatri_rao(s_in=13),
            "T would be in B": khatri_rao(n=3),
            "one factor would be in B and C": khatri_rao(n=2, o=6, s_in=7),
            "T(p, r, s) B(r, p) C(s, p) is a vector": khatri_rao(b=p),
            "B and C are vectors": khatri_rao(b=e),
            "T(r, r, s) has r twice": khatri_rao(a=r),
            "T(s, r, s) has s twice": khatri_rao(a=s),
            "T(p, r, r) has r twice": khatri_rao(last=r, r_in=7, s_in=7),
        },
    ),
    Law(
        "product of unfolded tensors",
        given=unfolded(),
        then=(equal(Span(3, p, q), Product(T, Transpose(U))),),
        unless={
            "another factor touches r": unfolded(r_in=7),
            "another factor touches s": unfolded(s_in=7),
            "one factor would be taken twice": unfolded(n=3),
            "T(p, r, s) U(p, r, s) is a vector": unfolded(b=p),
            "T(r, r, s) has r twice": (Unfolded(1, r, r, s, T), *unfolded()[1:]),
            "T(s, r, s) has s twice": (Unfolded(1, s, r, s, T), *unfolded()[1:]),
            "U(r, r, s) has r twice": unfolded(b=r),
            "U(s, r, s) has s twice": unfolded(b=s),
            "T(p, r, r) has r twice": unfolded(last=r),
        },
    ),
    Law(
        "Kronecker product between unfolded tensors",
        given=kronecker(),
        then=(equal(Span(15, p, q), Product(Product(T, Kronecker(B, C)), Transpose(U))),),
        unless={
            "another factor touches r": kronecker(third={r: 16}),
            "another factor touches s": kronecker(third={s: 16}),
            "another factor touches v": kronecker(third={v: 16}),
            "another factor touches w": kronecker(third={w: 16}),
            "T and U are one factor": kronecker(bits=(1, 1, 4, 8)),
            "B and C are one factor": kronecker(bits=(1, 2, 4, 4)),
            "T would be in B": kronecker(bits=(1, 2, 5, 8)),
            "T(p, r, s) … U(p, v, w) is a vector": kronecker((p, r, s, p, v, w)),
            "T(r, r, s) has r twice": kronecker((r, r, s, q, v, w)),
            "T(s, r, s) has s twice": kronecker((s, r, s, q, v, w)),
            "T(p, r, r) has r twice": kronecker((p, r, r, q, v, w), third={r: 15}),
            "U(v, v, w) has v twice": kronecker((p, r, s, v, v, w)),
            "U(w, v, w) has w twice": kronecker((p, r, s, w, v, w)),
            "U(q, v, v) has v twice": kronecker((p, r, s, q, v, v), third={v: 15}),
        },
    ),
)

LAWS = {"matrix": (*TENSORS, *UNFOLDED)}


@examples(LAWS)
def test_a_law_fires_and_makes_what_is_said(family: str, law: Law) -> None:
    fires(family, law)


@exceptions(LAWS)
def test_a_law_does_nothing_where_it_does_not_hold(family: str, law: Law, reason: str) -> None:
    does_nothing(family, law, reason)
