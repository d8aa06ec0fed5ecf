"""Ways to ask for one derivative: each holds what comes back against the oracle, or asks that it comes at all."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from combdiff.errors import ArrayError, BudgetError, CombDiffError, UnsupportedError
from combdiff.meaning.sizes import FEWEST, evaluation_steps, two_sizes
from combdiff.terms.types import Index

from . import forward, libraries, oracle
from .arguments import as_taken, extra_arguments
from .broken import breakable, broken
from .case import Case, Failure, Skipped
from .data import EXTREMES, SUPPLIED
from .kinds import Function, Number, Tensor, over_complex
from .syntax import Block, Var, walk

LARGEST_OF_SINGLE = 1e12
"""Beyond, squares and products of three such numbers leave single precision."""


def gradient(case: Case) -> None:
    """The emitted NumPy code."""
    f = case.derivation.compile()
    case.compare(case.run(f, extra=extra_arguments(case, f)), "gradient")


def value(case: Case) -> None:
    """The value before the gradient."""
    f = case.derivation.compile(value=True)
    found = case.run(f, extra=extra_arguments(case, f))
    count = len(oracle.result_kinds(case.program))
    case.compare_values(found[:count], "value=True")
    case.compare(tuple(found[count:]), "gradient with value=True")


def expand(case: Case) -> None:
    """All multiplied out, which parts what is large from what is small beside it."""
    if case.weather in EXTREMES:
        raise Skipped("what is multiplied out may overflow where the factors do not")
    d = case.derive(case.program.mode, expand=True)
    f = d.compile(value=case.rng.random() < 0.5 and case.program.mode == "grad")
    found = case.run(f, extra=extra_arguments(case, f))
    items = found if isinstance(found, tuple) else (found,)
    case.compare(tuple(items[-len(case.program.unknowns) :]), "gradient with expand=True")


def hvp(case: Case) -> None:
    """The Hessian product of its own."""
    if case.program.mode != "grad":
        raise Skipped("a pullback has no Hessian product")
    f = case.derive("hvp").compile()
    case.compare(case.run(f, extra=extra_arguments(case, f, second=True)), "cd.hvp", second=True)


def joint(case: Case) -> None:
    """Value, gradient and Hessian product together."""
    if case.program.mode != "grad":
        raise Skipped("a pullback has no Hessian product")
    f = case.derivation.compile(value=True, hvp=True)
    _, *gradients, product = case.run(f)
    case.compare(tuple(gradients), "gradient with hvp=True")
    ends = [as_taken(case.second[u], u.kind) for u in case.program.unknowns]
    with np.errstate(all="ignore"):
        case.compare(product(*ends), "hvp=True", second=True)


def pack(case: Case) -> None:
    """A captured tensor packed."""
    names = [
        case.writer.names.of[v]
        for v in case.program.params
        if isinstance(v.kind, Tensor) and v not in case.program.unknowns
    ]
    if not names:
        raise Skipped("nothing to pack")
    f = case.derivation.compile(
        pack=case.rng.choice(names), value=case.rng.random() < 0.3 and case.program.mode == "grad"
    )
    found = case.run(f, extra=extra_arguments(case, f))
    items = found if isinstance(found, tuple) else (found,)
    case.compare(tuple(items[-len(case.program.unknowns) :]), "gradient with pack=")


def memory(case: Case) -> None:
    """Within a limit of memory, or refused before."""
    limit = int(10 ** case.rng.uniform(1, 5))
    try:
        f = case.derivation.compile(memory=limit, value=case.rng.random() < 0.3 and case.program.mode == "grad")
        found = case.run(f, extra=extra_arguments(case, f))
    except BudgetError:
        return
    items = found if isinstance(found, tuple) else (found,)
    case.compare(tuple(items[-len(case.program.unknowns) :]), f"gradient with memory={limit}")


def single(case: Case) -> None:
    """Arrays in single precision."""
    if case.weather in EXTREMES or any(isinstance(x, SUPPLIED) for x in case.arrays.values()):
        raise Skipped("no single precision here")
    largest = oracle.largest(case.program, case.data)[0]
    if largest > LARGEST_OF_SINGLE:
        raise Skipped("single precision overflows")
    if largest * np.finfo(np.float32).eps > 1e-2 * float(np.abs(case.slopes).max(initial=0)):
        raise Skipped("the derivative is a small difference, as 1 - tanh² is")
    f = case.derivation.compile()

    def halved(name: str, x: Any) -> Any:
        x = np.asarray(x)
        if x.dtype.kind in "iu":
            return x
        return x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)[()]

    found = case.run(f, halved, extra_arguments(case, f))
    allowed = float(np.max(case.sensitivity(False))) * 1e6
    if not np.isfinite(allowed) or allowed > 1e-4 * float(np.abs(case.slopes).max(initial=0)):
        raise Skipped("badly conditioned for single precision")
    case.compare(found, "gradient in single precision", tolerance=5e-2)


def strides(case: Case) -> None:
    """Views, Fortran order, arrays that are read only."""
    f = case.derivation.compile()
    how = case.rng.choice(("fortran", "reversed", "strided", "read only"))

    def viewed(name: str, x: Any) -> Any:
        if not np.ndim(x):
            return x
        match how:
            case "fortran":
                return np.asfortranarray(x)
            case "reversed":
                return np.ascontiguousarray(np.flip(x))[tuple(slice(None, None, -1) for _ in x.shape)]
            case "strided":
                big = np.full(tuple(2 * n for n in x.shape), np.nan, x.dtype)
                view = big[tuple(slice(None, None, 2) for _ in x.shape)]
                view[...] = x
                return view
        x = x.copy()
        x.flags.writeable = False
        return x

    before = {k: np.array(x, copy=True) for k, x in case.arrays.items() if isinstance(x, np.ndarray)}
    case.compare(case.run(f, viewed, extra_arguments(case, f)), f"gradient of arrays that are {how}")
    for k, x in before.items():
        if not np.array_equal(x, case.arrays[k], equal_nan=True):
            raise Failure("wrong", f"the argument {k} was changed")


def read_back(case: Case) -> None:
    """The printed result, read again and compiled."""
    from combdiff.language.inference.infer import infer
    from combdiff.language.parsing.parser import parse
    from combdiff.run.compiled import Compiled

    text = str(case.derivation)
    taken = sizes_named_like_values(text)
    if taken:
        raise Failure("reads not back", f"a size is called {taken[0]}, and so is a value:\n{text}")
    try:
        term = infer(parse(text))
    except CombDiffError as error:
        raise Failure("reads not back", f"{error}") from error
    f = Compiled(term)
    # a parameter that is called as a function that the result calls gets another name
    names = {p.name: q.name for p, q in zip(all_parameters(term), all_parameters(case.derivation.term), strict=False)}
    case.compare(case.run(f, extra=extra_arguments(case, f), names=names), "the printed result")


def all_parameters(t: Any) -> list[Any]:
    """Those of leading maps."""
    return [*t.params, *all_parameters(t.body)] if type(t).__name__ == "Lam" else []


def sizes_named_like_values(text: str) -> list[str]:
    """Names of sizes in a printed result that are names of parameters or definitions, too; an index may have one.

    >>> sizes_named_like_values("(n::R) -> (x::RV{n}) -> (i::N{n}) -> n")
    ['n']
    >>> sizes_named_like_values("(x::RV{n}) -> n -> x(n)")
    []
    """
    sizes = {name.strip() for listed in re.findall(r"\{([^{}]*)\}", text) for name in listed.split(",")}
    sizes -= set(re.findall(r"([^\W\d]\w*)::Int", text))
    indices = {"N", "I", *re.findall(r"@domain ([^\W\d]\w*)", text)}
    typed = re.findall(r"([^\W\d]\w*)\s*::\s*(\(?)\s*(\w+)", text)
    values = {name for name, bracket, kind in typed if bracket or kind not in indices}
    values |= set(re.findall(r"([^\W\d]\w*) = ", text))
    return sorted((sizes & values) - {""})


def evaluated(case: Case) -> None:
    """The package's own evaluation of the result."""
    from combdiff.arrays.lower.signature import result_of
    from combdiff.meaning.evaluate import evaluate, sizes_of
    from combdiff.terms.terms import Lam

    if any(isinstance(x, SUPPLIED) for x in case.arrays.values()) or any(r.sort == "list" for r in case.titles):
        raise Skipped("not evaluated with functions or lists")
    term = case.derivation.term
    f = case.derivation.compile()
    given = {**case.arrays, **extra_arguments(case, f)}
    values: dict[Any, Any] = {v: given[v.name] for v in result_of(term).params}
    sizes = sizes_of(values) | {
        a.kind.domain: case.size_of(a.kind.domain.name)
        for a in f.arguments
        if isinstance(a.kind, Index) and a.kind.domain
    }
    while isinstance(term, Lam) and all(p in values for p in term.params):
        term = term.body
    with np.errstate(all="ignore"):
        case.compare(evaluate(term, values, sizes), "evaluate")


