"""The signs that a formula uses besides its variables, with which no name may collide: π, δ, Re, an entry x_{1}."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeGuard

from combdiff.notation.latex_names import latex_name
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import App, Call, Const, Delta, Reduce, Sum, Term, Var, bound_by, subterms
from combdiff.terms.types import Index, Map

_OF_MATRICES = ("tr", "diag", "diagonal", "vec", "conj")
_UPRIGHT = re.compile(r"\\(?:operatorname\{)?([A-Za-z]+)")
"""The word that a function is written as, \\log or \\operatorname{Re}."""
_REDUCED = {"maximum": ("max",), "minimum": ("min",), "logsumexp": ("logsumexp", "log", "exp")}
_IN_SYMPY = {"conj": "conjugate", "real": "re", "imag": "im", "abs": "Abs", "abs2": "Abs"}


def latex_signs(term: Term, form: str = "index") -> frozenset[str]:
    """How LaTeX writes what stands in `term` and is no variable.

    >>> from combdiff.terms.terms import PI, fresh, mul, number
    >>> from combdiff.terms.types import REAL, Domain
    >>> x = fresh("x", Map((Index(Domain("x.1")),), REAL))
    >>> sorted(latex_signs(mul(PI, App(x, (number(1),)))))
    ['\\\\pi', 'x_{1}']
    """
    matrix = (rf"\mathrm{{{word}}}" for word in _OF_MATRICES) if form == "matrix" else ()
    return frozenset((*matrix, *(sign for u in subterms(term) for sign in _latex_of(u))))


def _latex_of(t: Term) -> Iterator[str]:
    match t:
        case Call(name, ()):
            yield f"\\{name}"
        case Call(name, _) if name in SCALAR_FUNCTIONS:
            written = SCALAR_FUNCTIONS[name].latex
            yield from (written, *(rf"\mathrm{{{word}}}" for word in _UPRIGHT.findall(written)))
        case Reduce(kind, _):
            yield from (rf"\mathrm{{{word}}}" for word in _REDUCED.get(kind, (kind,)))
        case Delta():
            yield r"\delta"
        case App(Var(name, Map() as kind), args) if kind.is_tensor:
            places = [latex_name(a.name) if isinstance(a, Var) else str(a.real) for a in args if _is_plain(a)]
            if len(places) == len(args):
                yield f"{latex_name(name)}_{{{','.join(places)}}}"


def _is_plain(index: Term) -> TypeGuard[Var | Const]:
    return isinstance(index, Var | Const)


def text_signs(term: Term) -> frozenset[str]:
    """How plain text in matrix form writes what is no variable; a name may end as a transposed matrix does."""
    found = list(subterms(term))
    names = {v.name for u in found for v in (*bound_by(u), *((u,) if isinstance(u, Var) else ()))}
    constants = {"π"} if any(isinstance(u, Call) and not u.args for u in found) else set()
    functions = {u.primitive for u in found if isinstance(u, Call)} | {u.kind for u in found if isinstance(u, Reduce)}
    return frozenset({*_OF_MATRICES, *constants, *functions, "𝐈", *(f"{name}ᵀ" for name in names)})


def sympy_signs(term: Term) -> frozenset[str]:
    """SymPy's own constants in `term`, and those of its functions that an unknown function would be taken for."""
    constants: set[str] = set()
    functions = {"KroneckerDelta", "Mod", "Piecewise", "Sum", "Integral", "Derivative", "Subs"}
    unknown: set[str] = set()
    for u in subterms(term):
        match u:
            case Const(_, imag) if imag:
                constants.add("I")
            case Sum(indices, _) if not all(isinstance(v.kind, Index) for v in indices):
                constants.add("oo")
            case Call(name, args):
                functions.add(_IN_SYMPY.get(name, name))
                constants |= {"E"} if name == "exp" and any(isinstance(a, Const) for a in args) else set()
            case Var(name, Map() as kind) if not kind.is_array:
                unknown.add(name)
    return frozenset(constants | (functions & unknown))
