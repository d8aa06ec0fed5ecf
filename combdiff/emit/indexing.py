"""Places, views, gathers and scatters as text: `x[i[:, None] + j]`, `np.roll(x, 1, 0)`, `t[(k, l)] = u`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from combdiff.arrays import ops
from combdiff.arrays.plan import Step
from combdiff.arrays.uses import may_miss
from combdiff.emit.solvers.chosen import solver_of
from combdiff.emit.texts import Text, Writer, chained, filled, signed
from combdiff.language.printing.document import ATOM, PRODUCT, SUM
from combdiff.terms.types import Domain


def size(w: Writer, step: Step, op: ops.Size) -> Text:
    return Text(w.extent(op.domain), ATOM)


def index_values(w: Writer, step: Step, op: ops.Range) -> Text:
    return Text(w.spelling.arange.format(_bounds(w, op.domain)), ATOM)


def float_values(w: Writer, step: Step, op: ops.Numbers) -> Text:
    return Text(w.spelling.arange_float.format(_bounds(w, op.domain)), ATOM)


def index_places(w: Writer, step: Step, op: ops.Place) -> Text:
    return Text(w.spelling.arange.format(w.alone(op.domain)), ATOM)


def _bounds(w: Writer, domain: Domain) -> str:
    if domain.lower and domain.upper is not None:
        return f"{domain.lower}, {domain.upper + 1}"
    n = w.extent(domain)
    return f"-({n} // 2), {n} // 2 + 1" if domain.symmetric else n


def as_float(w: Writer, step: Step, op: ops.AsFloat) -> Text:
    return filled(w.spelling.as_float, w.refer(step.operands[0]))


def position(w: Writer, step: Step, op: ops.Position) -> Text:
    texts = w.operands(step, op.places)
    parts = [signed(Fraction(c), text) for c, text in zip(op.coefficients, texts, strict=True)]
    if op.shift is not None:
        parts.append((False, f"{w.extent(op.shift)} // 2"))
    if op.constant or not parts:
        parts.append((op.constant < 0, str(abs(op.constant))))
    text = texts[0] if op.coefficients == (1,) and len(parts) == 1 else chained(parts)
    if op.modulo is None:
        return text
    return Text(f"{text.at(ATOM)} % {w.extent(op.modulo, least=1 if may_miss(step) else 0)}", PRODUCT)


def opposite(w: Writer, step: Step, op: ops.Opposite) -> Text:
    offsets = w.atom(step.operands[0])
    same = f"({offsets}[:, None] == -{offsets})" + (".all(axis=2)" if step.operands[0].rank > 1 else "")
    if w.spelling.to_real:
        places = Text(w.spelling.arange.format(w.alone(step.domains[0])), ATOM)
        chosen = filled(w.spelling.where, Text(same, ATOM), places, Text("0", ATOM))
        return Text(f"{chosen.code}.sum(axis=1)", ATOM)
    return Text(f"{same} @ {w.spelling.arange.format(w.alone(step.domains[0]))}", PRODUCT)


def occurring(w: Writer, step: Step, op: ops.Occurring) -> Text:
    return Text(f"occurring({w.refer(step.operands[0]).code}, {w.alone(step.domains[0])})", ATOM)


def pick(w: Writer, step: Step, op: ops.Pick) -> Text:
    marks = [":"] * step.operands[0].rank
    for axis, constant, domain in op.fixed:
        marks[axis] = _fixed(w, constant, domain)
    return _indexed(w.atom(step.operands[0]), marks)


def _fixed(w: Writer, constant: int, domain: Domain) -> str:
    if domain.lower is not None:
        return str(constant - domain.lower)
    if domain.symmetric:
        sign = "-" if constant < 0 else "+"
        return f"{w.extent(domain)} // 2" + (f" {sign} {abs(constant)}" if constant else "")
    return f"{constant} % {w.extent(domain)}" if domain.periodic and constant else str(constant)


def _indexed(array: str, marks: list[str]) -> Text:
    while len(marks) > 1 and marks[-1] == ":":
        marks.pop()
    return Text(f"{array}[{', '.join(marks)}]", ATOM)


def window(w: Writer, step: Step, op: ops.Window) -> Text:
    """A part of an array, along several axes at once if a part of a part is taken along another one."""
    marks = [":"] * step.rank
    array = step
    while isinstance(array.op, ops.Window) and marks[array.op.axis] == ":":
        whole = array.operands[0]
        marks[array.op.axis] = span(array.op.start, step.domains[array.op.axis], whole.domains[array.op.axis])
        array = whole
    return _indexed(w.atom(array), marks)


def span(start: int, part: Domain, whole: Domain) -> str:
    """The slice of an axis that is a range shorter than it, from `start` on."""
    if part.count is not None:
        return f"{start or ''}:{start + part.count}"
    return f"{start or ''}:{-_behind(start, part, whole) or ''}"


def _behind(start: int, part: Domain, whole: Domain) -> int:
    """How many entries of an axis lie behind a part of it."""
    if part.count is not None and whole.count is not None:
        return whole.count - start - part.count
    return part.less - whole.less - start


def zeros_around(w: Writer, text: Text, domains: Sequence[Domain], axis: int, start: int, whole: Domain) -> Text:
    """An array over `domains` with zeros before and behind it along an axis, which then ranges over `whole`."""
    part = domains[axis]
    behind = _behind(start, part, whole)
    shapes = [[str(count) if n == axis else w.extent(d) for n, d in enumerate(domains)] for count in (start, behind)]
    first, last = (w.spelling.zeros.format(f"({', '.join(shape)}{',' * (len(shape) == 1)})") for shape in shapes)
    parts = [first] * (start > 0) + [text.code] + [last] * (behind > 0)
    # of fewer entries than are left out, there are not so many zeros
    shorter = f"[{':, ' * axis}:{w.extent(whole)}]" if part.less > 1 else ""
    return Text(f"{w.spelling.join.format(', '.join(parts), axis)}{shorter}", ATOM)


def flip(w: Writer, step: Step, op: ops.Flip) -> Text:
    return w.backwards(w.refer(step.operands[0]), op.axis)


def roll(w: Writer, step: Step, op: ops.Roll) -> Text:
    return Text(w.spelling.roll.format(w.refer(step.operands[0]).code, op.by, op.axis), ATOM)


def diagonal(w: Writer, step: Step, op: ops.Diagonal) -> Text:
    return filled(w.spelling.diagonal, w.refer(step.operands[0]))


def gather(w: Writer, step: Step, op: ops.Gather) -> Text:
    rank = op.rank
    places = iter(step.operands[1:])
    marks = [":" if slot is None else w.aligned(next(places), slot, rank).code for slot in op.slots]
    array = w.atom(step.operands[0])
    if any(map(may_miss, step.operands[1:])):
        array = f"with_an_entry({w.refer(step.operands[0]).code})"
    if w.spelling.entries and any(_of_caller(w, o) for o in step.operands[1:]):
        return Text(w.spelling.entries.format(array, ", ".join(marks)), ATOM)
    of_integers = _of_caller(w, step.operands[0])
    alone = not rank or (len(step.operands) == 2 and step.operands[1].rank == 1)
    if not w.spelling.points or of_integers or alone:
        return _indexed(array, marks)
    given = iter(_of_caller(w, o) for o in step.operands[1:])
    marks = [
        w.spelling.concrete.format(mark) if slot is not None and next(given) else mark
        for slot, mark in zip(op.slots, marks, strict=True)
    ]
    text = Text(w.spelling.points.format(array, ", ".join(marks)), ATOM)
    before = op.gathered[0] if op.neighbours else 0
    order = (*range(rank, rank + before), *range(rank), *range(rank + before, step.rank))
    return w.transposed(text, order)


def _of_caller(w: Writer, step: Step) -> bool:
    """Whether integers come from an array of the caller's, which may hold what is out of range."""
    if isinstance(step.op, ops.Input):
        return any(a.of_integers and a.step is step for a in w.plan.arguments)
    moved = isinstance(step.op, ops.View | ops.Gather | ops.Position | ops.LaidOut | ops.Roll | ops.Broadcast)
    return moved and any(_of_caller(w, o) for o in step.operands)


