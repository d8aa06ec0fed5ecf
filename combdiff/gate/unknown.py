"""A fixed random map in the place of an unknown one, on numbers of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from combdiff.errors import UnsupportedError
from combdiff.gate.arithmetic import Arithmetic
from combdiff.terms.types import Domain, Index, Map, Number, Product, Symmetry, Type, is_complex

if TYPE_CHECKING:
    import numpy as np

    from combdiff.gate.labelled import Array


def _group(kind: Map) -> list[Symmetry]:
    """The exchanges of arguments that a function of numbers is declared to allow, none if there are others."""
    if not isinstance(kind.result, Number) or not all(s.permutes and not s.conj for s in kind.symmetries):
        return []
    found = [Symmetry.identity(len(kind.params))] if kind.symmetries else []
    for g in found:  # it grows meanwhile
        found += [s for s in (t.after(g) for t in kind.symmetries) if s not in found]
    return found


class RandomMap:
    """A fixed random map in the place of an unknown one: a nonlinear function of a few random projections."""

    def __init__(self, kind: Type, sizes: dict[Domain, int], rng: np.random.Generator, numbers: Arithmetic) -> None:
        if not isinstance(kind, Map):
            raise UnsupportedError("only unknown maps are replaced by random ones")
        self.kind = kind
        self.sizes = sizes
        self.numbers = numbers
        self.weights = self.numbers.weights(64, is_complex(kind.result), rng)
        self.images = _group(kind)

    def __call__(self, *args: Array | tuple[Array, ...]) -> object:
        """The value, of a function with declared symmetries the sum over the images of its arguments."""
        if not self.images:
            return self._of(args)
        import numpy as np

        found = [s.sign * np.asarray(self._of([args[row[0][0]] for row in s.rows])) for s in self.images]
        return self.numbers.settled(sum(found[1:], found[0]))

    def _of(self, args: Sequence[Array | tuple[Array, ...]]) -> object:
        import numpy as np

        numbers, value = self.numbers, self.weights[-1:]
        for n, argument in enumerate(args):
            flat = np.concatenate([np.ravel(a) for a in (argument if isinstance(argument, tuple) else (argument,))])
            products = numbers.settled(np.resize(self.weights[n + 1 :], flat.size) * flat)
            value = value + numbers.settled(self.weights[n] * numbers.settled(products.sum()))
        return self._shaped(self.kind.result, numbers.mixed(numbers.settled(value))[0], 0)

    def _shaped(self, kind: Type, value: complex, offset: int) -> object:
        import numpy as np

        match kind:
            case Number():
                return np.asarray(value if is_complex(kind) else np.real(value))
            case Map(params, _) if not all(isinstance(p, Index) for p in params):
                raise UnsupportedError("an unknown map whose value is a function has no random value")
            case Map(params, result):
                shape = [self.sizes[p.domain] for p in params if isinstance(p, Index) and p.domain is not None]
                spread = np.resize(self.weights[offset + 3 :], int(np.prod(shape))).reshape(shape)
                entries = self.numbers.settled(spread * value)
                return entries if is_complex(result) else np.real(entries)
            case Product(items):
                return tuple(self._shaped(item, value, offset + n) for n, item in enumerate(items))
            case _:
                raise UnsupportedError("an unknown map whose value is an index cannot be checked on numbers")
