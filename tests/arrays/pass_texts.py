"""What each pass makes of an array program, recorded as text before and after: `python -m tests.arrays.pass_texts`.

The texts are read back and verified in `test_text.py`; in a change of a pass they are read as a diff.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import combdiff as cd
from combdiff.arrays import ops
from combdiff.arrays.lower import forms as equal_forms
from combdiff.arrays.lower import lower as lowering
from combdiff.arrays.lower.signature import guessed_sizes
from combdiff.arrays.packing.packed_plan import packed
from combdiff.arrays.passes.angles import with_angles_apart
from combdiff.arrays.passes.contractions.divided import with_divisors_apart
from combdiff.arrays.passes.contractions.turned import with_differences_turned
from combdiff.arrays.passes.convolutions import with_convolutions_transformed
from combdiff.arrays.passes.fourier import with_fourier_transforms
from combdiff.arrays.passes.gathers.counts import with_counts
from combdiff.arrays.passes.gathers.moving import moved
from combdiff.arrays.passes.gathers.sparse import with_sparse_products
from combdiff.arrays.passes.gathers.tables import with_tables
from combdiff.arrays.passes.gathers.windows import with_windows
from combdiff.arrays.passes.logistic import with_exponentials_shared
from combdiff.arrays.passes.loops.checkpoints import with_checkpoints
from combdiff.arrays.passes.loops.filters import with_filters
from combdiff.arrays.passes.loops.memory import within
from combdiff.arrays.passes.loops.stored import with_values_stored
from combdiff.arrays.passes.loops.summed import with_sums_in_loops
from combdiff.arrays.passes.masks import with_masks_once
from combdiff.arrays.passes.schedule import scheduled
from combdiff.arrays.plan import Plan, Step
from combdiff.arrays.shapes import sizes_of
from combdiff.arrays.text import text
from combdiff.emit.emit import spelling_of
from combdiff.emit.kernels import with_kernels
from combdiff.terms.types import Domain

SHOWN = Path(__file__).parent / "passes_shown"
EXAMPLES = Path(__file__).parents[2] / "examples"

Outputs = tuple[tuple[Step, ...], dict[Step, str]]


@dataclass(frozen=True)
class Case:
    """A program, the shapes of its arrays, and the pass that is shown, of a plan for a library that has no such.

    For no backend it is of a plan before the passes that depend on the library.
    """

    program: str
    shapes: Mapping[str, tuple[int, ...]]
    shown: Callable[[Plan], Plan] | str | None = None
    backend: str = "numpy"

    def plans(self) -> list[Plan]:
        """The plan before the pass and after it; of a lowering there is one."""
        d = cd.grad(self.program)
        if isinstance(self.shown, str):
            return self._inside(d, self.shown)
        plan = d.plan(backend=self.backend, **self.shapes) if self.backend else _unscheduled(d, self.shapes)
        return [plan] if self.shown is None else [plan, self.shown(plan)]

    def _inside(self, d: cd.derivation.Derivation, name: str) -> list[Plan]:
        """The outputs before and after a pass that is part of lowering, as plans with the arguments of the whole."""
        found: list[Outputs] = []
        run = getattr(lowering, name)

        def recorded(outputs: Sequence[Step], names: Mapping[Step, str], sizes: Mapping[Domain, int]) -> Outputs:
            after = run(outputs, names, sizes)
            found[:] = [(tuple(outputs), dict(names)), after]
            return after

        with patch.object(lowering, name, recorded):
            plan = d.plan(**self.shapes)
        # several forms are lowered, each with inputs of its own
        plans = [Plan(plan.arguments, outputs, plan.tupled, plan.sizes, names) for outputs, names in found]
        inputs = [{s.op.argument: s for s in p.steps if isinstance(s.op, ops.Input)} for p in plans]
        return [
            replace(p, arguments=tuple(replace(a, step=own.get(a.name, a.step)) for a in p.arguments))
            for p, own in zip(plans, inputs, strict=True)
        ]


def _unscheduled(d: cd.derivation.Derivation, shapes: Mapping[str, tuple[int, ...]]) -> Plan:
    forms = d.runnable.forms(value=True)
    # as it is right after lowering
    off = {name: lambda plan: plan for name in ("with_angles_apart", "with_divisors_apart", "with_differences_turned")}
    with patch.multiple(equal_forms, **off):
        return forms.plan({**guessed_sizes(forms.formula), **sizes_of(forms.formula, shapes)})


def _memory(plan: Plan) -> Plan:
    return within(plan, 200_000, ())


RING = "@domain Z begin base = I; periodic = true end\n"
PAIRS = """(x::RM) -> sum((i, j), indicator(i + 1, j, 1 / sqrt(sum(c, (x(i, c) - x(j, c))^2))))"""
GRAPH = """(a::(N{e}) -> N{n}, b::(N{e}) -> N{n}, w::RV{e}, X::RM{n, m}, Y::RM{n, o}) -> (W::RM{m, o}) -> begin
  h = (v, k) -> tanh(sum(e, delta(b(e), v, w(e) * sum(d, X(a(e), d) * W(d, k)))))
  sum((v, k), (h(v, k) - Y(v, k))^2)
