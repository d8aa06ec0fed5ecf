"""Turns terms into expressions of SymPy, under a scope that says which symbols names, indices and sizes are.

What a whole result becomes is in `symbolic`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from combdiff.arrays.numbers import digits_of
from combdiff.calculus.definitions.floating import unfold
from combdiff.errors import UnsupportedError
from combdiff.language.printing.anchors import domains_of
from combdiff.language.printing.names import unique_name
from combdiff.notation.latex_names import Scope
from combdiff.notation.signs import sympy_signs
from combdiff.records import dataclass
from combdiff.terms.conditions.choices import Choice, choice_of, with_choices
from combdiff.terms.conditions.comparing import Either, Part, Relation, conditions_and_body, conditions_of_reduction
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.numerals import MOST_DIGITS
from combdiff.terms.terms import (
    MINUS_ONE,
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Indicator,
    Let,
    Loop,
    Mul,
    Pow,
    Proj,
    Reduce,
    Sum,
    Term,
    Var,
    add,
    along,
    apply,
    bound_by,
    delta,
    domains_compared,
    ends_of,
    fresh,
    is_integer_valued,
    mul,
    number,
    substitute,
    subterms,
)
from combdiff.terms.types import REAL, Domain, Index, Map, Number, is_complex, is_real

if TYPE_CHECKING:
    from sympy import Basic, Expr, Symbol
    from sympy import Product as Product_
    from sympy import Sum as Sum_
    from sympy.logic.boolalg import Boolean

Limit: TypeAlias = "tuple[Symbol, Expr, Expr]"
"""An index or a real number, its first and its last value."""


@dataclass(frozen=True, slots=True)
class SymbolScope:
    """What names mean: symbols of arguments and definitions, the integers that an index is, the sizes of axes."""

    spelled: Scope
    symbols: Mapping[Var, Basic] = field(default_factory=dict)
    points: Mapping[Var, tuple[Expr, ...]] = field(default_factory=dict)
    extents: Mapping[Domain, tuple[Expr, Expr]] = field(default_factory=dict)
    offsets: Mapping[Domain, Basic] = field(default_factory=dict)

    @classmethod
    def of(cls, term: Term, params: Sequence[Var]) -> SymbolScope:
        """The scope of a result with these arguments; sizes take names that no argument has."""
        import sympy

        scope = cls(Scope(str, signs=sympy_signs(term))).bound(params)
        extents: dict[Domain, tuple[Expr, Expr]] = {}
        offsets: dict[Domain, Basic] = {}
        taken = {v.name for t in subterms(term) for v in (*bound_by(t), *((t,) if isinstance(t, Var) else ()))}
        letters = (c for c in "nmlopqrstuvwxyzabcdefghijk" if c not in taken)
        for domain in _domains(term):
            for axis in domain.axes:
                if axis.lower is not None and axis.upper is not None:
                    extents[axis] = (sympy.Integer(axis.lower), sympy.Integer(axis.upper))
                    continue
                wish = _size_name(axis, domain) or next(letters, "n")
                (var,) = (fresh(wish, REAL),)
                scope = scope.bound((var,))
                size = sympy.Symbol(scope.spelled[var], integer=True, positive=True)
                extents[axis] = (-size, size) if axis.symmetric else (sympy.Integer(0), size - 1)
            if domain.listed:
                (var,) = (fresh(domain.name, REAL),)
                scope = scope.bound((var,))
                offsets[domain] = sympy.IndexedBase(scope.spelled[var], integer=True)
        return replace(scope, extents=extents, offsets=offsets).declared(params)

    def bound(self, variables: Sequence[Var]) -> SymbolScope:
        """The scope in which `variables` have names."""
        return replace(self, spelled=self.spelled.bind(variables))

    def declared(self, variables: Sequence[Var]) -> SymbolScope:
        """The scope in which variables that have names are numbers, arrays and functions."""
        return replace(self, symbols={**self.symbols, **{v: self.symbol(v) for v in variables}})

    def symbol(self, var: Var) -> Basic:
        """An argument, or a definition."""
        import sympy

        name, real = self.spelled[var], None if is_complex(var.kind) else True
        match var.kind:
            case Number():
                return sympy.Symbol(name, real=real)
            case Map() as kind if _slots(kind) is not None:
                return sympy.IndexedBase(name, real=real)
            case Map(params, Number()) if all(isinstance(p, Number | Index) for p in params):
                return sympy.Function(name, real=real)
            case Index():
                return sympy.Symbol(name, integer=True)
            case _:
                # an error where it is used, and none where it is not
                return sympy.Symbol(name)

    def by_name(self, variables: Sequence[Var]) -> dict[str, Var]:
        """Variables by the names that the program gave them; by those of their symbols, where two have one name."""
        found: dict[str, Var] = {}
        for v in variables:
            found[v.name if v.name not in found else self.spelled[v]] = v
        return found

    def shapes(self, variables: Sequence[Var]) -> dict[str, tuple[Expr, ...]]:
        """The shapes of arrays, lists of offsets among them, by name.

        They are no part of the symbols: putting in a number for a size would make other symbols of them.
        """
        found = {
            name: tuple(_count(self.extents[axis]) for d in slots for axis in d.axes)
            for name, v in self.by_name(variables).items()
            if (slots := _slots(v.kind))
        }
        for domain, base in self.offsets.items():
            rows = _count(self.extents[domain.axes[0]])
            found[str(base)] = (rows, domain.directions) if domain.directions > 1 else (rows,)
        return found

    # --- indices ----------------------------------------------------------------------------------------------------

    def within(self, indices: Sequence[Var]) -> tuple[SymbolScope, list[Limit]]:
        """The scope below a binder of indices and real numbers, and the limits of each of its symbols."""
        import sympy

        scope = self.bound(indices)
        points, limits = dict(self.points), []
        symbols = dict(self.symbols)
        for v in indices:
            name = scope.spelled[v]
            match v.kind:
                case Index(Domain() as domain):
                    parts = tuple(fresh(f"{name}_{n}", REAL) for n in range(1, len(domain.axes) + 1))
                    scope = scope.bound(parts) if len(parts) > 1 else scope
                    own = [sympy.Symbol(scope.spelled[p if len(parts) > 1 else v], integer=True) for p in parts]
                    limits += [(s, *self.extents[axis]) for s, axis in zip(own, domain.axes, strict=True)]
                    points[v] = tuple(own)
                    symbols[v] = own[0]
                case Number(complex=False):
                    symbols[v] = sympy.Symbol(name, real=True)
                    lower, upper = (None if end is None else self.number(end) for end in ends_of(v.kind))
                    limits.append(
                        (
                            symbols[v],
                            -sympy.oo if lower is None else lower,
                            sympy.oo if upper is None else upper,
                        )
                    )
                case _:
                    refuse(f"{v.name} ranges over what is no index and no real number")
        return replace(scope, points=points, symbols=symbols), limits

    def point(self, t: Term) -> tuple[Expr, ...]:
        """The integers that an index expression is: as many as the index has directions."""
        import sympy

        match t:
            case Var(_, Index(Domain(listed=True) as domain)):
                (place,) = self.points[t]
                base = self.offsets[domain]
                assert isinstance(base, sympy.IndexedBase), "a list of offsets is an array"
                return (
                    tuple(base[place, n] for n in range(domain.directions)) if domain.directions > 1 else (base[place],)
                )
            case Var() if t in self.points:
                return self.points[t]
            case Add(terms):
                parts = [self.point(u) for u in terms]
                width = max(map(len, parts))
                # a number among points is 0, the origin
                return tuple(sympy.Add(*(p[n] for p in parts if len(p) == width)) for n in range(width))
            case Mul((Const() as factor, rest)):
                return tuple(self.number(factor) * x for x in self.point(rest))
            case _:
                return (self.number(t),)

    def places(self, t: Term, domain: Domain) -> list[Expr]:
        """Where along the axes of a slot the entry of an index lies."""
        if domain.listed:
            if not (isinstance(t, Var) and t in self.points):
                refuse(f"an entry of the list {domain.name} is asked for by its value, not by its position")
            return list(self.points[t])
        point = self.point(t) * (len(domain.axes) if isinstance(t, Const) else 1)
        bare = isinstance(t, Var) and isinstance(t.kind, Index) and t.kind.domain == domain
        return [self.place(x, axis, bare) for x, axis in zip(point, domain.axes, strict=True)]

    def place(self, x: Expr, axis: Domain, bare: bool) -> Expr:
        import sympy

        first, _ = self.extents[axis]
        if axis.periodic:
            return x if bare and not axis.symmetric else sympy.Mod(x, _count(self.extents[axis]))
        return x - first

    def meeting(self, left: Term, right: Term) -> Expr:
        """δ of indices, a factor for each direction."""
        import sympy

        return sympy.Mul(*(sympy.KroneckerDelta(x, y) for x, y in self.directions(left, right)))

    def directions(self, left: Term, right: Term) -> list[tuple[Expr, Expr]]:
        """The integers that are equal if two indices are, a pair for each direction; modulo the sizes of a period."""
        import sympy

        a, b = self.point(left), self.point(right)
        width = max(len(a), len(b))
        a, b = (p * (width // len(p)) for p in (a, b))
        domains = domains_compared(left, right)
        ring = next((d for d in domains if d.periodic), None)
        if ring is None or (isinstance(left, Var) and isinstance(right, Var)):
            return list(zip(a, b, strict=True))
        sizes = [_count(self.extents[axis]) for axis in ring.axes]
        zero = sympy.Integer(0)
        return [(sympy.Mod(x - y, n), zero) for x, y, n in zip(a, b, sizes, strict=True)]

    # --- values -----------------------------------------------------------------------------------------------------

    def number(self, t: Term) -> Expr:
        import sympy

        match t:
            case Var() if isinstance(t.kind, Number | Index):
                return self.point(t)[0] if t in self.points else self.symbols[t]
            case Const(real, imag):
                return sympy.Rational(real.numerator, real.denominator) + sympy.I * sympy.Rational(
                    imag.numerator, imag.denominator
                )
            case Add(terms):
                return sympy.Add(*map(self.addend, with_choices(terms, flat=True)))
            case Mul(factors):
                return sympy.Mul(*map(self.number, factors))
            case Pow(base, exponent):
                if digits_of(t) > MOST_DIGITS:
                    refuse(f"SymPy works out powers of numbers, and one has more than {MOST_DIGITS} digits")
                return self.number(base) ** self.number(exponent)
            case Conj(of):
                return sympy.conjugate(self.number(of))
            case Call("pi", ()):
                return sympy.pi
            case Call(name, args):
                return self.called(name, args)
            case App(function, args):
                return self.applied(function, args)
            case Let():
                return self.number(unfold(t))
            case _:
                return self.binder(t)

    def addend(self, t: Term | Choice) -> Expr:
        import sympy

        if not isinstance(t, Choice):
            return self.number(t)
        *branches, last = t.rows
        pieces = [(self.number(row.value), self.condition(row.parts)) for row in branches]
        return sympy.Piecewise(*pieces, (self.number(last.value), True))

    def called(self, name: str, args: Sequence[Term]) -> Expr:
        """A scalar function of the language: by SymPy's name for it, or by what its row says that it is made of."""
        import sympy

        row = SCALAR_FUNCTIONS[name]
        if row.codes and not row.sympy:
            return sympy.Function(name)(*map(self.number, args))
        function = getattr(sympy, row.sympy or name, None)
        if not callable(function):
            if row.made_of is None:
                refuse(f"the function {name}")
            return self.number(row.made_of(*args))
        found: Expr = function(*map(self.number, args))
        return found

    def binder(self, t: Term) -> Expr:
        """Σ, ∫, δ, the indicator, and the derivative by one of several arguments."""
        import sympy

        match t:
            case Sum() if t.counted is not None and t.counted in self.extents:
                first, last = self.extents[t.counted]
                return last - first + 1
            case Sum(indices, body):
                scope, limits = self.within(indices)
                return _summed(scope.number(body), limits)
            case Delta(left, right, body) if is_integer_valued(left) and is_integer_valued(right):
                return self.meeting(left, right) * self.number(body)
            case Delta(left, right, body) if not any(is_complex(s.type) for s in (left, right)):
                if not isinstance(left.type, Map):
                    return sympy.DiracDelta(self.number(left) - self.number(right)) * self.number(body)
            case Indicator() if choice := choice_of(t, flat=True):
                return self.addend(choice)
            case Indicator():
                parts, body = conditions_and_body(t)
                return sympy.Piecewise((self.number(body), self.condition(parts)), (0, True))
            case Proj(item, App(Diff() as derivative, args)):
                return self.derivative(derivative, args, item)
            case Reduce("prod", _):
                return self.produced(t)
            case Reduce("logsumexp", _):
                return sympy.log(self.number(_exponentials(t)))
            case Reduce("norm", _):
                return sympy.sqrt(self.number(Sum(t.indices, Call("abs2", (t.body,)))))
        refuse(_in_words(t))

    def produced(self, t: Reduce) -> Expr:
        """Π over the integers among the limits; what takes no part is 1."""
        import sympy

        scope, limits = self.within(t.indices)
        parts, body = conditions_of_reduction(t)
        factor = scope.number(body)
        return sympy.Product(sympy.Piecewise((factor, scope.condition(parts)), (1, True)) if parts else factor, *limits)

    def condition(self, parts: Sequence[Part]) -> Boolean:
        """That all parts hold."""
        import sympy

        found: list[Boolean] = []
        for part in parts:
            match part:
                case Relation(left, "==" | "!=" as sign, right) if is_integer_valued(left) and is_integer_valued(right):
                    same = sympy.And(*(sympy.Eq(x, y) for x, y in self.directions(left, right)))
                    found.append(same if sign == "==" else sympy.Not(same))
                case Relation(left, sign, right):
                    relation = {"<": sympy.Lt, "<=": sympy.Le, "==": sympy.Eq, "!=": sympy.Ne}[sign]
                    found.append(relation(self.number(left), self.number(right)))
                case Either(alternatives, negated):
                    either = sympy.Or(*map(self.condition, alternatives))
                    found.append(sympy.Not(either) if negated else either)
        return sympy.And(*found)

    def applied(self, function: Term, args: Sequence[Term]) -> Expr:
        """An entry of a tensor, or a value of a function."""
        while isinstance(function, App):
            args = (*function.args, *args)
            function = function.function
        if isinstance(function, Diff):
            return self.derivative(function, args, 0)
        if isinstance(function, Reduce) and function.kind == "softmax":
            return self.number(_share(function, args))
        if isinstance(function, Reduce) and function.kind == "cross":
            return self.crossed(function, *args)
        if not isinstance(function, Var):
            refuse(_in_words(function))
        slots = _slots(function.kind)
        if slots is None:
            return self.symbol_of_function(function)(*map(self.number, args))
        if not slots:
            refuse(_in_words(function))
        places = [x for a, d in zip(args, slots, strict=True) for x in self.places(a, d)]
        entry: Expr = self.symbols[function][tuple(places)]
        return entry

    def crossed(self, whole: Reduce, place: Term) -> Expr:
        """An entry of a vector product, by its components."""
        return self.number(add(*(delta(place, number(n), apply(whole, number(n))) for n in range(3))))

    def symbol_of_function(self, f: Var) -> Basic:
        """An unknown function of numbers."""
        match f.kind:
            case Map(params, Number()) if all(isinstance(p, Number | Index) for p in params):
                return self.symbols[f]
            case _:
                refuse(f"{f.name} is a map of functions or arrays")

    def derivative(self, of: Diff, args: Sequence[Term], which: int) -> Expr:
        """∇g, or 𝒫(g), of an unknown real function of real numbers, by its argument number `which`."""
        import sympy

        kind = of.of.type
        real = isinstance(kind, Map) and (all(map(is_real, (*kind.params, kind.result))) or along(of)[1] > 0)
        if not real or not of.is_derivative:
            refuse(_in_words(of))
        points = [self.number(a) for a in args]
        cotangent = points.pop() if of.kind == "pullback" else sympy.Integer(1)
        places = tuple(fresh(f"xi{n + 1}", REAL) for n in range(len(points)))
        inner, _ = self.within(places)
        dummies = [sympy.Dummy(v.name, real=True) for v in places]
        inner = replace(inner, symbols={**inner.symbols, **dict(zip(places, dummies, strict=True))})
        slope = sympy.diff(inner.applied(of.of, places), dummies[which])
        return cotangent * slope.subs(dict(zip(dummies, points, strict=True)), simultaneous=True)


