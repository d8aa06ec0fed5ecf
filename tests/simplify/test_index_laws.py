"""Each law of indices by itself on ground terms: what it makes of them, and where it does nothing."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.law_examples import (
    Law,
    constructors,
    does_nothing,
    equal,
    examples,
    exceptions,
    fires,
    indices,
    multiset,
    put,
    rewriting,
)
from tests.simplify.law_vocabulary import (
    At,
    Call,
    Conj,
    Delta,
    I,
    Item,
    J,
    K,
    Lin,
    Mono,
    Monomial,
    Num,
    Ordered,
    Plus,
    Power,
    S,
    Scale,
    Sum,
    T,
    Times,
    Where,
    X,
    Y,
    Z,
    aperiodic,
    domain,
    i,
    j,
    k,
    kind,
    monomials,
    s,
    t,
)

HALF = Fraction(1, 2)

# --- affine arithmetic ----------------------------------------------------------------------------------------------

reduced, idle, settled, partner = constructors("reduced", "idle", "settled", "partner")
VARIABLE = "a variable is settled"


def reducing(
    name: str, before: Sequence[Monomial], after: Sequence[Monomial], *facts: str, unless: dict[str, tuple[str, ...]]
) -> Law:
    """A law that says how the monomials of an index are reduced."""
    then = (equal(reduced(monomials(*before)), monomials(*after)),)
    return Law(name, (*facts, Lin(*before)), then, unless, using=("scale", VARIABLE))


def settling(name: str, x: str) -> Law:
    """A law that says of what a multiple is not flattened any more."""
    return Law(name, (Mono(2, x),), (settled(Mono(2, x)),), {"it is linear": (Mono(2, Lin((2, Conj(X)))),)})


TWO_INDICES = Lin((1, I), (1, J))

SETTLED = (
    settling(VARIABLE, I),
    settling("a number is settled", Num(3)),
    settling("an entry is settled", At(X, I)),
    settling("a call is settled", Call("exp", X)),
    settling("a sum of terms is settled", Plus(X, Y)),
    settling("a product is settled", Times(X, Y)),
    settling("a power is settled", Power(X, Num(2))),
    settling("a sum is settled", Sum({i}, X)),
    settling("a delta is settled", Delta([Lin((1, I), (-1, J))], X)),
    settling("a condition is settled", Ordered(I, J, X)),
    settling("an item is settled", Item(1, X)),
)

ARITHMETIC = (
    rewriting(
        "reduce",
        Lin((2, I), (3, I)),
        Lin((5, I)),
        put(reduced(monomials((2, I), (3, I))), monomials((5, I))),
        unless={"nothing is to be reduced": (Lin((2, I), (3, I)),)},
    ),
    rewriting("scale", Scale(2, Mono(3, I)), Mono(6, I)),
    reducing(
        "flatten an index",
        [(2, TWO_INDICES), (1, K)],
        [(2, I), (2, J), (1, K)],
        unless={
            "the inner index has one monomial": (Lin((2, Lin((3, I))), (1, K)),),
            "the inner index is found to be a variable": (Lin((2, TWO_INDICES), (1, K)), f"(union {TWO_INDICES} {T})"),
            "the inner index is not flat": (Lin((2, Lin((3, Conj(X)), (1, T))), (1, K)),),
        },
    ),
    reducing(
        "flatten a scaled index",
        [(2, Lin((3, I))), (1, K)],
        [(6, I), (1, K)],
        unless={
            "the inner index has two monomials": (Lin((2, Lin((3, I), (3, J))), (1, K)),),
            "the inner index is 1 i": (Lin((2, Lin((1, I))), (1, K)),),
            "the inner index is found to be a variable": (Lin((2, Lin((3, I))), (1, K)), f"(union {Lin((3, I))} {T})"),
            "the inner index is not flat": (Lin((2, Lin((3, Conj(X)))), (1, K)),),
        },
    ),
    reducing(
        "equal monomials",
        [(2, I), (2, I), (1, J)],
        [(4, I), (1, J)],
        unless={"they have unequal coefficients": (Lin((2, I), (3, I)),)},
    ),
    reducing(
        "monomials of one index",
        [(2, I), (3, I), (1, J)],
        [(5, I), (1, J)],
        unless={
            "they are equal": (Lin((2, I), (2, I)),),
            "the indices are two": (Lin((2, I), (3, J)),),
        },
    ),
    reducing(
        "zero of an index",
        [(0, I), (1, J)],
        [(1, J)],
        domain(i, 7),
        aperiodic(7),
        unless={
            "i is periodic": (Lin((0, I), (1, J)), domain(i, 8), domain(j, 7), aperiodic(7)),
            "the coefficient is not 0": (Lin((2, I), (1, J)), domain(i, 7), aperiodic(7)),
        },
    ),
    reducing(
        "zero of a periodic index",
        [(0, I), (1, J)],
        [(1, J)],
        domain(i, 7),
        domain(j, 7),
        unless={
            "no other index keeps the domain in mind": (Lin((0, I), (1, K)), domain(i, 7), domain(k, 8)),
            "it is the same index": (Lin((0, I), (1, I)), domain(i, 7)),
            "the coefficient is not 0": (Lin((2, I), (1, J)), domain(i, 7), domain(j, 7)),
            "the other index stands elsewhere": (Lin((0, I)), Lin((1, J)), domain(i, 7), domain(j, 7)),
        },
    ),
    reducing(
        "zero of a number",
        [(0, Num(2)), (1, J)],
        [(1, J)],
        unless={"the coefficient is not 0": (Lin((3, Num(2)), (1, J)),)},
    ),
    reducing(
        "zero of an entry",
        [(0, At(X, I)), (1, J)],
        [(1, J)],
        domain(11, 7),
        aperiodic(7),
        unless={"the coefficient is not 0": (Lin((3, At(X, I)), (1, J)), domain(11, 7), aperiodic(7))},
    ),
    rewriting(
        "one monomial",
        Lin((1, I)),
        I,
        unless={"the coefficient is not 1": (Lin((2, I)),), "there are two": (Lin((1, I), (1, J)),)},
    ),
    Law(
        "choose an empty condition",
        given=(Delta([Lin(), TWO_INDICES], X),),
        then=(equal(idle(multiset(Lin(), TWO_INDICES)), Lin()),),
        unless={"the condition has an index": (Delta([Lin((1, I))], X),), "there is no δ": (Lin(),)},
    ),
    Law(
        "choose a condition of zero",
        given=(Delta([Lin((0, I)), TWO_INDICES], X),),
        then=(equal(idle(multiset(Lin((0, I)), TWO_INDICES)), Lin((0, I))),),
        unless={
            "another index is left": (Delta([Lin((0, I), (1, J))], X),),
            "the coefficient is not 0": (Delta([Lin((2, I))], X),),
        },
    ),
    rewriting(
        "drop a condition",
        Delta([Lin(), TWO_INDICES], X),
        Where([TWO_INDICES], X),
        put(idle(multiset(Lin(), TWO_INDICES)), Lin()),
        unless={"no condition is idle": (Delta([Lin(), TWO_INDICES], X),)},
    ),
    rewriting(
        "a condition of one real number",
        Delta([S, TWO_INDICES], X),
        Delta([Lin((-1, S)), TWO_INDICES], X),
        kind(s, "real"),
        unless={
            "it is an index": (kind(s, "plain"), Delta([S, TWO_INDICES], X)),
            "no δ compares it": (kind(s, "real"), Delta([TWO_INDICES], S)),
        },
    ),
    rewriting(
        "a condition of one complex number",
        Delta([S, TWO_INDICES], X),
        Delta([Lin((-1, S)), TWO_INDICES], X),
        kind(s, "dense"),
        unless={
            "it is an index": (kind(s, "plain"), Delta([S, TWO_INDICES], X)),
            "no δ compares it": (kind(s, "dense"), Delta([TWO_INDICES], S)),
        },
    ),
    rewriting(
        "a condition of one periodic index",
        Delta([I, TWO_INDICES], X),
        Delta([Lin((-1, I)), TWO_INDICES], X),
        kind(i, "periodic"),
        unless={
            "0 may be no value of the index": (kind(i, "plain"), Delta([I, TWO_INDICES], X)),
            "no δ compares it": (kind(i, "periodic"), Delta([TWO_INDICES], I)),
        },
    ),
)

# --- a condition solved for an index --------------------------------------------------------------------------------

solution, newest, shortest = constructors("solution", "newest", "shortest")
point, measure, minuses, fewest = constructors("point", "measure", "minuses", "fewest")
POSITIVE, NEGATIVE = constructors("positive", "negative")
ZERO_SUM = Lin((1, I), (-1, J))


def summed(over: set[int], *conditions: str) -> str:
    """A sum over a δ."""
    return Sum(over, Delta(conditions, X))


def solving(
    name: str,
    condition: str,
    value: str,
    *facts: str,
    unless: dict[str, tuple[str, ...]],
) -> Law:
    """A law that solves a condition for the index i, over which is summed."""
    then = equal(solution(condition, i), value), equal(newest(indices(i), condition), str(i))
    return Law(name, (*facts, summed({i}, condition)), then, unless, using=("scale",))


def on_a_line(name: str, condition: str, value: str, signs: int, using: str, unless: dict[str, tuple[str, ...]]) -> Law:
    """A law that solves 2 s = … for a number s on a line, with the measure 1/2 and so many minus signs in the value."""
    then = (
        equal(point(condition, s), value),
        equal(measure(condition, s), Num(HALF)),
        equal(minuses(condition, s), str(signs)),
    )
    return Law(name, (kind(s, "real"), summed({s}, condition)), then, unless, using=("scale", using))


def of_one_domain(of: str) -> tuple[str, ...]:
    """Facts about indices i and j of this kind and one domain."""
    return kind(i, of, 7), kind(j, of, 7)


PLAIN = of_one_domain("plain")
SYMMETRIC = of_one_domain("symmetric")

SOLVING = (
    Law(
        "shortest condition",
        given=(
            summed({i}, Lin((1, I), (1, J), (1, K)), ZERO_SUM),
            put(newest(indices(i), Lin((1, I), (1, J), (1, K))), str(i)),
            put(newest(indices(i), ZERO_SUM), str(i)),
        ),
        then=(equal(shortest(indices(i), multiset(Lin((1, I), (1, J), (1, K)), ZERO_SUM)), "2"),),
        unless={
            "the condition is not solved": (summed({i}, ZERO_SUM),),
            "it is solved for an index that is not summed": (
                summed({i}, ZERO_SUM),
                put(newest(indices(j), ZERO_SUM), str(j)),
            ),
        },
    ),
    solving(
        "solve for a periodic index",
        Lin((1, I), (-3, J), (-1, Num(1))),
        Lin((3, J), (1, Num(1))),
        kind(i, "periodic"),
        unless={
            "i is not summed": (kind(i, "periodic"), summed({j}, ZERO_SUM)),
            "2 i = j has two solutions, or none": (kind(i, "periodic"), summed({i}, Lin((2, I), (1, J)))),
            "i is not periodic": (kind(i, "plain"), summed({i}, ZERO_SUM)),
            "i is in no condition": (kind(i, "periodic"), summed({i}, Lin((1, J), (-1, K)))),
            "X(i) = i is no value of i": (kind(i, "periodic"), summed({i}, Lin((1, I), (-1, At(X, I))))),
            "nor is i with i deep in an entry": (
                kind(i, "periodic"),
                summed({i}, Lin((1, I), (-1, At(X, J, At(Y, Lin((1, At(Z, K, K, K, I)), (2, J))), J, K, J)))),
            ),
        },
    ),
    solving(
        "solve for a dense index",
        Lin((-2, I), (3, J)),
        Lin((Fraction(3, 2), J)),
        kind(i, "dense"),
        unless={
            "i is not summed": (kind(i, "dense"), summed({j}, ZERO_SUM)),
            "i is not dense": (kind(i, "real"), summed({i}, ZERO_SUM)),
        },
    ),
    Law(
        "positive monomial",
        given=(Lin((2, I)),),
        then=(POSITIVE(Mono(2, I)),),
        unless={"0 i": (Lin((0, I)),), "−2 i": (Lin((-2, I)),)},
    ),
    Law(
        "negative monomial",
        given=(Lin((-2, I)),),
        then=(NEGATIVE(Mono(-2, I)),),
        unless={"0 i": (Lin((0, I)),), "2 i": (Lin((2, I)),)},
    ),
    on_a_line(
        "solve for a number",
        Lin((2, S), (1, T), (-1, X)),
        Lin((-HALF, T), (HALF, X)),
        2,
        "positive monomial",
        unless={
            "s is not summed": (kind(s, "real"), summed({i}, Lin((2, S), (-1, T)))),
            "the coefficient is negative": (kind(s, "real"), summed({s}, Lin((-2, S), (1, T)))),
            "s is not a real number": (kind(s, "dense"), summed({s}, Lin((2, S), (-1, T)))),
        },
    ),
    on_a_line(
        "solve for a negated number",
        Lin((-2, S), (1, T), (-1, X)),
        Lin((HALF, T), (-HALF, X)),
        2,
        "negative monomial",
        unless={
            "s is not summed": (kind(s, "real"), summed({i}, Lin((-2, S), (1, T)))),
            "the coefficient is positive": (kind(s, "real"), summed({s}, Lin((2, S), (-1, T)))),
            "s is not a real number": (kind(s, "dense"), summed({s}, Lin((-2, S), (1, T)))),
        },
    ),
    Law(
        "fewest signs",
        given=(
            summed({s, t}, Lin((1, S), (-1, T))),
            put(minuses(Lin((1, S), (-1, T)), s), "1"),
            put(minuses(Lin((1, S), (-1, T)), t), "3"),
        ),
        then=(equal(fewest(indices(s, t), Lin((1, S), (-1, T))), "1"),),
        unless={
            "t is not summed": (summed({s}, Lin((1, S), (-1, T))), put(minuses(Lin((1, S), (-1, T)), t), "1")),
            "there is nothing to count": (summed({s}, Lin((1, S), (-1, T))),),
        },
    ),
    Law(
        "solve for the fewest signs",
        given=(
            summed({s, t}, Lin((1, S), (-1, T))),
            put(minuses(Lin((1, S), (-1, T)), s), "1"),
            put(minuses(Lin((1, S), (-1, T)), t), "3"),
            put(fewest(indices(s, t), Lin((1, S), (-1, T))), "1"),
        ),
        then=(equal(newest(indices(s, t), Lin((1, S), (-1, T))), str(s)),),
        unless={
            "t is not summed": (
                summed({s}, Lin((1, S), (-1, T))),
                put(minuses(Lin((1, S), (-1, T)), t), "1"),
                put(fewest(indices(s), Lin((1, S), (-1, T))), "1"),
            ),
            "another number has fewer": (
                summed({s, t}, Lin((1, S), (-1, T))),
                put(minuses(Lin((1, S), (-1, T)), t), "3"),
                put(fewest(indices(s, t), Lin((1, S), (-1, T))), "1"),
            ),
        },
    ),
    Law(
        "solve for a plain index",
        given=(*PLAIN, summed({i}, ZERO_SUM)),
        then=(equal(partner(ZERO_SUM, i), str(j)), equal(newest(indices(i), ZERO_SUM), str(i))),
        unless={
            "i = j + 1 may be out of range": (*PLAIN, summed({i}, Lin((1, I), (-1, J), (-1, Num(1))))),
            "i is not summed": (*PLAIN, summed({k}, ZERO_SUM)),
            "it is no index but i": (*PLAIN, summed({i}, Lin((1, I), (-1, I)))),
            "i = −j is out of range": (*PLAIN, summed({i}, Lin((1, I), (1, J)))),
            "2 i = 2 j is not reduced": (*PLAIN, summed({i}, Lin((2, I), (-2, J)))),
            "the domains are two": (kind(i, "plain", 7), domain(j, 8), summed({i}, ZERO_SUM)),
            "i is fixed": (kind(i, "fixed", 7), domain(j, 7), summed({i}, ZERO_SUM)),
        },
    ),
    solving(
        "solve for a symmetric index",
        Lin((1, I), (1, J)),
        Lin((-1, J)),
        *SYMMETRIC,
        unless={
            "i = −j − 1 may be out of range": (*SYMMETRIC, summed({i}, Lin((1, I), (1, J), (1, Num(1))))),
            "i is not summed": (*SYMMETRIC, summed({k}, ZERO_SUM)),
            "it is no index but i": (*SYMMETRIC, summed({i}, Lin((1, I), (-1, I)))),
            "i = 2 j may be out of range": (*SYMMETRIC, summed({i}, Lin((1, I), (-2, J)))),
            "2 i = j may have no solution": (*SYMMETRIC, summed({i}, Lin((2, I), (-1, J)))),
            "the domains are two": (kind(i, "symmetric", 7), domain(j, 8), summed({i}, ZERO_SUM)),
            "i is fixed": (kind(i, "fixed", 7), domain(j, 7), summed({i}, ZERO_SUM)),
        },
    ),
)

LAWS = {"index": (*SETTLED, *ARITHMETIC, *SOLVING)}


@examples(LAWS)
def test_a_law_fires_and_makes_what_is_said(family: str, law: Law) -> None:
    fires(family, law)


@exceptions(LAWS)
def test_a_law_does_nothing_where_it_does_not_hold(family: str, law: Law, reason: str) -> None:
    does_nothing(family, law, reason)
