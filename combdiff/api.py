"""The entry points: the derivatives of a program's text, and the program itself."""

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
    symmetric: bool = False,
    seconds: float = SECONDS,
    nodes: float = NODES,
    name: str = "",
    progress: Progress | None = None,
) -> Derivation:
    """The gradient of the map that `text` describes. `text` is a program or the `Path` of a file with a program.

    >>> import combdiff as cd
    >>> print(cd.grad("(x::RV) -> sum(i, x(i)^2)"))
    (x::RV) -> i -> 2 * x(i)

    The gradient of a real f at z = a + ib is ∂f/∂a + i ∂f/∂b (Eq. 42–43): the direction of steepest ascent. This is
    PyTorch's convention and the conjugate of JAX's. For a complex f it is the gradient of the real part. For a tensor
    that is declared symmetric it is the gradient in the full space.

    Args:
        text: a program, or its `Path`: declarations, leading maps, and below them `pullback(f)` or `grad(f)`. Without
            these, combdiff differentiates by the last leading map with a parameter that is not an index.
        wrt: names of the parameters to differentiate by, instead of those that the text marks.
        keep: names of definitions to treat as unspecified functions; the result contains their ∇ (Eq. 48).
        expand: multiply products and shared values out (Eq. 57) instead of keeping them (Eq. 58), also in the value
            that code returns. Code then makes no array of the size of a residual, but a value near zero is a difference
            of large terms: at a relative residual of 1e-7, rounding is 1 % of a sum of squares.
        symmetric: project the gradient orthogonally on the declared symmetry of the unknown (the group average).
        seconds, nodes: the budget of simplification: its time, and the size of its largest e-graph. If a budget runs
            out, the result is still correct, only longer, and `steps` names the stage that stopped early.
        name: the name of the text in messages; the default for a file is its path.
        progress: a function that combdiff calls as progress(stage, seconds) while a stage runs.

    Raises:
        CombDiffError: the program is wrong or its derivative is not defined; the message says where and how to mend it.
    """
    return _derived(text, "grad", wrt, keep, expand, (seconds, nodes), name, progress, symmetric)


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
    """The pullback (vector-Jacobian product) of the map that `text` describes. Cotangents are the last arguments.

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

    It is linear in the vector, over the real numbers only. Arguments and errors as for `grad`.
    """
    return _derived(text, "hvp", wrt, keep, expand, (seconds, nodes), name, progress)


vjp = pullback
"""Another name for `pullback`, the vector-Jacobian product."""


