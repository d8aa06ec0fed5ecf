"""Which derivative a program asks for, and taking it: one row a mode; nested derivatives inner first.

The text says where (`pullback(f)`, `grad(f)`, or else the last leading map of something that is no index), the entry
point says what. Differentiation itself is `reverse.py`, `forward.py` and `jacobian.py`; this module finds f, and
simplifies between nested derivatives with a simplifier that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from combdiff.calculus.floating import float_lets, without_aliases
from combdiff.calculus.forward import pushforward_of
from combdiff.calculus.jumps.conditions import check_peaks, numbers_among
from combdiff.calculus.jumps.distributions import with_peaks
from combdiff.calculus.matrices.jacobian import jacobian_of
from combdiff.calculus.reverse import gradient_of, pullback_of
from combdiff.calculus.symmetric import symmetrised
from combdiff.errors import Mention, UnsupportedError
from combdiff.language.printing.names import names_in
from combdiff.terms.terms import (
    ZERO,
    App,
    Diff,
    Lam,
    Let,
    Sum,
    Term,
    Var,
    apply,
    children,
    diff,
    fresh,
    lam,
    let,
    rebuild,
    refreshed,
    subterms,
)
from combdiff.terms.types import Map, Number, Type, is_complex, is_discrete

Simplify = Callable[[Lam, Collection[Var]], Lam]
"""(a derivative, variables whose declared symmetry must not be used yet) ↦ an equal map."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A row: what is `taken` of the map that is marked, and what the result is called.

    `title` is what a message calls it, `sign` what a picture writes above it, with the unknown in the braces, and `raw`
    what it is called before it is simplified. `of_real_part`: a complex value is differentiated by its real part
    (Eq. 42), which the reader is told.
    """

    name: str
    taken: Callable[[Term], Term]
    title: str
    sign: str
    of_real_part: bool = True
    raw: str = "raw pullback"

    @property
    def function(self) -> str:
        """What its code is called."""
        return re.sub(r"\W", "_", self.title.lower())


def _of_number(f: Term) -> Term:
    """The map itself, if its value is one number, which has second derivatives here."""
    kind = f.type
    assert isinstance(kind, Map), "maps are marked"
    if not isinstance(kind.result, Number):
        raise UnsupportedError(
            "second derivatives are those of a number, and the value is a map or a tuple",
            remedy="contract the value with weights of your own, or use jacobian for its first derivatives",
        )
    return f


def _real(f: Term) -> Term:
    """The map itself, if a Hessian is the matrix of its second derivatives."""
    kind = _of_number(f).type
    assert isinstance(kind, Map), "maps are marked"
    if any(map(is_complex, kind.params)):
        raise UnsupportedError(
            "the second derivatives by complex unknowns are not linear over the complex numbers, and make no matrix",
            remedy="use hvp, the Hessian-vector product",
        )
    return f


RAW_JACOBIAN = "raw Jacobian"

_ROWS = (
    Mode("grad", lambda f: Diff("grad", f), "gradient", r"\nabla_{{{}}}"),
    Mode("pullback", lambda f: Diff("pullback", f), "pullback", r"\bar{{{}}}", of_real_part=False),
    Mode("hvp", lambda f: Diff("pullback", Diff("grad", _of_number(f))), "Hessian-vector product", r"(Hk)_{{{}}}"),
    Mode("jvp", lambda f: Diff("pushforward", f), "Jacobian-vector product", r"(Jk)_{{{}}}", False, "raw pushforward"),
    Mode("jacobian", lambda f: Diff("jacobian", f), "Jacobian", r"J_{{{}}}", False, RAW_JACOBIAN),
    Mode("simplified", lambda f: f, "simplified program", "{}", False, "values in front"),
    Mode("hessian", lambda f: Diff("jacobian", Diff("grad", _real(f))), "Hessian", r"H_{{{}}}", raw=RAW_JACOBIAN),
)

MODES = {row.name: row for row in _ROWS}
SIMPLIFIED = "simplified"


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
    marked = _marked_anew(program, MODES[mode].taken)
    last = _below_maps(marked) if symmetric else None
    return inward(without_derivatives(marked, simplify, ask, last))


def as_asked(program: Term, mode: str) -> Term:
    """The marked program as a reader asked: marked by `grad` or `pullback`, for other modes the map itself."""
    if mode == SIMPLIFIED:
        return program
    return _marked_anew(program, MODES[mode].taken if mode in ("grad", "pullback") else lambda f: f)


def _below_maps(t: Term) -> Term:
    return _below_maps(t.body) if isinstance(t, Lam) else t


def _simplified(program: Term, simplify: Simplify, ask: Callable[[], None]) -> Term:
    """The program itself, the derivatives inside of it taken, below its leading maps."""
    maps, _ = _leading(program)
    n = innermost(maps)
    f = without_derivatives(maps[n], simplify, ask)
    assert isinstance(f, Lam), "a map stays one"
    result: Term = simplify(Lam(f.params, let(*float_lets(refreshed(f.body)))), ())
    for outer in reversed(maps[:n]):
        result = Lam(outer.params, result)
    return inward(result)


def without_derivatives(
    program: Term,
    simplify: Simplify = lambda f, _: f,
    ask: Callable[[], None] = lambda: None,
    projected: Term | None = None,
) -> Term:
    """`program` with the derivatives of known maps taken, inner ones first; one is `projected` on a symmetry."""
    pending, names = _varied(program), names_in(program)

    def go(t: Term, inside: bool, over: Collection[Var] = (), is_argument: bool = False) -> Term:
        """`t` with derivatives taken, under integrals `over` variables; `inside` of what is differentiated itself."""
        if isinstance(t, Diff):
            f = go(t.of, True, over, is_argument)
            if not _taken(f, t):
                if t.kind == "inverse" and isinstance(f, Lam):
                    _adjoint(f, lambda taken: taken)
                return diff(t.kind, f)
            f = _copy(f)
            unused = pending.union(f.params) if inside else ()
            if t.kind == "adjoint":
                return _adjoint(f, lambda taken: simplify(taken, unused))
            taken, finished = _derivative(t, f, names, ask)
            taken = symmetrised(taken, f.params) if t is projected else taken
            return finished(simplify(with_peaks(taken, f) if is_argument else taken, unused))
        below = children(t)
        if not any(isinstance(u, Diff) for u in subterms(t)):
            return t
        if isinstance(t, App):
            # the values of a derivative at a variable of an integral, or all of them, are those of a distribution
            function, *arguments = below
            parts = [go(function, inside, over, any(not a.free.isdisjoint(over) for a in arguments))]
            parts += [go(a, inside, {*over, *_numbers_of(a)}, isinstance(a, Diff)) for a in arguments]
            return rebuild(t, parts)
        if isinstance(t, Sum):
            over = {*over, *numbers_among(t.indices)}
        return _kept(t, [go(c, inside, over) for c in below])

    return go(program, False)


def _varied(program: Term) -> frozenset[Var]:
    """What is differentiated somewhere in a program."""
    return frozenset(
        p for t in subterms(program) if isinstance(t, Diff) for f in (t.of,) if _taken(f, t) for p in f.params
    )


def _derivative(t: Diff, f: Lam, around: Collection[str], ask: Callable[[], None]) -> tuple[Lam, Callable[[Lam], Lam]]:
    """The derivative of f that `t` asks for, and what is to be done with it when it is simplified."""
    match t.kind:
        case "grad":
            return gradient_of(f, ask), _unchanged
        case "pushforward":
            return pushforward_of(f, around, ask), _unchanged
        case "jacobian":
            jacobian = jacobian_of(f, ask)
            return jacobian.taken, jacobian.without_zeros
        case _:
            return pullback_of(f, _cotangents(t.of), around, ask), _unchanged


def _unchanged(f: Lam) -> Lam:
    return f


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
    slots = tuple(fresh(p.name, p.kind) for p in _slots_of(f.body))
    value = apply(f, lam(tuple(fresh("d", p) for p in x.kind.params), ZERO) if isinstance(x.kind, Map) else ZERO)
    if x in pulled.body.free or (apply(value, *slots) if slots else value) != ZERO:
        raise UnsupportedError(
            f"the map of {x.name} is not linear, and only linear maps have an adjoint or an inverse here",
            remedy="write a map that is a sum of multiples of its argument's entries; root(…) solves other equations",
        )
    return Lam(pulled.params[1:], pulled.body)


def _slots_of(t: Term) -> tuple[Var, ...]:
    return t.params if isinstance(t, Lam) else ()


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


def inward(t: Term) -> Term:
    """Lets before a leading map move into it: a program is maps first, then values, then an expression."""
    match t:
        case Lam(params, body):
            return Lam(params, inward(body))
        case Let(bindings, Lam(params, body)) if not all(map(_is_index, params)):
            return inward(Lam(params, let(bindings, body)))
        case Let(bindings, Diff(kind, of) as marker) if marker.is_derivative and isinstance(of, Lam | Let | Diff):
            return Diff(kind, inward(Let(bindings, of)))
        case Diff(kind, of) if t.is_derivative:
            return Diff(kind, inward(of))
        case _:
            return t


def marked_program(program: Term, wrt: Sequence[str] = ()) -> Term:
    """The program with a marker where the derivative is to be taken; `wrt` names parameters instead of the text."""
    check_peaks(program)
    program = without_aliases(inward(program))
    if wrt:
        return _mark_named(_without_marker(program), wrt)
    return program if has_marker(program) else _mark_last(program)


def plain_program(program: Term) -> Term:
    """The program as it is, for a mode that takes no derivative; one that is marked keeps its marker."""
    check_peaks(program)
    program = without_aliases(inward(program))
    if not has_marker(program):
        innermost(_leading(program)[0])  # refuses what is no map
    return program


def marker_of(program: Term) -> str:
    """The mode that the text of a program asks for by its outermost marker; "" if there is none."""
    t = program
    while isinstance(t, Lam | Let):
        t = t.body
    return t.kind if isinstance(t, Diff) and has_marker(program) else ""


def innermost(maps: Sequence[Lam]) -> int:
    """The number of the last of the leading maps that has a parameter which is no index."""
    places = [n for n, f in enumerate(maps) if not all(map(_is_index, f.params))]
    if not places:
        raise UnsupportedError(
            "there is nothing to differentiate with respect to: the program is no map of a number, tensor or function",
            remedy="write the unknown as a parameter, as in (x::RV) -> sum(i, x(i)^2)",
        )
    return places[-1]


def has_marker(t: Term) -> bool:
    """Whether a derivative of a known map is what the leading maps return; one inside an expression is part of it."""
    while isinstance(t, Lam | Let):
        t = t.body
    return isinstance(t, Diff) and t.is_derivative and _known(t.of)


def _known(of: Term) -> bool:
    match of:
        case Lam() | Let():
            return True
        case Diff(_, inner) if of.is_derivative:
            return _known(inner)
        case _:
            return False


def _without_marker(t: Term) -> Term:
    match t:
        case Lam(params, body):
            return Lam(params, _without_marker(body))
        case Diff(_, of) if t.is_derivative and _known(of):
            return _without_marker(of)
        case _:
            return t


def _marked_anew(t: Term, taken: Callable[[Term], Term]) -> Term:
    """What the entry point asks for in the place of the outermost marker."""
    match t:
        case Lam(params, body):
            return Lam(params, _marked_anew(body, taken))
        case Diff(_, of) if t.is_derivative and _known(of):
            return taken(of)
        case _:
            return t


def parameters_of(t: Term) -> list[Var]:
    """The leading parameters of a program, in written order."""
    found: list[Var] = []
    while isinstance(t, Lam | Let) or (isinstance(t, Diff) and t.is_derivative):
        found += t.params if isinstance(t, Lam) else ()
        t = t.of if isinstance(t, Diff) else t.body
    return found


def _leading(t: Term) -> tuple[list[Lam], Term]:
    maps: list[Lam] = []
    while isinstance(t, Lam):
        maps.append(t)
        t = t.body
    return maps, t


def _is_index(v: Var) -> bool:
    """Whether nothing is differentiated by it: an index, or an array of integers."""
    return is_discrete(v.kind)


def _mark_last(program: Term) -> Term:
    """Differentiate at the last leading map that has a parameter which is no index."""
    maps, _ = _leading(program)
    last = innermost(maps)
    chosen = maps[last]
    unknowns = tuple(p for p in chosen.params if not _is_index(p))
    indices = tuple(p for p in chosen.params if _is_index(p))
    result: Term = Diff("grad", Lam(unknowns, chosen.body))
    result = Lam(indices, result) if indices else result
    for f in reversed(maps[:last]):
        result = Lam(f.params, result)
    return result


def _mark_named(program: Term, wrt: Sequence[str]) -> Term:
    """Differentiate at the parameters called `wrt`; all other leading parameters are captured."""
    maps, _ = _leading(program)
    last = max((n for n, f in enumerate(maps) if not all(map(_is_index, f.params))), default=-1)
    everything = [p for f in maps[: last + 1] for p in f.params]
    known = [p.name for p in everything]
    missing = [name for name in wrt if name not in known]
    if missing:
        raise UnsupportedError(
            f"there is no parameter {missing[0]!r} to differentiate with respect to",
            remedy=f"the parameters are {', '.join(known) or 'none'}",
        )
    whole = next((p for p in everything if p.name in wrt and is_discrete(p.kind)), None)
    if whole is not None:
        raise UnsupportedError(
            f"{whole.name} holds integers, and nothing is differentiated by integers",
            about=Mention(whole.name),
            remedy="name parameters of real or complex numbers",
        )
    chosen = tuple(p for p in everything if p.name in wrt)
    captured = tuple(p for p in everything if p.name not in wrt)
    result: Term = Diff("grad", Lam(chosen, maps[last].body))
    return Lam(captured, result) if captured else result
