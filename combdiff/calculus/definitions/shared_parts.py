"""The form of a program whose derivative is run: definitions written out, then repeated subterms defined.

    y = i -> x(i)^2;  sum(i, y(i))^2        becomes   sum(i, x(i)^2)^2
    sum(i, exp(tanh(x(i))) + tanh(x(i)))    becomes   u1 = i -> tanh(x(i));  sum(i, exp(u1(i)) + u1(i))

The reverse pass collects the cotangent of a definition once, and multiplies out what has no name, so that code of one
program would differ by the names that it gives. What is read keeps the user's definitions; what is run has these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence, Set
from dataclasses import field
from itertools import count
from typing import NamedTuple

from combdiff.calculus.definitions.floating import Binding, float_lets
from combdiff.calculus.definitions.naming import LINEAR, is_worth_a_name, nonlinear_places
from combdiff.calculus.functions.points import Points
from combdiff.calculus.implicit import is_implicit
from combdiff.canon.closed import ClosedForm, closed_form
from combdiff.canon.skeleton import NOTHING, UNIT, Coefficient
from combdiff.language.printing.names import names_in
from combdiff.records import dataclass
from combdiff.terms.nodes import OF_MATRICES
from combdiff.terms.terms import (
    Add,
    App,
    Call,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Let,
    Loop,
    Mul,
    Pow,
    Reduce,
    Sum,
    Term,
    Traverser,
    Var,
    apply,
    bound_by,
    children,
    fresh,
    holds,
    let,
    mul,
    number,
    rebuild,
    refreshed,
    substitute,
    subterms,
    wraps,
)
from combdiff.terms.types import Index, Map, Number, is_function

MOST = 2_000
"""Nodes of a program beyond which definitions stay as they are."""

SHORT = 300
"""Nodes of a program that may be twice as long, and longer, with its definitions written out."""


def programs_to_run(program: Term) -> tuple[Term, ...]:
    """The marked `program` with its definitions written out, and with others where these are not the same.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> from combdiff.language.printing.printer import expression_text
    >>> program = infer(parse("grad((x::RV) -> begin y = i -> x(i)^2; sum(i, y(i) * y(i)) end)"))
    >>> [expression_text(p) for p in programs_to_run(program)]
    ['grad((x::RV) -> sum(i, x(i)^4))']
    >>> program = infer(parse("grad((x::R) -> exp(sin(x)) - sin(x))"))
    >>> [expression_text(p).split("\\n") for p in programs_to_run(program)][1]
    ['grad((x::R) -> begin', '  u1 = sin(x)', '  exp(u1) - u1', 'end)']

    Programs that take several derivatives stay as they are.
    """
    match [*subterms(program, Diff)]:
        case [Diff(kind, Lam() as f) as marker] if marker.is_derivative:
            return tuple(_put(program, marker, Diff(kind, alike)) for alike in _alike(f))
        case _:
            return (program,)


def _put(t: Term, old: Term, new: Term) -> Term:
    return Traverser(lambda u: new if u == old else u)(t)


def _alike(f: Lam) -> list[Lam]:
    points = Points.of(f)
    if points is None:
        return [Lam(f.params, body) for body in _bodies(f)]
    return [points.back(Lam(points.map.params, body)) for body in _bodies(points.map)]


def _bodies(f: Lam) -> list[Term]:
    """The body of `f` with its definitions written out, and with parts of its own that are shared."""
    bindings, core = float_lets(f.body)
    out = _written_out(bindings, core if bindings else refreshed(core))
    if _length(let(out.kept, out.core)) > max(SHORT, 2 * _length(f.body)):
        # so many uses share the definitions that the program without them takes longer to derive, and to run
        out = WrittenOut([*bindings], core, [])
    plain = f.body if not out.values else let(out.kept, out.core)
    parts = RepeatedParts(frozenset(f.params), _fresh_names(f))
    for name, value in out.values:
        parts.call(name, value)
    for t in (*(value for _, value in out.kept), out.core):
        parts.count(t, ())
    for var, value in out.kept:
        parts.found.append((var, value if _is_whole(value) else parts.rewritten(value, ())))
    core = parts.with_products_named(parts.rewritten(out.core, ()))
    if len(parts.found) == len(out.kept):
        return [plain]
    named = let(parts.found, core)
    return [named] if _holds_matrix_of({var for var, _ in parts.found}, named) else [plain, named]


def _holds_matrix_of(names: Set[Var], t: Term) -> bool:
    """Whether a function takes a matrix that has one of the `names`.

    It is an array whether it has a name or not, with one factorisation for all functions of it. Each place at which it
    is written out would make a pullback of its own.
    """
    matrices = (u.body for u in subterms(t, Reduce) if u.kind in OF_MATRICES)
    return any(isinstance(entry, App) and entry.function in names for entry in matrices)


def _fresh_names(f: Lam) -> Iterator[str]:
    taken = names_in(f)
    return (name for n in count(1) if (name := f"u{n}") not in taken)


# --- definitions written out ------------------------------------------------------------------------------------------


class WrittenOut(NamedTuple):
    """The definitions that stay, what is left of the program, and what was written out with the names that it had."""

    kept: list[Binding]
    core: Term
    values: list[tuple[str, Term]]


def _written_out(bindings: Sequence[Binding], core: Term) -> WrittenOut:
    """Definitions in the place of their names, but for functions, roots, and what would make the program too long."""
    kept: list[Binding] = []
    values: list[tuple[str, Term]] = []
    rest = [*bindings]
    while rest:
        (var, value), *later = rest
        following = [*(e for _, e in later), core]
        new = following if _stays(var, value, following) else [refreshed(_with(t, var, value)) for t in following]
        if new is following or sum(map(_length, new)) > MOST:
            kept.append((var, value))
            rest = later
            continue
        values.append((var.name, value))
        rest = [(v, e) for (v, _), e in zip(later, new, strict=False)]
        core = new[-1]
    return WrittenOut(kept, core, values)


def _stays(var: Var, value: Term, following: Sequence[Term]) -> bool:
    """Whether a definition is no map of indices to numbers, or is read as more than its entries."""
    if _is_whole(value) or holds(value, Diff):
        return True
    if not isinstance(value, Lam):
        return not isinstance(value.type, Number)
    users = [u for t in following for u in (t, *subterms(t)) if var in children(u)]
    calls = [u for u in users if isinstance(u, App) and var not in u.args]
    # a tensor that a function takes as a whole is no entry of it
    return len(calls) < len(users) or any(
        wraps(p, a, value.body) for u in calls for p, a in zip(value.params, u.args, strict=True)
    )


def _is_whole(value: Term) -> bool:
    """Whether a definition is no expression: a root, a loop, a function."""
    return is_implicit(value) or isinstance(value, Loop) or is_function(value.type)


def _with(t: Term, var: Var, value: Term) -> Term:
    """`t` with the value of `var` in all its places."""
    if var not in t.free:
        return t

    def visit(u: Term) -> Term:
        match u:
            case App(Var() as f, args) if f == var:
                return apply(value, *args)
            case Var() if u == var and not isinstance(value, Lam):
                return value
            case _:
                return u

    return Traverser(visit)(t)


def _length(t: Term) -> int:
    """The nodes of a term as it is written."""
    known: dict[Term, int] = {}

    def go(u: Term) -> int:
        if u not in known:
            known[u] = 1 + sum(map(go, children(u)))
        return known[u]

    return go(t)


# --- parts that are shared --------------------------------------------------------------------------------------------


class Form(NamedTuple):
    """What a part is up to the names of its indices, and these."""

    closed: ClosedForm
    opens: tuple[Var, ...]

    @property
    def key(self) -> Hashable:
        """What parts of one form have in common."""
        return self.closed.key


@dataclass(slots=True)
class RepeatedParts:
    """Counts the parts of a program that are work, whatever their indices are called, and names those written twice.

    `unused` are the variables that are differentiated by, whose declared symmetries are not used; `called` says what
    the user called parts of a form.
    """

    unused: frozenset[Var]
    names: Iterator[str]
    found: list[Binding] = field(default_factory=list)
    counts: Counter[Hashable] = field(default_factory=Counter)
    forms: dict[Term, Form | None] = field(default_factory=dict)
    values: dict[Hashable, tuple[Var, Form]] = field(default_factory=dict)
    called: dict[Hashable, str] = field(default_factory=dict)

    def call(self, name: str, value: Term) -> None:
        """Note the user's name of a part."""
        slots, entry = (value.params, value.body) if isinstance(value, Lam) else ((), value)
        form = self._closed(entry, slots)
        if form is not None and name not in self.called.values():
            self.called.setdefault(form.key, name)

    def count(self, t: Term, around: tuple[Var, ...]) -> None:
        """Count the parts of `t`; those of what was met before are none of another place."""
        if not _may_hold_parts(t):
            return
        form = self._form(t, around)
        if form is not None:
            self.counts[form.key] += 1
            if self.counts[form.key] > 1:
                return
        for u in children(t):
            self.count(u, (*around, *bound_by(t)))

    def rewritten(self, t: Term, around: tuple[Var, ...]) -> Term:
        """`t` with names for the parts of it that are written twice."""
        if not _may_hold_parts(t):
            return t
        form = self._form(t, around)
        if form is None or self.counts[form.key] < 2:
            return self._inside(t, around)
        return self._named(t, around, form)

    def _form(self, t: Term, around: tuple[Var, ...]) -> Form | None:
        """The form of a part that may have a name; None for any other."""
        if t not in self.forms:
            is_part = isinstance(t, Add | Call | Pow) and any(map(_is_work, subterms(t)))
            self.forms[t] = self._closed(t, around) if is_part else None
        return self.forms[t]

    def _closed(self, t: Term, around: Sequence[Var]) -> Form | None:
        if not isinstance(t.type, Number) or t.free.isdisjoint(self.unused):
            return None
        # functions of functions of a matrix may bind one index twice: inv((i, j) -> sqrtm((i, j) -> …)(i, j))
        opens = tuple(v for v in dict.fromkeys(around) if v in t.free)
        if not all(isinstance(v.kind, Index) for v in opens):
            return None
        form = closed_form(Lam(opens, t), unused=self.unused)
        return None if form.coefficient == NOTHING else Form(form, opens)

    def _named(self, t: Term, around: tuple[Var, ...], form: Form) -> Term:
        if form.key in self.values:
            entry = self._entry(form)
            return self._inside(t, around) if entry is None else entry
        self.found.append(self._define(self._inside(t, around), form))
        var = self.found[-1][0]
        return App(var, form.opens) if form.opens else var

    def _define(self, value: Term, form: Form) -> Binding:
        """A value of its own for a part."""
        own = {v: fresh(v.name, v.kind) for v in form.opens}
        whole = Lam(tuple(own.values()), substitute(value, own)) if own else value
        var = fresh(self.called.get(form.key) or next(self.names), whole.type)
        self.values[form.key] = (var, form)
        return var, whole

    def _inside(self, t: Term, around: tuple[Var, ...]) -> Term:
        inner = (*around, *bound_by(t))
        below = children(t)
        parts = [self.rewritten(u, inner) for u in below]
        for n in nonlinear_places(t):
            # what differentiation would name has the user's name
            form = self._closed(below[n], inner) if is_worth_a_name(parts[n]) else None
            if form is not None and form.key in self.called:
                parts[n] = self._named(below[n], inner, form)
        match t:
            case Lam(params, _):
                return Lam(params, parts[0])
            case Sum(indices, _):
                return Sum(indices, parts[0])
            case _:
                return rebuild(t, parts)

    def _entry(self, form: Form) -> Term | None:
        """A part by the name of the first one of its form, at its own indices; None where it takes more than a name."""
        var, first = self.values[form.key]
        scale = _ratio(form.closed, first.closed)
        if scale is None or first.closed.view.conj != form.closed.view.conj:
            return None
        args: dict[Var, Var] = {}
        for one, other in zip(first.closed.view.rows, form.closed.view.rows, strict=True):
            if len(one) != 1 or len(other) != 1 or one[0][1] != other[0][1]:
                return None
            args[first.opens[one[0][0]]] = form.opens[other[0][0]]
        if len(args) != len(first.opens):
            return None
        entry = App(var, tuple(args[v] for v in first.opens)) if args else var
        return mul(number(scale), entry)

    # --- products of parts

    def with_products_named(self, core: Term) -> Term:
        """`core`, where products of two parts that stand in several products have names, as in all values."""
        while True:
            places: Counter[Hashable] = Counter()
            everywhere = [*(value for _, value in self.found), core]
            outer = {v for t in everywhere for v in t.free}
            for t in everywhere:
                for u in subterms(t):
                    forms = [self._form_of(pair) for pair in self._pairs(u, outer)]
                    places.update(form.key for form in forms if form is not None and form.key not in self.values)
            key, count = max(places.items(), key=lambda entry: entry[1], default=(None, 0))
            if count < 2:
                return core
            core = self._with_product_named(key, core, outer)

    def _pairs(self, t: Term, outer: Set[Var]) -> Iterator[tuple[Term, Term]]:
        """The parts of a product, two at a time, that are at the same indices, and else made of `outer` variables.

        States of a loop and numbers of an integral are known only there.
        """
        if isinstance(t, Mul) and isinstance(t.type, Number):
            named = {var for var, _ in self.found}
            parts = [f for f in t.factors if self._is_part(f, named) and f.free - {*_indices(f)} <= outer]
            for n, f in enumerate(parts):
                yield from ((f, g) for g in parts[n + 1 :] if {*_indices(f)} == {*_indices(g)})

    def _is_part(self, f: Term, named: set[Var]) -> bool:
        """Whether a factor is an entry of a value that has a name, or a function of what is differentiated by."""
        if (f.function if isinstance(f, App) else f) in named:
            return True
        reached = not f.free.isdisjoint(self.unused | named)
        return reached and isinstance(f, Call | Pow) and any(map(_is_work, subterms(f)))

    def _form_of(self, pair: tuple[Term, Term]) -> Form | None:
        whole = mul(*pair)
        if whole not in self.forms:
            opens = _indices(pair[0])
            form = closed_form(Lam(opens, whole), unused=self.unused)
            self.forms[whole] = None if form.coefficient == NOTHING else Form(form, opens)
        return self.forms[whole]

    def _with_product_named(self, key: Hashable, core: Term, outer: Set[Var]) -> Term:
        made: list[Binding] = []

        def visit(u: Term) -> Term:
            for f, g in self._pairs(u, outer):
                form = self._form_of((f, g))
                if form is None or form.key != key:
                    continue
                if not made:
                    made.append(self._define(mul(f, g), form))
                entry = self._entry(form)
                if entry is not None:
                    assert isinstance(u, Mul), "a pair stands in a product"
                    rest = [*u.factors]
                    rest.remove(f)
                    rest.remove(g)
                    return mul(*rest, entry)
            return u

        walk = Traverser(visit)
        values = [(var, walk(value)) for var, value in self.found]
        core = walk(core)
        first = next((n for n, (_, value) in enumerate(values) if made[0][0] in value.free), len(values))
        self.found = [*values[:first], *made, *values[first:]]
        return core


