"""`combdiff.records.dataclass` does what that of the standard library does with the same options."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from math import nan
from typing import Any

import pytest

from combdiff import records

Decorator = Callable[..., Any]


def _classes(decorate: Decorator) -> tuple[Any, Any, Any]:
    """A frozen class, one that is derived from it, and one that changes."""

    @decorate(frozen=True, slots=True)
    class Base:
        name: str
        order: int = 2
        note: str = field(default="", compare=False, repr=False)

    @decorate(frozen=True, slots=True, kw_only=True)
    class Derived(Base):
        parts: list[int] = field(default_factory=list, compare=False)
        length: int = field(init=False, default=0)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", len(self.parts))

    @decorate(slots=True)
    class Changing:
        seen: list[object] = field(default_factory=list)
        count: float = field(init=False, default=0.0)

    return Base, Derived, Changing


OURS = _classes(records.dataclass)
STANDARD = _classes(dataclasses.dataclass)

for _made in OURS:  # pickles name a class by where it is found
    globals()[_made.__name__] = _made
    _made.__qualname__ = _made.__name__


def _instances(classes: tuple[Any, Any, Any]) -> list[Any]:
    base, derived, changing = classes
    return [
        base("a"),
        base("a", 2, "other note"),
        base("b", note="b"),
        base(nan),
        derived("a", parts=[1, 2]),
        derived(name="a", order=2),
        changing(),
        changing([1]),
    ]


def test_records_are_equal_and_hashed_as_dataclasses_are() -> None:
    ours, standard = _instances(OURS), _instances(STANDARD)
    for i in range(len(ours)):
        for j in range(len(ours)):
            assert (ours[i] == ours[j]) == (standard[i] == standard[j])
        if type(ours[i]).__name__ == "Changing":
            with pytest.raises(TypeError, match="unhashable"):
                hash(ours[i])
        else:
            assert hash(ours[i]) == hash(standard[i])


def test_records_are_shown_as_dataclasses_are() -> None:
    for mine, theirs in zip(_instances(OURS), _instances(STANDARD), strict=True):
        assert repr(mine) == repr(theirs).rpartition("<locals>.")[2]
    loop = OURS[2]()
    loop.seen.append(loop)
    assert repr(loop) == "Changing(seen=[...], count=0.0)"


def test_frozen_records_stay_as_they_are() -> None:
    base, _, changing = OURS
    one = base("a")
    for change in (lambda: setattr(one, "name", "b"), lambda: delattr(one, "name")):
        with pytest.raises(dataclasses.FrozenInstanceError, match="'name'"):
            change()
    assert one.name == "a"
    two = changing()
    two.count = 3.0
    assert two.count == 3.0


def test_defaults_are_made_anew_for_each_record() -> None:
    _, derived, changing = OURS
    assert changing().seen is not changing().seen
    assert derived("a", parts=[1]).length == 1
    assert dataclasses.replace(derived("a", parts=[1]), parts=[1, 2]).length == 2


@pytest.mark.parametrize("wrong", [lambda c: c(), lambda c: c("a", 1, "", []), lambda c: c("a", length=1)])
def test_wrong_arguments_are_refused_as_by_a_dataclass(wrong: Callable[[Any], object]) -> None:
    for classes in (OURS, STANDARD):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            wrong(classes[1])


def test_records_are_copied_pickled_and_matched() -> None:
    for one in _instances(OURS):
        if one.__class__ is OURS[0] and one.name is nan:
            continue  # a number that is read back is another one
        for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert again == one
            assert again is not one
    assert OURS[0].__match_args__ == STANDARD[0].__match_args__
    assert [f.name for f in dataclasses.fields(OURS[1])] == [f.name for f in dataclasses.fields(STANDARD[1])]
