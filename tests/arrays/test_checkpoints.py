"""Checkpoints: the same numbers as with all states stored, and √T of them in memory."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays.liveness import peak
from combdiff.arrays.passes.loops.checkpoints import with_checkpoints
from combdiff.arrays.plan import Plan, Scan
from combdiff.arrays.text import read, text
from combdiff.arrays.verify import verify
from combdiff.errors import UnsupportedError

SIZES = (1, 2, 3, 5, 7, 20)
NETWORK = """(x::RM{T, n}) -> (W::RM{n, n}) -> begin
  h = iterate((h, t) -> i -> tanh(sum(j, W(i, j) * h(j)) + x(t, i)), i -> 0, T)
  sum(i, h(i)^2)
end"""
PROGRAMS = {
    "a number": ("(x::RV{T}, a::R) -> iterate((s, t) -> s^2 * a / 3 + x(t), 0, T)", ("T", "")),
    "a network": (NETWORK, ("Tn", "nn")),
    "a tuple": (
        """(q0::RV{n}, w::RV{T}) -> (k::RV{n}) -> begin
          (q, p) = iterate(((q, p), t) -> begin
            r = i -> p(i) - k(i) * sin(q(i)) / 8
            (i -> q(i) + w(t) * r(i), r)
          end, (q0, i -> 0), T)
          sum(i, q(i)^2 + p(i))
        end""",
        ("n", "T", "n"),
    ),
    "complex numbers": ("(x::CV{T}, a::C) -> real(iterate((s, t) -> s^2 * a / 8 + x(t)' + im / 2, 0, T))", ("T*", "*")),
    "early stops": (
        "(x::RV{T}, a::R) -> iterate((y, t) -> y - (y^2 - a^2) / (2 * y), 2 + a^2 + x(0)^2, T, y -> 1e-6 < y^2 - a^2)",
        ("T", ""),
    ),
    "matrices": (
        """(y::RM{T, n}, H::RM{n, n}) -> (F::RM{n, n}) -> begin
          (P, loss) = iterate(((P, loss), t) -> begin
            S = F * P * F' + 4 * H * H' + 2 * I
            (S - S * inv(S + I) * S, loss + logdet(S) + sum(i, y(t, i)^2 * inv(S)(i, i)))
          end, (H * H', 0), T)
          loss + tr(P)
        end""",
        ("Tn", "nn", "nn"),
    ),
    "two loops": (
        """(x::RV{T}) -> begin
          a = iterate((s, t) -> sin(s) + x(t), x(0), T)
          a * iterate((s, t) -> cos(s) * x(t) + a, a, T)
        end""",
        ("T",),
    ),
}


def data(shapes: tuple[str, ...], T: int) -> list[object]:
    rng = np.random.default_rng(T)
    found = []
    for shape in shapes:
        size = [{"T": T, "n": 3}[c] for c in shape if c != "*"]
        found.append(rng.normal(size=size) / 2 + (0.5j * rng.normal(size=size) if "*" in shape else 0))
    return found


def planned(d: cd.Derivation, T: int, checkpoint: bool = True) -> Plan:
    return d.plan(value=True, checkpoint=checkpoint, x=(T, 3))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_are_those_of_all_states(name: str) -> None:
    program, shapes = PROGRAMS[name]
    d = cd.grad(program)
    whole, kept = d.compile(value=True), d.compile(value=True, checkpoint=True)
    for T in SIZES:
        arrays = data(shapes, T)
        for found, expected in zip(kept(*arrays), whole(*arrays), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.slow
def test_the_states_in_memory_grow_with_the_root_of_the_steps() -> None:
    d = cd.grad(NETWORK)
    few, many = (peak(planned(d, T)).bytes for T in (2_500, 250_000))
    whole = peak(planned(d, 250_000, checkpoint=False)).bytes
    assert many < 12 * few and many < whole / 50


def test_every_loop_has_checkpoints_in_the_order_of_the_program() -> None:
    plan = cd.grad(PROGRAMS["two loops"][0]).plan(checkpoint=True, x=(100,))
    assert [(loop.width, loop.reverse) for loop in plan.loops] == [(10, True), (10, True)]
    kept = [s.op for s in plan.steps if isinstance(s.op, Scan) and s.op.every == 10]
    assert len(kept) == 2


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_plan_is_sound_and_is_read_back(name: str) -> None:
    plan = with_checkpoints(cd.grad(PROGRAMS[name][0]).plan(value=True))
    verify(plan)
    assert text(read(text(plan))) == text(plan)


@pytest.mark.slow
def test_a_limit_of_memory_takes_checkpoints() -> None:
    d = cd.grad(NETWORK)
    x, W = data(("Tn", "nn"), 20_000)
    whole, limited = d.compile(value=True), d.compile(value=True, memory="200 kB")
    for found, expected in zip(limited(x, W), whole(x, W), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_loops_that_compare_states_with_their_neighbours_have_none() -> None:
    d = cd.grad("(x::RV{n}) -> begin h = scan((s, t) -> sin(s) + x(t), 0, n); sum(t::N{n}, (h(t + 1) - h(t))^2) end")
    with pytest.raises(UnsupportedError, match="one step of them at a time"):
        d.compile(checkpoint=True)


@pytest.mark.parametrize("options", [{"hvp": True}, {"structured": True}])
def test_what_does_not_go_with_checkpoints_is_refused(options: dict[str, bool]) -> None:
    with pytest.raises(UnsupportedError, match="checkpoint"):
        cd.grad(NETWORK).compile(checkpoint=True, **options)


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["jax", "dask"])
def test_libraries_without_loops_of_python_are_refused(backend: str) -> None:
    pytest.importorskip(backend)
    with pytest.raises(UnsupportedError, match="checkpoint="):
        cd.grad(NETWORK).compile(backend, checkpoint=True)


@pytest.mark.parametrize("options", [{"checkpoint": True}, {"memory": 10**5}])
def test_loops_that_would_wait_for_one_another_keep_their_states(options: dict[str, int]) -> None:
    """The loop within each turn is made once for all turns, too: its states feed the blocks, and are fed by them."""
    text = """(x::RV) -> sum(i,
      iterate((a, j) -> sum(k, scan((b, l) -> tanh(b + x(i)), 1, 2)(k) * x(i)), 1, 3, a -> a < x(i)))"""
    d, x = cd.grad(text), np.array([0.1, 2, 0.3])
    np.testing.assert_allclose(d.compile(**options)(x), d.compile()(x))
