"""Lowers implicit values: the inverse of a linear map becomes one solve, a root becomes Newton's method.

    inverse(H)(k)   the matrix of H, from its values on unit vectors, δ contracted; then a dense solve
    root(g)         a function of its own that computes g and its Jacobian matrix, which the emitted text iterates

A map of complex tensors that conjugates is linear over the real numbers only: it has two matrices, of its values on
unit vectors and on i times those.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.lower.argument_names import ArgumentNames, unlike
from combdiff.arrays.lower.arrays import Arrays, Value
from combdiff.arrays.lower.signature import Result, slots
from combdiff.arrays.numbers import is_plain
from combdiff.arrays.plan import Argument, Equation, Plan, Root, Step, ordered, plans_within
from combdiff.calculus.definitions.floating import unfold
from combdiff.calculus.definitions.naming import name_equations
from combdiff.calculus.functions.inverses import of_inverse
from combdiff.calculus.loops.loop_keys import LoopKeys
from combdiff.calculus.reverse import pullback_of
from combdiff.canon.canonical import normal_form
from combdiff.errors import Mention, UnsupportedError
from combdiff.language.printing.printer import expression_text
from combdiff.simplify.contraction.contract import contract
from combdiff.simplify.laws.linear import written_out
from combdiff.terms.terms import (
    IMAGINARY,
    ONE,
    Add,
    App,
    Call,
    Conj,
    Delta,
    Diff,
    Indicator,
    Lam,
    Mul,
    Sum,
    Term,
    Tuple,
    Var,
    apply,
    conj,
    delta,
    fresh,
    refreshed,
    substitute,
    subterms,
)
from combdiff.terms.types import REAL, Index, Map, Type, is_complex, slot_types

Lower = Callable[[Lam, set[str]], Plan]


class Solving(ABC):
    """The part of a lowering that solves equations; `lower` makes the plan of a function of its own.

    `unknowns` are the names of those of all equations so far, which each lowering adds to.
    """

    arrays: Arrays
    known: dict[Term, Step]
    functions: dict[Var, Term]

    def __init__(self, lower: Lower, unknowns: set[str], names: ArgumentNames) -> None:
        self.lower = lower
        self.unknowns = unknowns
        self.argument_names = names
        self.equations: dict[Hashable, Step] = {}
        self.common: dict[Type, list[Var]] = {}
        self.starts: list[Argument] = []
        self.recurrences: dict[Hashable, tuple[Step, Sequence[int]]] = {}
        self.loop_keys = LoopKeys()

    @abstractmethod
    def array(self, t: Term) -> Step:
        """A tensor whose axes are its slots."""

    @abstractmethod
    def scalar(self, t: Term, wanted: Sequence[Var] = ()) -> Value:
        """A number that depends on indices."""

    def solve(self, t: App) -> Value:
        """inverse(H)(k) for a known H."""
        if not isinstance(t.type, Map):
            return self.scalar(written_out(t))
        assert isinstance(t.function, Diff) and isinstance(t.function.of, Lam), "the inverse of a known map"
        _refuse_loops(t, "a linear system", "inverse")
        operands = [self.array(part) for part in _matrices(t.function.of)]
        operands.append(self.array(t.args[0]))
        step = self.arrays.builder.step(ops.Solve(), tuple(operands), slots(t.type), is_complex(t.type))
        return Value(step, ())

    def root(self, t: Diff) -> Step:
        """root(g): for an unknown g an argument, else the value that Newton's method finds."""
        form = self._form(t)
        if form in self.equations:
            return self.equations[form]
        if not isinstance(t.of, Lam):
            name = self.argument_names.of(t)
            step = self.arrays.builder.step(ops.Input(name), (), slots(t.type), is_complex(t.type))
            self.starts.append(Argument(name, t.type, step=step))
        else:
            _refuse_loops(t, "an equation", "root")
            step = self._newton(t.of, t.type)
        self.equations[form] = step
        return step

    def _form(self, t: Diff) -> Hashable:
        """The same for two roots of one equation, whatever the unknown is called and its terms' order."""
        if not isinstance(t.of, Lam):
            return t
        kind = t.of.params[0].kind
        x, *rows = self.common.setdefault(kind, [fresh("x", kind), *(fresh("r", s) for s in slot_types(kind))])
        entry = apply(t.of, x)
        return kind, normal_form(apply(entry, *rows) if rows else entry).key

    def _newton(self, g: Lam, kind: Type) -> Step:
        g = _with_functions(g, self.functions)
        captured = tuple(sorted((v for v in g.free if v in self.known), key=lambda v: v.uid))
        functions = tuple(sorted((v for v in g.free if v not in self.known), key=lambda v: v.uid))
        name = unlike(g.params[0].name, self.unknowns)
        self.unknowns.add(name)
        own: dict[Var, Var] = {}
        for v, wish in ((g.params[0], name), *((v, v.name) for v in captured)):
            chosen = self.argument_names.within(wish, {w.name for w in own.values()})
            own[v] = v if chosen == v.name and v in captured else fresh(chosen, v.kind)
        x, *values = own.values()
        slopes = _jacobian(g, x)
        residual = substitute(apply(g, x), own), *(substitute(t, own) for t in _of_entries(slopes) or slopes)
        plan = self.lower(Lam((x, *values, *functions), Tuple(residual)), self.unknowns)
        plan = replace(plan, outputs=tuple(map(self._as_array, plan.outputs)))
        start = self.argument_names.start(name)
        self.starts.append(Argument(start, kind, optional=True))
        inverse, value = self._inverse(g, name, len(slopes) == 1 and plan.outputs[1].domains == slots(kind))
        op = Root(Equation(f"equation_{name}", plan, x.name, start, tuple(v.name for v in values), inverse))
        operands = (*(self.known[v] for v in captured), *value)
        return self.arrays.builder.step(op, operands, slots(kind), is_complex(kind))

    def _inverse(self, g: Lam, name: str, of_entries: bool) -> tuple[str, Sequence[Step]]:
        """The argument that solves an equation h(x) = y, and y; none where h is not the same for all calls."""
        unknown = {v for v in g.free if isinstance(v.kind, Map) and not v.kind.is_array}
        found = of_inverse(g, unknown) if of_entries else None
        if found is None:
            return "", ()
        inverse = self.argument_names.inverse(found.function or name)
        left = expression_text(substitute(found.left, {found.unknown: fresh(name, REAL)}))
        kind, made = Map((REAL,), REAL), ("solution", left)
        if inverse not in {a.name for a in self.starts}:
            self.starts.append(Argument(inverse, kind, callable=True, optional=True, made=made))
        return inverse, (self.array(found.right),)

    def _as_array(self, step: Step) -> Step:
        """A result that solvers take: of a number, which a slope may be, an array of the library."""
        return self.arrays.builder.step(ops.AsArray(), (step,), ()) if is_plain(step) else step

    def taken(self, arguments: Sequence[Argument], outputs: Sequence[Step]) -> tuple[Argument, ...]:
        """What is an argument: arrays, the functions that are called, and what a size is read off."""
        steps = ordered(outputs)
        called = {s.op.function for s in steps if isinstance(s.op, ops.Unknown)}
        plans = plans_within(steps)
        asked = {a.name: a for plan in plans for a in plan.arguments if a.callable}
        functions = [a for a in arguments if a.callable and a.name in called | asked.keys()]
        functions += [a for name, a in asked.items() if name not in {f.name for f in functions}]
        return (*(a for a in (*arguments, *self.starts) if not a.callable and not a.optional), *functions)

    def optional_starts(self) -> tuple[Argument, ...]:
        """Where Newton's method may start."""
        return tuple(a for a in self.starts if a.optional)


