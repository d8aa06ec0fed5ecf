"""Turns the text of a program into its derivation: it is read, differentiated and simplified, with the gate between."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from combdiff.budget import NODES, SECONDS
from combdiff.calculus.functions.intervals import intervals_in
from combdiff.calculus.markers import MODES, SIMPLIFIED, as_asked, marker_of, parameters_of
from combdiff.calculus.modes import differentiate, marked_program, plain_program
from combdiff.derivation import Derivation
from combdiff.deriving.valued import PROJECTED, note_on_value
from combdiff.errors import UnsupportedError
from combdiff.gate.gate import Gate
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.places import located_errors
from combdiff.simplify.account import Progress, Step, Steps
from combdiff.simplify.choose import index_names
from combdiff.simplify.lost import definitions_read
from combdiff.simplify.stages import Simplifier
from combdiff.terms.conditions.divided import divisors
from combdiff.terms.conditions.guards import divides_by_zero
from combdiff.terms.conditions.needed import least_sizes, sizes_read
from combdiff.terms.laws.seen_through import with_stable_forms
from combdiff.terms.recursion import deep_recursion, rare_collections
from combdiff.terms.terms import Let, Term, subterms


def derive(
    text: str,
    mode: str,
    *,
    wrt: Sequence[str] = (),
    keep: Sequence[str] = (),
    expand: bool = False,
    seconds: float = SECONDS,
    nodes: float = NODES,
    name: str = "<text>",
    progress: Progress | None = None,
    symmetric: bool = False,
) -> Derivation:
    """Read a program and take its derivative; see `combdiff.grad`."""
    with located_errors(text, name), rare_collections():
        module = parse(text, name)
        read = infer(module, keep=keep)
        program = with_stable_forms(plain_program(read) if mode == SIMPLIFIED else marked_program(read, wrt))
        if mode == SIMPLIFIED:
            mode = marker_of(program) or mode
        simplifier = Simplifier(Gate(), expand, seconds=seconds, nodes=nodes, progress=progress)
        simplifier.defined = definitions_read(read)
        simplifier.intervals = intervals_in(read)  # some are conditions in `program`
        return derived(text, mode, program, simplifier, name, symmetric, module.remarks)


def derived(
    text: str,
    mode: str,
    program: Term,
    simplifier: Simplifier,
    name: str,
    symmetric: bool = False,
    remarks: Sequence[str] = (),
) -> Derivation:
    """The derivation of a program that was read, with `remarks` on how it was read."""
    with deep_recursion():
        simplifier.raw = MODES[mode].raw
        tell(simplifier, program)
        note = note_on_value(program, simplifier.budget) if MODES[mode].of_real_part else ""
        note = "\n".join(filter(None, [*remarks, note, PROJECTED if symmetric else ""]))
        simplifier.steps.append(Step("program", as_asked(program, mode), note=note))
        simplifier.announce("differentiate")
        term = differentiate(program, mode, simplifier, simplifier.ask, symmetric=symmetric)
        if divides_by_zero(term):
            raise UnsupportedError(
                "the derivative divides by zero for all arrays",
                remedy="look for a part of the program that is always zero, perhaps by a declared symmetry",
            )
    steps = Steps(simplifier.steps)
    how = simplifier.expand, simplifier.seconds, simplifier.nodes, name, symmetric
    return Derivation(text, mode, program, term, steps, *how)


def tell(simplifier: Simplifier, program: Term) -> None:
    """Tell a simplifier what the program says: names, sizes, and what it divides by."""
    simplifier.names = index_names(program)
    simplifier.definitions = {var.name for t in subterms(program, Let) for var, _ in t.bindings}
    simplifier.rank = {p: n for n, p in enumerate(parameters_of(program))}
    simplifier.intervals = list(dict.fromkeys([*simplifier.intervals, *intervals_in(program)]))
    simplifier.least, simplifier.read = least_sizes(program), sizes_read(program)
    simplifier.divided, simplifier.written = divisors(program), (program,)
    if simplifier.gate is not None:
        simplifier.gate.deal(program)


def derived_again(d: Derivation, mode: str, program: Term, simplifier: Simplifier) -> Derivation:
    """Another derivation with the same options, and what a simplifier says otherwise."""
    return derived(d.text, mode, program, simplifier, d.name, d.symmetric and not simplifier.full_space)


def simplifier_like(
    d: Derivation,
    expand: bool,
    *,
    full_space: bool = False,
    collect: bool = True,
    seconds: float | None = None,
    longest: float = inf,
) -> Simplifier:
    """A simplifier with a new budget, of the same size unless `seconds` are given; see `Simplifier.longest`."""
    seconds = d.seconds if seconds is None else seconds
    found = Simplifier(Gate(), expand, seconds=seconds, nodes=d.nodes, full_space=full_space, collect=collect)
    found.longest = longest
    found.intervals = intervals_in(d.term)
    return found
