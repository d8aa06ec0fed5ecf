"""Sorts keyword arguments: names of the program come first, and an option of the same name gets an underscore."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar, cast

from combdiff.arrays.lower.argument_names import names_of_program
from combdiff.errors import UnsupportedError

if TYPE_CHECKING:
    from combdiff.terms.terms import Term

T = TypeVar("T")


def option_name(option: str, names: Collection[str]) -> str:
    """What an option is called next to these names of a program.

    >>> option_name("out", {"x"}), option_name("out", {"x", "out"})
    ('out', 'out_')
    """
    while option in names:
        option += "_"
    return option


class Given:
    """Values by name, of which those that are no options belong to a program with these `names`.

    >>> given = Given({"x", "value"}, {"x": (3,), "value_": True})
    >>> given.option("value", (4,), False), given.rest
    (True, {'x': (3,), 'value': (4,)})
    """

    def __init__(self, names: Collection[str], rest: Mapping[str, object]) -> None:
        self.names = names
        self.rest = dict(rest)

    @classmethod
    def of(cls, program: Term, rest: Mapping[str, object]) -> Given:
        """What is given for a program, by the names of its arguments."""
        names = names_of_program(program)
        return cls(names, {names.get(key, key): value for key, value in rest.items()})

    def option(self, name: str, given: T, default: T) -> T:
        """The value of an option; what is `given` under a name of the program is the program's.

        Raises UnsupportedError for what is no array and no shape of one.
        """
        own = option_name(name, self.names)
        if own != name and not (type(given) is type(default) and given == default):
            if _is_for_option(given, default):
                raise UnsupportedError(
                    f"{name} is a name of the program, so {name}= gives its value", remedy=f"give {own}={given!r}"
                )
            self.rest[name] = given
            given = default
        return cast(T, self.rest.pop(own, given))

    def options(self, record: Callable[..., T], **given: object) -> T:
        """A record of options, whose fields have their defaults."""
        defaults = {f.name: f.default for f in fields(record)}  # type: ignore[arg-type]  # a class is called
        return record(**{name: self.option(name, value, defaults[name]) for name, value in given.items()})

    def keyword(self, name: str, given: T) -> T:
        """The value of an option that may be given by its place, too; by name it is one among all others."""
        return cast(T, self.rest.pop(option_name(name, self.names), given))


def _is_for_option(given: object, default: object) -> bool:
    """Whether a value makes sense for an option only."""
    if isinstance(given, bool | str) or (default is None and isinstance(given, int)):
        return True
    return isinstance(given, tuple | list | set) and bool(given) and all(isinstance(name, str) for name in given)
