"""Loops through the same states have one key, however their steps are spelled."""

from __future__ import annotations

import pytest

from combdiff.calculus.loops.loop_keys import LoopKeys
from combdiff.terms.terms import TWO, App, Lam, Loop, Term, Tuple, Var, add, call, fresh, let, mul
from combdiff.terms.types import REAL, Domain, Index, Map

N = Index(Domain("n"))
X, A = fresh("x", Map((N,), REAL)), fresh("a", REAL)


def loop(*, named: bool, twice: bool, turned: bool = False, doubled: bool = False) -> Loop:
    """s(t + 1) = e^(2 s) x(t), plus e^(2 s) if it is read `twice`, with a name for e^(2 s) or none."""
    s, t, v = fresh("s", REAL), fresh("t", N), fresh("v", REAL)
    value = call("exp", mul(TWO, s))
    part: Term = v if named else value
    terms = [mul(part, App(X, (t,))), *([part] if twice else [])]
    next_state = add(*(terms[::-1] if turned else terms))
    bindings: list[tuple[Var, Term]] = [(v, value)] if named else []
    body = let(bindings, Tuple((mul(TWO, next_state) if doubled else next_state,)))
    return Loop("last", 0, False, Lam((s, t), body), Tuple((A,)))


@pytest.mark.parametrize("turned", [False, True], ids=["in order", "turned"])
def test_a_name_for_what_is_used_once_makes_no_other_key(turned: bool) -> None:
    keys = LoopKeys()
    assert keys.of(loop(named=True, twice=False)) == keys.of(loop(named=False, twice=False, turned=turned))


def test_loops_whose_steps_differ_have_different_keys() -> None:
    keys = LoopKeys()
    found = [loop(named=True, twice=twice, doubled=doubled) for twice in (False, True) for doubled in (False, True)]
    assert len({keys.of(one) for one in found}) == len(found)
    assert keys.of(loop(named=True, twice=True, turned=True)) == keys.of(loop(named=True, twice=True))
