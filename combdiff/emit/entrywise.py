"""What is computed entry by entry as text: numbers, sums, products, powers, functions, choices."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from combdiff.arrays import ops
from combdiff.arrays.lower.arguments import grouped
from combdiff.arrays.numbers import HIGHEST_OF_INTEGERS, exponent_of, is_plain
from combdiff.arrays.passes.overwriting import LARGE
from combdiff.arrays.plan import Step
from combdiff.emit.solvers.chosen import is_every_power
from combdiff.emit.texts import Text, Writer, chained, filled, number_text
from combdiff.errors import Mention, UnsupportedError
from combdiff.language.printing.document import ATOM, MAP, POSTFIX, PRODUCT, SIGN, SUM
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import ONE, Const

_MANY = 256  # numbers, of which a power takes ten times as long as products


def constant(w: Writer, step: Step, op: ops.Constant) -> Text:
    return number_text(op.value)


def named(w: Writer, step: Step, op: ops.Named) -> Text:
    return Text(w.spelling.functions[op.of], ATOM)


def number_of_the_library(w: Writer, step: Step, op: ops.AsArray) -> Text:
    return w.as_array(step.operands[0], w.refer(step.operands[0]))


def conjugate(w: Writer, step: Step, op: ops.Conj) -> Text:
    operand = step.operands[0]
    if not step.rank:
        return Text(w.spelling.scalar_conj.format(w.refer(operand).code), ATOM)
    return Text(w.spelling.conj.format(w.atom(operand)), ATOM)


def sum_of_terms(w: Writer, step: Step, op: ops.Add) -> Text:
    parts = []
    for c, operand, at in zip(op.coefficients, step.operands, op.places, strict=True):
        negative = not c.imag and c.real < 0
        size = Const(-c.real) if negative else c
        text = times(w, size, [(operand, at)], step.rank)
        parts.append((negative, text.at(PRODUCT)))
    first = step.operands[0]
    imaginary = op.coefficients[0].imag or (isinstance(first.op, ops.Constant) and first.op.value.imag)
    if w.spelling.scalar_complex and not step.rank and is_plain(first) and imaginary:
        parts = [*parts[1:], parts[0]]  # see `times`
    return chained(parts)


def product_of_factors(w: Writer, step: Step, op: ops.Mul) -> Text:
    return times(w, op.coefficient, list(zip(step.operands, op.places, strict=True)), step.rank)


def times(w: Writer, c: Const, factors: Sequence[tuple[Step, Sequence[int]]], rank: int) -> Text:
    """A product: the number, numbers, arrays, small ones before large ones, then what they are divided by."""
    above: list[Text] = []
    below: list[Text] = []
    factors = [(o, at) for o, at in factors if o.op != ops.Constant(ONE)]
    whole = max((w.plan.entries(o) for o, _ in factors), default=1)
    for operand, at in sorted(factors, key=lambda pair: _turn(w, pair[0], whole)):
        divisor = inverse(w, operand, at, rank)
        if divisor is None:
            above.append(w.aligned(operand, at, rank))
        else:
            below.append(divisor)
    negative = not c.imag and c.real < 0
    size = Const(-c.real) if negative else c
    if size.imag and not rank and w.spelling.scalar_complex and not all(is_plain(o) for o, _ in factors):
        # Python's complex numbers make Python's of the library's scalars behind them, which raise instead of nan
        lone = Text(w.spelling.scalar_complex.format(number_text(size).code), ATOM)
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
    scaled = len(above) - 1 if _scales(w, size, factors, above, below) else None
    # Python reads -A @ x as (-A) @ x, which copies A
    alone = negative and len(above) == 1 and " @ " in above[0].code
    bare = {scaled} if alone else {0, scaled}
    code = " * ".join(t.at(PRODUCT if n in bare else SIGN) for n, t in enumerate(above))
    code += "".join(f" / {t.at(SIGN)}" for t in below)
    return Text(f"-{code}", PRODUCT) if negative else Text(code, PRODUCT)


def _turn(w: Writer, factor: Step, whole: int) -> int:
    entries = w.plan.entries(factor)
    return 0 if not factor.rank else 1 if 8 * whole >= LARGE and 2 * entries <= whole else 2


def _scales(
    w: Writer, size: Const, factors: list[tuple[Step, Sequence[int]]], above: list[Text], below: list[Text]
) -> bool:
    """Whether `4 * F @ C` may stand for `4 * (F @ C)`: one matrix product, whose first factor is no larger.

    A complex number before a real matrix would make the whole product one of complex matrices.
    """
    arrays = [operand for operand, _ in factors if operand.rank]
    if len(arrays) != 1 or below or not isinstance(arrays[0].op, ops.Tensordot) or " @ " not in above[-1].code:
        return False
    if not arrays[0].complex and (size.imag or any(o.complex for o, _ in factors)):
        return False
    left, right = arrays[0].operands
    return left.rank == right.rank and w.plan.entries(left) <= w.plan.entries(arrays[0])


def to_the(w: Writer, base: Text, n: int, step: Step) -> Text:
    """A power; of many numbers, squares and products: what is not a square goes through logarithms elsewhere."""
    if n <= 2 or not multiplies(w, step) or (n & (n - 1) and not base.code.isidentifier()):
        return Text(f"{base.at(ATOM)}**{n}", POSTFIX)
    if n % 2:
        return Text(f"{to_the(w, base, n - 1, step).at(PRODUCT)} * {base.at(SIGN)}", PRODUCT)
    return Text(f"({to_the(w, base, n // 2, step).code})**2", POSTFIX)


def multiplies(w: Writer, step: Step) -> bool:
    """Whether a power above a square is of so many numbers that it is written with products."""
    n = exponent_of(step.operands[1]) if isinstance(step.op, ops.Power) else None
    return n is not None and n.denominator == 1 and abs(n) > 2 and w.plan.entries(step) >= _MANY


def inverse(w: Writer, operand: Step, at: Sequence[int], rank: int) -> Text | None:
    """x^n, if `operand` is x^(−n) and has no name of its own."""
    if not isinstance(operand.op, ops.Power) or w.refer(operand).level == ATOM:
        return None
    base, exponent = operand.operands
    n = exponent_of(exponent)
    if n is None or n.denominator != 1 or n >= 0:
        return None
    text = w.aligned(base, tuple(at[axis] for axis in operand.op.places[0]), rank)
    return whole_power(w, text, -n.numerator, operand)


def whole_power(w: Writer, base: Text, n: int, step: Step) -> Text:
    """The base of a power, raised to n > 0."""
    if n > HIGHEST_OF_INTEGERS:
        base = w.floating(step.operands[0], base)
    return base if n == 1 else to_the(w, base, n, step)


def power(w: Writer, step: Step, op: ops.Power) -> Text:
    if is_every_power(step, op):
        return _every_power(w, step, op)
    base, exponent = w.operands(step, op.places)
    n = exponent_of(step.operands[1])
    if n is not None and n.denominator == 1:
        size = whole_power(w, base, abs(n.numerator), step)
        return size if n > 0 else Text(f"1 / {size.at(SIGN)}", PRODUCT)
    if n is not None and abs(n) == Fraction(1, 2):
        root = _function(w, "sqrt", step.complex, w.as_array(step.operands[0], base))
        return root if n > 0 else Text(f"1 / {root.code}", PRODUCT)
    template = w.spelling.power_complex if step.complex else w.spelling.power
    if step.complex and not is_plain(step.operands[1]):
        template = w.spelling.power_of_zero or template
    base = w.floating(step.operands[0], base)
    return filled(template, w.as_array(step.operands[0], base), exponent)


def _every_power(w: Writer, step: Step, op: ops.Power) -> Text:
    """All powers by products; logarithms and exponentials, of each, take ten times as long."""
    base, exponent = step.operands
    made = Text(f"powers({w.refer(base).code}, {w.alone(exponent.domains[0])})", ATOM)
    return w.placed(made, (*op.places[1], *op.places[0]), step.rank)


def function_call(w: Writer, step: Step, op: ops.Call) -> Text:
    operands = w.operands(step, op.places)
    of_complex = step.operands[0].complex
    if op.function == "complex":
        return Text(f"{operands[0].at(SUM)} + 0j", SUM)
    if op.function == "abs2":
        return _abs2(w, step.operands[0], operands[0])
    orders = SCALAR_FUNCTIONS[op.function].orders
    arrays = [w.as_array(o, text) for o, text in zip(step.operands[orders:], operands[orders:], strict=True)]
    return _function(w, op.function, of_complex, *operands[:orders], *arrays)


def _function(w: Writer, name: str, of_complex: bool, *operands: Text) -> Text:
    special = w.spelling.branched if of_complex else w.spelling.of_real
    table = special if name in special else w.spelling.functions
    own = SCALAR_FUNCTIONS[name].codes if name in SCALAR_FUNCTIONS else {}
    template = table.get(name) or own.get(w.spelling.name, "")
    if not template:
        raise UnsupportedError(
            f"the function {name}{' of complex numbers' if of_complex else ''} has no spelling in {w.spelling.name}",
            about=Mention(name, called=True),
            remedy="write the function with others that the library has, or choose another backend",
        )
    return filled(template, *operands)


def _abs2(w: Writer, operand: Step, text: Text) -> Text:
    if not operand.complex:
        return Text(f"{text.at(ATOM)}**2", POSTFIX)
    conjugate = (w.spelling.conj if operand.rank else w.spelling.scalar_conj).format(text.at(ATOM))
    return Text(f"({conjugate} * {text.at(SIGN)}).real", ATOM)


def choice(w: Writer, step: Step, op: ops.Where) -> Text:
    left, right, *bodies = w.operands(step, op.places)
    known = is_plain(step.operands[0]) and is_plain(step.operands[1])
    as_choice = not step.rank and (w.spelling.eager or known)
    if not as_choice:
        bodies = [w.as_array(o, body) for o, body in zip(step.operands[2:], bodies, strict=True)]
        left = w.as_array(step.operands[0], left) if known else left
    condition = f"{left.at(SUM)} {op.relation} {right.at(SUM)}"
    if op.modulo is not None:
        condition = f"({left.at(SUM)} - {right.at(PRODUCT)}) % {w.extent(op.modulo)} {op.relation} 0"
    body, other = bodies if op.otherwise is None else (*bodies, Text(str(op.otherwise.real), ATOM))
    if as_choice and op.otherwise is not None and not is_plain(step.operands[2]):
        other = Text(w.spelling.choice.format(other.code), ATOM)
    if as_choice:
        return Text(f"{body.at(SUM)} if {condition} else {other.at(MAP)}", MAP)
    return Text(w.spelling.where.format(condition, body.code, other.code), ATOM)


def kernel_call(w: Writer, step: Step, op: ops.Fused) -> Text:
    return Text(f"{op.function}({', '.join(t.code for t in w.operands(step, op.places))})", ATOM)


def users_function(w: Writer, step: Step, op: ops.Unknown) -> Text:
    kind = next(a.kind for a in w.plan.arguments if a.name == op.function)
    operands = [w.refer(o) for o in step.operands] if op.arrays else w.operands(step, op.places)
    given = [t.code for t in map(w.as_array, step.operands, operands)]
    return Text(f"{w.called.arguments[op.function]}({grouped(kind, given)})", ATOM)
