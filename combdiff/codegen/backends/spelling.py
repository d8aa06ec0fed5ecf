"""How an array library is written: the one table that `emit` reads, so that a library more is a table more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spelling:
    """Templates for what libraries spell differently; `@`, indexing, `.T`, `.reshape` and `.sum` are common to all.

    `functions` maps a scalar function of the language to its template; `branched` are those that need a complex
    argument where the language calls for one, `{0}` being the argument.
    """

    name: str
    imports: str
    reserved: frozenset[str]
    functions: Mapping[str, str]
    branched: Mapping[str, str]
    scalar_conj: str
    arange: str
    arange_float: str
    zeros: str
    zeros_complex: str
    where: str
    roll: str
    tensordot: str
    vdot: str
    einsum: str
    broadcast: str
    add_at: str
    solve: str
    power: str
    power_complex: str
    conj: str = "{0}.conj()"
    copy: str = "{0}.copy()"
    transpose: str = "{0}.transpose({1})"
    diagonal: str = "{0}.diagonal()"
