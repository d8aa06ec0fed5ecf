"""The last arguments of compiled functions: cotangents of results, directions of unknowns."""

from __future__ import annotations

from typing import Any

import numpy as np

from combdiff.terms.types import Index, is_complex

from .case import Case, Failure
from .data import shape_of
from .kinds import Tensor, Type
from .oracle import result_kinds


def extra_arguments(case: Case, f: Any, second: bool = False) -> dict[str, Any]:
    """Cotangents, or directions, by the names of the arguments that are neither data nor functions nor sizes."""
    ends = [case.second[u] for u in case.program.unknowns] if second else list(case.cotangents)
    if not ends:
        return {}
    wanted = [u.kind for u in case.program.unknowns] if second else result_kinds(case.program)
    kinds = {a.name: a.kind for a in f.arguments if not a.callable and not a.optional and a.offsets is None}
    names = [n for n, kind in kinds.items() if n not in case.arrays and not isinstance(kind, Index)]
    if len(names) != len(ends):
        raise Failure("shape", f"the arguments {names} for {len(ends)} cotangents")
    given = zip(names, ends, wanted, strict=True)
    # a value such as im * (x - x) is known to be real, and its cotangent is then
    return {n: as_taken(x if is_complex(kinds[n]) else np.real(x), kind) for n, x, kind in given}


def as_taken(x: Any, kind: Type) -> Any:
    """An array in the shape that combdiff takes; a number for a number."""
    return np.asarray(x).reshape(shape_of(kind)) if isinstance(kind, Tensor) else np.asarray(x)[()]
