"""The gate: every simplification is evaluated before and after on random tensors, and a difference is an error.

Tensors are drawn from their declared symmetric subspaces; an unknown map becomes a fixed random one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from combdiff.errors import CheckError, UnsupportedError
from combdiff.language.samples import default_sizes, random_value
from combdiff.language.terms import Lam, Let, Term, Tuple, bound_by, subterms
from combdiff.language.types import Domain, Index, Map, Number, Product, Type, is_complex
from combdiff.simplify.numeric import Evaluation, is_tensor

if TYPE_CHECKING:
    import numpy as np

    from combdiff.language.values import Array

TOLERANCE = 1e-8


@dataclass(slots=True)
class Gate:
    """Random values for the free variables of the terms that are compared."""

    sizes: dict[Domain, int]
    seed: int = 0
    positive: bool = False
    values: dict[Term, object] = field(default_factory=dict)
    last: tuple[Term, list[Array]] | None = None

    def same(self, before: Term, after: Term, stage: str) -> bool:
        """Raise CheckError, naming `stage`, if the two terms differ on the random values.

        Returns whether there was something to compare: no value need be finite, as for the logarithm of what is drawn.
        """
        import numpy as np

        with np.errstate(all="ignore"):
            known = self.last[1] if self.last is not None and self.last[0] is before else self.outputs(before)
            found = self.outputs(after)
            for a, b in zip(known, found, strict=True):
                _compare(a, b, stage)
        self.last = after, found
        return not found or any(a.size == 0 or np.isfinite(a).any() for a in found)

    def outputs(self, t: Term) -> list[Array]:
        """Each tensor of a result as a full array, indexed by its own parameters."""
        evaluation = Evaluation(self, {v for u in subterms(t) for v in bound_by(u)})
        while isinstance(t, Let | Lam) and not is_tensor(t):
            if isinstance(t, Let):
                for var, value in t.bindings:
                    evaluation.bind(var, value)
            t = t.body
        return [evaluation.full(item) for item in (t.items if isinstance(t, Tuple) else (t,))]

    def value(self, v: Term) -> object:
        """The random value of a free variable, drawn when first asked for."""
        import numpy as np

        if v not in self.values:
            rng = np.random.default_rng([self.seed, len(self.values)])
            kind = v.type
            known = isinstance(kind, Number | Index) or (isinstance(kind, Map) and kind.is_tensor)
            self.values[v] = random_value(kind, self.sizes, rng) if known else _RandomMap(kind, self.sizes, rng)
            if self.positive and known and not is_complex(kind) and not getattr(kind, "symmetries", ()):
                self.values[v] = np.abs(self.values[v])  # type: ignore[call-overload]  # a real number or array
        return self.values[v]


def gate_for(*terms: Term, seed: int = 0) -> Gate:
    """A gate with small sizes for every domain of `terms`."""
    sizes: dict[Domain, int] = {}
    for t in terms:
        sizes.update(default_sizes(t))
    return Gate(sizes, seed)


def narrow(gate: Gate) -> Gate | None:
    """The same gate with periodic domains of two values, where steps wrap round and 2b = 0; None if there is none."""
    periodic = [d for d in gate.sizes if d.periodic]
    return Gate({**gate.sizes, **dict.fromkeys(periodic, 2)}, gate.seed) if periodic else None


def positive(gate: Gate) -> Gate:
    """The same gate with positive numbers for what is real, for roots and logarithms."""
    return Gate(gate.sizes, gate.seed, positive=True)


def _compare(a: Array, b: Array, stage: str) -> None:
    import numpy as np

    same_shape = a.shape == b.shape
    finite = np.isfinite(a) & np.isfinite(b) if same_shape else np.zeros((), bool)
    lost = same_shape and bool((np.isfinite(a) & ~np.isfinite(b)).any())
    scale = max(1.0, float(np.max(np.abs(a), initial=0.0, where=finite)))
    worst = float(np.max(np.abs(a - b), initial=0.0, where=finite)) / scale
    if worst > TOLERANCE or lost or not same_shape:
        raise CheckError(
            f"{stage} changed the value of the derivative (relative difference {worst:.1e}); this is a bug of combdiff",
            remedy="report the program",
        )


class _RandomMap:
    """A fixed random map in the place of an unknown one: a nonlinear function of a few random projections."""

    def __init__(self, kind: Type, sizes: dict[Domain, int], rng: np.random.Generator) -> None:
        if not isinstance(kind, Map):
            raise UnsupportedError("only unknown maps are replaced by random ones")
        self.kind = kind
        self.sizes = sizes
        self.weights = rng.normal(size=64)

    def __call__(self, *args: Array | tuple[Array, ...]) -> object:
        import numpy as np

        value = np.complex128(0.3)
        for n, argument in enumerate(args):
            flat = np.concatenate([np.ravel(a) for a in (argument if isinstance(argument, tuple) else (argument,))])
            value = value + self.weights[n] * np.sum(np.resize(self.weights[n + 1 :], flat.size) * flat)
        return self._shaped(self.kind.result, np.sin(value) + 0.1 * value * value, 0)

    def _shaped(self, kind: Type, value: np.complex128, offset: int) -> object:
        import numpy as np

        match kind:
            case Number():
                return value if is_complex(kind) else np.real(value)
            case Map(params, result):
                shape = [self.sizes[p.domain] for p in params if isinstance(p, Index) and p.domain is not None]
                spread = np.resize(self.weights[offset + 3 :], int(np.prod(shape))).reshape(shape)
                entries = np.cos(spread) * value
                return entries if is_complex(result) else np.real(entries)
            case Product(items):
                return tuple(self._shaped(item, value, offset + n) for n, item in enumerate(items))
            case _:
                raise UnsupportedError("an unknown map whose value is an index cannot be checked on numbers")
