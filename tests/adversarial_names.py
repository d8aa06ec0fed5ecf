"""Names that a program may use and that mean something else to Python, to an array library, or to emitted code."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Callable
from dataclasses import replace

from combdiff.language.printing.anchors import domains_of
from combdiff.language.printing.names import unique_name
from combdiff.terms.terms import Term, Var, bound_by, subterms
from combdiff.terms.types import Domain, Index, Map, Product, Type

PYTHON = tuple(name for name in keyword.kwlist if unique_name(name, ()) == name)
BUILTINS = ("abs_", "len", "range", "slice", "min", "max", "float", "int", "type", "print", "__debug__", "_")
LIBRARIES = ("np", "cp", "jnp", "da", "torch", "device", "jax", "numpy", "while_loop")
OWN = (
    *(
        "gradient",
        "value_and_gradient",
        "gradient_and_hvp",
        "hvp",
        "newton",
        "newton_of_parts",
        "solve_of_parts",
        "newton_of_entries",
    ),
    *("equation_x", "start_x", "pack_J", "J_packed", "J_rows", "J_place", "rows", "place", "images", "least", "count"),
    *("kernel", "kernel2", "result", "result1", "t1", "t2", "u1", "block", "width", "part", "opposite", "out", "out_"),
    *("grad_g", "grad_f", "grad_grad_g", "pullback_g", "adjoint_D", "n_K", "n_x_1", "g2", "x2", "f2", "self", "args"),
    *("n", "m", "r", "i", "j", "p", "q", "k", "x", "y", "z", "u", "v", "w", "f", "g", "equation", "lambda_", "len2"),
)
LETTERS = (
    "𝐟",
    "𝖿",
    "ﬁ",
    "fi",
    "µ",
    "μ",
    "x̂",
    "x⃗",
    "ϕ",
    "φ",
    "ª",
    "①",
    "x₁",
    "x1",
    "x_1",
    "ѕ",
    "Å",
    "ĸ",
    "ſ",
    "s",
    "𝐧𝐩",
)
NAMES = (*PYTHON, *BUILTINS, *LIBRARIES, *OWN, *LETTERS)

assert {"len", "range"} <= vars(builtins).keys()


def names_of(term: Term) -> list[str]:
    """The names of variables, and of domains that the program names."""
    return list(dict.fromkeys([*(v.name for v in _variables(term)), *domain_names(term)]))


def domain_names(term: Term) -> list[str]:
    """The names of domains, and of sizes."""
    domains = [d for v in _variables(term) for d in domains_of(v.kind)]
    return list(dict.fromkeys(d.name for d in domains if d.sized or d.declared))


def _variables(term: Term) -> list[Var]:
    return [v for u in subterms(term) for v in (*bound_by(u), *((u,) if isinstance(u, Var) else ()))]


def called(term: Term, new: Callable[[str], str]) -> Term:
    """`term` with other names for variables and domains; it is otherwise the same."""

    def kind(k: Type) -> Type:
        match k:
            case Index(Domain() as d):
                return Index(domain(d))
            case Map(params, result):
                return Map(tuple(map(kind, params)), kind(result), k.symmetries, k.space, k.linear)
            case Product(items):
                return Product(tuple(map(kind, items)))
            case _:
                return k

    def domain(d: Domain) -> Domain:
        return replace(d, name=new(d.name)) if d.sized or d.declared else d

    known: dict[int, Term] = {}

    def part(x: object) -> object:
        if isinstance(x, tuple):
            return tuple(map(part, x))
        if not isinstance(x, Term):
            return x
        if id(x) not in known:
            if isinstance(x, Var):
                known[id(x)] = Var(new(x.name), kind(x.kind), x.uid)
            else:
                known[id(x)] = type(x)(*(part(getattr(x, name)) for name in x.__match_args__))
        return known[id(x)]

    result = part(term)
    assert isinstance(result, Term)
    return result
