"""Programs up to renaming: one number for all programs that differ by names alone."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from fractions import Fraction

from .kinds import Count, Function, Index, Integers, Items, Law, Number, Range, Space, Tensor
from .syntax import Expr, Looked, Program, Var


def signature(program: Program) -> int:
    """A number that two programs share only if they differ by the names of variables.

    >>> from .programs import program
    >>> signature(program(1, 5)) == signature(program(1, 5))
    True
    """
    walk = _Walk()
    parts = [
        tuple(tuple(walk.part(p) for p in group) for group in program.groups),
        walk.part(program.body),
        program.mode,
    ]
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest())


class _Walk:
    """Numbers for variables, ranges and spaces in the order in which they are met."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}

    def part(self, x: object) -> object:
        match x:
            case Looked(array=array, args=args):
                return "entry", self.part(array), self.part(args)
            case Var(kind):
                known = x in self.numbers
                number = self.numbers.setdefault(x, len(self.numbers))
                return number if known else (number, self.part(kind))
            case Range():
                known = x in self.numbers
                number = self.numbers.setdefault(x, len(self.numbers))
                return (
                    number
                    if known
                    else (number, x.sort, x.directions, x.lower, x.sizes if x.sort == "bounded" else (), x.more)
                )
            case Space():
                known = x in self.numbers
                number = self.numbers.setdefault(x, len(self.numbers))
                return number if known else (number, x.name, tuple(map(repr, x.laws)), x.positive)
            case Number() | Index() | Count() | Tensor() | Function() | Items() | Integers() | Law():
                return (type(x).__name__, *(self.part(getattr(x, f.name)) for f in fields(x)))
            case Expr():
                return (type(x).__name__, *(self.part(getattr(x, f.name)) for f in fields(x) if f.init))
            case tuple():
                return tuple(self.part(y) for y in x)
            case Fraction() | int() | str() | None:
                return str(x)
        raise AssertionError(f"{x!r} has no signature")
