"""Turns what a matrix form takes for granted into where-clauses: `where (V : X)_{i,j} = Σ_{k,l} V_{i,j,k,l} X_{k,l}`.

What products of tensors, unfoldings and brackets mean is said once, with letters that the formula does not use; which
functions of matrices act entry by entry; and what has no matrix form and stands in the formula under a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from combdiff.notation.brackets import subscripted
from combdiff.notation.latex_names import Scope
from combdiff.notation.matrix.expr import (
    AtMost,
    Contraction,
    Function,
    KhatriRao,
    Kronecker,
    MatrixExpr,
    Named,
    Reciprocal,
    Tensor,
    Unfolding,
    Value,
    Vec,
)
from combdiff.notation.matrix.notation import LATEX, Notation
from combdiff.notation.matrix.parts import nodes
from combdiff.notation.matrix.reading import is_column, is_number
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import Call, Diff, Lam, Term, Var

INDICES = "ijklmnpqrsabcd"
MATRICES = "XYZABCDEFGHKLMPQRSTUVW"
VECTORS = "xyzuvwabcdefghpqrst"
NUMBERS = "cstabdefgh"


_SIGNS = (Contraction, Tensor, Unfolding, KhatriRao, Kronecker, Vec, AtMost, Reciprocal)
"""What is explained, in this order."""


def named_in(expr: MatrixExpr) -> list[Named]:
    """What stands in `expr` under a name of its own, each once.

    >>> from combdiff.notation.matrix.expr import Pi
    >>> named_in(Pi())
    []
    """
    return list(dict.fromkeys(node for node in nodes(expr) if isinstance(node, Named)))


def with_names(expr: MatrixExpr, scope: Scope) -> Scope:
    """`scope`, with the names that `expr` brings along.

    >>> from combdiff.notation.matrix.expr import Pi
    >>> with_names(Pi(), Scope()).names
    {}
    """
    return scope.bind(named.var for named in named_in(expr) if named.var not in scope.names)


def notes(used: Iterable[tuple[MatrixExpr, Scope]], notation: Notation) -> list[str]:
    """The where-clauses of expressions in their scopes, but for the definitions of `Named`; each once.

    >>> from combdiff.notation.matrix.expr import Pi
    >>> from combdiff.notation.matrix.notation import TEXT
    >>> notes([(Vec(Pi()), Scope(str))], TEXT)
    ['vec(X)(ij) = X(i, j)']
    """
    clauses: list[tuple[int, str]] = []
    functions: list[str] = []
    used = list(used)
    names = {name for _, scope in used for name in scope.names.values()}
    for expr, scope in used:
        writer = _Writer(notation, scope, names)
        clauses += [(_SIGNS.index(type(node)), writer.clause(node)) for node in nodes(expr) if type(node) in _SIGNS]
        functions += filter(None, map(writer.entrywise, nodes(expr)))
    said = [clause for _, clause in sorted(clauses, key=lambda pair: pair[0]) if clause]
    if functions:
        functions = list(dict.fromkeys(functions))
        said.append(_sentence(", ".join(functions), f"act{'s' * (len(functions) == 1)} entry by entry", notation))
    if any(isinstance(e, Function) and e.name == "softmax" and not is_column(e.of) for u, _ in used for e in nodes(u)):
        said.append(
            _sentence(_latex_alone("softmax") if notation is LATEX else "softmax", "acts on each row", notation)
        )
    return list(dict.fromkeys(said))


def _sentence(subject: str, rest: str, notation: Notation) -> str:
    return rf"{subject}\ \text{{{rest}}}" if notation is LATEX else f"{subject} {rest}"


@dataclass(frozen=True, slots=True)
class _Writer:
    notation: Notation
    scope: Scope
    taken: set[str]

    def letters(self, pool: str, count: int) -> list[str]:
        """The first letters that are no names of the formula."""
        free = [c for c in pool if c not in self.taken]
        return (free + [f"{pool[0]}{c}" for c in pool])[:count]

    def entry(self, head: str, indices: Sequence[str]) -> str:
        if self.notation is not LATEX:
            return f"{head}({', '.join(indices)})"
        return f"{subscripted(head)}_{{{self.scope.subscripts(indices)}}}"

    def times(self, *factors: str) -> str:
        return r"\, ".join(factors) if self.notation is LATEX else " * ".join(factors)

    def total(self, indices: Sequence[str], body: str) -> str:
        if self.notation is LATEX:
            return rf"\sum_{{{self.scope.subscripts(indices)}}} {body}"
        over = indices[0] if len(indices) == 1 else f"({', '.join(indices)})"
        return f"sum({over}, {body})"

    def clause(self, expr: MatrixExpr) -> str:  # one case a sign
        n = self.notation
        i, j, k, l = self.letters(INDICES, 4)  # noqa: E741
        x, y = self.letters(MATRICES, 2)
        match expr:
            case Contraction(tensor, _, slots):
                var, rank = _tensor(tensor)
                free, bound = [i, j, k, l][: rank - slots], [i, j, k, l][rank - slots : rank]
                name = self.scope[var]
                x = x if slots == 2 else self.letters(VECTORS, 1)[0]
                left = self.entry(f"({name}{n.contracted[slots]}{x})", free)
                factors = self.times(self.entry(name, [*free, *bound]), self.entry(x, bound))
                return f"{left} = {self.total(bound, factors)}"
            case Tensor(var, order) if order != tuple(sorted(order)):
                slots_ = [i, j, k, l][: len(order)]
                left = self.entry(n.order.format(self.scope[var], "".join(map(str, order))), slots_)
                return f"{left} = {self.entry(self.scope[var], [slots_[s - 1] for s in order])}"
            case Unfolding(var, mode):
                own = [i, j, k]
                others = own[: mode - 1] + own[mode:]
                head = f"({n.unfolding.format(self._stem(var), mode)})"
                return f"{self.entry(head, [own[mode - 1], ''.join(others)])} = {self.entry(self.scope[var], own)}"
            case KhatriRao():
                left = self.entry(f"({n.khatri_rao.format(x, y)})", [i + j, k])
                return f"{left} = {self.times(self.entry(x, [i, k]), self.entry(y, [j, k]))}"
            case Kronecker():
                left = self.entry(f"({n.kronecker.format(x, y)})", [i + k, j + l])
                return f"{left} = {self.times(self.entry(x, [i, j]), self.entry(y, [k, l]))}"
            case Vec():
                return f"{self.entry(n.vec.format(x), [i + j])} = {self.entry(x, [i, j])}"
            case AtMost():
                return _sentence(n.at_most.format(x, y), "is 1 where it holds and 0 elsewhere", n)
            case Reciprocal():
                c = self.letters(NUMBERS, 1)[0]
                return f"{n.reciprocal.format(c)} = 1/{c}, {n.reciprocal.format(0)} = 0"
            case _:
                return ""

    def _stem(self, var: Var) -> str:
        name = self.scope[var]
        return subscripted(name) if self.notation is LATEX else name

    def entrywise(self, expr: MatrixExpr) -> str:
        """The function that is applied to a matrix here, as it is written."""
        match expr:
            case Function(name, of) if (
                name in SCALAR_FUNCTIONS and not is_number(of) and (not is_column(of) or self._looks_like_a_norm(name))
            ):
                return _latex_alone(name) if self.notation is LATEX else name
            case Value(function, args, True) if not any(is_column(arg) or is_number(arg) for arg in args):
                return self._head(function)
            case _:
                return ""

    def _looks_like_a_norm(self, name: str) -> bool:
        return self.notation is LATEX and name in ("abs", "abs2")

    def _head(self, function: Term) -> str:
        match function:
            case Diff(kind, of):
                return self.notation.made_of(kind, self._head(of))
            case Var():
                return self.scope[function]
            case Lam(_, Call(name, _)):
                return _latex_alone(name) if self.notation is LATEX else name
            case _:
                return ""


def _tensor(expr: MatrixExpr) -> tuple[Var, int]:
    """The first tensor of a sum of tensors, and how many slots each has."""
    first = next(node for node in nodes(expr) if isinstance(node, Tensor))
    return first.var, len(first.order)


def _latex_alone(function: str) -> str:
    """A function without its arguments: log(1 + e^·)."""
    written = SCALAR_FUNCTIONS[function].latex if function in SCALAR_FUNCTIONS else rf"\operatorname{{{function}}}"
    return written.format(*[r"\cdot"] * 3) if "{0}" in written else written
