"""Products with the matrix of a discrete Fourier transform are fast transforms, in every spelling, axis and sign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.passes import schedule
from combdiff.arrays.passes.fourier import with_fourier_transforms
from combdiff.arrays.plan import Plan, Scan, Step
from combdiff.arrays.verify import verify

SPECTRUM = "(w::RV{n}) -> (x::RV{n}) -> sum(k, w(k) * abs2(sum(j, x(j) * exp(%s))))"
PHASES = [
    "-2 * pi * im * j * k / n",
    "2 * im * pi / n * (k * j)",
    "-im * (2 * pi / n) * k * j",
    "(k * j) / n * im * pi * 2",
]
FILTER = """(w::CV{n}) -> (x::CV{n}) -> begin
  X = k -> w(k) * sum(j, exp(-2 * pi * im * k * j / n) * x(j))
  y = (j::N{n}) -> sum(k, exp(2 * pi * im * k * j / n) * X(k)) / n
  sum(j, (j + 1) * abs2(y(j))^2)
end"""
PLANE = """(v::RM{n, m}) -> (f::CM{n, m}) -> sum((a::N{n}, b::N{m}), v(a, b) * abs2(sum((j, k),
  f(j, k) * exp(2 * pi * im * (j * a / n + k * b / m))))^2)"""
ROWS = "(w::RM{m, n}) -> (x::RM{m, n}) -> sum((i, k), w(i, k) * abs2(sum(j, x(i, j) * exp(-2 * pi * im * j * k / n))))"
COLUMNS = (
    "(w::RM{n, m}) -> (x::RM{n, m}) -> sum((i, k), w(k, i) * abs2(sum(j, x(j, i) * exp(2 * pi * im * j * k / n))))"
)
MIDDLE = """(w::(N{m}, N{n}, N{m}) -> R) -> (f::(N{m}, N{n}, N{m}) -> C) ->
  sum((a, k, b), w(a, k, b) * abs2(sum(j, f(a, j, b) * exp(2 * pi * im * j * k / n)))^2)"""
WAVES = """(w::RV{n}) -> (x::RV{n}) ->
  sum(k, w(k) * (sum(j, x(j) * cos(2 * pi * j * k / n))^2 + sum(j, x(j) * sin(-2 * pi * j * k / n))^3))"""
SPLIT_STEP = """(V::RV{n}, g::R) -> (psi::CV{n}) -> begin
  F = (k::N{n}, j::N{n}) -> exp(-2 * pi * im * k * j / n)
  u = iterate((u, t) -> begin
    a = k -> sum(j, F(k, j) * u(j)) * exp(-im * (2 * pi * k / n)^2 / 20)
    b = j -> sum(k, F(k, j)' * a(k)) / n
    j -> b(j) * exp(-im * (V(j) + g * abs2(b(j))) / 10)
  end, psi, 5)
  sum(j, j * abs2(u(j)))
end"""
PROGRAMS = {
    **{f"spectrum {n}": SPECTRUM % phase for n, phase in enumerate(PHASES)},
    "filter": FILTER,
    "plane": PLANE,
    "rows": ROWS,
    "columns": COLUMNS,
    "middle": MIDDLE,
    "waves": WAVES,
    "split step": SPLIT_STEP,
}


def given(program: str, n: int, m: int) -> dict[str, np.ndarray | float]:
    """Arrays for the arguments of a program, whose complex ones have imaginary parts."""
    rng = np.random.default_rng(n + 10 * m)
    found: dict[str, np.ndarray | float] = {}
    for name, shape in {"w": (n,), "x": (n,), "v": (n, m), "f": (n, m), "V": (n,), "g": (), "psi": (n,)}.items():
        if f"{name}::" not in program:
            continue
        shape = (n, m) if f"{name}::RM{{n" in program else (m, n) if f"{name}::RM{{m" in program else shape
        shape = (m, n, m) if program is MIDDLE else shape
        array = rng.normal(size=shape)
        found[name] = (
            array + 1j * rng.normal(size=shape)
            if f"{name}::C" in program or (program is MIDDLE and name == "f")
            else array
        )
    return found


def steps(plan: Plan) -> Iterator[Step]:
    """The steps of a plan, those of its loops among them."""
    for step in plan.steps:
        yield step
        if isinstance(step.op, Scan):
            yield from steps(step.op.body.plan)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "split step" else n for n in PROGRAMS]
)
def test_no_matrix_of_a_transform_is_left(name: str) -> None:
    plan = cd.grad(PROGRAMS[name]).plan()
    found = Counter(type(step.op) for step in steps(plan))
    assert found[ops.Fourier] and not found[ops.Tensordot]
    verify(plan)
    assert with_fourier_transforms(plan) == plan


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_fast_transform_is_the_sum_that_it_stands_for(name: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the code with the matrices."""
    arrays = given(PROGRAMS[name], n, 3)
    found = np.asarray(cd.grad(PROGRAMS[name]).compile()(**arrays))
    monkeypatch.setattr(schedule, "with_fourier_transforms", lambda plan: plan)
    f = cd.grad(PROGRAMS[name]).compile()
    wanted = np.asarray(f(**arrays))
    assert "fft" not in f.source
    assert np.allclose(found, wanted, rtol=1e-11, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_through_transforms_agree_with_the_oracle(name: str) -> None:
    assert cd.grad(PROGRAMS[name]).check()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_other_libraries_transform_alike(name: str, backend: str) -> None:
    library = pytest.importorskip(backend)
    d = cd.grad(PROGRAMS[name])
    arrays = given(PROGRAMS[name], 6, 4)
    wanted = np.asarray(d.compile()(**arrays))
    if backend == "torch":
        found = d.compile(backend="torch")(**{k: library.as_tensor(v) for k, v in arrays.items()}).numpy()
    else:
        library.config.update("jax_enable_x64", True)
        found = np.asarray(d.compile(backend="jax")(**arrays))
    assert np.allclose(found, wanted, rtol=1e-11, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "phase",
    [
        "-2 * pi * im * j * k / m",
        "-2 * im * j * k / n",
        "-pi * im * j * k / n",
        "-2 * pi * j * k / n",
        "-2 * pi * im * j^2 * k / n",
    ],
)
def test_what_is_almost_the_matrix_of_a_transform_is_none(phase: str) -> None:
    program = (SPECTRUM % phase).replace("(w::RV{n})", "(w::RV{n}, v::RV{m})")
    assert not any(isinstance(step.op, ops.Fourier) for step in cd.grad(program).plan().steps)


@pytest.mark.slow
def test_a_matrix_that_something_else_needs_is_made_once() -> None:
    d = cd.grad(
        "(w::CM{n, n}) -> (x::RV{n}) -> begin; P = (k::N{n}, j::N{n}) -> exp(-2 * pi * im * k * j / n);"
        " sum(k, abs2(sum(j, P(k, j) * x(j)))^2 + real(sum(j, w(k, j) * P(k, j) * x(k) * x(j)))); end"
    )
    found = Counter(type(step.op) for step in d.plan().steps)
    assert found[ops.Fourier] and any(s.rank == 2 and isinstance(s.op, ops.Call) for s in d.plan().steps)
    assert d.check()


@pytest.mark.slow
def test_empty_arrays_have_no_transform() -> None:
    f = cd.grad(SPECTRUM % PHASES[0]).compile()
    assert f(w=np.zeros(4), x=np.ones(4)).shape == (4,)
    assert f(w=np.zeros(0), x=np.zeros(0)).shape == (0,)


def test_what_a_kernel_of_cosines_takes_of_complex_numbers_stays_a_product() -> None:
    d = cd.grad("(x::CV{n}) -> sum(k::N{n}, abs2(sum(j, x(j) * cos(2 * pi * j * k / n)))^2)")
    assert not any(isinstance(step.op, ops.Fourier) for step in d.plan().steps)
    assert d.check()


SIZES = {
    "a number": ("", "(w::RV{8}) -> (x::RV{8})", "k", "j", "-im * pi / 4 * j * k", True),
    "a number more": ("", "(w::RV{n + 1}) -> (x::RV{n + 1})", "k", "j", "-2 * im * pi * j * k / (n + 1)", True),
    "another number more": ("", "(w::RV{n + 1}) -> (x::RV{n + 1})", "k", "j", "-2 * im * pi * j * k / (n + 2)", False),
    "a ring": (
        "periodic = true",
        "(w::(Z) -> R) -> (x::(Z) -> R)",
        "k::Z",
        "j::Z",
        "2 * im * pi * j * k / size(Z)",
        True,
    ),
    "bounds": (
        "lower = 0; upper = 6",
        "(w::(Z) -> R) -> (x::(Z) -> R)",
        "k::Z",
        "j::Z",
        "2 * im * pi * j * k / 7",
        True,
    ),
    "from one": (
        "lower = 1; upper = 7",
        "(w::(Z) -> R) -> (x::(Z) -> R)",
        "k::Z",
        "j::Z",
        "2 * im * pi * j * k / 7",
        False,
    ),
    "both signs": (
        "symmetric = true",
        "(w::(Z) -> R) -> (x::(Z) -> R)",
        "k::Z",
        "j::Z",
        "2 * im * pi * j * k / size(Z)",
        False,
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_transform_is_of_indices_that_count_from_zero(name: str) -> None:
    settings, given, k, j, phase, fast = SIZES[name]
    declared = f"@domain Z begin {settings} end\n" if settings else ""
    d = cd.grad(f"{declared}{given} -> sum({k}, w(k) * abs2(sum({j}, x(j) * exp({phase}))))")
    assert any(isinstance(step.op, ops.Fourier) for step in d.plan().steps) == fast
    assert d.check()
