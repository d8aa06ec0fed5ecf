"""The objectives of `benchmarks.fields`, by their names."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.by_hand import ByHand, Drawn

CASES: dict[str, tuple[tuple[str, ...], Drawn, ByHand]] = {}
"""Programs in several spellings, how arguments are drawn, and code by hand."""


def case(name: str, drawn: Drawn, *texts: str) -> Callable[[ByHand], ByHand]:
    """Note what a function by hand computes: programs in several spellings, and how arguments are drawn."""

    def noted(by_hand: ByHand) -> ByHand:
        CASES[name] = (texts, drawn, by_hand)
        return by_hand

    return noted
