"""Joins modules of emitted source to one: shared imports once, then the functions in order."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BETWEEN = "\n\n\n"
_DEFINED = re.compile(r"(?:def )?(\w+)")


def joined_source(modules: Sequence[str]) -> str:
    """One module of several. A function that several have is written once; of others with one name, one is renamed.

    >>> module = "import numpy as np\\n\\n\\ndef k(x): return {}\\n\\n\\ndef {}(x): k(x)"
    >>> print(joined_source([module.format(1, "f"), module.format(2, "g")]).replace("\\n\\n\\n", "\\n"))
    import numpy as np
    def k(x): return 1
    def f(x): k(x)
    def k2(x): return 2
    def g(x): k2(x)
    <BLANKLINE>
    """
    imports: dict[str, None] = {}
    parts: dict[str, str] = {}
    for module in modules:
        head, *functions = module.rstrip().split(_BETWEEN)
        imports |= dict.fromkeys(head.splitlines())
        # a name of a module stands for nothing else in its functions
        for name in [_name_of(text) for text in functions if parts.get(_name_of(text), text) != text]:
            other = next(f"{name}{n}" for n in range(2, 10**6) if f"{name}{n}" not in "".join([module, *parts]))
            functions = [re.sub(rf"\b{name}\b", other, text) for text in functions]
        parts |= {_name_of(text): text for text in functions}
    return _BETWEEN.join(["\n".join(sorted(imports)), *parts.values()]) + "\n"


def _name_of(definition: str) -> str:
    found = _DEFINED.match(definition)
    assert found is not None, "a definition begins with its name"
    return found[1]
