"""A derivation: a program, its derivative, the stages between them, and methods that print and compile it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from functools import cached_property, partial
from keyword import iskeyword
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, overload

from combdiff.boundary import boundaries
from combdiff.budget import NODES, SECONDS, Budget
from combdiff.calculus.markers import MODES, SIMPLIFIED, innermost
from combdiff.errors import CombDiffError, UnsupportedError
from combdiff.notation.widths import WIDTH
from combdiff.records import dataclass
from combdiff.shown import Bundle, brief, shown_by
from combdiff.simplify.account import CANCELS, COLLECT, Step, Steps
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.terms import Diff, Lam, Term, Traverser, apply, substitute
from combdiff.terms.types import Domain, Map, Number, Type

if TYPE_CHECKING:
    from combdiff.arrays.lower.forms import Forms
    from combdiff.arrays.passes.distances import Distances
    from combdiff.arrays.plan import Plan
    from combdiff.checking.report import Report
    from combdiff.jupyter.explorer import Explorer
    from combdiff.minimizing.problem import Problem
    from combdiff.notation.symbolic import SymbolicResult
    from combdiff.pictures.drawing import Picture
    from combdiff.run.at_nodes import Discrete
    from combdiff.run.compiled import Check, Compiled
    from combdiff.run.given import Given
    from combdiff.run.hessian import Joint
    from combdiff.terms.archive import Archive


SHOWING = ("latex", "mathml", "matrix_text", "unicode_text", "sympy", "picture", "explore")


@boundaries(*SHOWING, "plan", "source", "compile", "problem", "check")
@dataclass(frozen=True)
class Derivation:
    """The derivative of a program, or the simplified program. `grad` and the other entry points return it.

    >>> import combdiff as cd
    >>> d = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))")
    >>> print(d)
    (A::Her) -> (x::CV) -> i -> 2 * sum(j, A(i, j) * x(j))

    >>> print(d.plan(A=(60, 60)))
    step  kind         operands  shape  FLOPs     bytes
    #1    GEMV         A, x      60     2.88e+04  960
    #2    elementwise  #1        60     120       960
    total 2.89e+04 FLOPs, 99 % of them in BLAS; largest intermediate 960 bytes, about 3.66e+04 at once
    >>> print(d.source().splitlines()[-1].strip())
    return 2 * (A @ x)
    >>> import numpy as np
    >>> value, gradient = d.compile(value=True)(np.eye(2), np.array([1, 1j]))
    >>> float(value.real), gradient
    (2.0, array([2.+0.j, 0.+2.j]))

    `result` (and `str(d)`) is the derivative as a program of the language, with its declarations; `text` is the given
    program, and `steps` lists the stages of the derivation. With `expand`, products and shared values are multiplied
    out, also in values and in products with the Hessian, which have the same budget. With `symmetric`, the gradient is
    projected on the declared symmetry of the unknown.

    A function on a domain `Line` is given to a compiled function as a Python function with its derivatives, or as an
    array of its values at the nodes of the rule `Line=`. Then `D_Line=` is the matrix that differentiates values at the
    nodes, or a function that makes it of the nodes, such as `cd.quadrature.differentiation`; the result is the
    derivative of the discrete functional, divided by the weights: an array for each function, the ends included.
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
    symmetric: bool = False

    def __str__(self) -> str:
        from combdiff.language.printing.printer import program_text

        with deep_recursion():
            return program_text(self.term)

    def __repr__(self) -> str:
        return f"<{MODES[self.mode].title}: {brief(str(self))}>"

    @property
    def result(self) -> str:
        """The derivative as a program of the language, the same as `str(d)`; `text` is the given program."""
        return str(self)

    def __reduce__(self) -> tuple[object, ...]:
        from combdiff.terms.archive import Archive

        own = ("term", "before")
        stages = [t for step in self.steps for t in (step.term, step.before or step.term)]
        terms = Archive.of([self.program, self.term, *stages])
        accounts = tuple(
            ({f.name: getattr(s, f.name) for f in fields(s) if f.name not in own}, s.before is None) for s in self.steps
        )
        how = self.expand, self.seconds, self.nodes, self.name, self.symmetric
        return _restored, (self.text, self.mode, terms, accounts, *how)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        from combdiff.jupyter.display import derivation_bundle

        return derivation_bundle(self)

    def explore(self) -> Explorer:
        """The stages of the derivation. A notebook shows the one that a button chooses; `str` returns all as text.

        >>> import combdiff as cd
        >>> [page.title for page in cd.grad("(x::RV) -> sum(i, x(i)^2)").explore().pages][:3]
        ['program', 'B/C form', 'raw pullback']

        A stage that changes nothing is left out, and what a stage changes is underlined. All stages take the same
        height, and the times are folded. Only Visual Studio Code needs ipywidgets: pip install 'combdiff[notebooks]'.
        """
        from combdiff.jupyter.explorer import Explorer

        return Explorer(self)

    def latex(self, form: str = "index", width: int = WIDTH, style: str = "map") -> str:
        """The result as LaTeX: `form="index"` as in Eq. 53, or `form="matrix"` for products of matrices.

        >>> import combdiff as cd
        >>> d = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))")
        >>> print(d.latex(), "or", d.latex("matrix"))
        A \\mapsto x \\mapsto i \\mapsto 2 \\sum_{j} A_{i,j}\\, x_{j} or A \\mapsto x \\mapsto 2 A x
        >>> print(d.latex(style="paper"))
        \\begin{aligned}
        E(x) &= \\sum_{ij} x_{i}^{*} A_{ij}\\, x_{j} \\\\
        \\frac{\\partial E}{\\partial x_{i}} &= 2 \\sum_{j} A_{ij}\\, x_{j}
        \\end{aligned}

        The style "paper" prints the objective above, a left-hand side for each derivative, and a list of names below.
        `width` is the maximal number of characters in a line.
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
        """The result as MathML, which browsers display without a script; forms and styles as for `latex`.

        >>> import combdiff as cd
        >>> cd.grad("(x::RV) -> sum(i, x(i)^2)").mathml()[:51]
        '<math xmlns="http://www.w3.org/1998/Math/MathML" di'

        Needs latex2mathml: pip install 'combdiff[mathml]'.
        """
        from combdiff.notation.mathml import mathml

        return mathml(self.latex(form, style=style))

    def picture(self) -> Picture:
        """The contractions of the result as networks, in a matplotlib figure with one row for each named value.

        >>> import combdiff as cd
        >>> type(cd.grad("(x::RV) -> sum(i, x(i)^2)").picture()).__name__
        'Picture'

        A node is a tensor, with its slots numbered from 1, and dashed if it is conjugated. A line is an index; a dot is
        an index that more than two slots share; a line that ends in a name is an index without a sum. Needs matplotlib:
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
        """The result as SymPy objects: `definitions` of shared values, and `results` with indices and expression.

        >>> import combdiff as cd
        >>> s = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").sympy()
        >>> s.indices, s.expression
        ((i,), 2*Sum(A[i, j]*x[j], (j, 0, n - 1)))

        With `inline`, shared values are substituted, and there are no definitions. `arguments` contains the symbols by
        name, `shapes` the sizes of their axes. Raises UnsupportedError if SymPy has no object for a part of the result,
        such as a linear map, a root, or a maximum over an index.
        """
        from combdiff.notation.symbolic import symbolic

        with deep_recursion():
            return symbolic(self.term, self.function_name(False), inline)

    def matrix_text(self) -> str:
        """The result in matrix form as plain text, or in index form if it has no matrix form.

        >>> import combdiff as cd
        >>> print(cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").matrix_text())
        2 A x
        """
        from combdiff.notation.matrix.text import matrix_text

        with deep_recursion():
            return matrix_text(self.term)

    def unicode_text(self) -> str:
        """The objective and the result as Unicode text for a terminal.

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
        checkpoint: bool = False,
        ir: bool = False,
        **shapes: object,
    ) -> Plan:
        """The array operations that compute the result for arrays of the given shapes; prints as a table of costs.

        With `ir` it prints as an array program, one operation in a line; `combdiff.arrays.text.read` reads this text
        back. `value`, `pack`, `memory`, `distances` and `checkpoint` have the same meaning as for `compile`; if the
        program has a parameter of such a name, write `value_=True`. Raises BudgetError if `memory` (bytes, or text such
        as "2 GB") is too small.
        """
        from combdiff.arrays.lower.lower import guessed_sizes
        from combdiff.arrays.packing.packed_plan import packed
        from combdiff.arrays.passes.loops.memory import bytes_of
        from combdiff.arrays.passes.schedule import scheduled
        from combdiff.arrays.shapes import sizes_of
        from combdiff.emit.emit import spelling_of

        given = self._given(shapes)
        forms = self._runnable(given.option("value", value, False), *_how(given, distances, checkpoint))
        pack, memory = given.option("pack", pack, ()), given.option("memory", memory, None)
        as_text = bool(given.option("ir", ir, False))
        backend = given.keyword("backend", backend)
        with told_where(self.text, self.name):
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
        checkpoint: bool = False,
        name: str = "",
        **shapes: object,
    ) -> str:
        """The source of a function that computes the derivative. It imports only its array library.

        With `value` the function returns the objective's value, or values, before the derivative. With `hvp` its last
        result is a function of a direction, the Hessian-vector product at that point. With `pack=("J",)` the source
        defines `pack_J`, and the function takes `pack_J(J)` instead of J; see `compile`. The order of contractions is
        the best one for arrays of the given `shapes`, within `memory`. `name` is the name of the function.
        """
        from combdiff.arrays.shapes import sizes_of
        from combdiff.emit.emit import source, spelling_of
        from combdiff.run.hessian import products_source

        given = self._given(shapes)
        value, hvp = given.option("value", value, False), given.option("hvp", hvp, False)
        pack, memory = given.option("pack", pack, ()), given.option("memory", memory, None)
        how = _how(given, distances, checkpoint)
        backend = given.keyword("backend", backend)
        _, names, limit = self._limits(False, pack, memory)
        name = given.option("name", name, "") or self.function_name(value, hvp)
        if not name.isidentifier() or iskeyword(name) or name in spelling_of(backend).reserved:
            raise UnsupportedError(f"a function cannot be called {name!r} here", remedy='give a name such as "energy"')
        with told_where(self.text, self.name):
            code = backend, name, self._title(value), names, limit
            if hvp:
                joint = self._joint(value, *how)
                return products_source(joint, *code, sizes_of(joint.term, given.rest))
            return source(forms := self._runnable(value, *how), sizes_of(forms.formula, given.rest), *code)

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
        checkpoint: bool = False,
        structured: bool = False,
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
        checkpoint: bool = False,
        structured: bool = False,
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
        checkpoint: bool = False,
        structured: bool = False,
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
        checkpoint: bool = False,
        structured: bool = False,
    ) -> Compiled[Any]:
        """A function of arrays. Its arguments are the given arrays, then the unknowns, then the cotangents.

        The function returns the derivative. With `value` it returns the value first; with `hvp` it returns a function
        last: after `value, gradient, hvp = f(A, x)`, `hvp(k)` is the Hessian at x times k, and reuses what f computed.
        `check` is the share of entries whose declared symmetries the function checks in the first call with an array:
        "sample" (4,096 entries), "full" or False; "states" checks all, and finds the first nan or infinity in loops.
        `memory` (bytes, or text such as "2 GB") limits the memory of the arrays that a call makes, results included, at
        any time; loops over an index keep to the limit. Raises ArrayError if an array does not fit, and BudgetError,
        before any work, if no loops keep to the limit.

        Squared distances Σ (x − y)² are made of differences. `distances="expanded"` multiplies them out: a product of
        matrices, several times faster, which loses digits (and signs) where points are near one another.

        With `checkpoint=True` a loop stores √T of the states that the loop backwards needs, and runs again from there.
        `pack=("J",)` makes a packed copy of J in the first call with an array; later calls with the same array read
        only this copy. If J has symmetries, the copy has only the rows from which the others follow. The docstring of
        `pack_J` in `source` says how much memory the copy takes. All entries of J are checked first. Call `repack()`
        after you change J in place. Raises UnsupportedError if J is not a given array, or if the backend is "dask".

        With `structured=True` the function returns tensors as `blocks` with `.dense()` and `.scipy()`: each block is a
        pattern (a δ in the result) and an array of the entries that are not zero.
        """
        code = backend, self.function_name(value, hvp), self._title(value), *self._limits(check, pack, memory)
        with told_where(self.text, self.name):
            if structured:
                return self._blocks(value, hvp or checkpoint, distances, *code)
            return self._compiled(value, hvp, distances, checkpoint, *code)

    def _given(self, values: Mapping[str, object]) -> Given:
        """What a caller gave by name, next to the names of the program."""
        from combdiff.run.given import Given

        return Given.of(self.term, values)

    def _compiled(self, value: bool, hvp: bool, distances: Distances, checkpoint: bool, *code: Any) -> Compiled[Any]:
        """The function that returns whole arrays."""
        from combdiff.arrays.lower.signature import result_of
        from combdiff.run.at_nodes import CompiledFunctional, intervals_of
        from combdiff.run.compiled import Compiled
        from combdiff.run.hessian import CompiledHessian

        if hvp:
            return CompiledHessian(self._joint(value, distances, checkpoint), *code)
        forms = self._runnable(value, distances, checkpoint)
        if any(intervals_of(p.kind) for p in result_of(self.term).params):
            return CompiledFunctional(forms, partial(self._discrete, value, distances, checkpoint, *code), *code)
        return Compiled(forms, *code)

    def _discrete(self, value: bool, distances: Distances, checkpoint: bool, *code: Any) -> Discrete:
        """The function of values at nodes that computes the same result."""
        from combdiff.arrays.lower.signature import result_of
        from combdiff.calculus.functions.nodes import grids_of
        from combdiff.run.at_nodes import Discrete, intervals_of

        if not isinstance(self.objective.body.type, Number):
            raise UnsupportedError(
                "the program maps functions to functions, and these are given by their values",
                remedy="give Python functions, or a functional: the integral of what the program returns",
            )
        d = self.at_nodes()
        with deep_recursion():
            f = self.differentiated
            assert isinstance(f, Lam), "a map stays one"
            grids = grids_of(self.program, f)
        arrays = {name for names in grids.values() for name in names}
        own = [v.name for v in result_of(d.term).params if v.name not in arrays]
        # points at which the derivative is a function come last, and are no arguments
        names = dict(zip([v.name for v in result_of(self.term).params], own, strict=False))
        by_unknown = [intervals_of(p.kind) for p in self.objective.params]
        results = by_unknown if self.mode in ("grad", "pullback", "hvp") else [()]
        run = d._compiled(value, False, distances, checkpoint, *code)
        return Discrete(run, grids, names, [()] * value + results)

    def _limits(
        self, check: Check, pack: str | Sequence[str], memory: int | str | None
    ) -> tuple[Check, tuple[str, ...], int | None]:
        """How much is checked, what is packed, and how many bytes there are."""
        from combdiff.arrays.passes.loops.memory import bytes_of

        if check not in ("sample", "full", "states", False):
            raise UnsupportedError(f"check is {check!r}", remedy='give "sample", "full", "states" or False')
        return check, self._names_to_pack(pack), bytes_of(memory)

    def _blocks(self, value: bool, others: bool, distances: Distances, *code: Any) -> Compiled[Any]:
        """The function that returns only the entries that are not zero."""
        from combdiff.arrays.lower.signature import result_of
        from combdiff.run.structured import CompiledBlocks

        if others or distances != "differences":
            raise UnsupportedError(
                "structured=True does not work with hvp, distances or checkpoint",
                remedy="leave hvp, distances and checkpoint out",
            )
        formula = self._runnable(value).formula
        count = len(result_of(self.term).outputs)
        values = len(result_of(formula).outputs) - count
        return CompiledBlocks(formula, values, self._rows(count), *code)

    def _rows(self, count: int) -> tuple[int, ...]:
        """The number of slots of each result that are rows of a matrix: in a Jacobian those of the value, else half."""
        from combdiff.arrays.lower.signature import result_of
        from combdiff.notation.paper import heads_of

        ranks = [len(e.type.params) if isinstance(e.type, Map) else 0 for e in result_of(self.term).outputs]
        heads = heads_of(self.objective, self.mode, count)
        if not heads:
            return tuple(rank // 2 for rank in ranks)
        kinds = [self.objective.params[head.unknown].kind for head in heads]
        return tuple(r - len(k.params) if isinstance(k, Map) else r for r, k in zip(ranks, kinds, strict=True))

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
        """The arguments of `scipy.optimize.minimize`: `x0`, one real vector, and its functions `fun`, `jac`, `hessp`.

        >>> import combdiff as cd, numpy as np
        >>> from scipy.optimize import minimize
        >>> p = cd.grad("(a::RV) -> (x::RV) -> sum(i, (x(i) - a(i))^4)").problem(a=np.ones(2), x=np.zeros(2))
        >>> found = minimize(p.fun, p.x0, jac=p.jac, hessp=p.hessp, method="trust-ncg")
        >>> bool(np.allclose(p.unpack(found.x), 1, atol=0.1))
        True

        Give the arrays and functions by name, and a starting point for each unknown; see `Problem`. `check` and `pack`
        as for `compile`; with `manifold="stiefel"` the unknowns keep orthonormal columns. If the program has a
        parameter with the name of an option, such as check, the option is `check_`.
        """
        from combdiff.minimizing.problem import Problem

        given = self._given(arrays)
        check, pack = given.option("check", check, "sample"), given.option("pack", pack, ())
        return Problem(self, given.rest, check, pack, given.option("manifold", manifold, ""))

    def check(self, seed: int = 0) -> Report:
        """Compare the result with finite differences and with the emitted code, on random data with its symmetries.

        >>> import combdiff as cd
        >>> report = cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").check()
        >>> bool(report), [finding.what for finding in report.findings]
        (True, ['finite differences', 'emitted NumPy code', 'printed text', 'matrix form'])

        The report is true if all agree to 10⁻⁶; another `seed` gives other data. Raises UnsupportedError if no
        comparison is possible, for example because the program has no finite value.
        """
        from combdiff.checking.report import check

        with deep_recursion():
            return check(self, seed)

    @cached_property
    def objective(self) -> Lam:
        """The map that was differentiated by the outermost derivative; it may contain inner derivatives."""
        t, result = self.program, self.term
        if self.mode == SIMPLIFIED:
            maps = []
            while isinstance(t, Lam):
                maps.append(t)
                t = t.body
            return maps[innermost(maps)]
        while isinstance(t, Lam) and isinstance(result, Lam):
            t, result = t.body, result.body
        match t:
            case Diff(_, Lam() as f):
                return f
            case Diff(_, Diff() as inner) if isinstance(result, Lam) and isinstance(inner.type, Map):
                # the map is itself a derivative: give it the parameters of the result, not the last cotangents
                own = result.params[: len(inner.type.params)]
                return Lam(own, apply(inner, *own))
        raise AssertionError("a marked program is a derivative of a known map, below leading maps")

    @cached_property
    def differentiated(self) -> Term:
        """The objective with its inner derivatives written out: the input of the outermost derivative."""
        from combdiff.calculus.modes import without_derivatives
        from combdiff.deriving import simplifier_like

        simplifier = simplifier_like(self, expand=False)
        with deep_recursion():
            return without_derivatives(
                self.objective,
                lambda f, inner, points=None: simplifier(f, {*inner, *self.objective.params}, points),
                simplifier.ask,
            )

    def at_nodes(self) -> Derivation:
        """The same derivative of the discrete functional: of the values of functions at the nodes of a rule.

        >>> import combdiff as cd
        >>> line = "@domain Line begin base = R; lower = 0; upper = 1 end; "
        >>> print(cd.grad(line + "(y::(Line) -> R) -> sum(x::Line, grad(y)(x)^2 / 2)").at_nodes())
        (w_Line::RV{n}, D_Line::RM{n, n}) -> (y::RV{n}) -> begin
          y1 = i -> sum(j, D_Line(i, j) * y(j))
          j -> sum(i, w_Line(i) * D_Line(i, j) * y1(i))
        end

        The arguments are the nodes `x_Line`, the weights `w_Line` and the differentiation matrix `D_Line`, as far as
        the program needs them; see `cd.quadrature.differentiation`. Functions are real or complex vectors (n,), and
        so is the gradient by one, (n,), which is that of the sum. Divided by the weights, it is the functional
        derivative at the nodes, with the adjoint of the matrix in the place of integration by parts: ends are free.

        Raises:
            UnsupportedError: a function is read at other places than variables of integrals, or something jumps.

        Source: Berrut & Trefethen, Barycentric Lagrange Interpolation, SIAM Review 46 (2004), section 9.
        """
        from combdiff.calculus.functions.nodes import at_nodes
        from combdiff.deriving import derived_again, simplifier_like

        with deep_recursion():
            f = self.differentiated
            assert isinstance(f, Lam), "a map stays one"
            program = at_nodes(self.program, f)
        return derived_again(self, self.mode, program, simplifier_like(self, self.expand))

    @cached_property
    def gradient(self) -> Derivation:
        """The gradient of the same program in the full space: `symmetric=True` does not project it."""
        from combdiff.deriving import derived_again, simplifier_like

        return derived_again(self, "grad", self.program, simplifier_like(self, self.expand, full_space=True))

    @cached_property
    def slopes(self) -> Derivation:
        """The same as `gradient`, in a form to be evaluated and not to be read: no factor is collected."""
        from combdiff.deriving import derived_again, simplifier_like

        simplifier = simplifier_like(self, expand=False, full_space=True, collect=False)
        return derived_again(self, "grad", self.program, simplifier)

    @cached_property
    def products(self) -> Derivation:
        """The Hessian-vector product of the same program, for `hvp=True`.

        >>> import combdiff as cd
        >>> print(cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").products)
        (A::Her) -> (x::CV, k::CV) -> i -> 2 * sum(j, A(i, j) * k(j))
        """
        from combdiff.deriving import derived_again, simplifier_like

        return derived_again(self, "hvp", self.program, simplifier_like(self, self.expand))

    def _runnable(self, value: bool, distances: Distances = "differences", checkpoint: bool = False) -> Forms:
        """The derivative in the forms that can be run, with the objective's `value` first."""
        if distances not in ("differences", "expanded"):
            raise UnsupportedError(f"distances is {distances!r}", remedy='give "differences" or "expanded"')
        forms = self._with_value if value else self._without_value
        return replace(forms, distances=distances, checkpoint=checkpoint)

    @cached_property
    def _without_value(self) -> Forms:

        flats = [d._flat for d in self._run if d._flat is not None]
        return self._forms(self.term, flats)

    @cached_property
    def _with_value(self) -> Forms:
        from combdiff.valued import with_value

        if self.mode == SIMPLIFIED:
            raise UnsupportedError("the result of cd.simplified is already the value", remedy="leave value out")
        run = self._run
        with deep_recursion():
            budget = Budget.of(self.seconds)
            formula = with_value(self.term, self._value, budget)
            flats = [with_value(d._flat, d._value, budget) for d in run if d._flat is not None]
            return self._forms(formula, flats)

    def _forms(self, formula: Term, flats: Sequence[Term]) -> Forms:
        """A formula and equal forms; what is compared to choose one has the budget of a derivation."""
        from combdiff.arrays.lower.forms import Forms
        from combdiff.arrays.lower.integrals import with_rules

        formula = with_rules(formula)
        alike = tuple(_of_the_same(formula, with_rules(flat)) for flat in flats)
        same, agree = partial(_same, seconds=self.seconds), partial(_agree, seconds=self.seconds)
        return Forms(formula, alike, same, agree, least=self._least)

    @cached_property
    def _least(self) -> dict[Domain, int]:
        """The sizes that ranges have at least, because the program reads entries there."""
        from combdiff.terms.conditions.needed import least_sizes

        with deep_recursion():
            return least_sizes(self.program)

    @cached_property
    def _value(self) -> Term:
        """The objective in the form that its derivatives have."""
        from combdiff.calculus.functions.points import Points
        from combdiff.calculus.modes import without_derivatives
        from combdiff.deriving import simplifier_like

        simplifier = simplifier_like(self, expand=False)
        f = without_derivatives(self.objective, simplifier, simplifier.ask)
        if not isinstance(f, Lam):
            return f
        points = Points.of(f)
        simplifier = simplifier_like(self, self.expand)
        return simplifier.value(f) if points is None else points.back(simplifier.value(points.map))

    @cached_property
    def _run(self) -> tuple[Derivation, ...]:
        """The derivations that code may use: of equivalent programs that do not depend on how this one is written."""
        from combdiff.calculus.shared_parts import programs_to_run
        from combdiff.deriving import derived_again, simplifier_like

        if self.expand or self.mode not in ("grad", "pullback", "hvp"):
            return (self,)
        found = []
        end = perf_counter() + self.seconds
        with deep_recursion():
            for program in programs_to_run(self.program):
                if program == self.program:
                    found.append(self)
                    continue
                left = end - perf_counter()
                if left <= 0:
                    break
                with suppress(CombDiffError):  # the formula can be run, and that is enough
                    simplifier = simplifier_like(self, expand=False, seconds=left, collect=False)
                    again = derived_again(self, self.mode, program, simplifier)
                    # complex(2) written out is 2, and then the value may be real, and its cotangent
                    kinds = zip(_kinds(again.term), _kinds(self.term), strict=False)
                    found += [again] if all(a == b for a, b in kinds) else []
        return tuple(found) or (self,)

    @cached_property
    def _flat(self) -> Term | None:
        """The derivative before common factors were collected and parts were named; None if it is multiplied out."""
        collected = [n for n, step in enumerate(self.steps) if step.name == COLLECT]
        # of the programs that are only run nothing is collected: the last stage puts terms in order
        at = collected[-1] if collected else len(self.steps) - 1
        if self.expand or not isinstance(self.steps[at].term, Lam):
            return None
        before, last = self.steps[at - 1].term, self.steps[-1].term
        return Traverser(lambda t: before if t == last else t)(self.term)

    def _title(self, value: bool) -> str:
        """The head of the docstring of emitted code."""
        return f"{self}\n\n{CANCELS}" if self.expand and value else str(self)

    def _joint(self, value: bool, distances: Distances = "differences", checkpoint: bool = False) -> Joint:
        """The derivative, and the Hessian-vector product of the same program."""
        from combdiff.run.hessian import joined

        if checkpoint:
            raise UnsupportedError(
                "hvp=True keeps all states of loops for the products, which checkpoint= does not store",
                remedy="leave one of the two out",
            )

        if self.mode != "grad":
            raise UnsupportedError(
                f"hvp=True needs a derivation of cd.grad, and this is a derivation of cd.{self.mode}",
                remedy="use cd.grad(text).compile(hvp=True), or cd.hvp(text) for the product alone",
            )
        with deep_recursion():
            return joined(self._runnable(value, distances), self.products._runnable(value=False))

    def function_name(self, value: bool, hvp: bool = False) -> str:
        """The default name of a function in code.

        >>> import combdiff as cd
        >>> cd.grad("(x::RV) -> sum(i, x(i)^2)").function_name(value=True)
        'value_and_gradient'
        """
        name = MODES[self.mode].function
        if hvp:
            return f"value_{name}_and_hvp" if value else f"{name}_and_hvp"
        return f"value_and_{name}" if value else name


def _how(given: Given, distances: Distances, checkpoint: bool) -> tuple[Distances, bool]:
    """The options of `_runnable` and `_joint`, next to the names of a program."""
    return given.option("distances", distances, "differences"), bool(given.option("checkpoint", checkpoint, False))


def _kinds(t: Term) -> list[Type]:
    """The types of all parameters, then of the indices of a result."""
    return [p.kind for p in t.params] + _kinds(t.body) if isinstance(t, Lam) else []


def _of_the_same(formula: Term, t: Term) -> Term:
    """`t` with the parameters of `formula`: the cotangents of another program may have other names."""
    match formula, t:
        case Lam(params, body), Lam(own, inner) if len(params) == len(own):
            return Lam(params, _of_the_same(body, substitute(inner, dict(zip(own, params, strict=True)))))
        case _:
            return t


def _agree(formula: Term, form: Term, seconds: float = SECONDS) -> bool:
    """Whether a form to run has the value of the formula, where both have one on random numbers.

    Raises OutOfTime if that is not known in time.
    """
    from combdiff.gate.gate import Gate

    with suppress(UnsupportedError, OverflowError):
        return Gate(budget=Budget.of(seconds)).agree(formula, form)
    return True


def _same(before: Term, after: Term, seconds: float = SECONDS) -> None:
    """Raise CheckError if the form that was chosen to run has another value than the formula, or OutOfTime."""
    from combdiff.gate.gate import Gate

    with suppress(UnsupportedError, OverflowError):
        Gate(budget=Budget.of(seconds)).same(before, after, "choosing what to run")


@contextmanager
def told_where(text: str, name: str) -> Iterator[None]:
    """Give an error that is raised meanwhile its place in the program, if its subject occurs there."""
    try:
        with deep_recursion():
            yield
    except CombDiffError as error:
        from combdiff.language.places import find_place

        find_place(error, text, name)
        raise


def _restored(
    text: str, mode: str, archive: Archive, accounts: Sequence[tuple[Mapping[str, Any], bool]], *how: Any
) -> Derivation:
    """A derivation that was pickled or copied; `how` are the options of its simplification."""
    program, term, *stages = archive.terms()
    pairs = zip(stages[::2], stages[1::2], accounts, strict=True)
    steps = (Step(term=t, before=None if first else before, **account) for t, before, (account, first) in pairs)
    return Derivation(text, mode, program, term, Steps(steps), *how)


# how a notebook shows values of lower modules; the pages are imported when a notebook shows one


def _step_bundle(step: Step) -> Bundle:
    from combdiff.jupyter.display import step_bundle

    return step_bundle(step)


def _steps_bundle(steps: Steps) -> Bundle:
    from combdiff.jupyter.display import steps_bundle

    return steps_bundle(steps)


def _plan_bundle(plan: Plan) -> Bundle:
    from combdiff.jupyter.display import plan_bundle

    return plan_bundle(plan)


shown_by("Step", _step_bundle)
shown_by("Steps", _steps_bundle)
shown_by("Plan", _plan_bundle)