@boundary
def jvp(
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
    """The pushforward (Jacobian-vector product) of the map that `text` describes. Tangents are the last arguments.

    >>> import combdiff as cd
    >>> print(cd.jvp("(A::CM) -> (x::CV) -> (i::N) -> sum(j, A(i, j) * abs2(x(j)))"))
    (A::CM) -> (x::CV, k::CV) -> i -> 2 * sum(j, A(i, j) * real(x(j)' * k(j)))

    It is the derivative along k, by forward mode (Eq. 10–13), with one tangent for each unknown. It is linear in the
    tangents over the real numbers, and Re⟨w, jvp(z, k)⟩ = Re⟨pullback(z, w), k⟩. Arguments and errors as for `grad`.
    """
    return _derived(text, "jvp", wrt, keep, expand, (seconds, nodes), name, progress)


@boundary
def jacobian(
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
    """The Jacobian of the map that `text` describes: axes of the result first, then axes of the unknown.

    >>> import combdiff as cd
    >>> print(cd.jacobian("(A::RM) -> (x::RV) -> (i::N) -> sum(j, A(i, j) * x(j)^2)"))
    (A::RM) -> (x::RV) -> (i, j) -> 2 * A(i, j) * x(j)
    >>> print(cd.jacobian("(z::C) -> z * z'"))
    (z::C) -> (z', z)

    For a complex unknown it is the pair ∂f/∂z, ∂f/∂z*, with f(z + k) = f(z) + (∂f/∂z) k + (∂f/∂z*) k* + …; if combdiff
    finds that all ∂/∂z* of a program are 0, it returns none of them. Several results and several unknowns give a flat
    tuple, ordered by result, then by unknown. Arguments and errors as for `grad`.
    """
    return _derived(text, "jacobian", wrt, keep, expand, (seconds, nodes), name, progress)


@boundary
def hessian(
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
    """The matrix of second derivatives of the real function of real unknowns that `text` describes.

    >>> import combdiff as cd
    >>> print(cd.hessian("(A::RM) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))"))
    (A::RM) -> (x::RV) -> (i, j) -> A(i, j) + A(j, i)

    For several unknowns it is a flat tuple of blocks, row by row. Complex unknowns are an error, because their second
    derivatives are not a matrix over the complex numbers; use `hvp`. Arguments and errors as for `grad`.
    """
    return _derived(text, "hessian", wrt, keep, expand, (seconds, nodes), name, progress)


@boundary
def simplified(
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
    """The program in `text`, simplified. combdiff takes only the derivatives that the text contains.

    >>> import combdiff as cd
    >>> print(cd.simplified("(A::Sym) -> (x::RV) -> sum((i, j), (A(i, j) + A(j, i)) * x(j))"))
    (A::Sym) -> (x::RV) -> 2 * sum((i, j), A(i, j) * x(j))

    You can print, compile and check it like a derivative. Arguments and errors as for `grad`, but without `wrt`.
    """
    return _derived(text, "simplified", wrt, keep, expand, (seconds, nodes), name, progress)


MODES = {entry.__name__: entry for entry in (grad, pullback, hvp, jvp, jacobian, hessian, simplified)} | {"vjp": vjp}
"""The entry points by the names of their modes, and by their other names."""


def _derived(
    text: str | os.PathLike[str],
    mode: str,
    wrt: str | Sequence[str],
    keep: str | Sequence[str],
    expand: bool,
    budget: tuple[float, float],
    name: str,
    progress: Progress | None,
    symmetric: bool = False,
) -> Derivation:
    text, name = _read(text, name)
    seconds, nodes = budget
    if not (isinstance(seconds, int | float) and seconds > 0):
        raise CombDiffError(f"the time budget is {seconds!r}", remedy="give a number of seconds above 0")
    if not (isinstance(nodes, int | float) and nodes > 0):
        raise CombDiffError(f"the budget of nodes is {nodes!r}", remedy="give a number above 0")
    wrt, keep = _names(wrt, "wrt"), _names(keep, "keep")
    if wrt and mode == "simplified":
        raise CombDiffError("cd.simplified takes no derivative, and no wrt", remedy="leave wrt out, or use cd.grad")
    from combdiff.simplify.contraction.egraph import FAMILIES, prepare

    prepare(FAMILIES)  # while what follows is imported, where it is not yet
    from combdiff.deriving.derive import derive
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
            symmetric=bool(symmetric),
        )


def _read(text: str | os.PathLike[str], name: str) -> tuple[str, str]:
    """The text of a program, and its name in messages."""
    if isinstance(text, os.PathLike):
        text, path = read_program(text)
        name = name or path
    if not isinstance(text, str):
        raise CombDiffError(
            f"a program is a text, not {type(text).__name__}", remedy="give the text of a program, or its Path"
        )
    if text.endswith(".cd") and "\n" not in text:
        raise CombDiffError(f"{text} is a path, not a program", remedy=f"give it as a path: pathlib.Path({text!r})")
    return text, name


def _names(names: str | Sequence[str], argument: str) -> Sequence[str]:
    """The names given, which may be a single one."""
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, Sequence | set | frozenset) or not all(isinstance(n, str) for n in given):
        raise CombDiffError(f"{argument} is {names!r}", remedy=f'give names: {argument}="x" or {argument}=("x", "y")')
    return tuple(given)
