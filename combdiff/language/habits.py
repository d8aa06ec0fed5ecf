"""What people write who come from mathematics, NumPy, Julia or MATLAB, and what to write here.

One row a word. In the rows of functions {0} and {1} are the arguments, as far as they are names or entries.
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.language.parsing.syntax import Apply, Expr, Name, Numeral

_DETERMINANT = "there is no determinant; write that of a small matrix by entries: A(0, 0) * A(1, 1) - A(0, 1) * A(1, 0)"
_SOLVE = "solve with it: inverse((y::RV) -> i -> sum(j, {0}(i, j) * y(j)))(b) is the y with {0} y = b"
_NO_ORDER = "nothing here puts entries in order; where x is largest is for the caller to find"
_STEP = "write indicator(a, b, e) for e where a <= b, and 0 elsewhere"

FUNCTIONS = {
    # of matrices and vectors
    "tr": "write sum(i, {0}(i, i))",
    "trace": "write sum(i, {0}(i, i))",
    "det": _DETERMINANT,
    "logdet": _DETERMINANT,
    "slogdet": _DETERMINANT,
    "inv": _SOLVE,
    "pinv": _SOLVE,
    "solve": _SOLVE,
    "dot": "write sum(i, {0}(i) * {1}(i)), with {0}(i)' where it is complex",
    "inner": "write sum(i, {0}(i) * {1}(i)), with {0}(i)' where it is complex",
    "vdot": "write sum(i, {0}(i)' * {1}(i))",
    "matmul": "write sum(j, {0}(i, j) * {1}(j, k))",
    "outer": "write (i, j) -> {0}(i) * {1}(j)",
    "kron": "write the product with an index for each slot: (i, j, k, l) -> {0}(i, j) * {1}(k, l)",
    "einsum": "write the sum: sum((j, k), A(i, j) * B(j, k))",
    "norm": "write sqrt(sum(i, abs2({0}(i))))",
    "transpose": "write the entries the other way round: {0}(j, i)",
    "adj": "write {0}(j, i)'",
    "diag": "write the entries: {0}(i, i) is the diagonal of {0}, delta(i, j, {0}(i)) a diagonal matrix",
    "eye": "write delta(i, j, 1)",
    "mean": "write sum(i, {0}(i)) / sum(i::N{{n}}, 1), and name the size: {0}::RV{{n}}",
    "average": "write sum(i, {0}(i)) / sum(i::N{{n}}, 1), and name the size: {0}::RV{{n}}",
    "length": "name the size, {0}::RV{{n}}, and write sum(i::N{{n}}, 1)",
    "len": "name the size, {0}::RV{{n}}, and write sum(i::N{{n}}, 1)",
    "size": "name the size, {0}::RV{{n}}, and write sum(i::N{{n}}, 1)",
    "prod": "of positive numbers write exp(sum(i, log(x(i))))",
    "cumsum": "name the size, {0}::RV{{n}}, and write (i::N{{n}}) -> sum(j, indicator(j, i, {0}(j)))",
    "argmax": _NO_ORDER,
    "argmin": _NO_ORDER,
    "sort": _NO_ORDER,
    # of numbers
    "ln": "write log({0})",
    "log2": "write log({0}) / log(2)",
    "log10": "write log({0}) / log(10)",
    "log1p": "write log(1 + {0})",
    "expm1": "write exp({0}) - 1",
    "exp2": "write 2^{0}",
    "square": "write {0}^2",
    "pow": "write {0}^{1}",
    "cbrt": "write {0}^(1/3)",
    "sec": "write 1 / cos({0})",
    "csc": "write 1 / sin({0})",
    "cot": "write 1 / tan({0})",
    "sech": "write 1 / cosh({0})",
    "asin": "write atan({0} / sqrt(1 - {0}^2))",
    "arcsin": "write atan({0} / sqrt(1 - {0}^2))",
    "acos": "write pi / 2 - atan({0} / sqrt(1 - {0}^2))",
    "arccos": "write pi / 2 - atan({0} / sqrt(1 - {0}^2))",
    "arctan": "write atan({0})",
    "asinh": "write log({0} + sqrt(1 + {0}^2))",
    "acosh": "write log({0} + sqrt({0}^2 - 1))",
    "atanh": "write log((1 + {0}) / (1 - {0})) / 2",
    "sigmoid": "write 1 / (1 + exp(-{0}))",
    "logistic": "write 1 / (1 + exp(-{0}))",
    "softplus": "write log(1 + exp({0}))",
    "relu": "write indicator(0, {0}, {0})",
    "sgn": "write sign({0})",
    "Re": "write real({0})",
    "Im": "write imag({0})",
    "arg": "of z in the right half-plane write atan(imag({0}) / real({0}))",
    "conjugate": "write {0}'",
    "max": "write {1} + indicator({1}, {0}, {0} - {1})",
    "min": "write {0} - indicator({1}, {0}, {0} - {1})",
    "maximum": "write {1} + indicator({1}, {0}, {0} - {1})",
    "minimum": "write {0} - indicator({1}, {0}, {0} - {1})",
    "where": _STEP,
    "heaviside": "write indicator(0, {0}, 1)",
    "ifelse": _STEP,
    "if": _STEP,
    "Sum": "write sum(i, …)",
    "Σ": "write sum(i, …), or ∑(i, …)",
    "Π": "of positive numbers write exp(sum(i, log(x(i))))",
}
"""A remedy for the name of a function that is not of the language."""

TYPES = {
    "R": "Real real Float64 Float32 float float64 double number Number scalar ℝ",
    "C": "Complex complex ComplexF64 complex128 ℂ",
    "RV": "Vector vector vec Vec array Array list",
    "RM": "Matrix matrix mat Mat",
    "N": "int Int Integer integer Nat index Index ℕ",
}
"""The types of the language, and what they are called elsewhere."""
_OURS = {word: ours for ours, words in TYPES.items() for word in words.split()}

MODULES = frozenset({"np", "numpy", "jnp", "jax", "torch", "math", "scipy", "cp", "tf", "Math"})
_SIZES = frozenset({"n", "m", "N", "M", "d", "D", "K", "L"})


def remedy_of_function(name: str, arguments: Sequence[Expr]) -> str | None:
    """What to write for a call of a function that people know from elsewhere."""
    row = FUNCTIONS.get(name)
    if row is None:
        return None
    if name in ("max", "maximum") and [e.value for e in arguments[1:] if isinstance(e, Numeral)] == [0]:
        row = FUNCTIONS["relu"]
    defaults = ("A", "B") if "(i, j)" in row or "(i, i)" in row or "(j, i)" in row else ("x", "y")
    given = [_written(e) for e in arguments[:2]] + [""] * 2
    return row.format(*(text or default for text, default in zip(given, defaults, strict=False)))


def remedy_of_missing_function(name: str) -> str:
    """What to do about a function of numbers that the language does not have."""
    return (
        f"there is no function {name}; make it a parameter, `({name}::RF) -> …`, "
        f"and give {name}= and grad_{name}= when you call"
    )


def remedy_of_type(name: str) -> str | None:
    """The type that another name means."""
    ours = _OURS.get(name)
    return ours and f"write {ours}"


def remedy_of_name(name: str, known: Sequence[str]) -> str | None:
    """What a name that nothing defines may mean where no function is called."""
    tensor, _, indices = name.partition("_")
    if indices and tensor in known:
        return f"an entry is written {tensor}({', '.join(indices)})"
    if not name.isidentifier():
        return "write numbers with digits: 1/2"
    if name in _SIZES:
        return (
            f"for a size, name it in a type, x::RV{{{name}}}, and write sum(i::N{{{name}}}, 1); "
            f"for a number, make it a parameter, `({name}::R) -> …`"
        )
    return None


def _written(e: Expr) -> str:
    """The text of a name, a number or an entry; empty for all else."""
    match e:
        case Name(text):
            return text
        case Numeral(value):
            return str(value)
        case Apply(Name(text), args) if all(isinstance(a, Name) for a in args):
            return f"{text}({', '.join(map(_written, args))})"
        case _:
            return ""
