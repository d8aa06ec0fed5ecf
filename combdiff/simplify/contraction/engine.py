"""Loads egglog's engine without the Python front end of its package, which imports much and is not used."""

from __future__ import annotations

import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

_ENGINE = "egglog.bindings"


@cache
def load_engine() -> None:
    """Let `from egglog.bindings import …` find the engine alone.

    Where the package was imported already, or is laid out in another way, it stays as it is.
    """
    package = find_spec("egglog")
    if _ENGINE in sys.modules or package is None:
        return
    spec = PathFinder.find_spec(_ENGINE, package.submodule_search_locations)
    if spec is not None and spec.loader is not None:
        sys.modules[_ENGINE] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[_ENGINE])
