"""Steps that work entry by entry as statements of C++, on doubles and `complex<double>`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from combdiff.arrays import ops
from combdiff.arrays.numbers import as_float, exponent_of
from combdiff.arrays.plan import Step
from combdiff.emit.texts import Text, chained
from combdiff.language.printing.document import ATOM, MAP, PRODUCT, SIGN, SUM
from combdiff.terms.terms import PLACES, Const, times

_LARGEST_POWER = 8  # what is multiplied out, exact also where a complex base is zero
_LONG = 60
_WIDEST = 100
_LETTERS = "xyzuvwabcdfgh"
_FUNCTIONS = frozenset({"exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan", "sqrt", "abs"})
_OTHERS = frozenset({"conj", "real", "imag", "abs2", "sign", "complex"})
# besides names of C++: `i` and `n` are CuPy's own
_RESERVED = (
    _FUNCTIONS | _OTHERS | {"i", "n", "out", "fabs", "norm", "pow", "arg", "complex", "double", "float", "int", "long"}
)
_RESERVED |= {"auto", "bool", "char", "const", "do", "for", "if", "new", "this", "using", "void", "while", "case"}
_RESERVED |= {"short", "signed", "static", "struct", "switch", "union", "else", "enum", "goto", "delete", "template"}
_SHOWN = (ops.View, ops.Roll, ops.Gather, ops.Broadcast, ops.LaidOut)
_INDICES = (ops.Range, ops.Place, ops.Position, ops.Opposite, ops.Occurring)


def is_written(step: Step) -> bool:
    """Whether an array is computed entry by entry, by what C++ says as NumPy does."""
    match step.op:
        case ops.Add() | ops.Mul() | ops.Conj():
            return bool(step.rank)
        case ops.Power():
            n = exponent_of(step.operands[1])
            whole = n is not None and ((n.denominator == 1 and abs(n) <= _LARGEST_POWER) or abs(n) == Fraction(1, 2))
            return bool(step.rank) and (whole or not step.complex)
        case ops.Call(function):
            return bool(step.rank) and function in _FUNCTIONS | _OTHERS
        case ops.Where(_, modulo, _):
            return bool(step.rank) and modulo is None
        case _:
            return False


class KernelText:
    """The statements for `members`, whose last is the result.

    `names` are those that the user gave, `lists` the arguments that are lists of offsets.
    """

    def __init__(self, members: Sequence[Step], names: Mapping[Step, str], lists: Collection[Step] = ()) -> None:
        self._inside = set(members)
        self._lists = lists
        self._given = names
        self._uses = Counter(o for step in members for o in step.operands)
        self._taken = set(_RESERVED)
        arguments = {o.op.argument for o in self._uses if isinstance(o.op, ops.Input)}
        self._letters = [letter for letter in _LETTERS if letter not in arguments]
        self._texts: dict[Step, Text] = {}
        self._operands: dict[tuple[Step, tuple[int, ...]], str] = {}
        self._lines: list[str] = []
        for step in members:
            text = self._written(step)
            kept = step is not members[-1] and (self._uses[step] > 1 or step in names)
            self._texts[step] = self._local(step, text) if kept else text
        self.statements = (*self._lines, _wrapped("out = ", self._texts[members[-1]]))

    @property
    def operands(self) -> tuple[Step, ...]:
        """What the kernel is called with."""
        return tuple(step for step, _ in self._operands)

    @property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """Where the axes of each operand lie among those of the result."""
        return tuple(at for _, at in self._operands)

    @property
    def parameters(self) -> str:
        """The operands with their types: `float64 x, complex128 z`."""
        return ", ".join(f"{self._dtype(step)} {name}" for (step, _), name in self._operands.items())

    def _dtype(self, step: Step) -> str:
        return "int64" if self._is_index(step) else "complex128" if step.complex else "float64"

    def _is_index(self, step: Step) -> bool:
        """Whether an array holds integers: places in other arrays, or offsets."""
        if isinstance(step.op, _SHOWN):
            return self._is_index(step.operands[0])
        places = isinstance(step.op, ops.Reduced) and step.op.kind in PLACES
        return places or isinstance(step.op, _INDICES) or step in self._lists

    # --- names ------------------------------------------------------------------------------------------------------

    def _fresh(self, wishes: Sequence[str]) -> str:
        """The first of the wishes that may be a name in C++ and is not taken."""
        numbered = [f"t{n}" for n in range(1, len(self._taken) + 2)]
        name = next(w for w in (*wishes, *numbered) if w not in self._taken and _is_name(w))
        self._taken.add(name)
        return name

    def _wishes(self, step: Step) -> list[str]:
        given = [self._given[step]] if step in self._given else []
        return [*given, step.op.argument] if isinstance(step.op, ops.Input) else given

    def _local(self, step: Step, text: Text) -> Text:
        if text.level == ATOM and text.code.isidentifier():
            return text
        name = self._fresh(self._wishes(step))
        self._lines.append(_wrapped(f"{'complex<double>' if step.complex else 'double'} {name} = ", text))
        return Text(name, ATOM)

    def _operand(self, step: Step, at: Sequence[int]) -> Text:
        """An operand: a number, a parameter, or what was computed before."""
        match step.op:
            case ops.Constant(value):
                return _number(value)
            case ops.Position(_, constant, None, None) if not step.operands:
                return _double(Fraction(constant))
        if step not in self._inside:
            key = (step, tuple(at))
            if key not in self._operands:
                self._operands[key] = self._fresh([*self._wishes(step), *self._letters])
            name = self._operands[key]
            return Text(f"double({name})" if self._is_index(step) else name, ATOM)
        if len(self._texts[step].code) > _LONG:
            self._texts[step] = self._local(step, self._texts[step])
        return self._texts[step]

    def _named(self, step: Step, at: Sequence[int]) -> Text:
        """An operand whose text is written more than once."""
        text = self._operand(step, at)
        if step in self._inside and not text.code.isidentifier():
            text = self._texts[step] = self._local(step, text)
        return text

    # --- operations -------------------------------------------------------------------------------------------------

    def _written(self, step: Step) -> Text:
        match step.op:
            case ops.Add():
                return self._add(step, step.op)
            case ops.Mul(coefficient) as op:
                return self._product(coefficient, list(zip(step.operands, op.places, strict=True)))
            case ops.Power():
                return self._power(step, step.op)
            case ops.Conj():
                return Text(f"conj({self._operand(step.operands[0], range(step.rank)).code})", ATOM)
            case ops.Call():
                return self._call(step, step.op)
            case ops.Where():
                return self._where(step, step.op)
        raise AssertionError("only these are computed entry by entry")

    def _add(self, step: Step, op: ops.Add) -> Text:
        parts = []
        for c, operand, at in zip(op.coefficients, step.operands, op.places, strict=True):
            negative = not c.imag and c.real < 0
            text = self._product(Const(-c.real) if negative else c, [(operand, at)])
            parts.append((negative, text.at(PRODUCT)))
        return chained(parts)

    def _product(self, c: Const, factors: Sequence[tuple[Step, Sequence[int]]]) -> Text:
        above, below = [], []
        for operand, at in factors:
            if isinstance(operand.op, ops.Constant):
                c = times(c, operand.op.value)
                continue
            op = operand.op if operand in self._inside else None
            n = exponent_of(operand.operands[1]) if isinstance(op, ops.Power) else None
            if isinstance(op, ops.Power) and n is not None and n < 0 and not self._texts[operand].code.isidentifier():
                below.append(self._raised(operand, op, -n).at(SIGN))
            else:
                above.append(self._operand(operand, at))
        negative = not c.imag and c.real < 0
        size = Const(-c.real) if negative else c
        if size.imag:
            above.insert(0, _number(size))
        else:
            if size.real.numerator != 1 or not above:
                above.insert(0, _number(Const(Fraction(size.real.numerator))))
            if size.real.denominator != 1:
                below.append(_number(Const(Fraction(size.real.denominator))).code)
        if len(above) == 1 and not below and not negative:
            return above[0]
        code = " * ".join(t.at(PRODUCT) for t in above)
        code += "".join(f" / {t}" for t in below)
        return Text(f"-{code}" if negative else code, PRODUCT)

    def _raised(self, step: Step, op: ops.Power, n: Fraction) -> Text:
        """The base of a power, multiplied by itself, or its root."""
        at = op.places[0]
        if n == 1:
            return self._operand(step.operands[0], at)
        if n.denominator == 1 and n <= _LARGEST_POWER:
            base = self._named(step.operands[0], at).at(SIGN)
            return Text(" * ".join([base] * n.numerator), PRODUCT)
        base = self._operand(step.operands[0], at).code
        base = f"complex<double>({base})" if step.complex and not step.operands[0].complex else base
        return Text(f"sqrt({base})" if n == Fraction(1, 2) else f"pow({base}, {_double(n).code})", ATOM)

    def _power(self, step: Step, op: ops.Power) -> Text:
        n = exponent_of(step.operands[1])
        if n is None:
            base, exponent = (self._operand(o, at).code for o, at in zip(step.operands, op.places, strict=True))
            return Text(f"pow({base}, {exponent})", ATOM)
        text = self._raised(step, op, abs(n))
        return text if n > 0 else Text(f"1.0 / {text.at(SIGN)}", PRODUCT)

    def _call(self, step: Step, op: ops.Call) -> Text:
        name, (at,) = op.function, op.places
        z = step.operands[0]
        match name, z.complex:
            case "abs2", False:
                square = self._named(z, at).at(SIGN)
                return Text(f"{square} * {square}", PRODUCT)
            case "complex", _:
                return Text(f"complex<double>({self._operand(z, at).code})", ATOM)
            case (("conj" | "real"), False):
                return self._operand(z, at)
            case "imag", False:
                return Text("0.0", ATOM)
            case "sign", False:
                x = self._named(z, at).at(ATOM)
                return Text(f"{x} > 0.0 ? 1.0 : {x} < 0.0 ? -1.0 : {x}", MAP)
            case "sign", True:
                x = self._named(z, at).at(ATOM)
                return Text(f"abs({x}) > 0.0 ? {x} / abs({x}) : {x}", MAP)
            case _:
                spelled = "norm" if name == "abs2" else "fabs" if name == "abs" and not z.complex else name
                return Text(f"{spelled}({self._operand(z, at).code})", ATOM)

    def _where(self, step: Step, op: ops.Where) -> Text:
        left, right, *values = (self._operand(o, at) for o, at in zip(step.operands, op.places, strict=True))
        real = [not o.complex for o in step.operands[2:]]
        if op.otherwise is not None:
            values, real = [*values, _number(op.otherwise)], [*real, True]
        if step.complex:
            cast = (Text(f"complex<double>({v.code})", ATOM) if r else v for v, r in zip(values, real, strict=True))
            values = [*cast]
        body, other = values
        return Text(f"{left.at(SUM)} {op.relation} {right.at(SUM)} ? {body.at(SUM)} : {other.at(SUM)}", MAP)


def _number(c: Const) -> Text:
    """A number with a point, without which C++ would divide integers."""
    real, imag = (_double(part) for part in (c.real, c.imag))
    return Text(f"complex<double>({real.code}, {imag.code})", ATOM) if c.imag else real


def _double(value: Fraction) -> Text:
    if value.denominator != 1 and max(abs(value.numerator), value.denominator) < 10**15:
        return Text(f"{value.numerator}.0 / {value.denominator}.0", PRODUCT)
    return Text(repr(as_float(value)), SIGN if value < 0 else ATOM)


def _is_name(wish: str) -> bool:
    return wish.isascii() and wish.isidentifier() and not wish.startswith("_") and len(wish) <= 12


def _wrapped(prefix: str, text: Text) -> str:
    """A statement; a long sum goes on a line a term."""
    if len(prefix) + len(text.code) <= _WIDEST or not text.terms:
        return prefix + text.code
    return "\n    ".join([prefix + text.terms[0], *text.terms[1:]])
