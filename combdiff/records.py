"""`dataclass`, as in the standard library, for classes of which hundreds are made before the first formula is shown.

The standard decorator compiles up to six methods a class: a fifth of the time of a first derivative in a new process.
This one leaves the fields, slots and patterns to it and compiles `__init__` alone; the other methods are the same for
all classes but for the names of their fields. Type checkers see the standard one.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
    from typing import Any

__all__ = ["dataclass"]


def _record(
    cls: type | None = None, /, *, eq: bool = True, frozen: bool = False, slots: bool = False, kw_only: bool = False
) -> type | Callable[[type], type]:
    """Decorate a class as `dataclasses.dataclass` does with these options.

    >>> @dataclass(frozen=True, slots=True)
    ... class Interval:
    ...     low: int
    ...     high: int = 1
    >>> Interval(0) == Interval(0, 1)
    True
    >>> Interval(0)
    Interval(low=0, high=1)
    >>> Interval(0).low = 2
    Traceback (most recent call last):
      ...
    dataclasses.FrozenInstanceError: cannot assign to field 'low'
    """
    if cls is None:
        return lambda cls: _record(cls, eq=eq, frozen=frozen, slots=slots, kw_only=kw_only)  # type: ignore[return-value]
    own = set(cls.__dict__)
    is_hashed = "__hash__" in own and not (cls.__hash__ is None and "__eq__" in own)
    # the hash is ours in any case: the standard decorator is told of neither equality nor of what is frozen
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
    fields = dataclasses.fields(cls)
    methods: dict[str, object] = {"__init__": _initialiser(cls, fields, frozen), "__repr__": _shown}
    if eq:
        compared = _values([f.name for f in fields if f.compare])
        methods["__eq__"] = _equality(compared)
        if not is_hashed:
            methods["__hash__"] = _hash(compared) if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if frozen and slots:  # copies and pickles would assign
        methods |= {"__getstate__": _state, "__setstate__": _with_state}
    for name, method in methods.items():
        if name not in own or method is None:
            setattr(cls, name, method)
    return cls


if not TYPE_CHECKING:
    dataclass = _record


def _initialiser(cls: type, fields: tuple[dataclasses.Field[Any], ...], frozen: bool) -> Callable[..., None]:
    """`__init__`, which is compiled: a function of named parameters is several times as quick as one of `**values`."""
    known: dict[str, object] = {"_set": object.__setattr__}
    parameters, named, body = ["self"], ["*"], []
    for f in fields:
        name = value = f.name
        if f.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = f.default
            parameter, value = f"{name}=_default_{name}", name if f.init else f"_default_{name}"
        elif f.default_factory is not dataclasses.MISSING:
            known[f"_new_{name}"] = f.default_factory
            parameter = f"{name}=_new_{name}"
            value = f"_new_{name}() if {name} is _new_{name} else {name}" if f.init else f"_new_{name}()"
        elif f.init:
            parameter = name
        else:
            continue  # __post_init__ gives the value
        if f.init:
            (named if f.kw_only else parameters).append(parameter)
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters += named if len(named) > 1 else ()
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"]), known)
    made: Callable[..., None] = known["__init__"]  # type: ignore[assignment]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _values(names: list[str]) -> Callable[[object], tuple[object, ...]]:
    """The values of some fields: always as a tuple, whose comparison takes what is identical for equal."""
    if len(names) > 1:
        return attrgetter(*names)
    if names:
        one = attrgetter(*names)
        return lambda record: (one(record),)
    return lambda record: ()


def _equality(values: Callable[[object], tuple[object, ...]]) -> Callable[[object, object], bool]:
    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(values: Callable[[object], tuple[object, ...]]) -> Callable[[object], int]:
    return lambda self: hash(values(self))


@recursive_repr()
def _shown(self: Any) -> str:
    told = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({told})"


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _with_state(self: Any, state: list[object]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)
