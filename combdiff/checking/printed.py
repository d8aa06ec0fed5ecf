"""Compares what a derivation prints with the term that it prints: the text, read back, and the matrix form.

Both sides are evaluated by `meaning/evaluate.py` on the numbers of `d.check()`: nothing that found or wrote the result
takes part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from combdiff.arrays.lower.signature import result_of
from combdiff.checking.functions import evaluated, has_functions
from combdiff.errors import CombDiffError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.parsing.syntax import Block, Expr, Lambda
from combdiff.language.printing.anchors import domains_of
from combdiff.language.printing.loops import forwards
from combdiff.language.printing.names import with_own_binders
from combdiff.language.printing.type_names import TypeNames
from combdiff.meaning.differences import items_of
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.meaning.values import Value
from combdiff.notation.matrix.expr import MatrixExpr
from combdiff.notation.matrix.forms import forms_found
from combdiff.notation.matrix.meaning import NoMeaningError, meaning
from combdiff.terms.terms import Diff, Lam, Reduce, Term, Var, bound_by, children, let, subterms, tuple_of
from combdiff.terms.types import Domain, Index, Map, Type

if TYPE_CHECKING:
    from combdiff.derivation import Derivation

Values = Mapping[Term, Value]
Sizes = Mapping[Domain, int]

SMALLEST = 1e-6
"""What is smaller may be all rounding, and is compared with this number."""


class Printed:
    """What `d` prints, read once: its text, and for a result that has one its matrix form."""

    def __init__(self, d: Derivation) -> None:
        self._term = d.term
        self._forms = forms_found(d.term)
        self._read: Term | None = None
        self._problem = ""
        try:
            module = parse(str(d), "<printed>")
            self._read = infer(module, keep=_written(d.term, module.body))
        except (CombDiffError, ValueError) as problem:
            self._problem = str(problem).splitlines()[0]

    def differences(self, values: Values, result: Value, sizes: Sizes) -> dict[str, float]:
        """The relative differences of what was read, evaluated, from the `result` on `values`, by what was compared."""
        with np.errstate(all="ignore"):
            found = self._of_text(values, result, sizes)
            if self._forms:
                rng = np.random.default_rng(len(values))
                shared = _with_shared(self._term, values, sizes)
                found["matrix form"] = max(_of_form(*form, shared, sizes, rng) for form in self._forms.items())
        return found

    def _of_text(self, values: Values, result: Value, sizes: Sizes) -> dict[str, float]:
        """The text, read as a program of its own; its parameters stand in the same order."""
        problem, read = self._problem, self._read
        if read is not None:
            try:
                same = dict(zip(_given(self._term), _given(read), strict=True))
                taken = {_renamed(key, same): value for key, value in values.items() if _root(key) in same}
                found = _value(read, taken, _sizes_of(read, self._term, same, sizes))
                return {"printed text": _apart(found, result)}
            except (CombDiffError, ValueError) as error:
                # ValueError: it has other parameters than were printed
                problem = str(error).splitlines()[0]
        return {f"printed text, which does not read back ({problem})": float("inf")}


def _with_shared(t: Term, values: Values, sizes: Sizes) -> Values:
    """The numbers, and those of what a result shares, of which a logarithm may be real there only."""
    found = dict(values)
    for var, value in result_of(t).bindings:
        # below a function of x, what is shared has no number of its own
        if var not in found and value.free <= found.keys() and (_is_tensor(value) or not isinstance(value, Lam)):
            found[var] = evaluate(value, found, sizes)
    return found


def _given(t: Term) -> tuple[Var, ...]:
    """What has a value before a result is computed: its arguments, and functions that are kept unknown."""
    return (*result_of(t).params, *_kept(t))


def _kept(t: Term) -> list[Var]:
    """The functions that a result defines and keeps unknown."""
    return [var for var, value in result_of(t).bindings if isinstance(value, Lam) and not _is_tensor(value)]


def _written(t: Term, printed: Expr) -> list[str]:
    """The names that the functions which a result keeps unknown have in its text: f₁, where another value is f."""
    names: list[str] = []
    while isinstance(printed, Lambda | Block):
        if isinstance(printed, Block):
            names += [name.text for definition in printed.definitions for name in definition.names]
        printed = printed.body
    bound = [var for var, _ in result_of(t).bindings]
    found = []
    for var in _kept(t):
        namesakes = [v for v in bound if v.name.rstrip(SUBSCRIPTS) == var.name.rstrip(SUBSCRIPTS)]
        alike = [name for name in names if name.rstrip(SUBSCRIPTS) == var.name.rstrip(SUBSCRIPTS)]
        found.append(alike[namesakes.index(var)])
    return found


SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"


def _is_tensor(t: Term) -> bool:
    return isinstance(t.type, Map) and t.type.is_array


def _root(t: Term) -> Term:
    return _root(t.of) if isinstance(t, Diff) else t


def _renamed(t: Term, same: Mapping[Var, Var]) -> Term:
    if isinstance(t, Diff):
        return Diff(t.kind, _renamed(t.of, same))
    return same[t] if isinstance(t, Var) else t


def _sizes_of(read: Term, printed: Term, same: Mapping[Var, Var], sizes: Sizes) -> dict[Domain, int]:
    """The sizes of the domains of what is the `same` in both, of those whose names were printed, and of all others."""
    pairs = [(v.kind, u.kind) for v, u in same.items()]
    spelling = TypeNames(with_own_binders(forwards(printed)))
    named = {name: domain for domain, name in (*spelling.domains.items(), *spelling.sizes.items())}
    found_there = {d.of or d for u in subterms(read) for v in bound_by(u) for d in domains_of(v.kind)}
    declared = {d for d in found_there if d.declared or d.sized}
    pairs += [(Index(named[d.name]), Index(d)) for d in declared if d.name in named]
    pairs += _bound_alike(printed, read)
    found: dict[Domain, int] = {}
    for ours, theirs in pairs:
        for d, e in zip(domains_of(ours), domains_of(theirs), strict=False):
            for axis, named_axis in zip(d.axes, e.axes, strict=False):
                # a range of n - 1 values has the size that n says, and its text may be one of n values and a condition
                if axis in sizes and named_axis.of is None:
                    found.setdefault(named_axis, sizes[axis])
    return found


def _bound_alike(a: Term, b: Term) -> Iterator[tuple[Type, Type]]:
    """The types of variables that are bound at the same places, as far as two terms are built alike."""
    stack, seen = [(a, b)], set[tuple[Term, Term]]()
    while stack:
        pair = stack.pop()
        a, b = pair
        if pair in seen or type(a) is not type(b):
            continue
        seen.add(pair)
        yield from ((v.kind, u.kind) for v, u in zip(bound_by(a), bound_by(b), strict=False))
        stack += zip(children(a), children(b), strict=False)


def _value(t: Term, values: Values, sizes: Sizes) -> Value:
    below = t
    while isinstance(below, Lam) and all(p in values for p in below.params):
        below = below.body
    if has_functions(below.type):
        return evaluated(below, values, sizes)
    parts = result_of(t)
    return evaluated(let(parts.bindings, tuple_of(parts.outputs)), values, sizes)


def _of_form(unit: Term, form: MatrixExpr, values: Values, sizes: Sizes, rng: np.random.Generator) -> float:
    """A number or tensor beside its matrix form; what is bound further in is a random number here."""
    here = dict(values)
    here.update((v, random_value(v.kind, sizes, rng)) for v in sorted(unit.free, key=lambda v: v.uid) if v not in here)
    try:
        read = meaning(form, unit.type)
    except NoMeaningError:
        return float("inf")
    found, expected = evaluate(read, here, sizes), evaluate(unit, here, sizes)
    if _has_adjugate(unit) and not all(np.isfinite(x).all() for x in items_of(found)):
        # det(A) A⁻¹ is written for the adjugate of a regular matrix, and this one is singular
        return 0.0
    return _apart(found, expected)


def _has_adjugate(t: Term) -> bool:
    return any(u.kind == "adjugate" for u in subterms(t, Reduce))


def _apart(found: Value, expected: Value) -> float:
    """The largest difference of two values relative to the largest entry, where what is expected is finite."""
    worst = 0.0
    for a, b in zip(items_of(found), items_of(expected), strict=True):
        if a.shape != b.shape:
            return float("inf")
        finite = np.isfinite(b)
        scale = max(SMALLEST, float(np.max(np.abs(b), initial=0.0, where=finite)))
        difference = float(np.max(np.abs(a - b), initial=0.0, where=finite))
        worst = float("inf") if np.isnan(difference) else max(worst, difference / scale)
    return worst
