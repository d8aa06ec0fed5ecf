"""Explains a step in words: which law was used on which terms, with the names in the text of the step."""

from __future__ import annotations

from contextlib import suppress

from combdiff.calculus.loops.joining import joined_loops
from combdiff.calculus.loops.read_states import unread
from combdiff.errors import CombDiffError
from combdiff.simplify.account import Step
from combdiff.simplify.provenance.choosing import choice_words, order_words
from combdiff.simplify.provenance.contracting import contraction_words
from combdiff.simplify.provenance.merging import Merging
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.terms import Lam


def words_of(step: Step) -> list[str]:
    """The sentences on a step; none where it changed nothing, or where it is not known what it did."""
    before, after = step.before, step.term
    if step.spent or not isinstance(before, Lam) or not isinstance(after, Lam):
        return []
    with deep_recursion(), suppress(CombDiffError):
        match step.name:
            case "contract" | "expand":
                return contraction_words(before, after, step.families)
            case "merge like terms":
                found = Merging.again(before, after, step.unused)
                return found.words() if found else []
            case "place cotangents" | "collect and name":
                return choice_words(before, after, step.unused, step.families)
            case "commuting matrices":
                return ["a matrix A commutes with exp(t A): the derivative of the exponential along A is a product"]
            case "unread states":
                return [
                    f"nothing reads the state {name}: its loop goes on without it" for name in unread(before, after)
                ]
            case "join loops":
                joined: list[list[str]] = []
                joined_loops(before.body, joined)
                return [f"the loops of {', '.join(names)} go through a common state: they are one" for names in joined]
            case "order and names":
                return order_words(before, after, step.unused)
    return []
