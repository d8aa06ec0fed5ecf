"""The reserved words of the language, and what types are called in messages."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from combdiff.resources import resource
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.nodes import ALONG, OF_MATRICES
from combdiff.terms.types import COMPLEX, Index, Map, Number, Product, Type

if TYPE_CHECKING:
    from collections.abc import Iterable

DERIVATIVES = frozenset({"grad", "pullback"})
"""Those that an unknown map has, too."""
LINEAR = frozenset({"adjoint", "inverse"})
OF_MAPS = DERIVATIVES | LINEAR | {"jvp", "root"}
COMPARISONS = frozenset({"delta", "indicator", "where"})
REDUCTIONS = frozenset(
    {"prod", "mean", "maximum", "minimum", "argmax", "argmin", "ties", "logsumexp", "softmax", "cumsum"}
)
LOOPS = frozenset({"iterate", "scan"})
INVERSE_ROOT = "invsqrtm"
"""The inverse of `sqrtm`, which has no row of its own."""
OF_SQUARE_MATRICES = (OF_MATRICES - ALONG) | {"spectral", "singular", "cholback", INVERSE_ROOT}
OF_TENSORS = OF_SQUARE_MATRICES | frozenset(
    {"norm", "tr", "transpose", "diag", "Diagonal", "dot", "cross", "length", "fft", "ifft"}
)
MADE = dict(re.findall(r"^(\w+) = (.+)$", resource("grammar", "functions.cd"), re.MULTILINE))
"""The functions that are made of others, and the maps that they are."""
HIDDEN = REDUCTIONS | OF_TENSORS | LOOPS | {"size", *MADE}
"""Functions that a name of the program hides."""
CONSTANTS = frozenset({"im", "pi"})
FUNCTIONS = {*SCALAR_FUNCTIONS, *OF_MAPS, *COMPARISONS, *HIDDEN}
"""All of them; `register` adds to it."""
RESERVED = OF_MAPS | COMPARISONS | CONSTANTS
WORDS = RESERVED | {"begin", "let", "end", "sum", "and", "or", "not"}
"""What no name of a program is. A function of numbers it may be, which it hides."""


def in_words(kind: Type) -> str:
    """What a value of type `kind` is called in a message.

    >>> in_words(Number(complex=True))
    'a complex number'
    """
    match kind:
        case Index():
            return "an index"
        case Number():
            return "a complex number" if kind.complex else "a real number"
        case Map(params) if kind.is_tensor:
            values = "complex" if kind.result == COMPLEX else "real"
            return f"a {values} tensor with {counted(len(params), 'index')}"
        case Map(params) if kind.is_integers:
            return f"an array of integers with {counted(len(params), 'index')}"
        case Map(params):
            return f"a map of {counted(len(params), 'argument')}"
        case Product(items):
            return f"a tuple of {len(items)}"


def counted(n: int, noun: str) -> str:
    """`n` things in words.

    >>> counted(1, "index"), counted(2, "index")
    ('1 index', '2 indices')
    """
    plural = {"index": "indices", "axis": "axes"}.get(noun, noun + "s")
    return f"{n} {noun if n == 1 else plural}"


def did_you_mean(word: str, known: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """A remedy for a word that is not known; `cutoff` is how much of it the word that is meant has at least.

    >>> did_you_mean("alpa", ["alpha", "beta"], "define it")
    'did you mean alpha?'
    """
    words = sorted(set(known))
    near = [w for w in words if w.lower() == word.lower()] or get_close_matches(word, words, n=1, cutoff=cutoff)
    return f"did you mean {near[0]}?" if near else otherwise
