"""From a function of an eval to a call that can be timed: the program is derived and compiled, the input converted.

    Function("lse", cd.grad, lambda given: {"x": floats(given["x"])})

is the gradient of `lse.cd`: `arguments` makes of the input of a message, JSON, the program's arrays by name. A
`prepared` function has three parts, and only the second is timed:

    call = prepared(function, library, given)    arrays in the library's memory, a first call, which compiles
    result = call()                              from these arrays to the finished result
    function.answer(result)                      to JSON

`assembled` belongs to the second part: it makes the data structure that an eval wants of the arrays that the code
returns. `memory` is how many bytes the code may hold at once for an input. A Python integer among the arguments is a
size or a number of steps, and code is compiled for it. Neither the conversions nor `assembled` know a derivative or a
loop of the eval; those are in the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from combdiff.derivation import Derivation

Json = Any
Arguments = dict[str, object]


def floats(given: Json) -> np.ndarray[Any, Any]:
    """An array of doubles, whatever numbers the JSON has."""
    return np.array(given, dtype=np.float64)


def listed(result: Any) -> Json:
    """Arrays as nested lists, a number as a number, a tuple as a list."""
    return [listed(r) for r in result] if isinstance(result, tuple) else np.asarray(result).tolist()


def unchanged(result: Any) -> Any:
    return result


@dataclass(frozen=True)
class Function:
    """A function of an eval: a program, the derivative that is asked for, and what the tool converts."""

    program: str
    derivative: Callable[[str], Derivation]
    arguments: Callable[[Json], Arguments]
    answer: Callable[[Any], Json] = listed
    assembled: Callable[[Any], Any] = unchanged
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    memory: Callable[[Json], int] | None = None

    @property
    def text(self) -> str:
        return (Path(__file__).parent / f"{self.program}.cd").read_text(encoding="utf-8")


@cache
def derived(function: Function) -> Derivation:
    """The derivation, once in a process."""
    return function.derivative(function.text)


@cache
def compiled(function: Function, library: str, memory: int | None = None) -> Callable[..., Any]:
    """The function of arrays, once in a process."""
    return derived(function).compile(library, memory=memory, **function.options)


def on_numpy(f: Callable[..., Any], arguments: Arguments) -> Callable[[], Any]:
    return partial(f, **arguments)


def on_jax(f: Callable[..., Any], arguments: Arguments) -> Callable[[], Any]:
    """A call that ends when its results are there; integers are static."""
    import jax

    jax.config.update("jax_enable_x64", True)
    fixed = {name: given for name, given in arguments.items() if isinstance(given, int)}
    arrays = {name: jax.numpy.asarray(given) for name, given in arguments.items() if name not in fixed}
    jitted = jax.jit(partial(f, **fixed))
    return lambda: jax.block_until_ready(jitted(**arrays))


LIBRARIES = {"numpy": on_numpy, "jax": on_jax}


def prepared(function: Function, library: str, given: Json) -> Callable[[], Any]:
    """A call without arguments, already called once."""
    # a limit is for code that writes into arrays
    memory = function.memory(given) if function.memory and library == "numpy" else None
    run = LIBRARIES[library](compiled(function, library, memory), function.arguments(given))
    assembled = function.assembled
    call = run if assembled is unchanged else lambda: assembled(run())
    call()
    return call
