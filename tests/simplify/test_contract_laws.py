"""Each law of the meeting of Σ and δ by itself on ground terms: what it makes of them, and where it does nothing."""

from __future__ import annotations

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
    Call,
    Conj,
    Delta,
    I,
    J,
    K,
    Lin,
    Met,
    Num,
    Ordered,
    Over,
    Plus,
    S,
    Subst,
    Sum,
    Times,
    Where,
    With,
    X,
    Y,
    Z,
    i,
    j,
    k,
    kind,
    linear,
    s,
    t,
    waits,
)

HALF = Fraction(1, 2)
solution, newest, shortest, point, measure = constructors("solution", "newest", "shortest", "point", "measure")
condition, leaving, meeting = constructors("condition", "leaving", "meeting")
partner, further, replaced = constructors("partner", "further", "replaced")
LEFT, OTHER = Lin((1, I)), Lin((1, J))
D = Delta([LEFT], X)
WAITING = waits(Plus(X, Y), i)
LONG = Lin((1, I), (1, J), (1, K))

ZERO_SUM = Lin((1, I), (-1, J))


def summed(over: set[int], *conditions: str) -> str:
    """A sum over a δ."""
    return Sum(over, Delta(conditions, X))


OUTWARD = (
    rewriting("delta of a delta", Delta([LEFT], Delta([OTHER], X)), Delta([LEFT, OTHER], X)),
    rewriting("conjugate of a delta", Conj(D), Delta([LEFT], Conj(X))),
    rewriting(
        "linear function of a delta",
        Call("real", D),
        Delta([LEFT], Call("real", X)),
        linear("real"),
        unless={"exp(0) is not 0": (linear("real"), Call("exp", D))},
    ),
    rewriting("order of a delta", Ordered(I, J, D), Delta([LEFT], Ordered(I, J, X))),
    Law(
        "choose a delta in a product",
        given=(Times(D, Y),),
        then=(equal(condition(multiset(D, Y)), D),),
        unless={"the δ is in a sum": (Plus(D, Y),), "there is no δ": (Times(X, Y),)},
    ),
    rewriting(
        "delta out of a product",
        Times(D, Y),
        Delta([LEFT], Times(X, Y)),
        put(condition(multiset(D, Y)), D),
        unless={"no δ is chosen": (Times(D, Y),)},
    ),
    rewriting("sum of a sum", Sum({i}, Sum({j}, X)), Sum({i, j}, X)),
    rewriting("delta of a sum", Delta([LEFT], Sum({j}, X)), Sum({j}, D)),
    rewriting("conjugate of a sum over indices", Conj(Sum({i}, X)), Sum({i}, Conj(X))),
    rewriting(
        "linear function of a sum",
        Call("real", Sum({i}, X)),
        Sum({i}, Call("real", X)),
        linear("real"),
        unless={"exp of a sum is not the sum of exp": (linear("real"), Call("exp", Sum({i}, X)))},
    ),
    rewriting("order of a sum", Ordered(I, J, Sum({k}, X)), Sum({k}, Ordered(I, J, X))),
    Law(
        "choose a sum in a product",
        given=(Times(Sum({i}, X), Y),),
        then=(equal(leaving(multiset(Sum({i}, X), Y)), Sum({i}, X)),),
        unless={"Σ is in a sum": (Plus(Sum({i}, X), Y),), "there is no Σ": (Times(X, Y),)},
    ),
    rewriting(
        "sum out of a product",
        Times(Sum({i}, X), Y),
        Sum({i}, Times(X, Y)),
        put(leaving(multiset(Sum({i}, X), Y)), Sum({i}, X)),
        unless={"no Σ is chosen": (Times(Sum({i}, X), Y),)},
    ),
)

