"""Finds the declared symmetries that make two terms equal, as a short sequence of rewritten entries.

Canonical names say that two terms are equal under all symmetries that there are. Which of them are needed is found by
trying, few entries and few symmetries first. A term rewritten so has to have the canonical name of the other one
without any symmetry, so that what is found is a proof, and where nothing is found nothing is said.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import combinations, islice, product

from combdiff.canon.canonical import Symmetries, canonical
from combdiff.records import dataclass
from combdiff.terms.arithmetic import combination
from combdiff.terms.terms import (
    MINUS_ONE,
    ZERO,
    App,
    Const,
    Sum,
    Term,
    Traverser,
    Var,
    bound_by,
    conj,
    holds,
    mul,
    number,
    power,
    split_coefficient,
    subterms,
)
from combdiff.terms.types import Map, Symmetry, affine_text, is_complex

TRIED = 400
"""Ways to rewrite a term that are tried."""

MEMBERS = 48
"""Symmetries of a tensor that are tried, those that are made of the fewest declared ones first."""


@dataclass(frozen=True, slots=True)
class Use:
    """A law T(a) = … of the tensor: the declared symmetries that it is made of, applied from first to last."""

    tensor: Var
    chain: tuple[Symmetry, ...]

    @property
    def images(self) -> tuple[Symmetry, ...]:
        """What T(a) equals after each of them."""
        found = [Symmetry.identity(len(self.chain[0].rows))]
        for s in self.chain:
            found.append(found[-1].after(s))
        return tuple(found[1:])


@dataclass(frozen=True, slots=True)
class Witness:
    """A term is `ratio` times another one by the laws `uses`, none of which is needless."""

    uses: tuple[Use, ...]
    ratio: Term


@dataclass(frozen=True, slots=True)
class Laws:
    """The symmetries that may be used: declared ones, but of tensors in `unused`, and those `derived` of values."""

    derived: Symmetries
    unused: Collection[str]

    def of(self, tensor: Var) -> tuple[Symmetry, ...]:
        """The symmetries of a tensor that generate the others."""
        declared = tensor.kind.symmetries if isinstance(tensor.kind, Map) and tensor.name not in self.unused else ()
        return (*declared, *self.derived.get(tensor, ()))

    def witness(self, a: Term, b: Term) -> Witness | None:
        """The laws that make of `a` what is `b` up to names and a number in front; None if none are found.

        >>> from combdiff.terms.terms import fresh
        >>> from combdiff.terms.types import COMPLEX, HERMITIAN, Domain, Index
        >>> n = Index(Domain("n"))
        >>> H, i, j = fresh("H", Map((n, n), COMPLEX, (HERMITIAN,))), fresh("i", n), fresh("j", n)
        >>> found = Laws({}, ()).witness(App(H, (i, j)), conj(App(H, (j, i))))
        >>> found.uses[0].chain == (HERMITIAN,), found.ratio.real
        (True, Fraction(1, 1))
        """
        c, key, sign = _plain(b)
        for uses, rewritten in islice(self._rewritten(a), TRIED):
            d, other, turned = _plain(rewritten)
            if sign and turned and other == key:
                return Witness(uses, mul(d, power(c, MINUS_ONE), number(sign * turned)))
        return None

    def own_negative(self, a: Term) -> Witness | None:
        """The laws that make of `a` its negative, so that it is zero."""
        c, key, sign = _plain(a)
        for uses, rewritten in islice(self._rewritten(a), TRIED):
            d, other, turned = _plain(rewritten)
            if not turned or (other == key and mul(d, number(turned)) == mul(MINUS_ONE, c, number(sign))):
                return Witness(uses, ZERO)
        return None

    def spelled(self, uses: Sequence[Use], where: Sequence[Term]) -> list[str]:
        """Each law once, as an equation; symmetries that were found of a value are marked as such."""
        texts = []
        for use in uses:
            own = self.derived.get(use.tensor, ())
            of_value = any(s in own for s in use.chain)
            texts.append(spelled(use, where) + (" (derived)" if of_value else ""))
        return [*dict.fromkeys(texts)]

    def _rewritten(self, a: Term) -> Iterator[tuple[tuple[Use, ...], Term]]:
        """`a`, and what it is where some entries are replaced by what they equal."""
        yield (), a
        entries = [u for u in subterms(a, App) if isinstance(u.function, Var)]
        images = {u: found for u in entries if (found := [*self._images(u)])}
        for many in range(1, len(images) + 1):
            for chosen in combinations(images, many):
                ways = sorted(
                    product(*(images[u] for u in chosen)), key=lambda way: sum(len(use.chain) for use, _ in way)
                )
                for way in ways:
                    change: dict[Term, Term] = {u: image for u, (_, image) in zip(chosen, way, strict=True)}
                    yield tuple(use for use, _ in way), _replaced(a, change)

    def _images(self, entry: App) -> Iterator[tuple[Use, Term]]:
        tensor = entry.function
        assert isinstance(tensor, Var)
        generators = self.of(tensor)
        rank = len(entry.args)
        known = {Symmetry.identity(rank)}
        level: dict[Symmetry, tuple[Symmetry, ...]] = {Symmetry.identity(rank): ()}
        while level and generators and len(known) < MEMBERS:
            beyond: dict[Symmetry, tuple[Symmetry, ...]] = {}
            for s, chain in level.items():
                for g in generators:
                    found = s.after(g)
                    if found not in known and found not in beyond and len(chain) < rank * rank:
                        beyond[found] = (*chain, g)
                        yield Use(tensor, (*chain, g)), _image(entry, found)
            known.update(beyond)
            level = beyond


def _replaced(t: Term, change: Mapping[Term, Term]) -> Term:
    return _Replacing(change)(t)


class _Replacing(Traverser):
    """A walk that puts other terms in the place of some, and does not look into these."""

    def __init__(self, change: Mapping[Term, Term]) -> None:
        super().__init__(lambda u: u)
        self.seen.update(change)


def _image(entry: App, s: Symmetry) -> Term:
    args = s.image(entry.args, combination)
    image: Term = App(entry.function, tuple(args))
    return mul(number(s.sign), conj(image) if s.conj else image)


def _plain(t: Term) -> tuple[Const, Hashable, int]:
    """The number in front, a name that terms share which are equal without any symmetry, and their sign."""
    c, bare = split_coefficient(t)
    form = canonical(bare, {}, tensors(bare))
    return c, form.key, form.sign


def tensors(t: Term) -> frozenset[Var]:
    """The maps that a term holds."""
    return frozenset(u for u in subterms(t) if isinstance(u, Var) and isinstance(u.kind, Map))


# --- in words -------------------------------------------------------------------------------------------------------


def spelled(use: Use, where: Sequence[Term]) -> str:
    """`J(p, q, r, s) = J(q, p, s, r)'`, with the names that indices of the tensor have in the terms `where`.

    >>> from combdiff.terms.terms import fresh
    >>> from combdiff.terms.types import COMPLEX, HERMITIAN, Domain, Index
    >>> n = Index(Domain("n"))
    >>> H, a, b = fresh("H", Map((n, n), COMPLEX, (HERMITIAN,))), fresh("a", n), fresh("b", n)
    >>> spelled(Use(H, (HERMITIAN,)), [App(H, (a, b))])
    "H(a, b) = H(b, a)'"
    """
    rank = len(use.chain[0].rows)
    slots = _slot_names(use, rank, where)
    texts = [f"{use.tensor.name}({', '.join(slots)})"]
    for s in use.images:
        args = ", ".join(affine_text(row, slots) for row in s.rows)
        prime = "'" if s.conj and is_complex(use.tensor.kind) else ""
        texts.append(f"{'-' * (s.sign < 0)}{use.tensor.name}({args}){prime}")
    return " = ".join(dict.fromkeys(texts))


def _slot_names(use: Use, rank: int, where: Sequence[Term]) -> Sequence[str]:
    """What indices of the tensor are called where it is read, or in its declaration; letters where nothing tells."""
    reads = [u for t in where for u in subterms(t, App) if u.function == use.tensor]
    called = [[a.name if isinstance(a, Var) else "" for a in u.args] for u in reads]
    given = max(called, key=lambda names: len({*names} - {""}), default=[])
    for s in use.chain:
        if len({*given} - {""}) < rank and s.names:
            return s.names[1:]
    names: list[str] = []
    letters = [c for c in "ijklmnpqrsabcdefgh" if c not in given] + [f"i{n}" for n in range(1, rank + 1)]
    for name in given or [""] * rank:
        names.append(name if name and name not in names else letters.pop(0))
    return names


def variables_of(t: Term) -> set[Var]:
    """All variables of a term, bound ones too."""
    return {v for u in subterms(t) for v in (*bound_by(u), *((u,) if isinstance(u, Var) else ()))}


def sums_in(t: Term) -> bool:
    """Whether a summed index stands in a term."""
    return holds(t, Sum)
