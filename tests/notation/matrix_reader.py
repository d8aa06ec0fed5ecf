"""Reads formulas of linear algebra, as text and as LaTeX, and evaluates them: what a person makes of `2 Aᵀ (A x - b)`.

A product is of matrices, unless one side is a number; ∘ and its kin hold less tightly and do not stand beside one
another; 𝟏 and 𝐈 have the size that fits. A vector is a column, a tensor of four slots a matrix of pairs. The sizes are
found first, so that a formula whose shapes do not fit is refused, and then the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
import scipy.linalg

from tests.notation.latex_reader import UnreadableError

HOLOMORPHIC = ["exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh"]
TEXT_FUNCTIONS = [*HOLOMORPHIC, "atan", "sqrt", "abs", "abs2", "sign", "real", "imag", "sigmoid"]
NUMPY = {"atan": np.arctan, "abs2": lambda z: np.abs(z) ** 2, "sign": lambda z: z / np.abs(z)}
NUMPY |= {"sigmoid": lambda z: 1 / (1 + np.exp(-z))}
LATEX_SIGNS = {
    r"^{\mathsf{T}}": "ᵀ",
    r"^{\dagger}": "†",
    r"^{-\mathsf{T}}": "⁻ᵀ",
    r"^{-\dagger}": "⁻†",
    r"^{+}": "⁺",
    r"\log\det(": "logdet(",
    r"\det(": "det(",
    r"^{*}": "*",
    r"\mathbf{1}": "𝟏",
    r"\mathbf{I}": "𝐈",
    r"\mathrm{i}": "im",
    r"\circ": "∘",
    r"\oslash": "⊘",
    r"\odot": "⊙",
    r"\otimes": "⊗",
    r"\cdot": "·",
    r"\operatorname{tr}(": "tr(",
    r"\operatorname{expm}(": "expm(",
    r"\operatorname{diag}(": "diag(",
    r"\operatorname{diagonal}(": "diagonal(",
    r"\operatorname{vec}(": "vec(",
    r"\operatorname{softmax}(": "softmax(",
    r"\operatorname{logsumexp}(": "logsumexp(",
    r"\rVert_{F}": "end",
    r"\lVert": "‖",
    r"\rVert": "end",
    r"\begin{pmatrix}": "entries",
    r"\end{pmatrix}": "end of entries",
    r"\\": "row",
    "&": "&",
    r"\left[": "[",
    r"\right]": "]",
    r"\le": "≤",
    "<": "<",
    r"\pi": "π",
    r"\nabla": "∇",
    r"\arctan": "atan",
    r"\sigma(": "sigmoid(",
    r"\operatorname{Re}": "real",
    r"\operatorname{Im}": "imag",
    r"\operatorname{sign}": "sign",
    **{"\\" + name: name for name in HOLOMORPHIC},
    r"\frac{": "frac{",
    r"\sqrt{": "sqrt{",
    r"\left|": "abs",
    r"\right|": "|",
    "^{": "^{",
}
TEXT_SIGNS = ["ᵀ", "†", "𝟏", "𝐈", "∘", "⊘", "⊙", "⊗", "·", "‖", "[", "]", "≤", "<", "π", "∇", "conj(", "tr(", "diag("]
TEXT_SIGNS += ["⁻¹", "⁻ᵀ", "⁻†", "⁺", "det(", "logdet(", "diagonal(", "vec(", "softmax(", "logsumexp(", "im"]
TEXT_SIGNS += ["sqrtm(", "expm("]
COMMON = ["(", ")", "{", "}", "+", "-", "/", ",", ":", "^", "_"]
MIXED = {"∘", "⊘", "⊙", "⊗", ":", "·"}
ENDS = {"+", "-", ")", "]", "}", ",", "≤", "<", "end", "|", "&", "row", "end of entries"}
"""Where a product ends, beside these."""


class UnsizedError(UnreadableError):
    """Nothing says how large 𝟏 or 𝐈 is."""


@dataclass(eq=False)
class Cell:
    """The size of a row or column index, perhaps not known yet."""

    size: int | None = None
    like: Cell | None = None

    def root(self) -> Cell:
        return self if self.like is None else self.like.root()


def fit(a: Cells, b: Cells) -> None:
    """Say that sizes are the same."""
    if len(a) != len(b):
        raise UnreadableError("the shapes do not fit")
    for left, right in zip(a, b, strict=True):
        x, y = left.root(), right.root()
        if x is y:
            continue
        if x.size is not None and y.size is not None and x.size != y.size:
            raise UnreadableError(f"sizes {x.size} and {y.size} do not fit")
        y.size = y.size if x.size is None else x.size
        x.like = y


Cells = tuple[Cell, ...]
Array = np.ndarray


@dataclass
class Matrix:
    """A formula whose shape is known: how its numbers are found is for later, when all sizes are."""

    rows: Cells
    columns: Cells
    numbers: Callable[[], Array]

    @property
    def is_number(self) -> bool:
        return not self.rows and not self.columns

    def array(self) -> Array:
        """The numbers; rows and columns flat."""
        found = np.asarray(self.numbers())
        return found.reshape(extent(self.rows), extent(self.columns))

    def slots(self) -> Array:
        """The numbers with an axis for each index."""
        return self.array().reshape([size(cell) for cell in self.rows + self.columns])


def size(cell: Cell) -> int:
    found = cell.root().size
    if found is None:
        raise UnsizedError("a size is not known")
    return found


def extent(cells: Cells) -> int:
    return prod(size(cell) for cell in cells)


def given(value: object, cells: Cells = ()) -> Matrix:
    """A number or an array as a formula: the rows of a tensor of four slots are its first two."""
    array = np.asarray(value)
    cells = cells or tuple(Cell(n) for n in array.shape)
    rows = {2: 1, 4: 2}.get(array.ndim, array.ndim)
    return Matrix(cells[:rows], cells[rows:], lambda: array)


def plain_brackets(text: str) -> str:
    """LaTeX with brackets of one size and without thin spaces; (x_{1})_{(1)} is {x_{1}}_{(1)}."""
    for tall, plain in ((r"\!", ""), (r"\left(", "("), (r"\right)", ")"), (r"\,", " "), (r"\left\|", r"\lVert ")):
        text = text.replace(tall, plain)
    for tall, plain in ((r"\right\|", r" \rVert"), (r"\lvert ", r"\left|"), (r" \rvert", r"\right|")):
        text = text.replace(tall, plain)
    return re.sub(r"\(([^()]*)\)_\{\(", r"{\1}_{(", text)


def tokens(text: str, names: Mapping[str, object], latex: bool) -> list[tuple[str, bool]]:
    """The signs and names of a formula, each with whether a space stands before it."""
    said = [] if latex else [*TEXT_SIGNS, *(f"{name}(" for name in TEXT_FUNCTIONS)]
    text = plain_brackets(text) if latex else text
    signs = {sign: sign for sign in (*COMMON, *said)} | (LATEX_SIGNS if latex else {})
    signs = {sign: said for sign, said in signs.items() if sign.removesuffix("(") not in names or sign in names}
    if alike := signs.keys() & names.keys():
        raise UnreadableError(f"{alike} are names and signs")
    # a name with a subscript that takes another one stands in braces
    braced = {f"{{{name}}}_": f"name {name}" for name in names if "_{" in name}
    heads = {name: f"name {name}" for name in names} | braced
    spelled = sorted((signs | heads).items(), key=lambda pair: -len(pair[0]))
    found, at, spaced = [], 0, False
    while at < len(text):
        if text[at].isspace():
            at, spaced = at + 1, True
            continue
        number = re.compile(r"\d+").match(text, at)
        known = next((pair for pair in spelled if text.startswith(pair[0], at)), None)
        if number is None and known is None:
            raise UnreadableError(f"what is this: {text[at:]}")
        # of names and signs that begin alike the longest is meant
        found.append((number.group() if number else known[1], spaced))
        at, spaced = number.end() if number else at + len(known[0].removesuffix("}_")) + known[0].endswith("}_"), False
    return found


@dataclass
class Reader:
    """A formula in its tokens; `names` are numbers, arrays (as `Matrix`) and functions."""

    names: Mapping[str, object]
    latex: bool
    by_row: bool = False
    """Whether it is said of softmax that it acts on each row."""
    left: list[tuple[str, bool]] = field(default_factory=list)

    def read(self, text: str, shape: tuple[int, ...]) -> Array:
        """The value of a formula that has this shape."""
        if text == "0":
            return np.zeros(shape)  # the zero of every shape
        found, wanted = self.formula(text), given(np.zeros(shape))
        fit(found.rows, wanted.rows)
        fit(found.columns, wanted.columns)
        return found.array().reshape(shape)

    def formula(self, text: str) -> Matrix:
        """All of a formula."""
        self.left = tokens(text, self.names, self.latex)
        found = self.sum()
        if self.left:
            raise UnreadableError(f"left over: {self.left}")
        return found

    @property
    def next(self) -> str:
        return self.left[0][0] if self.left else ""

    def eat(self, sign: str) -> bool:
        if self.next == sign:
            self.left.pop(0)
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.eat(sign):
            raise UnreadableError(f"expected {sign} at {self.left}")

    def sum(self) -> Matrix:
        found = negative(self.mixed()) if self.eat("-") else self.mixed()
        while self.next in ("+", "-"):
            minus = self.eat("-") or not self.eat("+")
            found = added(found, negative(self.mixed()) if minus else self.mixed())
        return found

    def mixed(self) -> Matrix:
        """Products with a sign between them; different signs beside one another say nothing but a ∘ b ⊘ c."""
        found, seen = self.product(), set()
        while self.next in MIXED:
            sign = self.left.pop(0)[0]
            if seen and not (seen | {sign} <= {"∘", "⊘"} and "⊘" not in seen):
                raise UnreadableError(f"{sign} beside {seen}")
            seen.add(sign)
            found = OPERATIONS[sign](found, self.product())
        return found

    def product(self) -> Matrix:
        found = self.factor()
        while self.left and self.next not in MIXED | ENDS:
            if self.eat("/"):
                found = scaled(lambda a, b: a / b, found, self.factor())
                continue
            if self.next == "‖" and not self.left[0][1]:
                break  # the end of a norm
            found = multiplied(found, self.factor())
        return found

    def factor(self) -> Matrix:
        found = self.atom()
        while True:
            if self.eat("ᵀ"):
                found = turned(found)
            elif self.eat("†"):
                found = each(np.conj, turned(found))
            elif self.eat("*"):
                found = each(np.conj, found)
            elif self.eat("⁺"):
                found = each(lambda c: np.divide(1, c, out=np.zeros_like(c), where=c != 0), number(found))
            elif self.next in INVERSES:
                found = INVERSES[self.left.pop(0)[0]](inverted(found))
            elif self.next in ("^", "^{"):
                found = self.power(found)
            elif self.eat("_"):
                found = self.entry(found)
            else:
                return found

    def entry(self, of: Matrix) -> Matrix:
        """An entry at places that are numbers."""
        self.expect("{")
        places = [int(self.left.pop(0)[0])]
        while self.eat(","):
            places.append(int(self.left.pop(0)[0]))
        self.expect("}")
        return Matrix((), (), lambda: of.slots()[tuple(places)])

    def power(self, base: Matrix) -> Matrix:
        braces = self.left.pop(0)[0] == "^{"
        by_entry = self.eat("∘")
        exponent = self.sum() if braces else self.factor()
        if braces:
            self.expect("}")
        if by_entry or base.is_number:
            return each(lambda array: np.power(array + 0.0, exponent.array()[0, 0]), base)
        fit(base.rows, base.columns)
        return each(lambda array: raised(array, exponent.array()[0, 0]), base)

    def atom(self) -> Matrix:
        token = self.left.pop(0)[0] if self.left else "the end"
        if token.isascii() and token.isdigit():
            return given(int(token))
        if token.startswith("name "):
            return self.named(token.removeprefix("name "))
        if token in ("(", "[", "frac{", "sqrt{", "abs", "‖"):
            return self.bracketed(token)
        if token == "entries":
            return self.entries()
        if token == "∇":
            head = "gradient " * (1 + self.count("∇")) + self.left.pop(0)[0].removeprefix("name ")
            return self.called(self.names[head])
        if token in ("𝟏", "𝐈"):
            cell = Cell()
            if token == "𝟏":
                return Matrix((cell,), (), lambda: np.ones(size(cell)))
            return Matrix((cell,), (cell,), lambda: np.eye(size(cell)))
        if token in ("π", "im"):
            return given(np.pi if token == "π" else 1j)
        name = token.removesuffix("(")
        if name in WHOLE or name in TEXT_FUNCTIONS:
            if name == token:
                self.expect("(")
            inner = self.sum()
            self.expect(")")
            if name == "softmax" and inner.columns and not self.by_row:
                raise UnreadableError("softmax of a matrix may be that of its rows, its columns or all of it")
            return WHOLE[name](inner) if name in WHOLE else each(NUMPY.get(name) or getattr(np, name), inner)
        raise UnreadableError(f"what is {token}")

    def entries(self) -> Matrix:
        """A matrix of numbers that are written out; one of a single column is a vector."""
        rows = [[self.sum()]]
        while not self.eat("end of entries"):
            if self.eat("row"):
                rows.append([self.sum()])
            else:
                self.expect("&")
                rows[-1].append(self.sum())
        cells = tuple(Cell(n) for n in ((len(rows), len(rows[0])) if len(rows[0]) > 1 else (len(rows),)))
        return Matrix(cells[:1], cells[1:], lambda: np.array([[entry.array() for entry in row] for row in rows]))

    def count(self, sign: str) -> int:
        found = 0
        while self.eat(sign):
            found += 1
        return found

    def bracketed(self, token: str) -> Matrix:
        found = self.sum()
        match token:
            case "(":
                self.expect(")")
            case "[":
                strictly = self.eat("<")
                if not strictly:
                    self.expect("≤")
                right = self.sum()
                self.expect("]")
                return compared(found, right, strictly)
            case "frac{":
                self.expect("}")
                self.expect("{")
                below = self.sum()
                self.expect("}")
                return scaled(lambda a, b: a / b, found, below)
            case "sqrt{":
                self.expect("}")
                return each(np.sqrt, found)
            case "abs":
                self.expect("|")
                return each(np.abs, found)
            case "‖":
                self.expect("end" if self.latex else "‖")
                return Matrix((), (), lambda: np.sqrt(np.sum(np.abs(found.array()) ** 2)))
        return found

    def named(self, name: str) -> Matrix:
        found = self.names[name]
        if isinstance(found, int):
            return given(found)  # a size
        if not isinstance(found, Matrix):
            return self.called(found.adjoint if self.eat("†") else found)
        slots = self.order() if len(found.rows + found.columns) > 2 else None
        if slots is None:
            return found
        kind, digits = slots
        if kind == "^":
            return reordered(found, digits)
        (mode,) = digits
        return unfolded(found, mode)

    def order(self) -> tuple[str, list[int]] | None:
        """What follows T in T^(1324) and in T_(1)."""
        for count in range(4, 7):
            head = "".join(token for token, _ in self.left[:count])
            if match := re.fullmatch(r"([\^_])(?:\{\((\d+)\)\}|\((\d+)\))", head):
                self.left = self.left[count:]
                return match.group(1), [int(digit) for digit in match.group(2) or match.group(3)]
        return None

    def called(self, function: Callable[..., Matrix]) -> Matrix:
        if not self.left or self.left[0] != ("(", False):
            raise UnreadableError("a function stands without its arguments")
        self.expect("(")
        args = [self.sum()]
        while self.eat(","):
            args.append(self.sum())
        self.expect(")")
        found = function(*args)
        return self.item(found) if isinstance(found, tuple) else found

    def item(self, values: tuple[Matrix, ...]) -> Matrix:
        """One of several values: R(x)[1], or with a subscript (1)."""
        before, after = (["_", "{", "("], [")", "}"]) if self.latex else (["["], ["]"])
        for sign in before:
            self.expect(sign)
        number = int(self.left.pop(0)[0])
        for sign in after:
            self.expect(sign)
        return values[number - 1]


# --- operations -------------------------------------------------------------------------------------------------------


def each(function: Callable[[Array], Array], of: Matrix) -> Matrix:
    return Matrix(of.rows, of.columns, lambda: function(of.array()))


def negative(of: Matrix) -> Matrix:
    return each(np.negative, of)


def turned(of: Matrix) -> Matrix:
    return Matrix(of.columns, of.rows, lambda: of.array().T)


def by_entry(function: Callable[[Array, Array], Array]) -> Callable[[Matrix, Matrix], Matrix]:
    def operation(a: Matrix, b: Matrix) -> Matrix:
        fit(a.rows, b.rows)
        fit(a.columns, b.columns)
        return Matrix(a.rows, a.columns, lambda: function(a.array(), b.array()))

    return operation


added = by_entry(np.add)


def scaled(function: Callable[[Array, Array], Array], a: Matrix, b: Matrix) -> Matrix:
    """A matrix and a number, in this order or the other."""
    whole = a if b.is_number else b
    if not (a.is_number or b.is_number):
        raise UnreadableError("neither is a number")
    return Matrix(whole.rows, whole.columns, lambda: function(a.array(), b.array()))


def multiplied(a: Matrix, b: Matrix) -> Matrix:
    if a.is_number or b.is_number:
        return scaled(np.multiply, a, b)
    fit(a.columns, b.rows)
    return Matrix(a.rows, b.columns, lambda: a.array() @ b.array())


def compared(a: Matrix, b: Matrix, strictly: bool = False) -> Matrix:
    relation = np.less if strictly else np.less_equal
    if not (a.is_number or b.is_number):
        return by_entry(lambda x, y: 1.0 * relation(x.real, y.real))(a, b)
    return scaled(lambda x, y: 1.0 * relation(x.real, y.real), a, b)


def kronecker(a: Matrix, b: Matrix) -> Matrix:
    return Matrix(a.rows + b.rows, a.columns + b.columns, lambda: np.kron(a.array(), b.array()))


def khatri_rao(a: Matrix, b: Matrix) -> Matrix:
    fit(a.columns, b.columns)
    return Matrix(a.rows + b.rows, a.columns, lambda: np.einsum("ac,bc->abc", a.array(), b.array()))


def contracted(count: int) -> Callable[[Matrix, Matrix], Matrix]:
    def operation(tensor: Matrix, of: Matrix) -> Matrix:
        slots = tensor.rows + tensor.columns
        free, bound = slots[:-count], slots[-count:]
        if len(of.rows) != 1 or len(of.columns) != count - 1 or len(free) not in (1, 2):
            raise UnreadableError("a tensor meets what does not fit it")
        fit(of.rows + of.columns, bound)
        return Matrix(free[:1], free[1:], lambda: np.tensordot(tensor.slots(), of.slots(), count))

    return operation


def diagonal_matrix(of: Matrix) -> Matrix:
    if len(of.rows) != 1 or of.columns:
        raise UnreadableError("diag is of a vector")
    return Matrix(of.rows, of.rows, lambda: np.diag(of.array()[:, 0]))


def diagonal_of(of: Matrix) -> Matrix:
    fit(of.rows, of.columns)
    return Matrix(of.rows, (), lambda: np.diagonal(of.array()))


def inverted(of: Matrix) -> Matrix:
    fit(of.rows, of.columns)
    return Matrix(of.columns, of.rows, lambda: np.linalg.inv(of.array()))


def number(of: Matrix) -> Matrix:
    if not of.is_number:
        raise UnreadableError("c⁺ is of a number")
    return of


def raised(array: Array, exponent: complex) -> Array:
    """A power of a matrix: a whole one, or its root."""
    if exponent == 0.5:
        return scipy.linalg.sqrtm(array)
    assert exponent == int(exponent.real), "a whole number"
    return np.linalg.matrix_power(array, int(exponent.real))


def of_square(function: Callable[[Array], Array]) -> Callable[[Matrix], Matrix]:
    def operation(of: Matrix) -> Matrix:
        fit(of.rows, of.columns)
        return Matrix((), (), lambda: function(of.array()))

    return operation


def trace(of: Matrix) -> Matrix:
    fit(of.rows, of.columns)
    return Matrix((), (), lambda: np.trace(of.array()))


def vec(of: Matrix) -> Matrix:
    return Matrix(of.rows + of.columns, (), of.array)


def softmax(of: Matrix) -> Matrix:
    """Of a vector, or of each row of a matrix."""

    def shares(array: Array) -> Array:
        powers = np.exp(array)
        return powers / powers.sum(axis=1 if of.columns else 0, keepdims=True)

    return each(shares, of)


def reordered(tensor: Matrix, order: list[int]) -> Matrix:
    """(a, b, …) ↦ T(the slot `order[0]` of these, …)."""
    old = tensor.rows + tensor.columns
    if sorted(order) != list(range(1, len(old) + 1)):
        raise UnreadableError(f"{order} is no order of {len(old)} slots")
    slots = tuple(old[order.index(n)] for n in range(1, len(old) + 1))
    rows = len(tensor.rows)

    def numbers() -> Array:
        array = tensor.slots()
        found = np.zeros([size(cell) for cell in slots], array.dtype)
        for at in np.ndindex(*found.shape):
            found[at] = array[tuple(at[n - 1] for n in order)]
        return found

    return Matrix(slots[:rows], slots[rows:], numbers)


def unfolded(tensor: Matrix, mode: int) -> Matrix:
    slots = tensor.rows + tensor.columns
    others = slots[: mode - 1] + slots[mode:]
    return Matrix((slots[mode - 1],), others, lambda: np.moveaxis(tensor.slots(), mode - 1, 0))


OPERATIONS = {
    "∘": by_entry(np.multiply),
    "⊘": by_entry(np.divide),
    "⊙": khatri_rao,
    "⊗": kronecker,
    ":": contracted(2),
    "·": contracted(1),
}
INVERSES = {"⁻¹": lambda of: of, "⁻ᵀ": turned, "⁻†": lambda of: each(np.conj, turned(of))}
WHOLE = {
    "tr": trace,
    "det": of_square(np.linalg.det),
    "logdet": of_square(lambda array: np.linalg.slogdet(array)[1]),
    "expm": lambda of: each(scipy.linalg.expm, of),
    "sqrtm": lambda of: each(scipy.linalg.sqrtm, of),
    "diag": diagonal_matrix,
    "diagonal": diagonal_of,
    "vec": vec,
    "conj": lambda of: each(np.conj, of),
    "softmax": softmax,
    "logsumexp": lambda of: Matrix((), (), lambda: np.log(np.sum(np.exp(of.array())))),
}
