"""Large steps are written over operands that nothing else needs, and never over anything else, whatever the dtypes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from benchmarks.problems import PERCEPTRON, POLYADIC
from combdiff.arrays.lower.lower import lower
from combdiff.arrays.lower.signature import result_of
from combdiff.arrays.passes.overwriting import Overwriting
from combdiff.arrays.plan import Plan
from combdiff.arrays.text import read
from combdiff.emit.backends.numpy import SPELLING
from combdiff.emit.emit import emit, spelling_of
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.run.compiled import Compiled
from combdiff.run.executing import compile_source
from combdiff.terms.terms import App, Lam, Term, Var, add, call, conj, mul, number, total
from combdiff.terms.types import Domain, Index
from tests import random_terms as rt

EVERYTHING = Overwriting(large=0)
NOTHING = Overwriting(large=1 << 60)

n, m = Domain("C.1"), Domain("C.2")
p, q, r = (rt.index(c, n) for c in "pqr")
i = rt.index("i", m)
T, A, B = (rt.tensor(c, n, n) for c in "TAB")
X, Y = (rt.tensor(c, n, n, complex=True) for c in "XY")


def product(a: Var, b: Var) -> Term:
    """The matrix product a b, at (p, q)."""
    return total((r,), mul(App(a, (p, r)), App(b, (r, q))))


def matrix(body: Term, *arguments: Var) -> Lam:
    return Lam(arguments, Lam((p, q), body))


def lines(t: Term, over: Overwriting = EVERYTHING, backend: str = "numpy") -> list[str]:
    """The statements of the emitted function."""
    text = emit(lower(t), spelling_of(backend), over=over)
    found = [line.strip() for line in text.split('"""')[2].splitlines()]
    return [line for line in found if line and ".shape" not in line and "len(" not in line]


ALIKE = Overwriting(alike=True, large=0)


# --- what is written ------------------------------------------------------------------------------------------------


def test_what_numpy_writes_over_by_itself_stays_an_expression() -> None:
    t = matrix(add(product(A, B), mul(number(-1), App(T, (p, q)))), T, A, B)
    assert lines(t, ALIKE) == ["return A @ B - T"]
    assert lines(t, ALIKE, "cupy") == ["t1 = A @ B", "t1 -= T", "return t1"]


def test_what_is_no_operand_of_an_operator_is_overwritten_by_the_difference() -> None:
    t = matrix(add(call("tanh", product(A, B)), mul(number(-1), App(T, (q, p)))), T, A, B)
    assert lines(t, ALIKE) == ["t1 = A @ B", "np.tanh(t1, out=t1)", "t1 -= T.T", "return t1"]


def test_what_is_subtracted_is_overwritten_by_the_difference() -> None:
    t = matrix(add(App(T, (p, q)), mul(number(-1), product(A, B))), T, A, B)
    assert lines(t, ALIKE) == ["t1 = A @ B", "np.subtract(T, t1, out=t1)", "return t1"]


def test_a_library_that_does_not_write_to_arrays_has_an_expression() -> None:
    t = matrix(add(App(T, (p, q)), mul(number(-1), product(A, B))), T, A, B)
    assert lines(t, ALIKE, "jax") == ["return T - A @ B"]
    assert lines(t, ALIKE, "cupy")[1] == "cp.subtract(T, t1, out=t1)"


def test_small_arrays_are_not_written_over() -> None:
    t = matrix(add(App(T, (p, q)), mul(number(-1), product(A, B))), T, A, B)
    assert lines(t, Overwriting(alike=True)) == ["return T - A @ B"]


def test_a_result_or_a_value_that_is_needed_again_is_not_written_over() -> None:
    value = product(A, B)
    squared = Lam((T, A, B), Lam((p, q), add(value, call("tanh", value))))
    assert lines(squared, ALIKE) == ["AB = A @ B", "t1 = np.tanh(AB)", "t1 += AB", "return t1"]


def test_an_argument_is_not_written_over() -> None:
    t = matrix(add(App(T, (p, q)), call("tanh", App(A, (q, p)))), T, A)
    assert lines(t, ALIKE) == ["t1 = np.tanh(A.T)", "t1 += T", "return t1"]


def test_the_chain_of_a_layer_works_in_one_array() -> None:
    t = matrix(mul(number(3), call("tanh", product(A, B)), App(T, (q, p))), T, A, B)
    assert lines(t, ALIKE) == ["t1 = A @ B", "np.tanh(t1, out=t1)", "t1 *= 3", "t1 *= T.T", "return t1"]


def test_without_knowing_dtypes_only_what_surely_fits_is_written_over() -> None:
    unknown = matrix(add(App(T, (p, q)), mul(number(-1), product(A, B))), T, A, B)
    assert lines(unknown) == ["return T - A @ B"]
    known = matrix(add(App(A, (p, q)), mul(number(-1), product(A, B))), T, A, B)
    assert lines(known) == ["t1 = A @ B", "np.subtract(A, t1, out=t1)", "return t1"]


