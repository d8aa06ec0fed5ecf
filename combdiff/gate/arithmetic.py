"""The numbers that terms are evaluated on: what every kind of number must do, and floating-point numbers.

The other kind, exact, is in `exact.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from combdiff.gate.labelled import Labelled, all_axes
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import Call, Const, Term

if TYPE_CHECKING:
    import numpy as np

    from combdiff.gate.labelled import Array


class Arithmetic(Protocol):
    """One kind of number. Sums, products and conjugates are NumPy's own (`labelled.py`)."""

    unit: float
    """The reach of the number 1: 1 for residues, 0 for numbers that are never reduced."""

    def number(self, c: Const) -> Labelled:
        """A constant."""
        ...

    def integer_power(self, base: Labelled, n: int) -> Labelled:
        """base ^ n for an integer n."""
        ...

    def power(self, base: Labelled, exponent: Labelled) -> Labelled:
        """base ^ exponent for any exponent; a real base to a real power stays real."""
        ...

    def call(self, name: str, arguments: Sequence[Labelled]) -> Labelled:
        """A scalar function, entry by entry."""
        ...

    def written_out(self, t: Call) -> Term | None:
        """What is computed in the place of a function; nothing where its own value is."""
        ...

    def pi(self) -> Labelled:
        """The number π."""
        ...

    def at_most(self, left: Labelled, right: Labelled, integers: bool) -> Labelled:
        """1 where left ≤ right, else 0; `integers` says that both are."""
        ...

    def draw(self, shape: tuple[int, ...], over_complex: bool, rng: np.random.Generator) -> Array:
        """Random numbers."""
        ...

    def weights(self, count: int, over_complex: bool, rng: np.random.Generator) -> Array:
        """Random numbers for the random map that stands for an unknown one."""
        ...

    def mixed(self, total: Array) -> Array:
        """A fixed nonlinear function, entry by entry."""
        ...

    def settled(self, array: Array) -> Array:
        """The array as it is kept and compared: residues between −p/2 and p/2."""
        ...


class Floating:
    """Real and complex floating-point numbers."""

    unit = 0.0

    def number(self, c: Const) -> Labelled:
        import numpy as np

        return Labelled(np.asarray(complex(c.real, c.imag) if c.imag else float(c.real)))

    def integer_power(self, base: Labelled, n: int) -> Labelled:
        return Labelled(base.array**n if n >= 0 else 1 / base.array**-n, base.axes)

    def power(self, base: Labelled, exponent: Labelled) -> Labelled:
        axes = all_axes((base, exponent))
        return Labelled((base.over(axes) + 0) ** exponent.over(axes), axes)  # as in `call`

    def call(self, name: str, arguments: Sequence[Labelled]) -> Labelled:
        import numpy as np

        axes = all_axes(arguments) if len(arguments) > 1 else arguments[0].axes
        arrays = [a.over(axes) for a in arguments] if len(arguments) > 1 else [arguments[0].array]
        if name == "complex":
            return Labelled(arrays[0].astype(complex), axes)
        if name == "abs2":
            return Labelled(np.abs(arrays[0]) ** 2, axes)
        row = SCALAR_FUNCTIONS[name]
        if row.has_cut:
            # on a cut the value is that from above, and −0 + 0 is 0
            arrays = [a + 0 for a in arrays]
        if row.of_reals:
            # z' z is real by its type, and complex by its array
            arrays = [np.real(a) for a in arrays]
        return Labelled(row.at(*arrays), axes)

    def written_out(self, t: Call) -> Term | None:
        return None

    def pi(self) -> Labelled:
        import numpy as np

        return Labelled(np.asarray(np.pi))

    def at_most(self, left: Labelled, right: Labelled, integers: bool) -> Labelled:
        axes = all_axes((left, right))
        return Labelled((left.over(axes) <= right.over(axes)).astype(float), axes)

    def draw(self, shape: tuple[int, ...], over_complex: bool, rng: np.random.Generator) -> Array:
        real = rng.standard_normal(shape)
        return real + 1j * rng.standard_normal(shape) if over_complex else real

    def weights(self, count: int, over_complex: bool, rng: np.random.Generator) -> Array:
        return self.draw((count,), over_complex, rng)

    def mixed(self, total: Array) -> Array:
        import numpy as np

        result: Array = np.sin(total) + 0.1 * total * total
        return result

    def settled(self, array: Array) -> Array:
        return array
