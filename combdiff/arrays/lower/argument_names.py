"""Names the arguments of generated code: parameters as in the program, others after what they belong to.

`grad_f`, `pullback_f`, `adjoint_D`, … are of the functions of the user, a list of offsets is called what its domain is,
`start_x` is where Newton's method starts for x, `inverse_x` solves its equation, `inverse_g` if it is g(x) = y, and
`n_K` is how many values the domain K has. Where the program has a name already, what is not of the program gets a
number: the derivative of f next to a parameter `grad_f` is `grad_f2`.
"""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Collection, Hashable, Iterator
from itertools import count

from combdiff.arrays.lower.signature import result_of
from combdiff.errors import UnsupportedError
from combdiff.language.printing.anchors import domains_of
from combdiff.terms.terms import Diff, Term, Var, bound_by, derivative_order, subterms
from combdiff.terms.types import Domain, Map


class ArgumentNames:
    """The names of all arguments that code for a result may take, no two alike.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> term = infer(parse("(f::RF, grad_f::R) -> (x::R) -> grad(f)(x) * grad_f"))
    >>> names = ArgumentNames(term)
    >>> [names.of(v) for v in term.params], list(names.derivatives_in(term))
    (['f', 'grad_f'], ['grad_f2'])
    """

    def __init__(self, term: Term) -> None:
        params = result_of(term).params
        self._arrays = {v.name for v in params if not isinstance(v.kind, Map) or v.kind.is_array}
        self._taken = {v.name for v in params}
        self._names: dict[Hashable, str] = {}
        self.derivatives_in(term)
        self.lists = {self._named(domain, domain.name, "_offsets"): domain for domain in _lists_in(term)}

    def of(self, head: Term) -> str:
        """The name of a parameter, or of a derivative, an adjoint, an inverse or a root of one."""
        return head.name if isinstance(head, Var) else self._named(head, _wish(head))

    def derivatives_in(self, term: Term) -> dict[str, Diff]:
        """The derivatives of unknown functions that stand in `term`, and what else is made of a function alone."""
        heads = {u for u in subterms(term, Diff) if isinstance(u.type, Map) and _is_argument(u)}
        found = {self.of(head): head for head in sorted(heads, key=lambda head: (_wish(head), derivative_order(head)))}
        return dict(sorted(found.items()))

    def within(self, name: str, others: Collection[str]) -> str:
        """A name for a value that an equation is given, besides all functions and the `others` that it is given."""
        return unlike(name, {*self._taken.difference(self._arrays, self.lists), *others})

    def start(self, unknown: str) -> str:
        """The name of where Newton's method starts for an unknown."""
        return self._named(("start", unknown), f"start_{unknown}")

    def inverse(self, solved: str) -> str:
        """The name of a function that solves the equation of an unknown, or that undoes a function."""
        return self._named(("solution", solved), f"inverse_{solved}")

    def size(self, domain: Domain) -> str:
        """The name of how many values a domain has: `m` of `J::(N) -> N{m}`, else one made of the domain's."""
        wish = domain.name if domain.sized else f"n_{domain.name}"
        return self._named(("size", domain), wish.replace(".", "_").replace("#", "_"))

    def _named(self, key: Hashable, wish: str, ending: str = "") -> str:
        if key not in self._names:
            self._names[key] = unlike(wish, self._taken, ending)
            self._taken.add(self._names[key])
        return self._names[key]


def unlike(name: str, taken: Collection[str], ending: str = "") -> str:
    """`name`, or with an ending, or a number, that makes it new.

    >>> unlike("x", {"x", "x2"}), unlike("x1", {"x1"}), unlike("X", {"X"}, "_offsets")
    ('x3', 'x1_2', 'X_offsets')
    """
    return next(wish for wish in _wishes(name, ending) if wish not in taken)


def _wishes(name: str, ending: str) -> Iterator[str]:
    yield name
    if ending:
        name += ending
        yield name
    joint = "_" if name[-1].isdigit() else ""
    yield from (f"{name}{joint}{number}" for number in count(2))


def _is_argument(u: Diff) -> bool:
    return u.kind != "root" and _is_named(u)


def _is_named(t: Term) -> bool:
    return _is_named(t.of) if isinstance(t, Diff) else isinstance(t, Var)


def _wish(head: Term) -> str:
    """`g`, `grad_g`, `pullback_g`, `pullback_grad_g`."""
    match head:
        case Var(name):
            return name
        case Diff(kind, of):
            return f"{kind}_{_wish(of)}"
        case _:
            raise UnsupportedError(
                "code needs the numbers of a derivative that is left in the result, of a function without a name",
                remedy="name the function in the program, or let it be differentiated",
            )


def _lists_in(term: Term) -> list[Domain]:
    """The domains whose values are lists of offsets."""
    variables = [v for u in subterms(term) for v in (*bound_by(u), *([u] if isinstance(u, Var) else []))]
    return list(dict.fromkeys(d for v in variables for d in domains_of(v.kind) if d.listed))


def names_of_program(term: Term) -> dict[str, str]:
    """What a program calls its arguments, by these names, and by the same as Python reads them.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> names_of_program(infer(parse("(lambda::R) -> (x::RV) -> 1")))
    {'lambda': 'lambda', 'lambda_': 'lambda', 'x': 'x'}
    """
    own = [*(v.name for v in result_of(term).params), *ArgumentNames(term).lists]
    found = {key: name for name in own for key in (name, identifier(name))}
    return found | {name: name for name in own}


def identifier(name: str) -> str:
    """A name of the language as one of Python.

    >>> identifier("lambda"), identifier("𝐟"), identifier("ψ")
    ('lambda_', 'f', 'ψ')
    """
    clean = "".join(c if f"_{c}".isidentifier() else "_" for c in unicodedata.normalize("NFKC", name))
    if not clean or not clean.isidentifier():
        clean = f"_{clean}"
    return f"{clean}_" if keyword.iskeyword(clean) else clean