def test_a_real_array_does_not_take_complex_values() -> None:
    t = matrix(add(App(X, (p, q)), product(A, B)), X, A, B)
    assert lines(t, ALIKE) == ["return X + A @ B"]
    turned = matrix(mul(number((0, 1)), call("abs", product(X, Y))), X, Y)  # type: ignore[arg-type]  # a pair of numbers
    assert "out=" not in " ".join(lines(turned, ALIKE))


@pytest.mark.slow
def test_the_polyadic_residual_is_made_in_one_array() -> None:
    d = cd.grad(POLYADIC)
    f = d.compile(value=True)
    rng = np.random.default_rng(0)
    f(rng.normal(size=(40, 41, 42)), *(rng.normal(size=(k, 3)) for k in (40, 41, 42)))
    ((sizes, _, alike),) = f._by_sizes
    assert alike
    assert "np.subtract(T, u1, out=u1)" in f._text(f.plan(dict(sizes)), Overwriting(alike))


@pytest.mark.slow
def test_the_perceptron_applies_its_activation_in_place() -> None:
    d = cd.grad(PERCEPTRON)
    text = emit(d.plan(X=(256, 512), U=(512, 512), W=(512, 512)), SPELLING, over=Overwriting(alike=True))
    assert "H = X @ U\n    np.tanh(H, out=H)" in text


# --- all programs ---------------------------------------------------------------------------------------------------


def given_arrays(t: Term, sizes: Mapping[Domain, int], seed: int, kinds: str) -> list[object]:
    """Arrays for the arguments: double, all single, of mixed precision, or real where they are declared complex."""
    rng = np.random.default_rng(seed)
    found = []
    for v in result_of(t).params:
        value = np.asarray(random_value(v.kind, sizes, rng))
        single = kinds == "single" or (kinds == "mixed" and rng.random() < 0.5)
        if kinds == "mixed" and value.dtype.kind == "c" and rng.random() < 0.5:
            value = value.real.copy()
        if single:
            value = value.astype(np.complex64 if value.dtype.kind == "c" else np.float32)
        if value.ndim and rng.random() < 0.3:
            value = np.repeat(value, 2, axis=0)[::2]
        found.append(value if value.ndim else value[()])
    return found


def oracle(t: Term, values: list[object], sizes: Mapping[Domain, int]) -> tuple[np.ndarray, ...]:
    inner = t
    while isinstance(inner, Lam) and not all(isinstance(v.kind, Index) for v in inner.params):
        inner = inner.body
    found = evaluate(inner, dict(zip(result_of(t).params, values, strict=True)), sizes)
    return tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))


def results(plan: Plan, values: list[object], sizes: Mapping[Domain, int], over: Overwriting) -> tuple[np.ndarray, ...]:
    unseen = [sizes[a.kind.domain] for a in plan.arguments if isinstance(a.kind, Index) and a.kind.domain]
    found = compile_source(emit(plan, SPELLING, over=over))(*values, *unseen)
    return tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(
    st.integers(0, 10**9),
    st.sampled_from((1, 2, 3)),
    st.sampled_from((1, 2)),
    st.sampled_from((1, 3, 5)),
    st.sampled_from((1, 3)),
    st.sampled_from(("double", "single", "mixed")),
)
def test_overwriting_changes_no_result_no_dtype_and_no_argument(
    seed: int, n: int, m: int, bz: int, x: int, kinds: str
) -> None:
    t = rt.Terms(random.Random(seed)).program()
    sizes = {rt.N: n, rt.M: m, rt.BZ: bz, rt.X: x}
    values = given_arrays(t, sizes, seed, kinds)
    before = [np.array(v) for v in values]
    plan = lower(t, sizes)
    with np.errstate(all="ignore"):
        plain = results(plan, values, sizes, NOTHING)
        careful = results(plan, values, sizes, EVERYTHING)
        alike = results(plan, values, sizes, ALIKE) if kinds != "mixed" else plain
        wanted = oracle(t, values, sizes) if kinds == "double" else plain
    for a, b, c, w in zip(plain, careful, alike, wanted, strict=True):
        assert a.dtype == b.dtype == c.dtype
        scale = float(np.abs(w).max(initial=1.0, where=np.isfinite(w)))
        slack = scale * (1e-8 if a.dtype in (np.float64, np.complex128) and kinds == "double" else 1e-4)
        for found in (b, c):
            np.testing.assert_allclose(found, w if kinds == "double" else a, rtol=1e-6, atol=slack)
    for old, new in zip(before, values, strict=True):
        np.testing.assert_array_equal(old, np.asarray(new))


@pytest.mark.slow
def test_programs_of_chance_do_overwrite() -> None:
    """The property above is not empty."""
    texts = [emit(lower(rt.Terms(random.Random(seed)).program()), SPELLING, over=ALIKE) for seed in range(200)]
    assert sum("out=" in text or "*= " in text or "+= " in text or "-= " in text for text in texts) > 40


