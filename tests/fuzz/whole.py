"""Random programs with whole matrices, and their values and slopes with fifty digits.

    python -m tests.fuzz.whole --count 1000 --seed 1

A program is a tree of nodes that are written as text, and computed by mpmath: matrices by products, elimination and
series, eigenvalues by rotations. Slopes are differences of such values. Nothing of this is the package's.
"""

from __future__ import annotations

import argparse
import inspect
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

import combdiff as cd

DIGITS, STEPS = 60, ("1e-15", "1e-13")


@dataclass(frozen=True)
class Node:
    """An expression: its text, how tightly it binds (3 an atom, 2 a product, 1 a sum), its value for given arrays."""

    text: str
    level: int
    value: Callable[[dict[str, Any]], Any]

    def at(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"


@dataclass
class Whole:
    """Draws trees of real or complex matrices with n rows and columns, of n × m, of vectors and of numbers."""

    rng: np.random.Generator
    complex: bool

    def one(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    # --- matrices ---------------------------------------------------------------------------------------------------

    def matrix(self, depth: int) -> Node:
        """n × n."""
        if depth <= 0:
            return self.one(_name("A"), _name("B"), _name("A"), _name("K"))
        kind = self.one(
            "sum", "product", "adjoint", "inv", "expm", "scaled", "outer", "gram", "solve", "power", "triangle", "more"
        )
        a = self.matrix(depth - 1)
        match kind:
            case "sum":
                b, sign = self.matrix(depth - 2), self.one("+", "-")
                return _sum(a, sign, b)
            case "product":
                return _product(a, self.matrix(depth - 2))
            case "adjoint":
                return _adjoint(a)
            case "inv":
                r = self.regular(depth - 1)
                return Node(f"inv({r.text})", 3, lambda e: mpmath.inverse(r.value(e)))
            case "expm":
                return Node(f"expm({a.at(2)} / 8)", 3, lambda e: mpmath.expm(a.value(e) / 8, method="taylor"))
            case "scaled":
                return Node(f"2 * {a.at(2)} / 3", 2, lambda e: 2 * a.value(e) / 3)
            case "outer":
                x, y = self.vector(depth - 1), self.vector(depth - 2)
                return Node(f"{x.at(2)} * {y.at(3)}'", 2, lambda e: x.value(e) * y.value(e).H)
            case "gram":
                return self.positive(depth - 1)
            case "solve":
                r = self.regular(depth - 1)
                return Node(f"{r.at(3)} \\ {a.at(3)}", 1, lambda e: mpmath.inverse(r.value(e)) * a.value(e))
            case "triangle":
                name, kept = self.one(("triu", lambda i, j: i <= j), ("tril", lambda i, j: j <= i))
                return Node(f"{name}({a.text})", 3, lambda e: _where(a.value(e), kept))
            case "power":
                return Node(f"{a.at(3)}^2", 2, lambda e: a.value(e) * a.value(e))
            case _:
                return self.of_positive(depth - 1)

    def of_positive(self, depth: int) -> Node:
        p = self.positive(depth)
        return self.one(
            Node(f"sqrtm({p.text})", 3, lambda e: _root(p.value(e))),
            Node(f"cholesky({p.text})", 3, lambda e: mpmath.cholesky(_hermitian(p.value(e)))),
            Node(f"invsqrtm({p.text})", 3, lambda e: mpmath.inverse(_root(p.value(e)))),
            Node(
                f"Diagonal(diag({p.text}))",
                3,
                lambda e: mpmath.diag([p.value(e)[i, i] for i in range(p.value(e).rows)]),
            ),
        )

    def positive(self, depth: int) -> Node:
        """A matrix that is positive definite, whatever the data."""
        k, x, a = _name("K"), _name("X"), self.matrix(depth - 2)
        unit = Node("I", 3, lambda e: mpmath.eye(e["K"].rows))
        return self.one(
            k,
            _sum(k, "+", unit),
            _sum(_product(x, _adjoint(x)), "+", unit),
            _sum(_product(a, _adjoint(a)), "+", k),
            Node(f"inv({k.text})", 3, lambda e: mpmath.inverse(k.value(e))),
            _sum(_product(_product(a, k), _adjoint(a)), "+", unit),
        )

    def regular(self, depth: int) -> Node:
        """A matrix that has an inverse, nearly always."""
        a, p = self.matrix(depth - 1), self.positive(depth)
        return self.one(p, Node(f"{a.at(1)} + 5 * I", 1, lambda e: a.value(e) + 5 * mpmath.eye(e["K"].rows)), p)

    def vector(self, depth: int) -> Node:
        x = self.one(_name("x"), _name("y"))
        if depth <= 0:
            return x
        a, r, w = self.matrix(depth - 1), self.regular(depth - 1), _name("X")
        return self.one(
            Node(f"{a.at(2)} * {x.text}", 2, lambda e: a.value(e) * x.value(e)),
            Node(f"{r.at(3)} \\ {x.text}", 1, lambda e: mpmath.inverse(r.value(e)) * x.value(e)),
            Node(f"{w.text} * ({w.text}' * {x.text})", 2, lambda e: w.value(e) * (w.value(e).H * x.value(e))),
            Node(f"fft({x.text})", 3, lambda e: _transform(x.value(e), -1)) if self.complex else x,
            Node(
                f"ifft({w.text} * ({w.text}' * {x.text}))",
                3,
                lambda e: _transform(w.value(e) * (w.value(e).H * x.value(e)), 1),
            )
            if self.complex
            else x,
            Node(f"diag({a.text})", 3, lambda e: mpmath.matrix([a.value(e)[i, i] for i in range(a.value(e).rows)])),
        )

    # --- numbers ----------------------------------------------------------------------------------------------------

    def number(self, depth: int) -> Node:
        """A real number."""
        s = self.term(depth)
        for _ in range(self.rng.integers(0, 3)):
            s = _numbers(s, self.one("+", "-", "*"), self.term(depth - 1))
        return s

    def term(self, depth: int) -> Node:
        a, p, x, y = self.matrix(depth), self.positive(depth), self.vector(depth), self.vector(depth - 1)
        return self.one(
            self.real(Node(f"tr({a.text})", 3, lambda e: _trace(a.value(e)))),
            self.real(Node(f"det({a.text})", 3, lambda e: mpmath.det(a.value(e)))),
            self.real(Node(f"logdet({p.text})", 3, lambda e: mpmath.log(mpmath.det(p.value(e))))),
            Node(f"logabsdet({a.text})", 3, lambda e: mpmath.log(abs(mpmath.det(a.value(e))))),
            self.real(
                Node(f"{x.at(3)}' * {a.at(2)} * {y.at(3)}", 2, lambda e: (x.value(e).H * a.value(e) * y.value(e))[0])
            ),
            Node(f"norm({a.text})^2", 2, lambda e: sum(abs(u) ** 2 for u in a.value(e))),
            self.real(Node(f"sum({a.text})", 3, lambda e: sum(a.value(e)))),
            self._listed(self.term(depth - 2) if depth > 1 else self.small(), self.small(), self.small()),
            Node(f"sum(abs2.(fft({x.text})))", 3, lambda e: sum(abs(u) ** 2 for u in _transform(x.value(e), -1))),
            Node(
                f"sum(i, exp(-eigvals({p.text})(i) / 4))",
                3,
                lambda e: sum(mpmath.exp(-u / 4) for u in _spectrum(p.value(e))),
            ),
            Node(f"sum(i, log(eigvals({p.text})(i)))", 3, lambda e: sum(mpmath.log(u) for u in _spectrum(p.value(e)))),
            Node(f"sum(i, svdvals({p.text})(i)^3)", 3, lambda e: sum(u**3 for u in _spectrum(p.value(e)))),
            self.real(
                Node(
                    f"sum(log.(diag(cholesky({p.text}))))",
                    3,
                    lambda e: mpmath.log(mpmath.det(_hermitian(p.value(e)))) / 2,
                )
            ),
        )

    def small(self) -> Node:
        """A number that is quickly computed."""
        x = self.one(_name("x"), _name("y"))
        return self.one(
            Node("2", 3, lambda e: mpmath.mpf(2)),
            self.real(Node(f"{x.text}(0)", 3, lambda e: x.value(e)[0])),
            self.real(Node("A(0, 0)", 3, lambda e: e["A"][0, 0])),
            Node(f"norm({x.text})^2", 2, lambda e: sum(abs(u) ** 2 for u in x.value(e))),
        )

    def _listed(self, a: Node, b: Node, c: Node) -> Node:
        """Products of vectors and matrices that list their entries."""
        text = f"[{a.text}, {b.text}]' * [{c.text}, 1; -{b.at(3)}, {a.text}] * [{c.text}, 2]"

        def value(e: dict[str, Any]) -> Any:
            x, y, z = (u.value(e) for u in (a, b, c))
            return x * (z * z + 2) + y * (-y * z + 2 * x)

        return Node(text, 2, value)

    def real(self, s: Node) -> Node:
        return Node(f"real({s.text})", 3, lambda e: mpmath.re(s.value(e))) if self.complex else s


def _name(name: str) -> Node:
    return Node(name, 3, lambda e: e[name])


def _sum(a: Node, sign: str, b: Node) -> Node:
    return Node(
        f"{a.at(1)} {sign} {b.at(2)}", 1, lambda e: a.value(e) + b.value(e) if sign == "+" else a.value(e) - b.value(e)
    )


def _numbers(a: Node, sign: str, b: Node) -> Node:
    if sign == "*":
        return Node(f"{a.at(2)} * {b.at(3)}", 2, lambda e: a.value(e) * b.value(e))
    return _sum(a, sign, b)


def _product(a: Node, b: Node) -> Node:
    return Node(f"{a.at(2)} * {b.at(3)}", 2, lambda e: a.value(e) * b.value(e))


def _adjoint(a: Node) -> Node:
    return Node(f"{a.at(3)}'", 3, lambda e: a.value(e).H)


def _hermitian(a: Any) -> Any:
    return (a + a.H) / 2


def _where(a: Any, kept: Callable[[int, int], bool]) -> Any:
    return mpmath.matrix([[a[i, j] if kept(i, j) else 0 for j in range(a.cols)] for i in range(a.rows)])


def _transform(x: Any, sign: int) -> Any:
    """Σ_j x(j) exp(∓2πi j k/n), and a share 1/n of it with the sign +."""
    n = len(x)
    found = [sum(x[j] * mpmath.expjpi(mpmath.mpf(2 * sign * j * k) / n) for j in range(n)) for k in range(n)]
    return mpmath.matrix(found) / (n if sign > 0 else 1)


def _trace(a: Any) -> Any:
    return sum(a[i, i] for i in range(a.rows))


def _spectrum(a: Any) -> Any:
    return mpmath.eighe(_hermitian(a), eigvals_only=True)


def _root(a: Any) -> Any:
    """By Newton's iteration, which takes what is not Hermitian, too: roots are differentiated in the full space."""
    return mpmath.sqrtm(a)


def program(rng: np.random.Generator) -> tuple[str, Node, list[str]]:
    """A program, its tree, and the names of its unknowns."""
    of = Whole(rng, bool(rng.integers(2)))
    c = "C" if of.complex else "R"
    kinds = {"A": f"{c}M{{n, n}}", "B": f"{c}M{{n, n}}", "K": "HPD{n}" if of.complex else "SPD{n}"}
    kinds |= {"X": f"{c}M{{n, m}}", "x": f"{c}V{{n}}", "y": f"{c}V{{n}}"}
    names = list(kinds)
    unknowns = sorted(rng.choice(names, int(rng.integers(1, 3)), replace=False).tolist())
    body = of.number(int(rng.integers(1, 4)))
    used = [v for v in names if re.search(rf"\b{v}\b", body.text)]
    unknowns = [v for v in unknowns if v in used] or used[:1]
    given = ", ".join(f"{v}::{kinds[v]}" for v in names if v not in unknowns)
    varied = ", ".join(f"{v}::{kinds[v]}" for v in unknowns)
    return f"({given}) -> ({varied}) -> {body.text}", body, unknowns


def data(rng: np.random.Generator, over_complex: bool, n: int, m: int) -> dict[str, np.ndarray]:
    """Random arrays; K is positive definite."""

    def numbers(*shape: int) -> np.ndarray:
        real = rng.standard_normal(shape)
        return real + 1j * rng.standard_normal(shape) if over_complex else real

    K = numbers(n, n)
    found = {"A": numbers(n, n), "B": numbers(n, n), "K": K @ K.conj().T + np.eye(n), "X": numbers(n, m)}
    return found | {"x": numbers(n), "y": numbers(n)}


@dataclass
class Exact:
    """A tree at given arrays, with many digits: its value and slopes, and what they are with arrays a little off.

    What that changes is what rounding may do, and no more than a hundred times as much is allowed.
    """

    body: Node
    at: dict[str, Any]
    off: dict[str, Any]

    @classmethod
    def of(cls, body: Node, values: dict[str, np.ndarray], rng: np.random.Generator) -> Exact:
        off = {v: x * (1 + 1e-15 * rng.standard_normal(x.shape)) for v, x in values.items()}
        return cls(body, *({v: mpmath.matrix(x.tolist()) for v, x in each.items()} for each in (values, off)))

    def value(self) -> tuple[complex, float]:
        return _with_noise([self.body.value(arrays) for arrays in (self.at, self.off)])

    def slope(self, *along: dict[str, np.ndarray]) -> tuple[complex, float] | None:
        """The derivative along one or two directions; None where two steps disagree, as where eigenvalues meet."""
        directions = [{v: mpmath.matrix(k.tolist()) for v, k in each.items()} for each in along]
        found = [[_difference(self.body, a, directions, mpmath.mpf(h)) for h in STEPS] for a in (self.at, self.off)]
        if any(abs(a - b) > 1e-9 * (abs(a) + abs(b)) for a, b in found if abs(a) > 1e-12):
            return None
        return _with_noise([steps[0] for steps in found])


def _difference(body: Node, at: dict[str, Any], along: list[dict[str, Any]], h: Any) -> Any:
    if not along:
        return body.value(at)
    k, *rest = along
    ahead, back = ({v: a + s * h * k[v] if v in k else a for v, a in at.items()} for s in (1, -1))
    return (_difference(body, ahead, rest, h) - _difference(body, back, rest, h)) / (2 * h)


def _with_noise(pair: list[Any]) -> tuple[complex, float]:
    exact, off = pair
    return complex(exact), 100 * float(abs(exact - off))


def complaints(seed: int) -> tuple[str, list[str]]:
    """The program of a seed, and what is wrong with its value, its gradient, entry by entry, and its text.

    Every third program has its Hessian product compared, too.
    """
    rng = np.random.default_rng(seed)
    text, body, unknowns = program(rng)
    n, m = (int(k) for k in rng.integers(1, 4, 2))
    values = data(rng, "::C" in text, n, m)
    d = cd.grad(text)
    texts = d.matrix_text(), d.latex(form="matrix"), str(d)
    again = cd.simplified(texts[2])
    with mpmath.workdps(DIGITS):
        exact = Exact.of(body, values, rng)
        wanted, noise = exact.value()
        if not abs(wanted) + noise < 1e9:
            return text, []  # a singular matrix, or numbers that are all rounding
        value, *gradients = d.compile(value=True)(**values)
        found = _differing("value", value, wanted, noise)
        for v, g in zip(unknowns, gradients, strict=True):
            found += _wrong_entries(exact, v, np.asarray(g))
        spelled = again.compile()(**values)
        for g, printed in zip(gradients, spelled if isinstance(spelled, tuple) else (spelled,), strict=True):
            if not np.allclose(g, printed, rtol=1e-6, atol=1e-9 + 1e-6 * abs(np.asarray(g)).max(initial=0)):
                found.append(f"printed: {np.asarray(printed).tolist()} for {np.asarray(g).tolist()}")
        if seed % 3 == 0:
            found += _wrong_products(text, exact, values, unknowns, data(rng, "::C" in text, n, m))
    return text, found


def _wrong_entries(exact: Exact, v: str, gradient: np.ndarray) -> list[str]:
    """Each entry of a gradient beside the slope along it, and along i times it of a complex unknown."""
    found: list[str] = []
    size = abs(gradient).max(initial=0)
    for place in np.ndindex(gradient.shape):
        for unit in (1, 1j) if np.iscomplexobj(gradient) else (1,):
            along = np.zeros_like(gradient)
            along[place] = unit
            slope = exact.slope({v: along})
            if slope is not None:
                got = (np.conj(gradient[place]) * unit).real
                found += _differing(f"slope by {v}{list(place)} along {unit}", got, *slope, float(size))
    return found


def _wrong_products(
    text: str, exact: Exact, values: dict[str, np.ndarray], unknowns: list[str], k: dict[str, np.ndarray]
) -> list[str]:
    """The Hessian product along k beside second differences along k and another direction."""
    f = cd.hvp(text).compile()
    along = {v: k[v] for v in unknowns}
    names = [name for name in inspect.signature(f).parameters if name in values]
    products = f(*(values[name] for name in names), *along.values())
    products = products if isinstance(products, tuple) else (products,)
    other = {v: np.flip(k[v]) for v in unknowns}
    second = exact.slope(along, other)
    if second is None:
        return []
    got = sum((np.conj(p) * other[v]).sum().real for v, p in zip(unknowns, products, strict=True))
    size = sum(abs(np.asarray(p) * other[v]).sum() for v, p in zip(unknowns, products, strict=True))
    return _differing("Hessian product", got, *second, float(size))


def _differing(what: str, got: Any, wanted: complex, noise: float, size: float = 0.0) -> list[str]:
    """What to say if a number is not the exact one, to nine digits of it and of those beside it, or to its noise."""
    if abs(complex(got) - wanted) <= 1e-9 * (abs(wanted) + size) + noise + 1e-11:
        return []
    return [f"{what}: {got} is {wanted}, give or take {noise:.1e}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    start, wrong, done, refused = time.perf_counter(), 0, 0, 0
    for seed in range(options.seed, options.seed + options.count):
        if time.perf_counter() - start > options.seconds:
            break
        done += 1
        try:
            text, found = complaints(seed)
        except cd.CombDiffError as problem:
            text, found = program(np.random.default_rng(seed))[0], [str(problem)]
            if "by its type or by what it is made of" in found[0]:
                # a product is not seen to be Hermitian
                refused += 1
                continue
        except Exception as problem:  # whatever goes wrong is a finding
            text, found = program(np.random.default_rng(seed))[0], [f"{type(problem).__name__}: {problem}"]
        if found:
            wrong += 1
            print(f"seed {seed}: {text}\n    " + "\n    ".join(found), flush=True)
    print(f"{done} programs, {refused} refused, {wrong} with complaints, {time.perf_counter() - start:.0f} s")
    return wrong > 0


if __name__ == "__main__":
    raise SystemExit(main())