def _exponentials(t: Reduce) -> Sum:
    """Σ exp(e) of what takes part."""
    return Sum(t.indices, mul(t.mark, Call("exp", (t.body,))))


def _share(t: Reduce, args: Sequence[Term]) -> Term:
    """exp(e)/Σ exp(e) at a place."""
    whole = _exponentials(t)
    own = substitute(whole.body, dict(zip(t.indices, args, strict=True)))
    return Mul((own, Pow(whole, MINUS_ONE)))


def _summed(body: Expr, limits: Sequence[Limit]) -> Expr:
    """Σ over the integers among the limits, ∫ over the real numbers."""
    import sympy

    integers = [limit for limit in limits if limit[0].is_integer]
    numbers = [limit for limit in limits if not limit[0].is_integer]
    body = sympy.Integral(body, *numbers) if numbers else body
    return _bound(sympy.Sum, body, integers) if integers else body


def _bound(kind: type[Sum_ | Product_], body: Expr, limits: Sequence[Limit]) -> Expr:
    """Σ or Π; the conditions of the Σ and Π in `body` stay there.

    SymPy takes a condition that mentions an index out of what is below it, and from Σ_j [i < j] it would take j out of
    its range. The inner Σ therefore has an index of its own in the place of i, which runs from i to i.
    """
    import sympy

    outer = [symbol for symbol, *_ in limits]
    kept: dict[Basic, Basic] = {}
    for inner in _outermost(body):
        conditions = [p for p in inner.atoms(sympy.Piecewise) if p.has(*outer) and p.has(*inner.bound_symbols)]
        seen = [s for s in outer if any(p.has(s) for p in conditions)]
        taken = {str(symbol) for symbol in body.atoms(sympy.Symbol)}
        own = {s: sympy.Symbol(unique_name(f"{s}_", taken), integer=True) for s in seen}
        if own:
            points = [(own[s], s, s) for s in seen]
            kept[inner] = _bound(type(inner), inner.function.xreplace(own), [*points, *inner.limits])
    return kind(body.xreplace(kept) if kept else body, *limits)


