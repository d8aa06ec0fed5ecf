"""One step of a plan as an expression of Python.

`Expressions` is told how to write the operands (`refer`) and the sizes (`extent`); it decides nothing but the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from combdiff.arrays import ops
from combdiff.arrays.lower.arguments import grouped
from combdiff.arrays.numbers import exponent_of, is_plain
from combdiff.arrays.passes.overwriting import LARGE
from combdiff.arrays.plan import Argument, Step
from combdiff.emit.names import words
from combdiff.emit.numbers_in_text import NumbersInText
from combdiff.emit.packed_text import PackedProducts
from combdiff.emit.products import Products
from combdiff.emit.solvers import solver_of
from combdiff.emit.texts import ATOM, CHOICE, POWER, PRODUCT, SUM, UNARY, Text, chained, filled, number_text, signed
from combdiff.errors import UnsupportedError
from combdiff.terms.terms import ONE, Const
from combdiff.terms.types import Domain, Index

_INDEXING = (
    ops.Position,
    ops.Opposite,
    ops.Pick,
    ops.Permute,
    ops.Flip,
    ops.Roll,
    ops.Diagonal,
    ops.Gather,
)


class Expressions(Products, PackedProducts, NumbersInText):
    """Writes steps as text in the spelling of one array library."""

    def text(self, step: Step) -> Text:
        """The expression that computes `step` from its operands."""
        cast = self._cast(step) if self.spelling.to_complex else ()
        read = tuple(o for o in step.operands if self._is_integer(o)) if self.spelling.to_real else ()
        read = () if isinstance(step.op, (*_INDEXING, ops.Root)) else read  # an equation is given lists of offsets
        writer = self
        if cast or read:
            writer = Expressions(self.plan, self.spelling, self._casting(cast, read), self.extent, self.called)
        write: Callable[[Step, Any], Text] = getattr(writer, f"_{step.op.name}")
        return write(step, step.op)

    def _cast(self, step: Step) -> tuple[Step, ...]:
        """The real operands that a library which does not mix real with complex must be given as complex ones."""
        reals = tuple(o for o in step.operands if not o.complex)
        match step.op:
            case ops.Contraction() | ops.Solve() | ops.Scatter() | ops.Packed() if step.complex:
                return reals
            case ops.Power() | ops.Call() if step.complex and len(reals) == len(step.operands):
                return reals[:1]
            case _:
                return ()

    def _is_integer(self, step: Step) -> bool:
        """Whether an array holds offsets, which are integers."""
        if isinstance(step.op, ops.Input):
            return any(a.offsets is not None and a.step is step for a in self.plan.arguments)
        return isinstance(step.op, _INDEXING) and bool(step.operands) and self._is_integer(step.operands[0])

    def _casting(self, cast: tuple[Step, ...], read: tuple[Step, ...]) -> Callable[[Step], Text]:
        def refer(step: Step) -> Text:
            text = self.refer(step)
            text = filled(self.spelling.to_real, text) if step in read else text
            return Text(self.spelling.to_complex.format(text.at(SUM)), SUM) if step in cast else text

        return refer

    # --- numbers, sizes, indices ------------------------------------------------------------------------------------

    def _const(self, step: Step, op: ops.Constant) -> Text:
        return number_text(op.value)

    def _named(self, step: Step, op: ops.Named) -> Text:
        return Text(self.spelling.functions[op.of], ATOM)

    def _array(self, step: Step, op: ops.AsArray) -> Text:
        return self.as_array(step.operands[0], self.refer(step.operands[0]))

    def _size(self, step: Step, op: ops.Size) -> Text:
        return Text(self.extent(op.domain), ATOM)

    def _range(self, step: Step, op: ops.Range) -> Text:
        return Text(self.spelling.arange.format(self._bounds(op.domain)), ATOM)

    def _numbers(self, step: Step, op: ops.Numbers) -> Text:
        return Text(self.spelling.arange_float.format(self._bounds(op.domain)), ATOM)

    def _place(self, step: Step, op: ops.Place) -> Text:
        return Text(self.spelling.arange.format(self.extent(op.domain)), ATOM)

    def _bounds(self, domain: Domain) -> str:
        if domain.lower and domain.upper is not None:
            return f"{domain.lower}, {domain.upper + 1}"
        n = self.extent(domain)
        return f"-({n} // 2), {n} // 2 + 1" if domain.symmetric else n

    def _position(self, step: Step, op: ops.Position) -> Text:
        texts = self.operands(step, op.places)
        parts = [signed(Fraction(c), text) for c, text in zip(op.coefficients, texts, strict=True)]
        if op.shift is not None:
            parts.append(("+", f"{self.extent(op.shift)} // 2"))
        if op.constant or not parts:
            parts.append(("-" if op.constant < 0 else "+", str(abs(op.constant))))
        text = chained(parts)
        return Text(f"{text.at(ATOM)} % {self.extent(op.modulo)}", PRODUCT) if op.modulo is not None else text

    def _opposite(self, step: Step, op: ops.Opposite) -> Text:
        offsets = self.atom(step.operands[0])
        same = f"({offsets}[:, None] == -{offsets})" + (".all(axis=2)" if step.operands[0].rank > 1 else "")
        if self.spelling.to_real:
            places = Text(self.spelling.arange.format(self.extent(step.domains[0])), ATOM)
            chosen = filled(self.spelling.where, Text(same, ATOM), places, Text("0", ATOM))
            return Text(f"{chosen.code}.sum(axis=1)", ATOM)
        return Text(f"{same} @ {self.spelling.arange.format(self.extent(step.domains[0]))}", PRODUCT)

    # --- views and gathers ------------------------------------------------------------------------------------------

    def _pick(self, step: Step, op: ops.Pick) -> Text:
        marks = [":"] * step.operands[0].rank
        for axis, constant, domain in op.fixed:
            marks[axis] = self._fixed(constant, domain)
        return self._indexed(step.operands[0], marks)

    def _fixed(self, constant: int, domain: Domain) -> str:
        if domain.lower is not None:
            return str(constant - domain.lower)
        if domain.symmetric:
            sign = "-" if constant < 0 else "+"
            return f"{self.extent(domain)} // 2" + (f" {sign} {abs(constant)}" if constant else "")
        return f"{constant} % {self.extent(domain)}" if domain.periodic and constant else str(constant)

    def _indexed(self, array: Step, marks: list[str]) -> Text:
        while len(marks) > 1 and marks[-1] == ":":
            marks.pop()
        return Text(f"{self.atom(array)}[{', '.join(marks)}]", ATOM)

    def _flip(self, step: Step, op: ops.Flip) -> Text:
        if self.spelling.flip:
            return Text(self.spelling.flip.format(self.refer(step.operands[0]).code, op.axis), ATOM)
        return self._indexed(step.operands[0], [":"] * op.axis + ["::-1"])

    def _roll(self, step: Step, op: ops.Roll) -> Text:
        return Text(self.spelling.roll.format(self.refer(step.operands[0]).code, op.by, op.axis), ATOM)

    def _diagonal(self, step: Step, op: ops.Diagonal) -> Text:
        return filled(self.spelling.diagonal, self.refer(step.operands[0]))

    def _gather(self, step: Step, op: ops.Gather) -> Text:
        rank = op.rank
        places = iter(step.operands[1:])
        marks = [":" if slot is None else self.aligned(next(places), slot, rank).code for slot in op.slots]
        if not self.spelling.points or (len(step.operands) == 2 and step.operands[1].rank == 1):
            return self._indexed(step.operands[0], marks)
        text = Text(self.spelling.points.format(self.atom(step.operands[0]), ", ".join(marks)), ATOM)
        before = op.gathered[0] if op.neighbours else 0
        order = (*range(rank, rank + before), *range(rank), *range(rank + before, step.rank))
        return self.transposed(text, order)

    def _permute(self, step: Step, op: ops.Permute) -> Text:
        return self.transposed(self.refer(step.operands[0]), op.order)

    def _laid(self, step: Step, op: ops.LaidOut) -> Text:
        return filled(self.spelling.laid, self.transposed(self.refer(step.operands[0]), op.order))

    def _broadcast(self, step: Step, op: ops.Broadcast) -> Text:
        operand = step.operands[0]
        text = self.as_array(operand, self.floating(operand, self.aligned(operand, op.places, step.rank)))
        return Text(self.spelling.broadcast.format(text.code, self.shape(step.domains)), ATOM)

    def _item(self, step: Step, op: ops.Item) -> Text:
        return Text(f"{self.atom(step.operands[0])}[{op.number}]", ATOM)

    # --- equations --------------------------------------------------------------------------------------------------

    def _refuse_equations(self) -> None:
        if not self.spelling.solve:
            raise UnsupportedError(
                f"the result solves equations, which is not done in {self.spelling.name}",
                remedy='choose another backend, such as "numpy"',
            )

    def _solve(self, step: Step, op: ops.Solve) -> Text:
        self._refuse_equations()
        *matrices, k = (self.refer(o) for o in step.operands)
        if len(matrices) > 1:
            return Text(f"solve_of_parts({', '.join(t.code for t in (*matrices, k))})", ATOM)
        matrix = matrices[0]
        if step.rank == 1:
            return Text(self.spelling.solve.format(matrix.code, k.code), ATOM)
        shape = [self.extent(d) for d in step.domains]
        size = " * ".join(shape)
        flat = self.spelling.solve.format(f"{matrix.at(ATOM)}.reshape({size}, {size})", f"{k.at(ATOM)}.ravel()")
        return Text(f"{flat}.reshape({', '.join(shape)})", ATOM)

    def _root(self, step: Step, op: ops.Root) -> Text:
        self._refuse_equations()
        solved = op.equation
        captured = dict(zip(solved.captured, (self.refer(o).code for o in step.operands), strict=True))
        others = [a for a in solved.plan.arguments if a.name != solved.unknown and not a.optional]
        given = [self._given(a, captured) for a in others]
        equation = self.called.equations[solved]
        mentioned = words(" ".join([equation, *given]))
        x = next(n for n in ("x", "y", "z", "u", "v", "w", *(f"x{m}" for m in range(2, 1 << 20))) if n not in mentioned)
        # the unknown is the first argument of the residual
        call = f"{equation}({', '.join([x, *given])})"
        zeros = self.spelling.zeros_complex if step.complex else self.spelling.zeros
        number = self.spelling.number_complex.format("0j") if step.complex else self.spelling.number.format("0.0")
        zero = zeros.format(self.shape(step.domains)) if step.rank else number
        start = self.called.arguments[solved.start]
        return Text(f"{solver_of(step)}(lambda {x}: {call}, {zero} if {start} is None else {start})", ATOM)

    def _given(self, argument: Argument, captured: Mapping[str, str]) -> str:
        """What an equation is given for one of its arguments."""
        if argument.name in captured:
            return captured[argument.name]
        if isinstance(argument.kind, Index) and argument.kind.domain is not None:
            return self.extent(argument.kind.domain)
        return self.called.arguments[argument.name]

    # --- entry by entry ---------------------------------------------------------------------------------------------

    def _conj(self, step: Step, op: ops.Conj) -> Text:
        operand = step.operands[0]
        if not step.rank:
            return Text(self.spelling.scalar_conj.format(self.refer(operand).code), ATOM)
        return Text(self.spelling.conj.format(self.atom(operand)), ATOM)

    def _add(self, step: Step, op: ops.Add) -> Text:
        parts = []
        for c, operand, at in zip(op.coefficients, step.operands, op.places, strict=True):
            negative = not c.imag and c.real < 0
            size = Const(-c.real) if negative else c
            text = self._times(size, [(operand, at)], step.rank)
            parts.append(("-" if negative else "+", text.at(PRODUCT)))
        first = step.operands[0]
        imaginary = op.coefficients[0].imag or (isinstance(first.op, ops.Constant) and first.op.value.imag)
        if self.spelling.scalar_complex and not step.rank and is_plain(first) and imaginary:
            parts = [*parts[1:], parts[0]]  # see _times
        return chained(parts)

    def _mul(self, step: Step, op: ops.Mul) -> Text:
        return self._times(op.coefficient, list(zip(step.operands, op.places, strict=True)), step.rank)

    def _times(self, c: Const, factors: Sequence[tuple[Step, Sequence[int]]], rank: int) -> Text:
        """A product: the number, numbers, arrays, small ones before large ones, then what they are divided by."""
        above: list[Text] = []
        below: list[Text] = []
        factors = [(o, at) for o, at in factors if o.op != ops.Constant(ONE)]
        whole = max((self.plan.entries(o) for o, _ in factors), default=1)
        for operand, at in sorted(factors, key=lambda pair: self._turn(pair[0], whole)):
            inverse = self.inverse(operand, at, rank)
            if inverse is None:
                above.append(self.aligned(operand, at, rank))
            else:
                below.append(inverse)
        negative = not c.imag and c.real < 0
        size = Const(-c.real) if negative else c
        if size.imag and not rank and self.spelling.scalar_complex and not all(is_plain(o) for o, _ in factors):
            # Python's complex numbers make Python's of the library's scalars behind them, which raise instead of nan
            lone = Text(self.spelling.scalar_complex.format(number_text(size).code), ATOM)
            above = [*above, number_text(size)] if above else [lone]
        elif size.imag or max(size.real.numerator, size.real.denominator) >= 10**15:
            above.insert(0, number_text(size))
        else:
            if size.real.numerator != 1 or not above:
                above.insert(0, Text(str(size.real.numerator), ATOM))
            if size.real.denominator != 1:
                below.append(Text(str(size.real.denominator), ATOM))
        if len(above) == 1 and not below and not negative:
            return above[0]
        scaled = len(above) - 1 if self._scales(factors, above, below) else None
        code = " * ".join(t.at(PRODUCT if n in (0, scaled) else UNARY) for n, t in enumerate(above))
        code += "".join(f" / {t.at(UNARY)}" for t in below)
        return Text(f"-{code}", PRODUCT) if negative else Text(code, PRODUCT)

    def _turn(self, factor: Step, whole: int) -> int:
        entries = self.plan.entries(factor)
        return 0 if not factor.rank else 1 if 8 * whole >= LARGE and 2 * entries <= whole else 2

    def _scales(self, factors: list[tuple[Step, Sequence[int]]], above: list[Text], below: list[Text]) -> bool:
        """Whether `4 * F @ C` may stand for `4 * (F @ C)`: one matrix product, whose first factor is no larger."""
        arrays = [operand for operand, _ in factors if operand.rank]
        if len(arrays) != 1 or below or not isinstance(arrays[0].op, ops.Tensordot) or " @ " not in above[-1].code:
            return False
        left, right = arrays[0].operands
        return left.rank == right.rank and self.plan.entries(left) <= self.plan.entries(arrays[0])

    def _power(self, step: Step, op: ops.Power) -> Text:
        base, exponent = self.operands(step, op.places)
        n = exponent_of(step.operands[1])
        if n is not None and n.denominator == 1:
            size = self.whole_power(base, abs(n.numerator), step)
            return size if n > 0 else Text(f"1 / {size.at(UNARY)}", PRODUCT)
        if n is not None and abs(n) == Fraction(1, 2):
            root = self._function("sqrt", step.complex, self.as_array(step.operands[0], base))
            return root if n > 0 else Text(f"1 / {root.code}", PRODUCT)
        template = self.spelling.power_complex if step.complex else self.spelling.power
        base = self.floating(step.operands[0], base)
        return filled(template, self.as_array(step.operands[0], base), exponent)

    def _call(self, step: Step, op: ops.Call) -> Text:
        operands = self.operands(step, op.places)
        of_complex = step.operands[0].complex
        if op.function == "abs2":
            return self._abs2(step.operands[0], operands[0])
        return self._function(op.function, of_complex, self.as_array(step.operands[0], operands[0]))

    def _function(self, name: str, of_complex: bool, operand: Text) -> Text:
        special = self.spelling.branched if of_complex else self.spelling.of_real
        table = special if name in special else self.spelling.functions
        if name not in table:
            raise UnsupportedError(
                f"the function {name} has no spelling in {self.spelling.name}",
                remedy="write the function with others that the library has, or choose another backend",
            )
        return filled(table[name], operand)

    def _abs2(self, operand: Step, text: Text) -> Text:
        if not operand.complex:
            return Text(f"{text.at(ATOM)}**2", POWER)
        conjugate = (self.spelling.conj if operand.rank else self.spelling.scalar_conj).format(text.at(ATOM))
        return Text(f"({conjugate} * {text.at(UNARY)}).real", ATOM)

    def _where(self, step: Step, op: ops.Where) -> Text:
        left, right, body = self.operands(step, op.places)
        known = is_plain(step.operands[0]) and is_plain(step.operands[1])
        as_choice = not step.rank and (self.spelling.eager or known)
        if not as_choice:
            body = self.as_array(step.operands[2], body)
            left = self.as_array(step.operands[0], left) if known else left
        condition = f"{left.at(SUM)} {op.relation} {right.at(SUM)}"
        if op.modulo is not None:
            condition = f"({left.at(SUM)} - {right.at(PRODUCT)}) % {self.extent(op.modulo)} == 0"
        if as_choice:
            choice = "{0}" if is_plain(step.operands[2]) else self.spelling.choice
            number = choice.format(op.otherwise.real)
            return Text(f"{body.at(SUM)} if {condition} else {number}", CHOICE)
        return Text(self.spelling.where.format(condition, body.code, op.otherwise.real), ATOM)

    def scattered(self, step: Step, op: ops.Scatter, values: Text, name: str) -> list[str]:
        """The statements that put `values` into a fresh array of zeros."""
        if not self.spelling.put:
            return self._masked(step, op, name)
        template = self.spelling.zeros_complex if step.complex else self.spelling.zeros
        alone = self.spelling.place if op.adds else "{0}"
        index = ", ".join(
            self.aligned(o, p, op.rank).code if o.rank else alone.format(self.refer(o).code)
            for o, p in zip(step.operands[1:], op.places, strict=True)
        )
        shape = self.shape(step.domains) if step.rank > 1 else self.extent(step.domains[0])
        lines = [f"{name} = {template.format(shape)}"]
        template = self.spelling.add_at if op.adds else self.spelling.put
        where = f"({index},)" if len(op.places) == 1 else f"({index})"
        return [*lines, template.format(name, where, values.code, index)]

    def _masked(self, step: Step, op: ops.Scatter, name: str) -> list[str]:
        """A scatter where nothing is written in place: values stand where an index has its place, and are summed."""
        places, rank, own = op.places, op.rank, 0
        while own < rank and places[own : own + 1] == ((own,),) and _counts(step.operands[own + 1]):
            own += 1
        if not set(range(own)) <= {axis for p in places[own:] for axis in p}:
            own = 0
        new = len(places) - own
        whole = rank + new + step.rank - len(places)
        masks = []
        for n, (place, p) in enumerate(zip(step.operands[own + 1 :], places[own:], strict=True)):
            axis = Text(self.spelling.arange.format(self.extent(step.domains[own + n])), ATOM)
            marks = [":" if m == rank + n else "None" for m in range(rank + n, whole)]
            across = f"{axis.code}[{', '.join(marks)}]" if len(marks) > 1 else axis.code
            masks.append(f"{self.aligned(place, p, whole).at(SUM)} == {across}")
        mask = masks[0] if len(masks) == 1 else " & ".join(f"({m})" for m in masks)
        values = self.aligned(step.operands[0], [axis if axis < rank else axis + new for axis in op.at], whole)
        text = self.spelling.where.format(mask, self.as_array(step.operands[0], values).code, 0)
        summed = ", ".join(map(str, range(own, rank)))
        return [f"{name} = {text}" + (f".sum(axis=({summed},))" if summed else "")]

    def scatter_values(self, step: Step, op: ops.Scatter) -> Text:
        """What a scatter puts down, its axes aligned to the index arrays and then to the rest."""
        whole = op.rank + step.rank - len(op.places)
        return self.as_array(step.operands[0], self.aligned(step.operands[0], op.at, whole))

    def _kernel(self, step: Step, op: ops.Fused) -> Text:
        return Text(f"{op.function}({', '.join(t.code for t in self.operands(step, op.places))})", ATOM)

    def _unknown(self, step: Step, op: ops.Unknown) -> Text:
        kind = next(a.kind for a in self.plan.arguments if a.name == op.function)
        operands = [self.refer(o) for o in step.operands] if op.arrays else self.operands(step, op.places)
        given = [t.code for t in map(self.as_array, step.operands, operands)]
        return Text(f"{self.called.arguments[op.function]}({grouped(kind, given)})", ATOM)


def _counts(step: Step) -> bool:
    """Whether a step says where the values of an index lie."""
    return isinstance(step.op, ops.Range | ops.Place)