def with_equations(result: Result) -> Result:
    """`result` with a value of its own for everything that is known by an equation, for all indices at once."""
    whole = (*(e for _, e in result.bindings), *result.outputs)
    if not any(u.kind in ("root", "inverse") for e in whole for u in subterms(e, Diff)):
        return result
    bindings, core = name_equations(result.bindings, Tuple(result.outputs))
    assert isinstance(core, Tuple), "a tuple stays one"
    return replace(result, bindings=tuple(bindings), outputs=core.items)


def _refuse_loops(t: Term, what: str, word: str) -> None:
    loose = [v.name for v in t.free if isinstance(v.kind, Index)]
    if loose:
        raise UnsupportedError(
            f"{what} would be solved for each value of {', '.join(sorted(loose))}",
            about=Mention(word, called=True, beside=frozenset(loose)),
            remedy="let the unknown have that index too, so that all of them are solved at once",
        )


def _matrices(H: Lam) -> list[Lam]:
    """The matrix of H over the rows and columns of its tensors; two where it conjugates (see above)."""
    (v,) = H.params
    units = [ONE, IMAGINARY] if is_complex(v.kind) and _conjugates(v, H.body) else [ONE]
    return [_matrix(H, unit) for unit in units]


def _conjugates(v: Var, e: Term) -> bool:
    return any(v in u.free for u in subterms(e, Conj, Call))


