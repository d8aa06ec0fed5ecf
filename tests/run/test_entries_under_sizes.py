"""An entry that is read under a condition on sizes alone need not be there where the condition does not hold."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

PROGRAMS = {
    "a number": ("(x::RV{n}) -> where(n > 4, x(4)^2 * sin(x(4)) * sum(x))", 5),
    "from the end": ("(x::RV{n}) -> where(3 <= n, x(n - 3)^3)", 3),
    "chosen by an index": ("(x::RV{n}) -> sum(i, where(i == n - 2, exp(x(i))))", 2),
    "otherwise": ("(x::RV{n}) -> where(n < 3, sum(i, x(i)^2), x(2)^4)", 0),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_not_read_need_not_exist(library: Numbers, name: str) -> None:
    program, least = PROGRAMS[name]
    gradient = cd.grad(program).compile(library.name, value=True)
    value = cd.simplified(program).compile()
    for n in (6, 1, 2, 3, 4, 5, 7):
        x = np.linspace(0.5, 1.5, n)
        found, slopes = map(library.back, gradient(library.to(x)))
        moved = [value(x + 1e-6 * e) - value(x - 1e-6 * e) for e in np.eye(n)]
        np.testing.assert_allclose(slopes, np.array(moved) / 2e-6, rtol=1e-6, atol=1e-8)
        assert found == pytest.approx(value(x))
        assert bool(found == 0) is (n < least)


def test_an_entry_that_is_read_must_be_there() -> None:
    f = cd.simplified("(x::RV{n}) -> where(n > 2, x(4))").compile()
    assert [f(np.ones(n)) for n in (1, 2, 5)] == [0, 0, 1]
    with pytest.raises(cd.ArrayError, match="the index 4 is out of range in slot 1 of x, which has 3 values"):
        f(np.ones(3))
