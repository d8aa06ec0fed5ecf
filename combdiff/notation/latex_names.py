"""Turns the names of a program into LaTeX, and keeps apart those that are in sight at one time (paper, Eq. 53–58)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from combdiff.terms.terms import Term, Var

_EARLY = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu")
_LATE = ("nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega")
GREEK = frozenset((*_EARLY, *_LATE))
_NO_COMMAND = {"omicron": "o", "Alpha": "A", "Beta": "B", "Epsilon": "E", "Zeta": "Z", "Eta": "H", "Iota": "I"}
_NO_COMMAND |= {"Kappa": "K", "Mu": "M", "Nu": "N", "Omicron": "O", "Rho": "P", "Tau": "T", "Chi": "X"}
_VARIANTS = {"ϵ": r"\epsilon", "ε": r"\varepsilon", "ϕ": r"\phi", "φ": r"\varphi", "ς": r"\varsigma", "ϑ": r"\vartheta"}
_VARIANTS |= {"ϱ": r"\varrho", "ϖ": r"\varpi", "ħ": r"\hbar", "ℏ": r"\hbar", "ℓ": r"\ell", "∂": r"\partial"}
_VARIANTS |= {"∇": r"\nabla", "∞": r"\infty", "µ": r"\mu"}
_LETTER = re.compile(r"[A-Za-z]|\\[A-Za-z]+")
_ACCENTS = {"\u0302": "hat", "\u0304": "bar", "\u0305": "bar", "\u0303": "tilde", "\u0307": "dot", "\u20d7": "vec"}


def _greek(letter: str) -> str | None:
    """The English name of a Greek letter; omitted are letters with accents."""
    name = unicodedata.name(letter, "")
    for size, case in (("SMALL", str.lower), ("CAPITAL", str.capitalize)):
        prefix = f"GREEK {size} LETTER "
        if name.startswith(prefix):
            english = name.removeprefix(prefix).replace("LAMDA", "LAMBDA").lower()
            return case(english) if english in GREEK else None
    return None


def _command(english: str) -> str:
    return _NO_COMMAND.get(english, f"\\{english}")


def _stem(stem: str) -> str:
    """A name without subscript."""
    if len(stem) > 1 and stem[-1] in _ACCENTS:
        return f"\\{_ACCENTS[stem[-1]]}{{{_stem(stem[:-1])}}}"
    if stem in _VARIANTS:
        return _VARIANTS[stem]
    if stem in GREEK or (stem[0].isupper() and stem.lower() in GREEK and stem == stem.capitalize()):
        return _command(stem)
    letters = [_VARIANTS.get(c) or (_command(g) if (g := _greek(c)) else c) for c in stem]
    if len(letters) == 1:
        return letters[0]
    if all(letter == c for letter, c in zip(letters, stem, strict=True)):
        return f"\\mathrm{{{stem}}}"
    return "{" + " ".join(letters) + "}"


def latex_name(name: str) -> str:
    """A program's name as LaTeX; the cotangent of ρ that differentiation calls `rho_bar` is \\bar{\\rho}.

    >>> print(latex_name("rho"), latex_name("ψ"), latex_name("x1"), latex_name("w_occ"), latex_name("Fock"))
    \\rho \\psi x_{1} w_{\\mathrm{occ}} \\mathrm{Fock}
    """
    if name.endswith("_bar") and len(name) > len("_bar"):
        stem, _, subscript = latex_name(name.removesuffix("_bar")).partition("_")
        return f"\\bar{{{stem}}}" + (f"_{subscript}" if subscript else "")
    plain = "".join(unicodedata.normalize("NFKC", c) if "₀" <= c <= "₉" else c for c in name)
    accented = unicodedata.normalize("NFD", plain) if any(not c.isascii() for c in plain) else plain
    match = re.fullmatch(r"([^\d_]+)_*(.*)", accented)
    if match is None:
        return f"\\mathrm{{{accented}}}".replace("_", r"\_")
    stem, subscript = match.groups()
    if not subscript:
        return _stem(stem)
    parts = [part if part.isdigit() else latex_name(part) for part in re.split(r"_+", subscript) if part]
    return f"{_stem(stem)}_{{{','.join(parts)}}}" if parts else _stem(stem)


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables in sight and how they are written; no two are written alike, and none as a sign of the formula is.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import REAL
    >>> x, other = fresh("x", REAL), fresh("x", REAL)
    >>> scope = Scope().bind([x]).bind([other])
    >>> scope[x], scope[other]
    ('x', 'x_{1}')
    >>> Scope(signs=frozenset({"x"})).bind([x])[x]
    'x_{1}'
    """

    spell: Callable[[str], str] = latex_name
    names: Mapping[Var, str] = field(default_factory=dict)
    signs: frozenset[str] = frozenset()
    commas: bool = True

    def subscripts(self, indices: Iterable[str]) -> str:
        """Indices in a row; without `commas`, those that are single letters stand side by side.

        >>> Scope(commas=False).subscripts(["p", "q"]), Scope(commas=False).subscripts(["p", "q+1"])
        ('pq', 'p,q+1')
        """
        texts = list(indices)
        if self.commas or not all(map(_LETTER.fullmatch, texts)):
            return ",".join(texts)
        return (" " if any(text.startswith("\\") for text in texts) else "").join(texts)

    def bind(self, variables: Iterable[Var]) -> Scope:
        """The scope inside a binder of `variables`."""
        names = dict(self.names)
        taken = {*names.values(), *self.signs}
        for var in variables:
            names[var] = self._unlike(var.name, taken)
            taken.add(names[var])
        return replace(self, names=names)

    def seeing(self, term: Term) -> Scope:
        """The scope with only the variables that `term` mentions: a definition may use the names of all others."""
        return replace(self, names={var: name for var, name in self.names.items() if var in term.free})

    def _unlike(self, name: str, taken: set[str]) -> str:
        spelled, number = self.spell(name), 0
        while spelled in taken:
            number += 1
            spelled = self.spell(f"{name}{number}" if not name[-1].isdigit() else f"{name}_{number}")
        return spelled

    def __getitem__(self, var: Var) -> str:
        return self.names[var]
