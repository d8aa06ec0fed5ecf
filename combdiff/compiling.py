"""Turns a derivation into a plan, source text or a function of arrays, by the options that a caller gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from combdiff.arrays.lower.lower import guessed_sizes
from combdiff.arrays.lower.signature import result_of
from combdiff.arrays.packing.packed_plan import packed
from combdiff.arrays.passes.loops.memory import bytes_of
from combdiff.arrays.passes.schedule import scheduled
from combdiff.arrays.shapes import sizes_of
from combdiff.calculus.functions.nodes import grids_of
from combdiff.emit.emit import source, spelling_of
from combdiff.errors import UnsupportedError
from combdiff.language.places import located_errors
from combdiff.notation.paper import heads_of
from combdiff.records import dataclass
from combdiff.run.at_nodes import CompiledFunctional, Discrete, intervals_of
from combdiff.run.compiled import CodeOptions, Compiled
from combdiff.run.hessian import CompiledHessian, products_source
from combdiff.run.packed_arrays import names_to_pack
from combdiff.run.structured import CompiledBlocks
from combdiff.simplify.account import CANCELS
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.terms import Lam
from combdiff.terms.types import Map, Number

if TYPE_CHECKING:
    from combdiff.arrays.lower.forms import Forms
    from combdiff.arrays.passes.distances import Distances
    from combdiff.arrays.plan import Plan
    from combdiff.derivation import Derivation
    from combdiff.run.compiled import Check


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What code computes, and how; `Derivation.compile` describes the options, `plan` and `source` take some of them.

    >>> CompileOptions(check="none")
    Traceback (most recent call last):
      ...
    combdiff.errors.UnsupportedError: check is 'none'
    remedy: give "sample", "full", "states" or False
    """

    value: bool = False
    hvp: bool = False
    check: Check = "sample"
    pack: str | Sequence[str] = ()
    memory: int | str | None = None
    distances: Distances = "differences"
    checkpoint: bool = False
    structured: bool = False

    def __post_init__(self) -> None:
        if self.check not in ("sample", "full", "states", False):
            raise UnsupportedError(f"check is {self.check!r}", remedy='give "sample", "full", "states" or False')
        if self.distances not in ("differences", "expanded"):
            raise UnsupportedError(f"distances is {self.distances!r}", remedy='give "differences" or "expanded"')
        if self.structured and (self.hvp or self.checkpoint or self.distances != "differences"):
            raise UnsupportedError(
                "structured=True does not work with hvp, distances or checkpoint",
                remedy="leave hvp, distances and checkpoint out",
            )
        if self.hvp and self.checkpoint:
            raise UnsupportedError(
                "hvp=True keeps all states of loops for the products, which checkpoint= does not store",
                remedy="leave one of the two out",
            )


def planned(d: Derivation, backend: str, options: CompileOptions, shapes: Mapping[str, object]) -> Plan:
    """The plan for arrays of these shapes: packed, scheduled within the memory, for what the library can do."""
    forms = _forms(d, options)
    with located_errors(d.text, d.name):
        pack, spelling, limit = _names_to_pack(d, options), spelling_of(backend), bytes_of(options.memory)
        sizes = {**guessed_sizes(forms.formula), **sizes_of(forms.formula, shapes)}
        return scheduled(packed(forms.plan(sizes, limit), pack), spelling, limit)


def source_text(d: Derivation, backend: str, name: str, options: CompileOptions, shapes: Mapping[str, object]) -> str:
    """The text of a stand-alone function with a name."""
    pack, limit = _names_to_pack(d, options), bytes_of(options.memory)
    if not name.isidentifier() or iskeyword(name) or name in spelling_of(backend).reserved:
        raise UnsupportedError(f"a function cannot be called {name!r} here", remedy='give a name such as "energy"')
    with located_errors(d.text, d.name):
        code = backend, name, _title(d, options), pack, limit
        if options.hvp:
            joint = d.runnable.joint(options.value, options.distances)
            return products_source(joint, *code, sizes_of(joint.term, shapes))
        forms = _forms(d, options)
        return source(forms, sizes_of(forms.formula, shapes), *code)


def compiled(d: Derivation, backend: str, options: CompileOptions) -> Compiled[Any]:
    """The function of arrays."""
    code = CodeOptions(
        backend,
        d.function_name(options.value, options.hvp),
        _title(d, options),
        options.check,
        _names_to_pack(d, options),
        bytes_of(options.memory),
    )
    with located_errors(d.text, d.name):
        if options.structured:
            return _of_blocks(d, options, code)
        if options.hvp:
            return CompiledHessian(d.runnable.joint(options.value, options.distances), code)
        return _of_whole_arrays(d, options, code)


def _of_whole_arrays(d: Derivation, options: CompileOptions, code: CodeOptions) -> Compiled[Any]:
    forms = _forms(d, options)
    if any(intervals_of(p.kind) for p in result_of(d.term).params):
        return CompiledFunctional(forms, partial(_discrete, d, options, code), code)
    return Compiled(forms, code)


def _discrete(d: Derivation, options: CompileOptions, code: CodeOptions) -> Discrete:
    """The function of values at nodes that computes the same result."""
    if not isinstance(d.objective.body.type, Number):
        raise UnsupportedError(
            "the program maps functions to functions, and these are given by their values",
            remedy="give Python functions, or a functional: the integral of what the program returns",
        )
    discrete = d.at_nodes()
    with deep_recursion():
        f = d.differentiated
        assert isinstance(f, Lam), "a map stays one"
        grids = grids_of(d.program, f)
    arrays = {name for names in grids.values() for name in names}
    own = [v.name for v in result_of(discrete.term).params if v.name not in arrays]
    # points at which the derivative is a function come last, and are no arguments
    names = dict(zip([v.name for v in result_of(d.term).params], own, strict=False))
    by_unknown = [intervals_of(p.kind) for p in d.objective.params]
    results = by_unknown if d.mode in ("grad", "pullback", "hvp") else [()]
    return Discrete(_of_whole_arrays(discrete, options, code), grids, names, [()] * options.value + results)


def _of_blocks(d: Derivation, options: CompileOptions, code: CodeOptions) -> CompiledBlocks:
    """The function that returns only the entries that are not zero."""
    formula = _forms(d, options).formula
    count = len(result_of(d.term).outputs)
    values = len(result_of(formula).outputs) - count
    return CompiledBlocks(formula, values, _ranks_of_rows(d, count), code)


def _ranks_of_rows(d: Derivation, count: int) -> tuple[int, ...]:
    """The number of slots of each result that are rows of a matrix: in a Jacobian those of the value, else half."""
    ranks = [len(e.type.params) if isinstance(e.type, Map) else 0 for e in result_of(d.term).outputs]
    heads = heads_of(d.objective, d.mode, count)
    if not heads:
        return tuple(rank // 2 for rank in ranks)
    kinds = [d.objective.params[head.unknown].kind for head in heads]
    return tuple(r - len(k.params) if isinstance(k, Map) else r for r, k in zip(ranks, kinds, strict=True))


def _forms(d: Derivation, options: CompileOptions) -> Forms:
    return d.runnable.forms(options.value, options.distances, options.checkpoint)


def _names_to_pack(d: Derivation, options: CompileOptions) -> tuple[str, ...]:
    return names_to_pack(options.pack, d.term, d.objective.params) if options.pack else ()


def _title(d: Derivation, options: CompileOptions) -> str:
    """The head of the docstring of emitted code."""
    return f"{d}\n\n{CANCELS}" if d.expand and options.value else str(d)
