"""`cupy.ElementwiseKernel` where there is no GPU: statements of C++ are read and computed with NumPy.

As strict as CuPy is: types of arrays are those declared, and numbers have a point, for C++ divides integers otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

TOKEN = re.compile(r"\s*(complex<double>|\d+(?:\.\d*)?(?:e[+-]?\d+)?|[A-Za-z_]\w*|<=|==|!=|[-+*/()?:,<>=;])")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(np, {"atan": "arctan", "fabs": "abs"}.get(name, name))
    for name in ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan", "sqrt", "fabs")
}
FUNCTIONS |= {"pow": np.power, "double": np.float64, "complex<double>": lambda re, im=0.0: re + 1j * im}
OF_COMPLEX = {"conj": np.conj, "real": np.real, "imag": np.imag, "norm": lambda z: z.real**2 + z.imag**2, "abs": np.abs}


class Expression:
    """One expression, computed while it is read: choices, comparisons, sums, products, signs, calls."""

    def __init__(self, text: str, values: dict[str, Any]) -> None:
        self.tokens = TOKEN.findall(text)
        assert "".join(self.tokens) == re.sub(r"\s", "", text), f"not read: {text}"
        self.values = values

    def value(self) -> Any:
        found = self._choice()
        assert not self.tokens, f"left over: {self.tokens}"
        return found

    def _taken(self, *wanted: str) -> str:
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in wanted else ""

    def _choice(self) -> Any:
        condition = self._comparison()
        if not self._taken("?"):
            return condition
        yes = self._choice()
        assert self._taken(":")
        no = self._choice()
        assert np.iscomplexobj(yes) == np.iscomplexobj(no), "both sides of a choice have one type"
        return np.where(condition, yes, no)

    def _comparison(self) -> Any:
        left = self._sum()
        sign = self._taken("<", ">", "<=", "==", "!=")
        compare = {"<": np.less, ">": np.greater, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal}
        return compare[sign](left, self._sum()) if sign else left

    def _sum(self) -> Any:
        found = self._product()
        while sign := self._taken("+", "-"):
            found = found + self._product() if sign == "+" else found - self._product()
        return found

    def _product(self) -> Any:
        found = self._signed()
        while sign := self._taken("*", "/"):
            found = found * self._signed() if sign == "*" else found / self._signed()
        return found

    def _signed(self) -> Any:
        return -self._signed() if self._taken("-") else self._whole()

    def _whole(self) -> Any:
        if self._taken("("):
            found = self._choice()
            assert self._taken(")")
            return found
        token = self.tokens.pop(0)
        if token[0].isdigit():
            assert not token.isdigit(), f"{token} is an integer of C++"
            return float(token)
        return self._called(token) if self._taken("(") else self.values[token]

    def _called(self, name: str) -> Any:
        given = [self._choice()]
        while self._taken(","):
            given.append(self._choice())
        assert self._taken(")")
        assert name not in OF_COMPLEX or np.iscomplexobj(given[0]), f"{name} is for complex numbers"
        return (FUNCTIONS | OF_COMPLEX)[name](*given)


class ElementwiseKernel:
    """A kernel that is called with arrays and numbers, and broadcasts them."""

    def __init__(self, operands: str, result: str, statements: str, name: str) -> None:
        assert name.isascii() and name.isidentifier()
        self.operands = [tuple(operand.split()) for operand in operands.split(", ")]
        assert not {"i", "n"} & {operand for _, operand in self.operands}, "CuPy's own names"
        self.dtype = np.dtype(result.split()[0])
        self.statements = [s.strip() for s in statements.split(";") if s.strip()]

    def __call__(self, *given: Any) -> np.ndarray:
        values = {}
        for (dtype, name), value in zip(self.operands, given, strict=True):
            assert not isinstance(value, np.ndarray | np.generic) or value.dtype == dtype, f"{name} is no {dtype}"
            values[name] = np.asarray(value, dtype)
        shape = np.broadcast_shapes(*(v.shape for v in values.values()))
        assert shape and any(isinstance(v, np.ndarray) for v in given), "CuPy: loop size is undecided"
        values = {name: np.broadcast_to(v, shape) for name, v in values.items()}
        with np.errstate(all="ignore"):
            for statement in self.statements:
                target, text = statement.split(" = ", 1)
                *kind, name = target.split()
                value = Expression(text, values).value()
                assert not kind or np.iscomplexobj(value) == (kind == ["complex<double>"])
                values[name] = value
        return np.broadcast_to(values["out"], shape).astype(self.dtype, casting="same_kind")