end"""
EDGES = {"a": (20_000,), "w": (20_000,), "X": (2000, 20), "W": (20, 16), "Y": (2000, 16)}
BIGRAM = """(a::(N{t}) -> N{m}, b::(N{t}) -> N{m}) -> (L::RM{m, m}) -> begin
  P = (u, v) -> exp(L(u, v)) / sum(w, exp(L(u, w)))
  sum(t, log(P(a(t), b(t))))
end"""
TEXT = {"a": (20_000,), "b": (20_000,), "L": (60, 60)}
CASES: dict[str, Case] = {
    "lower_hartree_fock": Case(
        (EXAMPLES / "hartree_fock.cd").read_text(encoding="utf-8"), {"J": (6, 6, 6, 6), "C": (6, 2)}
    ),
    "lower_guarded_pair_sum": Case(PAIRS, {"x": (5, 3)}),
    "lower_gather_and_scatter": Case(
        RING + "(w::(Z) -> R) -> (x::(Z) -> R) -> sum((i::Z, j::Z), w(j) * x(i + j) * x(2 * i))", {"x": (6,)}
    ),
    "lower_cumulative_sum": Case(
        "(X::RM, c::RV) -> (w::RV) -> begin; s = n -> sum(d, X(n, d) * w(d));"
        " sum(n, c(n) * (s(n) - log(sum(m, indicator(n, m, exp(s(m)))))))"
        " + sum((n, m), indicator(m + 1, n, s(n) * s(m))); end",
        {"X": (6, 2)},
    ),
    "lower_sums_first": Case(
        RING + "(P::(Z) -> C, s::(N{f}) -> Z, m::(N{f}, Z) -> R) -> (x::(Z) -> C) ->"
        " sum((a, k::Z), (abs2(sum(j, P(j) * x(j + s(a)) * exp(-2 * pi * im * k * j / size(Z)))) - m(a, k))^2)",
        {"s": (3,), "x": (6,)},
    ),
    "lower_equation": Case(
        "(b::RV) -> begin; u = root((u::RV) -> i -> u(i) + u(i)^3 - b(i)); sum(i, u(i)^2); end", {"b": (4,)}
    ),
    "factoring": Case(
        "(A::CM, b::CV) -> begin; x = inverse((v::CV) -> i -> sum(j, A(i, j) * v(j)))(b); sum(i, abs2(x(i))); end",
        {"A": (5, 5), "b": (5,)},
        "factored",
    ),
    "scaling": Case(
        "(A::RM, B::RM) -> (x::RM) -> sum((i, j, k), A(i, k) * B(k, j) * x(i, j)^2) * 4",
        {"A": (400, 300), "B": (300, 500), "x": (400, 500)},
        "scaled_early",
    ),
    "translations": Case(RING + "(x::(Z) -> R) -> sum(i::Z, cos(x(i + 1) - x(i)))", {"x": (10_000,)}, "translated"),
    "slices": Case(
        "(x::RV{n}) -> sum(i, 1 <= i and i + 1 < n, exp(x(i) - x(i - 1)) + (x(i + 1) - x(i))^2)", {"x": (100,)}, "cut"
    ),
    "outer_products": Case(
        "(x::RV) -> (K::RM{n, n}) -> begin; y = i -> sum(j, K(i, j) * x(j)); z = i -> sum(j, K(i, j) * sin(y(j)));"
        " sum((i, j), x(i) * K(i, j) * z(j)); end",
        {"K": (200, 200), "x": (200,)},
        "stacked",
    ),
    "entries": Case("(x::RV) -> exp(x(0)) * x(1) + sum(i, x(i)^2)", {"x": (100,)}, "written_at"),
    "packing": Case(
        (EXAMPLES / "hartree_fock.cd").read_text(encoding="utf-8"),
        {"J": (30, 30, 30, 30), "C": (30, 5)},
        lambda plan: packed(plan, ["J"]),
    ),
    "loops": Case(
        "(V::(N, N, N, N) -> R) -> (C::RM) -> sum((p, q, r, s), V(p, q, r, s)^2 * C(p, q) * C(r, s))",
        {"V": (60, 60, 60, 60), "C": (60, 60)},
        lambda plan: scheduled(plan, spelling_of("numpy")),
        "dask",
    ),
    "gathers": Case(GRAPH, EDGES, moved, "dask"),
    "tables": Case(BIGRAM, TEXT, with_tables, "dask"),
    "counts": Case(BIGRAM, TEXT, with_counts, "dask"),
    "sparse_products": Case(GRAPH, EDGES, with_sparse_products, "dask"),
    "fourier": Case(
        "(w::CV{n}) -> (x::CV{n}) -> begin; P = (k, j) -> exp(-2 * pi * im * k * j / n);"
        " y = j -> sum(k, P(k, j)' * w(k) * sum(i, P(k, i) * x(i))) / n; sum(j, abs2(y(j))^2); end",
        {"w": (8,), "x": (8,)},
        with_fourier_transforms,
        "dask",
    ),
    "angles": Case(
        "(G::RM{n, n}) -> (t::RV{n}) -> sum(i, sum(j, G(i, j) * sin(t(i) - t(j)))^2)",
        {"G": (60, 60)},
        with_angles_apart,
        "",
    ),
    "divisors": Case(
        "(y::RM{t, n}, A::RM{n, n}) -> (p::RV{n}) -> sum(k, sum(j, softmax(i, A(k, i))(j) * y(0, j) * p(j))^2)",
        {"y": (4, 60)},
        with_divisors_apart,
        "",
    ),
    "differences_turned": Case(
        "(s::R) -> (x::RM{n, 2}) -> sum((i, j), i < j, relu(s - sqrt(sum(c, (x(i, c) - x(j, c))^2)))^2)",
        {"x": (80, 2)},
        with_differences_turned,
        "",
    ),
    "windows": Case(
        "(y::RM{n, m}, k::RM{a, b}) -> (x::RM{n, m}) ->"
        " sum((i, j), (sum((p, q), i + p < n and j + q < m, k(p, q) * x(i + p, j + q)) - y(i, j))^2)",
        {"k": (3, 4), "x": (30, 40)},
        with_windows,
        "dask",
    ),
    "correlations": Case(
        "(y::CV{n}) -> (k::CV{5}, x::CV{n + 8}) -> sum(i, abs2(sum(p::N{5}, k(p) * x(i + 2 * p)) - y(i)))",
        {"y": (500,)},
        with_windows,
        "dask",
    ),
    "convolutions": Case(
        "@domain Z begin periodic = true end\n(h::(Z) -> R) -> (x::(Z) -> R) ->"
        " sum(i::Z, sum(j::Z, h(j) * x(i - j))^3)",
        {"h": (100,), "x": (100,)},
        with_convolutions_transformed,
        "dask",
    ),
    "logistic": Case(
        "(X::RM{n, m}, y::RV{n}) -> (w::RV{m}) -> begin; u = i -> sum(j, X(i, j) * w(j));"
        " sum(i, y(i) * sigmoid(u(i)) + softplus(-u(i))); end",
        {"X": (1000, 5), "y": (1000,)},
        with_exponentials_shared,
        "dask",
    ),
    "memory": Case(
        "(x::RM, y::RM) -> sum((i, j), exp(-sum(c, (x(i, c) - y(j, c))^2)))", {"x": (300, 3), "y": (400, 3)}, _memory
    ),
    "checkpoints": Case(
        "(x::RM{T, n}) -> (W::RM{n, n}) -> begin\n"
        "  h = iterate((h, t) -> i -> tanh(sum(j, W(i, j) * h(j)) + x(t, i)), i -> 0, T)\n"
        "  sum(i, h(i)^2)\nend",
        {"x": (100, 5)},
        with_checkpoints,
        "jax",
    ),
    "masks": Case(
        "(s::R) -> (x::RM) -> begin; r = (i, j) -> sum(c, (x(i, c) - x(j, c))^2);"
        " sum((i, j), i != j, log(r(i, j)) - s / r(i, j)); end",
        {"x": (200, 3)},
        with_masks_once,
        "jax",
    ),
    "values_stored": Case(
        "(x::RV{n}) -> (W::RM{n, n}) -> sum(i, iterate((h, t) -> i -> tanh(sum(j, W(i, j) * sin(h(j)))), x, 900)(i)^2)",
        {"W": (90, 90)},
        with_values_stored,
        "",
    ),
    "sums_in_loops": Case(
        "(x::RM{b, n}) -> (W::RM{n, n}) -> begin\n"
        "  h = iterate((h, t) -> (i, k) -> tanh(sum(j, W(k, j) * h(i, j))), x, 9)\n"
        "  sum((i, k), h(i, k)^2)\nend",
        {"x": (500, 20)},
        with_sums_in_loops,
        "jax",
    ),
    "filters": Case(
        "(x::RV{T}) -> (b::R) -> begin s = scan((s, t) -> b * s + x(t), 1, T); sum(t::N{T}, (s(t) - x(t))^2) end",
        {"x": (100,)},
        with_filters,
        "jax",
    ),
    "kernels": Case("(a::R) -> (x::RV) -> sum(i, exp(-a * x(i)^2) * sin(x(i)))", {"x": (1000,)}, with_kernels),
}

BY_HAND = ("by_hand_recurrent_network", "by_hand_positive_system")
"""Texts that are written by hand: a loop with stored states and its adjoint, a factor that is shared."""


def shown(name: str) -> str:
    """The texts of a case: the program, then each plan."""
    case = CASES[name]
    titles = ["after lowering"] if case.shown is None else ["before", "after"]
    parts = [f"# {line}" for line in case.program.strip().splitlines()]
    for title, plan in zip(titles, case.plans(), strict=True):
        parts += ["", f"# --- {title}", text(plan).rstrip()]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    for name in CASES:
        (SHOWN / f"{name}.txt").write_text(shown(name), encoding="utf-8")