# --- compiled functions ---------------------------------------------------------------------------------------------

RESIDUAL = "(T::RM, A::RM) -> (B::RM) -> (i, j) -> T(i, j) - sum(k, A(i, k) * B(k, j))"
SIDE = 200


def square(seed: int, dtype: type = np.float64) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(SIDE, SIDE)).astype(dtype)


def residual() -> Compiled:
    t = matrix(add(App(T, (p, q)), mul(number(-1), product(A, B))), T, A, B)
    return Compiled(t)


@pytest.mark.parametrize("single", ["T", "A", "AB", "TAB"])
def test_mixed_precision_is_that_of_the_whole(single: str) -> None:
    arrays = [square(k, np.float32 if name in single else np.float64) for k, name in enumerate("TAB")]
    wanted = arrays[0] - arrays[1] @ arrays[2]
    found = cast(np.ndarray, residual()(*arrays))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3 if single == "TAB" else 1e-12)


def test_real_arrays_where_complex_ones_are_declared_are_not_written_over() -> None:
    f = Compiled(matrix(add(App(X, (p, q)), mul(number(-1), product(Y, Y))), X, Y))
    x, y = square(0) + 1j * square(1), square(2)
    np.testing.assert_allclose(cast(np.ndarray, f(x, y)), x - y @ y)
    np.testing.assert_allclose(cast(np.ndarray, f(x, y + 1j * y)), x - (y + 1j * y) @ (y + 1j * y))
    np.testing.assert_allclose(cast(np.ndarray, f(y, x)), y - x @ x)


def test_one_array_for_several_arguments_and_for_the_result() -> None:
    x = square(0)
    wanted = x - x @ x
    f = residual()
    np.testing.assert_allclose(cast(np.ndarray, f(x, x, x)), wanted)
    np.testing.assert_array_equal(x, square(0))
    assert f(x, x, x, out=x) is x
    np.testing.assert_allclose(x, wanted)


def test_views_give_what_copies_give() -> None:
    big = np.random.default_rng(0).normal(size=(3, 2 * SIDE, 2 * SIDE))
    views = [big[k, ::2, ::-2].T for k in range(3)]
    wanted = views[0] - views[1] @ views[2]
    np.testing.assert_allclose(cast(np.ndarray, residual()(*views)), wanted)


@pytest.mark.parametrize("side", [0, 1])
def test_empty_arrays_and_arrays_of_one_entry(side: int) -> None:
    arrays = [np.full((side, side), float(k)) for k in (7, 2, 3)]
    t = matrix(add(App(T, (p, q)), mul(number(-1), product(A, B))), T, A, B)
    text = emit(lower(t), SPELLING, over=ALIKE)
    np.testing.assert_array_equal(compile_source(text)(*arrays), np.full((side, side), 1.0))


@pytest.mark.slow
def test_products_with_the_hessian_do_not_change_what_the_next_one_needs() -> None:
    d = cd.grad("(T::RM) -> (A::RM, B::RM) -> sum((i, j), tanh(T(i, j) - sum(k, A(i, k) * B(k, j)))^2)")
    T, A, B, k, h = (square(seed) / 10 for seed in range(5))
    _, _, product = cast(tuple[object, object, object], d.compile(hvp=True)(T, A, B))
    assert callable(product)
    first = product(k, h)
    product(h, k)
    for again, once in zip(product(k, h), first, strict=True):
        np.testing.assert_array_equal(again, once)
    fine = cd.hvp(d.text).compile()(T, A, B, k, h)
    for found, wanted in zip(first, cast(tuple[np.ndarray, ...], fine), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_conjugates_are_taken_in_place() -> None:
    t = matrix(conj(call("tanh", product(X, Y))), X, Y)
    assert lines(t, ALIKE)[-1] == "return t1"
    x, y = square(0) / 20 + 1j * square(1) / 20, square(2) / 20 + 0j
    np.testing.assert_allclose(cast(np.ndarray, Compiled(t)(x, y)), np.tanh(x @ y).conj())


NEGATIVE = """
n = Domain(name='n', sized=True)
size(n, 3)
x: real[n] = input(Map(params=(Index(domain=n),), result=Number(complex=False), space='RV'))
y: real = input(Number(complex=False))
t1: real[n] = put(x, fixed=((),), places=((0,),), base=False, starts=(((0, 0),),))
t2: real[n] = mul(y, t1, places=((), (0,)), coefficient=1)
t3: real[n] = add(t2, places=((0,),), coefficients=(-1,))
t4: real[n] = put(t3, x, fixed=((),), places=((0,),), base=True, starts=(((0, 0),),), negative=(False,))
return (t4)
"""


def test_a_negative_is_written_over_what_it_is_of() -> None:
    f = compile_source(emit(read(NEGATIVE.strip()), spelling_of("numpy"), over=ALIKE))
    x = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(f(x, 3.0), -2 * x)
