"""A derivation: a program, its derivative, how it was found, and what can be made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Literal, overload

from combdiff.arrays.plan import Plan
from combdiff.arrays.shapes import sizes_of
from combdiff.boundary import boundaries
from combdiff.budget import NODES, SECONDS, Budget
from combdiff.calculus.modes import MODES, differentiate, marked_program, parameters_of, without_derivatives
from combdiff.errors import CombDiffError, UnsupportedError
from combdiff.gate.gate import Gate
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.run.given import Given
from combdiff.shown import Bundle, brief, shown_by
from combdiff.simplify.account import Progress, Step, Steps
from combdiff.simplify.choose import index_names
from combdiff.simplify.stages import CANCELS, COLLECT, Simplifier
from combdiff.terms.conditions.guards import divides_by_zero
from combdiff.terms.recursion import deep_recursion, rare_collections
from combdiff.terms.terms import Diff, Lam, Let, Term, Traverser, apply, subterms
from combdiff.terms.types import Map
from combdiff.valued import note_on_value, with_value

if TYPE_CHECKING:
    from combdiff.arrays.lower.forms import Forms
    from combdiff.arrays.passes.distances import Distances
    from combdiff.checking.report import Report
    from combdiff.jupyter.explorer import Explorer
    from combdiff.minimizing import Problem
    from combdiff.notation.symbolic import SymbolicResult
    from combdiff.pictures.drawing import Picture
    from combdiff.run.compiled import Check, Compiled
    from combdiff.run.hessian import Joint
    from combdiff.terms.archive import Archive


SHOWING = ("latex", "mathml", "matrix_text", "unicode_text", "sympy", "picture", "explore")


@boundaries(*SHOWING, "plan", "source", "compile", "problem", "check")
@dataclass(frozen=True)
class Derivation:
    """The derivative of a program. Made by `grad`, `pullback` and `hvp`.

    >>> import combdiff as cd
    >>> d = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))")
    >>> print(d)
    (A::Her) -> (x::CV) -> i -> 2 * sum(j, A(i, j) * x(j))

    `result`, which `str(d)` is too, is the derivative in the language, declarations included; `text` is the program
    that was given, and `steps` says how the derivative was found. `expand`: products and shared values are multiplied
    out, in values and products with the Hessian, too, which keep to the budget as well.
    """

    text: str
    mode: str
    program: Term
    term: Term
    steps: Steps
    expand: bool = False
    seconds: float = SECONDS
    nodes: float = NODES
    name: str = "<text>"

    def __str__(self) -> str:
        from combdiff.language.printing.printer import program_text

        with deep_recursion():
            return program_text(self.term)

    def __repr__(self) -> str:
        return f"<{MODES[self.mode].title}: {brief(str(self))}>"

    @property
    def result(self) -> str:
        """The derivative as a program of the language, which `str(d)` is, too; `text` is the program that was given."""
        return str(self)

    def __reduce__(self) -> tuple[object, ...]:
        from combdiff.terms.archive import Archive

        terms = Archive.of([self.program, self.term, *(step.term for step in self.steps)])
        accounts = tuple({f.name: getattr(s, f.name) for f in fields(s) if f.name != "term"} for s in self.steps)
        return _restored, (self.text, self.mode, terms, accounts, self.expand, self.seconds, self.nodes, self.name)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        from combdiff.jupyter.display import derivation_bundle

        return derivation_bundle(self)

    def explore(self) -> Explorer:
        """The stages of the derivation, one at a time under a slider, in a notebook; `str` is all of them as text.

        >>> import combdiff as cd
        >>> [page.title for page in cd.grad("(x::RV) -> sum(i, x(i)^2)").explore().pages][:3]
        ['program', 'B/C form', 'raw pullback']

        The slider needs ipywidgets: pip install 'combdiff[notebooks]'.
        """
        from combdiff.jupyter.explorer import Explorer

        return Explorer(self)

    def latex(self, form: str = "index", width: int = 100, style: str = "map") -> str:
        """The result as LaTeX: `form="index"` as in Eq. 53, or `"matrix"` where all contractions are of two indices.

        >>> import combdiff as cd
        >>> d = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))")
        >>> print(d.latex(), "or", d.latex("matrix"))
        A \\mapsto x \\mapsto i \\mapsto 2 \\sum_{j} A_{i,j}\\, x_{j} or A \\mapsto x \\mapsto 2 A x
        >>> print(d.latex(style="paper"))
        \\begin{aligned}
        E(x) &= \\sum_{ij} x_{i}^{*} A_{ij}\\, x_{j} \\\\
        \\frac{\\partial E}{\\partial x_{i}} &= 2 \\sum_{j} A_{ij}\\, x_{j}
        \\end{aligned}

        In the style "paper" the objective stands above, each derivative has its left-hand side, and names are explained
        below. `width` is where lines are broken, in signs.
        """
        from combdiff.notation.latex import latex
        from combdiff.notation.paper import paper_latex

        if style not in ("map", "paper"):
            raise UnsupportedError(f"there is no style {style!r}", remedy='ask for style="map" or style="paper"')
        with deep_recursion():
            if style == "paper" and isinstance(self.term, Lam):
                return paper_latex(self.objective, self.term, self.mode, form=form, width=width)
            return latex(self.term, form=form, width=width)

    def mathml(self, form: str = "index", style: str = "paper") -> str:
        """The result as MathML, which web pages show without a program; forms and styles are those of `latex`.

        Needs latex2mathml: pip install 'combdiff[mathml]'.
        """
        from combdiff.optional import optional

        converter = optional("latex2mathml.converter", "mathml", "MathML")
        # a table of equations, under the name that the converter knows
        found: str = converter.convert(self.latex(form, style=style).replace("{aligned}", "{align*}"), display="block")
        return found

    def picture(self) -> Picture:
        """The contractions of the result as networks, in a figure of matplotlib; a row for each value that has a name.

        Tensors are nodes with their slots numbered from 1, dashed if conjugated; a line is an index, a dot one that
        more than two slots share, and a leg that ends in its name one that is not summed over. Needs matplotlib:
        pip install 'combdiff[notebooks]'.
        """
        from combdiff.optional import optional
        from combdiff.pictures.network import rows_of

        optional("matplotlib.figure", "notebooks", "a picture")
        from combdiff.pictures.drawing import drawn

        with deep_recursion():
            return drawn(rows_of(self.term, self._result_names()))

    def _result_names(self) -> list[str]:
        """What the results are called in a picture: ∇ of each unknown, its cotangent, a product with the Hessian."""
        from combdiff.arrays.lower.signature import result_of
        from combdiff.notation.latex_names import Scope
        from combdiff.notation.signs import latex_signs

        sign = MODES[self.mode].sign
        parts = result_of(self.term)
        scope = Scope(signs=latex_signs(self.term)).bind(parts.params)
        names = [sign.format(scope[p]) for p in self.objective.params]
        return names if len(names) == len(parts.outputs) else [sign.format(n + 1) for n in range(len(parts.outputs))]

    def sympy(self, inline: bool = False) -> SymbolicResult:
        """The result as SymPy's objects: `definitions` of shared values, and `results` with indices and expression.

        >>> import combdiff as cd
        >>> s = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").sympy()
        >>> s.indices, s.expression
        ((i,), 2*Sum(A[i, j]*x[j], (j, 0, n - 1)))

        With `inline`, shared values stand where they are used, and there are no definitions. `arguments` holds the
        symbols by name, `shapes` says which size is which. Raises UnsupportedError for what SymPy has no
        object for, such as linear maps and roots.
        """
        from combdiff.notation.symbolic import symbolic

        with deep_recursion():
            return symbolic(self.term, self.function_name(False), inline)

    def matrix_text(self) -> str:
        """The result in matrix form as plain text, such as `2 A x`; index form where there is none."""
        from combdiff.notation.matrix.text import matrix_text

        with deep_recursion():
            return matrix_text(self.term)

    def unicode_text(self) -> str:
        """The objective and the result in plain signs, to be read.

        >>> import combdiff as cd
        >>> print(cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").unicode_text())
        in    x ↦ Σ_ij x(i)* A(i,j) x(j)
        out   i ↦ 2 Σ_j A(i,j) x(j)
        """
        from combdiff.notation.plain import plain_text

        with deep_recursion():
            return plain_text(self.objective, self.term)

    def plan(
        self,
        backend: str = "numpy",
        /,
        *,
        value: bool = False,
        pack: str | Sequence[str] = (),
        memory: int | str | None = None,
        distances: Distances = "differences",
        ir: bool = False,
        **shapes: object,
    ) -> Plan:
        """The statements that compute the result, for arrays of the shapes given; prints as a table of costs.

        With `ir` it prints as the array program that code is written from, a line an operation, which
        `combdiff.arrays.text.read` makes a plan of again. With `value`, `pack`, `memory` and `distances` the statements
        are those of `compile` with the same; where the program has such a name, write `value_=True`. Raises BudgetError
        where `memory`, bytes or text such as "2 GB", is too little.
        """
        from combdiff.arrays.lower.lower import guessed_sizes
        from combdiff.arrays.packing.packed_plan import packed
        from combdiff.arrays.passes.memory import bytes_of
        from combdiff.arrays.passes.schedule import scheduled
        from combdiff.emit.emit import spelling_of

        given = Given.of(self.term, shapes)
        forms = self._runnable(given.option("value", value, False), given.option("distances", distances, "differences"))
        pack, memory = given.option("pack", pack, ()), given.option("memory", memory, None)
        as_text = bool(given.option("ir", ir, False))
        backend = given.keyword("backend", backend)
        with _told_where(self.text, self.name):
            term = forms.formula
            names, spelling, limit = self._names_to_pack(pack), spelling_of(backend), bytes_of(memory)
            sizes = {**guessed_sizes(term), **sizes_of(term, given.rest)}
            plan = scheduled(packed(forms.plan(sizes, limit), names), spelling, limit)
            return replace(plan, as_text=True) if as_text else plan

    def source(
        self,
        backend: str = "numpy",
        /,
        *,
        value: bool = False,
        hvp: bool = False,
        pack: str | Sequence[str] = (),
        memory: int | str | None = None,
        distances: Distances = "differences",
        name: str = "",
        **shapes: object,
    ) -> str:
        """Stand-alone source text; with `value` it returns the objective's value, or values, before the derivative.

        With `hvp` it returns last a function of a direction, the Hessian-vector product at that point. With
        `pack=("J",)` it defines `pack_J`, and its function takes `pack_J(J)` in the place of J; see `compile`.
        Contractions are in the order that is best for arrays of the `shapes` given, within `memory`, as for `plan`, and
        `distances` are those of `compile`. The function is called `name`, or after what it returns.
        """
        from combdiff.arrays.passes.memory import bytes_of
        from combdiff.emit.emit import source, spelling_of
        from combdiff.run.hessian import products_source

        given = Given.of(self.term, shapes)
        value, hvp = given.option("value", value, False), given.option("hvp", hvp, False)
        pack, memory = given.option("pack", pack, ()), given.option("memory", memory, None)
        distances = given.option("distances", distances, "differences")
        backend = given.keyword("backend", backend)
        names, limit = self._names_to_pack(pack), bytes_of(memory)
        name = given.option("name", name, "") or self.function_name(value, hvp)
        if not name.isidentifier() or iskeyword(name) or name in spelling_of(backend).reserved:
            raise UnsupportedError(f"a function cannot be called {name!r} here", remedy='give a name such as "energy"')
        title = self._title(value)
        with _told_where(self.text, self.name):
            if hvp:
                joint = self._joint(value, distances)
                return products_source(joint, backend, name, title, names, limit, sizes_of(joint.term, given.rest))
            forms = self._runnable(value, distances)
            return source(forms, sizes_of(forms.formula, given.rest), backend, name, title, names, limit)

    @overload
    def compile(
        self,
        backend: str = "numpy",
        *,
        value: Literal[True],
        hvp: bool = False,
        check: Check = "sample",
        pack: str | Sequence[str] = (),
        memory: int | str | None = None,
        distances: Distances = "differences",
    ) -> Compiled[tuple[Any, ...]]: ...

    @overload
    def compile(
        self,
        backend: str = "numpy",
        *,
        value: bool = False,
        hvp: Literal[True],
        check: Check = "sample",
        pack: str | Sequence[str] = (),
        memory: int | str | None = None,
        distances: Distances = "differences",
    ) -> Compiled[tuple[Any, ...]]: ...

    @overload
    def compile(
        self,
        backend: str = "numpy",
        *,
        value: bool = False,
        hvp: bool = False,
        check: Check = "sample",
        pack: str | Sequence[str] = (),
        memory: int | str | None = None,
        distances: Distances = "differences",
    ) -> Compiled[Any]: ...

    def compile(
        self,
        backend: str = "numpy",
        *,
        value: bool = False,
        hvp: bool = False,
        check: Check = "sample",
        pack: str | Sequence[str] = (),
        memory: int | str | None = None,
        distances: Distances = "differences",
    ) -> Compiled[Any]:
        """A callable of arrays, in the order of the arguments: captured ones, the differentiated, cotangents.

        It returns the derivative; with `value` the value before it, and with `hvp` a function last: after
        `value, gradient, hvp = f(A, x)`, `hvp(k)` is the Hessian at x times k, from what was computed at x already.
        `check` says how much of an array is held against its declared symmetries at its first call: "sample" (4,096
        entries), "full" or False. `memory`, bytes or text such as "2 GB", limits what the arrays that a call makes take
        at once, results among them: what is too large is computed in loops over an index. Raises ArrayError for arrays
        that do not fit, and BudgetError before any work is done where no loops keep to the limit.

        A squared distance Σ (x − y)² is made of differences. With `distances="expanded"` it is Σ x² + Σ y² − 2 Σ x y,
        whose product of matrices is several times faster; digits are lost where points are near one another, and what
        is positive may come out a little below zero.

        `pack=("J",)` makes a packed copy of J at the first call with an array, and only that is read in calls with the
        same array afterwards: where J has symmetries, the rows that the others follow from. The docstring of `pack_J`
        in `source` says how much memory the copy takes. J is checked in full before. After it was changed in place,
        `repack()` is to be called. UnsupportedError: what is named is no captured array, or the backend is "dask".
        """
        from combdiff.arrays.passes.memory import bytes_of
        from combdiff.run.compiled import Compiled
        from combdiff.run.hessian import CompiledHessian

        if check not in ("sample", "full", False):
            raise UnsupportedError(f"check is {check!r}", remedy='give "sample", "full" or False')
        limits = check, self._names_to_pack(pack), bytes_of(memory)
        code = backend, self.function_name(value, hvp), self._title(value), *limits
        with _told_where(self.text, self.name):
            joint = self._joint(value, distances) if hvp else None
            return CompiledHessian(joint, *code) if joint else Compiled(self._runnable(value, distances), *code)

    def _names_to_pack(self, pack: str | Sequence[str]) -> tuple[str, ...]:
        from combdiff.run.packed_arrays import names_to_pack

        return names_to_pack(pack, self.term, self.objective.params) if pack else ()

    def problem(
        self,
        /,
        *,
        check: Check = "sample",
        pack: str | Sequence[str] = (),
        manifold: str | Mapping[str, str] = "",
        **arrays: object,
    ) -> Problem:
        """The objective for `scipy.optimize.minimize`: `fun`, `jac`, `hessp` and `x0`, all of one real vector.

        >>> import combdiff as cd, numpy as np
        >>> from scipy.optimize import minimize
        >>> p = cd.grad("(a::RV) -> (x::RV) -> sum(i, (x(i) - a(i))^4)").problem(a=np.ones(2), x=np.zeros(2))
        >>> found = minimize(p.fun, p.x0, jac=p.jac, hessp=p.hessp, method="trust-ncg")
        >>> bool(np.allclose(p.unpack(found.x), 1, atol=0.1))
        True

        Captured arrays and functions are given by name, and so are the unknowns, where to start; see `Problem`. `check`
        and `pack` are as for `compile`; with `manifold="stiefel"` unknowns keep orthonormal columns. Where the program
        has a name such as check, the option is `check_`.
        """
        from combdiff.minimizing import Problem

        given = Given.of(self.term, arrays)
        check, pack = given.option("check", check, "sample"), given.option("pack", pack, ())
        return Problem(self, given.rest, check, pack, given.option("manifold", manifold, ""))

    def check(self, seed: int = 0) -> Report:
        """Compare with finite differences and the emitted code, on random data in the declared symmetries.

        The report is true if all agree to 10⁻⁶; `seed` chooses other data. Raises UnsupportedError where nothing can be
        compared, such as a program without a finite value.
        """
        from combdiff.checking.report import check

        with deep_recursion():
            return check(self, seed)

    @cached_property
    def objective(self) -> Lam:
        """What was differentiated: the map that the outermost derivative was taken of; inner ones stand in it."""
        t, result = self.program, self.term
        while isinstance(t, Lam) and isinstance(result, Lam):
            t, result = t.body, result.body
        match t:
            case Diff(_, Lam() as f):
                return f
            case Diff(_, Diff() as inner) if isinstance(result, Lam) and isinstance(inner.type, Map):
                # of a derivative: a map of the result's own parameters, but for the last cotangents
                own = result.params[: len(inner.type.params)]
                return Lam(own, apply(inner, *own))
        raise AssertionError("a marked program is a derivative of a known map, below leading maps")

    @cached_property
    def differentiated(self) -> Term:
        """The objective with its own derivatives written out, as the outermost derivative was taken of it."""
        simplifier = self._simplifier(expand=False)
        with deep_recursion():
            return without_derivatives(
                self.objective, lambda f, inner: simplifier(f, {*inner, *self.objective.params}), simplifier.ask
            )

    @cached_property
    def gradient(self) -> Derivation:
        """The gradient of the same program, valid in the full space: what a Hessian product is the pullback of."""
        return _derived(self.text, "grad", self.program, self._simplifier(self.expand, full_space=True), self.name)

    @cached_property
    def products(self) -> Derivation:
        """The Hessian-vector product of the same program, which `hvp=True` stands for."""
        return _derived(self.text, "hvp", self.program, self._simplifier(self.expand), self.name)

    def _simplifier(self, expand: bool, full_space: bool = False) -> Simplifier:
        """A simplifier with a budget of its own, like the one that found this derivative."""
        return Simplifier(Gate(), expand, seconds=self.seconds, nodes=self.nodes, full_space=full_space)

    def _runnable(self, value: bool, distances: Distances = "differences") -> Forms:
        """The derivative in the forms that can be run, with the objective's `value` first."""
        if distances not in ("differences", "expanded"):
            raise UnsupportedError(f"distances is {distances!r}", remedy='give "differences" or "expanded"')
        forms = self._with_value if value else self._without_value
        return replace(forms, distances=distances)

    @cached_property
    def _without_value(self) -> Forms:
        from combdiff.arrays.lower.forms import Forms

        return Forms(self.term, self._flat, _same)

    @cached_property
    def _with_value(self) -> Forms:
        from combdiff.arrays.lower.forms import Forms

        flat = self._flat
        with deep_recursion():
            simplifier = self._simplifier(expand=False)
            f = without_derivatives(self.objective, simplifier, simplifier.ask)
            if isinstance(f, Lam):
                f = self._simplifier(self.expand).value(f)
            budget = Budget.of(self.seconds)
            return Forms(with_value(self.term, f, budget), flat and with_value(flat, f, budget), _same)

    @cached_property
    def _flat(self) -> Term | None:
        """The derivative before common factors were put in front and parts were named; None if that was not tried."""
        collected = [n for n, step in enumerate(self.steps) if step.name == COLLECT]
        if not collected or not isinstance(self.steps[collected[-1]].term, Lam):
            return None
        before, last = self.steps[collected[-1] - 1].term, self.steps[-1].term
        return Traverser(lambda t: before if t == last else t)(self.term)

    def _title(self, value: bool) -> str:
        """What emitted code says of itself."""
        return f"{self}\n\n{CANCELS}" if self.expand and value else str(self)

    def _joint(self, value: bool, distances: Distances = "differences") -> Joint:
        """The derivative, and the Hessian-vector product of the same program."""
        from combdiff.run.hessian import joined

        if self.mode != "grad":
            raise UnsupportedError(
                f"hvp=True stands next to a gradient, and this is a derivation of cd.{self.mode}",
                remedy="use cd.grad(text).compile(hvp=True), or cd.hvp(text) for the product alone",
            )
        with deep_recursion():
            return joined(self._runnable(value, distances), self.products._runnable(value=False))

    def function_name(self, value: bool, hvp: bool = False) -> str:
        """What code for it is called if nobody says."""
        name = MODES[self.mode].function
        if hvp:
            return f"value_{name}_and_hvp" if value else f"{name}_and_hvp"
        return f"value_and_{name}" if value else name


def _same(before: Term, after: Term) -> None:
    """Raise CheckError if what is chosen to be run does not have the value of what it was chosen for."""
    with suppress(UnsupportedError, OverflowError):
        Gate().same(before, after, "choosing what to run")


@contextmanager
def _told_where(text: str, name: str) -> Iterator[None]:
    """An error that comes up meanwhile is told with its place in the program, if what it is about stands there."""
    try:
        with deep_recursion():
            yield
    except CombDiffError as error:
        from combdiff.language.places import find_place

        find_place(error, text, name)
        raise


def _restored(text: str, mode: str, archive: Archive, accounts: Sequence[Mapping[str, Any]], *how: Any) -> Derivation:
    """A derivation that was pickled or copied; `how` it was simplified."""
    program, term, *stages = archive.terms()
    steps = (Step(term=stage, **account) for stage, account in zip(stages, accounts, strict=True))
    return Derivation(text, mode, program, term, Steps(steps), *how)


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
) -> Derivation:
    """Read a program and take its derivative; see `combdiff.grad`."""
    with _told_where(text, name), rare_collections():
        program = marked_program(infer(parse(text, name), keep=keep), wrt)
        simplifier = Simplifier(Gate(), expand, seconds=seconds, nodes=nodes, progress=progress)
        return _derived(text, mode, program, simplifier, name)