def windows(w: Writer, step: Step, op: ops.Windows) -> Text:
    """A call that makes them; what is not read as stacks of matrices is copied, so that it lies in order."""
    of = step.operands[0]
    operand = w.refer(of).code if of.complex or not step.complex else f"{w.atom(of)}.astype(complex)"
    starts = [_sum_of_sizes(w, constant, sizes) for constant, sizes in op.starts]
    given = f"{operand}, {w.shape(step.domains)}, {op.along}, {op.by}, ({', '.join(starts)}{',' * (len(starts) == 1)})"
    if op.shared is not None:
        return Text(f"overlapping_windows({given}, {op.shared})", ATOM)
    return filled(w.spelling.laid, Text(f"windows({given})", ATOM))


def correlated(w: Writer, step: Step, op: ops.Correlated) -> Text:
    x, y = (w.refer(o).code for o in step.operands)
    start = _sum_of_sizes(w, *op.start)
    return Text(f"correlated({x}, {y}, {w.alone(step.domains[0])}, {op.by}, {op.step}, {start})", ATOM)


def _sum_of_sizes(w: Writer, constant: int, sizes: Sequence[tuple[Domain, int]]) -> str:
    parts = [(c < 0, f"{abs(c)} * {w.extent(d)}" if abs(c) > 1 else w.extent(d)) for d, c in sizes]
    parts = sorted([*parts, (constant < 0, str(abs(constant)))] if constant else parts)
    return chained(parts).code if parts else "0"