WAITS = (
    Law(
        "a delta waits",
        given=(kind(i, "plain"), Delta([ZERO_SUM], X)),
        then=(waits(Delta([ZERO_SUM], X), i),),
        unless={
            "i is not bound": (Delta([ZERO_SUM], X),),
            "i is in no condition": (kind(i, "plain"), Delta([OTHER], I)),
            "i is not summed": (kind(i, ""), Delta([ZERO_SUM], X)),
        },
    ),
    Law(
        "what sums a waiting delta waits",
        given=(waits(D, i), Sum({j}, D)),
        then=(waits(Sum({j}, D), i),),
        unless={"Σ is the one that it waits for": (waits(D, i), Sum({i}, D)), "it does not wait": (Sum({j}, D),)},
    ),
    Law(
        "what adds a waiting delta waits",
        given=(waits(D, i), Plus(D, Y)),
        then=(waits(Plus(D, Y), i),),
        unless={
            "it is a factor": (waits(D, i), Times(D, Y)),
            "it does not wait": (Plus(D, Y),),
            "it is in another sum": (waits(D, i), Plus(X, Y)),
        },
    ),
    rewriting(
        "sum over waiting terms",
        Sum({j}, Plus(X, Y)),
        Plus(Sum({j}, X), Sum({j}, Y)),
        WAITING,
        unless={"no δ waits": (Sum({j}, Plus(X, Y)),)},
    ),
    rewriting(
        "delta over waiting terms",
        Delta([LEFT], Plus(X, Y)),
        Plus(D, Delta([LEFT], Y)),
        WAITING,
        unless={"no δ waits": (Delta([LEFT], Plus(X, Y)),)},
    ),
    rewriting(
        "order over waiting terms",
        Ordered(I, J, Plus(X, Y)),
        Plus(Ordered(I, J, X), Ordered(I, J, Y)),
        WAITING,
        unless={"no δ waits": (Ordered(I, J, Plus(X, Y)),)},
    ),
    rewriting(
        "linear function over waiting terms",
        Call("real", Plus(X, Y)),
        Plus(Call("real", X), Call("real", Y)),
        WAITING,
        linear("real"),
        unless={
            "no δ waits": (linear("real"), Call("real", Plus(X, Y))),
            "exp(x + y) is not exp x + exp y": (linear("real"), WAITING, Call("exp", Plus(X, Y))),
        },
    ),
    Law(
        "choose waiting terms in a product",
        given=(Times(Plus(X, Y), Z), WAITING),
        then=(equal(leaving(multiset(Plus(X, Y), Z)), Plus(X, Y)),),
        unless={
            "no δ waits": (Times(Plus(X, Y), Z),),
            "the terms are in no product": (Plus(Plus(X, Y), Z), WAITING),
        },
    ),
    rewriting(
        "product over waiting terms",
        Times(Plus(X, Y), Z),
        Plus(With(multiset(Z), X), With(multiset(Z), Y)),
        put(leaving(multiset(Plus(X, Y), Z)), Plus(X, Y)),
        unless={"no terms are chosen": (Times(Plus(X, Y), Z), WAITING)},
    ),
)

NEXT = Lin((1, K), (-1, S))
NEXT_TO_I = Lin((1, K), (-1, I))
J_TO = Lin((1, J), (-1, K))


def met(*conditions: str) -> str:
    """A sum over i, j and k in which i has become j."""
    return Met({j, k}, {j}, conditions, {i: J}, X)


def chosen(d: str, v: int, *conditions: str, over: tuple[int, ...] = (j, k)) -> tuple[str, str]:
    """A condition is chosen among those of a sum, and an index of it."""
    return put(further(indices(*over), multiset(*conditions)), d), put(replaced(indices(*over), d), str(v))


INDICES = (
    rewriting(
        "meeting of indices",
        summed({i, k}, ZERO_SUM, LONG),
        Met({k}, {j}, [LONG], {i: J}, X),
        put(meeting(indices(i, k), multiset(ZERO_SUM, LONG)), ZERO_SUM),
        put(newest(indices(i, k), ZERO_SUM), str(i)),
        put(partner(ZERO_SUM, i), str(j)),
        unless={
            "no condition is chosen": (
                summed({i}, ZERO_SUM),
                put(newest(indices(i), ZERO_SUM), str(i)),
                put(partner(ZERO_SUM, i), str(j)),
            ),
            "the condition is solved for another index": (
                summed({i}, ZERO_SUM),
                put(meeting(indices(i), multiset(ZERO_SUM)), ZERO_SUM),
                put(newest(indices(i), ZERO_SUM), str(i)),
                put(partner(ZERO_SUM, j), str(i)),
            ),
        },
    ),
    Law(
        "choose a further condition",
        given=(met(NEXT, LONG), put(partner(NEXT, k), str(s))),
        then=(
            equal(further(indices(j, k), multiset(NEXT, LONG)), NEXT),
            equal(replaced(indices(j, k), NEXT), str(k)),
        ),
        unless={
            "its index is not summed": (Met({j}, {j}, [NEXT], {i: J}, X), put(partner(NEXT, k), str(s))),
            "a value is of its index": (met(J_TO), put(partner(J_TO, j), str(k))),
            "its value is of an index that is replaced": (met(NEXT_TO_I), put(partner(NEXT_TO_I, k), str(i))),
        },
    ),
    rewriting(
        "further meeting of indices",
        met(NEXT, LONG),
        Met({j}, {j, s}, [LONG], {i: J, k: S}, X),
        *chosen(NEXT, k, NEXT, LONG),
        put(partner(NEXT, k), str(s)),
        unless={
            "no condition is chosen": (met(NEXT), chosen(NEXT, k, NEXT)[1], put(partner(NEXT, k), str(s))),
            "no index is chosen": (met(NEXT), chosen(NEXT, k, NEXT)[0], put(partner(NEXT, k), str(s))),
            "a value is of its index": (met(J_TO), *chosen(J_TO, j, J_TO), put(partner(J_TO, j), str(k))),
            "its value is of an index that is replaced": (
                met(NEXT_TO_I),
                *chosen(NEXT_TO_I, k, NEXT_TO_I),
                put(partner(NEXT_TO_I, k), str(i)),
            ),
        },
    ),
)

