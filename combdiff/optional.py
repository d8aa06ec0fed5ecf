"""Libraries that are imported when they are used, and that an extra of the package installs."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from combdiff.errors import UnsupportedError


def optional(module: str, extra: str, what: str) -> ModuleType:
    """The module, which `what` needs; an error that says what to install where it is missing.

    >>> optional("json", "notebooks", "a picture").__name__
    'json'
    """
    try:
        return import_module(module)
    except ImportError as problem:
        library = module.partition(".")[0]
        raise UnsupportedError(
            f"{what} needs {library}, which cannot be imported: {problem}",
            remedy=f"install it: pip install 'combdiff[{extra}]'",
        ) from problem
