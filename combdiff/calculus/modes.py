"""Takes the derivatives that a program asks for (`markers.py`): nested ones inner first.

Differentiation itself is `reverse.py`, `forward.py` and `jacobian.py`; this module finds f, and simplifies between
nested derivatives with a simplifier that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeGuard

from combdiff.calculus.definitions.floating import float_lets, without_aliases
from combdiff.calculus.forward import pushforward_of
from combdiff.calculus.functions.by_parts import IntegrationByParts
from combdiff.calculus.functions.intervals import (
    check_ends,
    with_conditions_of_intervals,
    with_moving_ends,
    with_numbers_for_points,
)
from combdiff.calculus.functions.points import Points
from combdiff.calculus.jumps.conditions import check_peaks, numbers_among
from combdiff.calculus.jumps.distributions import with_peaks
from combdiff.calculus.loops.guards import with_guards_inside
from combdiff.calculus.markers import (
    MODES,
    SIMPLIFIED,
    has_marker,
    innermost,
    inward,
    leading,
    mark_last,
    mark_named,
    marked_anew,
    without_marker,
)
from combdiff.calculus.matrices.jacobian import jacobian_of
from combdiff.calculus.reverse import check_value, gradient_of, pullback_of
from combdiff.calculus.symmetric import symmetrised
from combdiff.errors import UnsupportedError
from combdiff.language.printing.names import names_in
from combdiff.records import dataclass
from combdiff.terms.terms import (
    ZERO,
    App,
    Diff,
    Lam,
    Sum,
    Term,
    Var,
    apply,
    children,
    diff,
    fresh,
    holds,
    is_curve,
    lam,
    let,
    mul,
    params_of,
    proj,
    rebuild,
    refreshed,
    subterms,
)
from combdiff.terms.types import REAL, Map, Number, Type


class Simplify(Protocol):
    """(a derivative, variables whose declared symmetry must not be used, which arrays are functions) ↦ an equal map."""

    def __call__(self, f: Lam, unused: Collection[Var], points: Points | None = None) -> Lam: ...


def _as_it_is(f: Lam, unused: Collection[Var], points: Points | None = None) -> Lam:
    return f


def differentiate(
    program: Term, mode: str, simplify: Simplify, ask: Callable[[], None] = lambda: None, *, symmetric: bool = False
) -> Term:
    """Take every derivative that `program` asks for, the outermost as `mode` says, a row of `MODES`.

    Args:
        program: leading maps and a `pullback(f)` or `grad(f)` below them; see `marked_program`.
        mode: what the outermost marker becomes.
        simplify: called on every derivative; on inner ones without the symmetries of what is still differentiated.
        ask: called often; it may raise to stop.
        symmetric: the result is projected on the declared symmetry of what is differentiated.
    """
    if mode == SIMPLIFIED:
        return _simplified(program, simplify, ask)
    marked = marked_anew(program, MODES[mode].taken)
    last = _below_maps(marked) if symmetric else None
    return inward(without_derivatives(marked, simplify, ask, last))


def _below_maps(t: Term) -> Term:
    return _below_maps(t.body) if isinstance(t, Lam) else t


def _simplified(program: Term, simplify: Simplify, ask: Callable[[], None]) -> Term:
    """The program itself, the derivatives inside of it taken, below its leading maps."""
    maps, _ = leading(program)
    n = innermost(maps)
    f = without_derivatives(maps[n], simplify, ask)
    assert isinstance(f, Lam), "a map stays one"
    result: Term = simplify(Lam(f.params, let(*float_lets(refreshed(f.body)))), ())
    for outer in reversed(maps[:n]):
        result = Lam(outer.params, result)
    return inward(result)


def without_derivatives(
    program: Term,
    simplify: Simplify = _as_it_is,
    ask: Callable[[], None] = lambda: None,
    projected: Term | None = None,
) -> Term:
    """`program` with the derivatives of known maps taken, inner ones first; one is `projected` on a symmetry."""
    walk = _Derivatives(simplify, ask, projected, _varied(program), names_in(program), _below_maps(program))
    return with_guards_inside(walk(program, inside=False))


@dataclass(frozen=True, slots=True)
class _Derivatives:
    """Takes the derivatives in a program; `asked` is what its leading maps return, `pending` what it differentiates."""

    simplify: Simplify
    ask: Callable[[], None]
    projected: Term | None
    pending: frozenset[Var]
    names: Collection[str]
    asked: Term

    def __call__(self, t: Term, inside: bool, over: Collection[Var] = (), is_argument: bool = False) -> Term:
        """`t` with derivatives taken, under integrals `over` variables; `inside` of what is differentiated itself."""
        if isinstance(t, Diff):
            return self.taken(t, inside, over, is_argument)
        below = children(t)
        if not holds(t, Diff):
            return t
        if isinstance(t, App):
            # the values of a derivative at a variable of an integral, or all of them, are those of a distribution
            function, *arguments = below
            parts = [self(function, inside, over, any(not a.free.isdisjoint(over) for a in arguments))]
            parts += [self(a, inside, {*over, *_numbers_of(a)}, isinstance(a, Diff)) for a in arguments]
            return rebuild(t, parts)
        if isinstance(t, Sum):
            over = {*over, *numbers_among(t.indices)}
        return _kept(t, [self(c, inside, over) for c in below])

    def taken(self, marker: Diff, inside: bool, over: Collection[Var], is_argument: bool) -> Term:
        t = self.forwards(marker, over, is_argument)
        f = with_guards_inside(self(t.of, True, over, is_argument))
        if not _taken(f, t):
            if t.kind == "jvp" and is_curve(f.type):
                return _along(f)
            if t.kind == "inverse" and isinstance(f, Lam):
                _adjoint(f, lambda taken: taken)
            return diff(t.kind, f)
        if t.kind == "pullback":
            check_ends(f, [f.body.type])
        f = with_moving_ends(_copy(f))
        unused = self.pending.union(f.params) if inside else ()
        if t.kind == "adjoint":
            return _adjoint(f, lambda taken: self.simplify(taken, unused))
        if (jets := IntegrationByParts.of(f)) is not None and t.kind in ("grad", "pullback", "jvp"):
            taken = _met(_derivative(t, jets.objective, self.names, self.ask)[0])
            result = _of_functions(
                t, jets, self.simplify(taken, unused), self.names, lambda e: self(e, inside, _points(e))
            )
            result = self.simplify(result, unused)
        elif (points := Points.of(f)) is not None and t.kind in ("grad", "pullback", "jvp"):
            taken, _ = _derivative(t, points.map, self.names, self.ask)
            result = points.back(self.simplify(taken, unused, points))
        else:
            taken, finished = _derivative(t, f, self.names, self.ask)
            taken = _met(taken)
            taken = symmetrised(taken, f.params) if marker is self.projected else taken
            result = finished(self.simplify(with_peaks(taken, f) if is_argument else taken, unused))
        return result if marker is self.asked else _of_one_cotangent(result, t)

    def forwards(self, t: Diff, over: Collection[Var], is_argument: bool) -> Diff:
        """The Hessian product of a functional, which is symmetric, as the derivative of its gradient."""
        match t:
            case Diff("pullback", Diff("grad", Lam() as f)):
                # whether y is under d/dx may be seen only where derivatives in the functional are taken
                inner = with_guards_inside(self(f, True, over, is_argument))
                if not isinstance(inner, Lam):
                    return t
                check_ends(inner, [p.kind for p in inner.params])
                return t if IntegrationByParts.of(inner) is None else Diff("jvp", Diff("grad", inner))
            case _:
                return t


def _of_one_cotangent(taken: Lam, t: Diff) -> Lam:
    """A pullback within a program takes the cotangents of a tuple as a tuple."""
    assert isinstance(t.type, Map), "a derivative of a map is a map"
    points, kind = taken.params[: len(t.type.params) - 1], t.type.params[-1]
    if t.kind != "pullback" or len(taken.params) == len(t.type.params):
        return taken
    k = fresh("k", kind)
    return Lam((*points, k), apply(taken, *points, *(proj(n, k) for n in range(len(taken.params) - len(points)))))


def _varied(program: Term) -> frozenset[Var]:
    """What is differentiated somewhere in a program."""
    return frozenset(p for t in subterms(program, Diff) for f in (t.of,) if _taken(f, t) for p in f.params)


def _derivative(t: Diff, f: Lam, around: Collection[str], ask: Callable[[], None]) -> tuple[Lam, Callable[[Lam], Lam]]:
    """The derivative of f that `t` asks for, and what is to be done with it when it is simplified."""
    check_value(f)
    match t.kind:
        case "grad":
            return gradient_of(f, ask), _unchanged
        case "jvp":
            return pushforward_of(f, around, ask), _unchanged
        case "jacobian":
            jacobian = jacobian_of(f, ask)
            return jacobian.taken, jacobian.without_zeros
        case _:
            return pullback_of(f, _cotangents(t.of), around, ask), _unchanged


def _of_functions(
    t: Diff, jets: IntegrationByParts, taken: Lam, around: Collection[str], written_out: Callable[[Term], Term]
) -> Lam:
    """The derivative with respect to functions under d/dx, of the one with respect to their jets."""
    if t.kind == "jvp":
        return jets.tangent(taken, around)
    found = written_out(jets.derivative(taken))
    assert isinstance(found, Lam), "a map stays one"
    return Lam(found.params, let(*float_lets(found.body)))


def _along(f: Term) -> Lam:
    """The pushforward of an unknown function of a real number."""
    assert isinstance(f.type, Map), "a function"
    x, k = fresh("x", f.type.params[0]), fresh("k", REAL)
    return Lam((x, k), mul(k, App(diff("grad", f), (x,))))


def _met(taken: Lam) -> Lam:
    return Lam(taken.params, with_conditions_of_intervals(taken.body))


def _unchanged(f: Lam) -> Lam:
    return f


def _points(t: Term) -> set[Var]:
    """The points at which a derivative by a function is taken: a slope there is that of a distribution."""
    return {p for u in subterms(t, Lam) for p in u.params if isinstance(p.kind, Number)}


def _numbers_of(argument: Term) -> list[Var]:
    """The parameters of a function of numbers, which a map of functions takes the integral over in its derivative."""
    return numbers_among(argument.params) if isinstance(argument, Lam) else []


def _taken(f: Term, t: Diff) -> TypeGuard[Lam]:
    """Whether it is written out: derivatives and adjoints of known maps are."""
    return isinstance(f, Lam) and (t.is_derivative or t.kind == "adjoint")


def _adjoint(f: Lam, simplify: Callable[[Lam], Lam]) -> Lam:
    """k ↦ 𝒫(f)(x, k), which is the adjoint where it holds no x and f(0) = 0."""
    (x,) = f.params
    pulled = simplify(pullback_of(f))
    slots = tuple(fresh(p.name, p.kind) for p in params_of(f.body))
    value = apply(f, lam(tuple(fresh("d", p) for p in x.kind.params), ZERO) if isinstance(x.kind, Map) else ZERO)
    if x in pulled.body.free or (apply(value, *slots) if slots else value) != ZERO:
        raise UnsupportedError(
            f"the map of {x.name} is not linear, and only linear maps have an adjoint or an inverse here",
            remedy="write a map that is a sum of multiples of its argument's entries; root(…) solves other equations",
        )
    return Lam(pulled.params[1:], pulled.body)


def _cotangents(of: Term) -> tuple[Type, ...]:
    """The types of the cotangents where they are known beforehand: those of a gradient are its variables'."""
    match of:
        case Diff("grad", Lam(params, _)):
            return tuple(p.kind for p in params)
        case _:
            return ()


def _kept(t: Term, parts: Sequence[Term]) -> Term:
    """`t` with other children, its own binders untouched."""
    match t:
        case Lam(params, _):
            return Lam(params, parts[0])
        case _:
            return rebuild(t, parts)


def _copy(f: Lam) -> Lam:
    """`f` with its inner binders renamed: the derivative shares none with what it came from. Parameters stay."""
    return Lam(f.params, refreshed(f.body))


def marked_program(program: Term, wrt: Sequence[str] = ()) -> Term:
    """The program with a marker where the derivative is to be taken; `wrt` names parameters instead of the text."""
    check_peaks(program)
    program = with_conditions_of_intervals(without_aliases(inward(program)))
    if wrt:
        return with_numbers_for_points(mark_named(without_marker(program), wrt))
    return with_numbers_for_points(program if has_marker(program) else mark_last(program))


def plain_program(program: Term) -> Term:
    """The program as it is, for a mode that takes no derivative; one that is marked keeps its marker."""
    check_peaks(program)
    program = with_conditions_of_intervals(without_aliases(inward(program)))
    if not has_marker(program):
        innermost(leading(program)[0])  # refuses what is no map
    return program
