"""Packed arguments as text: `pack_J(J)`, which is called once, and products with the rows that it returns.

def pack_J(J):                          rows of J, and where each of the results stands among their products
    ...
def gradient(J_packed, C):
    J_rows, J_place = J_packed
    t = J_rows @ x.ravel()
    JX = np.concatenate([t, t.conj()])[J_place]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from combdiff.arrays import ops
from combdiff.arrays.packing.layout import Layout, Order, Packing, inverse
from combdiff.arrays.plan import Step
from combdiff.emit.backends.spelling import Spelling
from combdiff.emit.names import Names, words
from combdiff.emit.texts import Text, Writer, chained, number_text, signed
from combdiff.errors import UnsupportedError
from combdiff.language.printing.document import ATOM, PRODUCT, SIGN
from combdiff.terms.terms import ONE
from combdiff.terms.types import Domain

_LETTERS = "pqrstuvwxyz"
_DIMENSIONS = "nmrstuv"
_TAKEN = ("np", "rows", "columns", "count", "place", "images", "least", "i")


def item_names(packing: Packing, fresh: Callable[[str], str]) -> dict[tuple[Layout | None, str], str]:
    """What the items of a packed argument are called, in order: rows, places and columns of each layout, the copy."""
    found: dict[tuple[Layout | None, str], str] = {}
    for layout in packing.layouts:
        number = "" if layout.number == 1 else str(layout.number)
        kinds = ["rows", *(["place"] if layout.selects_rows else []), *(["columns"] if layout.columns else [])]
        found |= {(layout, kind): fresh(f"{packing.name}_{kind}{number}") for kind in kinds}
    if packing.whole is not None:
        found[None, "whole"] = fresh(packing.name)
    return found


def packed(w: Writer, step: Step, op: ops.Packed) -> Text:
    (x,), layout = step.operands, op.layout
    count = len(layout.contracted)
    joined = [" * ".join(map(w.extent, group)) for group in (x.domains[:count], x.domains[count:])]
    free = x.rank - count
    factor = w.refer(x)
    if not free:
        factor = factor if count == 1 else Text(f"{factor.at(ATOM)}.ravel()", ATOM)
    elif (count, free) != (1, 1):
        factor = Text(f"{factor.at(ATOM)}.reshape({', '.join(joined)})", ATOM)
    if layout.columns:
        factor = Text(f"{factor.at(ATOM)}[{w.items[layout, 'columns']}]", ATOM)
    rows = Text(w.items[layout, "rows"], ATOM)
    if step.complex and not layout.complex and w.spelling.to_complex:
        rows = Text(f"({w.spelling.to_complex.format(rows.code)})", ATOM)
    product = Text(f"{rows.code} @ {factor.at(SIGN)}", PRODUCT)
    if layout.selects_rows or (len(layout.free) <= 1 and free <= 1):
        return product
    return _shaped(w, product, step.domains)


def unpacked(w: Writer, step: Step, op: ops.Unpacked) -> Text:
    layout = op.layout
    texts = [_told(w, o, *part) for o, part in zip(step.operands, op.parts, strict=True)]
    whole = texts[0]
    if len(texts) > 1:
        whole = Text(w.spelling.concatenate.format(", ".join(t.code for t in texts)), ATOM)
    text = Text(f"{whole.at(ATOM)}[{w.items[layout, 'place']}]", ATOM)
    return _shaped(w, text, step.domains) if step.rank > len(layout.free) + 1 else text


def _told(w: Writer, product: Step, sign: int, conj: bool) -> Text:
    text = w.refer(product)
    if conj and product.complex:
        text = Text(w.spelling.conj.format(text.at(ATOM)), ATOM)
    return text if sign > 0 else Text(f"-{text.at(SIGN)}", SIGN)


def _shaped(w: Writer, text: Text, domains: Sequence[Domain]) -> Text:
    shape = ", ".join(map(w.extent, domains)) or "()"
    return Text(f"{text.at(ATOM)}.reshape({shape})", ATOM)


def pack_text(packing: Packing, spelling: Spelling, name: str) -> str:
    """The text of the function `name`, which packs an argument."""
    if not spelling.concatenate:
        raise UnsupportedError(
            f"pack= selects rows of an array in memory, which combdiff does not support for {spelling.name}",
            remedy='choose another backend, such as "numpy", or leave pack out',
        )
    return PackText(packing, spelling, name).text()


class PackText:
    """The text of one function that packs."""

    def __init__(self, packing: Packing, spelling: Spelling, name: str) -> None:
        self.packing = packing
        self.spelling = spelling
        self.name = name
        names = Names({name, *_TAKEN, *spelling.reserved})
        self.fresh, self.taken = names.fresh, names.taken
        self.array = self.fresh(packing.name)
        self.dimensions: dict[Domain, str] = {}
        for domain in packing.domains:
            if domain.count is not None:
                self.dimensions[domain] = str(domain.count)
            elif domain not in self.dimensions:
                self.dimensions[domain] = self.fresh(next((c for c in _DIMENSIONS if c not in self.taken), "n"))
        self.letters = [self.fresh(next((c for c in _LETTERS if c not in self.taken), "i")) for _ in packing.domains]
        self.items = item_names(packing, self.fresh)
        self.lines: list[str] = []
        self.chosen = "columns"
        self.plain = spelling.from_numpy == "{0}"

    def text(self) -> str:
        """The whole function."""
        for layout in self.packing.layouts:
            self._layout(layout)
        names = list(self.items.values())
        if self.packing.whole is not None:
            names[-1] = self._copy(self.packing.whole)
        returned = ", ".join(names)
        body = [*self._docstring(), *self._sizes(), *self.lines, f"return {returned}"]
        return "\n".join([f"def {self.name}({self.array}):", *(f"    {line}" if line else "" for line in body)])

    def _sizes(self) -> Iterator[str]:
        names = [self.dimensions[d] for d in self.packing.domains]
        used = words(" ".join(self.lines))
        shown = [
            "_" if d.count is not None or n in names[:at] or n not in used else n
            for at, (d, n) in enumerate(zip(self.packing.domains, names, strict=True))
        ]
        asked = [n for n in shown if n != "_"]
        if len(asked) == 1:
            yield f"{asked[0]} = {self.array}.shape[{shown.index(asked[0])}]"
        elif asked:
            while shown[-1] == "_":
                shown.pop()
            yield f"{', '.join(shown)} = {self.array}.shape" + (f"[:{len(shown)}]" if len(shown) < len(names) else "")

    def _docstring(self) -> list[str]:
        share = sum((Fraction(1, layout.share) for layout in self.packing.layouts), Fraction(0))
        share += self.packing.whole is not None
        memory = f"the memory of {self.array}"
        size = (
            memory
            if share == 1
            else f"about {share} of {memory}"
            if share < 1
            else f"{float(share):.3g} times {memory}"
        )
        if not self.packing.layouts:
            return [f'"""{self.array} as it is read: a copy, unless it lies so in memory already. It takes {size}."""']
        told = f"{self.array} packed for the products in the function below; it takes {size}."
        lines = [line for layout in self.packing.layouts for line in self._about(layout)]
        if self.packing.whole is not None:
            lines.append(f"{self.items[None, 'whole']}: all of {self.array}, as it is read")
        return [f'"""{told}', "", *lines, '"""']

    def _about(self, layout: Layout) -> Iterator[str]:
        """What the items are."""
        count = len(layout.free)
        letters = self.letters[: count + len(layout.contracted)]
        free, contracted = (f"({', '.join(part)})" for part in (letters[:count], letters[count:]))
        entry = self._sum(layout, lambda places: f"{self.array}({', '.join(letters[p] for p in places)})").code
        rows, equal = self.items[layout, "rows"], ", but one of those that are equal by symmetry"
        yield f"{rows}: {entry}, a row for each {free}{equal * layout.selects_rows}"
        if layout.selects_rows:
            more = ", and after them what else follows from them" * (len(layout.blocks) > 1)
            yield f"{self.items[layout, 'place']}: where each {free} stands among the products with the rows{more}"
        if layout.columns:
            yield f"{self.items[layout, 'columns']}: the {contracted} of the columns, which are summed over equal ones"

    # --- statements -------------------------------------------------------------------------------------------------

    def _shape(self, domains: Sequence[Domain]) -> str:
        names = [self.dimensions[d] for d in domains]
        return f"({', '.join(names)}{',' if len(names) == 1 else ''})"

    def _product(self, domains: Sequence[Domain]) -> str:
        return " * ".join(self.dimensions[d] for d in domains) or "1"

    def _table(self, domains: Sequence[Domain], letters: Sequence[str]) -> str:
        """The numbers of all multi-indices, as an array over them."""
        name = self.fresh("".join(letters))
        self.lines.append(f"{name} = np.arange({self._product(domains)}).reshape{self._shape(domains)}")
        return name

    def _layout(self, layout: Layout) -> None:
        if self.lines:
            self.lines.append("")
        count = len(layout.free)
        letters = self.letters[:count], self.letters[count : count + len(layout.contracted)]
        if layout.selects_rows:
            self._rows(layout, letters[0])
        if layout.columns:
            self._columns(layout, letters[1])
        self._entries(layout, *letters)

    def _rows(self, layout: Layout, letters: Sequence[str]) -> None:
        table = self._table(layout.free, letters)
        least = [_least([_transposed(table, order) for order in block]) for block in layout.blocks]
        place, shape = self.items[layout, "place"], ", ".join(self.dimensions[d] for d in layout.free)
        if len(least) > 1:
            self.lines.append(f"images = np.stack([{', '.join(least)}])")
            found = "images.min(axis=0)"
        else:
            found = least[0]
        if layout.vanishing:
            self.lines.append(f"least = {found}")
            self.lines += self._zeros(table, layout.vanishing)
            found = "least"
        self.lines.append(f"rows, place = np.unique({found}, return_inverse=True)")
        blocks = " + len(rows) * images.argmin(axis=0)" if len(least) > 1 else ""
        self.lines.append(f"{place} = {self._made(f'place.reshape({shape}){blocks}')}")

    def _zeros(self, table: str, orders: Sequence[Order]) -> Iterator[str]:
        """What is zero stands in one row, or column, which is that of zeros as well."""
        for order in orders:
            yield f"least[{table} == {_transposed(table, order)}] = 0"

    def _columns(self, layout: Layout, letters: Sequence[str]) -> None:
        table = self._table(layout.contracted, letters)
        found = _least([_transposed(table, order) for order, _ in layout.columns])
        zeros = [order for order, sign in layout.columns if sign < 0]
        if zeros:
            self.lines.append(f"least = {found}")
            self.lines += self._zeros(table, zeros)
            found = "least"
        item = self.items[layout, "columns"]
        self.chosen = item if self.plain else "columns"
        self.lines.append(f"{self.chosen}, count = np.unique({found}, return_counts=True)")
        if not self.plain:
            self.lines.append(f"{item} = {self._made('columns')}")

    def _made(self, numbers: str) -> str:
        """An index array of NumPy's as one of the library."""
        return self.spelling.from_numpy.format(numbers, self.array)

    def _entries(self, layout: Layout, free: Sequence[str], contracted: Sequence[str]) -> None:
        """The entries: by index arrays, or whole rows where all columns are kept."""
        if layout.selects_rows:
            self._points(free, "rows", layout.free, "[:, None]" if layout.columns else "")
        if layout.columns:
            self._points(contracted, self.chosen, layout.contracted, "")
        entry = self._by_points if layout.columns else self._by_rows
        text = self._sum(layout, lambda places: entry(layout, places))
        if layout.columns:
            weight = f"count.astype({self.array}.dtype)" if self.plain else self._made("count")
            text = Text(f"{weight} * {text.at(SIGN)}", PRODUCT)
            shape = ""
            if not layout.selects_rows and len(layout.free) > 1:
                shape = f".reshape({self._product(layout.free)}, len({self.chosen}))"
        else:
            shape = f".reshape(len(rows), {self._product(layout.contracted)})" if len(layout.contracted) > 1 else ""
        whole = f"{text.at(ATOM)}{shape}" if shape else text.code
        self.lines.append(f"{self.items[layout, 'rows']} = {whole}")

    def _points(self, letters: Sequence[str], numbers: str, domains: Sequence[Domain], marks: str) -> None:
        """Index arrays, one a slot, of the multi-indices with these numbers."""
        found = f"np.unravel_index({numbers}, {self._shape(domains)})"
        each = self._made("i") + marks
        names = ", ".join(letters) + ("," if len(letters) == 1 else "")
        self.lines.append(f"{names} = {found if each == 'i' else f'({each} for i in {found})'}")

    def _by_points(self, layout: Layout, places: Order) -> str:
        if layout.selects_rows:
            return f"{self.array}[{', '.join(self.letters[p] for p in places)}]"
        count = len(layout.free)
        marks = [":"] * count + self.letters[count : len(places)]
        return f"{self._in_order(places)}[{', '.join(marks)}]"

    def _by_rows(self, layout: Layout, places: Order) -> str:
        return f"{self._in_order(places)}[{', '.join(self.letters[: len(layout.free)])}]"

    def _in_order(self, places: Order) -> str:
        """The array with its axes in the order of the labels."""
        order = inverse(places)
        if order == tuple(range(len(order))):
            return self.array
        return f"{self.spelling.transpose.format(self.array, ', '.join(map(str, order)))}"

    def _sum(self, layout: Layout, entry: Callable[[Order], str]) -> Text:
        parts = []
        for addend in layout.addends:
            text, c = Text(entry(addend.places), ATOM), addend.coefficient
            if c.imag:
                parts.append((False, f"{number_text(c).at(PRODUCT)} * {text.code}"))
            elif c.real.denominator == 1:
                parts.append(signed(c.real, text))
            else:
                minus, top = signed(Fraction(c.real.numerator), text)
                parts.append((minus, f"{top} / {c.real.denominator}"))
        if not parts:
            return Text(f"0 * {entry(tuple(range(len(layout.free) + len(layout.contracted))))}", PRODUCT)
        single = len(parts) == 1 and layout.addends[0].coefficient == ONE
        return Text(parts[0][1], ATOM) if single else chained(parts)

    def _copy(self, order: Order) -> str:
        """All of the array, its axes in order."""
        view = self.array
        if order != tuple(range(len(order))):
            view = self.spelling.transpose.format(self.array, ", ".join(map(str, order)))
        return self.spelling.contiguous.format(view)


def _least(images: Sequence[str]) -> str:
    """The least of several arrays, entry by entry."""
    if len(images) <= 2:
        return images[0] if len(images) == 1 else f"np.minimum({', '.join(images)})"
    return f"np.minimum.reduce([{', '.join(images)}])"


def _transposed(table: str, order: Order) -> str:
    if order == tuple(range(len(order))):
        return table
    if len(order) == 2:
        return f"{table}.T"
    return f"{table}.transpose({', '.join(map(str, order))})"
