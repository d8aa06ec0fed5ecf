"""Sums over pairs i < j, as in molecular dynamics: singular where i = j, which their guard excludes.

Energies are added up by loops over pairs; slopes are taken along complex directions, where no digit is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

import combdiff as cd
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.run.compiled import Compiled
from combdiff.run.executing import compile_source
from combdiff.terms.terms import Lam
from tests.thinned import thinned

Array = npt.NDArray[np.complex128]
Pair = Callable[..., complex]

SIZES = (1, 2, 3, 5, 7)
DISTANCE = "sqrt(sum(c, (x(i, c) - x(j, c))^2))"
R = f"r = (i, j) -> {DISTANCE}"


def pairs(e: str) -> str:
    return f"sum((i, j), where(i < j, {e}))"


def program(e: str, captured: str = "", definitions: str = R) -> str:
    leading = f"({captured}) -> " if captured else ""
    return f"{leading}(x::RM) -> begin\n  {definitions}\n  {pairs(e)}\nend"


def distance(x: Array, i: int, j: int) -> complex:
    return complex(np.sqrt(np.sum((x[i] - x[j]) ** 2)))


# each with the energy of a pair, and how many dimensions there are
POTENTIALS: dict[str, tuple[str, Pair, int]] = {
    "coulomb": (
        program("q(i) * q(j) / r(i, j)", "q::RV"),
        lambda x, i, j, q: q[i] * q[j] / distance(x, i, j),
        3,
    ),
    "coulomb without a definition": (
        f"(q::RV) -> (x::RM) -> {pairs(f'q(i) * q(j) / {DISTANCE}')}",
        lambda x, i, j, q: q[i] * q[j] / distance(x, i, j),
        3,
    ),
    "coulomb in the plane": (
        f"(q::RV) -> (x::RM) -> {pairs('-q(i) * q(j) * log(sum(c, (x(i, c) - x(j, c))^2)) / 2')}",
        lambda x, i, j, q: -q[i] * q[j] * np.log(distance(x, i, j)),
        2,
    ),
    "in a medium": (
        program("q(i) * q(j) / (e * r(i, j))", "q::RV, e::R"),
        lambda x, i, j, q, e: q[i] * q[j] / (e * distance(x, i, j)),
        3,
    ),
    "softened": (
        program("1 / sqrt(r(i, j)^2 + e^2)", "e::R"),
        lambda x, i, j, e: 1 / np.sqrt(distance(x, i, j) ** 2 + e**2),
        3,
    ),
    "lennard-jones": (
        program("4 * e * ((s / r(i, j))^12 - (s / r(i, j))^6)", "e::R, s::R"),
        lambda x, i, j, e, s: 4 * e * ((s / distance(x, i, j)) ** 12 - (s / distance(x, i, j)) ** 6),
        3,
    ),
    "lennard-jones by squares": (
        program("4 * e * (w(i, j)^2 - w(i, j))", "e::R, s::R", f"{R}; w = (i, j) -> (s^2 / r(i, j)^2)^3"),
        lambda x, i, j, e, s: 4 * e * ((s / distance(x, i, j)) ** 12 - (s / distance(x, i, j)) ** 6),
        3,
    ),
    "springs": (
        program("k(i, j) / 2 * (r(i, j) - a(i, j))^2", "k::RM, a::RM"),
        lambda x, i, j, k, a: k[i, j] / 2 * (distance(x, i, j) - a[i, j]) ** 2,
        2,
    ),
    "morse": (
        program("e * (1 - exp(-s * (r(i, j) - 1)))^2", "e::R, s::R"),
        lambda x, i, j, e, s: e * (1 - np.exp(-s * (distance(x, i, j) - 1))) ** 2,
        3,
    ),
    "log gas": (
        "(x::RV) -> sum(i, x(i)^2) / 2 - " + pairs("log(abs(x(i) - x(j)))"),
        lambda x, i, j: -np.log((x[i] - x[j]) ** 2) / 2,
        0,
    ),
    "log gas by a definition": (
        "(x::RV) -> begin; v = (i, j) -> log(abs(x(i) - x(j))); sum(i, x(i)^2) / 2 - " + pairs("v(i, j)") + "; end",
        lambda x, i, j: -np.log((x[i] - x[j]) ** 2) / 2,
        0,
    ),
    "yukawa, cut off": (
        program("where(r(i, j) <= e, exp(-r(i, j)) / r(i, j))", "e::R"),
        lambda x, i, j, e: np.exp(-distance(x, i, j)) / distance(x, i, j) * (distance(x, i, j).real <= e),
        3,
    ),
    "cut off first": (
        f"(e::R) -> (x::RM) -> begin; {R}\nsum((i, j), where(r(i, j) <= e and i < j, (1 / r(i, j) - 1 / e)^2)); end",
        lambda x, i, j, e: (1 / distance(x, i, j) - 1 / e) ** 2 * (distance(x, i, j).real <= e),
        3,
    ),
    "both orders": (
        f"(x::RM) -> begin; {R}\n{pairs('1 / r(i, j)')} + sum((i, j), where(j < i, 1 / r(i, j)^2)); end",
        lambda x, i, j: 1 / distance(x, i, j) + 1 / distance(x, i, j) ** 2,
        3,
    ),
    "weights of indices": (
        f"(q::RV) -> (x::RM) -> begin; {R}\n{pairs('q(i) * q(j) / ((j - i) * r(i, j))')}; end",
        lambda x, i, j, q: q[i] * q[j] / ((j - i) * distance(x, i, j)),
        1,
    ),
}
GASES = [name for name in POTENTIALS if "gas" in name]


def energy(name: str, x: Array, given: dict[str, npt.NDArray[np.float64]]) -> complex:
    _, pair, _ = POTENTIALS[name]
    total = sum(complex(pair(x, i, j, **given)) for i, j in combinations(range(len(x)), 2))
    return total + (np.sum(x**2) / 2 if name in GASES else 0)


def slope(name: str, x: Array, given: dict[str, npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """The gradient: the imaginary part along an imaginary step, too small to matter in the real part."""
    result = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        step = np.zeros(x.shape, complex)
        step[place] = 1e-30j
        result[place] = energy(name, x + step, given).imag / 1e-30
    return result


@cache
def compiled(name: str, backend: str = "numpy") -> Compiled:
    return cd.grad(POTENTIALS[name][0]).compile(backend, value=True, hvp=True)


def data(name: str, n: int) -> tuple[npt.NDArray[np.float64], dict[str, npt.NDArray[np.float64]]]:
    """Positions that keep away from one another, and what is captured."""
    rng = np.random.default_rng(n)
    dimensions = POTENTIALS[name][2]
    x = rng.normal(size=(n, dimensions) if dimensions else n)
    x = 1.5 * x if dimensions else np.sort(x) + np.arange(n)
    shapes = {"q": (n,), "k": (n, n), "a": (n, n), "e": (), "s": ()}
    names = [given.name for given in compiled(name).arguments if given.name in shapes]
    return x, {given: np.asarray(rng.uniform(0.7, 1.6, shapes[given])) for given in names}


def close(found: object, wanted: object, accuracy: float) -> None:
    scale = max(1.0, float(np.max(np.abs(np.asarray(wanted)), initial=0.0)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=accuracy * scale)


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", thinned(POTENTIALS, 2))
def test_value_gradient_and_hessian_product_are_those_of_loops_over_pairs(name: str, n: int) -> None:
    x, given = data(name, n)
    value, gradient, hvp = compiled(name)(**given, x=x)
    direction = np.random.default_rng(1).normal(size=x.shape)
    close(value, energy(name, x.astype(complex), given).real, 1e-12)
    close(gradient, slope(name, x.astype(complex), given), 1e-11)
    h = 1e-5
    ahead, behind = (slope(name, (x + s * direction).astype(complex), given) for s in (h, -h))
    close(hvp(direction), (ahead - behind) / (2 * h), 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned((name for name in POTENTIALS if "cut off" not in name), 2))
def test_coinciding_points_do_not_matter_where_no_pair_of_them_is_taken(name: str) -> None:
    x, given = data(name, 3)
    x[1] = x[0]
    text = POTENTIALS[name][0].replace("i < j", "i + 1 < j").replace("j < i", "j + 1 < i")
    assert text != POTENTIALS[name][0]
    f = cd.grad(text).compile(value=True, hvp=True)
    value, gradient, hvp = f(**given, x=x)
    assert np.isfinite(value) and np.isfinite(gradient).all() and np.isfinite(hvp(np.ones(x.shape))).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lennard-jones", "springs", "log gas", "yukawa, cut off"])
def test_jax_finds_the_same(name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    x, given = data(name, 5)
    first, second = np.triu_indices(5, 1)
    formulas = {
        "lennard-jones": lambda r, e, s: 4 * e * ((s / r) ** 12 - (s / r) ** 6),
        "springs": lambda r, k, a: k[first, second] / 2 * (r - a[first, second]) ** 2,
        "log gas": lambda r: -jnp.log(r),
        "yukawa, cut off": lambda r, e: jnp.where(r <= e, jnp.exp(-r) / r, 0),
    }

    def total(x: object) -> object:
        difference = x[first] - x[second]
        r = jnp.abs(difference) if difference.ndim == 1 else jnp.sqrt((difference**2).sum(axis=1))
        return formulas[name](r, **given).sum() + (jnp.sum(x**2) / 2 if name in GASES else 0)

    value, gradient, hvp = compiled(name)(**given, x=x)
    direction = np.random.default_rng(1).normal(size=x.shape)
    close(value, total(x), 1e-12)
    close(gradient, jax.grad(total)(x), 1e-11)
    close(hvp(direction), jax.jvp(jax.grad(total), (x,), (direction,))[1], 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(name for name in POTENTIALS if name != "cut off first"))
def test_jax_differentiates_the_code_for_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    x, given = data(name, 3)
    _, gradient, hvp = compiled(name)(**given, x=x)
    emitted = compile_source(cd.grad(POTENTIALS[name][0]).source("jax", value=True), "value_and_gradient")
    given = {a: jax.numpy.asarray(b) for a, b in given.items()}
    direction = np.random.default_rng(1).normal(size=x.shape)
    close(jax.grad(lambda x: emitted(**given, x=x)[0])(x), gradient, 1e-10)
    close(jax.jvp(lambda x: emitted(**given, x=x)[1], (x,), (direction,))[1], hvp(direction), 1e-10)


SOME = ["coulomb", "lennard-jones", "springs", "yukawa, cut off"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_single_precision_keeps_to_the_guard(name: str) -> None:
    x, given = data(name, 7)
    value, gradient, _ = compiled(name)(**given, x=x)
    short = {a: b.astype(np.float32) for a, b in given.items()}
    found = cd.grad(POTENTIALS[name][0]).compile(value=True)(**short, x=x.astype(np.float32))
    assert found[1].dtype == np.float32
    close(found[0], value, 1e-3)
    close(found[1], gradient, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_loops_that_save_memory_keep_to_the_guard(name: str) -> None:
    x, given = data(name, 60)
    value, gradient, _ = compiled(name)(**given, x=x)
    d = cd.grad(POTENTIALS[name][0])
    shapes = {a: b.shape for a, b in given.items()}
    assert "loop over 60 values" in str(d.plan(value=True, memory="200 KB", **shapes, x=x.shape))
    found = d.compile(value=True, memory="200 KB")(**given, x=x)
    close(found[0], value, 1e-12)
    close(found[1], gradient, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_what_is_multiplied_out_stays_under_its_guard(name: str) -> None:
    x, given = data(name, 5)
    value, gradient, _ = compiled(name)(**given, x=x)
    found = cd.grad(POTENTIALS[name][0], expand=True).compile(value=True)(**given, x=x)
    close(found[0], value, 1e-10)
    close(found[1], gradient, 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(POTENTIALS))
def test_the_check_agrees(name: str) -> None:
    assert cd.grad(POTENTIALS[name][0]).check()


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(POTENTIALS))
def test_results_are_programs_with_the_same_code(name: str) -> None:
    x, given = data(name, 3)
    d = cd.grad(POTENTIALS[name][0])
    again = infer(parse(str(d)))
    assert isinstance(again, Lam)
    close(
        Compiled(again)(*(given.get(a.name, x) for a in compiled(name).arguments)),
        compiled(name)(**given, x=x)[1],
        1e-12,
    )


@pytest.mark.long
def test_three_bodies() -> None:
    text = f"(x::RM) -> begin; {R}\nsum((i, j, k), where(i < j < k, 1 / (r(i, j) * r(j, k) * r(i, k))^3)); end"
    f = cd.grad(text).compile(value=True, hvp=True)

    def three(x: Array) -> complex:
        triples = combinations(range(len(x)), 3)
        return sum((1 / (distance(x, i, j) * distance(x, j, k) * distance(x, i, k)) ** 3 for i, j, k in triples), 0j)

    for n in (1, 2, 3, 4):
        x = np.random.default_rng(n).normal(size=(n, 3)) * 1.5
        value, gradient, hvp = f(x)
        steps = [np.zeros((n, 3), complex) for _ in range(3 * n)]
        for at, step in enumerate(steps):
            step.flat[at] = 1e-30j
        close(value, three(x.astype(complex)).real, 1e-12)
        close(gradient.ravel(), [three(x + step).imag / 1e-30 for step in steps], 1e-11)
        assert np.isfinite(hvp(np.ones((n, 3)))).all()
