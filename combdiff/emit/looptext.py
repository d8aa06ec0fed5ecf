"""Loops as text: arrays for the results, a `for` over single values or blocks, and the statements of one turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from combdiff.arrays import ops
from combdiff.arrays.numbers import is_plain
from combdiff.arrays.plan import Loop, Member, Step
from combdiff.arrays.uses import uses_in, uses_of
from combdiff.emit.backends.spelling import Spelling
from combdiff.emit.names import words
from combdiff.emit.texts import ATOM, Text, Writer
from combdiff.terms.types import Domain

_LETTERS = "pqijkl"
_WIDEST = 110


class LoopText(ABC):
    """The part of a function's text that writes loops."""

    spelling: Spelling
    writer: Writer
    texts: dict[Step, Text]
    lines: list[str]
    uses: Counter[Step]
    loops: dict[Step, Loop]
    pinned: dict[Step, str]
    fresh: Callable[[str], str]
    taken: set[str]
    dimensions: dict[Domain, str]
    asked: set[Domain]

    def __init__(self) -> None:
        self.turns: dict[Domain, str] = {}
        self.releasable: dict[str, None] = {}  # the names of large arrays, where there is a limit

    @abstractmethod
    def add(self, step: Step) -> None: ...

    @abstractmethod
    def name_now(self, step: Step) -> None: ...

    @abstractmethod
    def new_name(self, step: Step) -> str: ...

    @abstractmethod
    def shortened(self, step: Step) -> Text: ...

    @abstractmethod
    def is_large(self, step: Step) -> bool: ...

    @abstractmethod
    def extent(self, domain: Domain) -> str: ...

    def note_large(self, step: Step, name: str) -> None:
        """Remember the name of an array that is to be released."""
        if self.is_large(step):
            self.releasable[name] = None

    def released(self, lines: list[str], outside: str = "") -> list[str]:
        """The lines, with statements that release large arrays after their last use where a limit asks for it.

        What is mentioned `outside` is left, and what the last line returns.
        """
        statements: list[list[str]] = []
        for line in lines:
            if statements and line.startswith((" ", ")")):
                statements[-1].append(line)
            else:
                statements.append([line])
        last: dict[str, int] = {}
        for n, statement in enumerate(statements):
            mentioned = words("\n".join(statement))
            made = statement[0].partition(" = ")[0]
            last |= {name: n for name in self.releasable if name in mentioned and (name in last or made == name)}
        kept = words(outside)
        for n, statement in enumerate(statements):
            names = [name for name, at in last.items() if at == n and name not in kept]
            if names and not statement[0].startswith("return "):
                statement.append(f"del {', '.join(names)}")
        return [line for statement in statements for line in statement]

    def add_loop(self, loop: Loop) -> None:
        """Write a loop, once; its results have names when it is done."""
        if loop.block in self.turns:
            return
        body = loop.body
        for operand in dict.fromkeys(uses_in(loop)):
            if not self._is_view_of_a_name(operand):
                self.name_now(operand)
        index = self.fresh(next((c for c in _LETTERS if c not in self.taken), "p"))
        self.turns[loop.block] = index if loop.width == 1 else self.fresh("block")
        self.dimensions[loop.block] = "1" if loop.width == 1 else self.fresh("width")
        self.loops |= {member: inner for inner in loop.inner for member in inner.steps}
        self.uses.update(o for step in loop.single for o in uses_of(step))
        self.uses.update(o for inner in loop.inner for o in uses_in(inner))
        self.uses.update(m.part for m in loop.kept)
        for m in loop.kept:
            name = self.new_name(m.step)
            self.note_large(m.step, name)
            self.lines.append(f"{name} = {self._started(m, body)}")
            self.texts[m.step] = Text(name, ATOM)
        outer, self.lines = self.lines, []
        self._name_parts(loop)
        self._write(loop, body)
        inner = self.released(self.lines)
        self.lines = [*outer, self._head(loop, index), *(f"    {line}" for line in (*self._block(loop, index), *inner))]

    def _is_view_of_a_name(self, step: Step) -> bool:
        """Whether a step is a view of what has a name; one that another loop keeps has a name itself."""
        if step in self.loops or not isinstance(step.op, ops.View):
            return False
        return self.texts[step.operands[0]].code.isidentifier()

    def _head(self, loop: Loop, index: str) -> str:
        extent = self.extent(loop.domain)
        return f"for {index} in range({extent if loop.width == 1 else f'0, {extent}, {loop.width}'}):"

    def _block(self, loop: Loop, index: str) -> list[str]:
        """What a block of values is, and how many it has where that is asked for."""
        if loop.width == 1:
            return []
        lines = [f"{self.turns[loop.block]} = slice({index}, {index} + {loop.width})"]
        if loop.block in self.asked:
            lines.append(f"{self.dimensions[loop.block]} = min({loop.width}, {self.extent(loop.domain)} - {index})")
        return lines

    def _name_parts(self, loop: Loop) -> None:
        """A part of what the user gave a name to is called after it."""
        for m in loop.members:
            if m.step in self.pinned and not (m.kept and self.uses[m.part] == 1):
                self.pinned.setdefault(m.part, self.fresh(f"{self.pinned[m.step]}_{self.turns[loop.block]}"))

    def _write(self, loop: Loop, body: Sequence[Step]) -> None:
        results: dict[Step, list[Member]] = {}
        for m in loop.kept:
            results.setdefault(m.part, []).append(m)
        for step in body:
            if (
                step in results
                and self.uses[step] == 1
                and step not in self.loops
                and not isinstance(step.op, ops.Slice | ops.Scatter)
            ):
                self.texts[step] = self.shortened(step)
            elif self.uses[step]:
                self.add(step)
            for m in results.get(step, ()):
                name, text = self.texts[m.step].code, self.texts[step]
                if m.axis is None:
                    self.lines += wrapped(f"{name} += ", text)
                else:
                    place = ", ".join([":"] * m.axis + [self.turns[loop.block]])
                    self.lines += wrapped(f"{name}[{place}] = ", text)

    def add_slice(self, step: Step, op: ops.Slice) -> None:
        """A part of an array; it has a name where it is used more than once, or is a matrix at least."""
        array, turn = step.operands[0], self.turns[op.block]
        text = Text(f"{self.texts[array].at(ATOM)}[{', '.join([':'] * op.axis + [turn])}]", ATOM)
        if self.uses[step] > 1 or step.rank > 2:
            base = self.texts[array].code
            name = self.fresh(f"{base}_{turn}" if base.isidentifier() else "part")
            self.lines.append(f"{name} = {text.code}")
            text = Text(name, ATOM)
        self.texts[step] = text

    def _started(self, m: Member, body: Sequence[Step]) -> str:
        """The array that a result is written to, or added up in; of the type that the operands have."""
        if not m.step.rank:
            return "0.0"
        shape = self.writer.shape(m.step.domains)
        made = dict.fromkeys(_leaves(m.part, frozenset(body), self.texts))
        types = self.spelling.complex_type if m.step.complex else self.spelling.float_type
        if self.spelling.types and made and any(o.complex for o in made) == m.step.complex:
            types = self.spelling.types.format(", ".join(dict.fromkeys(self.texts[o].code for o in made)))
        return (self.spelling.zeros_of if m.axis is None else self.spelling.empty).format(shape, types)


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