MEETING = (
    Law(
        "choose a condition",
        given=(
            summed({i}, ZERO_SUM, LONG),
            put(newest(indices(i), ZERO_SUM), str(i)),
            put(newest(indices(i), LONG), str(i)),
            put(shortest(indices(i), multiset(ZERO_SUM, LONG)), "2"),
        ),
        then=(equal(meeting(indices(i), multiset(ZERO_SUM, LONG)), ZERO_SUM),),
        unless={
            "another condition is shorter": (
                summed({i}, ZERO_SUM, LONG),
                put(newest(indices(i), LONG), str(i)),
                put(shortest(indices(i), multiset(ZERO_SUM, LONG)), "2"),
            ),
            "Σ is not solved for it": (
                summed({i}, ZERO_SUM),
                put(newest(indices(j), ZERO_SUM), str(j)),
                put(shortest(indices(i), multiset(ZERO_SUM)), "2"),
            ),
        },
    ),
    rewriting(
        "meeting",
        summed({i, k}, ZERO_SUM, LONG),
        Over({k}, Subst(i, J, Where([LONG], X))),
        put(meeting(indices(i, k), multiset(ZERO_SUM, LONG)), ZERO_SUM),
        put(newest(indices(i, k), ZERO_SUM), str(i)),
        put(solution(ZERO_SUM, i), J),
        unless={
            "no condition is chosen": (
                summed({i}, ZERO_SUM),
                put(newest(indices(i), ZERO_SUM), str(i)),
                put(solution(ZERO_SUM, i), J),
            ),
            "the solution is for another index": (
                summed({i}, ZERO_SUM),
                put(meeting(indices(i), multiset(ZERO_SUM)), ZERO_SUM),
                put(newest(indices(i), ZERO_SUM), str(i)),
                put(solution(ZERO_SUM, j), I),
            ),
        },
    ),
    rewriting(
        "meeting on a line",
        summed({s, t}, Lin((2, S), (-1, Y))),
        Over({t}, Subst(s, Lin((HALF, Y)), Times(Num(HALF), Where((), X)))),
        put(meeting(indices(s, t), multiset(Lin((2, S), (-1, Y)))), Lin((2, S), (-1, Y))),
        put(newest(indices(s, t), Lin((2, S), (-1, Y))), str(s)),
        put(point(Lin((2, S), (-1, Y)), s), Lin((HALF, Y))),
        put(measure(Lin((2, S), (-1, Y)), s), Num(HALF)),
        unless={
            "no condition is chosen": (
                summed({s}, ZERO_SUM),
                put(newest(indices(s), ZERO_SUM), str(s)),
                put(point(ZERO_SUM, s), J),
                put(measure(ZERO_SUM, s), Num(1)),
            ),
            "the value is that of another number": (
                summed({s}, ZERO_SUM),
                put(meeting(indices(s), multiset(ZERO_SUM)), ZERO_SUM),
                put(newest(indices(s), ZERO_SUM), str(s)),
                put(point(ZERO_SUM, t), J),
                put(measure(ZERO_SUM, t), Num(1)),
            ),
            "s has no measure": (
                summed({s}, ZERO_SUM),
                put(meeting(indices(s), multiset(ZERO_SUM)), ZERO_SUM),
                put(newest(indices(s), ZERO_SUM), str(s)),
                put(point(ZERO_SUM, s), J),
            ),
        },
    ),
)

LAWS = {"contract": (*OUTWARD, *WAITS, *INDICES, *MEETING)}


@examples(LAWS)
def test_a_law_fires_and_makes_what_is_said(family: str, law: Law) -> None:
    fires(family, law)


@exceptions(LAWS)
def test_a_law_does_nothing_where_it_does_not_hold(family: str, law: Law, reason: str) -> None:
    does_nothing(family, law, reason)