def _outermost(body: Basic) -> Iterator[Sum_ | Product_]:
    """The Σ and Π in an expression that stand below no other."""
    import sympy

    walk = sympy.preorder_traversal(body)
    for part in walk:
        if isinstance(part, sympy.Sum | sympy.Product):
            yield part
            walk.skip()


def _count(extent: tuple[Expr, Expr]) -> Expr:
    first, last = extent
    return last - first + 1


def _slots(kind: object) -> tuple[Domain, ...] | None:
    """The domains of all slots of a tensor, also of one that maps indices to tensors; None for another map."""
    match kind:
        case Map(params, result):
            own = [p.domain for p in params if isinstance(p, Index) and p.domain is not None]
            below = _slots(result)
            return (*own, *below) if len(own) == len(params) and below is not None else None
        case Number() | Index():
            return ()
        case _:
            return None


def _domains(term: Term) -> dict[Domain, None]:
    """The domains of all slots and indices, in the order in which they are met."""
    kinds = [v.kind for t in subterms(term) for v in (*bound_by(t), *((t,) if isinstance(t, Var) else ()))]
    return dict.fromkeys(domain for kind in kinds for domain in domains_of(kind))


def _size_name(axis: Domain, domain: Domain) -> str:
    """What the size of an axis is called; none is given to the range of a slot that is written N."""
    if domain.symmetric and not domain.listed:
        return f"M_{axis.name}".replace(".", "_")
    if domain.sized:
        return axis.name
    return f"n_{axis.name}".replace(".", "_") if domain.declared else ""


def _in_words(t: Term) -> str:
    match t:
        case Diff("root"):
            return "a root of an equation is left in the result"
        case Diff("adjoint" | "inverse" as kind):
            return f"the {kind} of a linear map is left in the result"
        case Diff(kind):
            name = "gradient" if kind == "grad" else kind
            return f"a {name} is left of an unknown map that is no function of real numbers"
        case Reduce(kind):
            return f"{kind} over indices is left in the result"
        case Loop():
            return "a loop is left in the result"
        case Delta():
            return "a δ of complex numbers or of maps is left in the result"
        case _:
            return "a map of functions or arrays is left in the result"


def refuse(what: str) -> NoReturn:
    """Raise an error that says what SymPy does not have."""
    raise UnsupportedError(f"SymPy has no expression for this: {what}", remedy="use the text, str(d), or d.latex()")