def permuted(w: Writer, step: Step, op: ops.Permute) -> Text:
    return w.transposed(w.refer(step.operands[0]), op.order)


def laid_out(w: Writer, step: Step, op: ops.LaidOut) -> Text:
    return filled(w.spelling.laid, w.transposed(w.refer(step.operands[0]), op.order))


def repeated(w: Writer, step: Step, op: ops.Broadcast) -> Text:
    operand = step.operands[0]
    text = w.as_array(operand, w.floating(operand, w.aligned(operand, op.places, step.rank)))
    return Text(w.spelling.broadcast.format(text.code, w.shape(step.domains)), ATOM)


def stack(w: Writer, step: Step, op: ops.Stack) -> Text:
    parts = [w.as_array(o, w.refer(o)).code for o in step.operands]
    return Text(w.spelling.stack.format(", ".join(parts)), ATOM)


def item(w: Writer, step: Step, op: ops.Item) -> Text:
    return Text(f"{w.atom(step.operands[0])}[{op.number}]", ATOM)


def scattered(w: Writer, step: Step, op: ops.Scatter, values: Text, name: str) -> list[str]:
    """The statements that put `values` into a fresh array of zeros."""
    written = w.spelling.add_at if op.adds else w.spelling.put
    if not written:
        return _added(w, step, op, name) if op.adds and w.spelling.added_at else _masked(w, step, op, name)
    if op.adds and w.spelling.add_flat and max(step.rank, op.rank) > 1:
        flat = name if step.rank == 1 else f"{name}.reshape(-1)"
        places = _flat_places(w, step, step.operands[1:], op).at(ATOM)
        return [f"{name} = {zeros(w, step)}", w.spelling.add_flat.format(flat, places, values.at(ATOM))]
    alone = w.spelling.place if op.adds else "{0}"
    index = ", ".join(
        w.aligned(o, p, op.rank).code if o.rank else alone.format(w.refer(o).code)
        for o, p in zip(step.operands[1:], op.places, strict=True)
    )
    lines = [f"{name} = {zeros(w, step)}", *_kept(w, step, name)]
    where = f"({index},)" if len(op.places) == 1 else f"({index})"
    return [*lines, written.format(name, where, values.code, index)]


def _kept(w: Writer, step: Step, name: str) -> list[str]:
    """The statements that make a scatter nan if a place that the caller gives is out of range, where none can raise."""
    if not w.spelling.kept:
        return []
    places = [(o, d) for o, d in zip(step.operands[1:], step.domains, strict=False) if _of_caller(w, o)]
    return [w.spelling.kept.format(name, w.atom(o), w.extent(d)) for o, d in places]


def _added(w: Writer, step: Step, op: ops.Scatter, name: str) -> list[str]:
    """A scatter that a function does, whose text the module holds, where nothing is written in place."""
    places = ", ".join(w.aligned(o, p, op.rank).code for o, p in zip(step.operands[1:], op.places, strict=True))
    values = placed_values(w, step, op).code
    return [f"{name} = {w.spelling.added_at}({w.shape(step.domains)}, ({places},), {values})"]


def of_groups(w: Writer, step: Step, op: ops.Grouped) -> Text:
    """What is made of the entries at each place, by a function whose text the module holds."""
    places = ", ".join(w.aligned(o, p, op.rank).code for o, p in zip(step.operands[1:], op.places, strict=True))
    values = placed_values(w, step, op).code
    return Text(f"{solver_of(step, w.spelling)}({w.shape(step.domains)}, ({places},), {values})", ATOM)


def counted(w: Writer, step: Step, op: ops.Counted) -> Text:
    """How often each place is there; one that is out of range does not fit the shape."""
    places = _flat_places(w, step, step.operands, op)
    flat = places.code if op.rank == 1 else f"{places.at(ATOM)}.ravel()"
    shape = ", ".join(map(w.alone, step.domains))
    shape = ", ".join(map(w.alone, step.domains))
    size = " * ".join(map(w.extent, step.domains)) if step.rank > 1 else shape
    counts = w.spelling.counts.format(flat, size)
    return filled(w.spelling.as_float, Text(f"{counts}.reshape({shape})", ATOM))


