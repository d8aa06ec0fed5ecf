"""Each law of terms by itself on ground terms: what it makes of them, and where it does nothing.

Those of indices are in `test_index_laws.py`, of meetings of Σ and δ in `test_contract_laws.py`, of products of matrices
and tensors in `test_matrix_laws.py` and `test_tensor_laws.py`.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

from tests.law_examples import (
    ROOT,
    Law,
    constructors,
    does_nothing,
    equal,
    examples,
    exceptions,
    fires,
    laws_of,
    multiset,
    put,
    rewriting,
    union,
)
from tests.notation.test_matrix_laws import LAWS as MATRIX
from tests.notation.test_tensor_laws import LAWS as TENSOR
from tests.simplify.law_vocabulary import (
    At,
    Call,
    Conj,
    Delta,
    Derivative,
    Fn,
    I,
    Item,
    J,
    K,
    Lin,
    Met,
    Mono,
    Num,
    Ordered,
    Over,
    Pair,
    Plus,
    Power,
    Raise,
    Subst,
    SubstMono,
    Sum,
    Times,
    Where,
    With,
    X,
    Y,
    Z,
    addend,
    commutes,
    i,
    inside,
    j,
    k,
    monomials,
    part,
    slots,
    values,
    vector,
    within,
)
from tests.simplify.test_contract_laws import LAWS as CONTRACT
from tests.simplify.test_index_laws import LAWS as INDEX

chosen, factor = constructors("chosen", "factor")
HALF = Fraction(1, 2)

ALGEBRA = (
    Law(
        "choose an inner product",
        given=(Times(X, Times(Y, Z)),),
        then=(equal(chosen(multiset(X, Times(Y, Z))), Times(Y, Z)),),
        unless={
            "x = x y is a factor of itself": (Times(X, Y), union(X, Times(X, Y))),
            "the inner term is a sum": (Times(X, Plus(Y, Z)),),
            "the product is in a sum": (Plus(X, Times(Y, Z)),),
        },
    ),
    Law(
        "choose an inner sum",
        given=(Plus(X, Plus(Y, Z)),),
        then=(equal(chosen(multiset(X, Plus(Y, Z))), Plus(Y, Z)),),
        unless={
            "x = x + y is a term of itself": (Plus(X, Y), union(X, Plus(X, Y))),
            "the inner term is a product": (Plus(X, Times(Y, Z)),),
            "the sum is in a product": (Times(X, Plus(Y, Z)),),
        },
    ),
    rewriting(
        "flatten a product",
        Times(X, Times(Y, Z)),
        Times(X, Y, Z),
        put(chosen(multiset(X, Times(Y, Z))), Times(Y, Z)),
        unless={
            "no inner product is chosen": (Times(X, Times(Y, Z)),),
            "x = x y is a factor of itself": (union(X, Times(X, Y)), put(chosen(multiset(X, Y)), X)),
        },
    ),
    rewriting(
        "flatten a sum",
        Plus(X, Plus(Y, Z)),
        Plus(X, Y, Z),
        put(chosen(multiset(X, Plus(Y, Z))), Plus(Y, Z)),
        unless={
            "no inner sum is chosen": (Plus(X, Plus(Y, Z)),),
            "x = x + y is a term of itself": (union(X, Plus(X, Y)), put(chosen(multiset(X, Y)), X)),
        },
    ),
    rewriting("with", With(multiset(X, Y), Z), Times(X, Y, Z)),
    rewriting("raise", Raise(Num(2), X), Power(X, Num(2))),
    rewriting(
        "power of a product",
        Power(Times(X, Y), Num(-2)),
        Times(Power(X, Num(-2)), Power(Y, Num(-2))),
        using=("raise",),
        unless={
            "√(x y) is not √x √y": (Power(Times(X, Y), Num(HALF)),),
            "the exponent is complex": (Power(Times(X, Y), Num(2, 1)),),
            "the exponent is unknown": (Power(Times(X, Y), Z),),
        },
    ),
    Law(
        "choose a factor",
        given=(Times(X, Plus(Y, Z)),),
        then=(equal(factor(multiset(X, Plus(Y, Z))), Plus(Y, Z)),),
        unless={"the sum is in a sum": (Plus(X, Plus(Y, Z)),), "no factor is a sum": (Times(X, Times(Y, Z)),)},
    ),
    rewriting(
        "multiply out",
        Times(X, Plus(Y, Z)),
        Plus(Times(X, Y), Times(X, Z)),
        put(factor(multiset(X, Plus(Y, Z))), Plus(Y, Z)),
        using=("with",),
        unless={"no factor is chosen": (Times(X, Plus(Y, Z)),)},
    ),
    rewriting("split a sum", Sum({i}, Plus(X, Y)), Plus(Sum({i}, X), Sum({i}, Y))),
)

CONJUGATE = (
    rewriting("conjugate twice", Conj(Conj(X)), X),
    rewriting("conjugate of a number", Conj(Num(1, 2)), Num(1, -2)),
    rewriting("conjugate of a sum", Conj(Plus(X, Y)), Plus(Conj(X), Conj(Y))),
    rewriting("conjugate of a product", Conj(Times(X, Y)), Times(Conj(X), Conj(Y))),
    rewriting("conjugate under an order", Conj(Ordered(I, J, X)), Ordered(I, J, Conj(X))),
    rewriting(
        "conjugate of an integer power",
        Conj(Power(X, Num(-2))),
        Power(Conj(X), Num(-2)),
        unless={
            "(√x)' is not √(x') below the branch cut": (Conj(Power(X, Num(HALF))),),
            "the exponent is complex": (Conj(Power(X, Num(2, 1))),),
        },
    ),
    rewriting(
        "conjugate of a function",
        Conj(Call("exp", X)),
        Call("exp", Conj(X)),
        commutes("exp"),
        unless={"log has a branch cut": (commutes("exp"), Conj(Call("log", X)))},
    ),
)

SUBSTITUTE = (
    rewriting("substitute the variable", Subst(i, X, I), X, unless={"it is another one": (Subst(i, X, J),)}),
    rewriting("substitute another variable", Subst(i, X, J), J, unless={"it is the variable": (Subst(i, X, I),)}),
    rewriting("substitute in a number", Subst(i, X, Num(1, 2)), Num(1, 2)),
    rewriting("substitute in an index", Subst(i, J, Lin((2, I))), f"(Lin {multiset(SubstMono(i, J, Mono(2, I)))})"),
    rewriting("substitute in a monomial", SubstMono(i, J, Mono(2, I)), Mono(2, Subst(i, J, I))),
    rewriting(
        "substitute in an application",
        Subst(i, J, At(X, I, K)),
        At(Subst(i, J, X), Subst(i, J, I), Subst(i, J, K)),
    ),
    rewriting("substitute in a function", Subst(i, J, Fn(j, I)), Fn(j, Subst(i, J, I))),
    rewriting("substitute in a sum", Subst(i, J, Plus(X, I)), Plus(Subst(i, J, X), Subst(i, J, I))),
    rewriting("substitute in a product", Subst(i, J, Times(X, I)), Times(Subst(i, J, X), Subst(i, J, I))),
    rewriting("substitute in a power", Subst(i, J, Power(X, I)), Power(Subst(i, J, X), Subst(i, J, I))),
    rewriting("substitute in a conjugate", Subst(i, J, Conj(I)), Conj(Subst(i, J, I))),
    rewriting("substitute in a call", Subst(i, J, Call("exp", I)), Call("exp", Subst(i, J, I))),
    rewriting("substitute under a sum", Subst(i, K, Sum({j}, I)), Sum({j}, Subst(i, K, I))),
    rewriting("substitute under a delta", Subst(i, K, Delta([I], J)), Delta([Subst(i, K, I)], Subst(i, K, J))),
    rewriting(
        "substitute under an order",
        Subst(i, K, Ordered(I, J, X)),
        Ordered(Subst(i, K, I), Subst(i, K, J), Subst(i, K, X)),
    ),
    rewriting("substitute in a derivative", Subst(i, J, Derivative("grad", I)), Derivative("grad", Subst(i, J, I))),
    rewriting("substitute in a pair", Subst(i, J, Pair(X, I)), Pair(Subst(i, J, X), Subst(i, J, I))),
    rewriting("substitute in an item", Subst(i, J, Item(1, I)), Item(1, Subst(i, J, I))),
    rewriting("sum over nothing", Over((), X), X, unless={"an index is left": (Over({i}, X),)}),
    rewriting("sum over what is left", Over({i}, X), Sum({i}, X), unless={"no index is left": (Over((), X),)}),
    rewriting("delta of nothing", Where((), X), X, unless={"a condition is left": (Where([I], X),)}),
    rewriting(
        "after the meetings",
        Met({k}, {j}, [K], {i: J}, X),
        Over({k}, f"(Subst {values({i: J})} {Where([K], X)})"),
    ),
    Law("substituted in a term", given=(Subst(i, J, Conj(I)),), then=()),
    Law("substituted in a monomial", given=(SubstMono(i, J, Mono(2, I)),), then=()),
    rewriting("delta of what is left", Where([I], X), Delta([I], X), unless={"no condition is left": (Where((), X),)}),
)


ENTRIES = (
    Law(
        "arguments of an entry",
        given=(Mono(2, At(Y, I, J)),),
        then=(slots(Mono(2, At(Y, I, J)), vector(I, J)),),
        unless={"it is no entry": (Mono(2, I),)},
    ),
    Law(
        "last argument",
        given=(slots(Mono(2, Y), vector(I, J)),),
        then=(within(Mono(2, Y), I), within(Mono(2, Y), J), slots(Mono(2, Y), vector(I))),
        unless={"no argument is left": (slots(Mono(2, Y), "(vec-empty)"),)},
    ),
    Law(
        "arguments of an entry in an entry",
        given=(within(Mono(2, Y), At(X, I, J)),),
        then=(slots(Mono(2, Y), vector(I, J)),),
        unless={"it is a variable": (within(Mono(2, Y), I),)},
    ),
    Law(
        "index in an entry",
        given=(within(Mono(2, Y), Lin((3, I), (-1, J))),),
        then=(within(Mono(2, Y), I), within(Mono(2, Y), J)),
        unless={"the index is in no entry": (Lin((3, I), (-1, J)),)},
        using=("monomials of an index",),
    ),
    Law(
        "variable in an entry",
        given=(within(Mono(2, Y), I),),
        then=(inside(i, Mono(2, Y)),),
        unless={"it is a number": (within(Mono(2, Y), Num(1)),)},
    ),
)

TERMS = (
    *ENTRIES,
    Law("terms of a sum", given=(Plus(X, Y),), then=(part(multiset(X, Y), X), part(multiset(X, Y), Y))),
    Law("factors of a product", given=(Times(X, Y),), then=(part(multiset(X, Y), X), part(multiset(X, Y), Y))),
    Law("conditions of a delta", given=(Delta([I, J], X),), then=(part(multiset(I, J), I), part(multiset(I, J), J))),
    Law(
        "conditions of a meeting",
        given=(Met({k}, {j}, [I, J], {i: J}, X),),
        then=(part(multiset(I, J), I), part(multiset(I, J), J)),
    ),
    Law(
        "monomials of an index",
        given=(Lin((2, I), (-1, J)),),
        then=(
            addend(monomials((2, I), (-1, J)), Mono(2, I)),
            addend(monomials((2, I), (-1, J)), Mono(-1, J)),
        ),
    ),
)

LAWS = {"algebra": ALGEBRA, "conjugate": CONJUGATE, "substitute": SUBSTITUTE, "terms": TERMS}


@examples(LAWS)
def test_a_law_fires_and_makes_what_is_said(family: str, law: Law) -> None:
    fires(family, law)


@exceptions(LAWS)
def test_a_law_does_nothing_where_it_does_not_hold(family: str, law: Law, reason: str) -> None:
    does_nothing(family, law, reason)


def test_every_law_has_an_example() -> None:
    named = {path.stem: set(laws_of(path.stem)) for path in (ROOT / "rules").glob("*.egg")}
    tried: dict[str, set[str]] = defaultdict(set)
    for table in (LAWS, INDEX, CONTRACT, MATRIX, TENSOR):
        for family, laws in table.items():
            tried[family] |= {law.name for law in laws}
    assert tried == named
