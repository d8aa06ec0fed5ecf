"""The operations of the plans of programs, and of their respellings.

Factors and terms commuted, a - b as -b + a, sums joined, nested, reordered and split, names, definitions
inlined, parts defined, given tensors read by declared images, tensors read transposed, indices over periodic domains
moved.

Costs are the operations of plans. They differ by up to `LOOSE` where a definition of the user's, which stays a value of
the result, is what would be no value of its own: the code then follows the text as long as it takes no more time.
"""

from __future__ import annotations

from functools import cache
from random import Random

import combdiff as cd
from combdiff.derivation import Derivation
from combdiff.language.parsing.parser import parse
from tests.programs import ROOT, WITH_FORMS
from tests.spellings.respelling import CHANGES, Respelling
from tests.spellings.surface import text_of

LOOSE = 1.05
"""The ratio of two costs that are taken for one."""

OWN = {
    "products": """(q::RV{n}, x::RV{n}) -> (L::RM{n, n}) -> begin
        Q = (i, j) -> exp(q(i)) * L(i, j) - 2 * L(j, i)
        sum((i, j), x(i) * exp(Q(i, j)) * x(j) + tanh(Q(i, j))^2 * L(j, i))
    end""",
    "two steps of a gated memory": """(W::RM, V::RM, x::RV) -> (h::RV) -> begin
        a = i -> sum(j, W(i, j) * h(j)) + x(i)
        g = i -> 1 / (1 + exp(-a(i)))
        c = i -> g(i) * tanh(a(i))
        b = i -> sum(j, V(i, j) * c(j)) + x(i)
        f = i -> 1 / (1 + exp(-b(i)))
        sum(i, (f(i) * c(i) + (1 - f(i)) * tanh(b(i)))^2)
    end""",
    "kernel": "(a::RV, h::R) -> (x::RM) -> sum((i, j), a(i) * a(j) * exp(-sum(d, (x(i, d) - x(j, d))^2) / (2 * h^2)))",
    "coupled springs": """@domain Ring begin base = I; periodic = true end
        (m::(Ring) -> R, s::R) -> (u::(Ring) -> R) ->
        sum(k::Ring, m(k) * (u(k + 1) - u(k))^2 / 2 + s * u(k)^4 + cos(u(k + 1) - u(k)))""",
    "antisymmetric pairs": """@space W begin
        type = (N, N, N, N) -> R
        symmetries = (((2, 1, 3, 4), :neg), ((1, 2, 4, 3), :neg), ((3, 4, 1, 2), :id))
        end
        (G::W, e::Sym) -> (t::RM) -> sum((i, a), e(i, a) * t(i, a)) +
        1/4 * sum((i, j, a, b), G(i, j, a, b) * (t(i, a) * t(j, b) - t(j, a) * t(i, b)))""",
    "distance of a density": """(S::Her, D::Her) -> (C::CM) -> begin
        P = (p, q) -> sum(i, C(p, i) * C(q, i)')
        R = (p, q) -> sum((r, s), S(p, r) * P(r, s) * S(s, q)) - D(p, q)
        real(sum((p, q), R(p, q) * R(q, p)))
    end""",
}

WITH_UNKNOWN_FUNCTIONS = ("adjoint", "perceptron")
"""Programs that take functions, for which there is no random value."""

WITHOUT_CODE = ("least_action", "convolution")
"""Programs over the real numbers, which no plan holds."""


def _programs() -> dict[str, str]:
    paths = [*(ROOT / "examples").glob("*.cd"), *(ROOT / "tests" / "golden").glob("*.cd")]
    found = {
        p.stem: p.read_text(encoding="utf-8") for p in sorted(paths) if p.stem not in (*WITHOUT_CODE, "cotangents")
    }
    return found | {title: program for title, (program, _) in WITH_FORMS.items()} | OWN


PROGRAMS = _programs()
TWO_POINTS = ("wannier",)
"""Programs whose entries S(k, k + b) have two points of a zone, neither of which is plainer than the other: where the
index of the sum is moved, to S(k - b, k), the value is computed apart from the gradient, 1.8 times the cost of both."""


OPEN = {
    "products": "value and gradient take 1.06 times the operations with tanh(Q) named, too: its formula takes 2 % "
    "less time than the form of fewest operations, and is run",
}
"""Programs of which some spellings still cost more than others, with the first that was found."""


def respelled(name: str, seed: int) -> str:
    """A program, spelt otherwise."""
    rng = Random(f"{name} {seed}")
    module = parse(PROGRAMS[name])
    changes = [c for c in CHANGES if rng.random() < 0.5 and (c != "shifted" or name not in TWO_POINTS)]
    return text_of(module, Respelling(module, rng)(changes or ["commuted"]))


@cache
def costs(text: str) -> dict[str, int]:
    """The operations that are taken for the gradient, the value with it, and the product with the Hessian."""
    gradient = cd.grad(text)
    return {
        "gradient": _operations(gradient, False),
        "value and gradient": _operations(gradient, True),
        "product with the Hessian": _operations(cd.hvp(text), False),
    }


def _operations(d: Derivation, value: bool) -> int:
    plan = d.plan(value=value)
    return sum(map(plan.flops, plan.steps))


def differences(name: str, seed: int) -> list[str]:
    """What costs more or less, where a program is spelt otherwise."""
    text = respelled(name, seed)
    found = costs(text)
    ratios = {what: (found[what] + 1) / (wanted + 1) for what, wanted in costs(PROGRAMS[name]).items()}
    return [
        f"seed {seed}: {name}: {what} costs {ratio:.3f} as much, written\n{text}"
        for what, ratio in ratios.items()
        if not 1 / LOOSE <= ratio <= LOOSE
    ]
