"""The Markdown table of what was measured, and the line that says on what machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Container, Sequence
from pathlib import Path

from benchmarks.measure import Row, Times

HEADS = (
    "problem",
    "ours",
    "hand-tuned",
    "ours / hand-tuned",
    "ours, packed or expanded",
    "hand-tuned, half or kept",
    "ratio of these two",
    "JAX, best",
    "best JAX / ours",
    "JAX, as written",
    "ours on JAX",
    "ours on JAX / best JAX",
    "PyTorch",
    "ours on PyTorch",
    "temporaries, MB",
    "call, µs",
)


def table(rows: Sequence[Row]) -> str:
    """A row a problem: milliseconds as median (least), ratios of the medians (of the least)."""
    lines = [HEADS, ("---",) * len(HEADS), *(_cells(row) for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def machine(contenders: Container[str]) -> str:
    """Processor, versions and threads."""
    libraries = [n for n in ("numpy", "jax", "torch") if n == "numpy" or n in contenders]
    versions = ", ".join(f"{n} {importlib.metadata.version(n)}" for n in libraries)
    missing = "".join(f"; {n} is not installed" for n in ("jax", "torch") if n not in contenders)
    return (
        f"{_processor()}, {os.cpu_count()} cores, one thread on one of them; Python {platform.python_version()}, "
        f"{versions}, BLAS: {_blas()}{missing}. Milliseconds: median (least)."
    )


def _cells(row: Row) -> tuple[str, ...]:
    ours, hand, kept, jax = row.best("ours"), row.best("numpy"), row.best("numpy", plain=False), row.best("jax")
    packed = row.best("ours", plain=False)
    mine, theirs = (f"{size / 2**20:.1f}" for size in row.temporaries)
    return (
        row.name,
        _milliseconds(ours),
        _milliseconds(hand),
        _ratio(ours, hand),
        _milliseconds(packed),
        _milliseconds(kept),
        _ratio(packed, kept),
        _milliseconds(jax),
        _ratio(jax, ours),
        _milliseconds(row.written("jax")),
        _milliseconds(row.best("ours_on_jax")),
        _ratio(row.best("ours_on_jax"), jax),
        _milliseconds(row.best("torch")),
        _milliseconds(row.best("ours_on_torch")),
        f"{mine} / {theirs}",
        f"{row.overhead * 1e6:.0f}",
    )


def _milliseconds(times: Times | None) -> str:
    return f"{times.median * 1e3:.2f} ({times.least * 1e3:.2f})" if times else "–"


def _ratio(one: Times | None, other: Times | None) -> str:
    if one is None or other is None:
        return "–"
    return f"{one.median / other.median:.2f} ({one.least / other.least:.2f})"


def _processor() -> str:
    """The processor's name, where the system tells it."""
    known = Path("/proc/cpuinfo")
    if known.exists():
        for line in known.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _blas() -> str:
    """The BLAS that NumPy was built with."""
    import numpy as np

    shown = np.show_config(mode="dicts")
    blas = shown["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas['version']}"
