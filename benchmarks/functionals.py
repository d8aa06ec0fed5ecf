"""Exchange and correlation on a grid, beside libxc: `python -m benchmarks.functionals` prints a row for each one.

Energy per point and first derivatives of the functionals of `examples/xc/` on 100,000 points, on one processor core:
the function that combdiff emits for NumPy, the one for JAX under `jit`, and libxc by `pyscf.dft.libxc`. Before the
measurement, energies and first derivatives of all three must agree to 1e-8 of the largest one. With `--second`, Hessian
products beside libxc's second derivatives, which are not compared. Times are medians of interleaved calls in one
process, in milliseconds; lines are those of the file that `source()` returns.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import combdiff as cd
from benchmarks.libxc_names import LIBXC
from benchmarks.measure import one_thread

Array: TypeAlias = Any
FOLDER = Path(__file__).parents[1] / "examples" / "xc"
POINTS = 100_000
ORDER = ("rho", "sigma", "tau", "rho_up", "rho_down", "sigma_uu", "sigma_ud", "sigma_dd", "tau_up", "tau_down")


def points(count: int) -> tuple[dict[str, Array], list[Array]]:
    """Densities of both spins from 1e-6 to 1e2 with what belongs to them; also as PySCF takes them."""
    rng = np.random.default_rng(3)
    total, share = 10 ** rng.uniform(-6, 2, count), rng.uniform(0.1, 0.9, count)
    found: dict[str, Array] = {"w": np.ones(count)}
    rows = []
    for spin, n in (("up", total * share), ("down", total * (1 - share))):
        slope = rng.normal(size=(3, count)) * 2 * n ** (4 / 3)
        square = (slope**2).sum(0)
        tau = square / (8 * n) + rng.exponential(1, count) * 3 * n ** (5 / 3)
        letter = spin[0] * 2
        found |= {f"rho_{spin}": n, f"sigma_{letter}": square, f"tau_{spin}": tau}
        rows.append(np.array([n, *slope, tau]))
    found["sigma_ud"] = (rows[0][1:4] * rows[1][1:4]).sum(0)
    both = rows[0] + rows[1]
    found |= {"rho": both[0], "sigma": (both[1:4] ** 2).sum(0), "tau": both[4]}
    return found, rows


def of_libxc(name: str, spin: str, rows: list[Array], order: int) -> Callable[[], Array]:
    from pyscf.dft import libxc

    used = {"LDA": 1, "GGA": 4, "MGGA": 5}[LIBXC[name].split("_")[0]]
    several = spin == "polarised"
    given = np.array([r[:used] for r in rows]) if several else (rows[0] + rows[1])[:used]
    return lambda: libxc.eval_xc1(LIBXC[name], given, int(several), deriv=order)


def on_jax(source: str, name: str, arguments: list[Array]) -> Callable[[], Array] | None:
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    space: dict[str, Any] = {}
    exec(source, space)
    run, given = jax.jit(space[name]), [jax.numpy.asarray(a) for a in arguments]
    return lambda: jax.block_until_ready(run(*given))


def medians(calls: list[Callable[[], Array]], repeats: int) -> list[float]:
    """Milliseconds of each call, interleaved."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(repeats):
        for call, own in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            own.append(1e3 * (time.perf_counter() - start))
    return [statistics.median(own) for own in times]


def libxc_results(rows: Array, spin: str, unknowns: list[str], total: Array) -> list[Array]:
    """Energies per volume, and derivatives by our variables in their order."""
    variables = [v for v in ORDER if (v in ("rho", "sigma", "tau")) == (spin == "unpolarised")]
    return [rows[0] * total, *(rows[1 + variables.index(v)] for v in unknowns)]


def assert_agree(found: Sequence[Array], expected: Sequence[Array], what: str) -> None:
    for n, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        off = abs(np.asarray(ours) - theirs).max() / abs(theirs).max()
        assert off < 1e-8, f"{what}: output {n} is off by {off:.1e}"


def row(name: str, spin: str, second: bool, repeats: int) -> str:
    text = (FOLDER / spin / f"{name}.cd").read_text(encoding="utf-8")
    unknowns = re.findall(r"(\w+)::RV", text)[1:]
    p, rows = points(POINTS)
    start = time.perf_counter()
    d = cd.hvp(text) if second else cd.grad(text, wrt=["w", *unknowns])
    source = d.source()
    seconds = time.perf_counter() - start
    arguments = [p["w"], *(p[v] for v in unknowns)]
    if second:
        arguments += [p["w"] * 0 + float(n == 0) for n, _ in enumerate(unknowns)]
    space: dict[str, Any] = {}
    exec(source, space)
    function = re.findall(r"^def (\w+)", source, re.M)[-1]
    ours = space[function]
    theirs = of_libxc(name, spin, rows, 2 if second else 1)
    jax = on_jax(d.source("jax"), function, arguments)
    if not second:
        expected = libxc_results(theirs(), spin, unknowns, p["rho"])
        for found in filter(None, (ours(*arguments), jax and jax())):
            assert_agree(found, expected, f"{name}, {spin}")
    calls = [lambda: ours(*arguments), theirs]
    t = medians(calls + ([jax] if jax is not None else []), repeats)
    best = min([t[0], *t[2:]])
    jitted = f"{t[2]:.1f}" if jax is not None else "–"
    cells = (name, spin, f"{t[0]:.1f}", jitted, f"{t[1]:.1f}", f"{best / t[1]:.2f}", len(source.splitlines()))
    return "| " + " | ".join(map(str, cells)) + f" | {seconds:.0f} |"


def _rows(chosen: list[str]) -> Iterator[tuple[str, str]]:
    for spin in ("unpolarised", "polarised"):
        for name in LIBXC:
            if not chosen or name in chosen or f"{spin}/{name}" in chosen:
                yield name, spin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functionals", nargs="*", help="pbe_x, or polarised/pbe_x; all of them if none is named")
    parser.add_argument("--second", action="store_true", help="Hessian products instead of first derivatives")
    parser.add_argument("--repeats", type=int, default=9)
    given = parser.parse_args()
    one_thread()
    print("| functional | spins | NumPy, ms | JAX, ms | libxc, ms | best of ours / libxc | lines | derived in, s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, spin in _rows(given.functionals):
        print(row(name, spin, given.second, given.repeats), flush=True)


if __name__ == "__main__":
    main()
