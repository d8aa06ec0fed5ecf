"""Names sizes that a formula uses and that the program does not name: x ∈ ℝⁿ for a mean over x."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from combdiff.language.printing.names import names_in
from combdiff.notation.latex_names import latex_name
from combdiff.notation.latex_terms import shows_range
from combdiff.terms.terms import Lam, Sum, Term, Var, subterms
from combdiff.terms.types import Domain, Index, Map, is_complex

_LETTERS = ("n", "m", "l", "p", "q")


def size_names(*terms: Term, spell: Callable[[str], str] = latex_name) -> dict[Domain, str]:
    """The sizes that the formulas of a page have to name, and those of the slots beside them; `spell` writes names.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> list(size_names(infer(parse("(x::RM) -> sum((i, j), x(i, j))"))).values())
    []
    >>> list(size_names(infer(parse("(x::RM) -> mean((i, j), x(i, j))"))).values())
    ['n', 'm']
    """
    lost = {d for term in terms for d in _counted(term) if not (d.declared or d.sized or d.symmetric)}
    taken = {name for term in terms for name in names_in(term)}
    free = (letter for letter in _letters() if letter not in taken)
    found: dict[Domain, str] = {}
    for var in dict.fromkeys(var for term in terms for var in _parameters(term)):
        slots = _slots(var)
        if lost & {*slots} - found.keys():
            found |= {d: spell(d.name if d.declared or d.sized else next(free)) for d in slots if d not in found}
    return found


def _counted(term: Term) -> Iterator[Domain]:
    """The domains of summed indices whose range no slot below their Σ shows."""
    for u in subterms(term):
        if not isinstance(u, Sum):
            continue
        for v in u.indices:
            if isinstance(v.kind, Index) and v.kind.domain is not None and not shows_range(u.body, v):
                yield v.kind.domain


def belongs(var: Var, written: str, sizes: Mapping[Domain, str]) -> str:
    """`x \\in \\mathbb{R}^{n \\times m}` for a tensor all of whose sizes have names, else nothing."""
    extent = r" \times ".join(sizes_of_tensor(var, sizes))
    return rf"{written} \in \mathbb{{{'C' if is_complex(var.kind) else 'R'}}}^{{{extent}}}" if extent else ""


def extent_text(var: Var, written: str, sizes: Mapping[Domain, str]) -> str:
    """x ∈ ℝ^(n×m) for a tensor all of whose sizes have names, else nothing."""
    found = sizes_of_tensor(var, sizes)
    extent = f"({'×'.join(found)})" if len(found) > 1 else "".join(found)
    return f"{written} ∈ {'ℂ' if is_complex(var.kind) else 'ℝ'}^{extent}" if found else ""


def sizes_of_tensor(var: Var, sizes: Mapping[Domain, str]) -> Sequence[str]:
    """The names of the sizes of a tensor, if all have names."""
    slots = _slots(var)
    return [sizes[d] for d in slots] if all(d in sizes for d in slots) else []


def _letters() -> Iterator[str]:
    yield from _LETTERS
    yield from (f"n_{k}" for k in range(1, 1000))


def _parameters(term: Term) -> Iterator[Var]:
    while isinstance(term, Lam):
        yield from term.params
        term = term.body


def _slots(var: Var) -> Sequence[Domain]:
    """The domains of the slots of a tensor."""
    if not isinstance(var.kind, Map) or not var.kind.is_tensor:
        return ()
    return tuple(p.domain for p in var.kind.params if isinstance(p, Index) and p.domain is not None)