def _indices(t: Term) -> tuple[Var, ...]:
    """The open indices of a part, in the order in which it mentions them."""
    mentioned = dict.fromkeys(u for u in subterms(t) if isinstance(u, Var) and isinstance(u.kind, Index))
    return tuple(v for v in mentioned if v in t.free)


def _ratio(form: ClosedForm, first: ClosedForm) -> Coefficient | None:
    """What a part is by the first one of its form; None where that is no real number."""
    if form.coefficient[1] or first.coefficient[1]:
        return UNIT if (form.coefficient, form.view.sign) == (first.coefficient, first.view.sign) else None
    return form.coefficient[0] * form.view.sign / (first.coefficient[0] * first.view.sign), form.coefficient[1]


def _may_hold_parts(t: Term) -> bool:
    """Whether names may be given in it: not under a guard, nor in what is no map of indices."""
    if isinstance(t, Var | Const | Let | Diff | Delta | Indicator):
        return False
    return not (isinstance(t, Lam) and is_function(t.type))


def _is_work(t: Term) -> bool:
    match t:
        case Call(name, args):
            return bool(args) and name not in LINEAR
        case Pow(_, n):
            return not (isinstance(n, Const) and n.is_integer and n.real > 0)
        case Sum(counted=None) | Diff():
            return True
        case App(f, _):
            return isinstance(f.type, Map) and not f.type.is_array
        case _:
            return False
