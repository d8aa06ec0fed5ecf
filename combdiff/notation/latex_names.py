"""Turns the names of a program into LaTeX, and keeps apart those that are in sight at one time (paper, Eq. 53–58)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from itertools import pairwise

from combdiff.records import dataclass
from combdiff.terms.terms import Term, Var
from combdiff.terms.types import Domain, Index

_EARLY = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu")
_LATE = ("nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega")
GREEK = frozenset((*_EARLY, *_LATE))
_NO_COMMAND = {"omicron": "o", "Alpha": "A", "Beta": "B", "Epsilon": "E", "Zeta": "Z", "Eta": "H", "Iota": "I"}
_NO_COMMAND |= {"Kappa": "K", "Mu": "M", "Nu": "N", "Omicron": "O", "Rho": "P", "Tau": "T", "Chi": "X"}
_VARIANTS = {"ϵ": r"\epsilon", "ε": r"\varepsilon", "ϕ": r"\phi", "φ": r"\varphi", "ς": r"\varsigma", "ϑ": r"\vartheta"}
_VARIANTS |= {"ϱ": r"\varrho", "ϖ": r"\varpi", "ħ": r"\hbar", "ℏ": r"\hbar", "ℓ": r"\ell", "∂": r"\partial"}
_VARIANTS |= {"∇": r"\nabla", "∞": r"\infty", "µ": r"\mu"}
_SINGLE = re.compile(r"[A-Za-z\d]|\\[A-Za-z]+")
_INDICES = (tuple("ijklmn"), tuple("pqrstu"), tuple("abcdefgh"), ("mu", "nu", "rho", "sigma", "lambda", "kappa"))
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
    """A program's name as LaTeX; the cotangent `rho_bar` of ρ is \\bar{\\rho}, its tangent `rho_dot` \\dot{\\rho}.

    >>> print(latex_name("rho"), latex_name("ψ"), latex_name("x1"), latex_name("w_occ"), latex_name("Fock"))
    \\rho \\psi x_{1} w_{\\mathrm{occ}} \\mathrm{Fock}
    """
    if name.isdecimal():
        return name
    if derived := re.fullmatch(r"(.+)_(bar|dot)(\d*)", name):
        stem, accent, number = derived.groups()
        written = latex_name(f"{stem}_{number}" if number else stem)
        return barred(written) if accent == "bar" else dotted(written)
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


def dotted(written: str) -> str:
    """A name with a dot over it, for a tangent.

    >>> print(dotted("x_{1}"))
    \\dot{x}_{1}
    """
    stem, _, subscript = written.partition("_")
    return f"\\dot{{{stem}}}" + (f"_{subscript}" if subscript else "")


def barred(written: str) -> str:
    """A name with a bar over it, which is as long as the name.

    >>> print(barred("x_{1}"), barred(r"\\mathrm{su}"))
    \\bar{x}_{1} \\overline{\\mathrm{su}}
    """
    stem, _, subscript = written.partition("_")
    bar = "overline" if stem.startswith(r"\mathrm{") else "bar"
    return f"\\{bar}{{{stem}}}" + (f"_{subscript}" if subscript else "")


def sizes_of(
    indices: Iterable[Var], scope: Scope, spell: Callable[[str], str], count: Callable[[str], str]
) -> list[str]:
    """The sizes whose product is Σ 1 over `indices`; none unless each has a name that is no variable's.

    `count` writes how many values a domain of the program has: |Z|.
    """
    sizes = []
    for index in indices:
        domain = index.kind.domain if isinstance(index.kind, Index) else None
        name = _count_of(domain, scope, spell, count) if domain and domain.declared else size_of(domain, scope, spell)
        if not name:
            return []
        sizes.append(name)
    return sizes


def _count_of(domain: Domain, scope: Scope, spell: Callable[[str], str], count: Callable[[str], str]) -> str:
    name = spell(domain.name)
    return "" if name in scope.names.values() else count(name)


def size_of(domain: Domain | None, scope: Scope, spell: Callable[[str], str]) -> str:
    """The name of how many values an index has, empty if there is none, or if a variable has it."""
    if domain is None or domain.declared:
        return ""
    name = scope.sizes.get(domain, spell(domain.name) if domain.sized else "")
    return "" if name in scope.names.values() else name


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

    With `reserved`, another index has another letter:

    >>> from combdiff.terms.types import Domain, Index
    >>> i, k = fresh("i", Index()), fresh("i", Index())
    >>> scope = Scope(reserved=frozenset("ij")).bind([i]).bind([k])
    >>> scope[i], scope[k]
    ('i', 'k')
    """

    spell: Callable[[str], str] = latex_name
    names: Mapping[Var, str] = field(default_factory=dict)
    signs: frozenset[str] = frozenset()
    commas: bool = True
    sizes: Mapping[Domain, str] = field(default_factory=dict)
    """What the formula calls the sizes of domains that the program does not name."""
    reserved: frozenset[str] | None = None
    """Names of the page; an index i or i₁ whose name is taken or not among them then has a letter that is no name."""

    def subscripts(self, indices: Iterable[str]) -> str:
        """Indices in a row; without `commas`, single letters stand side by side, and a digit beside letters.

        >>> [Scope(commas=False).subscripts(t) for t in (["p", "q"], ["p", "0"], ["1", "0"], ["p", "q+1"])]
        ['pq', 'p0', '1,0', 'p,q+1']
        """
        texts = list(indices)
        apart = any(a.isdigit() and b.isdigit() for a, b in pairwise(texts))
        if self.commas or apart or not all(map(_SINGLE.fullmatch, texts)):
            return ",".join(texts)
        return (" " if any(text.startswith("\\") for text in texts) else "").join(texts)

    def bind(self, variables: Iterable[Var]) -> Scope:
        """The scope inside a binder of `variables`."""
        names = dict(self.names)
        taken = {*names.values(), *self.signs}
        for var in variables:
            names[var] = self._letter(var, taken) or self._unlike(var.name, taken)
            taken.add(names[var])
        return replace(self, names=names)

    def open(self, index: Var, sign: str) -> Scope:
        """The scope in which the slot of an index is left open: A_{i,·} is a row."""
        return replace(self, names={**self.names, index: sign})

    def seeing(self, term: Term) -> Scope:
        """The scope with only the variables that `term` mentions: a definition may use the names of all others."""
        return replace(self, names={var: name for var, name in self.names.items() if var in term.free})

    def _letter(self, var: Var, taken: set[str]) -> str:
        """For an index whose name is taken, the next free letter: k beside i and j."""
        if self.reserved is None or not isinstance(var.kind, Index):
            return ""
        spelled = self.spell(var.name)
        if spelled not in taken and (spelled in self.reserved or not re.fullmatch(r"[A-Za-z]\d+", var.name)):
            return ""
        rows = [[self.spell(letter) for letter in row] for row in _INDICES]
        stem = self.spell(re.sub(r"[_\d]+$", "", var.name))
        row = next((row for row in rows if stem in row), rows[0])
        at = row.index(stem) if stem in row else 0
        letters = row[at:] + row[:at]
        return next((letter for letter in letters if letter not in taken and letter not in self.reserved), "")

    def _unlike(self, name: str, taken: set[str]) -> str:
        spelled, number = self.spell(name), 0
        while spelled in taken:
            number += 1
            spelled = self.spell(f"{name}{number}" if not name[-1].isdigit() else f"{name}_{number}")
        return spelled

    def __getitem__(self, var: Var) -> str:
        return self.names[var]
