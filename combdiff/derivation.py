"""A derivation: a program, its derivative, the stages between them, and methods that print and compile it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, overload

from combdiff.boundary import boundaries
from combdiff.budget import NODES, SECONDS
from combdiff.calculus.markers import MODES, SIMPLIFIED, innermost
from combdiff.errors import UnsupportedError
from combdiff.notation.widths import WIDTH
from combdiff.records import dataclass
from combdiff.shown import Bundle, Shown, brief, shown_by
from combdiff.simplify.account import Step, Steps
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.terms import Diff, Lam, Term, apply
from combdiff.terms.types import Map

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    from combdiff.arrays.passes.distances import Distances
    from combdiff.arrays.plan import Plan
    from combdiff.checking.report import Report
    from combdiff.deriving.runnable import Runnable
    from combdiff.jupyter.explorer import Explorer
    from combdiff.minimizing.problem import Problem
    from combdiff.notation.symbolic import SymbolicResult
    from combdiff.pictures.drawing import Picture
    from combdiff.run.compiled import Check, Compiled
    from combdiff.run.given import Given
    from combdiff.terms.archive import Archive

    class HowCompiled(TypedDict, total=False):
        """The options of `compile` that do not change the type of its result; see `compiling.CompileOptions`."""

        check: Check
        pack: str | Sequence[str]
        memory: int | str | None
        distances: Distances
        checkpoint: bool
        structured: bool


SHOWING = ("latex", "mathml", "matrix_text", "unicode_text", "sympy", "picture", "explore")


@boundaries(*SHOWING, "plan", "source", "compile", "problem", "check")
@dataclass(frozen=True)
class Derivation(Shown):
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
        """The derivative as a program of the language, the same as `str(d)`; `text` is the given program.

        >>> import combdiff as cd
        >>> cd.grad("(x::RV) -> sum(i, x(i)^2)").result
        '(x::RV) -> i -> 2 * x(i)'
        """
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
        from combdiff.pictures.network import result_names, rows_of

        optional("matplotlib.figure", "notebooks", "a picture")
        from combdiff.pictures.drawing import drawn

        with deep_recursion():
            names = result_names(self.term, self.objective.params, MODES[self.mode].sign)
            return drawn(rows_of(self.term, names))

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

        >>> import combdiff as cd
        >>> print(cd.grad("(A::RM) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))").plan(A=(60, 60)))
        step  kind         operands  shape  FLOPs  bytes
        #1    GEMV         A, x      60     7200   480
        #2    GEMV         x, A      60     7200   480
        #3    elementwise  #1, #2    60     60     480
        total 1.45e+04 FLOPs, 99 % of them in BLAS; largest intermediate 480 bytes, about 3.56e+04 at once

        With `ir` it prints as an array program, one operation in a line; `combdiff.arrays.text.read` reads this text
        back. `value`, `pack`, `memory`, `distances` and `checkpoint` have the same meaning as for `compile`; if the
        program has a parameter of such a name, write `value_=True`. Raises BudgetError if `memory` (bytes, or text such
        as "2 GB") is too small.
        """
        from combdiff.compiling import CompileOptions, planned

        given = self._given(shapes)
        options = given.options(
            CompileOptions, value=value, pack=pack, memory=memory, distances=distances, checkpoint=checkpoint
        )
        as_text = given.option("ir", ir, False)
        plan = planned(self, given.keyword("backend", backend), options, given.rest)
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

        >>> import combdiff as cd
        >>> print(cd.grad("(x::RV) -> sum(i, x(i)^2)").source("jax", value=True).splitlines()[-1].strip())
        return x @ x, 2 * x

        With `value` the function returns the objective's value, or values, before the derivative. With `hvp` its last
        result is a function of a direction, the Hessian-vector product at that point. With `pack=("J",)` the source
        defines `pack_J`, and the function takes `pack_J(J)` instead of J; see `compile`. The order of contractions is
        the best one for arrays of the given `shapes`, or for the arrays given in their places, within `memory`. `name`
        is the name of the function.
        """
        from combdiff.compiling import CompileOptions, source_text

        given = self._given(shapes)
        options = given.options(
            CompileOptions, value=value, hvp=hvp, pack=pack, memory=memory, distances=distances, checkpoint=checkpoint
        )
        name = given.option("name", name, "") or self.function_name(options.value, options.hvp)
        return source_text(self, given.keyword("backend", backend), name, options, given.rest)

    @overload
    def compile(
        self, backend: str = "numpy", *, value: Literal[True], hvp: bool = False, **how: Unpack[HowCompiled]
    ) -> Compiled[tuple[Any, ...]]: ...

    @overload
    def compile(
        self, backend: str = "numpy", *, value: bool = False, hvp: Literal[True], **how: Unpack[HowCompiled]
    ) -> Compiled[tuple[Any, ...]]: ...

    @overload
    def compile(
        self, backend: str = "numpy", *, value: bool = False, hvp: bool = False, **how: Unpack[HowCompiled]
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

        >>> import combdiff as cd
        >>> value, gradient = cd.grad("(x::RV) -> sum(i, x(i)^2)").compile(value=True)([1.0, 2.0])
        >>> float(value), gradient
        (5.0, array([2., 4.]))

        The function returns the derivative. With `value` it returns the value first; with `hvp` it returns a function
        last: after `value, gradient, hvp = f(A, x)`, `hvp(k)` is the Hessian at x times k, and reuses what f computed.
        `check` is the share of entries whose declared symmetries the first call with an array checks: "sample" (4,096
        entries), "full" or False; "states" checks all, and finds the first nan or infinity in loops. `memory` (bytes,
        or text such as "2 GB") limits the arrays that a call holds at any time, results included.
        With `distances="expanded"` squared distances Σ (x − y)², and squared sines of differences, are multiplied
        out: products of matrices, several times faster, which lose digits (and signs) where points are near.
        With `checkpoint=True` a loop stores √T of the states that the loop backwards needs, and runs again from there.
        `pack=("J",)` makes a packed copy of J in the first call with an array: only the rows from which others follow
        by symmetry. Later calls with this array read only the copy; call `repack()` after you change J in place.
        With `structured=True` the function returns tensors as `blocks` with `.dense()` and `.scipy()`: each block is a
        pattern (a δ in the result) and an array of the entries that are not zero.

        The function raises ArrayError if an array does not fit, and BudgetError, before any work, if no loops keep to
        `memory`. Raises UnsupportedError if options do not go together, or a packed name is not a given array.
        """
        from combdiff.compiling import CompileOptions, compiled

        options = CompileOptions(value, hvp, check, pack, memory, distances, checkpoint, structured)
        return compiled(self, backend, options)

    def _given(self, values: Mapping[str, object]) -> Given:
        """What a caller gave by name, next to the names of the program."""
        from combdiff.run.given import Given

        return Given.of(self.term, values)

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
        from combdiff.checking.check import check

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
        from combdiff.deriving.derive import simplifier_like

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
        from combdiff.deriving.derive import derived_again, simplifier_like

        with deep_recursion():
            f = self.differentiated
            assert isinstance(f, Lam), "a map stays one"
            program = at_nodes(self.program, f)
        return derived_again(self, self.mode, program, simplifier_like(self, self.expand))

    @cached_property
    def gradient(self) -> Derivation:
        """The gradient of the same program in the full space: `symmetric=True` does not project it."""
        from combdiff.deriving.derive import derived_again, simplifier_like

        return derived_again(self, "grad", self.program, simplifier_like(self, self.expand, full_space=True))

    @cached_property
    def slopes(self) -> Derivation:
        """The same as `gradient`, in a form to be evaluated and not to be read: no factor is collected."""
        from combdiff.deriving.derive import derived_again, simplifier_like

        simplifier = simplifier_like(self, expand=False, full_space=True, collect=False)
        return derived_again(self, "grad", self.program, simplifier)

    @cached_property
    def products(self) -> Derivation:
        """The Hessian-vector product of the same program, for `hvp=True`.

        >>> import combdiff as cd
        >>> print(cd.grad("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))").products)
        (A::Her) -> (x::CV, k::CV) -> i -> 2 * sum(j, A(i, j) * k(j))
        """
        from combdiff.deriving.derive import derived_again, simplifier_like

        return derived_again(self, "hvp", self.program, simplifier_like(self, self.expand))

    @cached_property
    def runnable(self) -> Runnable:
        """The forms of the derivative that code may use."""
        from combdiff.deriving.runnable import Runnable

        return Runnable(self)

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


def _restored(
    text: str, mode: str, archive: Archive, accounts: Sequence[tuple[Mapping[str, Any], bool]], *how: Any
) -> Derivation:
    """A derivation that was pickled or copied; `how` are the options of its simplification."""
    program, term, *stages = archive.terms()
    pairs = zip(stages[::2], stages[1::2], accounts, strict=True)
    steps = (Step(term=t, before=None if first else before, **account) for t, before, (account, first) in pairs)
    return Derivation(text, mode, program, term, Steps(steps), *how)


# --- what notebooks show of this and of lower modules ---------------------------------------------------------------

_BUNDLES = {
    "Derivation": "derivation_bundle",
    "Plan": "plan_bundle",
    "Report": "report_bundle",
    "Step": "step_bundle",
    "Steps": "steps_bundle",
}
"""The functions of `jupyter.display` by the classes that they show."""


def _shown(function: str, value: object) -> Bundle:
    from combdiff.jupyter import display

    bundle: Bundle = getattr(display, function)(value)
    return bundle


for _kind, _function in _BUNDLES.items():
    shown_by(_kind, partial(_shown, _function))
