"""Resolves the names of a call's arguments: names of the program, names of the code, then options."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from inspect import Parameter, Signature

from combdiff.arrays.lower.argument_names import identifier
from combdiff.arrays.lower.arguments import described_derivative, described_offsets
from combdiff.arrays.plan import Argument
from combdiff.emit.modules import Module
from combdiff.emit.names import Names
from combdiff.errors import ArrayError
from combdiff.language.vocabulary import counted
from combdiff.run.given import option_name


class Call:
    """Calls of the function of a module; `others` are names that are taken and not needed.

    >>> from combdiff.emit.backends.numpy import SPELLING
    >>> from combdiff.terms.types import REAL
    >>> call = Call(Module(SPELLING, "f"), [Argument("lambda", REAL), Argument("out", REAL)], ())
    >>> call.bound((), {"lambda_": 1, "out": 2}), call.separated(2, {"lambda_": 1, "out_": 3})
    ({'lambda': 1, 'out': 2}, (3, {'lambda_': 1, 'out': 2}))
    """

    def __init__(self, module: Module, arguments: Sequence[Argument], others: Collection[str]) -> None:
        self.name = module.name
        self.arguments = arguments
        self.names = [a.name for a in arguments]
        # a size may stand first in the program, and stands after the arrays in the code: it is given by name only
        self.by_position = next((n for n, a in enumerate(arguments) if a.is_size), len(arguments))
        self._in_code = Names(module.names.taken).of(self.names)
        self._spelled = {own: name for name, own in self._in_code.items()} | {name: name for name in self.names}
        self._others = set(others).difference(self.names)
        self._out = option_name("out", {*self._spelled, *self._others})

    def signature(self) -> Signature:
        """What a call takes, under the names of the code."""
        arguments = [
            Parameter(
                self._in_code[a.name],
                Parameter.POSITIONAL_OR_KEYWORD if n < self.by_position else Parameter.KEYWORD_ONLY,
                default=None if a.optional else Parameter.empty,
            )
            for n, a in enumerate(self.arguments)
        ]
        arguments.sort(key=lambda p: (p.kind, p.default is None))
        return Signature([*arguments, Parameter(self._out, Parameter.KEYWORD_ONLY, default=None)])

    def separated(self, out: object, named: dict[str, object]) -> tuple[object, dict[str, object]]:
        """Arrays for results, and arguments: `out=` is the argument, where one is called so."""
        if self._out == "out":
            return out, named
        named = named if out is None else {**named, "out": out}
        return named.pop(self._out, None), named

    def spelled(self, key: str) -> str:
        """The argument that a keyword names: itself, or what the code calls it."""
        return self._spelled.get(key, key)

    def bound(self, args: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
        """Values by argument name."""
        if len(args) > len(self.names):
            raise ArrayError(
                f"{self.name} takes {len(self.names)} arguments, and {len(args)} are given",
                remedy=f"give {self._listed()}",
            )
        if len(args) > self.by_position:
            raise ArrayError(
                f"{self.name} takes {counted(self.by_position, 'argument')} by position, and {len(args)} are given",
                remedy=f"give sizes by name: {', '.join(f'{name}=…' for name in self.names[self.by_position :])}",
            )
        given: dict[str, object] = dict(zip(self.names, args, strict=False))
        for key, value in named.items():
            name = self.spelled(key)
            if name not in self.names and name not in self._others:
                raise ArrayError(
                    f"{self.name} has no argument called {key}", remedy=f"its arguments are {self._listed()}"
                )
            if name in given:
                results = f"; {self._out}= are the arrays to fill" * (key == "out")
                raise ArrayError(
                    f"the argument {key} is given twice", remedy=f"give it by position or by name, not both{results}"
                )
            given[name] = value
        given = {a.name: None for a in self.arguments if a.optional} | given
        self._check_complete(given)
        return given

    def _check_complete(self, given: Mapping[str, object]) -> None:
        missing = [a for a in self.arguments if a.name not in given]
        if missing:
            offsets = [f"{a.name}= takes {described_offsets(a.offsets)}" for a in self.arguments if a.offsets]
            raise ArrayError(
                f"{self.name} is not given {', '.join(a.name for a in missing)}",
                remedy="; ".join(
                    [f"its arguments are {self._listed()}{''.join(map(described_derivative, missing))}", *offsets]
                ),
            )

    def _listed(self) -> str:
        """The arguments, and what those are called in the code that Python cannot write as keywords."""
        own = self._in_code
        return ", ".join(n if n == identifier(n) else f"{n} (as a keyword, {own[n]}=)" for n in self.names)
