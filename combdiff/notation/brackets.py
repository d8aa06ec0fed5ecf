"""Brackets and spaces of LaTeX: what is as high as a line has plain brackets, what is higher has brackets that grow."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TALL = re.compile(r"\\(?:frac|sum|prod|int|left|begin)(?![a-z])")
_UPRIGHT_END = re.compile(r"\\mathrm\{\w{2,}\}\}?(?:[_^].*)?$|[A-Za-z]\}_\{\d+\}$")
_UPRIGHT_START = re.compile(r"(?:\\overline\{)?\\mathrm\{\w{2,}\}")


def is_tall(text: str) -> bool:
    """Whether a formula is higher than a line.

    >>> is_tall("x^{2}"), is_tall(r"\\frac{a}{b}")
    (False, True)
    """
    return bool(_TALL.search(text))


def bracketed(text: str) -> str:
    """`text` in brackets of its size.

    >>> print(bracketed("a + b"), bracketed(r"\\frac{a}{b}"))
    (a + b) \\left(\\frac{a}{b}\\right)
    """
    return rf"\left({text}\right)" if is_tall(text) else f"({text})"


def magnitude(text: str) -> str:
    """|x|, in lines of the size of `text`.

    >>> print(magnitude("x"), magnitude(r"\\frac{a}{b}"))
    \\lvert x \\rvert \\left|\\frac{a}{b}\\right|
    """
    return rf"\left|{text}\right|" if is_tall(text) else rf"\lvert {text} \rvert"


def called(function: str, arguments: str) -> str:
    """A function with its arguments; the space that TeX puts before brackets that grow is taken back.

    >>> print(called("f", "a + b"), called("f", r"\\frac{a}{b}"))
    f(a + b) f\\!\\left(\\frac{a}{b}\\right)
    """
    inside = bracketed(arguments)
    return rf"{function}\!{inside}" if inside.startswith(r"\left") else function + inside


def subscripted(name: str) -> str:
    """A name that takes subscripts; one that ends in a number of its own stands in brackets, as in (x_1)_{ij}.

    >>> print(subscripted("x"), subscripted("x_{1}"))
    x (x_{1})
    """
    return f"({name})" if name.endswith("}") and "_{" in name else name


def beside(factors: Sequence[str]) -> str:
    """Factors of a product of matrices; names of several letters are kept apart.

    >>> print(beside(["A", "x"]), beside(["U", r"\\mathrm{na}", "x"]))
    A x U\\, \\mathrm{na}\\, x
    """
    text = ""
    for factor in factors:
        apart = _UPRIGHT_END.search(text) or _UPRIGHT_START.match(factor)
        text += (r"\, " if apart else " ") * bool(text) + factor
    return text
