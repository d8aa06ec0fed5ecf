"""Rich display in notebooks: a class registers what it shows, and the face of the package says how."""

from __future__ import annotations

from collections.abc import Callable

Bundle = dict[str, str]
"""A text for each MIME type."""

_BUNDLES: dict[str, Callable[..., Bundle]] = {}


def brief(text: str, most: int = 8) -> str:
    """The first lines of a long text, and how many follow.

    >>> print(brief("a\\nb\\nc", most=2))
    a
    b … (1 more line: print it)
    """
    lines = text.splitlines()
    left = len(lines) - most
    return text if left <= 0 else "\n".join(lines[:most]) + f" … ({left} more line{'s' * (left > 1)}: print it)"


class Shown:
    """A class of values that a notebook shows by what was said of the class with `shown_by`."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:
        return _BUNDLES[type(self).__name__](self)


def shown_by(kind: str, bundle: Callable[..., Bundle]) -> None:
    """Let a notebook show values of the class with this name so; the class itself need not be imported yet.

    >>> class Point(Shown):
    ...     pass
    >>> shown_by("Point", lambda point: {"text/plain": "a point"})
    >>> Point()._repr_mimebundle_()
    {'text/plain': 'a point'}
    """
    _BUNDLES[kind] = bundle