def pickled(case: Case) -> None:
    """Pickled and restored."""
    d = pickle.loads(pickle.dumps(case.derivation))
    if str(d) != str(case.derivation):
        raise Failure("wrong", "pickling changes the result")
    f = pickle.loads(pickle.dumps(d.compile()))
    case.compare(case.run(f, extra=extra_arguments(case, f)), "gradient after pickling")


def source(case: Case) -> None:
    """The source alone, executed."""
    d = case.derivation
    if any(r.sort == "list" for r in case.titles):
        raise Skipped("lists are checked before the source runs")
    space: dict[str, Any] = {}
    text = d.source()
    exec(compile(text, "<source>", "exec"), space)
    f = d.compile()
    function = space["gradient" if case.program.mode == "grad" else case.program.mode]
    args = [case.argument(a, extra_arguments(case, f), lambda n, x: x) for a in f.arguments if not a.optional]
    with np.errstate(all="ignore"):
        case.compare(function(*args), "source")


def sympy(case: Case) -> None:
    """SymPy's objects, or a refusal in words."""
    try:
        str(case.derivation.sympy(inline=case.rng.random() < 0.5))
    except UnsupportedError:
        return


def formulas(case: Case) -> None:
    """LaTeX in both forms, matrix text, and the explanation."""
    from combdiff.explanation import explanation

    d = case.derivation
    d.latex()
    d.latex(form="matrix")
    d.matrix_text()
    explanation(d)
    str(d.steps)


