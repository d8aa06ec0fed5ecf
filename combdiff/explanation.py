"""Explains a derivation: the λ-term, its form in combinators, and every stage with its laws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from combdiff.calculus.combinators import combinator_text, eliminate
from combdiff.calculus.definitions.floating import Binding, float_lets, unfold
from combdiff.calculus.loops.recurrences import LoopBody
from combdiff.calculus.reverse import settled_terms
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.terms import Lam, Loop, Term, Var, add, fresh, items_of, substitute, tuple_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from combdiff.derivation import Derivation
    from combdiff.simplify.account import Step


def explanation(d: Derivation, times: bool = False) -> str:
    """The derivation as a reader follows it: λ-term, B/C form, raw pullback, each stage in words, the result.

    A stage after which the formula is the same is left out. With `times`, each has its time, and how often laws fired.
    """
    from combdiff.language.printing.printer import expression_text

    with deep_recursion():
        program, *stages = d.steps
        read = [line for line in (program.note, expression_text(program.term)) if line]
        parts = ["the program, as read", *read, "", LEGEND, combinator_form(d), "", COUNTING]
        for step in changing_stages(stages):
            parts += ["", step.text(step.heading if times else "")]
    return "\n".join([*parts, "", "the result", str(d)])


def changing_stages(stages: Sequence[Step]) -> list[Step]:
    """The stages that change something."""
    return [step for step in stages if step.changed]


_Value = tuple[str, tuple[Var, ...], Term]
"""A label, the variables that it may depend on, and the term."""

LEGEND = """the combinators (section 5.1): I is x ↦ x; K e is constant; B f g is first g, then f;
C (i ↦ g) is a map that returns a map; a captured factor stands with its primitive, as in (mul u);
Jump g (h at t = p by w) is g, which jumps by h at a place that moves, where w is zero"""

COUNTING = "In what follows, terms are counted from 1 in the formula before the stage."


def combinator_form(d: Derivation) -> str:
    """What was differentiated in B, C and the primitives of Table 1, a line for each value and what reaches it."""
    f = d.differentiated
    assert isinstance(f, Lam), "a map with its derivatives written out is a map"
    bindings, core = float_lets(f.body)
    variables = (*f.params, *(var for var, _ in bindings))

    def settled(t: Term) -> Term:
        """`t` as its derivative is taken; of a δ that is a value, what it is paired with is called k."""
        parts = items_of(t)
        known = dict(bindings)
        return tuple_of([add(*(e for e, _ in settled_terms(u, fresh("k", u.type), known, variables))) for u in parts])

    values = _values(bindings, variables)
    named = [(label, over, settled(e)) for label, over, e in (*values, ("result", variables, core))]
    return "\n".join(
        f"{x.name} ↦ {label} = {combinator_text(eliminate(x, body))}"
        for label, over, body in named
        for x in over
        if x in body.free
    )


def _values(bindings: Sequence[Binding], variables: tuple[Var, ...]) -> list[_Value]:
    """Definitions, then the steps of those that are loops."""
    found = [(var.name, variables, e) for var, e in bindings if not isinstance(e, Loop)]
    return found + [of_step for _, e in bindings if isinstance(e, Loop) for of_step in _next_states(e, variables)]


def _next_states(loop: Loop, variables: tuple[Var, ...]) -> list[_Value]:
    """What a step makes of each state, which depends on the states, on loops in it, and on what the step captures."""
    if loop.kind == "states":
        return []
    step = LoopBody.of(loop)
    inner = [(var, e) for var, e in step.bindings if isinstance(e, Loop)]
    known: dict[Var, Term] = {}
    for var, e in step.bindings:
        if not isinstance(e, Loop):
            known[var] = substitute(e, known)
    over = (*step.states, *variables, *(var for var, _ in inner))
    items = [(f"{s.name}({step.time.name} + 1)", over, e) for s, e in zip(step.states, step.items, strict=True)]
    found = [*_values(inner, (*step.states, *variables)), *items]
    return [(label, own, unfold(substitute(e, known))) for label, own, e in found]
