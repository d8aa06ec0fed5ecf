"""Loops with stored states: read from a text, verified, and run beside loops that are written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from combdiff.arrays.liveness import peak
from combdiff.arrays.plan import Scan
from combdiff.arrays.text import read, text
from combdiff.arrays.verify import PlanError, verify
from combdiff.emit.emit import emit, spelling_of
from combdiff.errors import UnsupportedError
from combdiff.run.executing import compile_source
from tests.arrays.pass_texts import SHOWN
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

NETWORK = (SHOWN / "by_hand_recurrent_network.txt").read_text(encoding="utf-8")
ROTATION = """
n = Domain(name='n')
T = Domain(name='T')
A: complex[T, n, n] = input(Map(params=(Index(domain=T),Index(domain=n),Index(domain=n)), result=Number(complex=True)))
z: complex[n] = input(Map(params=(Index(domain=n),), result=Number(complex=True)))
s: real = input(Number(complex=False))
@recurrence('turn', 2, 1)
def turn():
    n = Domain(name='n')
    z: complex[n] = input(Map(params=(Index(domain=n),), result=Number(complex=True)))
    s: real = input(Number(complex=False))
    A: complex[n, n] = input(Map(params=(Index(domain=n), Index(domain=n)), result=Number(complex=True)))
    w: complex[n] = tensordot(A, z, left=(1,), right=(0,))
    q: real[n] = call(w, places=((0,),), function='abs2')
    t: real = sum(q, axes=(0,))
    u: real = add(s, t, places=((), ()), coefficients=(1, 1))
    return (w, u, t)
all: real = scan(z, s, A, body=turn, domain=T)
last: complex[n] = item(all, number=0)
total: real = item(all, number=1)
norms: real[T] = item(all, number=2)
return (last, total, norms)
"""


def function(source: str, backend: str = "numpy") -> Callable[..., Any]:
    plan = read(source)
    verify(plan)
    return compile_source(emit(plan, spelling_of(backend)))


def network(W: np.ndarray, U: np.ndarray, x: np.ndarray, h: np.ndarray) -> tuple[Any, ...]:
    """The value of a recurrent network, and its derivatives by differences."""

    def value(*arrays: np.ndarray) -> float:
        W, U, x, h = arrays
        for entry in x:
            h = np.tanh(W @ h + U @ entry)
        return float(h @ h)

    slopes = []
    for n, array in enumerate((W, U, x, h)):
        slopes.append(np.zeros(array.shape))
        for place in np.ndindex(array.shape):
            found = []
            for step in (2e-3, 1e-3, -1e-3, -2e-3):
                moved = [a.copy() for a in (W, U, x, h)]
                moved[n][place] += step
                found.append(value(*moved))
            slopes[-1][place] = (-found[0] + 8 * found[1] - 8 * found[2] + found[3]) / 12e-3
    return value(W, U, x, h), *slopes


def arrays_for(T: int, n: int = 4, m: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(T)
    return [rng.normal(size=s) / 2 for s in ((n, n), (n, m), (T, m), (n,))]


@pytest.mark.slow
@pytest.mark.parametrize("T", [0, 1, 2, 5, 7])
def test_a_recurrent_network_and_its_adjoint(T: int) -> None:
    given = arrays_for(T)
    for found, expected in zip(function(NETWORK)(*given), network(*given), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.slow
def test_the_libraries_run_the_same_loop(library: Numbers) -> None:
    if library.name == "dask":
        with pytest.raises(UnsupportedError, match="in a loop"):
            emit(read(NETWORK), spelling_of("dask"))
        return
    given = arrays_for(6)
    found = function(NETWORK, library.name)(*map(library.to, given))
    for f, expected in zip(found, function(NETWORK)(*given), strict=True):
        np.testing.assert_allclose(library.back(f), expected, rtol=1e-12)


@pytest.mark.slow
def test_jax_traces_one_step() -> None:
    jax = pytest.importorskip("jax")
    code = emit(read(NETWORK), spelling_of("jax"))
    assert "lax.scan(" in code and "for t in" not in code
    sizes = [str(jax.make_jaxpr(compile_source(code))(*arrays_for(T))).count("\n") for T in (5, 50)]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("backend", ["numpy", "jax", "torch"])
def test_complex_states_numbers_and_what_is_stored(backend: str, reverse: bool) -> None:
    library = pytest.importorskip(backend)
    if backend == "jax":
        library.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(1)
    A, z = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in ((5, 2, 2), (2,)))
    source = ROTATION.replace("domain=T)\nlast", f"domain=T, reverse={reverse})\nlast")
    given = [library.tensor(a) for a in (A, z, 0.5)] if backend == "torch" else [A, z, 0.5]
    last, total, norms = function(source, backend)(*given)
    expected = np.zeros(5)
    for t in reversed(range(5)) if reverse else range(5):
        z = A[t] @ z
        expected[t] = np.vdot(z, z).real
    np.testing.assert_allclose(np.asarray(last), z)
    np.testing.assert_allclose(np.asarray(norms), expected)
    np.testing.assert_allclose(np.asarray(total), 0.5 + expected.sum())


def test_stored_states_and_all_steps_are_accounted_for() -> None:
    plan = read(NETWORK)
    (T,) = (d for d in plan.sizes if d.name == "T")
    long = replace(plan, sizes={**plan.sizes, T: plan.sizes[T] + 1000})
    # h and the derivative by x of each step; the latter is copied, as several results are of one loop
    assert peak(long).bytes - peak(plan).bytes == 1000 * 8 * (4 + 3 + 3)
    loops = [s for s in plan.steps if isinstance(s.op, Scan)]
    for s in loops:
        assert long.flops(s) == plan.flops(s) // 6 * 1006
    assert "loop" in str(plan)


@pytest.mark.parametrize(
    ("line", "wrong", "said"),
    [
        ("scan(h0, x, W, U, body=cell, domain=T)", "scan(h0, x, W, body=cell, domain=T)", "takes 4 arrays.*given 3"),
        ("scan(h0, x, W, U, body=cell, domain=T)", "scan(h0, x, U, W, body=cell, domain=T)", "argument 3.*other axes"),
        ("scan(h0, x, W, U, body=cell, domain=T)", "scan(h0, W, W, U, body=cell, domain=T)", "argument 2.*other axes"),
        ("return (t8, h)", "return (x_t, h)", "state 1 is of another kind"),
        ("return (t8, h)", "return t8", "returns a tuple"),
        ("states: real[T, n] = item(forwards, number=1)", "states: real[n] = item(forwards, number=1)", "other axes"),
        ("item(forwards, number=1)", "item(forwards, number=2)", "has 2 results"),
        ("tensordot(W, h, left=(1,)", "tensordot(W, h, left=(2,)", "in cell"),
    ],
)
def test_the_verifier_sees_loops_that_do_not_fit(line: str, wrong: str, said: str) -> None:
    assert line in NETWORK
    with pytest.raises(PlanError, match=said):
        verify(read(NETWORK.replace(line, wrong, 1)))


def test_the_text_of_a_loop_reads_back() -> None:
    written = text(read(ROTATION))
    assert text(read(written)) == written and "@recurrence('turn', 2, 1)" in written
