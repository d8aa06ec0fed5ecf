"""Packed arguments in the text of the function that takes them: their names, and what shows sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from combdiff.arrays import ops
from combdiff.arrays.packing.layout import Layout
from combdiff.arrays.plan import Plan, Step
from combdiff.emit.packed_text import item_names
from combdiff.terms.types import Domain


class PackedArguments:
    """What the packed arguments of a plan, and the items that they are made of, are called in one function."""

    def __init__(self, plan: Plan, packers: Mapping[str, str], fresh: Callable[[str], str]) -> None:
        self.packings = {packing.name: packing for packing in plan.packings}
        self._packers = packers
        self.arguments = {name: fresh(f"{name}_packed") for name in self.packings}
        self._items = {
            name: dict.fromkeys(found, self.arguments[name]) if len(found) == 1 else found
            for name, packing in self.packings.items()
            if (found := item_names(packing, fresh))
        }
        inputs = {s.op.argument: s for s in plan.steps if isinstance(s.op, ops.Input)}
        self._whole = {name: inputs[name] for name in self.packings if name in inputs}

    @property
    def items(self) -> dict[tuple[Layout | None, str], str]:
        """The names of all items, by layout and kind."""
        return {key: name for items in self._items.values() for key, name in items.items() if key[0] is not None}

    def whole(self, name: str) -> str:
        """What the copy of all of an array is called; empty where there is none."""
        return self._items.get(name, {}).get((None, "whole"), "")

    def statements(self) -> list[str]:
        """The lines that take packed arguments apart."""
        return [
            f"{', '.join(items.values())} = {self.arguments[name]}"
            for name, items in self._items.items()
            if len(items) > 1
        ]

    def showing(self) -> list[tuple[str, tuple[Domain, ...]]]:
        """The items whose shapes show sizes."""
        every = [(*key, item) for items in self._items.values() for key, item in items.items()]
        found = [(item, layout.free) for layout, kind, item in every if layout and kind == "place"]
        return [*found, *((self.whole(name), step.domains) for name, step in self._whole.items())]

    def origin(self, name: str) -> str:
        """How a packed argument comes from the array that is described after it."""
        return f"what {self._packers[name]} returns for {name}, a " if name in self.packings else ""


def telling_name(layout: Layout, product: Step, letters: Callable[[Step], str]) -> str:
    """A name made of the tensor's and its partner's, `JP`, if it is short."""
    partner = letters(product.operands[0])
    name = f"{layout.name}{partner}"
    return name if partner and len(name) <= 4 else ""
