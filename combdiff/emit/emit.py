"""Plans to source text: stand-alone functions that read as if written by hand.

Sizes are read off the arrays, so that the text works for all of them; a step that is used once goes into the expression
that uses it while the line stays short, and all others are lines of their own, named as the user named them or after
what they are made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module

from combdiff.arrays import ops
from combdiff.arrays.liveness import SHARE, held_by
from combdiff.arrays.lower.arguments import called
from combdiff.arrays.lower.forms import Forms
from combdiff.arrays.lower.signature import described, slots
from combdiff.arrays.numbers import is_plain
from combdiff.arrays.packing.packed_plan import packed
from combdiff.arrays.passes.loops.blocks import all_loops
from combdiff.arrays.passes.overwriting import CAUTIOUS, Overwriting
from combdiff.arrays.passes.schedule import scheduled
from combdiff.arrays.plan import Argument, Equation, Plan, Recurrence, Root, Scan, Step
from combdiff.arrays.uses import is_matmul, origin, uses_in, uses_of
from combdiff.emit.backends import BACKENDS
from combdiff.emit.backends.spelling import Spelling
from combdiff.emit.entrywise import multiplies
from combdiff.emit.expressions import expression
from combdiff.emit.indexing import placed_values, scattered
from combdiff.emit.kernels import definition, with_definitions
from combdiff.emit.looptext import add_loop, add_scan, add_slice, tuple_of, wrapped
from combdiff.emit.modules import Module
from combdiff.emit.names import Called, Names, words
from combdiff.emit.packed_arguments import PackedArguments, telling_name
from combdiff.emit.solvers.chosen import solvers_of
from combdiff.emit.solvers.library import solver_text
from combdiff.emit.statements import add_filled, add_put, elides, overwriting, writes
from combdiff.emit.texts import Text, Writer
from combdiff.errors import UnsupportedError
from combdiff.language.printing.document import ATOM
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.terms import Term
from combdiff.terms.types import Domain, Index

_INLINE = 60
_WORTHWHILE = 16
_WIDEST = 110
_CONTRACTIONS = (ops.Contraction, ops.Packed, ops.Unpacked)
_DIMENSIONS = "nmrstuv"


def source(
    term: Term | Forms,
    sizes: Mapping[Domain, int] | None = None,
    backend: str = "numpy",
    name: str = "gradient",
    title: str = "",
    pack: tuple[str, ...] = (),
    memory: int | None = None,
) -> str:
    """Source text of a function that computes `term`, a derivation's result, from arrays.

    >>> from combdiff.terms.terms import App, Lam, fresh, mul, total
    >>> from combdiff.terms.types import COMPLEX, Index, Map
    >>> i, j = (fresh(name, Index(Domain("A.1"))) for name in "ij")
    >>> A = fresh("A", Map((i.kind, j.kind), COMPLEX))
    >>> x = fresh("x", Map((j.kind,), COMPLEX))
    >>> body = Lam((i,), total((j,), mul(App(A, (i, j)), App(x, (j,)))))
    >>> print(source(Lam((A,), Lam((x,), body)), name="product").splitlines()[-1].strip())
    return A @ x

    Arguments are the arrays in written order, then the functions of the user: `g`, `grad_g(x)`, `pullback_g(x, k)`;
    of a function of a number they are called once on a whole array of numbers. `title` goes into the docstring.
    Raises `UnsupportedError` for what has no array program (an integral).
    """
    spelling = spelling_of(backend)
    with deep_recursion():
        forms = term if isinstance(term, Forms) else Forms(term)
        plan = scheduled(packed(forms.plan(sizes, memory), pack), spelling, memory)
        return emit(plan, spelling, name, title)


def spelling_of(backend: str) -> Spelling:
    """The table of an array library."""
    if backend not in BACKENDS:
        raise UnsupportedError(f"there is no backend {backend!r}", remedy=f"choose one of {', '.join(BACKENDS)}")
    found = import_module(f"combdiff.emit.backends.{backend}").SPELLING
    assert isinstance(found, Spelling), "a backend is a table"
    return found


def emit(plan: Plan, spelling: Spelling, name: str = "gradient", title: str = "", over: Overwriting = CAUTIOUS) -> str:
    """The text of a plan, after those of the equations and solvers that it calls."""
    module = Module(spelling, name)
    plan = needed_by(plan, module)
    return module.text(FunctionText(plan, module, module.name, over).text(title), packs=bool(plan.packings))


def needed_by(plan: Plan, module: Module, late: Collection[Step] = ()) -> Plan:
    """Add what packs arguments, the kernels, equations and solvers of a plan to the module.

    The plan that is returned calls them.
    """
    module.add_packers(plan)
    plan = with_definitions(plan, module.spelling.kernel, module.names.taken, late)
    kernels = [step.op for step in plan.steps if isinstance(step.op, ops.Fused)]
    module.add({kernel.function: definition(kernel, module.spelling.kernel) for kernel in kernels})
    # what a loop over blocks computes may call what its whole does not: of a block it is not known that it has entries
    for step in dict.fromkeys((*plan.steps, *(s for loop in all_loops(plan.loops) for s in loop.body))):
        for name in solvers_of(step, module.spelling):
            module.add({name: solver_text(name, module.spelling)})
        if isinstance(step.op, Root):
            _add_above(step.op.equation, module, "The residual of an equation, and its Jacobian matrix.")
        if isinstance(step.op, Scan) and not module.spelling.loops:
            _add_above(step.op.body, module, "The states after a step of a loop, and what is stored of it.")
    return plan


def _add_above(held: Equation | Recurrence, module: Module, title: str) -> None:
    """Write the function of a plan that a step calls."""
    if held not in module.above:
        name = module.above[held] = module.names.fresh(held.name)
        inner = needed_by(held.plan, module)
        module.add({name: FunctionText(inner, module, name).text(title).rstrip()})


def _block_of(index: str, per: int) -> str:
    """The number of the block of a value."""
    return index if per == 1 else f"{index} // {per}"


class FunctionText:
    """The text of one function; its statements are written in the order of the plan's steps."""

    def __init__(
        self,
        plan: Plan,
        module: Module,
        name: str,
        over: Overwriting = CAUTIOUS,
        within: tuple[FunctionText, Mapping[str, str]] | None = None,
    ) -> None:
        """Of a step of a loop, which is written `within` another text, the arguments have texts there."""
        self.plan = plan
        self.module = module
        self.turns: dict[Domain, str] = {}
        self.begins: dict[Domain, str] = {}  # the first value of a turn
        self.releasable: dict[str, None] = {}  # the names of large arrays, where there is a limit
        self.around = ""  # the steps of loops around this text, for messages
        self.spelling = module.spelling
        self.name = name
        names = Names(module.names.taken)
        outer, given = within or (None, {})
        self.fresh: Callable[[str], str] = names.fresh if outer is None else outer.fresh
        self.taken: set[str] = names.taken if outer is None else outer.taken
        self.arguments = dict(given) or names.of(a.name for a in plan.arguments if a.name not in plan.packed)
        self.packed = PackedArguments(plan, module.packers(plan), self.fresh)
        self.arguments |= self.packed.arguments
        self.texts: dict[Step, Text] = {}
        self.lines: list[str] = []
        self.dimensions: dict[Domain, str] = self._dimensions() if outer is None else outer.dimensions
        self.loops = {step: loop for loop in plan.loops for step in loop.steps}
        self.asked: set[Domain] = set() if outer is None else outer.asked
        self.pinned = {step: self.fresh(given) for step, given in plan.names.items() if step in set(plan.steps)}
        steps = plan.steps
        outside = (o for s in steps if s not in self.loops for o in uses_of(s))
        self.uses = Counter([*outside, *(o for loop in plan.loops for o in uses_in(loop)), *plan.outputs])
        own = Called(self.arguments, module.above, self.packed.items)
        self.writer = Writer(plan, self.spelling, self.texts.__getitem__, self.extent, own)
        self.over = over.of(plan, partial(writes, self.spelling), self.uses)
        self.becomes = {buffer: step for step, buffer in self.over.items()}

    def _dimensions(self) -> dict[Domain, str]:
        """A name for the size of every domain of the arguments."""
        sizes = [(a.kind.domain, self.arguments[a.name]) for a in self.plan.arguments if isinstance(a.kind, Index)]
        found = {domain: name for domain, name in sizes if domain is not None}
        for domain in (d for a in self._arrays() for d in slots(a.kind)):
            if domain.count is not None:
                found[domain] = str(domain.count)
            domain = domain.of if domain.of is not None and domain.count is None else domain
            if domain not in found:
                short = domain.name if domain.sized else next((c for c in _DIMENSIONS if c not in self.taken), "n")
                found[domain] = self.fresh(f"n_{domain.name}" if domain.declared else short)
        return found

    def _arrays(self) -> list[Argument]:
        return [a for a in self.plan.arguments if a.step is not None]

    def extent(self, domain: Domain, least: int = 0) -> str:
        """The number of values of a domain as text, or `least` where there are fewer."""
        if domain.count is not None:
            return str(domain.count)
        if domain.common:
            text = f"min({', '.join(map(self.extent, domain.common))})"
            return f"max({text}, {least})" if least else text
        if domain.of is not None and domain == domain.of.half:
            return f"({self.extent(domain.of)} // 2 + 1)"
        if domain.of is not None and domain.less < 0:
            return f"({self.extent(domain.of)} + {-domain.less})"
        if domain.of is not None and domain.per > 1:
            return f"-(-{self.extent(domain.of, least)} // {domain.per})"
        if domain.of is not None:
            return f"max({self.extent(domain.of)} - {domain.less}, {least})"
        self.asked.add(domain)
        return f"max({self.dimensions[domain]}, {least})" if least else self.dimensions[domain]

    # --- statements -----------------------------------------------------------------------------------------------

    def text(self, title: str) -> str:
        steps = self.plan.steps
        for step in steps:
            if self.uses[step]:
                self.add(step)
        results = self.results(self.plan.outputs, ())
        alone = "," if self.plan.tupled and len(results) == 1 else ""
        code = self.released([*self.lines, f"return {', '.join(results)}{alone}"])
        inner = [*self.docstring(title), *self._device(code), *self.preamble(), *code]
        return "\n".join([self.header(), *(f"    {line}" if line else "" for line in inner)]) + "\n"

    def every_step(self) -> Iterator[Step]:
        """All steps, and what the turns of loops compute."""
        yield from self.plan.steps
        for loop in all_loops(self.plan.loops):
            yield from loop.body

    def inside(self, body: Recurrence, given: Mapping[str, str]) -> FunctionText:
        """The text of a step of a loop in this text, whose arguments are `given`."""
        return FunctionText(needed_by(body.plan, self.module), self.module, body.name, within=(self, given))

    def step(self, names: Sequence[str], states: int, index: str, every: int = 1, watched: str = "") -> None:
        """Write a step of a loop: what is stored of it, and the states for the next one, all at once.

        Only `every` so many steps store something. Where the states are `watched`, that is called with the new ones and
        the old ones.
        """
        inputs = {a.step: self.arguments[a.name] for a in self.plan.arguments if a.step is not None}
        for read, text in inputs.items():
            if self.uses[read] > 1 and not text.isidentifier():
                self.lines.append(f"{(name := self.fresh(text.partition('[')[0] + '_t'))} = {text}")
                self.texts[read] = Text(name, ATOM)
        for step in self.plan.steps:
            if self.uses[step] and step not in self.texts:
                self.add(step)
        found = [
            t if o in inputs else self.writer.state(o, t, o.complex)
            for o in self.plan.outputs
            for t in (self.texts[o],)
        ]
        stored = [wrapped(f"{name}[{_block_of(index, every)}] = ", t) for name, t in zip(names, found, strict=True)]
        inside = "    " if every > 1 else ""
        self.lines += [f"if {index} % {every} == 0:"] * bool(inside)
        self.lines += [f"{inside}{line}" for lines in stored[states:] for line in lines]
        moved = [(name, t) for name, t in zip(names, found[:states], strict=False) if name != t.code]
        left = ", ".join(name for name, _ in moved)
        if watched and moved:
            before, after = self.fresh("before"), tuple_of(names[:states])
            self.lines.append(f"{before} = {after}")
        if len(moved) == 1:
            self.lines += wrapped(f"{left} = ", moved[0][1])
        elif moved:
            self.lines.append(f"{left} = {', '.join(t.code for _, t in moved)}")
        if watched and moved:
            self.lines.append(watched.format(after, before))

    def header(self) -> str:
        """The line with the name and what the function takes."""
        given = [(self.arguments[a.name], a.optional) for a in self.plan.arguments]
        return f"def {self.name}({', '.join(f'{name}=None' if free else name for name, free in given)}):"

    def add(self, step: Step) -> None:
        """Write a step: a line of its own, or kept for the expression that uses it."""
        if isinstance(step.op, ops.Input):
            self.texts[step] = Text(self.packed.whole(step.op.argument) or self.arguments[step.op.argument], ATOM)
        elif isinstance(step.op, ops.Scatter):
            values = placed_values(self.writer, step, step.op)
            name = self.new_name(step)
            self.lines += scattered(self.writer, step, step.op, values, name)
            self.note_large(step, name)
            self.texts[step] = Text(name, ATOM)
        elif step in self.loops:
            add_loop(self, self.loops[step])
        elif isinstance(step.op, ops.Put):
            add_put(self, step, step.op)
        elif isinstance(step.op, ops.Filled):
            add_filled(self, step, step.op)
        elif isinstance(step.op, ops.Slice):
            add_slice(self, step, step.op)
        elif isinstance(step.op, ops.Checkpoint):
            stored, begin = self.texts[step.operands[0]].at(ATOM), self.begins[step.op.block]
            self.texts[step] = Text(f"{stored}[{_block_of(begin, step.op.per)}]", ATOM)
        elif isinstance(step.op, Scan) and self.spelling.loops:
            add_scan(self, step, step.op)
        elif step in self.texts:
            pass  # a result of a loop, which has a name
        else:
            text = self.shortened(step)
            if step in self.over and not self._takes_over(step):
                self._write_over(step, self.over[step])
                return
            self.texts[step] = text if self._stays_inside(step, text) else self._assigned(step, text)

    def _takes_over(self, step: Step) -> bool:
        """Whether the library itself writes an expression over the operand that it holds."""
        buffer = self.over[step]
        return self.is_inside(buffer) and elides(self.writer, step, buffer)

    def _write_over(self, step: Step, buffer: Step) -> None:
        """Write a step in the place of an operand, under a name of its own only if both have been given one."""
        name, old = self.pinned.get(step, ""), self.texts[buffer]
        self.lines += overwriting(self.writer, step, buffer, name if name != old.code else "")
        self.texts[step] = Text(name, ATOM) if name else old

    def shortened(self, step: Step) -> Text:
        """The expression of a step; where it grows too long, its longest operands get lines of their own."""
        for operand in uses_of(step):
            chained = isinstance(step.op, ops.Unpacked) or (is_matmul(step) and is_matmul(operand))
            if isinstance(step.op, _CONTRACTIONS) and isinstance(operand.op, _CONTRACTIONS) and not chained:
                self.name_now(operand)
        if multiplies(self.writer, step):
            self.name_now(step.operands[0])
        text = expression(self.writer, step)
        # a long sum is put on a line a term instead
        while not isinstance(step.op, ops.Add) and len(text.code) > _INLINE + 20:
            inside = [o for o in uses_of(step) if len(self.texts[o].code) > _WORTHWHILE and self.is_inside(o)]
            if not inside:
                break
            self.name_now(max(inside, key=lambda o: len(self.texts[o].code)))
            text = expression(self.writer, step)
        return text

    def is_inside(self, step: Step) -> bool:
        return not isinstance(step.op, ops.Number | ops.Input) and not self.texts[step].code.isidentifier()

    def name_now(self, step: Step) -> None:
        if self.is_inside(step):
            self.texts[step] = self._assigned(step, self.texts[step])

    def _stays_inside(self, step: Step, text: Text) -> bool:
        if (
            step in self.pinned
            or self.is_large(step)
            or (step in self.becomes and not elides(self.writer, self.becomes[step], step, text))
        ):
            return False
        if isinstance(step.op, ops.Number) or (isinstance(step.op, ops.Position) and not step.operands):
            return True
        if self.spelling.loops and isinstance(step.op, ops.Broadcast) and self._begins_loops(step):
            return True
        view = isinstance(step.op, ops.View) and not isinstance(step.op, ops.Item)
        if view and self.texts[step.operands[0]].code.isidentifier():
            return True
        return self.uses[step] == 1 and len(text.code) <= (_INLINE if step not in self.plan.outputs else _WIDEST)

    def _begins_loops(self, step: Step) -> bool:
        """Whether it is the first state of loops and nothing else: each of these makes an array of its own."""
        starts = Counter(o for s in self.plan.steps if isinstance(s.op, Scan) for o in s.operands[: s.op.body.states])
        return is_plain(step.operands[0]) and 0 < starts[step] == self.uses[step]

    def _assigned(self, step: Step, text: Text) -> Text:
        name = self.new_name(step)
        self.lines += wrapped(f"{name} = ", text)
        self.note_large(step, name)
        return Text(name, ATOM)

    def is_large(self, step: Step) -> bool:
        """Whether a limit of memory asks that an array has a name: it is made when it is due, and can be released."""
        return self.plan.memory is not None and SHARE * held_by(self.plan, step) > self.plan.memory

    def new_name(self, step: Step) -> str:
        if step in self.pinned:
            return self.pinned[step]
        last = step
        while last in self.becomes and last not in self.pinned:
            last = self.becomes[last]
        if last in self.pinned:
            return self.pinned[last]
        wish = self._telling_name(step) if last is step else ""
        if wish and wish not in self.taken:
            return self.fresh(wish)
        number = 1
        while f"t{number}" in self.taken:
            number += 1
        return self.fresh(f"t{number}")

    def _telling_name(self, step: Step) -> str:
        """A name made of the operands' names, if it is short: `JP`, `C_conj`, `U_kb`."""
        match step.op:
            case ops.Conj():
                base = self._code(step.operands[0])
                return f"{base}_conj" if base.isidentifier() else ""
            case ops.Contraction():
                letters = [self._letters(o) for o in step.operands]
                name = "".join(letters)
                return name if all(letters) and len(name) <= 4 else ""
            case ops.Packed(layout) if layout.selects_rows:
                name = telling_name(layout, step, self._letters)
                return f"{name}_rows" if name else ""
            case ops.Packed(layout):
                return telling_name(layout, step, self._letters)
            case ops.Unpacked(layout):
                return telling_name(layout, step.operands[0], self._letters)
            case ops.Windows():
                base = self._code(step.operands[0])
                return f"{base}_windows" if base.isidentifier() and len(base) <= 4 else ""
            case ops.LaidOut():
                base = self._code(step.operands[0])
                return f"{base}_laid" if base.isidentifier() else ""
            case ops.Gather():
                base = self._code(origin(step.operands[0], ops.LaidOut))
                places = [self._code(o) for o in step.operands[1:] if isinstance(o.op, ops.Position)]
                name = "_".join([base, *places])
                return name if places and name.isidentifier() and len(name) <= 12 else ""
            case _:
                return ""

    def _code(self, step: Step) -> str:
        """The text of a step; empty if it is not written, as within a loop."""
        return self.texts[step].code if step in self.texts else ""

    def _letters(self, step: Step) -> str:
        while isinstance(step.op, ops.Conj | ops.Permute):
            step = step.operands[0]
        code = self._code(step)
        if isinstance(step.op, _CONTRACTIONS) and not code.isidentifier():
            return "".join(map(self._letters, step.operands))
        return code if code.isidentifier() and code.isalpha() and len(code) <= 3 else ""

    def results(self, outputs: Sequence[Step], others: Iterable[Step]) -> list[str]:
        """What is returned: fresh arrays, also where a result is a part of an argument, or of one of the `others`."""
        given = set(others)
        results = []
        for step in outputs:
            root = origin(step)
            text = self.texts[step]
            if step.rank and (isinstance(root.op, ops.Input) or root in given):
                text = Text(self.spelling.copy.format(text.at(ATOM)), ATOM)
            else:
                text = self.writer.result(step, text)
            given.add(root)
            results.append(text)
        if sum(len(t.code) for t in results) > _WIDEST - 8:
            results = [t if t.code.isidentifier() else self._result_line(t, n) for n, t in enumerate(results, 1)]
        return [t.code for t in results]

    def _result_line(self, text: Text, number: int) -> Text:
        name = self.fresh("result" if len(self.plan.outputs) == 1 else f"result{number}")
        self.lines += wrapped(f"{name} = ", text)
        return Text(name, ATOM)

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

    # --- what stands above ----------------------------------------------------------------------------------------

    def preamble(self) -> list[str]:
        """The sizes that the code uses, read off as few arrays as will do."""
        shown = {d for a in self._arrays() for d in slots(a.kind)}
        wanted = [d for d in self.dimensions if d in self.asked and d in shown]
        others = [d for d in self.dimensions if d in self.asked and d not in shown]
        lines = self.packed.statements()
        arrays = [(self.arguments[a.name], slots(a.kind)) for a in self._arrays() if a.name not in self.packed.packings]
        while wanted:
            name, domains = max(
                arrays + self.packed.showing(), key=lambda pair: (len(set(wanted) & set(pair[1])), -len(pair[1]))
            )
            lines.append(self._sizes_of(name, domains, wanted))
            wanted = [d for d in wanted if d not in domains]
        return lines + [line for d in others for line in self._size_less(d, arrays + self.packed.showing())]

    def _size_less(self, domain: Domain, arrays: Sequence[tuple[str, tuple[Domain, ...]]]) -> list[str]:
        """The line for a size of which arrays have so many more or fewer values only: `n = len(y) - 1`."""
        for name, domains in arrays:
            for axis, d in enumerate(domains):
                if d.of == domain and d.less:
                    size = f"len({name})" if len(domains) == 1 else f"{name}.shape[{axis}]"
                    return [f"{self.dimensions[domain]} = {size} {'+' if d.less > 0 else '-'} {abs(d.less)}"]
        return []

    def _device(self, code: list[str]) -> list[str]:
        """Where new arrays are made: at the place of the first argument that is an array."""
        if not self.spelling.device or not any("device=device" in line for line in code):
            return []
        arrays = [self.arguments[a.name] for a in self._arrays() if not a.optional]
        return [self.spelling.device.format(arrays[0]) if arrays else "device = None"]

    def _sizes_of(self, name: str, domains: tuple[Domain, ...], wanted: list[Domain]) -> str:
        found = [d for d in dict.fromkeys(domains) if d in wanted]
        if len(domains) == 1:
            return f"{self.dimensions[found[0]]} = len({name})"
        if len(found) == 1:
            return f"{self.dimensions[found[0]]} = {name}.shape[{domains.index(found[0])}]"
        names = [self.dimensions[d] if d in wanted and domains.index(d) == n else "_" for n, d in enumerate(domains)]
        while names[-1] == "_":
            names.pop()
        return f"{', '.join(names)} = {name}.shape" + ("" if len(names) == len(domains) else f"[:{len(names)}]")

    def docstring(self, title: str) -> list[str]:
        body = title.strip().splitlines() or [f"Computes {self.name}."]
        rows = [self.described(a) for a in self.plan.arguments]
        lines = [*body, *([""] if rows else []), *rows]
        quoted = [line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in lines]
        return [f'"""{quoted[0]}', *quoted[1:], '"""']

    def _spoken_extent(self, domain: Domain) -> str:
        if domain.of is not None and domain.count is None:
            return f"{self.dimensions.get(domain.of, 'n')} {'-' if domain.less > 0 else '+'} {abs(domain.less)}"
        return self.dimensions.get(domain, "n")

    def described(self, a: Argument) -> str:
        name = self.arguments[a.name]
        if isinstance(a.kind, Index) and a.kind.domain is not None:
            return f"{name}: how many values {_spoken(a.kind.domain)} has"
        if a.callable:
            return f"{name}: function of the caller's, {called(name, a, self.arguments)}"
        kind = self.packed.origin(a.name) + described(a.kind, [self._spoken_extent(d) for d in slots(a.kind)])
        return f"{name}: {kind}{', where the method of Newton starts; 0 if not given' if a.optional else ''}"


def _spoken(domain: Domain) -> str:
    """A domain as people say it: y.1 is slot 1 of y, and y.1#2 slot 1 of another y."""
    head, _, rest = domain.name.partition(".")
    slot, _, other = rest.partition("#")
    if domain.declared or not slot.isdecimal():
        return domain.name
    return f"slot {slot} of {'another ' if other else ''}{head}"
