"""A derivation as a paper prints it: the objective, its derivatives with their left-hand sides, and where-clauses.

Indices that are single letters stand side by side, equations are aligned at their signs, and a long sum is broken at
its + and −.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field

from combdiff.language.printing.document import sum_parts
from combdiff.notation.brackets import called, subscripted
from combdiff.notation.equations import equation, with_equations
from combdiff.notation.extents import belongs, size_names
from combdiff.notation.latex import WHERE, Page, margin
from combdiff.notation.latex_names import Scope, barred, latex_name
from combdiff.notation.latex_terms import end_latex, listed, primes, signed_terms, term_latex
from combdiff.notation.matrix.forms import forms_within, is_unit
from combdiff.notation.page import definitions_outside, entrywise, names_in, names_on_page, without_needless_re
from combdiff.notation.recursions import Recursions
from combdiff.notation.signs import latex_signs
from combdiff.notation.widths import WIDTH, columns
from combdiff.records import dataclass
from combdiff.terms.terms import Lam, Let, Term, Var, ends_of, items_of
from combdiff.terms.types import Map, Number, Product, is_complex

_OBJECTIVES = ("E", "f", "L", "F", "g", r"\Phi")
_VALUES = ("y", "z", "w", "F", r"\Phi")


@dataclass(frozen=True, slots=True)
class Opened:
    """A map taken apart: its parameters, the values that have names, and the items that it returns."""

    params: tuple[Var, ...]
    bindings: tuple[tuple[Var, Term], ...]
    items: tuple[Term, ...]

    @classmethod
    def of(cls, term: Term) -> Opened:
        params: list[Var] = []
        while isinstance(term, Lam) and (not is_unit(term) or isinstance(term.body, Let)):
            params += term.params
            term = term.body
        bindings = term.bindings if isinstance(term, Let) else ()
        body = term.body if isinstance(term, Let) else term
        return cls(tuple(params), bindings, items_of(body))

    def as_function(self, count: int) -> Opened:
        """The same with a gradient that is a function of its last `count` parameters: t ↦ … by an unknown r(t)."""
        (item,) = self.items
        return Opened(self.params[:-count], (), (Lam(self.params[-count:], item),))


def paper_latex(objective: Lam, result: Term, mode: str, form: str = "index", width: int = WIDTH) -> str:
    """An objective and its derivative, of a mode such as "grad" or "jacobian", as LaTeX for math mode.

    >>> from combdiff.terms.terms import App, fresh, mul, number, power, total
    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> i = fresh("i", Index(Domain("x.1")))
    >>> x = fresh("x", Map((i.kind,), REAL))
    >>> energy = Lam((x,), total([i], power(App(x, (i,)), number(2))))
    >>> print(paper_latex(energy, Lam((x,), Lam((i,), mul(number(2), App(x, (i,))))), "grad"))
    \\begin{aligned}
    E(x) &= \\sum_{i} x_{i}^{2} \\\\
    \\frac{\\partial E}{\\partial x_{i}} &= 2 x_{i}
    \\end{aligned}
    """
    result = with_equations(without_needless_re(result), names_in(objective))
    shown = with_equations(definitions_outside(without_needless_re(objective)), names_in(result))
    assert isinstance(shown, Lam), "an objective stays a map"
    objective = shown
    equations = {
        var: sides
        for var, value in (*Opened.of(objective).bindings, *Opened.of(result).bindings)
        if (sides := equation(var, value)) is not None
    }
    both = [side for pair in equations.values() for side in pair]
    forms = forms_within(objective, result, *both) if form == "matrix" else {}
    signs = latex_signs(result, form) | latex_signs(objective, form)
    names = frozenset(map(latex_name, names_on_page(objective, result)))
    sizes = size_names(result, objective)
    scope = Scope(signs=signs | {*sizes.values()}, commas=False, reserved=names, sizes=sizes)
    recursions = Recursions()
    page = PaperPage(width, forms, recursions=recursions, scope=scope, equations=equations)
    shown, result = recursions.of(objective), recursions.of(result)
    assert isinstance(shown, Lam), "an objective stays a map"
    page.write(shown, result, mode)
    # what stands left of the signs takes its width from every line
    widest = max(map(columns, page.lefts.values()))
    page = PaperPage(max(width - widest, width // 2), forms, recursions=recursions, scope=scope, equations=equations)
    page.write(shown, result, mode)
    return page.text()


@dataclass(slots=True)
class PaperPage(Page):
    """Equations; `lefts` says what stands left of the sign in a line."""

    scope: Scope = field(default_factory=Scope)
    name: str = ""
    word: str = r"\quad " + WHERE
    lefts: dict[int, str] = field(default_factory=dict)
    equations: Mapping[Var, tuple[Term, Term]] = field(default_factory=dict)

    def text(self) -> str:
        """The lines, aligned at their signs."""
        rows = " \\\\\n".join(
            f"{self.lefts.get(n, '')} &{margin}{text}".strip() for n, (margin, text) in enumerate(self.lines)
        )
        return f"\\begin{{aligned}}\n{rows}\n\\end{{aligned}}"

    def write(self, objective: Lam, result: Term, mode: str) -> None:
        """The objective, its derivatives, and what the names mean."""
        opened = Opened.of(result)
        defined = {var.name for var, _ in opened.bindings}
        if mode == "simplified":
            self.name = self._free(_VALUES, [*result.free, *opened.params], defined)
        else:
            self.objective(objective, mode, defined)
        self.derivatives(objective, result, mode)
        self.explain()

    def _free(self, names: Sequence[str], seen: Sequence[Var], defined: Collection[str]) -> str:
        """The first of `names` that nothing else has: no argument, and no value that is named."""
        scope = self.scope.bind(sorted(seen, key=lambda v: v.uid))
        taken = {*scope.names.values(), *scope.signs, *defined}
        return next((n for n in names if n not in taken), names[0])

    def objective(self, objective: Lam, mode: str, later: Collection[str]) -> None:
        """E(x) = …, with what it names below, but for the names that are explained later."""
        opened = Opened.of(objective)
        free = sorted(objective.free, key=lambda v: v.uid)
        # a value that is a function has its own arguments, y(w)(x)
        own = opened.params[len(objective.params) :]
        scope = self.scope.bind([*free, *objective.params, *own])
        names = _VALUES if mode in ("pullback", "jvp", "jacobian") else _OBJECTIVES
        defined = {*later, *(var.name for var, _ in opened.bindings)}
        self.name = self._free(names, [*free, *objective.params, *own], defined)
        arguments = ")(".join(", ".join(scope[p] for p in group) for group in (objective.params, own) if group)
        bound, scope = scope, scope.bind(var for var, _ in opened.bindings)
        for n, item in enumerate(opened.items):
            number = f"^{{({n + 1})}}" if len(opened.items) > 1 else ""
            left, inner, body = self._entry(f"{self.name}{number}", item, scope)
            self._equation(left if isinstance(item, Lam) else f"{left}({arguments})", body, inner)
        self._named(opened.bindings, bound, {var for var, _ in opened.bindings if var.name not in later})

    def derivatives(self, objective: Lam, result: Term, mode: str) -> None:
        """∂E/∂x = …, one for each unknown, with what they name below."""
        opened = Opened.of(result)
        count = len(objective.params)
        behind = len(opened.params) - _given(opened.params, objective) - count
        if mode == "grad" and behind and not opened.bindings:
            opened, behind = opened.as_function(behind), 0
        unknowns = opened.params[len(opened.params) - behind - count : len(opened.params) - behind]
        bound = self.scope.bind([*sorted(result.free, key=lambda v: v.uid), *opened.params])
        self.tensors += filter(None, (belongs(p, bound[p], bound.sizes) for p in opened.params))
        scope = bound.bind(var for var, _ in opened.bindings)
        heads = heads_of(objective, mode, len(opened.items))
        if mode in ("grad", "hvp"):
            whole = [opened.items] if count == 1 else [items_of(item) for item in opened.items]
            for u, parts in zip(unknowns, whole, strict=True):
                for name, item in _with_ends(u, scope[u], parts, scope):
                    directions = opened.params[len(opened.params) - behind :]
                    self._derivative(mode, name, item, scope, directions, count > 1 or len(parts) > 1)
        for n, item in enumerate(opened.items if mode not in ("grad", "hvp") else ()):
            if mode in ("jacobian", "hessian"):
                self._matrix(mode, heads[n], [scope[u] for u in unknowns], item, scope)
            elif mode in ("jvp", "simplified"):
                number = f"^{{({n + 1})}}" if len(opened.items) > 1 else ""
                sign = rf"\dot{{{self.name}}}" if mode == "jvp" else self.name
                left, inner, body = self._entry(f"{sign}{number}", item, scope)
                self._equation(left, body, inner)
            else:
                unknown = scope[unknowns[n]] if len(opened.items) == count else str(n + 1)
                places = opened.params[len(opened.params) - behind + len(Opened.of(objective).items) :]
                self._derivative(mode, unknown, item, scope, places, count > 1)
        self.word = r"\quad " + WHERE
        self._named(opened.bindings, bound, {var for var, _ in opened.bindings})

    def _derivative(
        self, mode: str, unknown: str, item: Term, scope: Scope, directions: Sequence[Var], several: bool
    ) -> None:
        if mode == "pullback":
            left, inner, body = self._entry(barred(unknown), item, scope)
            # the cotangent of a function is one: its arguments are behind those of the pullback
            left = called(left, ", ".join(scope[p] for p in directions)) if directions else left
        elif mode == "hvp":
            along = ", ".join(scope[k] for k in directions)
            along = along if len(directions) == 1 else f"({along})"
            which = f"_{{{unknown}}}" if several else ""
            product = rf"\left(\nabla^{{2}} {self.name}\, {along}\right){which}"
            left, inner, body = self._entry(product, item, scope)
        else:
            entry, inner, body = self._entry(unknown, item, scope)
            sign = r"\partial"
            if isinstance(item, Lam) and not is_unit(item):
                sign, entry, inner, body = r"\delta", *self._at_points(unknown, item, scope)
            left = rf"\frac{{{sign} {self.name}}}{{{sign} {entry}}}"
        self._equation(left, body, inner)

    def _matrix(self, mode: str, head: Head, unknowns: Sequence[str], item: Term, scope: Scope) -> None:
        """∂y_i / ∂x_j, or the second derivatives of E, with the indices of both; without them in matrix form."""
        _, inner, body = self._entry("", item, scope)
        own = entrywise(item) if body is not item else item
        names = [inner[p] for p in own.params] if isinstance(own, Lam) and inner is not scope else []
        star = "^{*}" if head.conjugate else ""
        of = f"{self.name}{head.number}" if mode == "jacobian" else unknowns[head.row]
        above = _with(inner, of, names[: head.rank])
        below = _with(inner, unknowns[head.unknown], names[head.rank :]) + star
        first = rf"\partial {above}" if mode == "jacobian" else rf"\partial^{{2}} {self.name}"
        second = rf"\partial {below}" if mode == "jacobian" else rf"\partial {above}\, \partial {below}"
        self._equation(rf"\frac{{{first}}}{{{second}}}", body, inner)

    def _entry(self, name: str, item: Term, scope: Scope) -> tuple[str, Scope, Term]:
        """The left-hand side of an item: with its indices, unless it has a matrix form."""
        if item in self.forms or not is_unit(item) or listed(item, scope):
            return name, scope, item
        item = entrywise(item)
        if not isinstance(item, Lam):
            return name, scope, item
        inner = scope.bind(item.params)
        return f"{subscripted(name)}_{{{inner.subscripts(inner[p] for p in item.params)}}}", inner, item.body

    def _at_points(self, unknown: str, item: Lam, scope: Scope) -> tuple[str, Scope, Term]:
        """r(t), of a functional derivative δE / δr(t)."""
        inner = scope.bind(item.params)
        return called(unknown, ", ".join(inner[p] for p in item.params)), inner, item.body

    def _equation(self, left: str, body: Term, scope: Scope) -> None:
        """left = the terms of a sum, in lines."""
        if body in self.forms:
            pieces = self._formula(body, scope).pieces
        elif isinstance(body.type, Number):
            pieces = sum_parts(signed_terms(body, scope))
        else:
            pieces = [term_latex(body, scope)]
        self.lefts[len(self.lines)] = left
        self._fill("=", pieces, r"\quad ")

    def _named(self, bindings: Sequence[tuple[Var, Term]], scope: Scope, own: Collection[Var]) -> None:
        """Where-clauses for the values of `own`."""
        for var, value in bindings:
            inner, scope = scope.seeing(value), scope.bind(self.recursions.bound(var))
            if var in own and var in self.equations:
                self._solved(var, scope)
            elif var in own:
                self._binding(self._where(), var, value, scope, inner)

    def _solved(self, var: Var, scope: Scope) -> None:
        """x solves left = right."""
        left, right = self.equations[var]
        if isinstance(left, Lam) and isinstance(right, Lam) and not (left in self.forms and right in self.forms):
            scope = scope.bind(left.params)
            left, right = left.body, right.body
        pieces = self._formula(left, scope).pieces
        first, *rest = self._formula(right, scope).pieces
        word = self._where()
        self._fill(rf"{word}{scope[var]}\ \text{{solves}}\ ", [*pieces, f"= {first}", *rest], margin(word))


@dataclass(frozen=True, slots=True)
class Head:
    """What a block of a Jacobian is: of the result `row`, with so many slots, by an unknown or by its conjugate."""

    row: int
    rank: int
    unknown: int
    conjugate: bool = False
    number: str = ""


def heads_of(objective: Lam, mode: str, count: int) -> list[Head]:
    """The blocks in order; those by conjugates are all there, or none of them is (`Jacobian.without_zeros`)."""
    if mode not in ("jacobian", "hessian"):
        return []
    value = objective.body.type
    kinds = value.items if isinstance(value, Product) else (value,)
    kinds = tuple(p.kind for p in objective.params) if mode == "hessian" else kinds
    paired = count > len(kinds) * len(objective.params)
    found: list[Head] = []
    for row, kind in enumerate(kinds):
        rank = len(kind.params) if isinstance(kind, Map) else 0
        number = f"^{{({row + 1})}}" if len(kinds) > 1 else ""
        for n, x in enumerate(objective.params):
            found.append(Head(row, rank, n, number=number))
            if paired and is_complex(x.kind):
                found.append(Head(row, rank, n, conjugate=True, number=number))
    return found


def _with_ends(u: Var, name: str, parts: Sequence[Term], scope: Scope) -> Iterator[tuple[str, Term]]:
    """The derivative by a function, then those by its values and slopes at the ends of its interval."""
    inside, *ends = parts
    yield name, inside
    if not ends:
        return
    assert isinstance(u.kind, Map), "only functions have ends"
    places = [place for place in ends_of(u.kind.params[0]) if place is not None]
    for place, end in zip(places, ends, strict=True):
        coefficients = items_of(end)
        free = [n for n in range(len(coefficients) + len(u.kind.fixed)) if n not in u.kind.fixed]
        for n, e in zip(free, coefficients, strict=False):
            yield called(f"{name}{primes(n)}", end_latex(place, scope)), e


def _with(scope: Scope, name: str, indices: Sequence[str]) -> str:
    return f"{subscripted(name)}_{{{scope.subscripts(indices)}}}" if indices else name


def _given(params: Sequence[Var], objective: Lam) -> int:
    """How many parameters stand before the unknowns."""
    names = [p.name for p in params]
    return names.index(objective.params[0].name)
