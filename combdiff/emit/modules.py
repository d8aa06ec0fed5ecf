"""A module of emitted source: what it imports, the functions that are called, the function that was asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from combdiff.arrays.lower.argument_names import identifier
from combdiff.emit.names import Names
from combdiff.emit.packed_text import pack_text
from combdiff.emit.solvers.library import solver_names

if TYPE_CHECKING:
    from combdiff.arrays.plan import Equation, Plan, Recurrence
    from combdiff.emit.backends.spelling import Spelling


class Module:
    """The functions that stand above one that is called `name`: their names, and their texts in order.

    >>> from combdiff.emit.backends.numpy import SPELLING
    >>> print(Module(SPELLING, "gradient").text("def gradient(x): ...", packs=False))
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def gradient(x): ...
    """

    def __init__(self, spelling: Spelling, name: str) -> None:
        self.spelling = spelling
        self.name = identifier(name)
        self.names = Names({*spelling.reserved, *solver_names(), self.name})
        self.texts: dict[str, str] = {}
        self.above: dict[Equation | Recurrence, str] = {}
        self._packers: dict[str, str] = {}

    def packers(self, plan: Plan) -> dict[str, str]:
        """The functions that pack arguments, by the names of these."""
        for packing in plan.packings:
            if packing.name not in self._packers:
                self._packers[packing.name] = self.names.fresh(f"pack_{packing.name}")
        return self._packers

    def add_packers(self, plan: Plan) -> None:
        """Write the functions that pack the arguments of a plan."""
        packers = self.packers(plan)
        self.add({packers[p.name]: pack_text(p, self.spelling, packers[p.name]) for p in plan.packings})

    def add(self, texts: Mapping[str, str]) -> None:
        """Write functions or kernels under their names, each once."""
        self.texts |= texts
        self.names.taken |= texts.keys()

    def text(self, function: str, packs: bool) -> str:
        """The whole module; index arrays of packed arguments are made by NumPy in every library."""
        code = [*self.texts.values(), function]
        lines = self.spelling.imports.splitlines()
        lines = sorted({*lines, "import numpy as np"}) if packs else lines
        for line in (self.spelling.sparse_import, self.spelling.special):
            word = line.rpartition(" ")[2]
            if line and any(re.search(rf"(?<![.\w]){word}\.", text) for text in code):
                lines = [*lines, line]
        return "\n\n\n".join(["\n".join(lines), *code])