def _derived(text: str, mode: str, program: Term, simplifier: Simplifier, name: str) -> Derivation:
    with deep_recursion():
        simplifier.names = index_names(program)
        simplifier.definitions = {var.name for t in subterms(program) if isinstance(t, Let) for var, _ in t.bindings}
        simplifier.rank = {p: n for n, p in enumerate(parameters_of(program))}
        note = note_on_value(program, simplifier.budget) if MODES[mode].of_real_part else ""
        simplifier.steps.append(Step("program", program, note=note))
        simplifier.announce("differentiate")
        term = differentiate(program, mode, simplifier, simplifier.ask)
        if divides_by_zero(term):
            raise UnsupportedError(
                "the derivative divides by zero, whatever the arrays hold",
                remedy="look for a part of the program that is always zero, by a declared symmetry perhaps",
            )
    steps = Steps(simplifier.steps)
    return Derivation(text, mode, program, term, steps, simplifier.expand, simplifier.seconds, simplifier.nodes, name)


# what a notebook shows of values that know no pages themselves; the pages are imported when one is shown


def _step_bundle(step: Step) -> Bundle:
    from combdiff.jupyter.display import step_bundle

    return step_bundle(step)


def _steps_bundle(steps: Steps) -> Bundle:
    from combdiff.jupyter.display import steps_bundle

    return steps_bundle(steps)


def _plan_bundle(plan: Plan) -> Bundle:
    from combdiff.jupyter.display import plan_bundle

    return plan_bundle(plan)


shown_by(Step, _step_bundle)
shown_by(Steps, _steps_bundle)
shown_by(Plan, _plan_bundle)
