"""The sizes of domains, from the shapes of arrays that have axes over them."""

from __future__ import annotations

from collections.abc import Mapping

from combdiff.arrays.lower.argument_names import ArgumentNames
from combdiff.arrays.lower.components import offsets_kind
from combdiff.arrays.lower.signature import result_of
from combdiff.errors import ArrayError
from combdiff.language.vocabulary import counted
from combdiff.meaning.values import Extent, places
from combdiff.terms.terms import Term
from combdiff.terms.types import Domain, Map


def sizes_of(t: Term, shapes: Mapping[str, object]) -> dict[Domain, int]:
    """The sizes of domains that arrays of these shapes, given by name, have; an array stands for its shape.

    Raises ArrayError where they do not fit.

    >>> import combdiff as cd
    >>> d = cd.grad("(A::RM) -> (x::RV) -> sum((i, j), A(i, j) * x(j))")
    >>> sorted(sizes_of(d.term, {"A": (2, 3)}).values())
    [2, 3]
    """
    extent = Extent()
    known = {p.name: p.kind for p in result_of(t).params}
    known |= {name: offsets_kind(domain) for name, domain in ArgumentNames(t).lists.items()}
    for name, shape in shapes.items():
        if name not in known:
            raise ArrayError(f"there is no array called {name}", remedy=f"the arguments are {', '.join(known)}")
        shape = getattr(shape, "shape", shape)
        if not isinstance(shape, tuple | list) or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise ArrayError(
                f"{shape!r} is not the shape of an array", remedy=f"give {name}=(size, size, …), whole numbers"
            )
        kind = known[name]
        slots = places(kind, name) if isinstance(kind, Map) else []
        if len(slots) != len(shape):
            raise ArrayError(
                f"{name} has {counted(len(slots), 'axis')}, but the shape has {len(shape)}",
                remedy="give NAME=(size, size, …)",
            )
        for (axis, place), size in zip(slots, shape, strict=True):
            if axis is not None:
                extent.note(axis, size, place)
    return extent.sizes
