"""Tables of differences and of sums are read along their rows."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes.contractions.turned import with_differences_turned
from combdiff.arrays.text import read
from combdiff.arrays.verify import verify
from combdiff.meaning.evaluate import evaluate

REPULSION = "(s::R) -> (x::RM{n, 2}) -> sum((i, j), i < j, relu(s - sqrt(sum(c, (x(i, c) - x(j, c))^2)))^2)"
TABLE = """n = Domain(name='n', sized=True)
d = Domain(name='d', sized=True)
size(n, 7)
size(d, 3)
x: real[n, d] = input(Map(params=(Index(domain=n), Index(domain=d)), result=Number(complex=False), space='RM'))
w: real[n, n] = input(Map(params=(Index(domain=n), Index(domain=n)), result=Number(complex=False), space='RM'))
t3: real[n, d, n] = add(x, x, places=((0, 1), (2, 1)), coefficients=(FIRST, SECOND))
t4: real[d, n] = einsum(t3, w, left=(LEFT), right=(2, 0), result=(1, 2))
return t4
"""


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("second", [1, -1])
@pytest.mark.parametrize("left", ["0, 1, 2", "2, 1, 0"])
def test_what_is_summed_over_is_the_last_axis(first: int, second: int, left: str) -> None:
    before = read(TABLE.replace("FIRST", str(first)).replace("SECOND", str(second)).replace("LEFT", left))
    after = with_differences_turned(before)
    verify(after)
    (output,) = after.outputs
    assert (after != before) == (left == "0, 1, 2" and first == 1)
    assert isinstance(output.op, ops.Mul) == (after != before and second == -1)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_forces_between_pairs_are_those_of_the_oracle(n: int) -> None:
    d = cd.grad(REPULSION)
    s, x = np.array(3.0), np.random.default_rng(n).normal(size=(n, 2))
    value, forces = d.compile(value=True)(s=s, x=x)
    np.testing.assert_allclose(forces, evaluate(d.term, {})(s)(x), atol=1e-12)  # type: ignore[operator]
    far = np.sqrt(((x[:, None] - x) ** 2).sum(axis=2))
    np.testing.assert_allclose(value, (np.triu(np.maximum(3 - far, 0), 1) ** 2).sum())
