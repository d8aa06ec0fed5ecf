"""What the benchmarks share: the time of one derivation, and of its stages.

The stages are those of the design: reading (parse and infer), calculus (B/C form and pullback rules), contract
(e-graph), merge (canonical names), choose (placing and naming), and the numerical check of every stage.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

STAGES = ("reading", "calculus", "contract", "merge", "choose", "check")
_STAGE_OF = {
    "contract": "contract",
    "expand": "contract",
    "merge like terms": "merge",
    "place cotangents": "choose",
    "collect and name": "choose",
    "order and names": "choose",
}


@dataclass(frozen=True)
class Timing:
    """Seconds of a derivation and of its stages, how often laws fired, the nodes of the largest e-graph, and what the
    steps have to say."""

    total: float
    shares: dict[str, float]
    matches: int
    nodes: int
    notes: tuple[str, ...]


def timed(text: str, mode: str, expand: bool = False) -> Timing:
    """Derive once, with the clock running."""
    import combdiff as cd
    from combdiff.language.inference.infer import infer
    from combdiff.language.parsing.parser import parse

    start = time.perf_counter()
    infer(parse(text))
    reading = time.perf_counter() - start
    derivative = {"grad": cd.grad, "pullback": cd.pullback, "hvp": cd.hvp}[mode]
    start = time.perf_counter()
    d = derivative(text, expand=expand)
    total = time.perf_counter() - start
    shares = dict.fromkeys(STAGES, 0.0)
    shares["reading"] = reading
    for step in d.steps:
        shares["check"] += step.checking
        if step.name in _STAGE_OF:
            shares[_STAGE_OF[step.name]] += step.seconds
    shares["calculus"] = max(0.0, total - sum(shares.values()))
    matches = sum(family.matches for step in d.steps for family in step.families.values())
    nodes = max(step.nodes for step in d.steps)
    return Timing(total, shares, matches, nodes, tuple(step.note for step in d.steps[1:] if step.note))


def shares_text(shares: dict[str, float]) -> str:
    """The shares of the stages in percent, as cells of a table."""
    return " | ".join(f"{shares[stage]:.0%}"[:-1] for stage in STAGES)