def _flat_places(w: Writer, step: Step, places: Sequence[Step], op: ops.Scatter | ops.Counted) -> Text:
    """Where values are added, as places in the row of all entries."""
    whole = op.rank + step.rank - len(op.places)
    parts = []
    for n, domain in enumerate(step.domains):
        if n < len(op.places):
            text = w.aligned(places[n], op.places[n], whole)
        else:
            axis = Text(w.spelling.arange.format(w.alone(domain)), ATOM)
            marks = [
                ":" if m == op.rank + n - len(op.places) else "None" for m in range(op.rank + n - len(op.places), whole)
            ]
            text = Text(f"{axis.code}[{', '.join(marks)}]", ATOM) if len(marks) > 1 else axis
        strides = [w.extent(d) for d in step.domains[n + 1 :]]
        parts.append((False, " * ".join([text.at(PRODUCT if strides else ATOM), *strides])))
    return text if len(parts) == 1 else chained(parts)


def _masked(w: Writer, step: Step, op: ops.Scatter, name: str) -> list[str]:
    """A scatter where nothing is written in place: values stand where an index has its place, and are summed."""
    places, rank, own = op.places, op.rank, 0
    while own < rank and places[own : own + 1] == ((own,),) and _counts(step.operands[own + 1], step.domains[own]):
        own += 1
    if not set(range(own)) <= {axis for p in places[own:] for axis in p}:
        own = 0
    new = len(places) - own
    whole = rank + new + step.rank - len(places)
    masks = []
    for n, (place, p) in enumerate(zip(step.operands[own + 1 :], places[own:], strict=True)):
        axis = Text(w.spelling.arange.format(w.alone(step.domains[own + n])), ATOM)
        marks = [":" if m == rank + n else "None" for m in range(rank + n, whole)]
        across = f"{axis.code}[{', '.join(marks)}]" if len(marks) > 1 else axis.code
        masks.append(f"{w.aligned(place, p, whole).at(SUM)} == {across}")
    mask = masks[0] if len(masks) == 1 else " & ".join(f"({m})" for m in masks)
    values = w.aligned(step.operands[0], [axis if axis < rank else axis + new for axis in op.at], whole)
    text = w.spelling.where.format(mask, w.as_array(step.operands[0], values).code, 0)
    summed = ", ".join(map(str, range(own, rank)))
    return [f"{name} = {text}" + (f".sum(axis=({summed},))" if summed else "")]


def placed_values(w: Writer, step: Step, op: ops.Placing) -> Text:
    """What stands at places, its axes aligned to the index arrays and then to the rest."""
    whole = op.rank + step.rank - len(op.places)
    return w.as_array(step.operands[0], w.aligned(step.operands[0], op.at, whole))


def sparse_product(w: Writer, step: Step, op: ops.Sparse) -> Text:
    """A matrix of an entry for each row that is added, times the rows; further axes are joined before."""
    rows, to, *rest = step.operands
    rest = rest[op.targets - 1 :]
    flat = ".ravel()" if to.rank > 1 else ""
    # how many rows are added, how many there are, and at how many places each is
    added = f"{w.atom(to)}.size" if flat else w.alone(to.domains[0])
    joined = rows.rank > step.rank - op.targets + 1
    count = added if joined else w.extent(rows.domains[0])
    each = " * ".join(w.extent(d) for d in to.domains[1:]) if flat and not joined else ""
    values = f"{w.atom(rest[-1])}{flat}" if op.weighted else w.spelling.ones.format(added)
    places = w.spelling.arange.format(w.alone(rows.domains[0]) if each else added)
    places = w.refer(rest[0]).code if op.from_places else f"{places}.repeat({each})" if each else places
    at = f"{w.atom(to)}{flat}" if flat else _of_targets(w, step, op)
    size = " * ".join(map(w.extent, step.domains[: op.targets]))
    matrix = w.spelling.sparse.format(values, at, places, f"{size}, {count}")
    as_matrix = step.rank - op.targets == 1 and not joined
    product = f"{matrix} @ {w.atom(rows)}" + ("" if as_matrix else f".reshape({count}, -1)")
    return Text(product, PRODUCT) if step.rank == 2 else Text(f"({product}).reshape({w.shape(step.domains)})", ATOM)


def _of_targets(w: Writer, step: Step, op: ops.Sparse) -> str:
    """In which row of the result each row is added: of several places, where they are in the row of all."""
    parts = []
    for n, places in enumerate(step.operands[1 : 1 + op.targets]):
        strides = [w.extent(d) for d in step.domains[n + 1 : op.targets]]
        parts.append((False, " * ".join([w.refer(places).at(PRODUCT if strides else ATOM), *strides])))
    return chained(parts).code if len(parts) > 1 else w.refer(step.operands[1]).code


def zeros(w: Writer, step: Step) -> str:
    template = w.spelling.zeros_complex if step.complex else w.spelling.zeros
    return template.format(w.shape(step.domains) if step.rank > 1 else w.alone(step.domains[0]))


def _counts(step: Step, domain: Domain) -> bool:
    """Whether a step says where all values of an index lie."""
    return isinstance(step.op, ops.Range | ops.Place) and step.domains == (domain,)