LONGEST_LOOPS = 200_000


def check(case: Case) -> None:
    """The check of the package, on its own data; where bounds fix many values its loops may take long."""
    terms = (case.derivation.term, case.derivation.objective)
    if max(evaluation_steps(t, sizes) for t in terms for sizes in two_sizes(t, few=FEWEST)) > LONGEST_LOOPS:
        raise Skipped("d.check() takes long")
    try:
        report = case.derivation.check(case.rng.randrange(1000))
    except UnsupportedError:
        return
    if not report:
        if not np.isfinite(case.sensitivity(False)).all():
            raise Skipped("rounding decides on which side of a jump a number lies")
        raise Failure("check", f"d.check() is false: {report}")


def broken_symmetry(case: Case) -> None:
    """Arrays against their declaration are refused."""
    suited = [v for v in case.program.params if breakable(v)]
    if not suited:
        raise Skipped("no declared symmetry")
    v = case.rng.choice(suited)
    f = case.derivation.compile(check=case.rng.choice(("sample", "full")))
    name = case.writer.names.of[v]
    if name not in {a.name for a in f.arguments}:
        raise Skipped("the array is not needed")
    array, how = broken(v, case.data[v], case.rng)
    shape = np.shape(case.arrays[name])
    try:
        case.run(f, lambda n, x: array.reshape(shape) if n == name else x, extra_arguments(case, f))
    except ArrayError:
        return
    raise Failure("accepted", f"{name}, whose symmetry is broken ({how}), is taken")


def again(case: Case) -> None:
    """Deriving twice gives one text."""
    second = case.derive(case.program.mode)
    if any(step.spent for d in (case.derivation, second) for step in d.steps):
        raise Skipped("what a budget of time leaves depends on the clock")
    if str(second) != str(case.derivation):
        raise Failure("wrong", "the same program has two results")


