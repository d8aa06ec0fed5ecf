"""Packed copies of the arrays that a compiled function is given: checked in full and made once for each array."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from combdiff.arrays.lower.signature import result_of
from combdiff.errors import ArrayError, UnsupportedError
from combdiff.run.fitting import contents_of_lists
from combdiff.run.libraries import looked_at
from combdiff.terms.terms import Term, Var
from combdiff.terms.types import Domain, Map, Type

if TYPE_CHECKING:
    from combdiff.arrays.packing.layout import Packing
    from combdiff.run.libraries import Foreign, Library

Pack = Callable[[object], object]


class PackedArrays:
    """What a function is given for arrays that it takes packed.

    A packed copy is kept as long as its array lives, and is the one of that array: entries that are changed in place
    afterwards are not seen before `forget` is called.
    """

    def __init__(self, kinds: Mapping[str, Type], library: Library | None) -> None:
        self._kinds = kinds
        self._library = library
        self._kept: dict[Hashable, tuple[weakref.ref[object], object]] = {}

    def forget(self) -> None:
        """Drop all packed copies."""
        self._kept.clear()

    def bound(
        self,
        function: Callable[..., object],
        names: Sequence[str],
        packs: Sequence[tuple[Packing, Pack]],
        sizes: Mapping[Domain, int],
    ) -> Callable[..., object]:
        """`function` of arguments called `names`, with what `packs` make of some of them in their place.

        `sizes` hold the lists of offsets, by which symmetries are checked.
        """
        places = [(names.index(packing.name), packing, pack) for packing, pack in packs]

        def called(*given: object) -> object:
            arrays = list(given)
            for place, packing, pack in places:
                arrays[place] = self._packed(packing, pack, given[place], sizes)
            return function(*arrays)

        return called

    def _packed(self, packing: Packing, pack: Pack, array: object, sizes: Mapping[Domain, int]) -> object:
        key = packing, id(array), contents_of_lists(sizes)
        known = self._kept.get(key)
        if known is not None and known[0]() is array:
            return known[1]
        self._check(packing.name, array, sizes)
        made = pack(array)
        if self._library is None or self._library.is_known(cast("Foreign", array)):
            kept = self._kept
            self._kept[key] = weakref.ref(array, lambda _: kept.pop(key, None)), made
        return made

    def _check(self, name: str, array: object, sizes: Mapping[Domain, int]) -> None:
        """Refuse an array without its declared symmetries: its packed rows would not determine it."""
        from combdiff.meaning.breaches import breaks_symmetry

        kind = self._kinds[name]
        assert isinstance(kind, Map), "arrays are packed"
        entries = looked_at(self._library, array, None) if kind.symmetries else None
        if entries is None:
            return
        breach = breaks_symmetry(entries, kind, sizes, sample=None)
        if breach is not None:
            raise ArrayError(
                breach.message(name),
                remedy="correct the array or the declaration; pack= keeps only the entries that others follow from",
            )


def names_to_pack(pack: str | Sequence[str], term: Term, varied: Sequence[Var]) -> tuple[str, ...]:
    """The arguments that `pack=` names; `varied` are those that the derivative is taken by.

    Raises `UnsupportedError` for what is no captured array.
    """
    given = (pack,) if isinstance(pack, str) else pack
    if not isinstance(given, Sequence | set | frozenset) or not all(isinstance(name, str) for name in given):
        raise UnsupportedError(f"pack is {pack!r}", remedy='give names of arguments: pack="J" or pack=("J", "V")')
    params = result_of(term).params
    first = min((params.index(v) for v in varied if v in params), default=len(params))
    arrays = [v.name for v in params[:first] if is_array(v)]
    others = f"what can be packed is {', '.join(arrays)}" if arrays else "leave pack out: there is no captured array"
    kinds = {v.name: v for v in params}
    for name in dict.fromkeys(given):
        if name not in kinds:
            raise UnsupportedError(f"there is no argument called {name} to pack", remedy=others)
        if kinds[name] in params[first:]:
            raise UnsupportedError(
                f"{name} changes from call to call, and an array is packed once for all calls", remedy=others
            )
        if name not in arrays:
            what = "a function" if isinstance(kinds[name].kind, Map) else "a number"
            raise UnsupportedError(f"{name} is {what}, and arrays are packed", remedy=others)
    return tuple(dict.fromkeys(given))


def is_array(var: Var) -> bool:
    """Whether a parameter is an array."""
    return isinstance(var.kind, Map) and var.kind.is_tensor and bool(var.kind.params)
