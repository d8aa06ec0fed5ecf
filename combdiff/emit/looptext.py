"""Loops as text: arrays for the results, a `for` over single values or blocks, and the statements of one turn."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from combdiff.arrays import ops
from combdiff.arrays.numbers import is_plain, is_whole
from combdiff.arrays.plan import Argument, Loop, Member, Scan, Step
from combdiff.arrays.uses import uses_in, uses_of
from combdiff.emit.solvers.repeated import names_of
from combdiff.emit.texts import Text
from combdiff.language.printing.document import ATOM
from combdiff.terms.types import Index

if TYPE_CHECKING:
    from combdiff.emit.emit import FunctionText

_LETTERS = "pqijkl"
_WIDEST = 110


def add_loop(f: FunctionText, loop: Loop) -> None:
    """Write a loop, once; its results have names when it is done."""
    if loop.block in f.turns:
        return
    body = loop.body
    for operand in dict.fromkeys(uses_in(loop)):
        if not _is_view_of_a_name(f, operand):
            f.name_now(operand)
    index = f.fresh(next((c for c in _LETTERS if c not in f.taken), "p"))
    f.turns[loop.block] = index if loop.width == 1 else f.fresh("block")
    f.dimensions[loop.block] = "1" if loop.width == 1 else f.fresh("width")
    f.loops |= {member: inner for inner in loop.inner for member in inner.steps}
    f.uses.update(o for step in loop.single for o in uses_of(step))
    f.uses.update(o for inner in loop.inner for o in uses_in(inner))
    f.uses.update(m.part for m in loop.kept)
    f.begins[loop.block] = index
    _carry(f, body)
    for m in loop.kept:
        if _is_carried(m):
            continue
        name = f.new_name(m.step)
        f.note_large(m.step, name)
        f.lines.append(f"{name} = {_started(f, m, body)}")
        f.texts[m.step] = Text(name, ATOM)
    outer, f.lines = f.lines, []
    _name_parts(f, loop)
    _write(f, loop, body)
    inner = f.released(f.lines)
    f.lines = [*outer, _head(f, loop, index), *(f"    {line}" for line in (*_block(f, loop, index), *inner))]
    f.texts |= {m.step: f.texts[m.part] for m in loop.kept if _is_carried(m)}


def _is_carried(m: Member) -> bool:
    """Whether a member is the last state of a loop that goes on from turn to turn."""
    return m.axis is None and isinstance(m.step.op, ops.Item)


def _carry(f: FunctionText, body: Sequence[Step]) -> None:
    """Name the states that loops in the body go on from: before the first turn they are what they begin with."""
    for step, scan in ((s, s.op.body) for s in body if isinstance(s.op, Scan)):
        for operand, state in zip(step.operands, scan.arrays[: scan.states], strict=False):
            if isinstance(operand.op, ops.Carried):
                name = f.fresh(next(a.name for a in scan.plan.arguments if a.step is state))
                (first,) = operand.operands
                f.lines += wrapped(f"{name} = ", f.writer.state(first, f.texts[first], state.complex))
                f.texts[operand] = Text(name, ATOM)


def _is_view_of_a_name(f: FunctionText, step: Step) -> bool:
    """Whether a step is a view of what has a name; one that another loop keeps has a name itself."""
    if step in f.loops or not isinstance(step.op, ops.View):
        return False
    source = step.operands[0]  # a loop over states has no text, and its results have names
    return source in f.texts and f.texts[source].code.isidentifier()


def _head(f: FunctionText, loop: Loop, index: str) -> str:
    extent = f.extent(loop.domain)
    turns = f"range({extent if loop.width == 1 else f'0, {extent}, {loop.width}'})"
    return f"for {index} in {f'reversed({turns})' if loop.reverse else turns}:"


def _block(f: FunctionText, loop: Loop, index: str) -> list[str]:
    """What a block of values is, and how many it has where that is asked for."""
    if loop.width == 1:
        return []
    lines = [f"{f.turns[loop.block]} = slice({index}, {index} + {loop.width})"]
    if loop.block in f.asked:
        lines.append(f"{f.dimensions[loop.block]} = min({loop.width}, {f.extent(loop.domain)} - {index})")
    return lines


def _name_parts(f: FunctionText, loop: Loop) -> None:
    """A part of what the user gave a name to is called after it."""
    for m in loop.members:
        if m.step in f.pinned and not (m.kept and f.uses[m.part] == 1):
            f.pinned.setdefault(m.part, f.fresh(f"{f.pinned[m.step]}_{f.turns[loop.block]}"))


def _write(f: FunctionText, loop: Loop, body: Sequence[Step]) -> None:
    results: dict[Step, list[Member]] = {}
    for m in loop.kept:
        if _is_carried(m):
            continue
        results.setdefault(m.part, []).append(m)
    for step in body:
        if (
            step in results
            and f.uses[step] == 1
            and step not in f.loops
            and not isinstance(step.op, ops.Slice | ops.Scatter | ops.Put)
        ):
            f.texts[step] = f.shortened(step)
        elif f.uses[step]:
            f.add(step)
        for m in results.get(step, ()):
            name, text = f.texts[m.step].code, f.texts[step]
            if m.axis is None:
                f.lines += wrapped(f"{name} += ", text)
            else:
                place = ", ".join([":"] * m.axis + [f.turns[loop.block]])
                f.lines += wrapped(f"{name}[{place}] = ", text)


def add_slice(f: FunctionText, step: Step, op: ops.Slice) -> None:
    """A part of an array; it has a name where it is used more than once, or is a matrix at least."""
    array, turn = step.operands[0], f.turns[op.block]
    text = Text(f"{f.texts[array].at(ATOM)}[{', '.join([':'] * op.axis + [turn])}]", ATOM)
    if f.uses[step] > 1 or step.rank > 2:
        base = f.texts[array].code
        name = f.fresh(f"{base}_{turn}" if base.isidentifier() else "part")
        f.lines.append(f"{name} = {text.code}")
        text = Text(name, ATOM)
    f.texts[step] = text


def _started(f: FunctionText, m: Member, body: Sequence[Step]) -> str:
    """The array that a result is written to, or added up in; of the type that the operands have.

    Places, as of the largest entries, are integers whatever they are made of: entries are read there.
    """
    if not m.step.rank:
        return "0.0"
    shape = f.writer.shape(m.step.domains)
    if is_whole(m.part):
        return (f.spelling.zeros_of if m.axis is None else f.spelling.empty).format(shape, f.spelling.integer_type)
    made = dict.fromkeys(_leaves(m.part, frozenset(body), f.texts))
    types = f.spelling.complex_type if m.step.complex else f.spelling.float_type
    if f.spelling.types and made and any(o.complex for o in made) == m.step.complex:
        types = f.spelling.types.format(", ".join(dict.fromkeys(f.texts[o].code for o in made)))
    return (f.spelling.zeros_of if m.axis is None else f.spelling.empty).format(shape, types)


def _leaves(part: Step, body: frozenset[Step], written: Collection[Step]) -> Iterable[Step]:
    """The arrays from outside of a loop whose entries a result is made of, each one that is `written`."""
    stack, seen = [part], {part}
    while stack:
        step = stack.pop()
        if step not in body or isinstance(step.op, ops.Slice):
            chain = [step]
            while isinstance(chain[-1].op, ops.View | ops.Conj):
                chain.append(chain[-1].operands[0])
            # what is conjugated need not exist where its conjugate does, nor what a loop takes slices of apart
            base = next((s for s in reversed(chain) if s in written), None)
            if base is not None:
                yield from () if is_plain(base) else (base,)
                continue
            step = chain[-1]
        data = step.operands[:1] if isinstance(step.op, ops.Gather | ops.Scatter) else step.operands
        data = data[2:] if isinstance(step.op, ops.Where) else data
        stack += [o for o in reversed(data) if o not in seen]
        seen.update(data)


def wrapped(prefix: str, text: Text) -> list[str]:
    """An assignment; a long sum goes on a line a term."""
    if len(prefix) + len(text.code) <= _WIDEST or not text.terms:
        return [prefix + text.code]
    return [f"{prefix}(", *(f"    {term}" for term in text.terms), ")"]


def add_scan(f: FunctionText, step: Step, op: Scan) -> None:
    """Write a loop over states: these have names, and arrays hold what is stored of each step."""
    count, moving = op.body.states, op.body.states + op.body.sequences
    for operand in step.operands[count:]:
        f.name_now(operand)
    items = {s.op.number: s for s in f.every_step() if isinstance(s.op, ops.Item) and s.operands[0] is step}
    inputs = [a for a in op.body.plan.arguments if a.step is not None]
    names = [
        _item_name(f, items.get(n), inputs[n].name if n < count else f"{inputs[0].name}s") for n in range(len(op.items))
    ]
    for n, operand in enumerate(step.operands[:count]):
        if isinstance(operand.op, ops.Carried):
            names[n] = f.texts[operand].code
            continue
        f.lines += wrapped(f"{names[n]} = ", f.writer.state(operand, f.texts[operand], op.body.arrays[n].complex))
    for n, (domains, complex_) in enumerate(op.items[count:], count):
        zeros = f.spelling.zeros_complex if complex_ else f.spelling.zeros
        f.lines.append(f"{names[n]} = {zeros.format(f.writer.shape(domains))}")
    index = f.fresh(next((c for c in "tsr" if c not in f.taken), "t"))
    texts = [*names[:count], *(f"{f.texts[o].at(ATOM)}[{index}]" for o in step.operands[count:moving])]
    texts += [f.texts[o].code for o in step.operands[moving:]]
    given = dict(zip((a.name for a in inputs), texts, strict=True))
    given |= {a.name: _of_program(f, a) for a in op.body.plan.arguments if a.step is None}
    inner = f.inside(op.body, given)
    watched = _watched(f, inner, step, names[:count], index) if f.spelling.watches else ""
    inner.step(names, count, index, op.every, watched)
    if inner.lines:  # else no step changes anything
        turns = f"range({f.writer.alone(op.domain)})"
        f.lines.append(f"for {index} in {f'reversed({turns})' if op.reverse else turns}:")
        f.lines += [f"    {line}" for line in (*inner.lines, *_left_early(op, names, index))]
    f.texts |= {item: Text(names[n], ATOM) for n, item in items.items()}


def _watched(f: FunctionText, inner: FunctionText, scan: Step, names: Sequence[str], index: str) -> str:
    """The call that looks at the states after a step, a template of these and of those before; the first are looked at.

    A block of steps goes on from the one before, whose last states are known to be numbers.
    """
    op = scan.op
    assert isinstance(op, Scan), "a loop"
    called = names_of(op.body)
    if not any(isinstance(o.op, ops.Carried) for o in scan.operands):
        f.lines.append(f"watch_first({called}, {tuple_of(names)}, {'f' * ('{' in f.around)}{f.around!r})")
    place = f"{{{f'{f.begins[op.domain]} + ' if op.domain in f.begins else ''}{index}}}"
    loop = " and ".join(a.name for a in op.body.plan.arguments[: op.body.states])
    inner.around = f", inside step {place} of the loop of {loop}{f.around}"
    own = f"{place} of its loop{', which runs backwards' if op.reverse else ''}{f.around}"
    own = own.replace("{", "{{").replace("}", "}}")
    return f"watch_states({called}, {{0}}, {{1}}, f{own!r})"


def tuple_of(names: Sequence[str]) -> str:
    """The states as a tuple, also one alone."""
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


def _left_early(op: Scan, names: Sequence[str], index: str) -> list[str]:
    """The way out of a loop at the step from which no state moves; what later steps would store is the states."""
    if op.halts is None:
        return []
    states, inputs = op.body.states, op.body.arrays
    place = index if op.every == 1 else f"{index} // {op.every}"
    after = f":{place}" if op.reverse else f"{place} + 1:"
    kept = [
        f"{whole}[{after}] = {names[inputs.index(o)]}"
        for whole, o in zip(names[states:], op.body.plan.outputs[states:], strict=True)
    ]
    return [f"if not {names[op.halts]}:", *(f"    {line}" for line in (*kept, "break"))]


def _item_name(f: FunctionText, item: Step | None, wish: str) -> str:
    return f.fresh(wish) if item is None else f.pinned.get(item) or f.fresh(wish)


def _of_program(f: FunctionText, argument: Argument) -> str:
    """A function of the caller's, or a size, as the text around calls it."""
    if isinstance(argument.kind, Index) and argument.kind.domain is not None:
        return f.extent(argument.kind.domain)
    return f.arguments[argument.name]