def problem(case: Case) -> None:
    """What a minimiser takes."""
    if case.program.mode != "grad" or any(
        isinstance(v.kind, Tensor) and v.kind.space and v.kind.space.laws for v in case.program.unknowns
    ):
        raise Skipped("no minimisation")
    if any(r.sort == "list" for r in case.titles) or any(isinstance(x, SUPPLIED) for x in case.arrays.values()):
        raise Skipped("lists and functions are left to others")
    asked = case.derivation.compile(value=True).arguments
    sizes = {a.name: case.size_of(a.kind.domain.name) for a in asked if isinstance(a.kind, Index) and a.kind.domain}
    p = case.derivation.problem(**case.arrays, **sizes)
    with np.errstate(all="ignore"):
        found = p.unpack(p.jac(p.x0))
        case.compare(found, "problem.jac")
        k = p.pack(*(as_taken(case.second[u], u.kind) for u in case.program.unknowns))
        case.compare(p.unpack(p.hessp(p.x0, k)), "problem.hessp", second=True)


def kept(case: Case) -> None:
    """A function of the program that stays unknown: derived, printed, read back, checked."""
    from combdiff.language.inference.infer import infer
    from combdiff.language.parsing.parser import parse

    names = [case.writer.names.of[v] for e in walk(case.program.body) if isinstance(e, Block) for v in _functions(e)]
    if not names or case.program.mode != "grad":
        raise Skipped("no function to keep")
    d = case.derive("grad", keep=case.rng.choice(names))
    try:
        infer(parse(str(d)))
    except CombDiffError as error:
        raise Failure("reads not back", f"{error}\n{d}") from error
    d.latex()
    try:
        report = d.check()
    except UnsupportedError:
        return
    if not report:
        raise Failure("check", f"d.check() is false with keep=: {report}")


def _functions(block: Block) -> list[Var]:
    """The functions of numbers that a block defines."""
    found = [d.names[0] for d in block.definitions if isinstance(d.value.kind, Function)]
    return [v for v in found if isinstance(v.kind, Function) and all(isinstance(k, Number) for k in v.kind.params)]


def wrt(case: Case) -> None:
    """By other parameters than the last."""
    from dataclasses import replace

    if case.program.mode != "grad" or case.program.marked or len(case.program.groups) < 2:
        raise Skipped("no other parameters")
    group = case.rng.choice(case.program.groups[:-1])
    numbers = [v for v in group if isinstance(v.kind, Tensor | Number)]
    if not numbers:
        raise Skipped("no other parameters")
    v = case.rng.choice(numbers)
    other = Case(replace(case.program, groups=(*case.program.groups, (v,))), case.weather, case.seed)
    other.__dict__.update(writer=case.writer, text=case.text, data=case.data, arrays=case.arrays)
    if not other.finite:
        raise Skipped("not finite by another parameter")
    f = case.derive("grad", wrt=case.writer.names.of[v]).compile()
    other.compare(other.run(f), f"gradient by {case.writer.names.of[v]}")


Mode = Callable[[Case], None]
MODES: dict[str, tuple[Mode, float]] = {
    "value": (value, 2),
    "expand": (expand, 1.5),
    "hvp": (hvp, 1.5),
    "joint": (joint, 1.5),
    "jvp": (forward.jvp, 1.5),
    "jacobian": (forward.jacobian, 1),
    "simplified": (forward.simplified, 0.7),
    "pack": (pack, 1),
    "memory": (memory, 1),
    "single": (single, 0.5),
    "strides": (strides, 1),
    "read_back": (read_back, 3),
    "evaluated": (evaluated, 0.5),
    "pickled": (pickled, 0.7),
    "source": (source, 0.5),
    "sympy": (sympy, 0.7),
    "formulas": (formulas, 1),
    "check": (check, 2),
    "broken_symmetry": (broken_symmetry, 1),
    "again": (again, 0.2),
    "problem": (problem, 0.5),
    "wrt": (wrt, 1),
    "kept": (kept, 0.3),
    "cupy": (libraries.cupy, 0.7),
    "torch": (libraries.torch, 0.5),
    "dask": (libraries.dask, 0.15),
    "jax": (libraries.jax, 0.15),
    "jit": (libraries.jit, 0.15),
    "second_opinion": (libraries.second_opinion, 0.1),
}
__all__ = ["MODES", "Mode", "Var", "over_complex"]
