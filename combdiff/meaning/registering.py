"""A scalar function of the user's own: one row more in the table of `terms/scalars.py`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from functools import cache
from threading import RLock

import numpy as np

from combdiff.boundary import boundary
from combdiff.errors import UnsupportedError
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.vocabulary import CONSTANTS, FUNCTIONS, WORDS, in_words
from combdiff.meaning.differences import TOLERANCE, items_of, off_slope
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.values import Value
from combdiff.terms.functions import SCALAR_FUNCTIONS, ScalarFunction
from combdiff.terms.terms import Lam, Term, apply, fresh
from combdiff.terms.types import REAL

_MODULES = {"numpy": "np", "cupy": "cp", "jax": "jnp", "torch": "torch", "dask": "da"}
_lock = RLock()
_registered: dict[str, tuple[str, ...]] = {}


@boundary
def register(
    name: str,
    *,
    derivative: str,
    numpy: str,
    latex: str = "",
    jax: str = "",
    torch: str = "",
    cupy: str = "",
    dask: str = "",
    sympy: str = "",
) -> None:
    r"""A function of your own, of a real number, for all programs from now on.

    >>> import combdiff as cd
    >>> cd.register("gauss", derivative="-x * gauss(x)", numpy="np.exp(-x**2 / 2)", latex=r"\varphi")
    >>> print(cd.grad("(x::RV) -> sum(i, gauss(2 * x(i)))"))
    (x::RV) -> i -> -4 * x(i) * gauss(2 * x(i))

    The derivative is a text of the language with x for the argument; it may hold the function itself and others that
    were registered before. `numpy` is its value in Python, of the array x, with NumPy as `np` and `scipy.special` as
    `special`. For other libraries the same text is taken with their names, `jnp.exp`, unless `jax=`, `torch=`,
    `cupy=` or `dask=` give another one, with these names. `latex` is its sign, or how it is written with `{0}` for the
    argument; `sympy` the name of SymPy's function.

    The derivative is compared with differences of the values when a function is registered. The Python texts are run as
    they are: register none that you do not trust.

    Registering a function twice in the same way does nothing; in another way it is an UnsupportedError.
    """
    given = (derivative, numpy, latex, jax, torch, cupy, dask, sympy)
    with _lock:
        if _registered.get(name) != given:
            _check_name(name)
            codes = _codes(numpy, {"jax": jax, "torch": torch, "cupy": cupy, "dask": dask})
            sign, slope = latex or rf"\operatorname{{{name}}}", _derivative(name, derivative)
            _add(ScalarFunction(name, "", sign, slope, of_reals=True, sympy=sympy, codes=codes))
            _registered[name] = given


def _codes(numpy: str, own: Mapping[str, str]) -> dict[str, str]:
    """The templates by library: NumPy's under other names, or those that are given."""
    codes = {library: _code(numpy, module) for library, module in _MODULES.items()}
    # code for Dask has both names, np and da
    given = {library: text for library, text in own.items() if text}
    return codes | {
        library: _template(text, "da") if library == "dask" else _code(text, _MODULES[library])
        for library, text in given.items()
    }


def _add(row: ScalarFunction) -> None:
    """Put the row into the table, where its derivative may already need it; it is taken out if that is wrong."""
    SCALAR_FUNCTIONS[row.name] = row
    FUNCTIONS.add(row.name)
    try:
        _check_derivative(row)
        _check_values(row)
    except BaseException:
        del SCALAR_FUNCTIONS[row.name]
        FUNCTIONS.discard(row.name)
        raise


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[^\W\d]\w*", name):
        raise UnsupportedError(
            f"{name!r} cannot be the name of a function", remedy="write a word of letters and digits"
        )
    if name in _registered:
        raise UnsupportedError(
            f"{name} was registered before, and in another way", remedy="take another name for the other function"
        )
    if name in FUNCTIONS or name in WORDS or name in CONSTANTS:
        raise UnsupportedError(f"{name} is a word of the language", remedy="take another name")


def _derivative(name: str, text: str) -> Callable[..., Term]:
    """The derivative at a term; it is read when it is first needed, for it may hold the function itself."""

    @cache
    def read() -> Lam:
        f = infer(parse(f"(x::R) -> {text}", f"the derivative of {name}"))
        assert isinstance(f, Lam), "a map of one number"
        return f

    return lambda z: apply(read(), z)


def _check_derivative(row: ScalarFunction) -> None:
    x = fresh("x", REAL)
    (found,) = row.derivatives(x)
    if found.type != REAL or not found.free <= {x}:
        raise UnsupportedError(
            f"the derivative of {row.name} is {in_words(found.type)}, not a real number", remedy="write one number of x"
        )


_POINTS = (-1.37, -0.42, 0.71, 1.64)
"""Where values and derivative are compared."""


def _check_values(row: ScalarFunction) -> None:
    """The NumPy text can be computed, entry by entry, and its differences are the derivative."""
    text = row.codes["numpy"].format("x")
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(row.at(np.array(_POINTS)))
    except Exception as error:  # whatever the user's text raises
        raise UnsupportedError(
            f"{text} cannot be computed: {error}", remedy="write an expression of x with np and special, np.exp(-x**2)"
        ) from error
    if found.shape != (len(_POINTS),) or found.dtype.kind not in "fiu":
        raise UnsupportedError(
            f"{text} is not one real number for each entry of x", remedy="use functions that go entry by entry"
        )
    x = fresh("x", REAL)
    (slope,) = row.derivatives(x)
    for at in _POINTS:

        def along(h: float, at: float = at) -> Value:
            return float(row.at(np.float64(at + h)))

        with np.errstate(all="ignore"):
            told = float(items_of(evaluate(slope, {x: at}))[0].real)
            off = off_slope(told, 1.0, along)
        if off is not None and off > TOLERANCE:
            raise UnsupportedError(
                f"the derivative of {row.name} is {told:.4g} at x = {at}, and differences of {text} are not",
                remedy="correct the derivative or the NumPy text",
            )


def _code(text: str, module: str) -> str:
    """NumPy's expression in a library that calls things as NumPy does."""
    return re.sub(r"(?<![.\w])np\.", f"{module}.", _template(text, module))


def _template(text: str, module: str) -> str:
    """An expression of x with `{0}` for it; it may call the library by its own name, too."""
    try:
        names = {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}
    except SyntaxError as error:
        raise UnsupportedError(f"{text!r} is not a Python expression", remedy="write np.exp(-x**2)") from error
    if other := sorted(names - {"x", "np", "special", module}):
        own = "np" if module == "np" else f"{module} or np"
        raise UnsupportedError(
            f"{text!r} holds {', '.join(other)}",
            remedy=f"use x, {own} for the library, and special for its special functions",
        )
    if "x" not in names:
        raise UnsupportedError(f"{text!r} does not depend on x", remedy="write np.exp(-x**2)")
    found = re.sub(r"(?<![.\w])x(?!\w)", "{0}", text.replace("{", "{{").replace("}", "}}"))
    return found if re.fullmatch(r"[\w.]+\([^()]*\)", found) else f"({found})"
