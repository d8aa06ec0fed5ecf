"""Writes plans as text, one line a step in Python's syntax, and reads them back.

    n = Domain(name='n', sized=True)
    size(n, 3)
    A: real[n, n] = input(Map(params=(Index(domain=n), Index(domain=n)), result=Number(complex=False), space='RM'))
    x: real[n] = input(Map(params=(Index(domain=n),), result=Number(complex=False), space='RV'))
    t3: real[n] = tensordot(A, x, left=(1,), right=(0,))
    t4: real[n] = mul(t3, places=((0,),), coefficient=2)
    return t4

A label is the user's name for a step, or `t` and a number. A loop is a `for` over blocks of an index; in it stand the
steps of one turn, and for each step that it computes parts of, where they go.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from keyword import iskeyword
from typing import Any

from combdiff.arrays import ops
from combdiff.arrays.packing.layout import Addend, Layout, Packing
from combdiff.arrays.plan import Argument, Builder, Equation, Loop, Member, Plan, Recurrence, Root, Scan, Step
from combdiff.errors import CombDiffError
from combdiff.terms.terms import Const
from combdiff.terms.types import Domain, Index, Map, Number, Product, Symmetry

_RECORDS = {c.__name__: c for c in (Domain, Index, Map, Number, Product, Symmetry, Layout, Addend, Packing)}


_HOLDERS: Mapping[type[Equation | Recurrence], str] = {Equation: "equation", Recurrence: "recurrence"}
"""What holds a plan of its own, by the word above it."""


def _operations(kind: type[ops.Op]) -> Iterator[type[ops.Op]]:
    for below in kind.__subclasses__():
        if below.name:
            yield below
        yield from _operations(below)


OPERATIONS = {kind.name: kind for kind in _operations(ops.Op)}
"""Every operation by the name that a text has for it."""


class PlanTextError(CombDiffError):
    """A text is no plan."""


def text(plan: Plan) -> str:
    """A plan as text, from which `read` makes it again."""
    return "\n".join(_Writer(plan).lines()) + "\n"


def read(source: str) -> Plan:
    """The plan that a text says.

    >>> import combdiff as cd
    >>> plan = cd.grad("(A::RM) -> (x::RV) -> sum((i, j), A(i, j) * x(i) * x(j))").plan(x=(3,))
    >>> text(read(text(plan))) == text(plan)
    True

    Raises PlanTextError, with the line, where the text is no plan.
    """
    try:
        body = ast.parse(f"def plan():\n{_indented(source.splitlines())}").body[0]
    except SyntaxError as problem:
        raise PlanTextError(f"line {(problem.lineno or 2) - 1} is no step: {problem.msg}") from None
    assert isinstance(body, ast.FunctionDef), "what was put before it"
    return _Reader().plan(body)


def _indented(lines: Iterable[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


# --- writing --------------------------------------------------------------------------------------------------------


class _Writer:
    def __init__(self, plan: Plan, inside: Sequence[str] = ()) -> None:
        self.plan = plan
        self.labels: dict[Step, str] = {}
        self.domains: dict[Domain, str] = {}
        self.held: dict[Equation | Recurrence, str] = {}
        self.taken = {
            *inside,
            *OPERATIONS,
            *_RECORDS,
            "size",
            "memory",
            "name",
            "keep",
            "drop",
            "blocks",
            "function",
            "count",
            "im",
        }
        self.names = {step: name for step, name in plan.names.items() if name.isidentifier()}

    def lines(self) -> list[str]:
        """All of the text."""
        arguments = [self.argument(a) for a in (*self.plan.arguments, *self.plan.directions)]
        steps = [line for step in self.plan.steps for line in self.step(step)]
        loops = [line for loop in self.plan.loops for line in self.loop(loop)]
        given = len(self.plan.arguments)
        sizes = [f"size({self.domain(d)}, {size!r})" for d, size in self.plan.sizes.items()]
        packings = [f"pack({self.value(p)})" for p in self.plan.packings]
        memory = [] if self.plan.memory is None else [f"memory({self.plan.memory})"]
        named = [*self.named()]
        returned = [self.labels[o] for o in self.plan.outputs]
        end = f"({', '.join(returned)}{',' if len(returned) == 1 else ''})" if self.plan.tupled else ", ".join(returned)
        domains = [f"{label} = {_record(d, self.value)}" for d, label in self.domains.items()]
        directions = [f"direction({line.split(':')[0].split(' ')[0]})" for line in arguments[given:]]
        return [*domains, *sizes, *memory, *arguments, *directions, *packings, *steps, *loops, *named, f"return {end}"]

    def named(self) -> Iterator[str]:
        """The names of steps that are no labels, and the order of all if it is another one."""
        mentioned = {step: name for step, name in self.plan.names.items() if step in self.labels}
        told = {s: label for s, label in self.labels.items() if not isinstance(s.op, ops.Input)}
        labels = [s for s, label in told.items() if label == mentioned.get(s) and not _is_counted(label)]
        others = [step for step in mentioned if step not in set(labels)]
        for step in others:
            yield f"name({self.labels[step]}, {mentioned[step]!r})"
        if [*labels, *others] != [*mentioned]:
            yield f"order({', '.join(self.labels[step] for step in mentioned)})"

    def fresh(self, wish: str) -> str:
        """A label that is not taken: the wish if it may be one."""
        plain = "".join(c if c.isalnum() else "_" for c in wish) or "t"
        plain = plain if plain.isidentifier() else f"d{plain}"
        plain = f"{plain}_" if iskeyword(plain) else plain
        numbered = (plain if n == 0 else f"{plain}_{n}" for n in range(len(self.taken) + 1))
        found = next(label for label in numbered if label not in self.taken)
        self.taken.add(found)
        return found

    def domain(self, d: Domain) -> str:
        """The label of a domain, whose line stands above all others."""
        if d not in self.domains:
            for part in (*d.common, *((d.of,) if d.of is not None else ())):
                self.domain(part)
            self.domains[d] = self.fresh(d.name)
        return self.domains[d]

    def value(self, value: object) -> str:
        """What stands in the parentheses of an operation, or of a type."""
        match value:
            case Domain():
                return self.domain(value)
            case Const(real, imag):
                return f"{real}" if not imag else f"({real}) + ({imag}) * im"
            case Equation() | Recurrence():
                return self.held[value]
            case tuple():
                return f"({', '.join(map(self.value, value))}{',' if len(value) == 1 else ''})"
            case _ if dataclasses.is_dataclass(value):
                return _record(value, self.value)
            case _:
                return repr(value)

    def kind(self, step: Step) -> str:
        """`complex[n, m]`."""
        number = "complex" if step.complex else "real"
        return f"{number}[{', '.join(map(self.domain, step.domains))}]" if step.rank else number

    def argument(self, a: Argument) -> str:
        """The line of an argument: an array or a number, a function, or the size of a domain."""
        label = self.fresh(a.name)
        facts = [self.value(a.kind)]
        if label != a.name:
            facts.append(f"called={a.name!r}")
        if a.optional:
            facts.append("optional=True")
        if a.offsets is not None:
            facts.append(f"offsets={self.domain(a.offsets)}")
        if a.made is not None:
            facts.append(f"made={a.made!r}")
        if a.step is None:
            return f"{label} = {'function' if a.callable else 'count'}({', '.join(facts)})"
        self.labels[a.step] = label
        return f"{label}: {self.kind(a.step)} = input({', '.join(facts)})"

    def step(self, step: Step) -> Iterator[str]:
        """The line of a step, after the plan of an equation that it solves, or of a loop that it runs."""
        if step in self.labels:
            return
        for operand in step.operands:
            # a loop may work on slices of what is then never made itself
            yield from self.step(operand)
        if isinstance(step.op, Root | Scan):
            yield from self.plan_within(step.op.equation if isinstance(step.op, Root) else step.op.body)
        label = self.labels[step] = self.fresh(self.names.get(step) or f"t{len(self.labels) + 1}")
        facts = [self.labels[o] for o in step.operands]
        facts += [f"{f.name}={self.value(getattr(step.op, f.name))}" for f in _told(step.op)]
        yield f"{label}: {self.kind(step)} = {step.op.name}({', '.join(facts)})"

    def plan_within(self, held: Equation | Recurrence) -> Iterator[str]:
        """An equation, or a step of a loop, as a plan of its own."""
        if held in self.held:
            return
        label = self.held[held] = self.fresh(held.name)
        about = ", ".join(repr(getattr(held, f.name)) for f in dataclasses.fields(held) if f.name != "plan")
        yield f"@{_HOLDERS[type(held)]}({about})"
        yield f"def {label}():"
        yield from (f"    {line}" for line in _Writer(held.plan).lines())

    def loop(self, loop: Loop) -> Iterator[str]:
        """A loop: the steps of a turn, then what becomes of them."""
        backwards = ", reverse=True" if loop.reverse else ""
        yield f"for {self.domain(loop.block)} in blocks({self.domain(loop.domain)}, {loop.width}{backwards}):"
        for step in loop.body:
            yield from (f"    {line}" for line in self.step(step))
        for inner in loop.inner:
            yield from (f"    {line}" for line in self.loop(inner))
        for m in loop.members:
            does = "keep" if m.kept else "drop"
            assert m.step in self.labels, "the steps that a loop computes are among those of the plan"
            yield f"    {does}({self.labels[m.step]}, {self.labels[m.part]}, axis={m.axis}, slices={m.slices!r})"


def _record(value: Any, spelled: Any) -> str:
    """`Map(params=(…), result=…)`: a class with its fields, but for those that are as usual."""
    facts = []
    for f in dataclasses.fields(value):
        own = getattr(value, f.name)
        if f.init and (f.default is dataclasses.MISSING or own != f.default):
            facts.append(f"{f.name}={spelled(own)}")
    return f"{type(value).__name__}({', '.join(facts)})"


def _told(op: ops.Op) -> list[dataclasses.Field[Any]]:
    """What the text of an operation says; the places of an operation that takes arrays as they are say nothing."""
    return [f for f in dataclasses.fields(op) if f.default is dataclasses.MISSING or getattr(op, f.name) != f.default]


def _is_counted(label: str) -> bool:
    """Whether a label is `t` and a number, which is nobody's name for a step."""
    return label.startswith("t") and label[1:].replace("_", "").isdecimal()