def _matrix(H: Lam, unit: Term) -> Lam:
    (v,) = H.params
    body = refreshed(H.body)
    assert isinstance(v.kind, Map), "a map of tensors"
    if not isinstance(body, Lam):
        rows = tuple(fresh(f"r{n + 1}", kind) for n, kind in enumerate(v.kind.params))
        body = Lam(rows, apply(body, *rows))
    columns = tuple(fresh(f"c{n + 1}", kind) for n, kind in enumerate(v.kind.params))
    own = tuple(fresh(f"d{n + 1}", kind) for n, kind in enumerate(v.kind.params))
    entry = unit
    for d, c in zip(own, columns, strict=True):
        entry = delta(d, c, entry)
    return Lam((*body.params, *columns), _contracted(substitute(body.body, {v: Lam(own, entry)})))


def _contracted(entry: Term) -> Term:
    (found,), _ = contract([entry])
    return found


def _jacobian(g: Lam, at: Var) -> list[Term]:
    """The matrix of dx ↦ g'(x) dx, the adjoint of the pullback; of one that conjugates, the two of the pullback."""
    pulled = pullback_of(g)
    x, k = pulled.params
    body = substitute(unfold(pulled.body), {x: at})
    if isinstance(x.kind, Map):
        matrices = _matrices(Lam((k,), _entrywise(body)))
        if len(matrices) == 2:
            return [*matrices]
        rank = len(x.kind.params)
        return [Lam((*m.params[rank:], *m.params[:rank]), conj(m.body)) for m in matrices]
    body = _contracted(body)
    if is_complex(k.kind) and _conjugates(k, body):
        return [substitute(body, {k: unit}) for unit in (ONE, IMAGINARY)]
    return [conj(substitute(body, {k: ONE}))]


def _of_entries(slopes: Sequence[Term]) -> list[Term] | None:
    """The diagonal of a Jacobian matrix with nothing beside it: each entry of x stands in an equation of its own."""
    match slopes:
        case [Lam(params, body)]:
            half = len(params) // 2
            pairs = dict(zip(params[half:], params[:half], strict=True))
            return [Lam(params[:half], substitute(body, pairs))] if _is_diagonal(body, pairs) else None
        case _:
            return None


def _is_diagonal(t: Term, pairs: Mapping[Var, Var]) -> bool:
    """Whether every term of `t` is 0 where one of the pairs of indices differs."""
    match t:
        case Conj(of):
            return _is_diagonal(of, pairs)
        case Add(terms):
            return all(_is_diagonal(u, pairs) for u in terms)
        case _:
            return not pairs.items() - _equal(t)


def _equal(t: Term) -> set[tuple[Term, Term]]:
    """The pairs of indices, in both orders, that are equal wherever `t` is not 0."""
    match t:
        case Delta(left, right, body):
            return {(left, right), (right, left)} | _equal(body)
        case Mul(factors):
            return {pair for f in factors for pair in _equal(f)}
        case Indicator(_, _, body) | Sum(_, body) | Conj(body):
            return _equal(body)
        case _:
            return set()


def _entrywise(body: Term) -> Term:
    return Lam(body.params, _contracted(body.body)) if isinstance(body, Lam) else body


def _with_functions(g: Lam, functions: Mapping[Var, Term]) -> Lam:
    """`g` with definitions that are kept unknown written out."""
    replaced = substitute(g, functions)
    assert isinstance(replaced, Lam), "substitution keeps the node"
    return replaced
