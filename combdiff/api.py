"""The entry points: `grad`, `pullback` and `hvp` of a program's text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from combdiff.boundary import boundary
from combdiff.budget import NODES, SECONDS
from combdiff.errors import CombDiffError
from combdiff.files import read_program

if TYPE_CHECKING:
    from combdiff.derivation import Derivation
    from combdiff.simplify.account import Progress


@boundary
def grad(
    text: str | os.PathLike[str],
    *,
    wrt: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    expand: bool = False,
    seconds: float = SECONDS,
    nodes: float = NODES,
    name: str = "",
    progress: Progress | None = None,
) -> Derivation:
    """The gradient of the map that `text` describes, a program or the path of a file that holds one.

    >>> import combdiff as cd
    >>> print(cd.grad("(x::RV) -> sum(i, x(i)^2)"))
    (x::RV) -> i -> 2 * x(i)

    The gradient of a real f at z = a + ib is ∂f/∂a + i ∂f/∂b (Eq. 42–43): the direction of steepest ascent, what
    PyTorch calls the gradient, the conjugate of JAX's. Of a complex f it is the gradient of its real part. With respect
    to a tensor that is declared symmetric it is the gradient in the full space.

    Args:
        text: a program, or a `Path` of one: declarations, leading maps, and below them `pullback(f)` or `grad(f)`;
            without either, the derivative is taken at the last leading map that has a parameter which is no index.
        wrt: names of parameters to differentiate with respect to, instead of what the text says.
        keep: names of definitions that stay unknown, so that the result holds their ∇ (Eq. 48).
        expand: multiply products and shared values out (Eq. 57) instead of keeping them (Eq. 58), and the value that
            code returns, too. Then no array of the size of a residual is made, but a value near zero is a difference of
            large terms: at a relative residual of 1e-7, rounding is 1 % of a sum of squares.
        seconds, nodes: the budget of simplification, its time and the size of its largest e-graph. Where it is spent,
            the result is correct and longer than need be, and `steps` says what was left undone.
        name: what the text is called in messages; a file is called by its path.
        progress: called as progress(stage, seconds) while a stage runs; a notebook shows a line after a second.

    Raises:
        CombDiffError: the program is wrong or its derivative is not defined; the message says where and how to mend it.
    """
    return _derived(text, "grad", wrt, keep, expand, (seconds, nodes), name, progress)


@boundary
def pullback(
    text: str | os.PathLike[str],
    *,
    wrt: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    expand: bool = False,
    seconds: float = SECONDS,
    nodes: float = NODES,
    name: str = "",
    progress: Progress | None = None,
) -> Derivation:
    """The pullback (vector-Jacobian product) of the map that `text` describes; cotangents are the last arguments.

    >>> import combdiff as cd
    >>> print(cd.pullback("(A::CM) -> (x::CV) -> (i::N) -> sum(j, A(i, j) * x(j))"))
    (A::CM) -> (x::CV, k::CV) -> j -> sum(i, A(i, j)' * k(i))

    𝒫(f)(z, k) satisfies Re⟨𝒫(f)(z, k), dz⟩ = Re⟨k, f'(z) dz⟩ (Eq. 44). Arguments and errors as for `grad`.
    """
    return _derived(text, "pullback", wrt, keep, expand, (seconds, nodes), name, progress)


@boundary
def hvp(
    text: str | os.PathLike[str],
    *,
    wrt: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    expand: bool = False,
    seconds: float = SECONDS,
    nodes: float = NODES,
    name: str = "",
    progress: Progress | None = None,
) -> Derivation:
    """The Hessian-vector product: the pullback of the gradient, with the vector as last argument.

    >>> import combdiff as cd
    >>> print(cd.hvp("(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"))
    (A::Her) -> (x::CV, k::CV) -> i -> 2 * sum(j, A(i, j) * k(j))

    It is linear in the vector over the real numbers only. Arguments and errors as for `grad`.
    """
    return _derived(text, "hvp", wrt, keep, expand, (seconds, nodes), name, progress)


MODES = {entry.__name__: entry for entry in (grad, pullback, hvp)}
"""The entry points by the names of their modes."""


def _derived(
    text: str | os.PathLike[str],
    mode: str,
    wrt: str | Sequence[str],
    keep: str | Sequence[str],
    expand: bool,
    budget: tuple[float, float],
    name: str,
    progress: Progress | None,
) -> Derivation:
    if isinstance(text, os.PathLike):
        text, path = read_program(text)
        name = name or path
    if not isinstance(text, str):
        raise CombDiffError(
            f"a program is a text, and this is of type {type(text).__name__}", remedy="give its text, or a Path of it"
        )
    if text.endswith(".cd") and "\n" not in text:
        raise CombDiffError(f"{text} is a path, not a program", remedy=f"give it as a path: pathlib.Path({text!r})")
    seconds, nodes = budget
    if not (isinstance(seconds, int | float) and seconds > 0):
        raise CombDiffError(f"the time budget is {seconds!r}", remedy="give a number of seconds above 0")
    if not (isinstance(nodes, int | float) and nodes > 0):
        raise CombDiffError(f"the budget of nodes is {nodes!r}", remedy="give a number above 0")
    wrt, keep = _names(wrt, "wrt"), _names(keep, "keep")
    from combdiff.derivation import derive
    from combdiff.progress import following

    with following(progress) as follower:
        return derive(
            text,
            mode,
            wrt=wrt,
            keep=keep,
            expand=expand,
            seconds=seconds,
            nodes=nodes,
            name=name or "<text>",
            progress=follower,
        )


def _names(names: str | Sequence[str], argument: str) -> Sequence[str]:
    """The names given, which may be a single one."""
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, Sequence | set | frozenset) or not all(isinstance(n, str) for n in given):
        raise CombDiffError(f"{argument} is {names!r}", remedy=f'give names: {argument}="x" or {argument}=("x", "y")')
    return tuple(given)