# --- reading --------------------------------------------------------------------------------------------------------


class _Reader:
    def __init__(self) -> None:
        self.builder = Builder()
        self.known: dict[str, object] = {}
        self.arguments: dict[str, Argument] = {}
        self.directions: list[str] = []
        self.sizes: dict[Domain, int] = {}
        self.names: dict[Step, str] = {}
        self.loops: list[Loop] = []
        self.packings: list[Packing] = []
        self.memory: int | None = None
        self.outputs: tuple[Step, ...] = ()
        self.tupled = self.returns = False

    def plan(self, body: ast.FunctionDef) -> Plan:
        """The plan that the lines of a function say."""
        for line in body.body:
            try:
                self.line(line)
            except (PlanTextError, AssertionError, LookupError, TypeError, ValueError, AttributeError) as problem:
                if isinstance(problem, PlanTextError):
                    raise
                raise PlanTextError(f"line {line.lineno - 1} is no step: {ast.unparse(line)}: {problem}") from None
        if not self.returns:
            raise PlanTextError("a plan ends with what it returns: return t1")
        arguments = [a for label, a in self.arguments.items() if label not in self.directions]
        directions = tuple(self.arguments[label] for label in self.directions)
        return Plan(
            tuple(arguments),
            self.outputs,
            self.tupled,
            self.sizes,
            self.names,
            tuple(self.loops),
            tuple(self.packings),
            self.memory,
            directions=directions,
        )

    def line(self, line: ast.stmt) -> None:
        match line:
            case ast.Assign([ast.Name(label)], ast.Call(ast.Name("function" | "count" as what))):
                self.argument(label, line.value, None, callable_=what == "function")
            case ast.Assign([ast.Name(label)], value):
                self.known[label] = self.value(value)
            case ast.AnnAssign(ast.Name(label), kind, ast.Call(ast.Name("input")) as call):
                self.argument(label, call, kind)
            case ast.AnnAssign(ast.Name(label), kind, ast.Call(ast.Name(name), args, facts)):
                self.step(label, kind, OPERATIONS[name], args, facts)
            case ast.Expr(ast.Call(ast.Name(name), args, _)):
                self.fact(name, [self.value(a) for a in args])
            case ast.FunctionDef(label, _, _, [ast.Call(ast.Name("equation" | "recurrence" as holder), about, _)]):
                self.plan_within(label, line, holder, about)
            case ast.For():
                self.loops.append(self.loop(line))
            case ast.Return(value):
                self.returns, self.tupled = True, isinstance(value, ast.Tuple)
                items = value.elts if isinstance(value, ast.Tuple) else [value]
                self.outputs = tuple(self.operand(v) for v in items)
            case _:
                raise PlanTextError(f"line {line.lineno - 1} is no step: {ast.unparse(line)}")

    def fact(self, name: str, values: list[Any]) -> None:
        match name, values:
            case "size", [Domain() as domain, size]:
                self.sizes[domain] = size
            case "memory", [int() as limit]:
                self.memory = limit
            case "name", [Step() as step, str() as own]:
                self.names.pop(step, None)
                self.names[step] = own
            case "order", steps:
                self.names = {step: self.names[step] for step in steps}
            case "pack", [Packing() as packing]:
                self.packings.append(packing)
            case "direction", [Step() as step]:
                self.directions.append(next(label for label, a in self.arguments.items() if a.step is step))
            case _:
                raise PlanTextError(f"{name} says nothing of a plan")

    def argument(self, label: str, call: ast.expr, kind: ast.expr | None, callable_: bool = False) -> None:
        assert isinstance(call, ast.Call), "an argument says of which type it is"
        told = {str(f.arg): self.value(f.value) for f in call.keywords}
        name = told.pop("called", label)
        step = None
        if kind is not None:
            domains, number = self.kind(kind)
            step = self.known[label] = self.builder.step(ops.Input(name), (), domains, number)
        self.arguments[label] = Argument(name, self.value(call.args[0]), callable_, step, **told)

    def kind(self, kind: ast.expr) -> tuple[tuple[Domain, ...], bool]:
        match kind:
            case ast.Name(number):
                return (), number == "complex"
            case ast.Subscript(ast.Name(number), ast.Tuple(items)):
                return tuple(self.value(d) for d in items), number == "complex"
            case ast.Subscript(ast.Name(number), item):
                return (self.value(item),), number == "complex"
        raise PlanTextError(f"{ast.unparse(kind)} is no type of an array")

    def operand(self, value: ast.expr | None) -> Step:
        assert isinstance(value, ast.Name), "operands are named"
        step = self.known[value.id]
        assert isinstance(step, Step), "a step"
        return step

    def step(
        self, label: str, kind: ast.expr, op: type[ops.Op], args: Sequence[ast.expr], facts: Sequence[ast.keyword]
    ) -> None:
        domains, number = self.kind(kind)
        numbers = {f.name for f in dataclasses.fields(op) if "Const" in str(f.type)}
        told = {str(f.arg): self.value(f.value, as_number=f.arg in numbers) for f in facts}
        step = self.builder.step(op(**told), tuple(map(self.operand, args)), domains, number)
        self.known[label] = step
        if not _is_counted(label):
            self.names[step] = label

    def plan_within(self, label: str, body: ast.FunctionDef, holder: str, about: Sequence[ast.expr]) -> None:
        kind = next(kind for kind, name in _HOLDERS.items() if name == holder)
        told = [f.name for f in dataclasses.fields(kind) if f.name != "plan"]
        self.known[label] = kind(plan=_Reader().plan(body), **dict(zip(told, map(self.value, about), strict=True)))

    def loop(self, line: ast.For) -> Loop:
        match line.target, line.iter:
            case ast.Name(label), ast.Call(ast.Name("blocks"), [domain, width], backwards):
                block = self.known[label]
            case _:
                raise PlanTextError(f"line {line.lineno - 1} is no loop")
        assert isinstance(block, Domain), "a loop is over a domain"
        members: list[Member] = []
        inner: list[Loop] = []
        outer, self.builder = self.builder, Builder()
        for below in line.body:
            match below:
                case ast.For():
                    inner.append(self.loop(below))
                case ast.Expr(ast.Call(ast.Name("keep" | "drop" as what), [step, part], facts)):
                    told = {str(f.arg): self.value(f.value) for f in facts}
                    whole, piece = self.operand(step), self.operand(part)
                    members.append(Member(whole, told["axis"], told["slices"], piece, what == "keep"))
                case _:
                    self.line(below)
        self.builder = outer
        return Loop(self.value(domain), self.value(width), block, tuple(members), tuple(inner), bool(backwards))

    def value(self, value: ast.expr | None, as_number: bool = False) -> Any:
        """What an expression says; exact numbers where they stand for numbers of the language."""
        found = self.plain(value)
        return _as_numbers(found) if as_number else found

    def plain(self, value: ast.expr | None) -> Any:
        match value:
            case ast.Constant(found):
                return found
            case ast.Name("im"):
                return Const(Fraction(0), Fraction(1))
            case ast.Name(label):
                return self.known[label]
            case ast.Tuple(items):
                return tuple(map(self.plain, items))
            case ast.UnaryOp(ast.USub(), of):
                return -self.plain(of)
            case ast.BinOp(left, ast.Div(), right):
                return Fraction(self.plain(left), self.plain(right))
            case ast.BinOp(left, ast.Add(), ast.BinOp(right, ast.Mult(), ast.Name("im"))):
                return Const(Fraction(self.plain(left)), Fraction(self.plain(right)))
            case ast.Call(ast.Name(name), [], facts):
                return _made(_RECORDS[name], {str(f.arg): self.plain(f.value) for f in facts})
        raise PlanTextError(f"{ast.unparse(value) if value else 'nothing'} is no value")


def _made(record: Any, facts: Mapping[str, Any]) -> Any:
    numbers = {f.name for f in dataclasses.fields(record) if "Const" in str(f.type)}
    return record(**{name: _as_numbers(v) if name in numbers else v for name, v in facts.items()})


def _as_numbers(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_as_numbers, value))
    return value if isinstance(value, Const | None) else Const(Fraction(value))
