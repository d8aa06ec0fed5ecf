"""Which derivative a program asks for: the markers in its text, and a row for each mode of an entry point.

The text says where (`pullback(f)`, `grad(f)`, or else the last leading map of something that is no index), the entry
point says what. `modes.py` takes the derivatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from combdiff.errors import Mention, UnsupportedError
from combdiff.records import dataclass
from combdiff.terms.terms import Diff, Lam, Let, Term, Var, let, params_of
from combdiff.terms.types import Map, Number, is_complex, is_discrete


@dataclass(frozen=True, slots=True)
class Mode:
    """A row: what is `taken` of the map that is marked, and what the result is called.

    `title` is what a message calls it, `sign` what a picture writes above it, with the unknown in the braces, and `raw`
    what it is called before it is simplified. `of_real_part`: a complex value is differentiated by its real part
    (Eq. 42), which `d.steps` mentions.
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
    Mode("jvp", lambda f: Diff("jvp", f), "Jacobian-vector product", r"(Jk)_{{{}}}", False, "raw pushforward"),
    Mode("jacobian", lambda f: Diff("jacobian", f), "Jacobian", r"J_{{{}}}", False, RAW_JACOBIAN),
    Mode("simplified", lambda f: f, "simplified program", "{}", False, "values in front"),
    Mode("hessian", lambda f: Diff("jacobian", Diff("grad", _real(f))), "Hessian", r"H_{{{}}}", raw=RAW_JACOBIAN),
)


MODES = {row.name: row for row in _ROWS}


SIMPLIFIED = "simplified"


def as_asked(program: Term, mode: str) -> Term:
    """The marked program as a reader asked: marked by `grad` or `pullback`, for other modes the map itself."""
    if mode == SIMPLIFIED:
        return program
    return marked_anew(program, MODES[mode].taken if mode in ("grad", "pullback") else lambda f: f)


def marker_of(program: Term) -> str:
    """The mode that the text of a program asks for by its outermost marker; "" if there is none."""
    t = program
    while isinstance(t, Lam | Let):
        t = t.body
    return t.kind if isinstance(t, Diff) and has_marker(program) else ""


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


def without_marker(t: Term) -> Term:
    match t:
        case Lam(params, body):
            return Lam(params, without_marker(body))
        case Diff(_, of) if t.is_derivative and _known(of):
            return without_marker(of)
        case _:
            return t


def marked_anew(t: Term, taken: Callable[[Term], Term]) -> Term:
    """What the entry point asks for in the place of the outermost marker."""
    match t:
        case Lam(params, body):
            return Lam(params, marked_anew(body, taken))
        case Diff(_, of) if t.is_derivative and _known(of):
            return taken(of)
        case _:
            return t


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


def innermost(maps: Sequence[Lam]) -> int:
    """The number of the last of the leading maps that has a parameter which is no index."""
    places = [n for n, f in enumerate(maps) if not all(map(_is_index, f.params))]
    if not places:
        raise UnsupportedError(
            "there is nothing to differentiate with respect to: the program is no map of a number, tensor or function",
            remedy="write the unknown as a parameter, as in (x::RV) -> sum(i, x(i)^2)",
        )
    return places[-1]


def parameters_of(t: Term) -> list[Var]:
    """The leading parameters of a program, in written order."""
    found: list[Var] = []
    while isinstance(t, Lam | Let) or (isinstance(t, Diff) and t.is_derivative):
        found += params_of(t)
        t = t.of if isinstance(t, Diff) else t.body
    return found


def leading(t: Term) -> tuple[list[Lam], Term]:
    maps: list[Lam] = []
    while isinstance(t, Lam):
        maps.append(t)
        t = t.body
    return maps, t


def _is_index(v: Var) -> bool:
    """Whether nothing is differentiated by it: an index, or an array of integers."""
    return is_discrete(v.kind)


def mark_last(program: Term) -> Term:
    """Differentiate at the last leading map that has a parameter which is no index."""
    maps, _ = leading(program)
    last = innermost(maps)
    chosen = maps[last]
    unknowns = tuple(p for p in chosen.params if not _is_index(p))
    indices = tuple(p for p in chosen.params if _is_index(p))
    result: Term = Diff("grad", Lam(unknowns, chosen.body))
    result = Lam(indices, result) if indices else result
    for f in reversed(maps[:last]):
        result = Lam(f.params, result)
    return result


def mark_named(program: Term, wrt: Sequence[str]) -> Term:
    """Differentiate at the parameters called `wrt`; all other leading parameters are captured."""
    maps, _ = leading(program)
    last = max((n for n, f in enumerate(maps) if not all(map(_is_index, f.params))), default=-1)
    everything = [p for f in maps[: last + 1] for p in f.params]
    known = [p.name for p in everything]
    missing = [name for name in wrt if name not in known]
    if missing:
        raise UnsupportedError(
            f"there is no parameter {missing[0]!r} to differentiate with respect to",
            remedy=f"the parameters are {', '.join(known) or 'none'}",
        )
    whole = next((p for p in everything if p.name in wrt and isinstance(p.kind, Map) and p.kind.is_integers), None)
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
